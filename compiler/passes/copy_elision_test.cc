#include "compiler/passes/copy_elision.h"

#include <string>

#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

std::string Text(const std::string& body) {
  return StrCat("func f(X: f16[64] in, Y: f16[64] out, n: i32) {\n", body, "}\n");
}

void Expect(const std::string& before, const std::string& after) {
  const auto pass = [](ir::Function& f) { return ElideCopies(f); };
  const std::string once = RunPass(Text(before), pass, TestTarget());
  EXPECT_EQ(once, ir::Print(ParseOrDie(Text(after)))) << before;
  EXPECT_EQ(RunPass(once, pass, TestTarget()), once) << "a second run";
}

void ExpectStays(const std::string& body) { Expect(body, body); }

constexpr char kFill[] = "for (i, 0, 64) { A[i] = X[i] } ";
constexpr char kCopy[] =
    "pragma \"memcpy\" { for (i, 0, 8) { for (j, 0, 8) { B[i * 8 + j] = A[i * 8 + j] } } } ";
constexpr char kStore[] = "for (i, 0, 64) { Y[i] = B[i] } ";
constexpr char kA[] = "allocate A: f16[64] @nmem ";
constexpr char kB[] = "allocate B: f16[64] @nmem ";

TEST(CopyElisionTest, ReadersReadWhatWasCopied) {
  const std::string after = StrCat(kA, kFill, "for (i, 0, 64) { Y[i] = A[i] }");
  Expect(StrCat(kA, kB, kFill, kCopy, kStore), after);
  // The inner scope is the copy's, or the other's.
  Expect(StrCat(kA, kFill, kB, kCopy, kStore), after);
  Expect(StrCat(kB, kA, kFill, kCopy, kStore), after);
  // A part of it, of a longer buffer.
  Expect(StrCat(kA, kFill, "allocate B: f16[32] @nmem for (i, 0, 32) { B[i] = A[i] }",
                "for (i, 0, 32) { Y[i] = B[i] } for (i, 32, 32) { Y[i] = A[i] }"),
         StrCat(kA, kFill, "for (i, 0, 32) { Y[i] = A[i] } for (i, 32, 32) { Y[i] = A[i] }"));
}

TEST(CopyElisionTest, ACopyOfACopy) {
  Expect(StrCat(kA, kB, "allocate C: f16[64] @nmem ", kFill, kCopy,
                "for (i, 0, 64) { C[i] = B[i] } for (i, 0, 64) { Y[i] = C[i] + B[i] }"),
         StrCat(kA, kFill, "for (i, 0, 64) { Y[i] = A[i] + A[i] }"));
}

TEST(CopyElisionTest, InLoops) {
  // Each iteration has a copy of its own.
  Expect(StrCat("for (t, 0, 3) { ", kA, kFill, kB, kCopy, kStore, "}"),
         StrCat("for (t, 0, 3) { ", kA, kFill, "for (i, 0, 64) { Y[i] = A[i] } }"));
  // A is filled anew while the copy lives.
  ExpectStays(StrCat(kA, kFill, "for (t, 0, 3) { ", kB, kCopy, "A[t] = X[t + 9] ", kStore, "}"));
  Expect(StrCat(kA, kFill, "for (t, 0, 3) { A[t] = X[t + 9] ", kB, kCopy, kStore, "}"),
         StrCat(kA, kFill, "for (t, 0, 3) { A[t] = X[t + 9] for (i, 0, 64) { Y[i] = A[i] } }"));
}

TEST(CopyElisionTest, OtherPlaces) {
  ExpectStays(StrCat(kA, kB, kFill, "for (i, 0, 64) { B[i] = A[63 - i] } ", kStore));
  ExpectStays(StrCat(kA, kB, kFill, "for (i, 0, 63) { B[i] = A[i + 1] } B[63] = A[0] ", kStore));
}

TEST(CopyElisionTest, OtherMemory) {
  ExpectStays(StrCat("allocate A: f16[64] @smem ", kB, kFill, kCopy, kStore));
  ExpectStays(StrCat("allocate A: f16[64] @smem allocate B: f16[64] @smem ", kFill, kCopy, kStore));
  ExpectStays(StrCat(kB, "for (i, 0, 64) { B[i] = X[i] } ", kStore));
  // It is longer than what it is made of.
  ExpectStays(StrCat(kA, kFill, "allocate B: f16[65] @nmem B[64] = X[0] ", kCopy, kStore));
  ExpectStays(StrCat(kA, kFill, "allocate B: f16[65] @nmem ", kCopy, kStore));
}

TEST(CopyElisionTest, WhatIsStoredAgain) {
  // The copy has more elements than those that it is a copy of.
  ExpectStays(StrCat(kA, kB, kFill, kCopy, "B[3] = X[4] ", kStore));
  ExpectStays(StrCat(kA, kB, kFill, "B[3] = X[4] ", kCopy, kStore));
  // A is filled with something else while B is read.
  ExpectStays(StrCat(kA, kB, kFill, kCopy, "A[3] = X[4] ", kStore));
  // By the copy of a copy, too.
  Expect(StrCat(kA, kB, "allocate C: f16[64] @nmem ", kFill, kCopy,
                "for (i, 0, 64) { Y[i] = B[i] } A[1] = X[5] for (i, 0, 64) { C[i] = B[i] } ",
                "for (i, 0, 64) { Y[i] = C[i] }"),
         StrCat(kA, kB, kFill, kCopy, "for (i, 0, 64) { Y[i] = B[i] } A[1] = X[5] ",
                "for (i, 0, 64) { Y[i] = B[i] }"));
  // One iteration's elements are read in the next one.
  ExpectStays(StrCat(kA, kB, kFill, "for (t, 0, 3) { if (0 < t) { ", kStore, "} A[t] = X[t + 9] ",
                     kCopy, "} "));
}

// A ends before its copy is read.
TEST(CopyElisionTest, ScopesThatEnd) {
  ExpectStays(StrCat(kB, "pragma \"no_partition\" { ", kA, kFill, kCopy, "} ", kStore));
}

TEST(CopyElisionTest, Versions) {
  const std::string b = "pragma \"double_buffer\" { allocate B: f16[64] @nmem ";
  ExpectStays(StrCat(kA, b, kFill, kCopy, kStore, "}"));
  const std::string a = "pragma \"double_buffer\" { allocate A: f16[64] @nmem ";
  Expect(StrCat(a, b, kFill, kCopy, kStore, "} }"),
         StrCat(a, kFill, "for (i, 0, 64) { Y[i] = A[i] } }"));
}

}  // namespace
}  // namespace polynao
