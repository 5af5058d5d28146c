#include "simulator/energy/energy_json.h"

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace polynao::simulator {
namespace {

nlohmann::ordered_json ToJson(const ByComponent& components) {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : components) json[name] = value;
  json["total"] = Total(components);
  return json;
}

}  // namespace

void AddEnergy(const EnergyReport& report, nlohmann::ordered_json& json) {
  json["energy_pj"] = ToJson(report.energy_pj);
  json["area_mm2"] = ToJson(report.area_mm2);
  json["static_power_mw"] = ToJson(report.static_mw);
  json["supply_mv"] = 1000 * report.point.volts;
  json["average_power_mw"] = report.average_power_mw;
  json["chip_power_mw"] = report.chip_power_mw;
  json["peak_power_mw"] = report.peak_power_mw;
  json["energy_delay_pj_s"] = report.energy_delay_pj_s;
  nlohmann::ordered_json rows;
  for (const isa::MachineParameter& row : report.table.rows()) {
    rows[row.name] = {{"value", row.value}, {"unit", row.unit}, {"source", row.source}};
  }
  json["energy_table"] = {{"name", report.table.name()}, {"rows", rows}};
}

std::string EnergyText(const EnergyReport& report) {
  const double total = Total(report.energy_pj);
  std::string text = absl::StrFormat(
      "  energy %.4g uJ, average power %.4g mW (%.4g without DRAM), table %s\n", total / 1e6,
      report.average_power_mw, report.chip_power_mw, report.table.name());
  absl::StrAppendFormat(&text, "    %-10s %12s %7s %10s\n", "", "nJ", "%", "mm2");
  const auto line = [&](const std::string& name, double energy, double area) {
    absl::StrAppendFormat(&text, "    %-10s %12.3f %7.1f %10.4f\n", name, energy / 1e3,
                          total > 0 ? 100 * energy / total : 0, area);
  };
  for (const auto& [name, energy] : report.energy_pj) {
    line(name, energy, ValueOf(report.area_mm2, name));
  }
  // Components that take area alone.
  for (const auto& [name, area] : report.area_mm2) {
    bool is_listed = false;
    for (const auto& [other, energy] : report.energy_pj) is_listed |= other == name;
    if (!is_listed) line(name, 0, area);
  }
  line("total", total, Total(report.area_mm2));
  return text;
}

}  // namespace polynao::simulator
