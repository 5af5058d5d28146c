// main() of every test binary. Unlike gtest_main it fails when no test ran.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

// True if the caller chose a part of the tests, which may be empty.
bool PartWasChosen() {
  return GTEST_FLAG_GET(filter) != "*" || std::getenv("GTEST_TOTAL_SHARDS") != nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  const int status = RUN_ALL_TESTS();
  if (status != 0 || GTEST_FLAG_GET(list_tests)) return status;
  const ::testing::UnitTest& tests = *::testing::UnitTest::GetInstance();
  if (tests.total_test_count() == 0) {
    std::fprintf(stderr, "test_main: this binary contains no test.\n");
    return 1;
  }
  if (tests.test_to_run_count() == 0 && !PartWasChosen()) {
    std::fprintf(stderr, "test_main: all %d tests are disabled.\n", tests.total_test_count());
    return 1;
  }
  return 0;
}
