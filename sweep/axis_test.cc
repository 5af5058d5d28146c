#include "sweep/axis.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/machine.h"

namespace polynao::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(const absl::Status& status) { return std::string(status.message()); }

TEST(Axis, Parses) {
  const auto axis = ParseAxis("core.nmem_kib=256,512");
  ASSERT_TRUE(axis.ok()) << axis.status();
  EXPECT_EQ(axis->name, "core.nmem_kib");
  EXPECT_THAT(axis->values, ElementsAre("256", "512"));
  EXPECT_EQ(ErrorOf(ParseAxis("core.nmem_kib").status()),
            "axis 'core.nmem_kib': expected NAME=VALUE,VALUE,..");
  EXPECT_THAT(ErrorOf(ParseAxis("=1").status()), HasSubstr("expected NAME=VALUE"));
  EXPECT_THAT(ErrorOf(ParseAxis("a=").status()), HasSubstr("found an empty one"));
  EXPECT_THAT(ErrorOf(ParseAxis("a=1,,2").status()), HasSubstr("found an empty one"));
  EXPECT_EQ(ErrorOf(ParseAxis("a=1,2,1").status()), "axis 'a=1,2,1': the value 1 comes twice");
}

TEST(Axis, MustBeAParameter) {
  const isa::Machine machine = TestMachine("mlu270");
  EXPECT_TRUE(
      CheckAxes({{"core.nmem_kib", {"1"}}, {"gmem.dram", {"flat"}}, {"dram.cl", {"1"}}}, machine)
          .ok());
  EXPECT_EQ(ErrorOf(CheckAxes({{"core.nmem_kb", {"1"}}}, machine)),
            "axis core.nmem_kb: machine mlu270 has no such parameter; names like it: "
            "core.nmem_kib, core.wmem_kib, core.nmem_line");
  EXPECT_THAT(ErrorOf(CheckAxes({{"nmem_kib", {"1"}}}, machine)),
              HasSubstr("names like it: core.nmem_kib"));
  EXPECT_EQ(ErrorOf(CheckAxes({{"gmem.mib", {"1"}}, {"gmem.mib", {"2"}}}, machine)),
            "axis gmem.mib comes twice");
  // What a file need not state.
  EXPECT_TRUE(CheckAxes({{"card.supply_mv", {"900", "1000"}}}, machine).ok());
  const isa::Machine flat = FlatMachine();
  EXPECT_THAT(ErrorOf(CheckAxes({{"dram.cl", {"1"}}}, flat)), HasSubstr("no such parameter"));
  EXPECT_TRUE(CheckAxes({{"dram.cl", {"1"}}, {"gmem.dram", {"flat", "ddr4_3200"}}}, flat).ok());
}

TEST(Axis, PointsAreAllCombinationsTheFirstAxisSlowest) {
  const std::vector<Axis> axes = {{"a", {"1", "2"}}, {"b", {"x", "y", "z"}}};
  EXPECT_THAT(Points(axes), ElementsAre(Point{"1", "x"}, Point{"1", "y"}, Point{"1", "z"},
                                        Point{"2", "x"}, Point{"2", "y"}, Point{"2", "z"}));
  EXPECT_THAT(Points({}), ElementsAre(Point{}));
  EXPECT_THAT(Overrides(axes, {"2", "y"}), ElementsAre("a=2", "b=y"));
}

}  // namespace
}  // namespace polynao::sweep
