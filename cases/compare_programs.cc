#include "cases/compare_programs.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/status.h"
#include "cases/case_json.h"
#include "cases/run_nest.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/fix_scalars.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/text.h"
#include "compiler/target/target.h"
#include "kernels/operators.h"
#include "nlohmann/json.hpp"
#include "simulator/simulator.h"

namespace polynao::cases {
namespace {

using kernels::OperatorCase;

std::string CaseTitle(const OperatorCase& c) {
  std::string text = StrCat(c.op, " ", kernels::ShapesText(c), " ", ir::TypeName(c.dtype));
  for (const auto& [name, value] : c.attributes) StrAppend(&text, " ", name, "=", value);
  return text;
}

std::string SignatureText(const isa::Program& program) {
  std::string text;
  for (const isa::ProgramParam& param : program.params) {
    if (param.is_temporary) continue;
    StrAppend(&text, text.empty() ? "" : ", ", param.name, ": ", ir::TypeName(param.type));
  }
  return text;
}

// The values that all programs start with: one tensor for each tensor parameter.
// `is_reassociated`: one of the programs adds floats in another order (isa::Program).
absl::StatusOr<std::vector<ir::Tensor>> MakeInputs(const ProgramOnDisk& compiled, uint64_t seed,
                                                   bool is_reassociated) {
  if (compiled.file.operator_case) {
    ASSIGN_OR_RETURN(const kernels::Operator* op,
                     kernels::FindOperator(*compiled.file.operator_case));
    const ir::Values values = is_reassociated ? ir::Values::kFinite : kernels::ValuesFor(*op);
    return kernels::MakeTensors(*op, *compiled.file.operator_case, seed, values);
  }
  std::vector<ir::Tensor> tensors;
  for (const isa::ProgramParam& param : compiled.program.params) {
    if (param.is_temporary || !param.is_tensor) continue;
    std::vector<int64_t> shape = param.shape;
    if (param.any_shape) {
      const auto given = compiled.file.arguments.find(param.name);
      if (given == compiled.file.arguments.end()) {
        return InvalidInput(compiled.file.name, ": tensor '", param.name, "' needs a shape");
      }
      ASSIGN_OR_RETURN(shape, kernels::ParseShape(given->second));
    }
    tensors.push_back(
        param.access == ir::Access::kOut
            ? ir::Tensor(param.type, shape)
            : ir::RandomTensor(param.type, shape, seed + tensors.size(), ir::Values::kAll));
  }
  return tensors;
}

// Which tensors a program writes, by their place.
std::vector<size_t> OutputsOf(const isa::Program& program) {
  std::vector<size_t> outputs;
  size_t next = 0;
  for (const isa::ProgramParam& param : program.params) {
    if (param.is_temporary || !param.is_tensor) continue;
    if (param.access != ir::Access::kIn) outputs.push_back(next);
    ++next;
  }
  return outputs;
}

// Runs a program on `tensors`; returns its cycles.
absl::StatusOr<int64_t> Simulate(const ProgramOnDisk& on_disk, const isa::Machine& machine,
                                 std::vector<ir::Tensor>& tensors) {
  const ProgramFile& file = on_disk.file;
  std::vector<std::vector<int64_t>> shapes;
  for (const ir::Tensor& tensor : tensors) shapes.push_back(tensor.shape);
  if (file.operator_case && file.impl != "compiled" && file.impl != "assembly") {
    // The host's part of a hand-written kernel is no part of its file.
    ASSIGN_OR_RETURN(const Target target, MakeTarget("diannao", &machine));
    ASSIGN_OR_RETURN(const BuiltProgram built,
                     BuildProgram(*file.operator_case, target, file.impl));
    if (built.program != on_disk.program) {
      return InvalidInput(file.name, ": the program is not the one that its JSON describes, ",
                          file.impl, " for ", CaseTitle(*file.operator_case));
    }
    built.Prepare(tensors);
  } else if (file.operator_case && file.impl == "compiled") {
    ASSIGN_OR_RETURN(const Target target, MakeTarget("diannao", &machine));
    if (const auto layout = HostLayoutOf(*file.operator_case, target)) {
      tensors[layout->input] = layout->lay_out(tensors[layout->input]);
    }
  }
  LayOutInParts(on_disk.program, tensors);
  std::vector<simulator::Argument> arguments;
  size_t next = 0;
  for (const isa::ProgramParam& param : on_disk.program.params) {
    if (param.is_temporary) continue;
    const auto given = file.arguments.find(param.name);
    if (param.is_tensor) {
      if (!param.any_shape) tensors[next].shape = param.shape;
      arguments.push_back(simulator::Argument::Of(&tensors[next++]));
      continue;
    }
    int64_t value = 0;
    if (given == file.arguments.end() || !absl::SimpleAtoi(given->second, &value)) {
      return InvalidInput(file.name, ": scalar '", param.name, "' needs a value");
    }
    arguments.push_back(simulator::Argument::Scalar(value));
  }
  simulator::RunOptions options;
  options.machine = &machine;
  const absl::StatusOr<simulator::RunResult> result =
      simulator::Run(isa::DianNao(), on_disk.program, arguments, options);
  if (!result.ok()) return WithContext(file.name, result.status());
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].shape = shapes[i];
  return result->cycles;
}

absl::Status CheckSame(const ProgramOnDisk& compiled, const ProgramOnDisk& other) {
  const auto& a = compiled.file.operator_case;
  const auto& b = other.file.operator_case;
  if (a && b) {
    if (SameComputation(*a, *b)) return absl::OkStatus();
    return InvalidInput(other.file.name, ": expected a program for ", CaseTitle(*a), ", found ",
                        CaseTitle(*b));
  }
  const std::string wanted = SignatureText(compiled.program);
  const std::string found = SignatureText(other.program);
  if (OutputsOf(compiled.program) == OutputsOf(other.program) &&
      std::count_if(compiled.program.params.begin(), compiled.program.params.end(),
                    [](const auto& p) { return p.is_tensor && !p.is_temporary; }) ==
          std::count_if(other.program.params.begin(), other.program.params.end(),
                        [](const auto& p) { return p.is_tensor && !p.is_temporary; })) {
    return absl::OkStatus();
  }
  return InvalidInput(other.file.name, ": expected a program with parameters like ", wanted,
                      ", found ", found);
}

absl::Status RunReference(const ComparisonSettings& settings, const ProgramOnDisk& compiled,
                          std::vector<ir::Tensor>& tensors) {
  if (!settings.source.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(settings.source));
    ASSIGN_OR_RETURN(const ir::Module module, ir::ParseModule(text, settings.source));
    ASSIGN_OR_RETURN(ir::Function function,
                     FindFunction(module, compiled.program.name, settings.source));
    if (!compiled.file.scalars.empty()) {
      std::vector<std::string> texts;
      for (const auto& [name, value] : compiled.file.scalars) {
        texts.push_back(StrCat(name, "=", value));
      }
      ASSIGN_OR_RETURN(const std::vector<ir::Argument> scalars, ScalarArguments(function, texts));
      ASSIGN_OR_RETURN(function, ir::FixScalars(function, scalars));
    }
    // A program of instructions has its tensors in one dimension.
    ASSIGN_OR_RETURN(auto shapes, ir::ParameterShapes(function, {}));
    const auto exchange_shapes = [&] {
      for (size_t i = 0; i < std::min(shapes.size(), tensors.size()); ++i) {
        std::swap(tensors[i].shape, shapes[i]);
      }
    };
    exchange_shapes();
    ASSIGN_OR_RETURN(const auto interpreter, ir::Interpreter::Create(function));
    std::vector<ir::Argument> arguments;
    size_t next = 0;
    for (const isa::ProgramParam& param : compiled.program.params) {
      if (param.is_temporary) continue;
      if (!param.is_tensor) {
        return InvalidInput(settings.source, ": the reference of a function with scalars (",
                            param.name, ") cannot be run");
      }
      arguments.push_back(ir::Argument::Of(&tensors[next++]));
    }
    const absl::Status status = interpreter->Run(arguments);
    exchange_shapes();
    return status;
  }
  if (!compiled.file.operator_case) {
    return InvalidInput(compiled.file.name,
                        ": only an operator has a reference: give the .nir file of this program");
  }
  ASSIGN_OR_RETURN(const kernels::Operator* op,
                   kernels::FindOperator(*compiled.file.operator_case));
  const size_t inputs = op->tensors(*compiled.file.operator_case).size() - 1;
  const std::vector<ir::Tensor> in(tensors.begin(), tensors.begin() + inputs);
  op->reference(*compiled.file.operator_case, in, absl::MakeSpan(tensors).subspan(inputs));
  return absl::OkStatus();
}

// Adds to `row` how far `actual` is from `expected` in what programs write. `is_reassociated`: of a program that made
// one of them.
absl::Status CompareValues(const ComparisonSettings& settings, const ProgramOnDisk& compiled,
                           const std::vector<ir::Tensor>& actual,
                           const std::vector<ir::Tensor>& expected, const std::string& of,
                           bool is_reassociated, ComparisonRow& row) {
  for (const size_t i : OutputsOf(compiled.program)) {
    const ir::Difference difference = ir::Compare(actual[i], expected[i]);
    row.max_error = std::max(row.max_error.value_or(0), difference.max_abs);
    bool agrees = ir::FirstDifference(actual[i], expected[i]) < 0;
    if (settings.max_error) {
      agrees = difference.max_abs <= *settings.max_error;
    } else if (compiled.file.operator_case) {
      ASSIGN_OR_RETURN(const kernels::Operator* op,
                       kernels::FindOperator(*compiled.file.operator_case));
      ASSIGN_OR_RETURN(const Target target, MakeTarget("diannao", &settings.machine));
      agrees = kernels::ValuesAgree(*op, *compiled.file.operator_case, target, expected[i],
                                    difference, is_reassociated);
    }
    if (agrees) continue;
    const std::string limit =
        settings.max_error ? absl::StrFormat("at most %g", *settings.max_error) : "the same values";
    row.wrong.push_back(StrCat("values differ from ", of, ": expected ", limit, ", found ",
                               absl::StrFormat("%g", difference.max_abs), " at element ",
                               difference.where));
  }
  return absl::OkStatus();
}

void CheckSpeedup(const ComparisonSettings& settings, ComparisonRow& row) {
  if (!settings.min_speedup || *row.speedup >= *settings.min_speedup) return;
  row.wrong.push_back(absl::StrFormat("speed-up of the compiled program: expected %g, found %.3f",
                                      *settings.min_speedup, *row.speedup));
}

// The line of gpu_runner for the computation; of several, the one compiled with all passes.
absl::StatusOr<ComparisonRow> GpuRow(const ComparisonSettings& settings,
                                     const ProgramOnDisk& compiled, double microseconds) {
  const std::string& path = settings.gpu_results;
  if (!compiled.file.operator_case) {
    return InvalidInput(compiled.file.name, ": only operators are compared with a GPU's results");
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::istringstream lines(text);
  nlohmann::ordered_json best;
  int number = 0;
  std::string others;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto json = nlohmann::ordered_json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("case") || !json.contains("ok") ||
        !json["ok"].is_boolean()) {
      return InvalidInput(path, ":", number, ": expected a line of gpu_runner's results");
    }
    if (!json["case"].is_object() || !json["case"].contains("shape")) continue;  // no operator's
    ASSIGN_OR_RETURN(const OperatorCase c, ParseCaseJson(json["case"], StrCat(path, ":", number)));
    if (!SameComputation(c, *compiled.file.operator_case)) {
      if (others.find(CaseTitle(c)) == std::string::npos && others.size() < 200) {
        StrAppend(&others, others.empty() ? "" : "; ", CaseTitle(c));
      }
      continue;
    }
    const auto passes = [](const auto& j) {
      return j["case"].value("without", nlohmann::ordered_json::array()).size();
    };
    if (best.is_null() || passes(json) < passes(best)) best = json;
  }
  if (best.is_null()) {
    return InvalidInput(path, ": expected results of ", CaseTitle(*compiled.file.operator_case),
                        ", found ", others.empty() ? "none" : others);
  }
  ComparisonRow row;
  row.name = "gpu";
  const auto number_of = [&](const char* name) -> std::optional<double> {
    if (!best.contains(name) || !best[name].is_number()) return std::nullopt;
    return best[name].template get<double>();
  };
  row.microseconds = number_of("time_us");
  row.max_error = number_of("max_error");
  if (!best["ok"].get<bool>()) {
    row.wrong.push_back(
        StrCat("the GPU's run was wrong: ", best.value("error", "no reason given")));
  }
  if (settings.max_error && row.max_error && *row.max_error > *settings.max_error) {
    row.wrong.push_back(
        absl::StrFormat("values of the GPU: expected an error of at most %g, found %g",
                        *settings.max_error, *row.max_error));
  }
  if (row.microseconds) {
    row.speedup = *row.microseconds / microseconds;
    CheckSpeedup(settings, row);
  } else if (settings.min_speedup) {
    row.wrong.push_back("the results have no time: they were not measured");
  }
  return row;
}

}  // namespace

absl::StatusOr<ProgramOnDisk> LoadProgram(const std::string& json_path) {
  constexpr std::string_view kSuffix = ".json";
  if (!json_path.ends_with(kSuffix)) {
    return InvalidInput(json_path, ": expected NAME.json, which stands beside NAME.bin");
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(json_path));
  ProgramOnDisk result;
  ASSIGN_OR_RETURN(result.file, ParseProgramFile(text, json_path));
  if (!result.file.error.empty()) {
    return InvalidInput(json_path, ": there is no program: ", result.file.error);
  }
  const std::string path = StrCat(json_path.substr(0, json_path.size() - kSuffix.size()), ".bin");
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  ASSIGN_OR_RETURN(result.program, isa::Deserialize(bytes, path));
  return result;
}

bool Comparison::ok() const {
  return std::all_of(rows.begin(), rows.end(),
                     [](const ComparisonRow& row) { return row.wrong.empty(); });
}

std::string Comparison::Text() const {
  std::string text = StrCat(title, "\n",
                            absl::StrFormat("  %-16s %12s %12s %9s %12s\n", "program", "cycles",
                                            "us", "speed-up", "max error"));
  std::string wrong;
  for (const ComparisonRow& row : rows) {
    StrAppend(&text,
              absl::StrFormat("  %-16s %12s %12s %9s %12s %s\n", row.name,
                              row.cycles ? absl::StrFormat("%d", *row.cycles) : "-",
                              row.microseconds ? absl::StrFormat("%.3f", *row.microseconds) : "-",
                              row.speedup ? absl::StrFormat("%.3f", *row.speedup) : "-",
                              row.max_error ? absl::StrFormat("%g", *row.max_error) : "-",
                              row.wrong.empty() ? "ok" : "WRONG"));
    for (const std::string& line : row.wrong) StrAppend(&wrong, row.name, ": ", line, "\n");
  }
  return StrCat(text, wrong);
}

absl::StatusOr<Comparison> ComparePrograms(const ComparisonSettings& settings) {
  const bool has_reference = settings.reference || !settings.source.empty();
  if (settings.others.empty() && settings.gpu_results.empty()) {
    if (settings.min_speedup) {
      return InvalidInput(
          "compare: a speed-up needs something to be faster than: expected another "
          "program or results of a GPU");
    }
    if (!has_reference && !settings.max_cycles) {
      return InvalidInput(
          "compare: expected something to compare with: another program, a "
          "reference, results of a GPU or a number of cycles");
    }
  }
  ASSIGN_OR_RETURN(const ProgramOnDisk compiled, LoadProgram(settings.compiled));
  std::vector<ProgramOnDisk> others;
  for (const std::string& path : settings.others) {
    ASSIGN_OR_RETURN(ProgramOnDisk other, LoadProgram(path));
    RETURN_IF_ERROR(CheckSame(compiled, other));
    others.push_back(std::move(other));
  }
  const bool own_order = compiled.program.is_reassociated;
  const bool is_reassociated =
      own_order || std::any_of(others.begin(), others.end(), [](const ProgramOnDisk& other) {
        return other.program.is_reassociated;
      });
  ASSIGN_OR_RETURN(const std::vector<ir::Tensor> start,
                   MakeInputs(compiled, settings.seed, is_reassociated));

  Comparison comparison;
  comparison.title = StrCat(
      compiled.file.operator_case ? CaseTitle(*compiled.file.operator_case) : compiled.program.name,
      " on ", settings.machine.name);
  std::optional<std::vector<ir::Tensor>> expected;
  if (has_reference) {
    expected = start;
    RETURN_IF_ERROR(RunReference(settings, compiled, *expected));
  }
  const auto time_of = [&](int64_t cycles) {
    return static_cast<double>(cycles) /
           static_cast<double>(settings.machine.Get("card.clock_mhz"));
  };

  std::vector<ir::Tensor> values = start;
  ComparisonRow own;
  own.name = compiled.file.impl;
  ASSIGN_OR_RETURN(own.cycles, Simulate(compiled, settings.machine, values));
  own.microseconds = time_of(*own.cycles);
  if (expected) {
    RETURN_IF_ERROR(
        CompareValues(settings, compiled, values, *expected, "the reference", own_order, own));
  }
  if (settings.max_cycles && *own.cycles > *settings.max_cycles) {
    own.wrong.push_back(
        StrCat("cycles: expected at most ", *settings.max_cycles, ", found ", *own.cycles));
  }
  comparison.rows.push_back(own);
  for (const ProgramOnDisk& other : others) {
    std::vector<ir::Tensor> of_other = start;
    ComparisonRow row;
    row.name = other.file.impl;
    ASSIGN_OR_RETURN(row.cycles, Simulate(other, settings.machine, of_other));
    row.microseconds = time_of(*row.cycles);
    row.speedup =
        static_cast<double>(*row.cycles) / static_cast<double>(std::max<int64_t>(*own.cycles, 1));
    CheckSpeedup(settings, row);
    RETURN_IF_ERROR(CompareValues(settings, compiled, of_other, expected ? *expected : values,
                                  expected ? "the reference" : "the compiled program's",
                                  other.program.is_reassociated || (!expected && own_order), row));
    comparison.rows.push_back(row);
  }
  if (!settings.gpu_results.empty()) {
    ASSIGN_OR_RETURN(ComparisonRow row, GpuRow(settings, compiled, *own.microseconds));
    comparison.rows.push_back(std::move(row));
  }
  return comparison;
}

}  // namespace polynao::cases
