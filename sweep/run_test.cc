#include "sweep/run.h"

#include "base/files.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/instructions_text.h"
#include "simulator/simulator.h"

namespace polynao::sweep {
namespace {

// Cycles of a case that is compiled for this one machine.
double FreshCycles(const Entry& entry, const std::vector<std::string>& overrides) {
  const absl::StatusOr<isa::Machine> machine = cases::LoadMachine("mlu270", overrides);
  EXPECT_TRUE(machine.ok()) << machine.status();
  const Target target = *MakeTarget("diannao", &*machine);
  kernels::OperatorCase c = entry.operator_case;
  c.use_tuned = false;
  absl::StatusOr<cases::BuiltProgram> built = cases::BuildProgram(c, target, entry.impl);
  EXPECT_TRUE(built.ok()) << built.status();
  std::vector<ir::Tensor> tensors;
  for (const kernels::TensorSpec& spec : (*kernels::FindOperator(c))->tensors(c)) {
    tensors.emplace_back(spec.type, spec.shape);
  }
  if (built->prepare) tensors[0] = built->prepare(tensors[0]);
  simulator::RunOptions options;
  options.machine = &*machine;
  options.check_hazards = false;
  const auto result = simulator::Run(isa::DianNao(), built->program,
                                     cases::ProgramArguments(*built, tensors), options);
  EXPECT_TRUE(result.ok()) << result.status();
  return static_cast<double>(result->cycles);
}

// Points that differ in parameters of which no list spoke: the schedule of a grouped convolution reads these.
TEST(RunSweep, CompilesAgainWhereWhatWasReadDiffers) {
  const isa::Machine machine = *cases::LoadMachine("mlu270", {});
  const Target target = *MakeTarget("diannao", &machine);
  Entry entry;
  entry.name = "groups";
  entry.operator_case = *cases::ParseCase(
      {.op = "conv2d", .shape = "28x28x64,64x3x3x16", .dtype = "i8", .attributes = {"groups=4"}},
      target);
  const std::vector<Axis> axes = {{"smem.latency", {"1", "10000"}},
                                  {"move_dma.outstanding", {"1", "4096"}}};
  const absl::StatusOr<Table> table = RunSweep({}, axes, {entry}, 2);
  ASSERT_TRUE(table.ok()) << table.status();
  const std::vector<Point> points = Points(axes);
  ASSERT_EQ(table->rows.size(), points.size());
  for (size_t p = 0; p < points.size(); ++p) {
    EXPECT_EQ(table->rows[p].error, "");
    EXPECT_EQ(table->rows[p].metrics.at("cycles"), FreshCycles(entry, Overrides(axes, points[p])))
        << p;
  }
}

std::string Written(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  EXPECT_TRUE(WriteFile(path, text).ok());
  return path;
}

// A row that adds and cuts off at 0 serves an operator that has both in computes of their own; a table without
// additions has no program for it.
TEST(RunSweep, TablesOfInstructionsAreAnAxis) {
  std::string fewer(isa::InstructionsText());
  for (const char* row : {"((_NAME, _OP), (add, +), (sub, -), (mul, *))"}) {
    const size_t at = fewer.find(row);
    ASSERT_NE(at, std::string::npos) << row;
    fewer.replace(at, std::string(row).size(), "((_NAME, _OP), (sub, -), (mul, *))");
  }
  Setting setting;
  ASSERT_TRUE(LoadTables({Written("none.nir", "// no rows\n"), Written("row.nir", R"(
@doc("dst = the sum of lhs and rhs, or 0 if that is larger.")
@opcode(201)
@unit(vector)
@require(count % 64 == 0)
@require(&dst[0] % 128 == 0, &lhs[0] % 128 == 0, &rhs[0] % 128 == 0)
@cost(vector.start + (count * 2 + vector.bytes - 1) / vector.bytes)
func plus_relu(dst: f16[count] @nmem out, lhs: f16[count] @nmem in, rhs: f16[count] @nmem in, count: i64) {
  for (i: i64, 0, count) { dst[i] = max(lhs[i] + rhs[i], 0.0) }
}
)"),
                          Written("fewer.nir", fewer)},
                         setting)
                  .ok());
  EXPECT_THAT(std::string(LoadTables({testing::TempDir() + "/row.nir"}, setting).message()),
              testing::HasSubstr("the name row comes twice"));
  const isa::Machine machine = *cases::LoadMachine("mlu270", {});
  const Target target = *MakeTarget("diannao", &machine);
  std::vector<Entry> entries(2);
  entries[0].name = "add_relu";
  entries[1].name = "relu";
  for (Entry& entry : entries) {
    entry.operator_case =
        *cases::ParseCase({.op = entry.name, .shape = "100x1000", .dtype = "f16"}, target);
  }
  const absl::StatusOr<Table> table =
      RunSweep(setting, {{"vector.bytes", {"64", "128"}}}, entries, 2);
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->axes.back(), (Axis{std::string(kInstructionsAxis), {"none", "row", "fewer"}}));
  ASSERT_EQ(table->rows.size(), 2u * 3 * 2);
  for (int64_t machine_point : {0, 1}) {
    const auto row = [&](int64_t of_table, size_t program) -> const Row& {
      return table->rows[static_cast<size_t>(machine_point * 3 + of_table) * 2 + program];
    };
    EXPECT_LT(row(1, 0).metrics.at("cycles"), row(0, 0).metrics.at("cycles"));
    EXPECT_EQ(row(1, 1).metrics, row(0, 1).metrics);
    EXPECT_EQ(row(2, 1).metrics, row(0, 1).metrics);
    EXPECT_NE(row(2, 0).error, "");
  }
}

}  // namespace
}  // namespace polynao::sweep
