// Input of test_main_test.sh: all tests of this binary are disabled.

#include "gtest/gtest.h"

TEST(DISABLED_Everything, IsDisabled) {}
