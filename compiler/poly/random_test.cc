// Random affine programs before and after each strategy, compared by the interpreter: in the order of the
// new program, and with the iterations of its parallel loops backwards, which a loop with independent
// iterations does not notice. POLYNAO_RANDOM_CASES=5000 makes it that many programs,
// POLYNAO_SEED=1000 begins with that one.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/poly.h"
#include "testing/fuzz.h"

namespace polynao::poly {
namespace {

using ir::Stmt;

class Backwards : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Stmt Mutate(Stmt s) override {
    s = Mutator::Mutate(s);
    if (!s.Is(ir::StmtKind::kFor) || s.for_kind() != ir::ForKind::kParallel) return s;
    ir::Context& c = s.context();
    const ir::Var var = c.NewVar(s.var().name(), s.var().type());
    const ir::Expr last = s.min() + s.extent() - 1;
    const ir::Expr value = last - (var - s.min());
    return c.For(var, s.min(), s.extent(), ir::Substitute(s.body(), {{s.var(), value}}));
  }
};

const char* const kStrategies[] = {"original", "min", "smart", "max", "auto", "auto", "text"};

ScheduleOptions OptionsOf(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> list[] = {values...};
    return list[random() % sizeof...(values)];
  };
  ScheduleOptions options;
  options.strategy = kStrategies[seed % 7];
  options.machine = SmallMachine(pick(2, 4, 8, 16));
  options.machine.cores = pick(1, 2, 2, 2, 16);
  options.machine.vector_bytes = pick(8, 16, 64);
  options.machine.near_bytes = pick(64, 512);
  options.machine.assumed_extent = pick(1, 64, 64, 100'000);
  options.parallel = pick(true, true, true, false);
  options.vectorize = pick(true, true, true, false);
  using Tile = std::vector<std::vector<int64_t>>;
  options.tile = pick(Tile{}, Tile{{2}}, Tile{{3, 1, 2}}, Tile{{4}, {2}}, Tile{{0, 3}}, Tile{{1}},
                      Tile{{100}}, Tile{{8, 4}, {4, 2}, {2, 1}});
  // So few now and then that isl stops somewhere on its way.
  options.max_operations = seed % 16 == 3 ? pick(1'000, 10'000) : 100'000;
  return options;
}

bool HasLoops(const ir::Function& function, ir::ForKind kind) {
  return ir::AnyStmt(function.body,
                     [&](Stmt s) { return s.Is(ir::StmtKind::kFor) && s.for_kind() == kind; });
}

// For "text", an order that another strategy gives, as its tree is printed; where there is none, that strategy.
ScheduleOptions WithText(const ir::Function& function, ScheduleOptions options) {
  if (options.strategy != "text") return options;
  ScheduleOptions smart = options;
  smart.strategy = "smart";
  ir::Function copy = function;
  const absl::StatusOr<ScheduleReport> report = Schedule(copy, smart);
  if (!report.ok() || report->parts.size() != 1 || !report->parts[0].changed) return smart;
  options.text = report->parts[0].tree;
  return options;
}

struct Tally {
  int programs = 0, changed = 0, parts = 0, parallel = 0, tiled = 0, as_text = 0;
  std::map<std::string, int> not_scheduled;  // parts, by reason

  void Add(const Tally& other) {
    programs += other.programs;
    changed += other.changed;
    parts += other.parts;
    parallel += other.parallel;
    tiled += other.tiled;
    as_text += other.as_text;
    for (const auto& [reason, count] : other.not_scheduled) not_scheduled[reason] += count;
  }
  std::string ToString() const {
    std::string text =
        StrCat(programs, " programs, ", changed, " changed; ", parts, " parts, ", parallel,
               " with a parallel loop, ", tiled, " with tiles, ", as_text, " by a text\n");
    for (const auto& [reason, count] : not_scheduled) {
      StrAppend(&text, "    ", count, " parts not scheduled: ", reason, "\n");
    }
    return text;
  }
};

// What is wrong; "" if nothing is.
std::string Try(const ir::Function& before, const ScheduleOptions& asked, uint64_t seed,
                Tally* tally) {
  const ScheduleOptions options = WithText(before, asked);
  ir::Function after = before;
  const absl::StatusOr<ScheduleReport> report = Schedule(after, options);
  if (!report.ok()) return report.status().ToString();
  if (!report->internal_errors.empty()) return report->internal_errors[0];
  if (report->changed == (after.body == before.body)) return "wrong `changed`";
  if (const absl::Status status = ir::Verify(after); !status.ok()) return status.ToString();
  for (const auto& [kind, is_wanted] : {std::pair(ir::ForKind::kParallel, options.parallel),
                                        std::pair(ir::ForKind::kVectorize, options.vectorize)}) {
    if (!is_wanted && HasLoops(after, kind) && !HasLoops(before, kind)) {
      return StrCat(report->ToString(), "a kind of loop that was not asked for:\n",
                    ir::Print(after));
    }
  }
  if (tally != nullptr) {
    ++tally->programs;
    tally->as_text += options.strategy == "text";
    tally->changed += report->changed;
    for (const PartReport& part : report->parts) {
      ++tally->parts;
      tally->parallel += part.parallel_loops > 0;
      tally->tiled += part.tiled_bands > 0;
      if (!part.changed) ++tally->not_scheduled[part.why_not];
    }
  }
  bool stops = false;
  std::string wrong = CompareMeaningOnRandomArguments(before, after, seed, &stops);
  if (!wrong.empty()) return StrCat(report->ToString(), wrong);
  ir::Function backwards = after;
  backwards.body = Backwards().Mutate(after.body);
  wrong = CompareMeaningOnRandomArguments(before, backwards, seed, &stops);
  if (!wrong.empty()) return StrCat(report->ToString(), "with parallel loops backwards: ", wrong);
  return "";
}

// In two halves, for two processors.
class PolyRandomTest : public testing::TestWithParam<int> {};

TEST_P(PolyRandomTest, EveryStrategyKeepsTheMeaning) {
  const int64_t cases = (FuzzCases(300) + 1) / 2;
  std::map<std::string, Tally> tallies;  // by strategy
  const int64_t first = static_cast<int64_t>(FuzzSeed()) + GetParam() * cases;
  for (int64_t seed = first; seed < first + cases; ++seed) {
    const ir::Function program = RandomAffineProgram(static_cast<uint64_t>(seed),
                                                     {.max_depth = static_cast<int>(2 + seed % 3),
                                                      .max_extent = 5,
                                                      .thread_loops = false,
                                                      .symbolic = true,
                                                      .symbolic_bounds = seed % 5 == 0,
                                                      .pragmas = false,
                                                      .several_buffers = seed % 8 != 0});
    const ScheduleOptions options = OptionsOf(static_cast<uint64_t>(seed));
    const std::string wrong =
        Try(program, options, static_cast<uint64_t>(seed), &tallies[options.strategy]);
    if (wrong.empty()) continue;
    const ir::Function smaller = ir::ShrinkProgram(
        program,
        [&](const ir::Function& f) {
          return !Try(f, options, static_cast<uint64_t>(seed), nullptr).empty();
        },
        300);
    FAIL() << "seed " << seed << ", " << options.strategy << ":\n"
           << ir::Print(smaller) << Try(smaller, options, static_cast<uint64_t>(seed), nullptr);
  }
  Tally tally;
  std::printf("seeds %d to %d\n", static_cast<int>(first), static_cast<int>(first + cases - 1));
  for (const auto& [strategy, one] : tallies) {
    std::printf("  %s: %s", strategy.c_str(), one.ToString().c_str());
    tally.Add(one);
  }
  EXPECT_GT(tally.changed, cases / 2);
  EXPECT_GT(tally.parallel, cases / 10);
  EXPECT_GT(tally.tiled, cases / 20);
  EXPECT_GT(tally.as_text, cases / 30);
}

INSTANTIATE_TEST_SUITE_P(Halves, PolyRandomTest, testing::Values(0, 1));

}  // namespace
}  // namespace polynao::poly
