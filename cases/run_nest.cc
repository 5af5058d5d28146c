#include "cases/run_nest.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/elapsed.h"
#include "base/status.h"
#include "base/stop_message.h"
#include "base/text.h"
#include "cases/schedule.h"
#include "compiler/ir/agreement.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/assertions.h"
#include "compiler/ir/fix_scalars.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/scalar_text.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/static_counts.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/uniform_tensor.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/target/target.h"
#include "isa/bound.h"
#include "nlohmann/json.hpp"
#include "simulator/energy/energy_json.h"

namespace polynao::cases {
namespace {

// The interpreter takes about 10 ns for an operation.
constexpr int64_t kMostInterpretedOperations = 300'000'000;
// Statements that the estimate may look at.
constexpr int64_t kMostCountedSteps = 20'000'000;
// Inputs, expected values, results, the copies that are timed, and as much again for the rest of the machine.
constexpr double kCopiesOfTensors = 8;
constexpr char kNotAsked[] = "since --no-check was given";

// ---- arguments ----------------------------------------------------------------------------------

using Scalars = std::map<std::string, ir::Argument>;

std::vector<ir::Argument> ArgumentsOf(const ir::Function& function, const Scalars& scalars) {
  std::vector<ir::Argument> arguments(function.params.size());
  for (size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    if (param.var) arguments[i] = scalars.at(std::string(param.name()));
  }
  return arguments;
}

absl::StatusOr<Scalars> ParseScalars(const ir::Function& function,
                                     const std::vector<std::string>& texts) {
  Scalars scalars;
  for (const std::string& text : texts) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    const auto param = std::find_if(function.params.begin(), function.params.end(),
                                    [&](const ir::Param& p) { return p.name() == parts.first; });
    if (text.find('=') == std::string::npos || (param != function.params.end() && param->buffer)) {
      return InvalidInput("--arg ", text, ": expected NAME=NUMBER of a scalar parameter of '",
                          function.name, "'");
    }
    if (param == function.params.end()) {
      return InvalidInput("--arg ", text, ": function '", function.name, "' has no parameter '",
                          parts.first, "'");
    }
    const absl::StatusOr<ir::Argument> value = ir::ParseScalar(param->var.type(), parts.second);
    if (!value.ok()) return WithContext(StrCat("--arg ", text), value.status());
    if (!scalars.emplace(parts.first, *value).second) {
      return InvalidInput("--arg ", text, ": '", parts.first, "' has a value already");
    }
  }
  for (const ir::Param& param : function.params) {
    if (param.buffer || scalars.contains(std::string(param.name()))) continue;
    return InvalidInput("function '", function.name, "': parameter '", param.name(), ": ",
                        ir::TypeName(param.var.type()), "' has no value: expected --arg ",
                        param.name(), "=NUMBER");
  }
  RETURN_IF_ERROR(ir::CheckAssertions(function, ArgumentsOf(function, scalars)));
  return scalars;
}

ir::IntValues IntegersOf(const ir::Function& function, const Scalars& scalars) {
  ir::IntValues values;
  for (const ir::Param& param : function.params) {
    if (param.var && ir::IsInt(param.var.type())) {
      values[param.var] = scalars.at(std::string(param.name())).int_value;
    }
  }
  return values;
}

absl::Status CheckMemory(const ir::Function& function, const ir::IntValues& integers) {
  ASSIGN_OR_RETURN(const auto shapes, ir::ParameterShapes(function, integers));
  double bytes = 0;
  size_t next = 0;
  for (const ir::Param& param : function.params) {
    if (!param.buffer) continue;
    double size = ir::ByteSize(param.buffer->type);
    for (const int64_t extent : shapes[next]) size *= static_cast<double>(extent);
    bytes += size;
    ++next;
  }
  const double most = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<double>(sysconf(_SC_PAGE_SIZE)) / kCopiesOfTensors;
  if (bytes <= most) return absl::OkStatus();
  return InvalidInput(absl::StrFormat(
      "function '%s': its tensors take %.1f MiB: expected at most %.1f MiB, an eighth of this "
      "machine's memory (several copies are made)",
      function.name, bytes / (1 << 20), most / (1 << 20)));
}

absl::StatusOr<ir::RandomArguments> MakeArguments(const ir::Function& function,
                                                  const Scalars& scalars,
                                                  const NestSettings& settings) {
  ir::RandomArgumentOptions options;
  options.scalars = scalars;
  options.max_elements = int64_t{1} << 40;  // CheckMemory has looked
  const bool uniform = settings.values == "uniform";
  if (settings.values == "all") {
    options.values = ir::Values::kAll;
  } else if (settings.values == "finite") {
    options.values = ir::Values::kFinite;
  } else if (settings.values == "exact" || uniform) {
    options.values = ir::Values::kExact;
  } else {
    return InvalidInput("--values: expected uniform, exact, finite or all, found '",
                        settings.values, "'");
  }
  ASSIGN_OR_RETURN(ir::RandomArguments arguments,
                   ir::RandomArguments::Draw(function, settings.seed, options));
  if (uniform) {
    uint64_t place = 0;
    for (const ir::Argument& argument : arguments.arguments()) {
      if (argument.tensor != nullptr) {
        ir::FillUniform(*argument.tensor, settings.seed * 1000 + place);
      }
      ++place;
    }
  }
  return arguments;
}

// ---- comparison ---------------------------------------------------------------------------------

// Whether all targets must compute the same bits.
bool IsExact(const ir::Function& function, const NestSettings& settings) {
  if (ir::FloatRulesOf(function) != ir::FloatRules() ||
      settings.executable.float_rules != ir::FloatRules()) {
    return false;
  }
  bool exact = true;
  ir::ForEachExprIn(function.body, [&](ir::Expr e) {
    if (!e.Is(ir::ExprKind::kCall)) return;
    const ir::PureIntrinsic* intrinsic = ir::FindPureIntrinsic(e.name());
    exact &= intrinsic != nullptr && intrinsic->accuracy == ir::Accuracy::kExact;
  });
  return exact;
}

// For sums of some thousand products in another order, of the least exact type that the function stores.
double Tolerance(const ir::Function& function) {
  double tolerance = 1e-9;
  for (const ir::Param& param : function.params) {
    if (!param.buffer) continue;
    const ir::Type type = param.buffer->type;
    if (type == ir::Type::kF32) tolerance = std::max(tolerance, 1e-4);
    if (type == ir::Type::kF16 || type == ir::Type::kBF16) tolerance = std::max(tolerance, 5e-2);
  }
  return tolerance;
}

bool TakesLongToInterpret(const ir::Function& function, const ir::IntValues& integers) {
  const absl::StatusOr<ir::StaticCounts> counts =
      ir::CountStatically(function, integers, kMostCountedSteps);
  return !counts.ok() || counts->counts.total() > kMostInterpretedOperations;
}

// Compiles `function` and runs it on `arguments`, more than once where `times` are to be had. Returns the time to
// compile.
absl::StatusOr<double> Run(const ir::Function& function, const NestSettings& settings,
                           ir::RandomArguments& arguments, std::optional<RunTimes>& times) {
  ASSIGN_OR_RETURN(const Executable executable, MakeExecutable(function, settings.executable));
  const StopMessage message(
      StrCat("function '", function.name, "' on ", settings.executable.target,
             settings.check_values ? "" : ", unchecked since --no-check was given"));
  if (IsGpu(settings.executable.target)) {
    RETURN_IF_ERROR(executable.run(arguments.arguments()));
  } else {
    ASSIGN_OR_RETURN(times, TimeRuns(executable, function, arguments, settings.timing));
  }
  return executable.compile_ms;
}

std::string TimesText(const RunTimes& times) {
  return absl::StrFormat("%.0f ns (median of %d runs, least %.0f ns)", times.median_ns, times.runs,
                         times.least_ns);
}

nlohmann::ordered_json TimesJson(const std::optional<RunTimes>& times) {
  if (!times) return nullptr;
  return {{"median_ns", times->median_ns}, {"least_ns", times->least_ns}, {"runs", times->runs}};
}

// Compiles `function` for the card and simulates it.
absl::Status RunOnCard(const ir::Function& function, ir::RandomArguments& arguments,
                       NestReport& report, bool& reassociates) {
  const NestSettings& settings = report.settings;
  ASSIGN_OR_RETURN(const NestOnCard nest,
                   CompileForCard(function, arguments.arguments(), settings.config,
                                  settings.overrides, settings.instructions.get()));
  report.schedule_ms = nest.schedule_ms;
  report.compile_ms = nest.compile_ms;
  report.notes = nest.notes;
  reassociates = nest.reassociates;
  ASSIGN_OR_RETURN(const auto energy_table, EnergyTableOf(*nest.machine, settings.energy));
  const Clock::time_point start = Clock::now();
  ASSIGN_OR_RETURN(report.simulated, Simulate(nest, arguments.arguments(),
                                              {.machine = nest.machine.get(),
                                               .check_hazards = settings.check_hazards,
                                               .trace = settings.trace,
                                               .profile = settings.profile}));
  report.cycles = report.simulated->cycles;
  report.simulate_ms = MillisecondsSince(start);
  isa::Work work;
  int64_t written = 0;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    if (!param.buffer) continue;
    const ir::Tensor& tensor = *arguments.arguments()[i].tensor;
    const int64_t bytes = tensor.element_count() * ir::ByteSize(tensor.type);
    work.gmem_bytes += bytes;
    if (param.access == ir::Access::kOut) written += bytes;
  }
  ASSIGN_OR_RETURN(report.bounds, CardBoundsOf(*nest.machine, work, written));
  if (energy_table) {
    ASSIGN_OR_RETURN(report.energy,
                     simulator::EnergyOf(*report.simulated, *nest.machine, *energy_table));
  }
  report.bound_cycles = report.bounds.cycles;
  report.machine = *nest.machine;
  return absl::OkStatus();
}

absl::StatusOr<Scheduled> ScheduleFor(const ir::Function& function, const NestSettings& settings) {
  ir::Function allowed = function;
  ir::Allow(allowed, settings.executable.float_rules);
  return IsGpu(settings.executable.target)
             ? ScheduleForCuda(allowed, settings.schedule)
             : ScheduleFunction(allowed, settings.schedule, settings.executable.threads,
                                HasTiles(settings.executable.target));
}

}  // namespace

absl::StatusOr<std::vector<ir::Argument>> ScalarArguments(const ir::Function& function,
                                                          const std::vector<std::string>& texts) {
  ASSIGN_OR_RETURN(const Scalars scalars, ParseScalars(function, texts));
  return ArgumentsOf(function, scalars);
}

absl::StatusOr<NestSchedule> ScheduleOnCard(const ir::Function& function,
                                            const std::string& schedule,
                                            const std::vector<std::string>& texts,
                                            const Target& target) {
  if (schedule != "auto" && schedule != "none") {
    return InvalidInput("--schedule: expected auto or none for the card, found '", schedule, "'");
  }
  NestSchedule scheduled = {.function = function, .notes = {}};
  if (schedule == "none" || !IsPlainNest(function)) return scheduled;
  const auto scalar = std::find_if(function.params.begin(), function.params.end(),
                                   [](const ir::Param& param) { return !param.buffer; });
  if (scalar != function.params.end() && texts.empty()) {
    scheduled.notes = {
        StrCat("on the scalar unit of one core: its loops have no bounds without --arg ",
               scalar->name(), "=..")};
    return scheduled;
  }
  ASSIGN_OR_RETURN(const std::vector<ir::Argument> arguments, ScalarArguments(function, texts));
  ASSIGN_OR_RETURN(const ir::Function fixed, ir::FixScalars(function, arguments));
  return ScheduleNest(fixed, target);
}

nlohmann::ordered_json NestReport::ToJson() const {
  nlohmann::ordered_json json;
  json["function"] = function;
  json["arguments"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : arguments) json["arguments"][name] = value;
  json["target"] = settings.executable.target;
  json["schedule"] = settings.schedule;
  json["seed"] = settings.seed;
  json["values"] = settings.values;
  json["ok"] = nullptr;
  if (settings.check_values) json["ok"] = ok();
  json["values_checked"] = !compared_with.empty();
  json["compared_with"] = nullptr;
  if (!compared_with.empty()) json["compared_with"] = compared_with;
  if (compared_with.empty()) json["not_compared_because"] = not_compared_because;
  json["tolerance"] = tolerance;
  json["difference"] = difference;
  json["schedule_ms"] = schedule_ms;
  json["compile_ms"] = compile_ms;
  json["time_ns"] = nullptr;
  if (simulated) AddCardRun(*simulated, *machine, bounds, simulate_ms, energy, json);
  if (times) json["time_ns"] = times->median_ns;
  json["times"] = TimesJson(times);
  json["unscheduled_times"] = TimesJson(unscheduled_times);
  json["speedup"] = nullptr;
  if (times && unscheduled_times) {
    json["speedup"] = unscheduled_times->median_ns / times->median_ns;
  }
  json["notes"] = notes;
  return json;
}

std::string NestReport::ToText() const {
  std::string text = StrCat(function, " on ", settings.executable.target);
  for (const auto& [name, value] : arguments) StrAppend(&text, " ", name, "=", value);
  if (!ok()) {
    StrAppend(&text, ": VALUES DIFFER from those of ", compared_with, "\n  ", difference, "\n");
  } else if (compared_with.empty()) {
    StrAppend(&text, ": values not compared, ", not_compared_because, "\n");
  } else {
    StrAppend(&text, ": values agree with ", compared_with);
    if (tolerance > 0) StrAppend(&text, " within ", tolerance);
    StrAppend(&text, "\n");
  }
  if (cycles) {
    absl::StrAppendFormat(
        &text, "  cycles %d, bound %d (GMEM, each tensor once), efficiency %.3f, ", *cycles,
        *bound_cycles, static_cast<double>(*bound_cycles) / static_cast<double>(*cycles));
  } else if (times) {
    StrAppend(&text, "  time ", TimesText(*times), ", ");
  } else {
    StrAppend(&text,
              "  executed on this CPU, by the shim of CUDA's execution model (no time of a GPU), ");
  }
  absl::StrAppendFormat(&text, "compiled in %.2f ms\n", compile_ms);
  if (settings.schedule != "none" && !cycles) {
    absl::StrAppendFormat(&text, "  schedule %s, made in %.2f ms\n", settings.schedule,
                          schedule_ms);
  }
  if (unscheduled_times) {
    StrAppend(&text, "  without a schedule ", TimesText(*unscheduled_times));
    if (times) {
      absl::StrAppendFormat(&text, ": %.2f times as fast with it",
                            unscheduled_times->median_ns / times->median_ns);
    }
    StrAppend(&text, "\n");
  }
  for (const std::string& note : notes) StrAppend(&text, "  ", note, "\n");
  if (energy) text += simulator::EnergyText(*energy);
  return text;
}

absl::StatusOr<ir::Function> FindFunction(const ir::Module& module, const std::string& name,
                                          const std::string& file) {
  std::string names;
  for (const ir::Function& function : module.functions) {
    if (function.name == name || (name.empty() && module.functions.size() == 1)) return function;
    StrAppend(&names, names.empty() ? "" : ", ", function.name);
  }
  if (module.functions.empty()) return InvalidInput(file, ": expected a function, found none");
  if (name.empty()) return InvalidInput(file, ": expected --function with one of ", names);
  return InvalidInput(file, ": --function: expected one of ", names, ", found '", name, "'");
}

absl::StatusOr<ir::RandomArguments> NestArguments(const ir::Function& function,
                                                  const NestSettings& settings) {
  ASSIGN_OR_RETURN(const Scalars scalars, ParseScalars(function, settings.arguments));
  RETURN_IF_ERROR(CheckMemory(function, IntegersOf(function, scalars)));
  return MakeArguments(function, scalars, settings);
}

absl::StatusOr<NestReport> RunNest(const ir::Function& function, const NestSettings& settings) {
  RETURN_IF_ERROR(ir::Verify(function));
  NestReport report;
  report.function = function.name;
  report.settings = settings;
  ASSIGN_OR_RETURN(const Scalars scalars, ParseScalars(function, settings.arguments));
  for (const ir::Param& param : function.params) {
    if (!param.var) continue;
    const ir::Argument& value = scalars.at(std::string(param.name()));
    report.arguments.emplace_back(param.name(), ir::ScalarText(param.var.type(), value));
  }
  const ir::IntValues integers = IntegersOf(function, scalars);
  RETURN_IF_ERROR(CheckMemory(function, integers));
  const bool on_card = IsCard(settings.executable.target);
  Scheduled scheduled;
  if (!on_card) {
    ASSIGN_OR_RETURN(scheduled, ScheduleFor(function, settings));
    report.schedule_ms = scheduled.milliseconds;
    report.notes = scheduled.notes;
  }

  ASSIGN_OR_RETURN(ir::RandomArguments arguments, MakeArguments(function, scalars, settings));
  std::optional<ir::RandomArguments> expected;
  ir::RandomArguments inputs(arguments);
  const bool is_interpreted =
      IsInterpreter(settings.executable.target) && settings.schedule == "none";
  const bool takes_long = settings.check_values && TakesLongToInterpret(function, integers);
  if (settings.check_values) expected.emplace(arguments);
  if (settings.check_values && !is_interpreted) {
    // First, as it stops at what would end this process: an index beyond its buffer, a division by zero.
    report.compared_with = takes_long ? "checked code on cpu" : "the interpreter";
    ASSIGN_OR_RETURN(
        const Executable checked,
        MakeExecutable(
            function,
            takes_long ? ExecutableOptions{.threads = settings.executable.threads, .checks = true}
                       : ExecutableOptions{.target = "interp"}));
    RETURN_IF_ERROR(checked.run(expected->arguments()));
  }
  if (!settings.check_values && !IsInterpreter(settings.executable.target)) settings.on_unchecked();
  bool reassociates = false;
  if (on_card) {
    RETURN_IF_ERROR(RunOnCard(function, arguments, report, reassociates));
  } else {
    ASSIGN_OR_RETURN(report.compile_ms, Run(scheduled.function, settings, arguments, report.times));
  }
  if (!settings.check_values) {
    report.not_compared_because = kNotAsked;
  } else if (is_interpreted) {
    report.not_compared_because = "since they are the interpreter's own";
  } else if (takes_long && settings.schedule != "none" && !on_card) {
    RETURN_IF_ERROR(Run(function, settings, inputs, report.unscheduled_times).status());
  }
  if (!report.compared_with.empty()) {
    if (!IsExact(function, settings) || reassociates) report.tolerance = Tolerance(function);
    report.difference = ir::FindDisagreement(function, arguments, *expected, report.tolerance);
  }
  return report;
}

absl::StatusOr<NestReport> RunNest(const ir::Function& function, const NestReference& reference,
                                   const NestSettings& settings) {
  RETURN_IF_ERROR(ir::Verify(function));
  RETURN_IF_ERROR(CheckMemory(function, {}));
  NestReport report;
  report.function = function.name;
  report.settings = settings;
  std::optional<ir::RandomArguments> expected;
  if (settings.check_values) expected.emplace(*reference.arguments);
  bool reassociates = false;
  if (IsCard(settings.executable.target)) {
    RETURN_IF_ERROR(RunOnCard(function, *reference.arguments, report, reassociates));
  } else {
    ASSIGN_OR_RETURN(const Scheduled scheduled, ScheduleFor(function, settings));
    report.schedule_ms = scheduled.milliseconds;
    report.notes = scheduled.notes;
    ASSIGN_OR_RETURN(report.compile_ms,
                     Run(scheduled.function, settings, *reference.arguments, report.times));
  }
  if (!settings.check_values) {
    report.not_compared_because = kNotAsked;
    return report;
  }
  reference.run(expected->arguments());
  report.compared_with = reference.name;
  report.tolerance = IsExact(function, settings) && !reassociates
                         ? reference.tolerance
                         : std::max(reference.tolerance, Tolerance(function));
  report.difference =
      ir::FindDisagreement(function, *reference.arguments, *expected, report.tolerance);
  return report;
}

}  // namespace polynao::cases
