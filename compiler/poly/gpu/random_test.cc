// Random affine programs mapped to a GPU: compared by the interpreter, also with threads and blocks backwards, and as
// CUDA by the shim, with threads in three orders. POLYNAO_RANDOM_CASES=2000 makes it that many programs,
// POLYNAO_SEED=1000 begins with that one.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/poly/gpu/gpu.h"
#include "compiler/poly/gpu/shim_batch_for_test.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "testing/fuzz.h"

namespace polynao::poly {
namespace {

const char* const kStrategies[] = {"original", "min", "smart", "max"};

GpuOptions OptionsOf(uint64_t seed) {
  GpuOptions options;
  options.strategy = kStrategies[seed % 4];
  options.max_operations = 200'000;
  // Extents of loops are at most 5.
  options.block = {{{4}, {3, 2}, {2, 1, 2}}};
  if (seed / 4 % 2 == 1) options.block = {{{2}, {2, 2}, {1, 3, 1}}};
  options.serial_tile = seed / 8 % 2 == 0 ? 2 : 3;
  options.serial_tiles = 2;
  options.registers = seed / 16 % 4 != 0;
  if (seed / 16 % 8 == 1) options.shared_bytes = 64;
  return options;
}

ir::Function ProgramOf(uint64_t seed) {
  return RandomAffineProgram(seed, {.max_depth = static_cast<int>(2 + seed % 3),
                                    .max_extent = 5,
                                    .thread_loops = false,
                                    .symbolic = true,
                                    .symbolic_bounds = seed % 5 == 0,
                                    .pragmas = false,
                                    .several_buffers = seed % 8 != 0,
                                    .workspace = seed / 8 % 3 == 0});
}

struct Tally {
  int changed = 0, kernels = 0, shared = 0, registers = 0, wavefronts = 0, host = 0, stops = 0;
};

// What is wrong in loop IR; "" if nothing is. `after` gets the mapped function, `stops` whether `before` stops.
std::string Try(const ir::Function& before, uint64_t seed, ir::Function* after, Tally* tally,
                bool* stops) {
  *after = before;
  const absl::StatusOr<ScheduleReport> report = ScheduleForGpu(*after, OptionsOf(seed));
  if (!report.ok()) return report.status().ToString();
  if (!report->internal_errors.empty()) return report->internal_errors[0];
  if (report->changed == (after->body == before.body)) return "wrong `changed`";
  if (const absl::Status status = ir::Verify(*after); !status.ok()) return status.ToString();
  const std::string text = report->ToString();
  if (tally != nullptr) {
    tally->changed += report->changed;
    for (const PartReport& part : report->parts) {
      tally->kernels += part.parallel_loops;
      tally->wavefronts += part.wavefronts;
    }
    tally->shared += text.find(", shared") != std::string::npos;
    tally->registers += text.find("in a register") != std::string::npos;
    tally->host += text.find("of the host") != std::string::npos;
  }
  std::string wrong = CompareMeaningOnRandomArguments(before, *after, seed, stops);
  if (!wrong.empty()) return StrCat(text, wrong);
  ir::Function backwards = *after;
  backwards.body = Backwards().Mutate(after->body);
  wrong = CompareMeaningOnRandomArguments(before, backwards, seed, stops);
  if (!wrong.empty()) return StrCat(text, "with threads backwards: ", wrong);
  return "";
}

TEST(GpuRandomTest, EveryStrategyKeepsTheMeaning) {
  const int64_t cases = FuzzCases(120);
  Tally tally;
  ShimBatch batch;
  const Target target{.name = "cuda"};
  const auto passes = PipelineFor(target);
  ASSERT_TRUE(passes.ok());
  const int64_t first = static_cast<int64_t>(FuzzSeed());
  for (int64_t s = first; s < first + cases; ++s) {
    const auto seed = static_cast<uint64_t>(s);
    const ir::Function program = ProgramOf(seed);
    ir::Function after;
    bool stops = false;
    const std::string wrong = Try(program, seed, &after, &tally, &stops);
    if (!wrong.empty()) {
      const auto is_wrong = [&](const ir::Function& f) {
        ir::Function ignored;
        return !Try(f, seed, &ignored, nullptr, &stops).empty();
      };
      const ir::Function smaller = ir::ShrinkProgram(program, is_wrong, 300);
      FAIL() << "seed " << seed << ", " << OptionsOf(seed).strategy << ":\n"
             << ir::Print(smaller) << Try(smaller, seed, &after, nullptr, &stops);
    }
    tally.stops += stops;
    if (after.body == program.body || stops) continue;
    // Half of them as they are, so that passes hide nothing. (After flatten, arguments would need other shapes.)
    PipelineOptions options;
    options.skip = {"flatten"};
    if (seed % 2 == 0) ASSERT_EQ(RunPasses(after, *passes, target, options), absl::OkStatus());
    batch.Add(program, after, seed);
    if (HasFatalFailure()) return;
  }
  batch.Check();
  std::printf(
      "%d of %d programs changed: %d kernels, %d programs with shared memory, %d with registers, "
      "%d with loops of the host, %d diagonals; %d of %d barriers needed; %d programs stop; %d "
      "runs, "
      "%d besides stop\n",
      tally.changed, static_cast<int>(cases), tally.kernels, tally.shared, tally.registers,
      tally.host, tally.wavefronts, batch.needed(), batch.barriers(), tally.stops, batch.ran(),
      batch.stopped());
  // That the usual programs try everything. Of others, few may have no register at all, and more runs may stop.
  if (first != 1) return;
  EXPECT_GT(tally.changed, cases / 5);
  EXPECT_GT(tally.shared, cases / 50);
  EXPECT_GT(tally.registers, cases / 150);
  EXPECT_GT(tally.host, cases / 100);
  EXPECT_GT(tally.wavefronts, 0);
  EXPECT_GT(batch.needed(), 0);
  EXPECT_LT(tally.stops, cases / 4);
  EXPECT_LT(batch.stopped() * 20, batch.ran());
}

}  // namespace
}  // namespace polynao::poly
