#include "simulator/energy/energy.h"

#include <cmath>

#include "base/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/actions.h"
#include "isa/machine.h"
#include "simulator/energy/table.h"
#include "simulator/report.h"
#include "simulator/testing.h"

namespace polynao::simulator {
namespace {

using isa::Space;
using isa::Unit;
using testing::HasSubstr;

const EnergyTable& Table() {
  static const auto* table = new EnergyTable(LoadEnergyTable("45nm").value());
  return *table;
}

EnergyReport Energy(const RunResult& result, const isa::Machine& machine) {
  auto report = EnergyOf(result, machine, Table());
  POLYNAO_CHECK(report.ok()) << report.status().message();
  return *std::move(report);
}

isa::ActionCounts::Bytes& BytesOf(RunResult& result, Space space, Unit unit) {
  return result.actions.bytes[static_cast<size_t>(space)][static_cast<size_t>(unit)];
}

TEST(Energy, ComponentsAreCountsTimesRows) {
  const isa::Machine machine = TestMachine("unit");
  RunResult result;
  result.actions.macs[static_cast<size_t>(ir::Type::kI8)] = 1000;
  result.actions.element_ops[static_cast<size_t>(ir::Type::kF16)] = 200;
  result.actions.slow_ops[static_cast<size_t>(ir::Type::kF16)] = 10;
  result.gmem_read = 640;
  result.gmem_read_moved = 1024;
  const EnergyReport report = Energy(result, machine);
  EXPECT_DOUBLE_EQ(ValueOf(report.energy_pj, "tensor"), 1000 * 0.3);
  EXPECT_DOUBLE_EQ(ValueOf(report.energy_pj, "vector"), 200 * 0.75 + 10 * 3);
  // Half of the side of the chip without links, controllers and PHYs.
  const ByComponent area = AreaOf(machine, Table());
  const double inner =
      Total(area) - ValueOf(area, "link") - ValueOf(area, "controller") - ValueOf(area, "phy");
  EXPECT_DOUBLE_EQ(ValueOf(report.energy_pj, "link"), 640 * 0.64 * std::sqrt(inner) / 2);
  EXPECT_DOUBLE_EQ(ValueOf(report.energy_pj, "dram"), 1024 * 8 * 20.3);
  EXPECT_EQ(ValueOf(report.energy_pj, "nmem"), 0);
  // No time has passed.
  EXPECT_EQ(ValueOf(report.energy_pj, "leakage"), 0);
  EXPECT_EQ(report.average_power_mw, 0);
}

TEST(Energy, LeakageGrowsWithTimeAndPowerIsEnergyByTime) {
  const isa::Machine machine = TestMachine("unit");
  RunResult result;
  result.end_cycle = 1'000'000;  // a millisecond
  const EnergyReport once = Energy(result, machine);
  result.end_cycle = 2'000'000;
  const EnergyReport twice = Energy(result, machine);
  EXPECT_DOUBLE_EQ(once.seconds, 1e-3);
  EXPECT_GT(Total(once.energy_pj), 0);
  EXPECT_DOUBLE_EQ(Total(twice.energy_pj), 2 * Total(once.energy_pj));
  EXPECT_DOUBLE_EQ(once.average_power_mw, twice.average_power_mw);
  // pJ by s is 10^-9 mW.
  EXPECT_DOUBLE_EQ(once.average_power_mw, Total(once.energy_pj) / once.seconds * 1e-9);
  EXPECT_DOUBLE_EQ(once.energy_delay_pj_s, Total(once.energy_pj) * 1e-3);
  // All that an idle card takes, its peak has too.
  EXPECT_DOUBLE_EQ(once.average_power_mw, ValueOf(PeakPower(machine, Table()).value(), "leakage"));
}

TEST(Energy, MoreBytesTakeMoreEnergy) {
  const isa::Machine machine = TestMachine("mlu270");
  for (Space space : {Space::kSmem, Space::kNmem, Space::kWmem}) {
    for (Unit unit : {Unit::kVector, Unit::kTensor, Unit::kIoDma, Unit::kMoveDma, Unit::kScalar}) {
      RunResult result;
      double before = Total(Energy(result, machine).energy_pj);
      for (int step = 0; step < 4; ++step) {
        int64_t& bytes = step % 2 == 0 ? BytesOf(result, space, unit).read
                                       : BytesOf(result, space, unit).written;
        bytes += 64;
        const double after = Total(Energy(result, machine).energy_pj);
        EXPECT_GT(after, before);
        before = after;
      }
    }
  }
  RunResult result;
  const double none = Total(Energy(result, machine).energy_pj);
  result.gmem_written_moved = 64;
  const double moved = Total(Energy(result, machine).energy_pj);
  EXPECT_GT(moved, none);
  // The cache takes less than DRAM, where loads look into it.
  const isa::Machine flat = FlatMachine();
  const double moved_flat = Total(Energy(result, flat).energy_pj);
  result.gmem_written_moved = 0;
  result.gmem_read_cached = 64;
  const double cached = Total(Energy(result, flat).energy_pj);
  EXPECT_GT(cached, none);
  EXPECT_LT(cached, moved_flat);
}

TEST(Energy, LargerMemoriesTakeMoreAreaAndMoreEnergyAnAccess) {
  struct Case {
    const char* component;
    const char* less;
    const char* more;
    Space space;
  };
  const Case cases[] = {{"nmem", "core.nmem_kib=256", "core.nmem_kib=512", Space::kNmem},
                        {"wmem", "core.wmem_kib=512", "core.wmem_kib=1024", Space::kWmem},
                        {"smem", "cluster.smem_kib=1024", "cluster.smem_kib=2048", Space::kSmem}};
  for (const Case& c : cases) {
    const isa::Machine less = TestMachine("mlu270", {c.less});
    const isa::Machine more = TestMachine("mlu270", {c.more});
    EXPECT_LT(ValueOf(AreaOf(less, Table()), c.component),
              ValueOf(AreaOf(more, Table()), c.component));
    RunResult result;
    BytesOf(result, c.space, Unit::kMoveDma).read = 4096;
    EXPECT_LT(ValueOf(Energy(result, less).energy_pj, c.component),
              ValueOf(Energy(result, more).energy_pj, c.component));
  }
}

TEST(Energy, AreaGrowsWithUnitsAndCores) {
  const auto area = [](const std::vector<std::string>& overrides, const char* component) {
    return ValueOf(AreaOf(TestMachine("mlu270", overrides), Table()), component);
  };
  EXPECT_DOUBLE_EQ(area({"cluster.cores=8"}, "tensor"), 2 * area({}, "tensor"));
  EXPECT_DOUBLE_EQ(area({"vector.bytes=256"}, "vector"), 2 * area({}, "vector"));
  EXPECT_DOUBLE_EQ(area({"card.clusters=8"}, "smem"), 2 * area({}, "smem"));
  // Multipliers of 16 bits serve 8 bits; each product needs an adder.
  EXPECT_EQ(area({"tensor.macs_i8=0"}, "tensor"), area({"tensor.macs_i8=2048"}, "tensor"));
  EXPECT_GT(area({}, "tensor"), area({"tensor.macs_i8=2048"}, "tensor"));
  // Dividing in fewer passes takes more multipliers, in more it takes no fewer than there are.
  EXPECT_GT(area({"vector.slow=2"}, "vector"), 1.5 * area({}, "vector"));
  EXPECT_EQ(area({"vector.slow=8"}, "vector"), area({}, "vector"));
  EXPECT_EQ(area({"gmem.cache_kib=0"}, "cache"), 0);
  // Embedded DRAM is smaller.
  EXPECT_LT(area({"core.wmem_edram=1"}, "wmem"), area({}, "wmem"));
  EXPECT_LT(area({"cluster.smem_edram=1"}, "smem"), area({}, "smem"));
}

TEST(Energy, CommandsOfDramCostTheirRows) {
  RunResult result;
  result.gmem_read_moved = 1 << 20;  // counts only where there are no commands
  result.dram.resize(2);
  result.dram[0] = {.activates = 3, .reads = 10, .refreshes = 1};
  result.dram[1] = {.activates = 2, .writes = 4};
  const double pj = ValueOf(Energy(result, TestMachine("unit")).energy_pj, "dram");
  EXPECT_DOUBLE_EQ(pj, 5 * 6000 + 10 * 2930 + 4 * 2500 + 685000 + 14 * 512 * 5);
  ++result.dram[1].reads;
  EXPECT_GT(ValueOf(Energy(result, TestMachine("unit")).energy_pj, "dram"), pj);
}

TEST(Energy, DramStandsByForAsLongAsTheRunLasts) {
  // IDD3N of eight chips at 1.2 V on four channels: the 1.8 W of the preset's figures.
  const isa::Machine machine = TestMachine("mlu270");
  EXPECT_DOUBLE_EQ(DramStandbyOf(machine, Table()).active_mw, 4 * 8 * 46 * 1.2);
  EXPECT_DOUBLE_EQ(DramStandbyOf(machine, Table()).precharged_mw, 4 * 8 * 37 * 1.2);
  RunResult result;
  result.end_cycle = 1'000'000;  // a millisecond
  result.dram.resize(4);
  const auto standby_mw = [&] {
    double rest = 0;  // of the ACT
    for (const DramCounters& channel : result.dram) {
      rest += 6000 * static_cast<double>(channel.activates);
    }
    return (ValueOf(Energy(result, machine).energy_pj, "dram") - rest) / 1e6;
  };
  EXPECT_NEAR(standby_mw(), 4 * 8 * 37 * 1.2, 1e-6);
  // A channel of which a row was opened.
  result.dram[0].activates = 1;
  EXPECT_NEAR(standby_mw(), (8 * 46 + 3 * 8 * 37) * 1.2, 1e-6);
  // Where GMEM is flat, its energy for a bit is all there is.
  EXPECT_EQ(DramStandbyOf(TestMachine("unit"), Table()).active_mw, 0);
}

TEST(Energy, TheCacheIsFilledOnlyWhereLoadsLookIntoIt) {
  RunResult result;
  result.gmem_read_moved = 4096;
  const std::vector<std::string> flat = {"gmem.dram=flat", "gmem.cache_reads=0"};
  const std::vector<std::string> cached = {"gmem.dram=flat", "gmem.cache_reads=1"};
  const auto cache = [&](const std::vector<std::string>& overrides) {
    return ValueOf(Energy(result, TestMachine("mlu270", overrides)).energy_pj, "cache");
  };
  EXPECT_EQ(cache(flat), 0);
  EXPECT_GT(cache(cached), 0);
  // It is there, and leaks, in either case.
  const isa::Machine machine = TestMachine("mlu270", flat);
  EXPECT_GT(ValueOf(AreaOf(machine, Table()), "cache"), 0);
  EXPECT_GT(ValueOf(StaticPowerOf(machine, Table()).value(), "cache"), 0);
}

TEST(Energy, DynamicEnergyIsOfTheSquareOfTheSupplyAndLeakageOfItsCube) {
  RunResult work, time;
  work.actions.macs[static_cast<size_t>(ir::Type::kI8)] = 1000;
  time.end_cycle = 1000;
  const isa::Machine rated = TestMachine("unit");
  const isa::Machine more = TestMachine("unit", {"card.supply_mv=1000"});
  EXPECT_DOUBLE_EQ(Energy(work, rated).point.volts, 0.9);
  EXPECT_DOUBLE_EQ(Total(Energy(work, more).energy_pj) / Total(Energy(work, rated).energy_pj),
                   1 / 0.81);
  EXPECT_DOUBLE_EQ(Total(Energy(time, more).energy_pj) / Total(Energy(time, rated).energy_pj),
                   1 / 0.729);
  // A slower clock needs less, and takes longer.
  const isa::Machine slow = TestMachine("unit", {"card.clock_mhz=500"});
  EXPECT_LT(Energy(work, slow).point.volts, 0.9);
  EXPECT_LT(Total(Energy(work, slow).energy_pj), Total(Energy(work, rated).energy_pj));
  EXPECT_EQ(Total(AreaOf(TestMachine("unit", {"card.supply_mv=1000"}), Table())),
            Total(AreaOf(rated, Table())));
}

TEST(Energy, ClocksThatNoSupplyMeetsAreErrors) {
  EXPECT_THAT(
      EnergyOf({}, TestMachine("unit", {"card.clock_mhz=9000"}), Table()).status().message(),
      testing::MatchesRegex("energy table 45nm,ddr4_3200: card.clock_mhz: expected at most [0-9]+ "
                            "MHz, which 45 nm meets at 1.3 V, found 9000"));
  EXPECT_THAT(EnergyOf({}, TestMachine("unit", {"card.supply_mv=800"}), Table()).status().message(),
              HasSubstr("energy table 45nm,ddr4_3200: card.supply_mv: expected at least 900 for "
                        "card.clock_mhz 1000, found 800"));
}

TEST(Energy, OperationsWithoutARowAreErrors) {
  RunResult result;
  result.actions.element_ops[static_cast<size_t>(ir::Type::kF64)] = 3;
  EXPECT_THAT(EnergyOf(result, TestMachine("unit"), Table()).status().message(),
              HasSubstr("energy table 45nm,ddr4_3200 has no row vector.op_f64_fj"));
}

TEST(Energy, ARunsEnergyIsThatOfItsInstructions) {
  // One load of 128 elements, one addition, one store, on core 0 of a machine without a cache.
  const isa::Machine machine = TestMachine("unit");
  ir::Tensor x(ir::Type::kF16, {128}), out(ir::Type::kF16, {128});
  const isa::Program program = OnCore0(".tensor x f16 any in\n.tensor out f16 any out", R"(
  arg r5, 8
  arg r6, 9
  li r7, 128
  memcpy.f16.nmem.gmem r0, r5, r7, r1, r0, r0
  add.f16 r0, r0, r0, r7
  sync
  memcpy.f16.gmem.nmem r6, r0, r7, r1, r0, r0
)");
  const auto run = RunProgram(machine, program, {Argument::Of(&x), Argument::Of(&out)});
  ASSERT_TRUE(run.ok()) << run.status();
  const isa::ActionCounts& actions = run->actions;
  EXPECT_EQ(actions.element_ops[static_cast<size_t>(ir::Type::kF16)], 128);
  EXPECT_EQ(actions.BytesOf(Space::kNmem, Unit::kVector), (isa::ActionCounts::Bytes{512, 256}));
  EXPECT_EQ(actions.BytesOf(Space::kNmem, Unit::kIoDma), (isa::ActionCounts::Bytes{256, 256}));
  EXPECT_EQ(actions.BytesOf(Space::kGmem, Unit::kIoDma), (isa::ActionCounts::Bytes{256, 256}));
  // Rows of the report have them too, for a second model to agree with.
  EXPECT_THAT(run->Rows(), testing::Contains(testing::Pair("actions.nmem.vector.read", 512)));

  const EnergyReport report = Energy(*run, machine);
  double sum = 0;
  for (const auto& [name, value] : report.energy_pj) {
    EXPECT_GE(value, 0) << name;
    sum += value;
  }
  EXPECT_DOUBLE_EQ(sum, Total(report.energy_pj));
  EXPECT_DOUBLE_EQ(ValueOf(report.energy_pj, "vector"), 128 * 0.75);
  EXPECT_DOUBLE_EQ(ValueOf(report.energy_pj, "scalar"),
                   static_cast<double>(run->instruction_count()) * 70);
  EXPECT_DOUBLE_EQ(ValueOf(report.energy_pj, "dram"), 512 * 8 * 20.3);
  EXPECT_GT(report.average_power_mw, report.chip_power_mw);
  // The same run, the same energy.
  const auto again = RunProgram(machine, program, {Argument::Of(&x), Argument::Of(&out)});
  EXPECT_EQ(Energy(*again, machine).energy_pj, report.energy_pj);
}

}  // namespace
}  // namespace polynao::simulator
