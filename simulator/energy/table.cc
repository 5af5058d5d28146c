#include "simulator/energy/table.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/files.h"
#include "base/status.h"

namespace polynao::simulator {
namespace {

using isa::ParameterRow;

constexpr int64_t kMost = 1'000'000'000'000;
constexpr std::string_view kDefaultDram = "ddr4_3200";
constexpr std::string_view kDramFile = "dram";

// How a row changes with the node.
enum class Scaling { kNone, kEnergy, kArea, kLeakagePerArea };

struct Row {
  ParameterRow row;
  Scaling scaling;
};

constexpr Row kRows[] = {
    {{"technology.node_nm", "nm", 7, 130, "the node"}, Scaling::kNone},
    {{"technology.supply_mv", "mV", 500, 1300, "the supply"}, Scaling::kNone},
    {{"technology.clock_mhz", "MHz", 1, 100'000, "the clock that a card meets at this supply"},
     Scaling::kNone},
    {{"technology.least_supply_mv", "mV", 500, 1300, "no lower supply, however slow the clock"},
     Scaling::kNone},
    {{"tensor.mac_i8_fj", "fJ", 1, kMost, "a product of i8, added in i32"}, Scaling::kEnergy},
    {{"tensor.mac_i16_fj", "fJ", 1, kMost, "a product of i16, added in i32"}, Scaling::kEnergy},
    {{"tensor.mac_f16_fj", "fJ", 1, kMost, "a product of f16, added in f32"}, Scaling::kEnergy},
    {{"tensor.mac_f32_fj", "fJ", 1, kMost, "a product of f32, added in f32"}, Scaling::kEnergy},
    {{"tensor.mul_i8_um2", "um2", 1, kMost, "a multiplier"}, Scaling::kArea},
    {{"tensor.mul_i16_um2", "um2", 1, kMost, "a multiplier"}, Scaling::kArea},
    {{"tensor.mul_f16_um2", "um2", 1, kMost, "a multiplier"}, Scaling::kArea},
    {{"tensor.mul_f32_um2", "um2", 1, kMost, "a multiplier"}, Scaling::kArea},
    {{"tensor.add_i32_um2", "um2", 1, kMost, "an adder of integer products"}, Scaling::kArea},
    {{"tensor.add_f32_um2", "um2", 1, kMost, "an adder of float products"}, Scaling::kArea},
    {{"vector.op_i8_fj", "fJ", 1, kMost, "an element operation"}, Scaling::kEnergy},
    {{"vector.op_i16_fj", "fJ", 1, kMost, "an element operation"}, Scaling::kEnergy},
    {{"vector.op_i32_fj", "fJ", 1, kMost, "an element operation"}, Scaling::kEnergy},
    {{"vector.op_f16_fj", "fJ", 1, kMost, "an element operation"}, Scaling::kEnergy},
    {{"vector.op_f32_fj", "fJ", 1, kMost, "an element operation"}, Scaling::kEnergy},
    {{"vector.slow_f16_fj", "fJ", 1, kMost, "a division, exponential, ..."}, Scaling::kEnergy},
    {{"vector.slow_f32_fj", "fJ", 1, kMost, "a division, exponential, ..."}, Scaling::kEnergy},
    {{"vector.lane_um2", "um2", 1, kMost, "lanes, for each byte of vector.bytes"}, Scaling::kArea},
    {{"vector.slow_passes", "", 1, 1024, "passes through a lane that a division takes"},
     Scaling::kNone},
    {{"scalar.instruction_fj", "fJ", 1, kMost, "a scalar instruction, fetched and executed"},
     Scaling::kEnergy},
    {{"scalar.core_um2", "um2", 1, kMost, "a scalar unit"}, Scaling::kArea},
    {{"register.bit_nm2", "nm2", 1, kMost, "a flip-flop"}, Scaling::kArea},
    {{"register.byte_fj", "fJ", 1, kMost, "eight flip-flops, written"}, Scaling::kEnergy},
    {{"dma.um2", "um2", 1, kMost, "a DMA without its queue, buffer and ports"}, Scaling::kArea},
    {{"link.fj_per_byte_mm", "fJ/B/mm", 1, kMost, "moving a byte along wires"}, Scaling::kEnergy},
    {{"link.repeater_um2_per_byte_mm", "um2/B/mm", 1, kMost, "repeaters of wires"}, Scaling::kArea},
    {{"controller.um2_per_bit", "um2", 1, kMost,
      "a channel's controller without its queues, for each bit of the data bus"},
     Scaling::kArea},
    {{"logic.density_permille", "1/1000", 1, 1000, "the part of laid-out logic that is cells"},
     Scaling::kNone},
    {{"logic.leakage_uw_per_mm2", "uW/mm2", 0, kMost, "leakage of laid-out logic"},
     Scaling::kLeakagePerArea},
    {{"sram.small_bytes", "B", 1, kMost, "size of the fit's first point"}, Scaling::kNone},
    {{"sram.small_bits", "", 1, 4096, "its word"}, Scaling::kNone},
    {{"sram.small_read_fj", "fJ", 1, kMost, "reading its word"}, Scaling::kEnergy},
    {{"sram.small_write_fj", "fJ", 1, kMost, "writing its word"}, Scaling::kEnergy},
    {{"sram.medium_bytes", "B", 1, kMost, "size of the second point"}, Scaling::kNone},
    {{"sram.medium_bits", "", 1, 4096, "its word"}, Scaling::kNone},
    {{"sram.medium_read_fj", "fJ", 1, kMost, "reading its word"}, Scaling::kEnergy},
    {{"sram.medium_write_fj", "fJ", 1, kMost, "writing its word"}, Scaling::kEnergy},
    {{"sram.large_bytes", "B", 1, kMost, "size of the third point"}, Scaling::kNone},
    {{"sram.large_bits", "", 1, 4096, "its word"}, Scaling::kNone},
    {{"sram.large_read_fj", "fJ", 1, kMost, "reading its word"}, Scaling::kEnergy},
    {{"sram.large_write_fj", "fJ", 1, kMost, "writing its word"}, Scaling::kEnergy},
    {{"sram.word_bits", "", 8, 4096, "the word of one bank"}, Scaling::kNone},
    {{"sram.bit_nm2", "nm2", 1, kMost, "a bit, with its part of the array"}, Scaling::kArea},
    {{"sram.word_bit_um2", "um2", 0, kMost, "periphery of a bank for each bit of its word"},
     Scaling::kArea},
    {{"sram.port_area_permille", "1/1000", 0, 10'000, "more area for each further port"},
     Scaling::kNone},
    {{"sram.port_energy_permille", "1/1000", 0, 10'000, "more energy for each further port"},
     Scaling::kNone},
    {{"sram.leakage_nw_per_kib", "nW/KiB", 0, kMost, "leakage"}, Scaling::kEnergy},
    {{"edram.read_fj_per_byte", "fJ/B", 1, kMost, "reading embedded DRAM"}, Scaling::kEnergy},
    {{"edram.write_fj_per_byte", "fJ/B", 1, kMost, "writing embedded DRAM"}, Scaling::kEnergy},
    {{"edram.bit_nm2", "nm2", 1, kMost, "a bit of embedded DRAM, with its part of all else"},
     Scaling::kArea},
    {{"edram.static_nw_per_kib", "nW/KiB", 0, kMost, "leakage and refresh"}, Scaling::kEnergy},
};

constexpr const char* kDramPresets[] = {"ddr4_3200", "lpddr5", "hbm2"};

// Rows of each preset of a DRAM file.
struct DramRow {
  const char* name;
  const char* unit;
  const char* meaning;
  int64_t least = 0;
};
constexpr DramRow kDramRows[] = {
    {"act_fj", "fJ", "ACT and its PRE, of a channel"},
    {"rd_fj", "fJ", "RD, without the pins"},
    {"wr_fj", "fJ", "WR, without the pins"},
    {"ref_fj", "fJ", "REF of a rank"},
    {"burst_bits", "", "bits of one RD or WR", 1},
    {"io_fj_per_bit", "fJ", "both ends of the pins"},
    {"flat_fj_per_bit", "fJ", "all of it, where commands are not modelled"},
    {"active_standby_uw", "uW", "a rank's standby power while rows are open"},
    {"precharged_standby_uw", "uW", "a rank's standby power while no row is open"},
    {"phy_um2", "um2", "a channel's PHY, at the preset's rate", 1},
    {"phy_logic_permille", "1/1000", "the part of it that leaks as logic"},
};

std::vector<ParameterRow> NodeSchema() {
  std::vector<ParameterRow> schema;
  for (const Row& row : kRows) schema.push_back(row.row);
  return schema;
}

// Larger memories take more energy, or the fit means nothing.
absl::Status CheckFit(const EnergyTable& table, std::string_view file) {
  const auto per_bit = [&](std::string_view point, std::string_view what) {
    return table.Get(StrCat("sram.", point, what)) / table.Get(StrCat("sram.", point, "_bits"));
  };
  const std::pair<std::string_view, std::string_view> steps[] = {{"small", "medium"},
                                                                 {"medium", "large"}};
  for (const auto& [less, more] : steps) {
    const std::string low = StrCat("sram.", less, "_bytes"), high = StrCat("sram.", more, "_bytes");
    if (table.Get(low) >= table.Get(high)) {
      return InvalidInput(std::string(file), ": ", low, " (", table.Get(low),
                          ") must be less than ", high, " (", table.Get(high), ")");
    }
    for (std::string_view what : {"_read_fj", "_write_fj"}) {
      if (per_bit(less, what) < per_bit(more, what)) continue;
      return InvalidInput(std::string(file), ": sram.", less, what, " (", per_bit(less, what),
                          " fJ a bit) must be less than sram.", more, what, " (",
                          per_bit(more, what), " fJ a bit): a larger memory takes more");
    }
  }
  return absl::OkStatus();
}

// "16nm" -> 16.
std::optional<double> ParseNode(std::string_view name) {
  double node = 0;
  if (!name.ends_with("nm") || !absl::SimpleAtod(ToAbsl(name.substr(0, name.size() - 2)), &node)) {
    return std::nullopt;
  }
  return node;
}

// The supply at which a node is usually run: that of the files, and between and below them these.
double UsualVolts(double node) {
  return node >= 65 ? 1.0 : node >= 28 ? 0.9 : node >= 14 ? 0.8 : 0.7;
}

std::string NamesOfTables() {
  std::string names;
  for (const EnergyText& text : EnergyTexts()) {
    if (text.name != kDramFile) StrAppend(&names, names.empty() ? "" : ", ", text.name);
  }
  return names;
}

absl::StatusOr<EnergyTable> LoadNode(std::string_view name) {
  for (const EnergyText& text : EnergyTexts()) {
    if (text.name == name && name != kDramFile) {
      return ParseEnergyTable(text.text, StrCat(name, ".toml"));
    }
  }
  if (const std::optional<double> node = ParseNode(name)) {
    // From the next node, by the ratio of nodes.
    std::string_view nearest;
    double distance = 0;
    for (const EnergyText& text : EnergyTexts()) {
      const std::optional<double> other = ParseNode(text.name);
      if (!other) continue;
      const double d = std::abs(std::log(*other / std::max(1e-3, *node)));
      if (nearest.empty() || d < distance) {
        nearest = text.name;
        distance = d;
      }
    }
    ASSIGN_OR_RETURN(const EnergyTable base, LoadNode(nearest));
    const absl::StatusOr<EnergyTable> scaled = ScaleTable(base, {*node, UsualVolts(*node)});
    if (!scaled.ok()) return WithContext(StrCat("--energy=", name), scaled.status());
    return scaled;
  }
  if (name.find('/') == std::string_view::npos && name.find('.') == std::string_view::npos) {
    return InvalidInput("no energy table is named '", name, "'; there are: ", NamesOfTables(),
                        ", any other node from 7nm to 130nm by scaling, or give the path of a "
                        ".toml file");
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(std::string(name)));
  return ParseEnergyTable(text, name);
}

}  // namespace

Process EnergyTable::process() const {
  return {Get("technology.node_nm"), Get("technology.supply_mv") / 1000};
}

bool EnergyTable::Has(std::string_view row) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const auto& r) { return r.name == row; });
}

double EnergyTable::Get(std::string_view row) const {
  const auto found =
      std::find_if(rows_.begin(), rows_.end(), [&](const auto& r) { return r.name == row; });
  POLYNAO_CHECK(found != rows_.end()) << "no row " << row << " in energy table " << name_;
  return static_cast<double>(found->value);
}

absl::StatusOr<EnergyTable> ParseEnergyTable(std::string_view text, std::string_view file) {
  ASSIGN_OR_RETURN(isa::ParameterFile parsed, isa::ReadParameterFile(text, file, NodeSchema()));
  EnergyTable table;
  table.name_ = parsed.name;
  table.rows_ = std::move(parsed.parameters);
  RETURN_IF_ERROR(CheckFit(table, file));
  return table;
}

absl::StatusOr<EnergyTable> ScaleTable(const EnergyTable& table, const Process& to) {
  ASSIGN_OR_RETURN(const ScaleFactors factors, ScaleBetween(table.process(), to));
  EnergyTable scaled = table;
  scaled.name_ = StrCat(to.node_nm, "nm");
  for (isa::MachineParameter& parameter : scaled.rows_) {
    if (parameter.name == "technology.node_nm" || parameter.name == "technology.supply_mv") {
      const bool is_node = parameter.name == "technology.node_nm";
      parameter.value = std::llround(is_node ? to.node_nm : to.volts * 1000);
      parameter.source = "assumed: as asked for";
      continue;
    }
    const auto row = std::find_if(std::begin(kRows), std::end(kRows),
                                  [&](const Row& r) { return parameter.name == r.row.name; });
    if (row == std::end(kRows) || row->scaling == Scaling::kNone) continue;
    const double factor = row->scaling == Scaling::kEnergy ? factors.energy
                          : row->scaling == Scaling::kArea ? factors.area
                                                           : factors.leakage_per_area();
    parameter.value = std::max<int64_t>(
        row->row.min, std::llround(static_cast<double>(parameter.value) * factor));
    parameter.source = StrCat("derived: ", table.name(), " times ", factor, " (docs/energy.md); ",
                              parameter.source);
  }
  return scaled;
}

absl::Status AddDram(std::string_view text, std::string_view file, std::string_view preset,
                     EnergyTable* table) {
  // The rows of all presets: ReadParameterFile wants names that live as long as the rows.
  std::vector<std::string> names;
  for (const char* each : kDramPresets) {
    for (const DramRow& row : kDramRows) names.push_back(StrCat(each, ".", row.name));
  }
  std::vector<ParameterRow> schema;
  for (size_t i = 0; i < names.size(); ++i) {
    const DramRow& row = kDramRows[i % std::size(kDramRows)];
    schema.push_back({names[i].c_str(), row.unit, row.least, kMost, row.meaning});
  }
  ASSIGN_OR_RETURN(isa::ParameterFile parsed, isa::ReadParameterFile(text, file, schema));
  const std::string prefix = StrCat(preset, ".");
  bool found = false;
  for (isa::MachineParameter& parameter : parsed.parameters) {
    if (!parameter.name.starts_with(prefix)) continue;
    found = true;
    parameter.name = StrCat("dram.", parameter.name.substr(prefix.size()));
    table->rows_.push_back(std::move(parameter));
  }
  if (found) {
    const double active = table->Get("dram.active_standby_uw");
    const double precharged = table->Get("dram.precharged_standby_uw");
    if (precharged > active) {
      return InvalidInput(std::string(file), ": ", prefix, "precharged_standby_uw (", precharged,
                          ") must be at most ", prefix, "active_standby_uw (", active,
                          "): open rows take more");
    }
    table->dram_ = preset;
    return absl::OkStatus();
  }
  std::string known;
  for (const char* each : kDramPresets) StrAppend(&known, known.empty() ? "" : ", ", each);
  return InvalidInput(std::string(file), ": no DRAM is named '", preset, "'; there are: ", known);
}

absl::StatusOr<EnergyTable> LoadEnergyTable(std::string_view spec, std::string_view machine_dram) {
  const size_t comma = spec.find(',');
  const bool is_flat = machine_dram == "flat";
  std::string_view dram = is_flat ? kDefaultDram : machine_dram;
  if (comma != std::string_view::npos) dram = spec.substr(comma + 1);
  if (!is_flat && dram != machine_dram) {
    return InvalidInput("--energy=", spec, ": the machine's gmem.dram is ", machine_dram,
                        ": expected no other DRAM");
  }
  ASSIGN_OR_RETURN(EnergyTable table, LoadNode(spec.substr(0, comma)));
  for (const EnergyText& text : EnergyTexts()) {
    if (text.name == kDramFile) RETURN_IF_ERROR(AddDram(text.text, "dram.toml", dram, &table));
  }
  table.name_ = StrCat(table.name_, ",", dram);
  return table;
}

}  // namespace polynao::simulator
