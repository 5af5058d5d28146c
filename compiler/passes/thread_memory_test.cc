#include "compiler/passes/thread_memory.h"

#include <string>

#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pass_test_util.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"

namespace polynao {
namespace {

std::string After(std::string_view text, bool same_meaning = true) {
  const auto place = [](ir::Function& f) -> absl::StatusOr<bool> {
    return PlaceThreadMemory(f, isa::DianNao());
  };
  const std::string result = RunPass(text, place, TestTarget(), same_meaning);
  EXPECT_EQ(RunPass(result, place, TestTarget()), result) << "a second run";
  return result;
}

void Expect(std::string_view before, std::string_view after, bool same_meaning = true) {
  EXPECT_EQ(After(before, same_meaning), ir::Print(ParseOrDie(after)));
}

void ExpectStays(std::string_view text) { Expect(text, text); }

TEST(ThreadMemoryTest, ALoopOverCoresIsInNmemAndOneOverClustersInSmem) {
  Expect(R"(func f(A: i32[16] out) {
    thread (cid, 2) {
      allocate S: i32[4] @local
      S[0] = 1
      thread (tid, 2) { allocate L: i32[4] @local L[0] = S[0] A[cid * 2 + tid] = L[0] }
    } })",
         R"(func f(A: i32[16] out) {
    thread (cid, 2) {
      allocate S: i32[4] @smem
      S[0] = 1
      thread (tid, 2) { allocate L: i32[4] @nmem L[0] = S[0] A[cid * 2 + tid] = L[0] }
    } })");
}

TEST(ThreadMemoryTest, WithoutThreadsItIsTheCores) {
  Expect("func f(A: i32[4] out) { allocate L: i32[4] @local L[0] = 1 A[0] = L[0] }",
         "func f(A: i32[4] out) { allocate L: i32[4] @nmem L[0] = 1 A[0] = L[0] }");
  // The default scope is gmem, and the card allocates there only at the head of a function.
  ExpectStays("func f(A: i32[4] out) { allocate L: i32[4] L[0] = 1 A[0] = L[0] }");
  Expect(
      "func f(A: i32[4] out) { for (i, 0, 4) { allocate L: i32[4] L[0] = i A[i] = L[0] } }",
      "func f(A: i32[4] out) { for (i, 0, 4) { allocate L: i32[4] @nmem L[0] = i A[i] = L[0] } }");
}

TEST(ThreadMemoryTest, WhatThreadsShareIsInGmem) {
  Expect(
      "func f(A: i32[4] out) { allocate L: i32[4] @local thread (tid, 4) { L[tid] = tid }"
      " thread (t = \"tid\", 4) { A[t] = L[3 - t] } }",
      "func f(A: i32[4] out) { allocate L: i32[4] thread (tid, 4) { L[tid] = tid }"
      " thread (t = \"tid\", 4) { A[t] = L[3 - t] } }");
}

TEST(ThreadMemoryTest, NamedMemoriesStay) {
  ExpectStays(
      "func f(A: i32[4] out) { thread (tid, 4) { allocate L: i32[4] @smem L[0] = 1"
      " A[tid] = L[0] } }");
}

// Of a convolution's factors the one that moves along with the channels is the weights, in either
// order of the factors.
TEST(ThreadMemoryTest, WeightsAreInWmem) {
  for (const char* product : {"i32(P[y, i]) * i32(W[o, i])", "i32(W[o, i]) * i32(P[y, i])"}) {
    std::string text = R"(func f(A: i8[64] in, B: i8[4096] in, C: i32[64] out) {
      thread (tid, 1) {
        allocate P: i8[1, 64] @local
        allocate W: i8[64, 64] @local
        allocate S: i32[1, 64] @local
        for (i, 0, 64) { P[0, i] = A[i] }
        for (o, 0, 64) { for (i, 0, 64) { W[o, i] = B[o * 64 + i] } }
        pragma "matmul" {
          for (y, 0, 1) { for (o, 0, 64) {
            S[y, o] = 0
            for (i, 0, 64) { S[y, o] = S[y, o] + PRODUCT }
          } }
        }
        for (o, 0, 64) { C[o] = S[0, o] }
      } })";
    text.replace(text.find("PRODUCT"), 7, product);
    const std::string after = After(text);
    EXPECT_NE(after.find("allocate P: i8[1, 64] @nmem"), std::string::npos) << after;
    EXPECT_NE(after.find("allocate W: i8[64, 64] @wmem"), std::string::npos) << after;
    EXPECT_NE(after.find("allocate S: i32[1, 64] @nmem"), std::string::npos) << after;
  }
}

TEST(ThreadMemoryTest, AMultipleOfTheThreadInAllIndicesGoes) {
  Expect(R"(func f(A: i32[16] out) { thread (tid, 4) {
    allocate L: i32[16] @local
    for (i, 0, 4) { L[tid * 4 + i] = i }
    for (i, 0, 4) { A[tid * 4 + i] = L[tid * 4 + 3 - i] }
  } })",
         R"(func f(A: i32[16] out) { thread (tid, 4) {
    allocate L: i32[16] @nmem
    for (i, 0, 4) { L[i] = i }
    for (i, 0, 4) { A[tid * 4 + i] = L[3 - i] }
  } })");
  // A part of the tensor as large as a thread needs, counted in the whole tensor: an index that
  // leaves the buffer stops the interpreter, and does not on the card.
  Expect(R"(func f(A: i32[16] out) { thread (tid, 4) {
    allocate L: i32[4] @local
    for (i, 0, 4) { if (tid * 4 + i < 14) { L[tid * 4 + i] = i } }
  } })",
         R"(func f(A: i32[16] out) { thread (tid, 4) {
    allocate L: i32[4] @nmem
    for (i, 0, 4) { if (tid * 4 + i < 14) { L[i] = i } }
  } })",
         /*same_meaning=*/false);
}

TEST(ThreadMemoryTest, IndicesStay) {
  // Not in all indices, another multiple, not by a multiple, and one that would leave the buffer.
  for (const char* body : {
           "L[tid * 4] = 1 L[tid] = 2 A[tid] = L[tid]",
           "L[tid * 4] = 1 L[0] = 2 A[tid] = L[tid * 4]",
           "L[tid * tid] = 1 A[tid] = L[tid * tid]",
           "for (i, 0, 4) { if (2 <= tid || 1 <= i) { L[tid * 4 + i - 1] = 1 } }",
       }) {
    ExpectStays(
        StrCat("func f(A: i32[16]) { thread (tid, 4) { allocate L: i32[16] @nmem ", body, " } }"));
  }
}

}  // namespace
}  // namespace polynao
