#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "base/files.h"
#include "base/status.h"
#include "cases/machines.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/tensor.h"
#include "isa/program.h"
#include "nlohmann/json.hpp"
#include "simulator/energy/energy_json.h"
#include "simulator/energy/table.h"
#include "simulator/simulator.h"
#include "simulator/timeline.h"
#include "simulator/trace.h"
#include "tools/driver/commands.h"

namespace polynao::driver {
namespace {

struct SimFlags {
  std::string file;
  std::string config = "mlu270";
  std::vector<std::string> overrides;
  std::vector<std::string> arguments;  // "n=100", "A=5x7"
  uint64_t seed = 1;
  bool no_hazards = false;
  std::string trace;
  std::string timeline;
  std::string energy;
  bool json = false;
};

// "n=100" by name.
absl::StatusOr<std::map<std::string, std::string>> ParseArguments(
    const std::vector<std::string>& arguments) {
  std::map<std::string, std::string> values;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) {
      return InvalidInput("--arg: expected name=value, found '", argument, "'");
    }
    values[argument.substr(0, equals)] = argument.substr(equals + 1);
  }
  return values;
}

absl::Status Sim(const SimFlags& flags) {
  ASSIGN_OR_RETURN(isa::Machine machine, cases::LoadMachine(flags.config, flags.overrides));
  std::optional<simulator::EnergyTable> table;
  if (!flags.energy.empty()) {
    ASSIGN_OR_RETURN(table, simulator::LoadEnergyTable(flags.energy, machine.GetText("gmem.dram")));
  }
  ASSIGN_OR_RETURN(std::string contents, ReadFile(flags.file));
  isa::Program program;
  if (flags.file.ends_with(".nasm")) {
    ASSIGN_OR_RETURN(program, isa::Assemble(isa::DianNao(), contents, flags.file));
  } else {
    ASSIGN_OR_RETURN(program, isa::Deserialize(contents, flags.file));
  }
  ASSIGN_OR_RETURN(auto values, ParseArguments(flags.arguments));
  std::vector<ir::Tensor> tensors;
  tensors.reserve(program.params.size());
  std::vector<simulator::Argument> arguments;
  for (const isa::ProgramParam& param : program.params) {
    if (param.is_temporary) continue;
    auto it = values.find(param.name);
    if (!param.is_tensor) {
      int64_t value = 0;
      if (it == values.end()) {
        return InvalidInput(flags.file, ": parameter '", param.name, "' needs a value: --arg ",
                            param.name, "=...");
      }
      if (!absl::SimpleAtoi(it->second, &value)) {
        return InvalidInput("--arg ", param.name, ": expected an integer, found '", it->second,
                            "'");
      }
      arguments.push_back(simulator::Argument::Scalar(value));
    } else {
      std::vector<int64_t> shape = param.shape;
      if (param.any_shape) {
        if (it == values.end()) {
          return InvalidInput(flags.file, ": tensor '", param.name, "' needs a shape: --arg ",
                              param.name, "=5x7");
        }
        ASSIGN_OR_RETURN(shape, kernels::ParseShape(it->second));
      }
      tensors.push_back(param.access == ir::Access::kOut
                            ? ir::Tensor(param.type, shape)
                            : ir::RandomTensor(param.type, shape, flags.seed + arguments.size(),
                                               ir::Values::kAll));
      arguments.push_back(simulator::Argument::Of(&tensors.back()));
    }
    if (it != values.end()) values.erase(it);
  }
  if (!values.empty()) {
    return InvalidInput(flags.file, ": the program has no parameter '", values.begin()->first, "'");
  }
  simulator::RunOptions options;
  options.machine = &machine;
  options.check_hazards = !flags.no_hazards;
  options.trace.enabled = !flags.trace.empty() || !flags.timeline.empty();
  ASSIGN_OR_RETURN(simulator::RunResult result,
                   simulator::Run(isa::DianNao(), program, arguments, options));
  std::optional<simulator::EnergyReport> energy;
  if (table) {
    ASSIGN_OR_RETURN(energy, simulator::EnergyOf(result, machine, *table));
  }
  if (!flags.trace.empty()) {
    RETURN_IF_ERROR(WriteFile(flags.trace, simulator::TraceJson(result)));
  }
  if (!flags.timeline.empty()) {
    RETURN_IF_ERROR(WriteFile(flags.timeline, flags.timeline.ends_with(".html")
                                                  ? simulator::TimelineHtml(result)
                                                  : simulator::TimelineSvg(result)));
  }
  if (flags.json) {
    nlohmann::ordered_json json;
    json["program"] = program.name;
    json["config"] = machine.name;
    for (const auto& [name, value] : result.Rows()) json["counters"][name] = value;
    json["cycles"] = result.cycles;
    json["launch_cycles"] = result.launch_cycles;
    json["instructions"] = result.instruction_count();
    json["machine"] = machine.parameters;
    if (energy) simulator::AddEnergy(*energy, json);
    std::cout << json.dump(2) << std::endl;
  } else {
    for (const auto& [name, value] : result.Rows()) {
      if (value != 0) std::printf("%-40s %lld\n", name.c_str(), static_cast<long long>(value));
    }
    if (energy) std::printf("%s", simulator::EnergyText(*energy).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddSimCommand(CLI::App& app, Action& action) {
  auto flags = std::make_shared<SimFlags>();
  CLI::App* command = app.add_subcommand("sim", "simulate a tensor-ISA program on random inputs");
  command->add_option("PROGRAM", flags->file, "a program, or assembly in a .nasm file")->required();
  command->add_option("--arg", flags->arguments,
                      "name=value of a scalar, name=5x7 of a tensor of any shape");
  command->add_option("--config", flags->config, "the machine")->capture_default_str();
  command->add_option("--set", flags->overrides, "machine parameters: core.nmem_kib=256 ...");
  command->add_option("--seed", flags->seed, "of the inputs")->capture_default_str();
  command->add_option("--trace", flags->trace, "write a Chrome/Perfetto trace (JSON)");
  command->add_option("--timeline", flags->timeline, "write a picture (.svg or .html)");
  command->add_option("--energy", flags->energy,
                      "the card's energy and area: 65nm, 45nm, 28nm, another node by scaling, or a "
                      ".toml file; then the DRAM: 28nm,hbm2");
  command->add_flag("--no-hazards", flags->no_hazards,
                    "simulate without checks of hazards and definedness");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->callback([&action, flags] {
    action = [flags] { return Outcome{.status = Sim(*flags), .values_agree = true}; };
  });
}

}  // namespace polynao::driver
