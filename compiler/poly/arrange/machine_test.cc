#include "compiler/poly/arrange/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/text.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;

const CpuRates kRates = {.threads = 5,
                         .clock_hz = 2e9,
                         .bytes_of_one = 8e9,
                         .bytes_of_all = 24e9,
                         .start_seconds = 5e-6,
                         .core = {.operation = 0.75,
                                  .latency = 5,
                                  .load = 0.25,
                                  .store = 2,
                                  .next_bytes = 48,
                                  .instructions = {{"vpdpbusd.512", 1.125}, {"tdpbssd", 17}}}};

std::string Text(const CpuRates& rates = kRates) {
  CpuMachine machine;
  machine.near_bytes = 49152, machine.near_ways = 12, machine.cache_bytes = 2 << 20;
  return CpuFileText("A \"fast\" processor", "2026-11-27", machine, rates);
}

TEST(CpuFileTest, SaysWhatWasMeasured) {
  CpuMachine machine;
  machine.cores = 5;
  const auto read = WithCpuFile(machine, Text(), "cpu.toml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->near_bytes, 49152);
  EXPECT_EQ(read->near_ways, 12);
  EXPECT_EQ(read->cache_bytes, 2 << 20);
  EXPECT_DOUBLE_EQ(read->cycles_per_byte, 0.25);
  EXPECT_DOUBLE_EQ(read->memory_scaling, 3);
  EXPECT_DOUBLE_EQ(read->parallel_cycles, 10000);
  EXPECT_DOUBLE_EQ(read->rates.operation, 0.75);
  EXPECT_DOUBLE_EQ(read->rates.latency, 5);
  EXPECT_DOUBLE_EQ(read->rates.load, 0.25);
  EXPECT_DOUBLE_EQ(read->rates.store, 2);
  EXPECT_DOUBLE_EQ(read->rates.next_bytes, 48);
  EXPECT_THAT(read->rates.instructions, testing::ElementsAre(testing::Pair("tdpbssd", 17),
                                                             testing::Pair("vpdpbusd.512", 1.125)));
}

// Cycles of an instruction: what was measured, else what its row says, else those of a multiply-add.
TEST(CpuFileTest, CyclesOfInstructions) {
  const CoreRates measured = kRates.core;
  for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
    const double expected = row.name == "vpdpbusd.512" ? 1.125
                            : row.name == "tdpbssd"    ? 17
                            : row.cycles > 0           ? row.cycles
                                                       : 0.75;
    EXPECT_DOUBLE_EQ(measured.CyclesOf(row), expected) << row.name;
  }
}

// Files from before rates of the core were measured: those that are assumed.
TEST(CpuFileTest, RatesNeedNotBeThere) {
  const std::string text = Text();
  const size_t at = text.find("\n[core]");
  ASSERT_NE(at, std::string::npos);
  CpuMachine machine;
  machine.rates.load = 3;
  const auto read = WithCpuFile(machine, text.substr(0, at), "cpu.toml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_DOUBLE_EQ(read->rates.load, 3);
  EXPECT_DOUBLE_EQ(read->parallel_cycles, 10000);
}

// Five cores read three times as fast as one, so each of the four others adds a half.
TEST(CpuFileTest, OtherNumbersOfCoresReadInProportion) {
  for (const auto& [cores, scaling] : {std::pair(1, 1.0), {2, 1.5}, {3, 2.0}, {64, 3.0}}) {
    CpuMachine machine;
    machine.cores = cores;
    EXPECT_DOUBLE_EQ(WithCpuFile(machine, Text(), "cpu.toml")->memory_scaling, scaling) << cores;
  }
  CpuRates one = kRates;
  one.threads = 1;
  EXPECT_DOUBLE_EQ(WithCpuFile({}, Text(one), "cpu.toml")->memory_scaling, 1);
}

TEST(CpuFileTest, BadFiles) {
  const auto error = [](const std::string& text) {
    return std::string(WithCpuFile({}, text, "cpu.toml").status().message());
  };
  EXPECT_THAT(error(""), HasSubstr("cpu.toml: expected a line: name"));
  EXPECT_THAT(error("name = \"x\"\n[cpu]\nstart = 3\n"),
              HasSubstr("cpu.toml:3: cpu.start must be"));
  EXPECT_THAT(error("name = \"x\"\n[cpu]\nspeed = 3\n"),
              HasSubstr("cpu.toml:3: there is no parameter cpu.speed"));
  EXPECT_THAT(error("name = \"x\"\n[instruction]\nvpfly = 3\n"),
              HasSubstr("cpu.toml:3: there is no parameter instruction.vpfly"));
  std::string text = Text();
  const size_t at = text.find("l1_ways = { value = 12");
  ASSERT_NE(at, std::string::npos);
  EXPECT_THAT(error(text.replace(at, 22, "l1_ways = { value = 0")), HasSubstr("allowed are 2 to"));
}

TEST(CpuFileTest, HostMachineReadsIt) {
  const std::string file = StrCat(testing::TempDir(), "/cpu.toml");
  ASSERT_TRUE(WriteFile(file, Text()).ok());
  setenv("POLYNAO_CPU", file.c_str(), 1);
  EXPECT_DOUBLE_EQ(HostMachine(5)->parallel_cycles, 10000);
  setenv("POLYNAO_CPU", "/there/is/none.toml", 1);
  EXPECT_THAT(std::string(HostMachine(5).status().message()), HasSubstr("/there/is/none.toml"));
  unsetenv("POLYNAO_CPU");
  EXPECT_TRUE(HostMachine(5).ok());
}

}  // namespace
}  // namespace polynao::poly
