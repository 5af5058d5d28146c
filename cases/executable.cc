#include "cases/executable.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/elapsed.h"
#include "base/median.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/arguments.h"
#include "compiler/codegen/back_ends.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/shapes.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"

namespace polynao::cases {
namespace {

constexpr size_t kPage = 4096;

struct Free {
  void operator()(void* block) const { std::free(block); }
};
using Block = std::unique_ptr<void, Free>;

absl::StatusOr<Block> AllocateBlock(size_t bytes) {
  Block block(std::aligned_alloc(kPage, (bytes / kPage + 1) * kPage));
  if (block == nullptr)
    return absl::ResourceExhaustedError(StrCat("no memory for ", bytes, " bytes"));
  return block;
}

void CopyTensors(absl::Span<void* const> buffers, ir::RandomArguments& arguments) {
  size_t next = 0;
  for (const ir::Argument& argument : arguments.arguments()) {
    if (argument.tensor == nullptr) continue;
    std::vector<uint8_t>& bytes = argument.tensor->bytes;
    if (!bytes.empty()) std::memcpy(bytes.data(), buffers[next], bytes.size());
    ++next;
  }
}

// Runs `run`, which is code of `lowered`, on arguments of the function before its passes: these may have given buffers
// other shapes of as many elements. The tensors have these shapes meanwhile.
absl::Status RunInShapes(const ir::Function& lowered,
                         const std::function<absl::Status(absl::Span<const ir::Argument>)>& run,
                         absl::Span<const ir::Argument> arguments) {
  ir::IntValues integers;
  for (size_t i = 0; i < lowered.params.size() && i < arguments.size(); ++i) {
    const ir::Var var = lowered.params[i].var;
    if (var && ir::IsInt(var.type())) integers[var] = arguments[i].int_value;
  }
  ASSIGN_OR_RETURN(std::vector<std::vector<int64_t>> shapes,
                   ir::ParameterShapes(lowered, integers));
  const auto swap_shapes = [&] {
    size_t next = 0;
    for (const ir::Argument& argument : arguments) {
      if (argument.tensor == nullptr || next == shapes.size()) continue;
      std::swap(argument.tensor->shape, shapes[next++]);
    }
  };
  swap_shapes();
  const absl::Status status = run(arguments);
  swap_shapes();
  return status;
}

}  // namespace

absl::StatusOr<Executable> MakeExecutable(const ir::Function& function,
                                          const ExecutableOptions& options) {
  ASSIGN_OR_RETURN(const Target target, MakeTarget(options.target, nullptr));
  const Clock::time_point start = Clock::now();
  ir::Function lowered = function;
  // Passes may move a division out of a loop, and make buffers flat. That a card does not run here, its back end says.
  if (!IsCard(options.target) && !options.checks) {
    ASSIGN_OR_RETURN(const std::vector<PassSpec> passes, PipelineFor(target));
    if (!passes.empty()) RETURN_IF_ERROR(RunPasses(lowered, passes, target, {.verify = false}));
  }
  Executable result;
  ASSIGN_OR_RETURN(static_cast<codegen::Executable&>(result),
                   codegen::FindBackEnd(options.target)
                       .Load(lowered, {.threads = options.threads,
                                       .float_rules = options.float_rules,
                                       .checks = options.checks,
                                       .wide_vectors = true}));
  result.compile_ms = SecondsSince(start) * 1e3;
  result.run = [lowered, run = std::move(result.run)](auto arguments) {
    return RunInShapes(lowered, run, arguments);
  };
  return result;
}

absl::StatusOr<RunTimes> TimeRuns(const Executable& executable, const ir::Function& function,
                                  ir::RandomArguments& arguments, const TimingOptions& options) {
  ASSIGN_OR_RETURN(codegen::RawArguments raw,
                   codegen::LayOutArguments(function, arguments.arguments()));
  const ir::RandomArguments before(arguments);
  std::vector<Block> blocks;
  if (executable.entry != nullptr) {
    for (size_t i = 0; i < raw.buffers.size(); ++i) {
      ASSIGN_OR_RETURN(Block block, AllocateBlock(before.tensors()[i].bytes.size()));
      raw.buffers[i] = block.get();
      blocks.push_back(std::move(block));
    }
  }
  const auto run = [&]() -> absl::Status {
    if (executable.entry == nullptr) return executable.run(arguments.arguments());
    return executable.to_status(executable.entry(raw.buffers.data(), raw.scalars.data()));
  };
  std::vector<double> times;
  const Clock::time_point start = Clock::now();
  bool warm = false;
  while (true) {
    for (size_t i = 0; i < raw.buffers.size(); ++i) {
      const std::vector<uint8_t>& bytes = before.tensors()[i].bytes;
      if (!bytes.empty()) std::memcpy(raw.buffers[i], bytes.data(), bytes.size());
    }
    const Clock::time_point begin = Clock::now();
    RETURN_IF_ERROR(run());
    const double seconds = SecondsSince(begin);
    const double all = SecondsSince(start);
    // The first run loads code and touches memory for the first time.
    if (warm || all >= options.most_seconds) times.push_back(seconds * 1e9);
    warm = true;
    const int runs = static_cast<int>(times.size());
    if (runs >= options.most_runs || (runs > 0 && all >= options.most_seconds)) break;
    if (runs >= options.least_runs && all >= options.seconds) break;
  }
  if (executable.entry != nullptr) CopyTensors(raw.buffers, arguments);
  return RunTimes{.median_ns = Median(times),
                  .least_ns = *std::min_element(times.begin(), times.end()),
                  .runs = static_cast<int>(times.size())};
}

}  // namespace polynao::cases
