// No axis is free: every parameter that a machine may have either changes a price or is listed with the reason why it
// has none. And more of anything never costs less. docs/energy.md must have the prices by axis.
#include "simulator/energy/axes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/files.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/machine.h"
#include "isa/machine_rows.h"
#include "simulator/configs/configs_text.h"
#include "simulator/energy/energy.h"
#include "simulator/energy/table.h"

namespace polynao::simulator {
namespace {

using isa::Space;
using isa::Unit;

constexpr std::string_view kTable = "28nm";

using Overrides = std::vector<std::string>;

absl::StatusOr<isa::Machine> MachineOf(std::string_view name, const Overrides& overrides) {
  for (const ConfigText& text : ConfigTexts()) {
    if (text.name == name) return isa::ParseMachine(text.text, name, overrides);
  }
  POLYNAO_UNREACHABLE(std::string(name));
}

// Some of everything that costs energy, in no time.
RunResult SomeWork(const isa::Machine& machine) {
  RunResult run;
  for (ir::Type type : {ir::Type::kI8, ir::Type::kI16, ir::Type::kF16, ir::Type::kF32}) {
    run.actions.macs[static_cast<size_t>(type)] = 1'000'000;
    run.actions.element_ops[static_cast<size_t>(type)] = 10'000;
  }
  run.actions.slow_ops[static_cast<size_t>(ir::Type::kF16)] = 1000;
  for (Space space : {Space::kNmem, Space::kWmem, Space::kSmem, Space::kGmem}) {
    for (Unit unit : {Unit::kVector, Unit::kTensor, Unit::kIoDma, Unit::kMoveDma}) {
      run.actions.bytes[static_cast<size_t>(space)][static_cast<size_t>(unit)] = {100'000, 50'000};
    }
  }
  run.gmem_read = run.gmem_read_moved = 100'000;
  run.gmem_written = run.gmem_written_moved = 50'000;
  run.gmem_read_cached = 50'000;
  if (machine.has_dram()) {
    run.dram.resize(static_cast<size_t>(machine.Get("gmem.channels")));
    run.dram[0] = {.activates = 200, .reads = 1600, .writes = 800, .refreshes = 3};
  }
  return run;
}

struct Price {
  double area_mm2 = 0;
  double static_mw = 0;  // DRAM's standby too
  double run_nj = 0;     // of SomeWork
  bool operator==(const Price&) const = default;
};

absl::StatusOr<Price> PriceOf(std::string_view machine_name, const Overrides& overrides) {
  const absl::StatusOr<isa::Machine> machine = MachineOf(machine_name, overrides);
  if (!machine.ok()) return machine.status();
  const EnergyTable table = LoadEnergyTable(kTable, machine->GetText("gmem.dram")).value();
  const absl::StatusOr<EnergyReport> report = EnergyOf(SomeWork(*machine), *machine, table);
  if (!report.ok()) return report.status();
  return Price{Total(report->area_mm2), Total(report->static_mw), Total(report->energy_pj) / 1e3};
}

// Parameters of which less costs more.
bool LessCostsMore(std::string_view name) {
  // A division in fewer passes takes more multipliers; finer granules of the cache more bits in its tags.
  return name == "vector.slow" || name == "gmem.granule";
}

// What has to hold beside a parameter's value.
Overrides Beside(std::string_view name) {
  if (name == "dram.write_queue") return {"dram.write_high=20", "dram.write_low=10"};
  // Without DRAM a channel has the rate that the file states.
  if (name == "gmem.channel_bytes_per_kilocycle") return {"gmem.dram=flat"};
  // Before DRAM no loads look into the cache.
  if (name == "gmem.cache_reads") return {"gmem.dram=flat"};
  return {};
}

struct Step {
  int64_t from = 0, to = 0;
  Price before, after;
};

// From the machine's value to twice that, or to half of it where twice is not allowed or less costs more; none if
// neither is allowed. From 0 to 64, or to the most there may be.
std::optional<Step> StepOf(std::string_view machine, const isa::ParameterRow& row) {
  const isa::Machine base = MachineOf(machine, Beside(row.name)).value();
  const int64_t* const stated = base.Find(row.name);
  const int64_t value = stated != nullptr                                ? *stated
                        : std::string_view(row.name) == "card.supply_mv" ? 900
                                                                         : row.min;
  const auto price = [&](int64_t v) {
    Overrides overrides = Beside(row.name);
    overrides.push_back(StrCat(row.name, "=", v));
    return PriceOf(machine, overrides);
  };
  std::vector<int64_t> others = {2 * value, value / 2};
  if (LessCostsMore(row.name)) std::swap(others[0], others[1]);
  if (value == 0) others = {std::min<int64_t>(64, row.max)};
  // A supply of twice as much is none.
  if (std::string_view(row.name) == "card.supply_mv") others = {value + 100};
  const absl::StatusOr<Price> before = price(value);
  POLYNAO_CHECK(before.ok()) << machine << " " << row.name << ": " << before.status().message();
  for (int64_t other : others) {
    if (other == value) continue;
    if (const absl::StatusOr<Price> after = price(other); after.ok()) {
      return Step{value, other, *before, *after};
    }
  }
  return std::nullopt;
}

const UnpricedAxis* FindUnpriced(std::string_view name) {
  for (const UnpricedAxis& axis : UnpricedAxes()) {
    if (axis.name == name) return &axis;
  }
  return nullptr;
}

TEST(Axes, NoAxisIsFree) {
  for (const isa::ParameterRow& row : isa::MachineRows()) {
    if (row.is_text) continue;
    const std::string name = row.name;
    const bool is_unpriced = FindUnpriced(name) != nullptr;
    for (const char* machine : {"mlu270", "mlu290", "mlu370"}) {
      const std::optional<Step> step = StepOf(machine, row);
      if (!step) {
        ADD_FAILURE() << machine << ": neither twice nor half of " << name
                      << " is allowed: see Beside in this test";
        continue;
      }
      const bool is_more = (step->to > step->from) != LessCostsMore(name);
      const Price& low = is_more ? step->before : step->after;
      const Price& high = is_more ? step->after : step->before;
      SCOPED_TRACE(StrCat(machine, ", ", name, " ", step->from, " -> ", step->to, ": ",
                          step->before.area_mm2, " -> ", step->after.area_mm2, " mm2, ",
                          step->before.static_mw, " -> ", step->after.static_mw, " mW, ",
                          step->before.run_nj, " -> ", step->after.run_nj, " nJ"));
      if (is_unpriced) {
        EXPECT_EQ(low, high) << "has a price: drop it from axes.cc";
        continue;
      }
      EXPECT_TRUE(high.area_mm2 > low.area_mm2 || high.static_mw > low.static_mw ||
                  high.run_nj > low.run_nj || (row.max == 1 && low != high))
          << "is free: give it a price in components.cc, or list it in axes.cc with the reason";
    }
  }
}

TEST(Axes, MoreOfAnythingNeverCostsLess) {
  for (const ConfigText& machine : ConfigTexts()) {
    for (const isa::ParameterRow& row : isa::MachineRows()) {
      const std::string name = row.name;
      // Embedded DRAM is another memory, not more of one. Of other parameters 0 is no limit, or no lines.
      const bool is_switch = name == "core.wmem_edram" || name == "cluster.smem_edram";
      if (row.is_text || is_switch || FindUnpriced(name) != nullptr) continue;
      const absl::StatusOr<isa::Machine> base = MachineOf(machine.name, Beside(name));
      if (!base.ok()) continue;  // no DRAM, so none of its parameters
      const int64_t* const stated = base->Find(name);
      if (stated == nullptr || *stated == 0) continue;
      std::optional<Price> less;
      for (int64_t times : {1, 2, 4, 8, 16}) {
        Overrides overrides = Beside(name);
        overrides.push_back(StrCat(name, "=", *stated * times));
        const absl::StatusOr<Price> price = PriceOf(machine.name, overrides);
        if (!price.ok()) break;
        if (less) {
          SCOPED_TRACE(StrCat(machine.name, ", ", overrides.back()));
          const Price& low = LessCostsMore(name) ? *price : *less;
          const Price& high = LessCostsMore(name) ? *less : *price;
          EXPECT_GE(high.area_mm2, low.area_mm2);
          EXPECT_GE(high.static_mw, low.static_mw);
        }
        less = *price;
      }
    }
  }
}

TEST(Axes, LargerMemoriesAndSuppliesTakeMoreForEachAccess) {
  for (const char* machine : {"mlu270", "mlu370"}) {
    const double before = PriceOf(machine, {}).value().run_nj;
    for (const char* more : {"core.nmem_kib=2048", "core.wmem_kib=4096", "cluster.smem_kib=8192",
                             "card.supply_mv=1000", "card.clock_mhz=2000", "card.clusters=16"}) {
      EXPECT_GT(PriceOf(machine, {more}).value().run_nj, before) << machine << " " << more;
    }
  }
}

TEST(Axes, EachDramHasPricesOfItsOwn) {
  std::set<std::tuple<double, double, double>> seen;
  for (const char* dram : {"ddr4_3200", "lpddr5", "hbm2", "flat"}) {
    const Price price = PriceOf("mlu270", {StrCat("gmem.dram=", dram)}).value();
    EXPECT_TRUE(seen.insert({price.area_mm2, price.static_mw, price.run_nj}).second) << dram;
  }
}

TEST(Axes, TheListNamesParametersOnce) {
  std::set<std::string_view> seen;
  for (const UnpricedAxis& axis : UnpricedAxes()) {
    EXPECT_TRUE(seen.insert(axis.name).second) << axis.name << " comes twice";
    EXPECT_NE(isa::FindParameter(isa::MachineRows(), axis.name), nullptr)
        << axis.name << " is no parameter";
    EXPECT_FALSE(axis.reason.empty());
  }
}

std::string Percent(double before, double after) {
  return before == after ? "=" : absl::StrFormat("%+.2g %%", 100 * (after / before - 1));
}

// The block of docs/energy.md.
std::string PricesByAxis() {
  std::string text;
  for (const char* machine : {"mlu270", "mlu370"}) {
    const Price base = PriceOf(machine, {}).value();
    absl::StrAppendFormat(&text, "`%s`, %s: %.1f mm2, %.0f mW, %.0f nJ\n\n", machine,
                          std::string(kTable), base.area_mm2, base.static_mw, base.run_nj);
    StrAppend(&text, "| axis | from, to | area | static power | energy |\n|---|---|---|---|---|\n");
    for (const isa::ParameterRow& row : isa::MachineRows()) {
      if (row.is_text || FindUnpriced(row.name) != nullptr) continue;
      const std::optional<Step> step = StepOf(machine, row);
      if (!step) continue;
      absl::StrAppendFormat(&text, "| `%s` | %d, %d | %s | %s | %s |\n", row.name, step->from,
                            step->to, Percent(step->before.area_mm2, step->after.area_mm2),
                            Percent(step->before.static_mw, step->after.static_mw),
                            Percent(step->before.run_nj, step->after.run_nj));
    }
    StrAppend(&text, "\n");
  }
  StrAppend(&text, "Without a price:\n\n| parameters | since |\n|---|---|\n");
  std::vector<std::string_view> reasons;
  std::map<std::string_view, std::string> names;
  for (const UnpricedAxis& axis : UnpricedAxes()) {
    if (!names.contains(axis.reason)) reasons.push_back(axis.reason);
    std::string& list = names[axis.reason];
    StrAppend(&list, list.empty() ? "" : ", ", "`", axis.name, "`");
  }
  for (std::string_view reason : reasons) {
    StrAppend(&text, "| ", names[reason], " | ", reason, " |\n");
  }
  return text;
}

TEST(Axes, ThePageHasThePrices) {
  const auto page = ReadFile("docs/energy.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string expected = PricesByAxis();
  EXPECT_NE(page->find(expected), std::string::npos) << "docs/energy.md lacks:\n" << expected;
}

}  // namespace
}  // namespace polynao::simulator
