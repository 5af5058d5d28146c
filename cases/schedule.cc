#include "cases/schedule.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status.h"
#include "compiler/ir/float_rules.h"
#include "compiler/poly/gpu/gpu.h"
#include "compiler/poly/order/strategies.h"
#include "compiler/poly/poly.h"

namespace polynao::cases {
namespace {

constexpr int64_t kMostThreads = 1024;  // of a block

// "auto" and its like, or "text" and what the file has.
struct Strategy {
  std::string name;
  std::string text = {};
  std::vector<int64_t> tile = {};
};

// The sizes of "8x64".
absl::StatusOr<std::vector<int64_t>> ParseTile(absl::string_view text) {
  std::vector<int64_t> sizes;
  for (absl::string_view part : absl::StrSplit(text, 'x')) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size) || size < 0) {
      return InvalidInput("--schedule: expected sizes of a tile like fuse:8x64, found '",
                          std::string(text), "'");
    }
    sizes.push_back(size);
  }
  return sizes;
}

absl::StatusOr<Strategy> StrategyOf(const std::string& schedule) {
  const poly::NamedStrategy* found = poly::FindStrategy(schedule);
  if (found != nullptr && found->is_search) return Strategy{schedule};
  if (const size_t colon = schedule.find(':'); colon != std::string::npos) {
    const std::string fusion = schedule.substr(0, colon);
    if (poly::IsFusion(fusion)) {
      ASSIGN_OR_RETURN(std::vector<int64_t> tile, ParseTile(schedule.substr(colon + 1)));
      return Strategy{fusion, "", std::move(tile)};
    }
  }
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(schedule);
  if (absl::StartsWith(text, "{") || absl::StartsWith(text, "[")) return Strategy{"text", schedule};
  if (!std::filesystem::is_regular_file(schedule)) {
    return InvalidInput("--schedule: expected ", ScheduleNames(),
                        ", a schedule '{ S0[i, j] -> [j, i] }', or a file that has one, found '",
                        schedule, "'");
  }
  ASSIGN_OR_RETURN(std::string read, ReadFile(schedule));
  // What `nao tune` has found.
  const std::string stripped(absl::StripAsciiWhitespace(read));
  if (stripped == "fuse" || stripped.starts_with("fuse:")) return StrategyOf(stripped);
  return Strategy{"text", std::move(read)};
}

// `options` with the strategy, on a copy of `function`.
template <typename Options, typename Run>
absl::StatusOr<Scheduled> RunStrategy(const ir::Function& function, const std::string& schedule,
                                      Options options, const Run& run) {
  Scheduled result{.function = function, .notes = {}};
  if (schedule == "none") return result;
  const auto start = std::chrono::steady_clock::now();
  const ir::FloatRules rules = ir::FloatRulesOf(function);
  options.reassociate = rules.reassociate;
  if constexpr (std::is_same_v<Options, poly::ScheduleOptions>) options.takes_dots = rules.dots;
  ASSIGN_OR_RETURN(Strategy strategy, StrategyOf(schedule));
  options.strategy = std::move(strategy.name);
  options.text = std::move(strategy.text);
  options.group_tile = std::move(strategy.tile);
  if constexpr (std::is_same_v<Options, poly::GpuOptions>) {
    // As many as a tile has elements along the dimensions that are cut.
    int64_t threads = 1;
    for (const int64_t size : options.group_tile) {
      threads *= std::clamp<int64_t>(size, 1, kMostThreads / threads + 1);
      threads = std::min(threads, kMostThreads);
    }
    if (threads > 1) options.group_threads = threads;
  }
  absl::StatusOr<poly::ScheduleReport> report = run(result.function, options);
  if (!report.ok()) return WithContext(StrCat("--schedule=", schedule), report.status());
  for (absl::string_view line : absl::StrSplit(report->ToString(), '\n', absl::SkipEmpty())) {
    result.notes.emplace_back(line);
  }
  result.figures = report->Figures();
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - start;
  result.milliseconds = all.count() - report->count_ms;
  return result;
}

}  // namespace

std::string ScheduleNames() {
  return StrCat("none, ", poly::StrategyNames(&poly::NamedStrategy::is_search), ", fuse:8x64");
}

absl::StatusOr<Scheduled> ScheduleFunction(const ir::Function& function,
                                           const std::string& schedule, int threads,
                                           bool has_tiles) {
  if (threads == 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  poly::ScheduleOptions options;
  ASSIGN_OR_RETURN(options.machine, poly::HostMachine(threads, has_tiles));
  options.count = true;
  return RunStrategy(function, schedule, options, poly::Schedule);
}

absl::StatusOr<Scheduled> ScheduleForCuda(const ir::Function& function, const std::string& schedule,
                                          bool copies) {
  poly::GpuOptions options;
  if (!copies) {
    options.shared_bytes = 0;
    options.registers = false;
  }
  return RunStrategy(function, schedule, options, poly::ScheduleForGpu);
}

}  // namespace polynao::cases
