#include "sweep/measure.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "base/text.h"
#include "cases/machines.h"
#include "compiler/ir/tensor.h"
#include "isa/bound.h"
#include "isa/table_file.h"
#include "kernels/operators.h"
#include "simulator/dram/bound.h"
#include "simulator/dram/preset.h"
#include "simulator/energy/energy.h"
#include "simulator/simulator.h"

namespace polynao::sweep {
namespace {

struct Bounds {
  int64_t bound = 0;
  int64_t of_dram = 0;
};

// As cases::RunCase has them.
absl::StatusOr<Bounds> BoundsOf(const isa::Machine& machine, const kernels::OperatorCase& c) {
  ASSIGN_OR_RETURN(const kernels::Operator* op, kernels::FindOperator(c));
  Bounds bounds;
  const isa::Work work = op->work(c);
  ASSIGN_OR_RETURN(const isa::Bound bound, isa::BoundOf(machine, work));
  bounds.bound = bound.cycles;
  if (!machine.has_dram()) return bounds;
  const std::vector<kernels::TensorSpec> specs = op->tensors(c);
  int64_t written = ir::ByteSize(specs.back().type);
  for (const int64_t extent : specs.back().shape) written *= extent;
  ASSIGN_OR_RETURN(const simulator::DramTiming timing, simulator::DramOf(machine));
  bounds.of_dram =
      simulator::DramBoundCycles(timing, machine.Get("card.clock_mhz"),
                                 machine.Get("gmem.channels"), work.gmem_bytes - written, written);
  return bounds;
}

absl::StatusOr<std::map<std::string, double, std::less<>>> Metrics(const Setting& setting,
                                                                   const isa::Machine& machine,
                                                                   const isa::InstructionSet& set,
                                                                   const Candidate& candidate) {
  std::vector<ir::Tensor> tensors;
  tensors.reserve(candidate.program.params.size());
  std::vector<simulator::Argument> arguments;
  for (const isa::ProgramParam& param : candidate.program.params) {
    if (param.is_temporary) continue;
    const auto given = candidate.arguments.find(param.name);
    if (!param.is_tensor) {
      int64_t value = 0;
      if (given == candidate.arguments.end() || !absl::SimpleAtoi(given->second, &value)) {
        return InvalidInput("scalar '", param.name, "' needs a value");
      }
      arguments.push_back(simulator::Argument::Scalar(value));
      continue;
    }
    std::vector<int64_t> shape = param.shape;
    if (param.any_shape) {
      if (given == candidate.arguments.end()) {
        return InvalidInput("tensor '", param.name, "' needs a shape");
      }
      ASSIGN_OR_RETURN(shape, kernels::ParseShape(given->second));
    }
    tensors.push_back(simulator::ShapeOnly(param.type, shape));
    arguments.push_back(simulator::Argument::Of(&tensors.back()));
  }
  simulator::RunOptions options;
  options.machine = &machine;
  ASSIGN_OR_RETURN(const simulator::RunResult result,
                   simulator::RunForTiming(set, candidate.program, arguments, options));
  std::map<std::string, double, std::less<>> metrics;
  metrics["cycles"] = static_cast<double>(result.cycles);
  metrics["time_ns"] = static_cast<double>(result.cycles) / machine.clock_ghz();
  metrics["launched_ns"] =
      static_cast<double>(result.cycles + result.launch_cycles) / machine.clock_ghz();
  metrics["instructions"] = static_cast<double>(result.instruction_count());
  metrics["gmem_bytes"] = static_cast<double>(result.gmem_read_moved + result.gmem_written_moved);
  if (candidate.operator_case) {
    ASSIGN_OR_RETURN(const Bounds bounds, BoundsOf(machine, *candidate.operator_case));
    metrics["bound_cycles"] = static_cast<double>(bounds.bound);
    if (machine.has_dram()) metrics["dram_bound_cycles"] = static_cast<double>(bounds.of_dram);
  }
  if (!setting.energy.empty()) {
    ASSIGN_OR_RETURN(const simulator::EnergyTable table,
                     simulator::LoadEnergyTable(setting.energy, machine.GetText("gmem.dram")));
    ASSIGN_OR_RETURN(const simulator::EnergyReport energy,
                     simulator::EnergyOf(result, machine, table));
    metrics["energy_pj"] = simulator::Total(energy.energy_pj);
    metrics["area_mm2"] = simulator::Total(energy.area_mm2);
    metrics["average_power_mw"] = energy.average_power_mw;
    metrics["energy_delay_pj_s"] = energy.energy_delay_pj_s;
  }
  return metrics;
}

}  // namespace

absl::StatusOr<Table> EmptyTable(const Setting& setting, const std::vector<Axis>& axes,
                                 const std::vector<std::string>& programs) {
  ASSIGN_OR_RETURN(const isa::Machine machine, cases::LoadMachine(setting.config, setting.base));
  RETURN_IF_ERROR(CheckAxes(axes, machine));
  if (!setting.energy.empty()) {
    RETURN_IF_ERROR(
        simulator::LoadEnergyTable(setting.energy, machine.GetText("gmem.dram")).status());
  }
  Table table;
  table.config = machine.name;
  table.base = setting.base;
  std::sort(table.base.begin(), table.base.end());
  table.energy = setting.energy;
  table.axes = axes;
  if (!setting.tables.empty()) {
    Axis& axis = table.axes.emplace_back();
    axis.name = kInstructionsAxis;
    for (const InstructionTable& each : setting.tables) axis.values.push_back(each.name);
  }
  table.programs = programs;
  return table;
}

absl::Status LoadTables(const std::vector<std::string>& paths, Setting& setting) {
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(std::unique_ptr<isa::InstructionSet> set, isa::LoadTableFile(path));
    InstructionTable table = {.name = isa::TableName(path), .set = std::move(set)};
    for (const InstructionTable& other : setting.tables) {
      if (other.name == table.name) {
        return InvalidInput("instructions ", path, ": the name ", table.name, " comes twice");
      }
    }
    setting.tables.push_back(std::move(table));
  }
  return absl::OkStatus();
}

const isa::InstructionSet& InstructionsAt(const Setting& setting, const Table& table,
                                          const Point& point) {
  for (const InstructionTable& each : setting.tables) {
    if (table.axes.back().name == kInstructionsAxis && point.back() == each.name) return *each.set;
  }
  return isa::DianNao();
}

Row Measure(const Setting& setting, const Table& table, const Point& point,
            const Candidate& candidate) {
  Row row;
  const auto measure = [&]() -> absl::Status {
    std::vector<std::string> overrides = setting.base;
    for (std::string& override : Overrides(table.axes, point))
      overrides.push_back(std::move(override));
    ASSIGN_OR_RETURN(const isa::Machine machine, cases::LoadMachine(setting.config, overrides));
    if (!candidate.error.empty()) return InvalidInput(candidate.error);
    ASSIGN_OR_RETURN(row.metrics,
                     Metrics(setting, machine, InstructionsAt(setting, table, point), candidate));
    return absl::OkStatus();
  };
  if (const absl::Status status = measure(); !status.ok()) {
    row.error = std::string(status.message());
  }
  return row;
}

}  // namespace polynao::sweep
