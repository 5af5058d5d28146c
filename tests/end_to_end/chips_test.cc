// The cards that stand for published chips run a convolution and a dense layer, with every value checked, and report
// their energy with the table of their node.
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/text.h"
#include "cases/run_case.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "simulator/energy/energy.h"

namespace polynao::cases {
namespace {

using ::testing::HasSubstr;

struct Chip {
  const char* config;
  const char* energy;
};

constexpr Chip kChips[] = {{"diannao", "65nm"}, {"dadiannao", "28nm"}, {"cambricon", "65nm"}};

kernels::OperatorCase Case(const char* op, std::vector<int64_t> shape,
                           std::vector<std::vector<int64_t>> operands, ir::Type type) {
  kernels::OperatorCase c;
  c.op = op;
  c.shape = std::move(shape);
  c.operands = std::move(operands);
  c.dtype = type;
  return c;
}

TEST(Chips, RunLayersWithRightValuesAndReportEnergy) {
  for (const Chip& chip : kChips) {
    for (ir::Type type : {ir::Type::kI8, ir::Type::kI16}) {
      for (const kernels::OperatorCase& c : {Case("conv2d", {14, 14, 16}, {{64, 3, 3, 16}}, type),
                                             Case("conv2d", {9, 7, 8}, {{64, 1, 1, 8}}, type),
                                             Case("matmul", {16, 64}, {{64, 64}}, type),
                                             Case("matmul", {1, 128}, {{64, 128}}, type)}) {
        CaseSettings settings;
        settings.config = chip.config;
        settings.energy = chip.energy;
        SCOPED_TRACE(
            StrCat(chip.config, " ", c.op, " ", kernels::ShapesText(c), " ", ir::TypeName(type)));
        const absl::StatusOr<CaseReport> report = RunCase(c, settings);
        ASSERT_TRUE(report.ok()) << report.status();
        EXPECT_TRUE(report->ok) << report->max_abs_error;
        ASSERT_TRUE(report->energy.has_value());
        // As many products as the layer has, or more where channels are padded.
        EXPECT_GE(report->simulated->actions.macs[static_cast<size_t>(type)],
                  (*kernels::FindOperator(c))->work(c).macs);
        for (const char* component : {"tensor", "nmem", "wmem", "link", "leakage", "dram"}) {
          EXPECT_GT(simulator::ValueOf(report->energy->energy_pj, component), 0) << component;
        }
        // The chip alone takes less than at its peak, since no layer keeps its multipliers busy all the time.
        EXPECT_LT(report->energy->chip_power_mw, report->energy->peak_power_mw);
        const nlohmann::ordered_json json = report->ToJson();
        EXPECT_TRUE(json.contains("energy_pj"));
        EXPECT_TRUE(json.contains("area_mm2"));
        EXPECT_TRUE(json.contains("energy_table"));
      }
    }
  }
}

TEST(Chips, ThePageHasTheirRuns) {
  const auto page = ReadFile("docs/energy.md");
  ASSERT_TRUE(page.ok()) << page.status();
  for (const Chip& chip : kChips) {
    for (const kernels::OperatorCase& c :
         {Case("conv2d", {14, 14, 16}, {{64, 3, 3, 16}}, ir::Type::kI16),
          Case("matmul", {16, 64}, {{64, 64}}, ir::Type::kI16)}) {
      CaseSettings settings;
      settings.config = chip.config;
      settings.energy = chip.energy;
      const absl::StatusOr<CaseReport> report = RunCase(c, settings);
      ASSERT_TRUE(report.ok()) << report.status();
      const simulator::EnergyReport& energy = *report->energy;
      const double total = simulator::Total(energy.energy_pj);
      const std::string row =
          absl::StrFormat("| %s | `%s --shape=%s` | %d | %.2f | %.0f %% | %.0f | %.0f |",
                          chip.config, c.op, kernels::ShapesText(c), report->simulated->cycles,
                          total / 1e6, 100 * simulator::ValueOf(energy.energy_pj, "dram") / total,
                          energy.chip_power_mw, energy.peak_power_mw);
      EXPECT_NE(page->find(row), std::string::npos) << "docs/energy.md lacks:\n" << row;
    }
  }
}

TEST(Chips, LargerLayersTakeMoreEnergy) {
  CaseSettings settings;
  settings.config = "diannao";
  settings.energy = "65nm";
  double before = 0;
  for (int64_t rows : {1, 8, 64}) {
    const auto report = RunCase(Case("matmul", {rows, 64}, {{64, 64}}, ir::Type::kI16), settings);
    ASSERT_TRUE(report.ok()) << report.status();
    const double energy = simulator::Total(report->energy->energy_pj);
    EXPECT_GT(energy, before);
    before = energy;
  }
}

TEST(Chips, EnergyIsOfTheCardAlone) {
  CaseSettings settings;
  settings.energy = "65nm";
  settings.target = "interp";
  const auto c = Case("matmul", {8, 64}, {{64, 64}}, ir::Type::kI8);
  EXPECT_THAT(RunCase(c, settings).status().message(),
              HasSubstr("--energy is of a simulated card: expected --target=diannao, found "
                        "--target=interp"));
  settings.target = "diannao";
  settings.energy = "fast";
  EXPECT_THAT(RunCase(c, settings).status().message(),
              HasSubstr("no energy table is named 'fast'"));
  // Without a table there is none.
  settings.energy = "";
  const auto report = RunCase(c, settings);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->energy.has_value());
  EXPECT_FALSE(report->ToJson().contains("energy_pj"));
}

}  // namespace
}  // namespace polynao::cases
