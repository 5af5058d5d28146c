#include "compiler/passes/registry.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "compiler/ir/counts.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/bind_parallel.h"
#include "compiler/passes/cse.h"
#include "compiler/passes/flatten.h"
#include "compiler/passes/hoist_if.h"
#include "compiler/passes/licm.h"
#include "compiler/passes/loop_partition.h"
#include "compiler/passes/normalize.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/preprocess.h"
#include "compiler/passes/same_meaning.h"
#include "compiler/passes/simplify.h"
#include "compiler/passes/storage.h"
#include "compiler/passes/sync.h"
#include "compiler/passes/tensorize.h"
#include "compiler/passes/thread_regions.h"

namespace polynao {
namespace {

using ir::Function;

// The value of an integer option, or its default.
absl::StatusOr<int> IntOption(const PassEnvironment& environment, const std::string& name,
                              int otherwise) {
  auto it = environment.options.find(name);
  if (it == environment.options.end()) return otherwise;
  int value = 0;
  if (!absl::SimpleAtoi(it->second, &value) || value < 0) {
    return InvalidInput("option ", name, ": expected a number of 0 or more, found '", it->second,
                        "'");
  }
  return value;
}

absl::StatusOr<bool> RunNormalize(Function& function, const PassEnvironment& environment) {
  NormalizeOptions options;
  ASSIGN_OR_RETURN(int floats, IntOption(environment, "float", 0));
  options.floats = floats != 0;
  NormalizeStats stats;
  ASSIGN_OR_RETURN(bool changed, Normalize(function, environment.target, options, &stats));
  if (environment.stats != nullptr) {
    environment.stats->push_back(
        StrCat(stats.regrouped, " expressions regrouped, ", stats.collapsed, " selects collapsed, ",
               stats.nested_ifs, " nested ifs and ", stats.joined_ifs, " neighbours joined"));
  }
  return changed;
}

absl::StatusOr<bool> RunLicm(Function& function, const PassEnvironment& environment) {
  LicmOptions options = LicmOptionsFor(environment.target);
  ASSIGN_OR_RETURN(options.threshold, IntOption(environment, "k", options.threshold));
  if (options.threshold == 0) return InvalidInput("option k: expected 1 or more, found 0");
  ASSIGN_OR_RETURN(options.max_live, IntOption(environment, "max_live", options.max_live));
  ASSIGN_OR_RETURN(options.unrolled_extent,
                   IntOption(environment, "unrolled", options.unrolled_extent));
  LicmStats stats;
  ASSIGN_OR_RETURN(bool changed, Licm(function, environment.target, options,
                                      environment.stats ? &stats : nullptr));
  if (environment.stats != nullptr) {
    environment.stats->push_back(StrCat("moved ", stats.expressions, " expressions, ", stats.lets,
                                        " lets, ", stats.statements, " statements"));
    for (std::string& line : stats.moved) environment.stats->push_back(std::move(line));
  }
  return changed;
}

absl::StatusOr<bool> RunHoistIf(Function& function, const PassEnvironment& environment) {
  HoistIfOptions options;
  ASSIGN_OR_RETURN(options.max_growth, IntOption(environment, "max_growth", options.max_growth));
  HoistIfStats stats;
  ASSIGN_OR_RETURN(bool changed, HoistIf(function, environment.target, options,
                                         environment.stats ? &stats : nullptr));
  if (environment.stats != nullptr) {
    environment.stats->push_back(StrCat("hoisted ", stats.hoisted.size(), " conditions, copied ",
                                        stats.nodes_copied, " nodes"));
    for (std::string& line : stats.hoisted) environment.stats->push_back(std::move(line));
  }
  return changed;
}

absl::StatusOr<bool> RunCse(Function& function, const PassEnvironment& environment) {
  CseOptions options;
  ASSIGN_OR_RETURN(int semantic, IntOption(environment, "semantic", 0));
  options.semantic = semantic != 0;
  if (environment.target.instructions != nullptr) {
    options.intrinsics = &environment.target.instructions->intrinsics();
  }
  std::vector<CseBinding> bindings;
  ASSIGN_OR_RETURN(bool changed, Cse(function, options, environment.stats ? &bindings : nullptr));
  for (const CseBinding& binding : bindings) {
    environment.stats->push_back(
        StrCat(binding.variable, " = ", binding.value, "  for ", binding.uses, " uses"));
  }
  return changed;
}

absl::StatusOr<bool> RunFlatten(Function& function, const PassEnvironment& environment) {
  ASSIGN_OR_RETURN(const int keep_private, IntOption(environment, "keep_private", 0));
  return Flatten(function, {.keep_private = keep_private != 0});
}

absl::StatusOr<bool> RunPreprocess(Function& function, const PassEnvironment& environment) {
  std::vector<PreprocessDecision> decisions;
  ASSIGN_OR_RETURN(bool changed, Preprocess(function, environment.target,
                                            environment.stats ? &decisions : nullptr));
  for (const PreprocessDecision& decision : decisions) {
    environment.stats->push_back(StrCat(decision.place, "  -->  ", decision.what));
  }
  return changed;
}

absl::StatusOr<bool> RunLoopPartition(Function& function, const PassEnvironment& environment) {
  LoopPartitionOptions options;
  ASSIGN_OR_RETURN(options.max_pieces, IntOption(environment, "max_pieces", options.max_pieces));
  ASSIGN_OR_RETURN(options.max_nest_pieces,
                   IntOption(environment, "max_nest_pieces", options.max_nest_pieces));
  ASSIGN_OR_RETURN(int only, IntOption(environment, "only_in_pragmas", 0));
  options.only_in_pragmas = only != 0;
  LoopPartitionStats stats;
  ASSIGN_OR_RETURN(bool changed,
                   LoopPartition(function, options, environment.stats ? &stats : nullptr));
  if (environment.stats != nullptr && !stats.loops.empty()) {
    std::string text = stats.ToString();
    while (!text.empty() && text.back() == '\n') text.pop_back();
    environment.stats->push_back(text);
  }
  return changed;
}

absl::StatusOr<bool> RunTensorize(Function& function, const PassEnvironment& environment) {
  std::vector<TensorizeDecision> decisions;
  const bool report = environment.stats != nullptr || environment.explanations != nullptr;
  ASSIGN_OR_RETURN(bool changed,
                   Tensorize(function, environment.target, report ? &decisions : nullptr));
  for (const TensorizeDecision& decision : decisions) {
    if (environment.explanations != nullptr && !decision.explanation.empty()) {
      environment.explanations->push_back(decision.explanation);
    }
    if (environment.stats == nullptr) continue;
    environment.stats->push_back(StrCat(decision.nest, "  -->  ",
                                        decision.instruction.empty()
                                            ? StrCat("(scalar) ", decision.reason)
                                            : decision.instruction));
  }
  return changed;
}

absl::StatusOr<bool> RunPipeline(Function& function, const PassEnvironment& environment) {
  std::vector<PipelineDecision> decisions;
  ASSIGN_OR_RETURN(bool changed, Pipeline(function, environment.target,
                                          environment.stats ? &decisions : nullptr));
  for (const PipelineDecision& decision : decisions) {
    environment.stats->push_back(StrCat(decision.loop, "  -->  ",
                                        decision.pipelined
                                            ? StrCat("pipelined: ", decision.form)
                                            : StrCat("not pipelined: ", decision.reason)));
  }
  return changed;
}

absl::StatusOr<bool> RunStorage(Function& function, const PassEnvironment& environment) {
  std::vector<StoragePlace> places;
  ASSIGN_OR_RETURN(bool changed,
                   Storage(function, environment.target, environment.stats ? &places : nullptr));
  if (environment.stats != nullptr) {
    for (std::string& line : StorageReport(places, environment.target)) {
      environment.stats->push_back(std::move(line));
    }
  }
  return changed;
}

const std::vector<PassInfo>& AllPasses() {
  static const auto* passes = new std::vector<PassInfo>{
      {"simplify", "shorter expressions; drops dead branches, loops and lets", "",
       [](Function& f, const PassEnvironment&) { return Simplify(f); }},
      {"normalize", "orders operands by the depth of their loops; joins conditions and branches",
       "float=0", RunNormalize},
      {"licm", "evaluates in front of loops what does not vary in them",
       "k=1 max_live=24 unrolled=4 (of cpu)", RunLicm},
      {"hoist_if", "moves branches that do not vary in a loop out of it", "max_growth=256",
       RunHoistIf},
      {"cse", "binds what is evaluated more than once", "semantic=0", RunCse},
      {"preprocess", "gives nests of convolution, matmul and padding the form of instructions", "",
       RunPreprocess},
      {"loop_partition", "splits loops so that guards on their variables become constant",
       "max_pieces=16 max_nest_pieces=64 only_in_pragmas=0", RunLoopPartition},
      {"bind_parallel", "gives a GPU's threads the iterations of parallel loops", "",
       [](Function& f, const PassEnvironment&) { return BindParallel(f); }},
      {"thread_regions", "sets loops over a GPU's threads one after another", "",
       [](Function& f, const PassEnvironment&) { return ThreadRegions(f); }},
      {"flatten", "gives every buffer one dimension", "keep_private=0", RunFlatten},
      {"tensorize", "replaces loop nests by tensor instructions", "", RunTensorize},
      {"pipeline", "overlaps loads, computation and stores of loops with double buffers", "",
       RunPipeline},
      {"storage", "gives allocations on chip their addresses", "", RunStorage},
      {"sync", "orders queues where one needs what another does", "",
       [](Function& f, const PassEnvironment& e) { return Sync(f, e.target); }},
  };
  return *passes;
}

}  // namespace

absl::Span<const PassInfo> Passes() { return AllPasses(); }

const PassInfo* FindPass(std::string_view name) {
  for (const PassInfo& pass : AllPasses()) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
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
        if (info->options.find(key + "=") == std::string_view::npos) {
          return InvalidInput("pass '", pass.name, "' has no option '", key, "'",
                              info->options.empty() ? "" : StrCat("; it has: ", info->options));
        }
        ++at;
        pass.options[key] = word();
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
  if (target.name == "diannao") {
    return ParsePasses(
        // Tiling leaves guards; constant ones and fused-axis arithmetic go first, so that the next
        // two see short affine conditions. What reduces or pads gets rid of its guards without
        // being split, and the layout that its instructions ask for ...
        "simplify,preprocess,"
        // ... and the guards that are left are taken out of the loops.
        "loop_partition,"
        // The pieces' indices and extents become constants ...
        "simplify,flatten,simplify,"
        // ... which the patterns need. The pipeline sees queues only when there are instructions,
        // and doubles buffers that tensorize may have expanded. Then buffers get addresses, and
        // last comes the order between queues, which depends on the buffers that share bytes.
        "tensorize,pipeline,storage,sync,simplify");
    // normalize, licm, hoist_if and cse are not among them. Before tensorize they would hide the
    // guards and sums that patterns are found by. What is left after it is scalar code beside the
    // queues, which the code generator itself shares and moves, below loops and above waits
    // (compiler/codegen/diannao): the passes changed twelve operators' cycles by -0.2 % to +0.3 %.
  }
  if (target.name == "cpu" || target.name == "c") {
    // LLVM and C compilers vectorise loops without guards inside.
    return ParsePasses(
        "simplify,loop_partition,simplify,"
        // What is left is put in order after the last simplify, which has an order of its own.
        // Then what does not vary leaves loops: lets first, which stand in the way of ifs. The ifs
        // need their conditions in place, so common subexpressions come last.
        "normalize,licm,hoist_if,cse");
  }
  if (target.name == "cuda") {
    return ParsePasses(
        // Regions are made of the loops that the schedule made: a loop split by thread would have
        // conditions that differ between threads around what they do together. Operators that no
        // schedule binds to threads get them before.
        "simplify,bind_parallel,thread_regions,simplify,"
        // One sum for each address: `i / 7 * 7 + i % 7` and its like come together again, and what
        // follows moves and shares parts of addresses, which a Horner scheme of dimensions hides.
        // What is a thread's own keeps its dimensions, which are how the generator knows it.
        "flatten(keep_private=1),simplify,"
        // As for a CPU. After the regions are made, since what differs between threads can not
        // leave the loops around regions, and what does not is then computed for the whole block.
        "normalize,licm,hoist_if,cse");
  }
  if (target.name == "interp") return std::vector<PassSpec>{};
  return InvalidInput("no pipeline for target '", target.name, "'");
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
  const auto operations = [&]() -> std::optional<ir::Counts> {
    absl::StatusOr<ir::Counts> counts =
        CountOperations(function, target, options.check_seed, kMaxCountedIterations);
    return counts.ok() ? std::optional(*counts) : std::nullopt;
  };
  std::optional<ir::Counts> operations_before;
  if (options.stats) operations_before = operations();
  for (const PassSpec& spec : passes) {
    if (options.stop_after >= 0 && count >= options.stop_after) break;
    if (std::find(options.skip.begin(), options.skip.end(), spec.name) != options.skip.end()) {
      continue;
    }
    ++count;
    const PassInfo* pass = FindPass(spec.name);
    if (pass == nullptr) return InvalidInput("no pass is named '", spec.name, "'");
    const std::string context = StrCat("pass ", spec.name);
    std::optional<Function> before;
    if (options.check) before = ir::CloneInto(function, std::make_shared<ir::Context>());
    PipelineOptions::Step step{.pass = &spec,
                               .function = &function,
                               .changed = false,
                               .milliseconds = 0,
                               .stats = {},
                               .explanations = {}};
    const PassEnvironment environment{target, spec.options, options.stats ? &step.stats : nullptr,
                                      options.explain ? &step.explanations : nullptr};
    const auto start = std::chrono::steady_clock::now();
    absl::StatusOr<bool> changed = pass->run(function, environment);
    if (!changed.ok()) return WithContext(context, changed.status());
    step.changed = *changed;
    step.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (options.verify) RETURN_IF_ERROR(WithContext(context, ir::Verify(function)));
    if (options.check) {
      RETURN_IF_ERROR(WithContext(StrCat(context, " changed the meaning"),
                                  CheckSameMeaning(*before, function, target, options.check_seed)));
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
