#include "sweep/run.h"
#include "compiler/target/target.h"

#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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

}  // namespace
}  // namespace polynao::sweep
