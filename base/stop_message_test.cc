#include "base/stop_message.h"

#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace polynao {
namespace {

TEST(StopMessageTest, ALineAndExitCode1) {
  for (const auto& [signal, name] :
       {std::pair(SIGSEGV, "SIGSEGV"), std::pair(SIGBUS, "SIGBUS"), std::pair(SIGFPE, "SIGFPE"),
        std::pair(SIGILL, "SIGILL"), std::pair(SIGABRT, "SIGABRT")}) {
    EXPECT_EXIT(
        {
          const StopMessage message("function 'f'");
          std::raise(signal);
        },
        testing::ExitedWithCode(1), "^nao: function 'f': stopped by " + std::string(name));
  }
}

TEST(StopMessageTest, OnOtherThreads) {
  EXPECT_EXIT(
      {
        const StopMessage message("function 'f'");
        std::thread([] { std::raise(SIGFPE); }).join();
      },
      testing::ExitedWithCode(1), "^nao: function 'f': stopped by SIGFPE");
}

int Recurse(volatile int* depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(*depth);
  *depth = *depth + 1;
  return *depth < 0 ? 0 : Recurse(depth) + frame[0];
}

TEST(StopMessageTest, WithoutAnyStackLeft) {
  EXPECT_EXIT(
      {
        const StopMessage message("function 'f'");
        volatile int depth = 0;
        Recurse(&depth);
      },
      testing::ExitedWithCode(1), "^nao: function 'f': stopped by SIGSEGV");
}

TEST(StopMessageTest, OnlyWhileItLives) {
  EXPECT_EXIT(
      {
        {
          const StopMessage message("function 'f'");
        }
        std::raise(SIGFPE);
      },
      testing::KilledBySignal(SIGFPE), "");
}

}  // namespace
}  // namespace polynao
