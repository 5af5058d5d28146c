#include "simulator/energy/table.h"

#include <cmath>
#include <string>

#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/energy/scaling.h"
#include "testing/fuzz.h"

namespace polynao::simulator {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

std::string TextOf(std::string_view name) {
  for (const EnergyText& text : EnergyTexts()) {
    if (text.name == name) return std::string(text.text);
  }
  POLYNAO_UNREACHABLE(std::string(name));
}

// The error for 45nm.toml with one text in place of another.
std::string ErrorWith(const std::string& from, const std::string& to) {
  const std::string text = TextOf("45nm");
  POLYNAO_CHECK(text.find(from) != std::string::npos) << from;
  const auto table = ParseEnergyTable(absl::StrReplaceAll(text, {{from, to}}), "t.toml");
  return table.ok() ? "accepted" : std::string(table.status().message());
}

TEST(EnergyTable, AllTablesParse) {
  for (const EnergyText& text : EnergyTexts()) {
    if (text.name == "dram") continue;
    const auto table = ParseEnergyTable(text.text, text.name);
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_EQ(table->name(), text.name);
  }
}

TEST(EnergyTable, RowsThatAreScaledFollowTheRule) {
  const EnergyTable base = ParseEnergyTable(TextOf("45nm"), "45nm.toml").value();
  for (const char* name : {"65nm", "28nm"}) {
    const EnergyTable table = ParseEnergyTable(TextOf(name), name).value();
    const EnergyTable scaled = ScaleTable(base, table.process()).value();
    int checked = 0;
    for (const isa::MachineParameter& row : table.rows()) {
      if (!row.source.starts_with("derived: 45nm.toml times")) continue;
      EXPECT_EQ(static_cast<double>(row.value), scaled.Get(row.name)) << name << " " << row.name;
      ++checked;
    }
    EXPECT_GT(checked, 25) << name;
  }
}

TEST(EnergyTable, OtherNodesAreScaledFromTheNextTable) {
  const EnergyTable from28 = LoadEnergyTable("28nm").value();
  const EnergyTable at16 = LoadEnergyTable("16nm").value();
  EXPECT_EQ(at16.name(), "16nm,ddr4_3200");
  EXPECT_EQ(at16.process().node_nm, 16);
  EXPECT_LT(at16.Get("tensor.mac_i8_fj"), from28.Get("tensor.mac_i8_fj"));
  EXPECT_LT(at16.Get("sram.bit_nm2"), from28.Get("sram.bit_nm2"));
  // DRAM is another chip.
  EXPECT_EQ(at16.Get("dram.rd_fj"), from28.Get("dram.rd_fj"));
  for (const isa::MachineParameter& row : at16.rows()) {
    if (row.name != "tensor.mac_i8_fj") continue;
    EXPECT_THAT(row.source, HasSubstr("derived: 28nm times 0."));
  }
}

TEST(EnergyTable, TakesADramPreset) {
  EXPECT_EQ(LoadEnergyTable("65nm,hbm2").value().Get("dram.io_fj_per_bit"), 800);
  EXPECT_THAT(LoadEnergyTable("65nm,ddr9").status().message(),
              HasSubstr("dram.toml: no DRAM is named 'ddr9'; there are: ddr4_3200, lpddr5, hbm2"));
}

TEST(EnergyTable, TakesTheMachinesDram) {
  EXPECT_EQ(LoadEnergyTable("65nm", "lpddr5").value().name(), "65nm,lpddr5");
  EXPECT_EQ(LoadEnergyTable("65nm,lpddr5", "lpddr5").value().name(), "65nm,lpddr5");
  EXPECT_THAT(
      LoadEnergyTable("65nm,hbm2", "lpddr5").status().message(),
      HasSubstr("--energy=65nm,hbm2: the machine's gmem.dram is lpddr5: expected no other DRAM"));
}

TEST(EnergyTable, ErrorsNameThePlaceAndTheExpectation) {
  EXPECT_THAT(ErrorWith("mac_i8_fj = { value = 300", "mac_i8_fj = { value = -300"),
              MatchesRegex("t\\.toml:[0-9]+: tensor\\.mac_i8_fj is -300; allowed are 1 to .*"));
  EXPECT_THAT(ErrorWith("mac_i8_fj = { value = 300", "mac_i8_fj = { value = 0"),
              HasSubstr("tensor.mac_i8_fj is 0; allowed are 1 to"));
  EXPECT_THAT(ErrorWith("mac_i8_fj = { value = 300", "mac_i9_fj = { value = 300"),
              MatchesRegex("t\\.toml:[0-9]+: there is no parameter tensor\\.mac_i9_fj"));
  for (const char* bad : {"nan", "inf", "1.5", "\"300\"", "true"}) {
    EXPECT_THAT(ErrorWith("mac_i8_fj = { value = 300", StrCat("mac_i8_fj = { value = ", bad)),
                MatchesRegex("t\\.toml:[0-9]+: tensor\\.mac_i8_fj must be \\{ value = INTEGER, "
                             "source = \"KIND: REFERENCE\" \\}, found [^\n]+"))
        << bad;
  }
  EXPECT_THAT(ErrorWith("mac_i8_fj = { value = 300", "mac_i8_fj = { value = nan"),
              HasSubstr("found nan"));
  EXPECT_THAT(ErrorWith("[dma]\num2 = ", "[dma]\n# um2 = "),
              HasSubstr("t.toml: dma.um2 is missing (a DMA without its queue, buffer and ports)"));
  EXPECT_THAT(
      ErrorWith("small_bytes = { value = 448", "small_bytes = { value = 9000"),
      HasSubstr("t.toml: sram.small_bytes (9000) must be less than sram.medium_bytes (8192)"));
  EXPECT_THAT(ErrorWith("small_bits = { value = 16", "small_bits = { value = 1"),
              HasSubstr("a larger memory takes more"));
  EXPECT_THAT(ErrorWith("source = \"sourced: M. Horowitz", "source = \"M. Horowitz"),
              HasSubstr("must be \"sourced: ...\", \"derived: ...\" or \"assumed: ...\""));
}

// The error for dram.toml with one text in place of another.
std::string DramErrorWith(const std::string& from, const std::string& to) {
  const std::string text = TextOf("dram");
  POLYNAO_CHECK(text.find(from) != std::string::npos) << from;
  EnergyTable table = ParseEnergyTable(TextOf("45nm"), "45nm.toml").value();
  const absl::Status status =
      AddDram(absl::StrReplaceAll(text, {{from, to}}), "d.toml", "hbm2", &table);
  return status.ok() ? "accepted" : std::string(status.message());
}

TEST(EnergyTable, ErrorsOfDramNameThePlaceAndTheExpectation) {
  EXPECT_EQ(DramErrorWith("name = ", "name = "), "accepted");
  EXPECT_THAT(DramErrorWith("phy_um2 = { value = 1282600", "phy_um2 = { value = 0"),
              MatchesRegex("d\\.toml:[0-9]+: hbm2\\.phy_um2 is 0; allowed are 1 to .*"));
  EXPECT_THAT(DramErrorWith("active_standby_uw = { value = 66000", "standby_uw = { value = 66000"),
              MatchesRegex("d\\.toml:[0-9]+: there is no parameter hbm2\\.standby_uw"));
  EXPECT_THAT(DramErrorWith("precharged_standby_uw = { value = 48000", "# "),
              HasSubstr("d.toml: hbm2.precharged_standby_uw is missing (a rank's standby power "
                        "while no row is open)"));
  EXPECT_THAT(
      DramErrorWith("active_standby_uw = { value = 66000", "active_standby_uw = { value = 1"),
      HasSubstr("d.toml: hbm2.precharged_standby_uw (48000) must be at most "
                "hbm2.active_standby_uw (1): open rows take more"));
}

TEST(EnergyTable, UnknownTablesAreNamedWithTheKnownOnes) {
  EXPECT_THAT(
      LoadEnergyTable("fast").status().message(),
      HasSubstr("no energy table is named 'fast'; there are: 28nm, 45nm, 65nm, any other node"));
  EXPECT_THAT(LoadEnergyTable("3nm").status().message(), HasSubstr("expected 7 to 130"));
  EXPECT_THAT(LoadEnergyTable("dram").status().message(), HasSubstr("no energy table"));
  EXPECT_FALSE(LoadEnergyTable("/no/such.toml").ok());
  EXPECT_FALSE(LoadEnergyTable("").ok());
  EXPECT_FALSE(LoadEnergyTable("nannm").ok());
}

TEST(EnergyTable, DamagedTablesAreErrors) {
  FuzzTarget target;
  target.corpus = {TextOf("45nm"), TextOf("28nm")};
  target.parse = [](const std::string& input) {
    return ParseEnergyTable(input, "m.toml").status();
  };
  target.place = R"(m\.toml(:\d+)?: )";
  const FuzzResult result = Fuzz(target, FuzzCases(500), FuzzSeed());
  EXPECT_EQ(result.failure, "");
}

}  // namespace
}  // namespace polynao::simulator
