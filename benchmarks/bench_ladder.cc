#include "benchmarks/bench_ladder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/provenance.h"
#include "cases/machines.h"
#include "compiler/ir/tensor.h"
#include "compiler/target/target.h"
#include "isa/dram_presets.h"
#include "kernels/ladder/ladder.h"
#include "nlohmann/json.hpp"
#include "simulator/simulator.h"

namespace polynao::benchmarks {
namespace {

using kernels::kLadderColumns;
using kernels::kLadderSide;

// The part of the columns that sensitivity runs have.
constexpr int64_t kSensitivityPart = 20;

std::string Fixed(double value, int digits) { return absl::StrFormat("%.*f", digits, value); }

std::string Padded(std::string text, size_t width, bool is_number = true) {
  if (text.size() >= width) return text;
  const std::string spaces(width - text.size(), ' ');
  return is_number ? spaces + text : text + spaces;
}

// Small integers: the values are those of another test, the time does not depend on them.
ir::Tensor Filled(std::vector<int64_t> shape) {
  ir::Tensor tensor(ir::Type::kI8, std::move(shape));
  for (size_t i = 0; i < tensor.bytes.size(); ++i)
    tensor.bytes[i] = static_cast<uint8_t>(i * 37 % 7);
  return tensor;
}

class Ladder {
 public:
  explicit Ladder(int64_t columns)
      : columns_(columns),
        a_(Filled({kLadderSide, kLadderSide})),
        b_(Filled({columns, kLadderSide})) {}

  LadderRow Run(const kernels::LadderStep& step, const isa::Machine& machine) {
    LadderRow row{.step = step.name,
                  .plan = step.plan,
                  .change = "",
                  .published_ms = step.published_ms,
                  .error = ""};
    const absl::StatusOr<int64_t> cycles = Cycles(step, machine);
    if (!cycles.ok()) {
      row.error = std::string(cycles.status().message());
      return row;
    }
    row.cycles = *cycles;
    row.simulated_ms = static_cast<double>(*cycles) * static_cast<double>(kLadderColumns) /
                       static_cast<double>(columns_) / (machine.clock_ghz() * 1e6);
    return row;
  }

 private:
  absl::StatusOr<int64_t> Cycles(const kernels::LadderStep& step, const isa::Machine& machine) {
    ASSIGN_OR_RETURN(const Target target, MakeTarget("diannao", &machine));
    ASSIGN_OR_RETURN(const isa::Program program, kernels::LadderProgram(step.name, target));
    // Rows as far apart as in the whole product, whatever part of it is computed: DRAM sees the difference. (Of a few
    // columns, which measure nothing, the tensor would take most of the time.)
    const bool is_measured = columns_ >= kLadderColumns / kSensitivityPart / 2;
    const int64_t row = is_measured ? std::max(columns_, kLadderColumns) : columns_;
    ir::Tensor c(ir::Type::kF16, {kLadderSide, row});
    simulator::RunOptions options;
    options.machine = &machine;
    ASSIGN_OR_RETURN(
        const simulator::RunResult result,
        simulator::Run(isa::DianNao(), program,
                       {simulator::Argument::Of(&a_), simulator::Argument::Of(&b_),
                        simulator::Argument::Of(&c), simulator::Argument::Scalar(columns_),
                        simulator::Argument::Scalar(row),
                        simulator::Argument::Scalar(std::bit_cast<int32_t>(1.0F / 256))},
                       options));
    return result.cycles;
  }

  const int64_t columns_;
  ir::Tensor a_, b_;
};

absl::Status CheckColumns(int64_t columns, const isa::Machine& machine) {
  const int64_t round = kLadderSide * machine.cores();
  if (columns > 0 && columns % round == 0) return absl::OkStatus();
  return InvalidInput("the ladder's columns must be a positive multiple of ", round, " (",
                      kLadderSide, " for each of ", machine.cores(), " cores), not ", columns);
}

// Whole rounds of all cores, at least one.
int64_t Rounded(int64_t columns, const isa::Machine& machine) {
  const int64_t round = kLadderSide * machine.cores();
  return std::max<int64_t>(1, columns / round) * round;
}

// Each step is on the published side of the one before.
bool OrderAgrees(const std::vector<LadderRow>& rows) {
  for (size_t i = 1; i < rows.size(); ++i) {
    if ((rows[i].simulated_ms < rows[i - 1].simulated_ms) !=
        (rows[i].published_ms < rows[i - 1].published_ms))
      return false;
  }
  return true;
}

// What a sensitivity run tries instead: half and double; the other position of a switch.
std::vector<int64_t> OtherValues(int64_t value) {
  if (value == 0) return {1};
  if (value == 1) return {0, 2};
  return {value / 2, value * 2};
}

// The parameters of the machine's file, and of the preset of its DRAM those that the file does not state.
absl::StatusOr<std::vector<isa::MachineParameter>> ParametersOf(const std::string& config,
                                                                const isa::Machine& machine) {
  ASSIGN_OR_RETURN(std::vector<isa::MachineParameter> parameters, cases::LoadParameters(config));
  if (!machine.has_dram()) return parameters;
  ASSIGN_OR_RETURN(const isa::ParameterFile preset,
                   isa::ReadDramPreset(machine.GetText("gmem.dram")));
  const size_t stated = parameters.size();
  for (const isa::MachineParameter& parameter : preset.parameters) {
    const auto end = parameters.begin() + static_cast<std::ptrdiff_t>(stated);
    if (std::none_of(parameters.begin(), end,
                     [&](const auto& other) { return other.name == parameter.name; })) {
      parameters.push_back(parameter);
    }
  }
  return parameters;
}

nlohmann::ordered_json RowJson(const LadderRow& row) {
  nlohmann::ordered_json json;
  json["step"] = row.step;
  json["plan"] = row.plan;
  json["published_ms"] = row.published_ms;
  if (!row.error.empty()) {
    json["error"] = row.error;
    return json;
  }
  json["simulated_ms"] = row.simulated_ms;
  json["ratio"] = row.ratio();
  json["cycles"] = row.cycles;
  return json;
}

}  // namespace

bool LadderResult::ok() const {
  return std::all_of(rows.begin(), rows.end(),
                     [](const LadderRow& row) { return row.error.empty(); });
}

absl::StatusOr<LadderResult> RunLadder(const LadderSettings& settings) {
  LadderResult result;
  result.date = Date();
  result.commit = Commit();
  ASSIGN_OR_RETURN(result.machine, cases::LoadMachine(settings.config, settings.overrides));
  const isa::Machine& machine = result.machine;
  const int64_t all = settings.columns > 0 ? settings.columns : Rounded(kLadderColumns, machine);
  RETURN_IF_ERROR(CheckColumns(all, machine));
  const auto add = [&](std::vector<LadderRow>& rows, LadderRow row) {
    if (settings.on_row) settings.on_row(row);
    rows.push_back(std::move(row));
  };
  Ladder ladder(all);
  for (const kernels::LadderStep& step : kernels::LadderSteps())
    add(result.rows, ladder.Run(step, machine));
  if (!settings.sensitivity) return result;
  ASSIGN_OR_RETURN(const std::vector<isa::MachineParameter> parameters,
                   ParametersOf(settings.config, machine));
  const int64_t columns =
      settings.columns > 0 ? settings.columns : Rounded(kLadderColumns / kSensitivityPart, machine);
  Ladder part(columns);
  // What changes is measured against the same columns.
  for (const kernels::LadderStep& step : kernels::LadderSteps())
    add(result.sensitivity, part.Run(step, machine));
  for (const isa::MachineParameter& parameter : parameters) {
    // Names have no half, and dram.* counts for machines with DRAM only.
    if (!machine.parameters().contains(parameter.name)) continue;
    if (!parameter.source.starts_with("assumed")) continue;
    const int64_t value = machine.Get(parameter.name);
    for (const int64_t other : OtherValues(value)) {
      const std::string change = StrCat(parameter.name, "=", other);
      std::vector<std::string> overrides = settings.overrides;
      overrides.push_back(change);
      const absl::StatusOr<isa::Machine> changed = cases::LoadMachine(settings.config, overrides);
      for (const kernels::LadderStep& step : kernels::LadderSteps()) {
        LadderRow row{.step = step.name,
                      .plan = step.plan,
                      .change = change,
                      .published_ms = step.published_ms,
                      .error = ""};
        if (changed.ok()) {
          row = part.Run(step, *changed);
        } else {
          row.error = std::string(changed.status().message());
        }
        row.change = change;
        add(result.sensitivity, std::move(row));
      }
    }
  }
  return result;
}

nlohmann::ordered_json ToJson(const LadderResult& result) {
  nlohmann::ordered_json json;
  json["suite"] = kLadderSuite;
  json["date"] = result.date;
  json["commit"] = result.commit;
  json["machine"]["name"] = result.machine.name;
  for (const auto& [name, value] : result.machine.parameters())
    json["machine"]["parameters"][name] = value;
  for (const auto& [name, text] : result.machine.texts())
    json["machine"]["parameters"][name] = text;
  json["rows"] = nlohmann::ordered_json::array();
  for (const LadderRow& row : result.rows) json["rows"].push_back(RowJson(row));
  json["order_agrees"] = result.ok() && OrderAgrees(result.rows);
  if (!result.sensitivity.empty()) {
    json["sensitivity"] = nlohmann::ordered_json::array();
    for (const LadderRow& row : result.sensitivity) {
      nlohmann::ordered_json one = RowJson(row);
      one.erase("plan");
      one["change"] = row.change;
      json["sensitivity"].push_back(std::move(one));
    }
  }
  return json;
}

std::string LadderText(const LadderResult& result) {
  std::string text =
      StrCat("C[256, ", kLadderColumns, "] = A[256, 256] times B, i8, on ", result.machine.name,
             "\n\n", "  step  published ms  simulated ms   ratio  plan\n");
  for (const LadderRow& row : result.rows) {
    StrAppend(&text, "  ", Padded(row.step, 4, false), Padded(Fixed(row.published_ms, 2), 14));
    if (row.error.empty()) {
      StrAppend(&text, Padded(Fixed(row.simulated_ms, 2), 14), Padded(Fixed(row.ratio(), 3), 8),
                "  ", row.plan, "\n");
    } else {
      StrAppend(&text, "  ", row.error, "\n");
    }
  }
  if (result.ok()) {
    StrAppend(&text, "\n",
              OrderAgrees(result.rows)
                  ? "Each step is on the published side of the one before.\n"
                  : "Not each step is on the published side of the one before.\n");
  }
  if (result.sensitivity.empty()) return text;
  // Steps side by side; of a change, its factor on the time.
  std::map<std::string, double> base;
  StrAppend(&text, "\nTimes with one assumed parameter changed, by those as it is\n\n  ",
            Padded("change", 40, false));
  const size_t steps = result.rows.size();
  for (const LadderRow& row : result.rows) StrAppend(&text, Padded(row.step, 9));
  StrAppend(&text, "\n");
  for (size_t i = 0; i + steps <= result.sensitivity.size(); i += steps) {
    StrAppend(&text, "  ",
              Padded(i == 0 ? "as it is, ms" : result.sensitivity[i].change, 40, false));
    for (size_t s = i; s < i + steps; ++s) {
      const LadderRow& row = result.sensitivity[s];
      if (i == 0) base[row.step] = row.simulated_ms;
      const std::string shown = !row.error.empty() ? "-"
                                : i == 0           ? Fixed(row.simulated_ms, 2)
                                                   : Fixed(row.simulated_ms / base[row.step], 3);
      StrAppend(&text, Padded(shown, 9));
    }
    StrAppend(&text, "\n");
  }
  for (size_t i = 0; i < result.sensitivity.size(); i += steps) {
    if (!result.sensitivity[i].error.empty())
      StrAppend(&text, "  -: ", result.sensitivity[i].error, "\n");
  }
  return text;
}

}  // namespace polynao::benchmarks
