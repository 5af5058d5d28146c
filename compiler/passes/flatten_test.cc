#include "compiler/passes/flatten.h"

#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<bool> FlattenAll(ir::Function& function) { return Flatten(function); }

std::string After(std::string_view text) { return RunPass(text, FlattenAll, TestTarget()); }

TEST(FlattenTest, ParametersAndAllocations) {
  EXPECT_EQ(After("func f(A: f32[4, 14] in, B: f32[2, 4, 14] out) {"
                  " for (i, 0, 4) { for (j, 0, 14) { allocate L: f32[1, 3]"
                  " L[0, 2] = A[i, j] B[1, i, j] = L[0, 2] + 1.0 } } }"),
            "func f(A: f32[56] in, B: f32[112] out) {\n"
            "  for (i, 0, 4) {\n"
            "    for (j, 0, 14) {\n"
            "      allocate L: f32[3]\n"
            "      L[2] = A[i * 14 + j]\n"
            "      B[56 + i * 14 + j] = L[2] + 1.0\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST(FlattenTest, ScalarCellsAndSymbolicExtents) {
  const std::string text = After(
      "func f(A: f32[] in, B: f32[n, m] out, n: i32, m: i32) {"
      " for (i, 0, n) { for (j, 0, m) { B[i, j] = A[] } } }");
  EXPECT_THAT(text, HasSubstr("A: f32[1] in, B: f32[max(n, 0) * max(m, 0)] out"));
  EXPECT_THAT(text, HasSubstr("B[i * m + j] = A[0]"));
}

TEST(FlattenTest, LargeBuffersIndexWithI64) {
  EXPECT_THAT(RunPass("func f(A: i8[65536, 65536] in, B: i8[1] out, i: i32) { B[0] = A[i, 3] }",
                      FlattenAll, TestTarget(), /*same_meaning=*/false),
              HasSubstr("B[0] = A[cast(i64, i) * 65536 + 3]"));
}

// Private buffers of threads keep their dimensions; shared ones and those outside do not.
TEST(FlattenTest, KeepsWhatIsPrivate) {
  const auto flatten = [](ir::Function& function) {
    return Flatten(function, {.keep_private = true});
  };
  EXPECT_EQ(RunPass("func f(A: f32[4, 8] out) {"
                    " allocate W: f32[4, 8]"
                    " thread (b = \"blockIdx.x\", 4) {"
                    " allocate S: f32[2, 4] @shared allocate L: f32[8, 2] @local"
                    " thread (t = \"threadIdx.x\", 8) {"
                    " S[t / 4, t % 4] = 1.0 L[t, 1] = S[t / 4, t % 4]"
                    " W[b, t] = L[t, 1] A[b, t] = W[b, t] } } }",
                    flatten, TestTarget()),
            "func f(A: f32[32] out) {\n"
            "  allocate W: f32[32]\n"
            "  thread (b = \"blockIdx.x\", 4) {\n"
            "    allocate S: f32[8] @shared\n"
            "    allocate L: f32[8, 2] @local\n"
            "    thread (t = \"threadIdx.x\", 8) {\n"
            "      S[t / 4 * 4 + t % 4] = 1.0\n"
            "      L[t, 1] = S[t / 4 * 4 + t % 4]\n"
            "      W[b * 8 + t] = L[t, 1]\n"
            "      A[b * 8 + t] = W[b * 8 + t]\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST(FlattenTest, FlatFunctionsStayAsTheyAre) {
  const std::string text =
      "func f(A: f32[4] in, B: f32[4] out) {\n"
      "  for (i, 0, 4) {\n"
      "    B[i] = A[i]\n"
      "  }\n"
      "}\n";
  EXPECT_EQ(After(text), text);
}

}  // namespace
}  // namespace polynao
