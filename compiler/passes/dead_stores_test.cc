#include "compiler/passes/dead_stores.h"

#include <string>

#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

std::string Text(const std::string& body, const std::string& attribute = "") {
  return StrCat(attribute, "func f(X: f16[64] in, Y: f16[64] out, n: i32) {\n", body, "}\n");
}

void Expect(const std::string& before, const std::string& after,
            const std::string& attribute = "") {
  const auto pass = [](ir::Function& f) { return DropDeadStores(f); };
  const std::string once = RunPass(Text(before, attribute), pass, TestTarget());
  EXPECT_EQ(once, ir::Print(ParseOrDie(Text(after, attribute)))) << before;
  EXPECT_EQ(RunPass(once, pass, TestTarget()), once) << "a second run";
}

void ExpectStays(const std::string& body, const std::string& attribute = "") {
  Expect(body, body, attribute);
}

constexpr char kA[] = "allocate A: f16[64] @nmem ";
constexpr char kB[] = "allocate B: f16[64] @nmem ";
constexpr char kFill[] = "for (i, 0, 64) { A[i] = X[i] } ";
constexpr char kResult[] = "for (i, 0, 64) { Y[i] = X[i] } ";

TEST(DeadStoresTest, WhatNobodyReads) {
  Expect(StrCat(kA, kFill, kResult), kResult);
  Expect(StrCat(kResult, "for (t, 0, 2) { ", kA, "pragma \"memcpy\" { ", kFill, "} }"), kResult);
  // Of any memory that the function allocates.
  Expect(StrCat("allocate A: f16[64] @smem ", kFill, kResult), kResult);
  // Pragmas around the allocation go with it.
  Expect(StrCat("pragma \"double_buffer\" { ", kA, kFill, kResult, "}"), kResult);
}

TEST(DeadStoresTest, WhatFeedsOnlyThat) {
  Expect(StrCat(kA, kB, kFill, "for (i, 0, 64) { B[i] = A[i] * X[i] } ", kResult), kResult);
  // A sum reads itself.
  Expect(StrCat(kA, kFill, "for (i, 0, 64) { A[i] = A[i] + X[i] } ", kResult), kResult);
  // Two read one another.
  Expect(StrCat(kA, kB, kFill, "for (i, 0, 64) { B[i] = A[i] A[i] = B[i] } ", kResult), kResult);
  // As an index.
  Expect(StrCat("allocate I: i32[64] @nmem ", kA,
                "for (i, 0, 64) { I[i] = i } for (i, 0, 64) { A[I[i]] = X[I[i]] } ", kResult),
         kResult);
}

TEST(DeadStoresTest, WhatIsLeftWithoutABody) {
  Expect(StrCat(kA, "if (n < 3) { ", kFill, "} else { ", kFill,
                "} for (t, 0, 2) { let m = t * 3 if (m < 4) { ", kFill, "} } ", kResult),
         kResult);
  // The other branch stays.
  Expect(StrCat(kA, "if (n < 3) { ", kResult, "} else { ", kFill, "}"),
         StrCat("if (n < 3) { ", kResult, "}"));
}

// What only a condition reads goes with it.
TEST(DeadStoresTest, WhatConditionsWithoutABodyRead) {
  Expect(StrCat("allocate I: i32[1] @nmem I[0] = n ", kA, "if (I[0] < 3) { ", kFill, "} ", kResult),
         kResult);
}

// Of a sequence a single statement is left, which has no body either.
TEST(DeadStoresTest, WhatStandsBeside) {
  Expect(StrCat("for (t, 0, 2) { Y[t] = X[t] ", kA, kFill, "}"), "for (t, 0, 2) { Y[t] = X[t] }");
  const std::string fill = StrCat(kB, "for (i, 0, 64) { B[i] = X[i] } ");
  const std::string copy = "memcpy.f16.gmem.nmem(&Y[0], &B[0], 64, 1, 0, 0) ";
  Expect(StrCat(fill, "for (t, 0, 2) { ", copy, kA, kFill, "}"),
         StrCat(fill, "for (t, 0, 2) { ", copy, "}"));
}

TEST(DeadStoresTest, WhatIsRead) {
  // Even before it is stored: a loop may come back.
  ExpectStays(StrCat(kA, "for (t, 0, 2) { if (0 < t) { Y[t] = A[t] } ", kFill, "}"));
  // By a store that stays.
  ExpectStays(StrCat(kA, kB, kFill, "for (i, 0, 64) { B[i] = A[i] Y[i] = B[i] } "));
  ExpectStays(StrCat("allocate I: i32[64] @nmem for (i, 0, 64) { I[i] = i } ",
                     "for (i, 0, 64) { Y[I[i]] = X[i] }"));
  // By conditions, bounds and lets.
  const std::string number = "allocate I: i32[1] @nmem I[0] = n ";
  ExpectStays(StrCat(number, "if (I[0] < 3) { ", kResult, "}"));
  ExpectStays(StrCat(number, "for (i, 0, I[0]) { Y[i] = X[i] }"));
  ExpectStays(StrCat(number, "let m = I[0] Y[m] = X[m]"));
}

TEST(DeadStoresTest, Parameters) { ExpectStays(kResult); }

// Whoever has the address may read it.
TEST(DeadStoresTest, Addresses) {
  ExpectStays(StrCat(kA, kFill, "memcpy.f16.gmem.nmem(&Y[0], &A[0], 64, 1, 0, 0)"));
}

TEST(DeadStoresTest, BuffersThatOverlap) {
  ExpectStays(
      StrCat(kA, kB, "for (i, 0, 64) { B[i] = X[i] } ", kFill, "for (i, 0, 64) { Y[i] = B[i] } "),
      "@may_alias(\"A\", \"B\")\n");
}

}  // namespace
}  // namespace polynao
