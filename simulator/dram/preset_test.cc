#include "simulator/dram/preset.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/dram_presets.h"

namespace polynao::simulator {
namespace {

using ::testing::HasSubstr;

std::string Text(const std::string& name) {
  for (const isa::DramPresetText& preset : isa::DramPresetTexts()) {
    if (preset.name == name) return std::string(preset.text);
  }
  ADD_FAILURE() << name;
  return "";
}

TEST(DramPreset, HaveTheRatesAndSizesThatTheyAreSoldWith) {
  const struct {
    const char* name;
    int64_t megabytes_per_second, gibibytes;
  } kPresets[] = {{"ddr4_3200", 25'600, 8}, {"lpddr5", 25'600, 4}, {"hbm2", 38'400, 1}};
  EXPECT_EQ(isa::DramPresetTexts().size(), std::size(kPresets));
  for (const auto& preset : kPresets) {
    const auto timing = DramPreset(preset.name);
    ASSERT_TRUE(timing.ok()) << timing.status();
    EXPECT_EQ(timing->megabytes_per_second(), preset.megabytes_per_second) << preset.name;
    EXPECT_EQ(timing->capacity(), preset.gibibytes << 30) << preset.name;
    EXPECT_EQ(timing->burst_bytes(), 64) << preset.name;
    EXPECT_GE(timing->trc, timing->tras + timing->trp) << preset.name;
  }
}

TEST(DramPreset, Ddr4HasTheNanosecondsOfTheStandard) {
  const DramTiming t = DramPreset("ddr4_3200").value();
  const auto picoseconds = [&](int64_t clocks) { return clocks * 1'000'000 / t.clock_mhz; };
  EXPECT_EQ(picoseconds(1), 625);
  EXPECT_EQ(picoseconds(t.trcd), 13'750);
  EXPECT_EQ(picoseconds(t.trp), 13'750);
  EXPECT_EQ(picoseconds(t.tras), 32'500);
  EXPECT_EQ(picoseconds(t.twr), 15'000);
  EXPECT_EQ(picoseconds(t.trfc), 350'000);
  EXPECT_EQ(picoseconds(t.trefi), 7'800'000);
}

TEST(DramPreset, OverridesReplaceNumbersAndTheMap) {
  const auto timing =
      DramPreset("ddr4_3200", {"trcd=30", "map=row bank_group bank column", "hash=0"});
  ASSERT_TRUE(timing.ok()) << timing.status();
  EXPECT_EQ(timing->trcd, 30);
  EXPECT_EQ(timing->map, "row bank_group bank column");
  EXPECT_EQ(timing->hash, 0);
}

TEST(DramPreset, ErrorsNamePlaceExpectationAndFinding) {
  const auto expect_error = [](const std::string& text, const std::string& message,
                               const std::vector<std::string>& overrides = {}) {
    const auto timing = ParseDram(text, "d.toml", overrides);
    ASSERT_FALSE(timing.ok()) << message;
    EXPECT_THAT(std::string(timing.status().message()), HasSubstr(message));
  };
  const std::string good = Text("ddr4_3200");
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  expect_error(replaced("trcd = { value = 22", "trcd = { value = 0"),
               "d.toml:18: dram.trcd is 0; allowed are 1 to 2048 clocks (from ACT to RD or WR)");
  expect_error(replaced("trcd =", "trdc ="), "d.toml:18: there is no parameter dram.trdc");
  expect_error(replaced("[dram]", "[drum]"), "there is no parameter drum.clock_mhz");
  expect_error(replaced("\nmap = {", "\n# {"), "d.toml: dram.map is missing");
  expect_error(replaced("\"row bank bank_group column bank_group:1\"", "7"),
               "dram.map must be { value = \"TEXT\", source = ");
  expect_error(replaced("column bank_group:1", "column bank_group:3"), "bank_group has 2 bits");
  expect_error(good, "override \"trcd\": expected NAME=VALUE", {"trcd"});
  expect_error(good, "override \"trcd=x\": expected NAME=INTEGER", {"trcd=x"});
  expect_error(good, "override \"x=1\": there is no parameter dram.x", {"x=1"});
  expect_error(good, "override \"trcd=0\": dram.trcd is 0;", {"trcd=0"});
  expect_error(good, "overrides: dram.rows must be a power of two, not 5", {"rows=5"});
  expect_error(good, "dram.tccd_s (3) must be at least the clocks of a burst (4)", {"tccd_s=3"});
  expect_error(good, "dram.tccd_l (8) must be at least dram.tccd_s (9)", {"tccd_s=9"});
  expect_error(good, "dram.write_low (56) must be less than dram.write_high (56)",
               {"write_low=56"});
  expect_error(good, "dram.write_queue (20) must be at least dram.write_high (56)",
               {"write_queue=20"});
  expect_error(good, "dram.trefi (1000) must be at least twice", {"trefi=1000"});
  expect_error(good, "a channel has at most 64 banks", {"ranks=8"});
  expect_error(good, "dram.row_bytes (32) must hold a burst of 64 bytes", {"row_bytes=32"});
  expect_error(good, "dram.burst_length (1) must be at least dram.beats_per_clock (2)",
               {"burst_length=1"});
  expect_error(good, "needs as many rows as a rank has banks (16), not 8", {"rows=8", "hash=1"});
  expect_error(good, "overrides: dram.trc (74) must be at least dram.tras + dram.trp (82)",
               {"trp=30"});
  expect_error(good, "dram.tras (10) must be at least dram.trcd (22)", {"tras=10"});
  expect_error(good, "dram.tfaw (3) must be at least dram.trrd_s (4)", {"tfaw=3"});
  expect_error(good, "dram.clock_mhz is 0;", {"clock_mhz=0"});
  expect_error(
      good,
      "bank:1 row bank bank_group column bank_group:1\": with dram.hash = 2 it is no permutation",
      {"map=bank:1 row bank bank_group column bank_group:1", "rows=524288"});
  EXPECT_THAT(std::string(DramPreset("ddr5").status().message()),
              HasSubstr("there is no DRAM preset \"ddr5\"; there are ddr4_3200, hbm2, lpddr5"));
}

}  // namespace
}  // namespace polynao::simulator
