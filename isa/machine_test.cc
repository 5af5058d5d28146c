#include "isa/machine.h"

#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::isa {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_DOUBLE_EQ(machine->gmem_bytes_per_cycle(), 102.4);
  EXPECT_DOUBLE_EQ(machine->clock_ghz(), 1.0);
  EXPECT_EQ(machine->parameters.at("vector.start"), 16);
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

TEST(Machine, ListsParametersInFileOrderWithTheirSources) {
  const auto list = ListParameters(Config("mlu270"), "m.toml");
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->front().name, "card.clusters");
  EXPECT_EQ(list->back().name, "sync.global");
  for (const MachineParameter& parameter : *list) {
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

TEST(Bound, IsTheSlowestResource) {
  const auto machine = ParseMachine(Config("mlu270"), "m.toml");
  ASSERT_TRUE(machine.ok());
  const auto bound = [&](const Work& work) { return BoundCycles(*machine, work).value(); };
  EXPECT_EQ(bound({}), 0);
  EXPECT_EQ(bound({.gmem_bytes = 1}), 1);
  EXPECT_EQ(bound({.gmem_bytes = 1024}), 10);
  EXPECT_EQ(bound({.gmem_bytes = 1025}), 11);
  EXPECT_EQ(bound({.macs = 16 * 4096 * 7}), 7);
  EXPECT_EQ(bound({.macs = 16 * 4096 * 7, .mac_type = ir::Type::kI16}), 14);
  EXPECT_EQ(bound({.vector_elements = 16 * 64 * 3 + 1}), 4);
  EXPECT_EQ(bound({.vector_elements = 16 * 64 * 3, .vector_type = ir::Type::kF32}), 6);
  EXPECT_EQ(bound({.gmem_bytes = 10240, .vector_elements = 16 * 64 * 3}), 100);
  const auto none = BoundCycles(*machine, {.macs = 1, .mac_type = ir::Type::kF16});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("no tensor unit for f16"));
}

}  // namespace
}  // namespace polynao::isa
