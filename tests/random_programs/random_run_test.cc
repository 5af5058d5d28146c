// A short run of what random_run does for hours.
#include "tests/random_programs/random_run.h"

#include "gtest/gtest.h"

namespace polynao {
namespace {

std::string Findings(const RandomTally& tally) {
  std::string text;
  for (const RandomFinding& finding : tally.findings) {
    text += "seed " + std::to_string(finding.seed) + ", " + std::string(StageName(finding.stage)) +
            ": " + finding.what + "\n";
  }
  return text;
}

TEST(RandomRunTest, PassesAndTargets) {
  const RandomRunOptions options = {.first_seed = 1, .programs = 300, .batch = 100};
  const RandomTally tally = RunRandomPrograms(options);
  EXPECT_EQ(Findings(tally), "");
  std::printf("%s\n", tally.ToString(options).c_str());
  EXPECT_EQ(tally.programs, 300);
  EXPECT_GT(tally.changed, 150);
  for (const RandomStage stage : {RandomStage::kPasses, RandomStage::kCpu, RandomStage::kC}) {
    EXPECT_GT(tally.compared[static_cast<size_t>(stage)], 200) << StageName(stage);
  }
}

TEST(RandomRunTest, Schedules) {
  const RandomRunOptions options = {
      .first_seed = 1, .programs = 60, .batch = 30, .schedules = true};
  const RandomTally tally = RunRandomPrograms(options);
  EXPECT_EQ(Findings(tally), "");
  std::printf("%s\n", tally.ToString(options).c_str());
  EXPECT_GT(tally.compared[static_cast<size_t>(RandomStage::kSchedule)], 40);
}

}  // namespace
}  // namespace polynao
