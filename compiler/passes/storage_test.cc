#include "compiler/passes/storage.h"

#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<bool> OnUnit(ir::Function& f) { return Storage(f, TestTarget("unit")); }
std::string After(std::string_view text) { return RunPass(text, OnUnit, TestTarget("unit")); }

TEST(StorageTest, NestedAllocationsAreDisjointAndSiblingsShare) {
  EXPECT_EQ(After("func f(A: f16[4] out) { allocate X: f16[65] @nmem X[0] = 1.0"
                  " { allocate Y: f32[8] @nmem Y[0] = 2.0 A[0] = X[0] }"
                  " { allocate Z: i8[1] @nmem Z[0] = 3 A[1] = X[0] } }"),
            "func f(A: f16[4] out) {\n"
            "  pragma \"address\" (i64(0)) {\n"
            "    allocate X: f16[65] @nmem\n"
            "    X[0] = 1.0\n"
            "    pragma \"address\" (i64(256)) {\n"
            "      allocate Y: f32[8] @nmem\n"
            "      Y[0] = 2.0\n"
            "      A[0] = X[0]\n"
            "    }\n"
            "    pragma \"address\" (i64(256)) {\n"
            "      allocate Z: i8[1] @nmem\n"
            "      Z[0] = 3\n"
            "      A[1] = X[0]\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST(StorageTest, MemoriesAreCountedApart) {
  const std::string text = After(
      "func f() { allocate S: f16[100] @smem thread (cid, 2) { thread (tid, 2) {"
      " allocate N: f16[100] @nmem allocate W: i8[64] @wmem N[0] = 1.0 } } }");
  EXPECT_EQ(text.find("i64(128)"), std::string::npos) << text;
}

TEST(StorageTest, OtherScopesStay) {
  const std::string text =
      "func f(A: f32[1] out) {\n"
      "  allocate L: f32[1] @local\n"
      "  L[0] = 1.0\n"
      "  A[0] = L[0]\n"
      "}\n";
  EXPECT_EQ(After(text), text);
}

TEST(StorageTest, AFullMemoryFitsAndOneMoreByteDoesNot) {
  // The machine "unit" has 32 KiB of NMEM.
  After("func f() { allocate X: i8[32640] @nmem allocate Y: i8[128] @nmem Y[0] = 1 }");
  EXPECT_EQ(PassError("func f() { allocate X: i8[32640] @nmem allocate Y: i8[129] @nmem Y[0] = 1 }",
                      OnUnit),
            "storage: nmem needs 32769 bytes and has 32768; live there: X 32640, Y 129 bytes: use "
            "smaller tiles");
}

TEST(StorageTest, Errors) {
  EXPECT_THAT(PassError("func f(n: i32) { allocate X: i8[n] @nmem X[0] = 1 }", OnUnit),
              HasSubstr("'X' in nmem has an extent that is not constant"));
  EXPECT_THAT(
      PassError("func f() { thread (tid, 2) { allocate X: i8[4] @smem X[0] = 1 } }", OnUnit),
      HasSubstr("'X' in smem is allocated inside the loop over a cluster's cores"));
  EXPECT_THAT(
      PassError("func f() { pragma \"address\" (0) { allocate X: i8[4] @nmem X[0] = 1 } }", OnUnit),
      HasSubstr("'X' already has an address"));
}

}  // namespace
}  // namespace polynao
