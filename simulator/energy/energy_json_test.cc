#include "simulator/energy/energy_json.h"

#include "base/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "simulator/energy/table.h"
#include "simulator/report.h"
#include "simulator/testing.h"

namespace polynao::simulator {
namespace {

using testing::HasSubstr;

EnergyReport Report() {
  RunResult result;
  result.end_cycle = 1000;
  result.actions.macs[static_cast<size_t>(ir::Type::kI8)] = 1000;
  return EnergyOf(result, TestMachine("unit"), LoadEnergyTable("28nm,hbm2").value()).value();
}

TEST(EnergyJson, HoldsComponentsTotalsAndTheResolvedTable) {
  const EnergyReport report = Report();
  nlohmann::ordered_json json;
  AddEnergy(report, json);
  EXPECT_DOUBLE_EQ(json["energy_pj"]["tensor"], ValueOf(report.energy_pj, "tensor"));
  EXPECT_DOUBLE_EQ(json["energy_pj"]["total"], Total(report.energy_pj));
  EXPECT_DOUBLE_EQ(json["area_mm2"]["total"], Total(report.area_mm2));
  EXPECT_GT(json["average_power_mw"], 0);
  EXPECT_GT(json["energy_delay_pj_s"], 0);
  EXPECT_EQ(json["energy_table"]["name"], "28nm,hbm2");
  const auto& rows = json["energy_table"]["rows"];
  EXPECT_EQ(rows.size(), report.table.rows().size());
  EXPECT_EQ(rows["edram.read_fj_per_byte"]["value"], 600);
  EXPECT_EQ(rows["dram.act_fj"]["unit"], "fJ");
  EXPECT_THAT(rows["edram.read_fj_per_byte"]["source"].get<std::string>(), HasSubstr("derived: "));
}

TEST(EnergyText, ListsEachComponentOnce) {
  const EnergyReport report = Report();
  const std::string text = EnergyText(report);
  EXPECT_THAT(text, HasSubstr("table 28nm,hbm2"));
  for (const auto& [name, value] : report.area_mm2) {
    const size_t first = text.find("    " + name + " ");
    ASSERT_NE(first, std::string::npos) << name;
    EXPECT_EQ(text.find("    " + name + " ", first + 1), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace polynao::simulator
