#include "compiler/passes/stagger.h"

#include "base/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

// A copy of `count` bytes by the memory cores.
std::string Program(int count, const std::string& source = "0") {
  return StrCat("func f(A: i8[400000] in, B: i8[4] out) {\n",
                "  thread (cid, 4) {\n    allocate S: i8[", count, "] @smem\n",
                "    memcpy.i8.smem.gmem.async(&S[0], &A[", source, "], ", count, ", 1, 0, 0)\n",
                "    memcpy.i8.gmem.smem.async(&B[cid], &S[cid], 1, 1, 0, 0)\n  }\n}\n");
}

std::string After(const std::string& text) {
  const Target& target = TestTarget("mlu270");
  return RunPass(text, [&](ir::Function& f) { return Stagger(f, target); }, target);
}

TEST(StaggerTest, EachClusterStartsElsewhere) {
  // 100000 / 4, in whole granules of 64.
  EXPECT_THAT(After(Program(100000)), HasSubstr("24960"));
}

TEST(StaggerTest, WhatEachClusterLoadsForItselfStays) {
  EXPECT_THAT(After(Program(100000, "cid * 100000")), HasSubstr("&A[cid * 100000], 100000, 1"));
}

TEST(StaggerTest, LittleDataStays) {
  EXPECT_THAT(After(Program(65535)), HasSubstr("&A[0], 65535, 1"));
  EXPECT_THAT(After(Program(65536)), HasSubstr("16384"));
}

}  // namespace
}  // namespace polynao
