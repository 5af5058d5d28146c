#include "compiler/registry/registry.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "compiler/ir/counts.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/bind_parallel.h"
#include "compiler/passes/check_externs.h"
#include "compiler/passes/check_pragmas.h"
#include "compiler/passes/cluster_regions.h"
#include "compiler/passes/copy_elision.h"
#include "compiler/passes/cse.h"
#include "compiler/passes/dead_stores.h"
#include "compiler/passes/flatten.h"
#include "compiler/passes/hoist_if.h"
#include "compiler/passes/join_ifs.h"
#include "compiler/passes/licm.h"
#include "compiler/passes/loop_partition.h"
#include "compiler/passes/normalize.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/preprocess.h"
#include "compiler/passes/promote.h"
#include "compiler/passes/same_meaning.h"
#include "compiler/passes/simplify.h"
#include "compiler/passes/storage.h"
#include "compiler/passes/sync.h"
#include "compiler/passes/tensorize.h"
#include "compiler/passes/thread_regions.h"
#include "compiler/poly/poly.h"

namespace polynao {
namespace {

using ir::Function;

const std::vector<PassInfo>& AllPasses() {
  static const auto* passes = new std::vector<PassInfo>{
      SimplifyPass(),      NormalizePass(),      LicmPass(),          HoistIfPass(),
      CsePass(),           PreprocessPass(),     LoopPartitionPass(), BindParallelPass(),
      ThreadRegionsPass(), FlattenPass(),        DeadStoresPass(),    CopyElisionPass(),
      TensorizePass(),     ClusterRegionsPass(), PipelinePass(),      StoragePass(),
      SyncPass(),          JoinIfsPass(),        PromotePass(),       SchedulePass(),
  };
  return *passes;
}

std::string ValueText(const PassOption& option, int64_t value) {
  return option.names.empty() ? StrCat(value)
                              : std::string(option.names[static_cast<size_t>(value)]);
}

// The value that `text` stands for; nothing if it is none.
std::optional<int64_t> ParseValue(const PassInfo& pass, std::string_view name,
                                  const std::string& text) {
  for (const PassOption& option : pass.options) {
    if (option.name != name || option.names.empty()) continue;
    const auto it = std::find(option.names.begin(), option.names.end(), text);
    if (it == option.names.end()) return std::nullopt;
    return it - option.names.begin();
  }
  int64_t value = 0;
  return absl::SimpleAtoi(text, &value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string ValuesText(const PassOption& option) {
  if (!option.names.empty()) {
    std::string text;
    for (const std::string_view name : option.names) {
      StrAppend(&text, text.empty() ? "" : ", ", name);
    }
    return text;
  }
  return option.type == PassOption::Type::kBool
             ? "0 or 1"
             : StrCat("an integer from ", option.least, " to ", option.most);
}

namespace {

// An error about options of `pass`, with the ones it has.
template <typename... Args>
absl::Status OptionError(const PassInfo& pass, const Args&... args) {
  std::string options;
  for (const PassOption& option : pass.options) {
    StrAppend(&options, options.empty() ? "; it has: " : ", ", option.name, " (",
              ValuesText(option), ")");
  }
  return InvalidInput("pass '", pass.name, "' ", args...,
                      options.empty() ? "; it has no options" : options);
}

// The option of that name, which must take `value`.
absl::Status CheckOption(const PassInfo& pass, std::string_view name, std::optional<int64_t> value,
                         std::string_view text) {
  for (const PassOption& option : pass.options) {
    if (option.name != name) continue;
    if (value && option.least <= *value && *value <= option.most) return absl::OkStatus();
    return OptionError(pass, "option '", name, "': expected ", ValuesText(option), ", found '",
                       text, "'");
  }
  return OptionError(pass, "has no option '", name, "'");
}

}  // namespace

absl::Span<const PassInfo> Passes() { return AllPasses(); }

const PassInfo* FindPass(std::string_view name) {
  for (const PassInfo& pass : AllPasses()) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

std::string DefaultText(const PassOption& option) {
  // The values in the order of targets, with the names that share one.
  std::vector<std::pair<int64_t, std::string>> values;
  for (const TargetFacts& facts : Targets()) {
    const Target target{.name = std::string(facts.name)};
    const int64_t value = option.default_value(target);
    auto it = std::find_if(values.begin(), values.end(),
                           [&](const auto& known) { return known.first == value; });
    if (it == values.end()) it = values.insert(it, {value, ""});
    StrAppend(&it->second, it->second.empty() ? "" : ", ", facts.name);
  }
  std::string text = StrCat(option.name, "=", ValueText(option, values[0].first));
  for (size_t i = 1; i < values.size(); ++i) {
    StrAppend(&text, i == 1 ? " (" : "; ", ValueText(option, values[i].first), " for ",
              values[i].second);
  }
  return values.size() == 1 ? text : text + ")";
}

absl::StatusOr<std::vector<PassSpec>> ParsePasses(std::string_view text) {
  std::vector<PassSpec> passes;
  size_t at = 0;
  const auto word = [&] {
    const size_t begin = at;
    while (at < text.size() && std::string_view(",();=").find(text[at]) == std::string_view::npos) {
      ++at;
    }
    std::string_view w = text.substr(begin, at - begin);
    while (!w.empty() && w.front() == ' ') w.remove_prefix(1);
    while (!w.empty() && w.back() == ' ') w.remove_suffix(1);
    return std::string(w);
  };
  const auto expected = [&](std::string_view what) {
    return InvalidInput("passes '", text, "': expected ", what, " at character ", at + 1,
                        ", found ",
                        at < text.size() ? StrCat("'", std::string(1, text[at]), "'") : "the end");
  };
  while (true) {
    PassSpec pass;
    pass.name = word();
    if (pass.name.empty()) return expected("a pass");
    const PassInfo* info = FindPass(pass.name);
    if (info == nullptr) {
      std::string names;
      for (const PassInfo& p : AllPasses()) StrAppend(&names, names.empty() ? "" : ", ", p.name);
      return InvalidInput("no pass is named '", pass.name, "'; there are: ", names);
    }
    if (at < text.size() && text[at] == '(') {
      do {
        ++at;
        const std::string key = word();
        if (key.empty() || at >= text.size() || text[at] != '=') return expected("option=value");
        ++at;
        const std::string text_of_value = word();
        const std::optional<int64_t> value = ParseValue(*info, key, text_of_value);
        RETURN_IF_ERROR(CheckOption(*info, key, value, text_of_value));
        if (!pass.options.emplace(key, *value).second) {
          return OptionError(*info, "option '", key, "' is given twice");
        }
      } while (at < text.size() && (text[at] == ';' || text[at] == ','));
      if (at >= text.size() || text[at] != ')') return expected("')'");
      ++at;
    }
    passes.push_back(std::move(pass));
    if (at == text.size()) return passes;
    if (text[at] != ',') return expected("','");
    ++at;
  }
}

absl::StatusOr<std::vector<PassSpec>> PipelineFor(const Target& target) {
  const std::string_view passes = target.facts().pipeline;
  if (passes.empty()) return std::vector<PassSpec>{};
  return ParsePasses(passes);
}

namespace {

// Beyond so many iterations of loops --stats has no counts of operations.
constexpr int64_t kMaxCountedIterations = 1000000;

// "int_add 12 -> 3, branches 8 -> 4": what the interpreter counts, before and after a pass.
std::string CountsText(const ir::Counts& before, const ir::Counts& after) {
  const std::vector<std::pair<std::string, int64_t>> x = ir::CountRows(before);
  const std::vector<std::pair<std::string, int64_t>> y = ir::CountRows(after);
  std::string text;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i].second == 0 && y[i].second == 0) continue;
    StrAppend(&text, text.empty() ? "" : ", ", x[i].first, " ", x[i].second);
    if (x[i].second != y[i].second) StrAppend(&text, " -> ", y[i].second);
  }
  return text;
}

}  // namespace

absl::Status RunPasses(Function& function, absl::Span<const PassSpec> passes, const Target& target,
                       const PipelineOptions& options) {
  int count = 0;
  ir::MeaningOptions meaning = MeaningOptionsFor(target);
  meaning.arguments.scalars = options.check_scalars;
  const auto operations = [&]() -> std::optional<ir::Counts> {
    absl::StatusOr<ir::Counts> counts =
        ir::CountOperations(function, options.check_seed, meaning, kMaxCountedIterations);
    return counts.ok() ? std::optional(*counts) : std::nullopt;
  };
  if (options.check) {
    RETURN_IF_ERROR(
        ir::RandomArguments::DrawScalars(function, options.check_seed, meaning.arguments).status());
  }
  std::optional<ir::Counts> operations_before;
  if (options.stats) operations_before = operations();
  RETURN_IF_ERROR(CheckExterns(function, target));
  ResolvePragmas(function, target);
  if (options.verify) RETURN_IF_ERROR(CheckPragmas(function, target));
  for (const PassSpec& spec : passes) {
    if (options.stop_after >= 0 && count >= options.stop_after) break;
    if (std::find(options.skip.begin(), options.skip.end(), spec.name) != options.skip.end()) {
      continue;
    }
    ++count;
    const PassInfo* pass = FindPass(spec.name);
    if (pass == nullptr) return InvalidInput("no pass is named '", spec.name, "'");
    for (const auto& [name, value] : spec.options) {
      RETURN_IF_ERROR(CheckOption(*pass, name, value, StrCat(value)));
    }
    const std::string context = StrCat("pass ", spec.name);
    std::optional<Function> before;
    if (options.check) before = ir::CloneInto(function, std::make_shared<ir::Context>());
    PipelineOptions::Step step{.pass = &spec,
                               .function = &function,
                               .changed = false,
                               .milliseconds = 0,
                               .stats = {},
                               .explanations = {},
                               .wrong = {}};
    const PassEnvironment environment{target, options.stats ? &step.stats : nullptr,
                                      options.explain ? &step.explanations : nullptr};
    const auto start = std::chrono::steady_clock::now();
    absl::StatusOr<bool> changed = pass->run(function, environment, spec.options);
    if (!changed.ok()) return WithContext(context, changed.status());
    step.changed = *changed;
    step.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (options.verify) {
      RETURN_IF_ERROR(WithContext(context, ir::Verify(function)));
      RETURN_IF_ERROR(WithContext(context, CheckPragmas(function, target)));
    }
    if (options.check) {
      step.wrong = ir::CompareMeaning(*before, function, options.check_seed, meaning);
      if (!step.wrong.empty()) {
        if (options.on_step) options.on_step(step);
        return absl::InternalError(StrCat(context, " changed the meaning: ", step.wrong));
      }
    }
    if (options.stats && step.changed && operations_before) {
      const std::optional<ir::Counts> after = operations();
      if (after) step.stats.push_back(StrCat("counts: ", CountsText(*operations_before, *after)));
      operations_before = after;
    }
    if (options.on_step) options.on_step(step);
  }
  return absl::OkStatus();
}

}  // namespace polynao
