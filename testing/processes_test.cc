#include "testing/processes.h"

#include <unistd.h>

#include <csignal>
#include <string>

#include "gtest/gtest.h"

namespace polynao {
namespace {

TEST(ProcessesTest, OutputComesBack) {
  const std::string text(100'000, 'x');  // more than a pipe holds
  const ProcessOutcome outcome = InProcess([&] { return text; }, 10);
  EXPECT_FALSE(outcome.crashed);
  EXPECT_EQ(outcome.output, text);
}

TEST(ProcessesTest, CrashesAndHangsAreOutcomes) {
  EXPECT_EQ(InProcess([]() -> std::string { _exit(3); }, 10).how, "ends with status 3");
  EXPECT_EQ(InProcess([] { return raise(SIGKILL) == 0 ? "" : "?"; }, 10).how, "ends by signal 9");
  EXPECT_EQ(InProcess([] { return pause() == 0 ? "" : "?"; }, 1).how, "takes more than 1 s");
}

}  // namespace
}  // namespace polynao
