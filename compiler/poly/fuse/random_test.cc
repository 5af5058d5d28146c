// Random pipelines of stencils, up- and downsampling, sums, windows of parametric size, gathers, updates in place and
// arrays of which a loop decides the size, fused in random ways, against the program as it is written; and the counts
// of the report against the stores that run. POLYNAO_RANDOM_CASES=2000 makes it that many programs, POLYNAO_SEED=1000
// begins with that one.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <regex>
#include <string>

#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/fuse/count_stores_for_test.h"
#include "compiler/poly/fuse/random_pipeline_for_test.h"
#include "compiler/poly/poly.h"
#include "testing/fuzz.h"

namespace polynao::poly {
namespace {

// Whether the report's counts could be compared with stores that run: "auto" keeps no sums in registers.
bool CompareCounts(const ir::Function& before, const ir::Function& after,
                   const ScheduleReport& report, const ScheduleOptions& options) {
  const std::string text = report.ToString();
  // Sums in registers, and what is beyond the edges of packed tiles, are stored more often.
  for (const char* other : {"adds up", "in registers", "packed in tiles"}) {
    if (text.find(other) != std::string::npos) return false;
  }
  InstanceCount all;
  for (const PartReport& part : report.parts) {
    if (!part.changed) return false;
    for (const GroupReport& group : part.groups) {
      EXPECT_TRUE(group.instances.has_value()) << group.not_counted;
      if (!group.instances) return false;
      all.run += group.instances->run;
    }
    EXPECT_TRUE(part.exist.has_value());
    all.exist += part.exist.value_or(0);
  }
  const auto stores = StoreCounter::Count(before, 1), now = StoreCounter::Count(after, 1);
  EXPECT_EQ(all.run, Sum(now)) << report.ToString();
  // With arrays computed where they are read, there are fewer instances.
  if (!options.inline_stages) EXPECT_EQ(all.exist, Sum(stores)) << report.ToString();
  // What lives on is stored as often as before.
  for (const ir::Param& param : before.params) {
    const auto it = stores.find(param.buffer->name);
    if (it == stores.end()) continue;
    // Loops without iterations leave no store.
    const auto left = now.find(it->first);
    EXPECT_EQ(left == now.end() ? 0 : left->second, it->second) << report.ToString();
  }
  return true;
}

TEST(FuseRandomTest, FusedPipelinesMeanTheSame) {
  const uint64_t first = FuzzSeed();
  const auto count = static_cast<uint64_t>(FuzzCases(50));
  std::cout << "seeds " << first << " to " << first + count - 1 << "\n";
  int fused = 0, counted = 0, slid = 0, joined = 0, split = 0, late = 0, parametric = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    RandomPipeline pipeline(seed);
    const std::string text = pipeline.Text();
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << text);
    const absl::StatusOr<ir::Function> before = ir::ParseFunction(text);
    ASSERT_TRUE(before.ok()) << before.status();
    ScheduleOptions options{.strategy = pipeline.Pick(4) == 0 ? "overlap" : "fuse"};
    options.machine = SmallMachine(8);
    options.windows =
        static_cast<Windows>(std::min(pipeline.Pick(4), 2));  // mostly wherever there are rows
    options.parallel = pipeline.Pick(4) > 0;
    options.inline_stages = pipeline.Pick(2) == 0;
    if (pipeline.Pick(5) > 0) {
      options.join_all = true;
      for (int d = 0; d < 2; ++d) options.group_tile.push_back(pipeline.Pick(9));
    }
    const bool counts = seed % 4 == 0 && !pipeline.has_parameters();
    options.count = counts;
    ir::Function after = *before;
    const absl::StatusOr<ScheduleReport> report = Schedule(after, options);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_TRUE(report->internal_errors.empty()) << report->ToString();
    slid += report->ToString().find("row by row") != std::string::npos ? 1 : 0;
    joined +=
        std::regex_search(report->ToString(), std::regex("t[0-9]+\\+t[0-9]+.* in tiles")) ? 1 : 0;
    split += std::regex_search(report->ToString(), std::regex("t[0-9]+\\.[01]")) ? 1 : 0;
    late += report->ToString().find("_new") != std::string::npos ? 1 : 0;
    parametric += pipeline.has_parameters() ? 1 : 0;
    fused += report->ToString().find(", with ") != std::string::npos ? 1 : 0;
    const int runs = pipeline.has_parameters() ? 3 : 1;
    ASSERT_EQ(ir::CompareMeaning(*before, after, seed, {.runs = runs}), "")
        << report->ToString() << ir::Print(after);
    if (counts) counted += CompareCounts(*before, after, *report, options) ? 1 : 0;
  }
  std::cout << counted << " programs store as often as counted\n";
  std::cout << fused << " of " << count << " programs have a group of stages\n";
  std::cout << slid << " have windows that slide\n";
  std::cout << joined << " have roots that share tiles, " << split << " an array that is split\n";
  std::cout << parametric << " have windows of parametric size, " << late
            << " stages that live on and run behind tiles that compute them, too\n";
  EXPECT_GT(slid * 15, static_cast<int>(count));
  EXPECT_GT(late * 20, static_cast<int>(count));
  EXPECT_GT(parametric * 5, static_cast<int>(count));
  EXPECT_GT(fused * 3, static_cast<int>(count));
}

}  // namespace
}  // namespace polynao::poly
