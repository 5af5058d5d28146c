#include "cases/run_case.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/elapsed.h"
#include "base/median.h"
#include "base/status.h"
#include "cases/build.h"
#include "cases/card_run.h"
#include "cases/machines.h"
#include "compiler/codegen/back_ends.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/tensor.h"
#include "compiler/target/target.h"
#include "isa/bound.h"
#include "nlohmann/json.hpp"

namespace polynao::cases {
namespace {

using kernels::Operator;
using kernels::OperatorCase;

// Gives tensors the shapes of a function's parameters, which have as many elements.
absl::Status ShapeLikeParameters(const ir::Function& function, std::vector<ir::Tensor>& tensors) {
  ASSIGN_OR_RETURN(std::vector<std::vector<int64_t>> shapes, ir::ParameterShapes(function, {}));
  POLYNAO_CHECK(shapes.size() == tensors.size()) << function.name;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t count = tensors[i].element_count();
    tensors[i].shape = shapes[i];
    POLYNAO_CHECK(tensors[i].element_count() == count) << function.name << ", parameter " << i;
  }
  return absl::OkStatus();
}

std::vector<ir::Argument> Arguments(std::vector<ir::Tensor>& tensors) {
  std::vector<ir::Argument> arguments;
  for (ir::Tensor& tensor : tensors) arguments.push_back(ir::Argument::Of(&tensor));
  return arguments;
}

// Median time of running `run`, which has run before, in nanoseconds; about 50 ms in all.
template <typename Run>
absl::StatusOr<double> MedianTime(const Run& run) {
  std::vector<double> times;
  const Clock::time_point start = Clock::now();
  do {
    const Clock::time_point begin = Clock::now();
    RETURN_IF_ERROR(run());
    times.push_back(MillisecondsSince(begin) * 1e6);
  } while (times.size() < 3 || (times.size() < 1000 && MillisecondsSince(start) < 50));
  return Median(std::move(times));
}

// Tensors must fit the card's GMEM, or for other targets half of this machine's memory (results are
// compared with a second copy).
absl::Status CheckSize(absl::Span<const kernels::TensorSpec> specs, const std::string& target,
                       const isa::Machine& machine) {
  double bytes = 0;
  for (const kernels::TensorSpec& spec : specs) {
    double size = ir::ByteSize(spec.type);
    for (int64_t extent : spec.shape) size *= static_cast<double>(extent);
    bytes += size;
  }
  const double here = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<double>(sysconf(_SC_PAGE_SIZE)) / 2;
  const double card = static_cast<double>(machine.Get("gmem.mib")) * (1 << 20);
  const bool on_card = IsCard(target) && card < here;
  if (bytes <= (on_card ? card : here)) return absl::OkStatus();
  return InvalidInput(
      absl::StrFormat("the case's tensors take %.1f MiB: expected at most %.1f MiB, %s",
                      bytes / (1 << 20), (on_card ? card : here) / (1 << 20),
                      on_card ? "the card's GMEM" : "half of this machine's memory"));
}

// Compiles the case for `target` and runs it on `tensors` on this machine.
absl::Status RunHere(const Operator& op, const OperatorCase& c, const Target& target,
                     std::vector<ir::Tensor>& tensors, CaseReport& report) {
  const Clock::time_point start = Clock::now();
  ASSIGN_OR_RETURN(ir::Function function, BuildFunction(op, c, target, report.settings.without));
  RETURN_IF_ERROR(ShapeLikeParameters(function, tensors));
  const std::vector<ir::Argument> arguments = Arguments(tensors);
  ASSIGN_OR_RETURN(const codegen::Executable executable,
                   codegen::FindBackEnd(target.name).Load(function, {.wide_vectors = true}));
  report.compile_ms = MillisecondsSince(start);
  const Clock::time_point run_start = Clock::now();
  RETURN_IF_ERROR(executable.run(arguments));
  const double run_ms = MillisecondsSince(run_start);
  switch (target.facts().kind) {
    case TargetKind::kGpu:
      report.simulate_ms = run_ms;
      report.by_shim = true;
      return absl::OkStatus();
    case TargetKind::kInterpreter:
      report.time_ns = run_ms * 1e6;
      return absl::OkStatus();
    case TargetKind::kProcessor: {
      // Times are those of ordinary values: CPUs take many times as long for subnormal ones.
      std::vector<ir::Tensor> ordinary =
          kernels::MakeTensors(op, c, report.settings.seed, ir::Values::kExact);
      for (size_t i = 0; i < ordinary.size(); ++i) ordinary[i].shape = tensors[i].shape;
      const std::vector<ir::Argument> ordinary_arguments = Arguments(ordinary);
      RETURN_IF_ERROR(executable.run(ordinary_arguments));
      ASSIGN_OR_RETURN(report.time_ns,
                       MedianTime([&] { return executable.run(ordinary_arguments); }));
      return absl::OkStatus();
    }
    case TargetKind::kCard:
      break;
  }
  POLYNAO_UNREACHABLE(target.name);
}

// Errors: settings of the card for another target.
absl::Status CheckCardSettings(const CaseSettings& settings) {
  if (IsCard(settings.target)) return absl::OkStatus();
  const std::string found = StrCat(": expected --target=diannao, found --target=", settings.target);
  if (settings.impl != "compiled") {
    return InvalidInput("--impl=", settings.impl, " is a program of the tensor ISA", found);
  }
  if (settings.timing_only) return InvalidInput("--timing-only is of a simulated card", found);
  if (!settings.energy.empty()) return InvalidInput("--energy is of a simulated card", found);
  return absl::OkStatus();
}

// What the host does to tensors of a program for any shapes, as those of hand-written kernels are, changes their sizes.
bool HasValues(const CaseSettings& settings, const BuiltProgram& built) {
  return !settings.timing_only || !built.host_step.empty();
}

// Simulates the program on `tensors`, of which the first `inputs` are no results.
absl::Status RunOnCard(const BuiltProgram& built, const isa::Work& work, size_t inputs,
                       const Target& target, const isa::Machine& machine,
                       std::vector<ir::Tensor>& tensors, CaseReport& report) {
  const CaseSettings& settings = report.settings;
  report.host_step = HostStep(built);
  report.scalar_stores = built.scalar_stores;
  if (HasValues(settings, built)) PrepareTensors(built, tensors);
  const std::vector<simulator::Argument> arguments = ProgramArguments(built, tensors);
  const simulator::RunOptions options = {.machine = &machine,
                                         .check_hazards = settings.check_hazards,
                                         .trace = settings.trace,
                                         .timing_only = settings.timing_only,
                                         .profile = settings.profile};
  const Clock::time_point start = Clock::now();
  ASSIGN_OR_RETURN(report.simulated,
                   simulator::Run(*target.instructions, built.program, arguments, options));
  report.simulate_ms = MillisecondsSince(start);
  int64_t written = 0;
  for (size_t i = inputs; i < tensors.size(); ++i) {
    written += tensors[i].element_count() * ir::ByteSize(tensors[i].type);
  }
  ASSIGN_OR_RETURN(const CardBounds bounds, CardBoundsOf(machine, work, written));
  report.bound_cycles = bounds.cycles, report.bound_by = bounds.by;
  report.dram_bound_cycles = bounds.dram_cycles, report.reach_cycles = bounds.reach;
  report.machine = machine;
  return absl::OkStatus();
}

}  // namespace

double CaseReport::efficiency() const {
  if (!simulated || simulated->cycles == 0) return 0;
  return static_cast<double>(std::max(bound_cycles, dram_bound_cycles)) /
         static_cast<double>(simulated->cycles);
}

nlohmann::ordered_json CaseReport::ToJson() const {
  nlohmann::ordered_json json;
  json["op"] = operator_case.op;
  json["shape"] = operator_case.shape;
  if (!operator_case.operands.empty()) json["operand_shapes"] = operator_case.operands;
  json["dtype"] = std::string(ir::TypeName(operator_case.dtype));
  if (!operator_case.attributes.empty()) json["attributes"] = operator_case.attributes;
  if (operator_case.scalar) json["scalar"] = *operator_case.scalar;
  if (!operator_case.schedule.empty()) json["schedule"] = operator_case.schedule;
  json["target"] = settings.target;
  json["impl"] = settings.impl;
  json["seed"] = settings.seed;
  if (!host_step.empty()) json["host_step"] = host_step;
  if (scalar_stores != 0) json["scalar_stores"] = scalar_stores;
  json["ok"] = nullptr;
  json["values_checked"] = settings.check_values;
  json["max_abs_error"] = nullptr;
  json["max_rel_error"] = nullptr;
  if (settings.check_values) {
    json["ok"] = ok;
    json["max_abs_error"] = max_abs_error;
    json["max_rel_error"] = max_rel_error;
  }
  json["cycles"] = nullptr;
  json["time_ns"] = nullptr;
  json["bound_cycles"] = nullptr;
  json["bound_by"] = nullptr;
  json["reach_cycles"] = nullptr;
  json["dram_bound_cycles"] = nullptr;
  json["efficiency"] = nullptr;
  json["bytes"] = nullptr;
  json["instructions"] = nullptr;
  json["compile_ms"] = compile_ms;
  json["simulate_ms"] = nullptr;
  if (time_ns) json["time_ns"] = *time_ns;
  if (by_shim) {
    json["executed_by"] = "CPU shim of CUDA's execution model";
    json["simulate_ms"] = simulate_ms;
  }
  if (simulated) {
    AddCardRun(*simulated, *machine,
               {.cycles = bound_cycles,
                .by = bound_by,
                .dram_cycles = dram_bound_cycles,
                .reach = reach_cycles},
               simulate_ms, energy, json);
  }
  return json;
}

absl::StatusOr<CaseReport> RunCase(const OperatorCase& c, const CaseSettings& settings) {
  CaseReport report;
  report.operator_case = c;
  report.settings = settings;
  if (settings.timing_only) report.settings.check_values = false;
  ASSIGN_OR_RETURN(const Operator* op, kernels::FindOperator(c));
  ASSIGN_OR_RETURN(isa::Machine machine, LoadMachine(settings.config, settings.overrides));
  ASSIGN_OR_RETURN(Target target, MakeTarget(settings.target, &machine));
  if (settings.instructions != nullptr) target.instructions = settings.instructions.get();
  RETURN_IF_ERROR(CheckCardSettings(settings));
  ASSIGN_OR_RETURN(const auto energy_table, EnergyTableOf(machine, settings.energy));

  const std::vector<kernels::TensorSpec> specs = op->tensors(c);
  RETURN_IF_ERROR(CheckSize(specs, settings.target, machine));
  // Before the tensors, so that a case without a program does not wait for the reference.
  const Clock::time_point compile_start = Clock::now();
  std::optional<BuiltProgram> built;
  if (IsCard(settings.target)) {
    ASSIGN_OR_RETURN(built, BuildProgram(c, target, settings.impl, settings.without));
    report.compile_ms = MillisecondsSince(compile_start);
  }

  report.is_reassociated = built && built->program.is_reassociated;
  const size_t inputs = specs.size() - 1;
  std::vector<ir::Tensor> tensors;
  if (built && !HasValues(settings, *built)) {
    for (const kernels::TensorSpec& spec : specs) {
      tensors.push_back(simulator::ShapeOnly(spec.type, spec.shape));
    }
  } else {
    tensors = kernels::MakeTensors(*op, c, settings.seed,
                                   kernels::ValuesFor(*op, c, target, report.is_reassociated));
  }
  std::vector<ir::Tensor> expected;
  if (report.settings.check_values) {
    expected.assign(tensors.begin() + inputs, tensors.end());
    kernels::ComputeReference(*op, c, target, absl::MakeSpan(tensors).subspan(0, inputs),
                              absl::MakeSpan(expected));
  }

  if (built) {
    isa::Work work = op->work(c);
    const int64_t* rate = machine.Find(StrCat("tensor.macs_", ir::TypeName(work.mac_type)));
    if ((rate == nullptr || *rate == 0) && kernels::TakesLoops(*op, c, target)) {
      // The vector unit multiplies and adds.
      work.vector_elements += 2 * work.macs;
      work.vector_type = work.mac_type;
      work.macs = 0;
    }
    RETURN_IF_ERROR(RunOnCard(*built, work, inputs, target, machine, tensors, report));
    if (energy_table) {
      ASSIGN_OR_RETURN(report.energy,
                       simulator::EnergyOf(*report.simulated, machine, *energy_table));
    }
  } else {
    RETURN_IF_ERROR(RunHere(*op, c, target, tensors, report));
  }

  report.ok = true;
  for (size_t i = 0; i < expected.size(); ++i) {
    ir::Tensor& actual = tensors[inputs + i];
    actual.shape = expected[i].shape;
    const ir::Difference difference = ir::Compare(actual, expected[i]);
    report.max_abs_error = std::max(report.max_abs_error, difference.max_abs);
    report.max_rel_error = std::max(report.max_rel_error, difference.max_rel);
    if (kernels::ValuesAgree(*op, c, target, expected[i], difference, report.is_reassociated)) {
      continue;
    }
    report.ok = false;
    report.difference =
        StrCat(specs[inputs + i].name, "[", difference.where, "] is ",
               actual.Value(difference.where), ", expected ", expected[i].Value(difference.where));
  }
  return report;
}

}  // namespace polynao::cases
