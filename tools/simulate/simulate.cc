#include "tools/simulate/simulate.h"

#include <cstdio>
#include <iostream>
#include <map>
#include <optional>

#include "CLI/CLI.hpp"
#include "base/files.h"
#include "base/status.h"
#include "cases/machines.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/scalar_text.h"
#include "compiler/ir/tensor.h"
#include "isa/program.h"
#include "kernels/te/operator.h"
#include "nlohmann/json.hpp"
#include "simulator/energy/energy_json.h"
#include "simulator/energy/table.h"
#include "simulator/page/report_page.h"
#include "simulator/page/run_json.h"
#include "simulator/simulator.h"
#include "simulator/timeline.h"
#include "simulator/trace.h"
#include "tools/command_line/command_line.h"

namespace polynao::simulate {
namespace {

// What --made-from and --arg say; --arg counts if both do.
absl::StatusOr<std::map<std::string, std::string>> ArgumentsOf(const Flags& flags) {
  ASSIGN_OR_RETURN(auto values, ParseArguments(flags.arguments));
  if (flags.made_from.empty()) return values;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.made_from));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("arguments") || !json["arguments"].is_object()) {
    return InvalidInput(flags.made_from,
                        ": expected an object with 'arguments', as nao compile --name writes it");
  }
  if (json.contains("error") && json["error"].is_string()) {
    return InvalidInput(flags.made_from,
                        ": there is no program: ", json["error"].get<std::string>());
  }
  for (const auto& [name, value] : json["arguments"].items()) {
    if (!value.is_string()) {
      return InvalidInput(flags.made_from, ": argument '", name, "': expected a text, found ",
                          value.dump());
    }
    values.emplace(name, value.get<std::string>());
  }
  return values;
}

nlohmann::json ResultJson(const Flags& flags, const isa::Program& program,
                          const isa::Machine& machine, const simulator::RunResult& result,
                          const std::optional<simulator::EnergyReport>& energy) {
  nlohmann::json json;
  json["program"] = program.name;
  json["config"] = machine.name;
  json["seed"] = flags.seed;
  nlohmann::ordered_json run;
  simulator::AddRun(result, machine, run);
  for (const auto& [name, value] : run.items()) json[name] = nlohmann::json(value);
  json["cycles"] = result.cycles;
  json["launch_cycles"] = result.launch_cycles;
  json["instructions"] = result.instruction_count();
  json["machine"] = machine.parameters();
  for (const auto& [name, text] : machine.texts()) json["machine"][name] = text;
  if (energy) {
    nlohmann::ordered_json with_energy;
    simulator::AddEnergy(*energy, with_energy);
    for (const auto& [name, value] : with_energy.items()) json[name] = nlohmann::json(value);
  }
  return json;
}

absl::Status CheckOutputs(const Flags& flags) {
  RETURN_IF_ERROR(command_line::CheckPicture("--timeline", flags.timeline));
  RETURN_IF_ERROR(command_line::CheckWritable("--trace", flags.trace));
  RETURN_IF_ERROR(command_line::CheckWritable("--report", flags.report));
  return command_line::CheckWritable("-o", flags.output);
}

// A program's arguments, and the tensors that they point to.
struct Arguments {
  std::vector<ir::Tensor> tensors;
  std::vector<simulator::Argument> list;
};

// Values of inputs are random; with --timing-only no tensor has any.
absl::StatusOr<Arguments> MakeArguments(const Flags& flags, const isa::Program& program) {
  ASSIGN_OR_RETURN(auto values, ArgumentsOf(flags));
  Arguments arguments;
  arguments.tensors.reserve(program.params.size());
  for (const isa::ProgramParam& param : program.params) {
    if (param.is_temporary) continue;
    const auto it = values.find(param.name);
    const bool is_given = it != values.end();
    if (!param.is_tensor) {
      if (!is_given) {
        return InvalidInput(flags.file, ": parameter '", param.name, "' needs a value: --arg ",
                            param.name, "=...");
      }
      ASSIGN_OR_RETURN(const int64_t scalar, ScalarValue(param, it->second));
      arguments.list.push_back(simulator::Argument::Scalar(scalar));
    } else {
      std::vector<int64_t> shape = param.shape;
      if (param.any_shape) {
        if (!is_given) {
          return InvalidInput(flags.file, ": tensor '", param.name, "' needs a shape: --arg ",
                              param.name, "=5x7");
        }
        ASSIGN_OR_RETURN(shape, kernels::ParseShape(it->second));
      }
      arguments.tensors.push_back(flags.timing_only ? simulator::ShapeOnly(param.type, shape)
                                  : param.access == ir::Access::kOut
                                      ? ir::Tensor(param.type, shape)
                                      : ir::RandomTensor(param.type, shape,
                                                         flags.seed + arguments.list.size(),
                                                         ir::Values::kAll));
      arguments.list.push_back(simulator::Argument::Of(&arguments.tensors.back()));
    }
    if (is_given) values.erase(it);
  }
  if (!values.empty()) {
    return InvalidInput(flags.file, ": the program has no parameter '", values.begin()->first, "'");
  }
  return arguments;
}

simulator::RunOptions OptionsOf(const Flags& flags, const isa::Machine& machine) {
  simulator::RunOptions options;
  options.machine = &machine;
  options.check_hazards = !flags.no_hazards;
  options.any_machine = flags.any_machine;
  options.timing_only = flags.timing_only;
  options.profile = !flags.report.empty();
  options.trace.enabled = !flags.trace.empty() || !flags.timeline.empty() || options.profile;
  return options;
}

absl::Status WriteResults(const Flags& flags, const isa::Program& program,
                          const isa::Machine& machine, const simulator::RunResult& result,
                          const std::optional<simulator::EnergyReport>& energy) {
  if (flags.json || !flags.output.empty()) {
    const std::string text = ResultJson(flags, program, machine, result, energy).dump(2) + "\n";
    if (!flags.output.empty()) {
      RETURN_IF_ERROR(WriteFile(flags.output, text));
    } else {
      std::cout << text;
    }
  }
  if (!flags.trace.empty()) {
    RETURN_IF_ERROR(WriteFile(flags.trace, simulator::TraceJson(result)));
  }
  if (!flags.timeline.empty()) {
    RETURN_IF_ERROR(WriteFile(flags.timeline, simulator::TimelineFile(result, flags.timeline)));
  }
  if (!flags.report.empty()) {
    const nlohmann::ordered_json data = ResultJson(flags, program, machine, result, energy);
    RETURN_IF_ERROR(
        WriteFile(flags.report, simulator::ReportPage(StrCat(program.name, " on ", machine.name),
                                                      data, {simulator::TimelineSvg(result)})));
  }
  if (!flags.json && flags.output.empty()) {
    for (const auto& [name, value] : result.Rows()) {
      if (value != 0) std::printf("%-40s %lld\n", name.c_str(), static_cast<long long>(value));
    }
    if (energy) std::printf("%s", simulator::EnergyText(*energy).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<isa::Program> LoadProgram(const std::string& file) {
  ASSIGN_OR_RETURN(std::string contents, ReadFile(file));
  return file.ends_with(".nasm") ? isa::Assemble(isa::DianNao(), contents, file)
                                 : isa::Deserialize(contents, file);
}

absl::StatusOr<std::map<std::string, std::string>> ParseArguments(
    const std::vector<std::string>& arguments) {
  std::map<std::string, std::string> values;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) {
      return InvalidInput("--arg: expected name=value, found '", argument, "'");
    }
    if (!values.emplace(argument.substr(0, equals), argument.substr(equals + 1)).second) {
      return InvalidInput("--arg ", argument, ": '", argument.substr(0, equals),
                          "' has a value already");
    }
  }
  return values;
}

absl::StatusOr<int64_t> ScalarValue(const isa::ProgramParam& param, const std::string& text) {
  const ir::Type type = ir::IsFloat(param.type) ? ir::Type::kI64 : param.type;
  const absl::StatusOr<ir::Argument> value = ir::ParseScalar(type, text);
  if (!value.ok()) return WithContext(StrCat("--arg ", param.name), value.status());
  return value->int_value;
}

absl::Status Simulate(const Flags& flags) {
  RETURN_IF_ERROR(CheckOutputs(flags));
  ASSIGN_OR_RETURN(const isa::Machine machine, cases::LoadMachine(flags.config, flags.overrides));
  std::optional<simulator::EnergyTable> table;
  if (!flags.energy.empty()) {
    ASSIGN_OR_RETURN(table, simulator::LoadEnergyTable(flags.energy, machine.GetText("gmem.dram")));
  }
  ASSIGN_OR_RETURN(const isa::Program program, LoadProgram(flags.file));
  ASSIGN_OR_RETURN(const Arguments arguments, MakeArguments(flags, program));
  ASSIGN_OR_RETURN(
      const simulator::RunResult result,
      simulator::Run(isa::DianNao(), program, arguments.list, OptionsOf(flags, machine)));
  std::optional<simulator::EnergyReport> energy;
  if (table) {
    ASSIGN_OR_RETURN(energy, simulator::EnergyOf(result, machine, *table));
  }
  return WriteResults(flags, program, machine, result, energy);
}

void AddOptions(CLI::App& command, Flags& flags) {
  command.add_option("PROGRAM", flags.file, "a program, or assembly in a .nasm file")->required();
  command.add_option("--arg", flags.arguments,
                     "name=value of a scalar, name=5x7 of a tensor of any shape");
  command.add_option("--made-from", flags.made_from,
                     "NAME.json of nao compile --name, which knows scalars and shapes");
  command.add_option("--config", flags.config, "the machine")->capture_default_str();
  command.add_option("--set", flags.overrides, "machine parameters: core.nmem_kib=256 ...");
  command.add_option("--seed", flags.seed, "of the inputs")->capture_default_str();
  command.add_option("--trace", flags.trace, "write a Chrome/Perfetto trace (JSON)");
  command.add_option("--timeline", flags.timeline, "write a picture (.svg or .html)");
  command.add_option("--report", flags.report,
                     "write a page: roofline, what each core's cycles went into, channels and "
                     "banks over time, timeline, all counters");
  command.add_option("--energy", flags.energy,
                     "the card's energy and area: 65nm, 45nm, 28nm, another node by scaling, or a "
                     ".toml file; then the DRAM: 28nm,hbm2");
  command.add_flag("--no-hazards", flags.no_hazards,
                   "simulate without checks of hazards and definedness");
  command.add_flag("--timing-only", flags.timing_only,
                   "cycles and counters alone, the same ones; no values");
  command.add_flag("--any-machine", flags.any_machine,
                   "run a program that was compiled for another machine as well");
  command.add_flag("--json", flags.json, "print one JSON object");
  command.add_option("-o", flags.output, "write the JSON object to this file instead");
}

}  // namespace polynao::simulate
