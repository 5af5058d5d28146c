// Random pipelines of stencils, up- and downsampling, sums, and gathers, fused in random ways, against the program as it is
// written. POLYNAO_RANDOM_CASES=2000 makes it that many programs, POLYNAO_SEED=1000 begins with that one.

#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/poly/fuse/random_pipeline_for_test.h"
#include "compiler/poly/machine_for_test.h"
#include "compiler/poly/poly.h"
#include "testing/fuzz.h"

namespace polynao::poly {
namespace {

TEST(FuseRandomTest, FusedPipelinesMeanTheSame) {
  const uint64_t first = FuzzSeed();
  const auto count = static_cast<uint64_t>(FuzzCases(200));
  std::cout << "seeds " << first << " to " << first + count - 1 << "\n";
  int fused = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    RandomPipeline pipeline(seed);
    const std::string text = pipeline.Text();
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << text);
    const absl::StatusOr<ir::Function> before = ir::ParseFunction(text);
    ASSERT_TRUE(before.ok()) << before.status();
    ScheduleOptions options{.strategy = pipeline.Pick(4) == 0 ? "overlap" : "fuse"};
    options.machine = SmallMachine(8);
    options.parallel = pipeline.Pick(4) > 0;
    options.inline_stages = pipeline.Pick(2) == 0;
    if (pipeline.Pick(5) > 0) {
      options.join_all = true;
      for (int d = 0; d < 2; ++d) options.group_tile.push_back(pipeline.Pick(9));
    }
    ir::Function after = *before;
    const absl::StatusOr<ScheduleReport> report = Schedule(after, options);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_TRUE(report->internal_errors.empty()) << report->ToString();
    fused += report->ToString().find(", with ") != std::string::npos ? 1 : 0;
    ASSERT_EQ(ir::CompareMeaning(*before, after, seed, {.runs = 1}), "")
        << report->ToString() << ir::Print(after);
  }
  std::cout << fused << " of " << count << " programs have a group of stages\n";
  EXPECT_GT(fused * 3, static_cast<int>(count));
}

}  // namespace
}  // namespace polynao::poly
