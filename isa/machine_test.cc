#include "isa/machine.h"

#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::isa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string Config(const std::string& name) {
  std::ifstream file("simulator/configs/" + name + ".toml");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// mlu270's file with GMEM channels that are no DRAM, and a read cache.
std::string FlatConfig() {
  std::string text = Config("mlu270");
  text = Replace(text, "dram = { value = \"ddr4_3200\"", "dram = { value = \"flat\"");
  text = Replace(text, "cache_reads = { value = 0", "cache_reads = { value = 1");
  return text.substr(0, text.find("\n[dram]"));
}

void ExpectError(const std::string& text, const std::string& message,
                 const std::vector<std::string>& overrides = {}) {
  const auto machine = ParseMachine(text, "m.toml", overrides);
  ASSERT_FALSE(machine.ok()) << message;
  EXPECT_THAT(std::string(machine.status().message()), HasSubstr(message));
}

TEST(Machine, ReadsTheShippedConfigs) {
  for (const char* name : {"mlu270", "mlu290", "mlu370", "unit"}) {
    const auto machine = ParseMachine(Config(name), name);
    ASSERT_TRUE(machine.ok()) << machine.status();
    EXPECT_EQ(machine->name, name);
  }
}

TEST(Machine, Mlu270HasThePublishedFigures) {
  const auto machine = ParseMachine(Config("mlu270"), "mlu270.toml");
  ASSERT_TRUE(machine.ok());
  EXPECT_EQ(machine->cores(), 16);
  EXPECT_EQ(machine->nmem_bytes(), 512 * 1024);
  EXPECT_EQ(machine->wmem_bytes(), 1024 * 1024);
  EXPECT_EQ(machine->smem_bytes(), 2048 * 1024);
  // Refreshes take 560 of 12480 clocks.
  EXPECT_DOUBLE_EQ(machine->gmem_bytes_per_cycle(), 102.4 * (1 - 560.0 / 12480));
  EXPECT_DOUBLE_EQ(machine->store_segments_per_core(), 0.5);
  EXPECT_TRUE(machine->has_dram());
  EXPECT_FALSE(machine->caches_reads());
  const auto flat = ParseMachine(FlatConfig(), "m.toml", {"cluster.store_segments=0"});
  ASSERT_TRUE(flat.ok());
  EXPECT_DOUBLE_EQ(flat->gmem_bytes_per_cycle(), 102.4);
  EXPECT_DOUBLE_EQ(flat->store_segments_per_core(), 1);
  EXPECT_DOUBLE_EQ(machine->clock_ghz(), 1.0);
  EXPECT_EQ(machine->Get("vector.start"), 16);
}

TEST(Machine, AHeaderThatIsNoKeyIsAnErrorAndDoesNotAbort) {
  ExpectError(Replace(Config("mlu270"), "[scalar]", "[&&scalar]"), "m.toml:");
  ExpectError("[", "m.toml:1: ");
  ExpectError("[.a]\nx = 1\n", "m.toml:1: ");
}

TEST(Machine, OverridesReplaceValues) {
  const auto machine =
      ParseMachine(Config("mlu270"), "m.toml", {"core.nmem_kib=256", "core.nmem_reserved_kib=128"});
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->nmem_bytes(), 128 * 1024);
  EXPECT_EQ(machine->Get("core.nmem_kib"), 256);
}

TEST(Machine, WhatIsReadIsNoted) {
  const auto parsed = ParseMachine(FlatConfig(), "m.toml");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Machine& machine = *parsed;
  const ParameterReads outer;
  EXPECT_EQ(machine.Text("core.wmem_kib"), "1024");  // to compare
  EXPECT_THAT(outer.Values(machine), IsEmpty());
  {
    const ParameterReads inner;
    EXPECT_EQ(machine.clusters(), 4);
    EXPECT_EQ(machine.Find("dram.trefi"), nullptr);
    EXPECT_FALSE(machine.has_dram());
    EXPECT_THAT(inner.Values(machine),
                ElementsAre(Pair("card.clusters", "4"), Pair("dram.trefi", "none"),
                            Pair("gmem.dram", "flat")));
    // Of another machine the names count alike, and `Values` gives those of the machine that it gets.
    Machine fewer = machine;
    fewer.Set("card.clusters", 2);
    EXPECT_EQ(fewer.clusters(), 2);
    EXPECT_EQ(inner.Values(machine).at("card.clusters"), "4");
    EXPECT_EQ(inner.Values(fewer).at("card.clusters"), "2");
  }
  EXPECT_EQ(outer.Values(machine).size(), 3);
  // Whoever sees all has read all.
  EXPECT_GT(machine.parameters().size(), 50);
  EXPECT_EQ(outer.Values(machine).size(), machine.parameters().size() + machine.texts().size() + 1);
}

TEST(Machine, ListsParametersInFileOrderWithTheirSources) {
  const auto file = ReadMachineFile(Config("mlu270"), "m.toml");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->parameters.front().name, "card.clusters");
  EXPECT_EQ(file->parameters.back().name, "dram.posted");
  for (const MachineParameter& parameter : file->parameters) {
    EXPECT_FALSE(parameter.meaning.empty()) << parameter.name;
    EXPECT_THAT(parameter.source, ::testing::ContainsRegex("^(sourced|derived|assumed): "));
  }
}

TEST(Machine, ErrorsNameFileLineAndParameter) {
  const std::string good = Config("unit");
  ExpectError("", "m.toml: expected a line: name");
  ExpectError("name = 3", "m.toml:1: name is neither the name nor a group");
  ExpectError("name = \"x\"\n[core\n", "m.toml:2: ");
  ExpectError("name = \"x\"", "m.toml: card.clusters is missing (clusters)");
  ExpectError("name = \"x\"\n[core]\nspeed = 1\n", "m.toml:3: there is no parameter core.speed");
  ExpectError("name = \"x\"\n[core]\nnmem_kib = 1\n",
              "m.toml:3: core.nmem_kib must be { value = INTEGER, source = \"KIND: REFERENCE\" }");
  ExpectError("name = \"x\"\n[core]\nnmem_kib = { value = 1, source = \"guess\" }\n",
              "m.toml:3: the source of core.nmem_kib must be");
  ExpectError("name = \"x\"\n[core]\nnmem_kib = { value = 0, source = \"assumed: x\" }\n",
              "m.toml:3: core.nmem_kib is 0; allowed are 1 to 1048576 KiB (NMEM)");
  ExpectError(Replace(good, "queue_depth", "queue_dept"), "there is no parameter core.queue_dept");
}

TEST(Machine, ErrorsNameContradictionsAndBadOverrides) {
  const std::string good = Config("unit");
  ExpectError(good, "override \"core.nmem_kib\": expected NAME=INTEGER", {"core.nmem_kib"});
  ExpectError(good, "expected NAME=INTEGER", {"core.nmem_kib=x"});
  ExpectError(good, "there is no parameter core.x", {"core.x=1"});
  ExpectError(good, "card.clusters is 0; allowed are 1 to 64", {"card.clusters=0"});
  ExpectError(good, "overrides: core.nmem_reserved_kib (32) must be less than core.nmem_kib (32)",
              {"core.nmem_reserved_kib=32"});
  ExpectError(good, "cluster.smem_reserved_kib (64) must be less",
              {"cluster.smem_reserved_kib=64"});
  ExpectError(good, "io_dma.burst (4) must be a multiple of 8, the size of the largest type",
              {"io_dma.burst=4", "gmem.granule=4"});
  ExpectError(good, "gmem.interleave (1024) must be a multiple of io_dma.burst (2048)",
              {"io_dma.burst=2048"});
  ExpectError(good, "io_dma.burst (96) must be a multiple of gmem.granule (64)",
              {"io_dma.burst=96"});
  ExpectError(good,
              "gmem.cache_kib (1) must be 0 or hold a line of io_dma.burst (1024) bytes for "
              "each of gmem.channels (2)",
              {"gmem.cache_kib=1", "io_dma.burst=1024"});
  ExpectError(good, "io_dma.burst (256) must be at most 64 times gmem.granule (2)",
              {"gmem.cache_kib=1", "gmem.granule=2"});
  ExpectError(good, "smem.burst (96) must be a multiple of smem.granule (64)", {"smem.burst=96"});
}

TEST(Machine, DramComesFromItsPresetThenTheFileThenOverrides) {
  const std::vector<std::string> ddr4 = {"gmem.dram=ddr4_3200", "gmem.cache_reads=0"};
  const auto flat = ParseMachine(FlatConfig(), "m.toml");
  ASSERT_TRUE(flat.ok());
  EXPECT_FALSE(flat->has_dram());
  EXPECT_EQ(flat->Find("dram.trcd"), nullptr);
  const auto preset = ParseMachine(FlatConfig(), "m.toml", ddr4);
  ASSERT_TRUE(preset.ok()) << preset.status();
  EXPECT_TRUE(preset->has_dram());
  EXPECT_EQ(preset->Get("dram.trcd"), 22);
  EXPECT_EQ(preset->GetText("dram.map"), "row bank bank_group column bank_group:1");
  const std::string own = FlatConfig() +
                          "\n[dram]\ntrcd = { value = 25, source = \"assumed: slower\" }\n"
                          "trp = { value = 26, source = \"assumed: slower\" }\n";
  EXPECT_EQ(ParseMachine(own, "m.toml")->Find("dram.trcd"), nullptr);
  std::vector<std::string> overrides = ddr4;
  overrides.push_back("dram.trp=27");
  overrides.push_back("dram.map=row bank_group bank column");
  const auto changed = ParseMachine(own, "m.toml", overrides);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->Get("dram.trcd"), 25);
  EXPECT_EQ(changed->Get("dram.trp"), 27);
  EXPECT_EQ(changed->Get("dram.trc"), 52 + 27);  // tras + trp
  EXPECT_EQ(changed->GetText("dram.map"), "row bank_group bank column");
  // The cards' channels have the rates of these presets.
  EXPECT_EQ(ParseMachine(Config("mlu290"), "m.toml")->GetText("gmem.dram"), "hbm2");
  EXPECT_EQ(ParseMachine(Config("mlu370"), "m.toml")->GetText("gmem.dram"), "lpddr5");
  EXPECT_EQ(ParseMachine(Config("mlu370"), "m.toml")->Get("dram.posted"), 0);
}

TEST(Machine, DramErrors) {
  const std::string good = FlatConfig();
  ExpectError(good,
              "override \"gmem.dram=ddr5\": gmem.dram: there is no DRAM preset \"ddr5\"; there are "
              "ddr4_3200",
              {"gmem.dram=ddr5"});
  ExpectError(Replace(good, "dram = { value = \"flat\"", "dram = { value = \"x\""),
              "m.toml: gmem.dram: there is no DRAM preset \"x\"");
  ExpectError(Replace(good, "dram = { value = \"flat\"", "dram = { value = 1"),
              "gmem.dram must be { value = \"TEXT\"");
  ExpectError(good, "override \"dram.trcd=30\": gmem.dram is \"flat\", so there is no dram.trcd",
              {"dram.trcd=30"});
  ExpectError(good, "override \"gmem.dram\": expected NAME=TEXT", {"gmem.dram"});
  ExpectError(good,
              "overrides: loads cannot look into a cache before DRAM: with gmem.dram (ddr4_3200) "
              "gmem.cache_reads or gmem.cache_kib must be 0",
              {"gmem.dram=ddr4_3200"});
  const std::vector<std::string> ddr4 = {"gmem.dram=ddr4_3200", "gmem.cache_kib=0"};
  const auto with = [&](const std::string& override) {
    std::vector<std::string> overrides = ddr4;
    overrides.push_back(override);
    return overrides;
  };
  ExpectError(
      good,
      "overrides: gmem.channel_bytes_per_kilocycle (30000) at card.clock_mhz (1000) must be "
      "the rate of gmem.dram, rounded up: 25600, from dram.clock_mhz (1600) x "
      "dram.beats_per_clock (2) x dram.bus_bits (64) / 8, 25600 MB/s",
      with("gmem.channel_bytes_per_kilocycle=30000"));
  ExpectError(
      good, "gmem.mib (40000) must be at most what the DRAM of gmem.channels (4) holds, 32768 MiB",
      with("gmem.mib=40000"));
  ExpectError(good, "dram.trcd is 0; allowed are 1 to 2048 clocks", with("dram.trcd=0"));
}

// An override of the DRAM or of the card's clock alone makes a machine: what follows from it follows.
TEST(Machine, RateAndSizeOfChannelsFollowTheDram) {
  using Channel = std::pair<int64_t, int64_t>;  // rate, size of GMEM
  const auto with = [](std::vector<std::string> overrides) {
    const auto machine = ParseMachine(Config("mlu270"), "m.toml", overrides);
    EXPECT_TRUE(machine.ok()) << machine.status();
    return Channel(machine->Get("gmem.channel_bytes_per_kilocycle"), machine->Get("gmem.mib"));
  };
  EXPECT_EQ(with({}), Channel(25600, 16384));
  EXPECT_EQ(with({"gmem.dram=hbm2"}), Channel(38400, 4096));  // a gigabyte a channel
  EXPECT_EQ(with({"gmem.channels=8", "gmem.dram=hbm2"}), Channel(38400, 8192));
  EXPECT_EQ(with({"dram.bus_bits=32"}), Channel(12800, 16384));
  EXPECT_EQ(with({"dram.clock_mhz=800", "card.clock_mhz=500"}), Channel(25600, 16384));
  EXPECT_EQ(with({"card.clock_mhz=2000"}), Channel(12800, 16384));
  // 25600 MB/s in 900 MHz are no whole number of bytes in 1000 cycles: 28444.4.
  EXPECT_EQ(with({"card.clock_mhz=900"}), Channel(28445, 16384));
  EXPECT_EQ(with({"gmem.channels=1"}), Channel(25600, 8192));
  EXPECT_EQ(with({"gmem.channels=2", "gmem.mib=100"}), Channel(25600, 100));
  // Without DRAM nothing follows.
  EXPECT_EQ(with({"gmem.dram=flat", "card.clock_mhz=2000", "gmem.channels=1"}),
            Channel(25600, 16384));
}

TEST(Machine, LoadsLookIntoTheCacheWhereTheFileSaysSo) {
  EXPECT_TRUE(ParseMachine(FlatConfig(), "m.toml")->caches_reads());
  EXPECT_FALSE(ParseMachine(FlatConfig(), "m.toml", {"gmem.cache_reads=0"})->caches_reads());
  EXPECT_FALSE(ParseMachine(FlatConfig(), "m.toml", {"gmem.cache_kib=0"})->caches_reads());
}

}  // namespace
}  // namespace polynao::isa
