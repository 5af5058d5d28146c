#include "compiler/passes/preprocess.h"

#include <algorithm>
#include <random>

#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/pass_test_util.h"
#include "compiler/passes/same_meaning.h"
#include "compiler/registry/registry.h"
#include "compiler/te/graph.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ir::Expr;
using ir::Type;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string After(std::string_view text) {
  const auto preprocess = [](ir::Function& f) { return Preprocess(f, TestTarget()); };
  const std::string result = RunPass(text, preprocess, TestTarget());
  // What it made it leaves as it is.
  EXPECT_EQ(RunPass(result, preprocess, TestTarget()), result);
  return result;
}

// The text after these passes; each is checked to keep the meaning.
std::string AfterPasses(std::string_view text, std::string_view passes) {
  ir::Function f = ParseOrDie(text);
  const auto list = ParsePasses(passes);
  EXPECT_TRUE(list.ok()) << list.status();
  const absl::Status status = RunPasses(f, *list, TestTarget(), {.check = true});
  EXPECT_TRUE(status.ok()) << status;
  return ir::Print(f);
}

void Unchanged(std::string_view text) {
  const std::string same = ir::Print(ParseOrDie(text));
  EXPECT_EQ(After(text), same);
}

// What the pass says, line by line.
std::string Decisions(std::string_view text) {
  ir::Function f = ParseOrDie(text);
  std::vector<PreprocessDecision> decisions;
  EXPECT_TRUE(Preprocess(f, TestTarget(), &decisions).ok());
  std::string all;
  for (const PreprocessDecision& d : decisions) StrAppend(&all, d.what, "\n");
  return all;
}

// ---- LAYOUT and ALIGN

// A convolution of `co` filters of 3 x 2 over `ci` channels, from 4 x 3 to 2 x 2 places, then a cast.
std::string Conv(int64_t co, int64_t ci, std::string type = "i8", std::string sum = "i32",
                 std::string result = "f32") {
  return StrCat("func f(In: ", type, "[4, 3, ", ci, "] in, Wt: ", type, "[", co, ", 3, 2, ", ci,
                "] in, Out: ", result, "[2, 2, ", co, "] out) {\n  allocate W: ", type, "[", co,
                ", 3, 2, ", ci, "] @wmem pragma \"memcpy\" { for (o, 0, ", co,
                ") { for (r, 0, 3) { for (s, 0, 2) { for (i, 0, ", ci,
                ") { W[o, r, s, i] = Wt[o, r, s, i] } } } } }\n  allocate P: ", type, "[4, 3, ", ci,
                "] @nmem pragma \"memcpy\" { for (y, 0, 4) { for (x, 0, 3) { for (i, 0, ", ci,
                ") { P[y, x, i] = In[y, x, i] } } } }\n  allocate Cv: ", sum, "[2, 2, ", co,
                "] @nmem pragma \"conv\" { for (y, 0, 2) { for (x, 0, 2) { for (o, 0, ", co,
                ") { Cv[y, x, o] = 0\n for (r, 0, 3) { for (s, 0, 2) { for (i, 0, ", ci,
                ") { Cv[y, x, o] = Cv[y, x, o] + ", sum, "(P[y + r, x + s, i]) * ", sum,
                "(W[o, r, s, i]) } } } } } } }\n  allocate Y: ", result, "[2, 2, ", co,
                "] @nmem pragma \"cast\" { for (y, 0, 2) { for (x, 0, 2) { for (o, 0, ", co,
                ") { Y[y, x, o] = ", result,
                "(Cv[y, x, o]) } } } }\n  pragma \"memcpy\" { for (y, "
                "0, 2) { for (x, 0, 2) { for (o, 0, ",
                co, ") { Out[y, x, o] = Y[y, x, o] } } } } }");
}

// A buffer whose size is known only at run time has no extents that could grow.
TEST(PreprocessTest, BuffersOfUnknownSizeDoNotGrow) {
  const auto preprocess = [](ir::Function& f) { return Preprocess(f, TestTarget()); };
  const std::string text = RunPass(
      "func f(A: f16[8] in, B: f16[8] out, n: i32, m: i32) { pragma \"ragged\" { for (t, 0, 1) {"
      " allocate L: f16[n, 4] @nmem"
      " pragma \"add\" { for (i, 0, n) { for (j, 0, 8) { if (j < m) { L[i, j] = 1.0 } } } }"
      " for (j, 0, 4) { B[j] = 2.0 } } } }",
      preprocess, TestTarget(), /*same_meaning=*/false);
  EXPECT_THAT(text, AllOf(HasSubstr("allocate L: f16[n, 4] @nmem"), HasSubstr("if (j < m)")));
}

// Only windows on chip are filled at their allocation.
TEST(PreprocessTest, WindowsOffChipStay) {
  const std::string text = After(
      "func f(A: f16[16] in, B: f16[16] out) { pragma \"sliding_window\" (i64(1)) {"
      " allocate W: f16[16]"
      " pragma \"pad\" { for (i, 0, 16) { W[i] = select(2 <= i, A[i], 0.0) } }"
      " for (i, 0, 16) { B[i] = W[i] } } }");
  EXPECT_THAT(text, AllOf(HasSubstr("select("), Not(HasSubstr("fill"))));
}

TEST(PreprocessTest, ConvolutionTakesTheFormOfItsInstruction) {
  EXPECT_EQ(AfterPasses(Conv(100, 16), "preprocess,simplify"),
            R"(func f(In: i8[4, 3, 16] in, Wt: i8[100, 3, 2, 16] in, Out: f32[2, 2, 100] out) {
  allocate W: i8[64, 256] @wmem
  pragma "memcpy" {
    for (l, 0, 64) {
      for (r, 0, 3) {
        for (s, 0, 2) {
          for (i, 0, 16) {
            W[l, r * 32 + s * 16 + i] = Wt[l, r, s, i]
          }
        }
      }
    }
  }
  pragma "memcpy" {
    for (l, 0, 36) {
      for (r, 0, 3) {
        for (s, 0, 2) {
          for (i, 0, 16) {
            W[l, r * 32 + s * 16 + i + 128] = Wt[l + 64, r, s, i]
          }
        }
      }
    }
  }
  allocate P: i8[4, 3, 16] @nmem
  pragma "memcpy" {
    for (y, 0, 4) {
      for (x, 0, 3) {
        for (i, 0, 16) {
          P[y, x, i] = In[y, x, i]
        }
      }
    }
  }
  allocate Cv: i32[2, 2, 128] @nmem
  pragma "conv" {
    for (y, 0, 2) {
      for (x, 0, 2) {
        for (c, 0, 2) {
          for (l, 0, 64) {
            Cv[y, x, c * 64 + l] = 0
            for (r, 0, 3) {
              for (s, 0, 2) {
                for (i, 0, 16) {
                  Cv[y, x, c * 64 + l] = Cv[y, x, c * 64 + l] + cast(i32, W[l, r * 32 + s * 16 + i + c * 128]) * cast(i32, P[y + r, x + s, i])
                }
              }
            }
          }
        }
      }
    }
  }
  allocate Y: f32[2, 2, 128] @nmem
  pragma "cast" {
    for (y, 0, 2) {
      for (x, 0, 2) {
        for (o, 0, 128) {
          Y[y, x, o] = cast(f32, Cv[y, x, o])
        }
      }
    }
  }
  pragma "memcpy" {
    for (y, 0, 2) {
      for (x, 0, 2) {
        for (o, 0, 100) {
          Out[y, x, o] = Y[y, x, o]
        }
      }
    }
  }
}
)");
}

// The pitch is a multiple of 64 bytes; groups are whole.
TEST(PreprocessTest, PitchAndGroups) {
  struct Row {
    int64_t co, ci;
    std::string type, sum, result;
    int64_t bank, width;
  };
  for (const Row& row : std::vector<Row>{{1, 16, "i8", "i32", "f32", 128, 64},
                                         {3, 1, "i8", "i32", "f16", 64, 64},
                                         {32, 11, "i8", "i32", "f32", 128, 64},
                                         {63, 32, "i8", "i32", "i16", 192, 64},
                                         {64, 1, "i8", "i32", "f32", 64, 64},
                                         {65, 16, "i16", "i32", "f32", 192, 128},
                                         {65, 16, "f16", "f32", "f16", 192, 128},
                                         {129, 3, "i16", "i32", "f32", 96, 192},
                                         {2, 7, "f32", "f32", "f16", 48, 64}}) {
    const std::string text = After(Conv(row.co, row.ci, row.type, row.sum, row.result));
    EXPECT_THAT(text, HasSubstr(StrCat("W: ", row.type, "[64, ", row.bank, "] @wmem")));
    EXPECT_THAT(text, HasSubstr(StrCat("Cv: ", row.sum, "[2, 2, ", row.width, "] @nmem")));
    EXPECT_THAT(text, HasSubstr(StrCat("Y: ", row.result, "[2, 2, ", row.width, "] @nmem")));
    EXPECT_THAT(text, HasSubstr(StrCat("P: ", row.type, "[4, 3, ", row.ci, "] @nmem")));
    // Loops of one iteration, as simplify drops them, do not matter.
    EXPECT_THAT(AfterPasses(Conv(row.co, row.ci, row.type, row.sum, row.result),
                            "simplify,preprocess,simplify"),
                AllOf(HasSubstr(StrCat("W: ", row.type, "[64, ", row.bank, "] @wmem")),
                      HasSubstr(StrCat("Y: ", row.result, "[2, 2, ", row.width, "] @nmem")),
                      HasSubstr("for (l, 0, 64) {")));
  }
}

// Filters of several sets follow one another in the banks: each begins where an instruction may begin.
TEST(PreprocessTest, SetsOfFilters) {
  const std::string text = AfterPasses(
      "func f(Wt: i8[2, 3, 5, 10] in, In: i8[2, 1, 6, 10] in, Out: i32[2, 1, 2, 3] out) {"
      " allocate W: i8[2, 3, 5, 10] @wmem pragma \"memcpy\" { for (n, 0, 2) { for (o, 0, 3) {"
      " for (s, 0, 5) { for (i, 0, 10) { W[n, o, s, i] = Wt[n, o, s, i] } } } } }"
      " for (n, 0, 2) { allocate P: i8[1, 6, 10] @nmem pragma \"memcpy\" { for (y, 0, 1) {"
      " for (x, 0, 6) { for (i, 0, 10) { P[y, x, i] = In[n, y, x, i] } } } }"
      " allocate S: i32[1, 2, 3] @nmem pragma \"conv\" { for (y, 0, 1) { for (x, 0, 2) {"
      " for (o, 0, 3) { S[y, x, o] = 0\n for (s, 0, 5) { for (i, 0, 10) {"
      " S[y, x, o] = S[y, x, o] + i32(P[y, x + s, i]) * i32(W[n, o, s, i]) } } } } } }"
      " pragma \"memcpy\" { for (y, 0, 1) { for (x, 0, 2) { for (o, 0, 3) {"
      " Out[n, y, x, o] = S[y, x, o] } } } } } }",
      "preprocess,simplify");
  // 5 * 10 elements of a filter take 64.
  EXPECT_THAT(text, AllOf(HasSubstr("W: i8[64, 128] @wmem"),
                          HasSubstr("cast(i32, W[l, n * 64 + s * 10 + i])")));
}

TEST(PreprocessTest, Matmul) {
  const std::string text = AfterPasses(
      "func f(A: f16[3, 40] in, B: f16[70, 40] in, C: f32[3, 70] out) {"
      " allocate W: f16[70, 40] @wmem pragma \"memcpy\" { for (o, 0, 70) { for (k, 0, 40) {"
      " W[o, k] = B[o, k] } } }"
      " allocate X: f16[3, 40] @nmem pragma \"memcpy\" { for (y, 0, 3) { for (k, 0, 40) {"
      " X[y, k] = A[y, k] } } }"
      " allocate Y: f32[3, 70] @nmem pragma \"matmul\" { for (y, 0, 3) { for (o, 0, 70) {"
      " Y[y, o] = 0.0 for (k, 0, 40) { Y[y, o] = Y[y, o] + f32(X[y, k]) * f32(W[o, k]) } } } }"
      " pragma \"memcpy\" { for (y, 0, 3) { for (o, 0, 70) { C[y, o] = Y[y, o] } } } }",
      "preprocess,simplify");
  EXPECT_THAT(text, HasSubstr("allocate W: f16[64, 128] @wmem"));
  EXPECT_THAT(text, HasSubstr("Y[y, c * 64 + l] + cast(f32, X[y, k]) * "
                              "cast(f32, W[l, k + c * 64])"));
}

// The sum over blocks of input channels stays outside; its first values are a nest of their own.
TEST(PreprocessTest, AccumulationOverBlocks) {
  const std::string text = AfterPasses(
      "func f(A: i8[3, 40] in, B: i8[70, 40] in, C: i32[3, 70] out) {"
      " allocate Y: i32[3, 70] @nmem"
      " pragma \"fill\" { for (y, 0, 3) { for (o, 0, 70) { Y[y, o] = 0 } } }"
      " for (b, 0, 2) {"
      " allocate W: i8[70, 20] @wmem pragma \"memcpy\" { for (o, 0, 70) { for (k, 0, 20) {"
      " W[o, k] = B[o, b * 20 + k] } } }"
      " allocate X: i8[3, 20] @nmem pragma \"memcpy\" { for (y, 0, 3) { for (k, 0, 20) {"
      " X[y, k] = A[y, b * 20 + k] } } }"
      " pragma \"matmul_acc\" { for (y, 0, 3) { for (o, 0, 70) { for (k, 0, 20) {"
      " Y[y, o] = Y[y, o] + i32(X[y, k]) * i32(W[o, k]) } } } } }"
      " pragma \"memcpy\" { for (y, 0, 3) { for (o, 0, 70) { C[y, o] = Y[y, o] } } } }",
      "preprocess,simplify");
  EXPECT_THAT(text, HasSubstr("for (o, 0, 128) {\n        Y[y, o] = 0"));
  EXPECT_THAT(text, HasSubstr("Y[y, c * 64 + l] + cast(i32, W[l, k + c * 64]) * "
                              "cast(i32, X[y, k])"));
}

// A bias per channel is widened with the rows, and what is made of it; the copies are not.
TEST(PreprocessTest, RowsAndTheirBias) {
  std::string text = Conv(40, 4);
  const std::string bias =
      "allocate B: f32[40] @nmem pragma \"memcpy\" { for (o, 0, 40) { B[o] = f32_[o] } }"
      " pragma \"muls\" { for (o, 0, 40) { B[o] = B[o] * 2.0 } }"
      " pragma \"row_add\" { for (y, 0, 2) { for (x, 0, 2) { for (o, 0, 40) {"
      " Y[y, x, o] = Y[y, x, o] + B[o] } } } }\n  pragma \"memcpy\" { for (y, 0, 2) { for (x";
  const std::string end = "pragma \"memcpy\" { for (y, 0, 2) { for (x";
  text.replace(text.rfind(end), end.size(), bias);
  text.replace(text.find("Out: "), 0, "f32_: f32[40] in, ");
  text = After(text);
  EXPECT_THAT(text, HasSubstr("allocate B: f32[64] @nmem"));
  EXPECT_THAT(text, HasSubstr("for (o, 0, 40) {\n      B[o] = f32_[o]"));
  EXPECT_THAT(text, HasSubstr("for (o, 0, 64) {\n      B[o] = B[o] * 2.0"));
  EXPECT_THAT(text, HasSubstr("for (o, 0, 64) {\n          Y[y, x, o] = Y[y, x, o] + B[o]"));
}

TEST(PreprocessTest, LayoutTwins) {
  // Weights elsewhere, another order of the result, a sum that no instruction has.
  const auto with = [](std::string text, std::string_view old, std::string_view now) {
    for (size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += now.size()) {
      text.replace(at, old.size(), now);
    }
    return text;
  };
  Unchanged(with(Conv(100, 16), "@wmem", "@nmem"));
  Unchanged(with(Conv(100, 16, "u8"), "cast", "other"));
  // The result's further channels are in use: by a statement that is no marked nest, by one that is.
  const std::string wide =
      with(Conv(40, 4), "allocate Cv: i32[2, 2, 40]", "allocate Cv: i32[2, 2, 50]");
  EXPECT_THAT(After(wide), HasSubstr("Cv: i32[2, 2, 64]"));
  const std::string used =
      with(wide, "pragma \"conv\"",
           "pragma \"fill\" { for (o, 0, 50) { Cv[0, 0, o] = 7 } } pragma \"conv\"");
  EXPECT_THAT(After(used), AllOf(HasSubstr("Cv: i32[2, 2, 50]"), HasSubstr("W: i8[40, 3, 2, 4]")));
  EXPECT_THAT(Decisions(used),
              HasSubstr("kept: 40 channels are no multiple of 64, and further ones "
                        "of the result may be in use"));
  const std::string stored = with(wide, "pragma \"conv\"", "Cv[0, 0, 45] = 1 pragma \"conv\"");
  EXPECT_THAT(After(stored), HasSubstr("W: i8[40, 3, 2, 4]"));
}

// ---- guards of computing nests

// One marked matmul, which makes a function complex, and `statements` on X: i32[8] @nmem and
// Y: i32[8] @nmem, from A: i32[20] to C: i32[20], for t = 0 .. 2.
std::string Complex(std::string_view statements, std::string_view allocations = "") {
  return StrCat(
      "func f(A: i32[20] in, B: i8[64, 4] in, C: i32[20] out, D: i32[64] out, n: i32) {\n"
      "allocate W: i8[64, 64] @wmem allocate Z: i8[4] @nmem allocate M: i32[64] @nmem\n"
      "for (l, 0, 64) { for (k, 0, 4) { W[l, k] = B[l, k] } } for (k, 0, 4) { Z[k] = 1 }\n"
      "pragma \"matmul\" { for (l, 0, 64) { M[l] = 0 for (k, 0, 4) {"
      " M[l] = M[l] + i32(Z[k]) * i32(W[l, k]) } } }\n"
      "for (l, 0, 64) { D[l] = M[l] }\n",
      allocations, "for (t, 0, 3) { allocate X: i32[8] @nmem allocate Y: i32[8] @nmem\n",
      statements, "} }");
}

constexpr std::string_view kLoad =
    "pragma \"memcpy\" { for (i, 0, 8) { if (t * 8 + i < 20) { X[i] = A[t * 8 + i] } } }";
constexpr std::string_view kAdd =
    "pragma \"adds\" { for (i, 0, 8) { if (t * 8 + i < 20) { X[i] = X[i] + 3 } } }";
constexpr std::string_view kAddToY =
    "pragma \"adds\" { for (i, 0, 8) { if (t * 8 + i < 20) { Y[i] = X[i] + 3 } } }";
constexpr std::string_view kStoreX =
    "pragma \"memcpy\" { for (i, 0, 8) { if (t * 8 + i < 20) { C[t * 8 + i] = X[i] } } }";
constexpr std::string_view kStoreY =
    "pragma \"memcpy\" { for (i, 0, 8) { if (t * 8 + i < 20) { C[t * 8 + i] = Y[i] } } }";

TEST(PreprocessTest, GuardsOfComputationGo) {
  const std::string text = After(Complex(StrCat(kLoad, kAdd, kAddToY, kStoreY)));
  EXPECT_THAT(text, HasSubstr("pragma \"adds\" {\n      for (i, 0, 8) {\n        X[i] = X[i] + 3"));
  EXPECT_THAT(text, HasSubstr("pragma \"adds\" {\n      for (i, 0, 8) {\n        Y[i] = X[i] + 3"));
  EXPECT_THAT(text, HasSubstr("for (i, 0, min(20 - t * 8, 8)) {\n          X[i] = A[t * 8 + i]"));
  EXPECT_THAT(text, HasSubstr("for (i, 0, min(20 - t * 8, 8)) {\n          C[t * 8 + i] = Y[i]"));
  EXPECT_THAT(text, Not(HasSubstr("if (")));
}

// Rows of a product, of which a guard leaves out some, in tiles t = 0 .. tiles - 1.
std::string GuardedProduct(std::string_view guard, int64_t tiles) {
  return StrCat(
      "func f(A: i8[64, 4] in, B: i8[64, 4] in, C: i32[64, 64] out) {\n"
      "allocate W: i8[64, 64] @wmem allocate Z: i8[64, 4] @nmem\n"
      "for (l, 0, 64) { for (k, 0, 4) { W[l, k] = B[l, k] Z[l, k] = A[l, k] } }\n"
      "for (t, 0, ",
      tiles,
      ") { allocate M: i32[4, 64] @nmem\n"
      "pragma \"matmul\" { for (y, 0, 4) { for (l, 0, 64) { if (",
      guard, ") { M[y, l] = 0 } for (k, 0, 4) { if (", guard,
      ") { M[y, l] = M[y, l] + i32(Z[t * 4 + y, k]) * i32(W[l, k]) } } } } }\n"
      "pragma \"memcpy\" { for (y, 0, 4) { for (l, 0, 64) { if (",
      guard, ") { C[t * 4 + y, l] = M[y, l] } } } } } }");
}

// What costs most is not computed where the instruction's own count can leave it out.
TEST(PreprocessTest, ReductionsComputeOnlyRowsThatAreUsed) {
  EXPECT_THAT(After(GuardedProduct("t * 4 + y < 10", 3)),
              HasSubstr("pragma \"no_partition\" {\n      pragma \"matmul\" {\n"
                        "        for (y, 0, min(10 - t * 4, 4)) {\n"));
  EXPECT_THAT(Decisions(GuardedProduct("t * 4 + y < 10", 3)),
              HasSubstr("guards dropped: 1, min(10 - t * 4, 4) times"));
  // There may be no row at all; the guard is on an inner loop; it is a lower bound: all are computed.
  for (const auto& [guard, tiles] :
       {std::pair("t * 4 + y < 10", 4), {"t * 4 + l < 66", 3}, {"4 <= t * 4 + y", 3}}) {
    const std::string text = After(GuardedProduct(guard, tiles));
    EXPECT_THAT(text, HasSubstr("pragma \"matmul\" {\n      for (y, 0, 4) {\n")) << guard;
    EXPECT_THAT(text, Not(HasSubstr("if (4"))) << guard;
  }
}

// Each of these has a guard that must stay.
TEST(PreprocessTest, GuardsOfComputationThatMustStay) {
  const auto stays = [](const std::string& text, std::string_view guarded, std::string_view why) {
    EXPECT_THAT(After(text), HasSubstr(StrCat("if (", guarded))) << text;
    EXPECT_THAT(Decisions(text), HasSubstr(std::string(why))) << text;
  };
  // Another nest stores to all elements.
  stays(Complex(StrCat("pragma \"fill\" { for (i, 0, 8) { X[i] = 1 } }", kAdd,
                       "for (i, 0, 4) { C[t * 4 + i] = X[i] }")),
        "t * 8 + i < 20) {\n          X[i] = X[i] + 3",
        "kept: the guard t * 8 + i < 20 is not that of all nests that store there");
  // Or to others.
  stays(Complex(StrCat("pragma \"fill\" { for (i, 0, 8) { if (i + t * 8 < 21) { X[i] = 1 } } }",
                       kAdd, "for (i, 0, 4) { C[t * 4 + i] = X[i] }")),
        "t * 8 + i < 20) {\n          X[i] = X[i] + 3", "is not that of all nests");
  // A statement that is no marked nest does.
  stays(Complex(StrCat("for (i, 0, 8) { X[i] = 1 }", kAdd, "C[t] = X[7]")),
        "t * 8 + i < 20) {\n          X[i] = X[i] + 3", "kept: guarded, and not only marked nests");
  // The buffer outlives the guard's loop.
  stays(Complex("pragma \"fill\" { for (i, 0, 8) { if (t + i < 6) { K[i] = t } } } C[t] = K[3]",
                "allocate K: i32[8] @nmem\n"),
        "t + i < 6", "is not one on the stored elements alone");
  // It is a parameter.
  stays(Complex("pragma \"fill\" { for (i, 0, 8) { if (t * 8 + i < 20) { C[t * 8 + i] = t } } }"),
        "t * 8 + i < 20", "kept: guarded, and 'C' is not allocated on chip");
  // A read outside of a buffer, or in front of one on chip.
  stays(Complex(
            "pragma \"adds\" { for (i, 0, 8) { if (t * 8 + i < 20) { X[i] = A[t * 8 + i] + 1 } } }"
            "C[t] = X[0]"),
        "t * 8 + i < 20", "kept: guarded, and indices or divisors need that");
  stays(
      Complex(StrCat("pragma \"fill\" { for (i, 0, 8) { X[i] = i } }",
                     "pragma \"adds\" { for (i, 0, 8) { if (n <= t + i) { Y[i] = X[i - 1] + 1 } } }"
                     "if (n < 3) { C[t] = Y[7] }")),
      "n <= t + i", "indices or divisors need that");
  // A divisor that may be 0.
  stays(
      Complex(StrCat(kLoad,
                     "pragma \"adds\" { for (i, 0, 8) { if (t * 8 + i < 20) { Y[i] = 5 / (X[i] * 0 "
                     "+ 1) } } }",
                     kStoreY)),
      "t * 8 + i < 20) {\n          Y[i] = 5", "indices or divisors need that");
  // Several iterations compute an element.
  stays(Complex(
            "pragma \"fill\" { for (i, 0, 8) { X[i] = i } }"
            "pragma \"adds\" { for (j, 0, 3) { for (i, 0, 8) { if (t + j < 3) { X[i] = X[i] + 1 } "
            "} } } C[t] = X[7]"),
        "t + j < 3", "is not one on the stored elements alone");
  // Another condition may be evaluated only under it.
  stays(Complex("pragma \"fill\" { for (i, 0, 8) { if (t * 8 + i < 20 && 5 <= A[t * 8 + i] % 7) {"
                " X[i] = i } } } if (n < 0) { C[t] = X[0] }"),
        "t * 8 + i < 20 && 5 <= A[t * 8 + i] % 7", "may need the others");
  // Not affine; memory.
  stays(
      Complex("pragma \"fill\" { for (i, 0, 8) { if (i * i < 20 + t) { X[i] = i } } } C[t] = X[3]"),
      "i * i < 20 + t", "kept: the guard");
  stays(Complex("pragma \"fill\" { for (i, 0, 8) { if (i < Z_[t]) { X[i] = i } } } C[t] = X[0]",
                "allocate Z_: i32[3] @nmem Z_[0] = 3 Z_[1] = 2 Z_[2] = 1\n"),
        "i < Z_[t]", "kept: the guard");
}

// Guards in the terms of each store's own index are one guard.
TEST(PreprocessTest, GuardsAreComparedOnElements) {
  const std::string text = After(Complex(
      "pragma \"fill\" { for (j, 0, 7) { if (t * 8 + j < 19) { X[j + 1] = 1 } } }"
      "pragma \"adds\" { for (i, 0, 8) { if (1 <= n + i && t * 8 + i < 20) { X[i] = X[i] + 3 } } }"
      "if (t < 2) { C[t] = X[7] }"));
  // j + 1 is i, so t * 8 + i < 20 goes in both; the other guard is the second nest's alone.
  EXPECT_THAT(text, HasSubstr("for (j, 0, 7) {\n        X[j + 1] = 1"));
  EXPECT_THAT(text, HasSubstr("if (1 <= n + i) {\n          X[i] = X[i] + 3"));
}

// Indices beyond a buffer on chip enlarge it.
TEST(PreprocessTest, BuffersAreEnlarged) {
  const std::string text = After(
      Complex("pragma \"fill\" { for (i, 0, 8) { X[i] = i } }"
              "pragma \"adds\" { for (i, 0, 11) { if (i + t * 3 < 7) { Y[i] = X[i + 1] + 2 } } }"
              "if (t < 1) { C[t] = Y[6] }"));
  EXPECT_THAT(text, HasSubstr("allocate X: i32[12] @nmem"));
  EXPECT_THAT(text, HasSubstr("allocate Y: i32[11] @nmem"));
  EXPECT_THAT(text, HasSubstr("for (i, 0, 11) {\n        Y[i] = X[i + 1] + 2"));
}

// A bound by constants is one in any nest: what it excludes must not run twice.
TEST(PreprocessTest, ConstantGuardsNarrowLoops) {
  const std::string text =
      After(Complex("pragma \"fill\" { for (j, 0, 2) { for (i, 0, 8) { if (j < 1 && 2 <= i) { X[i] "
                    "= j + 1 } } } }"
                    "pragma \"muls\" { for (j, 0, 2) { for (i, 0, 8) { if (j < 1 && 2 <= i) {"
                    " X[i] = X[i] * 2 } } } } C[t] = X[7]"));
  EXPECT_THAT(text,
              HasSubstr("for (j, 0, 1) {\n        for (i, 2, 6) {\n          X[i] = X[i] * 2"));
}

TEST(PreprocessTest, ReductionGuardsStay) {
  std::string text = Conv(64, 4);
  const std::string update = "{ Cv[y, x, o] = Cv";
  text.replace(text.find(update), update.size(), "{ if (i + n < 5) { Cv[y, x, o] = Cv");
  const std::string end = "} } } } } } }\n  allocate Y";
  text.replace(text.find(end), 1, "} }");
  text.replace(text.find("Out: "), 0, "n: i32, ");
  EXPECT_THAT(After(text), AllOf(HasSubstr("if (i + n < 5) {"), HasSubstr("W[l, c * 64 + ")));
}

// ---- copies

TEST(PreprocessTest, GuardsOfCopiesBecomeBounds) {
  struct Row {
    std::string guard, loop;
  };
  for (const Row& row :
       std::vector<Row>{{"i + t * 8 < 20", "for (i, 0, min(20 - t * 8, 8)) {"},
                        {"n <= i", "for (i, max(n, 0), 8 - max(n, 0)) {"},
                        {"i + n < 5", "if (0 < min(5 - n, 8)) {"},
                        {"n <= i && i + t < 5", "for (i, max(n, 0), 5 - max(n, 0) - t) {"},
                        {"2 * i + 1 < n", "for (i, 0, min(n / 2, 8)) {"},
                        {"n < 2 * i", "for (i, max(n / 2 + 1, 0), 8 - max(n / 2 + 1, 0)) {"},
                        {"i == n", "for (i, max(n, 0), min(n + 1, 8) - max(n, 0)) {"},
                        {"n < t", "if (n < t) {"},
                        {"n != 0 && i < 10 / n", "if (n != 0 && i < 10 / n) {"},
                        {"(i + n) / 2 < t", "if ((i + n) / 2 < t) {"},
                        {"i != n", "if (i != n) {"},
                        {"i < 3", "for (i, 0, 3) {"}}) {
    const std::string text =
        After(Complex(StrCat("pragma \"memcpy\" { for (i, 0, 8) { if (", row.guard,
                             " && t * 8 + i < 20) { C[t * 8 + i] = A[t * 8 + i] } } }")));
    if (row.guard == "i + t * 8 < 20") {
      EXPECT_THAT(text, HasSubstr(row.loop));
      continue;
    }
    const std::string only = After(Complex(StrCat("pragma \"memcpy\" { for (i, 0, 8) { if (",
                                                  row.guard, ") { C[i] = A[i + t] } } }")));
    EXPECT_THAT(only, HasSubstr(row.loop)) << row.guard;
  }
}

// Conditions of padding on two loops bound the inner one: rows of triangles. Those of copies stay: two loops may be one
// row in pieces.
TEST(PreprocessTest, ConditionsOfTwoLoopsBoundTheInnerOne) {
  const auto padded = [](const std::string& inside) {
    return After(Complex(StrCat(
        "allocate P: i32[8, 8] @nmem pragma \"pad\" { for (i, 0, 8) { for (j, 0, 8) { P[i, j] = "
        "select(",
        inside, ", A[i + j + t], 0) } } } C[t] = P[t, t]")));
  };
  for (const auto& [inside, loop] : std::vector<std::pair<std::string, std::string>>{
           {"j <= i", "for (j, 0, i + 1) {"},
           {"i < j", "for (j, i + 1, 7 - i) {"},
           {"i + j < 5", "for (j, 0, 5 - i) {"},
           {"j <= i && i <= j + 2", "for (j, max(i - 2, 0), i - max(i - 2, 0) + 1) {"},
           {"i * j < 5", "if (i * j < 5) {"}}) {
    EXPECT_THAT(padded(inside), HasSubstr(loop)) << inside;
    EXPECT_THAT(padded(inside), HasSubstr("for (i, 0, 8) {")) << inside;
  }
  const std::string copy =
      After(Complex("pragma \"memcpy\" { for (i, 0, 3) { for (j, 0, 8) { if (i * 8 + j < 20) { "
                    "C[i * 8 + j] = A[i * 8 + j] } } } }"));
  EXPECT_THAT(copy, HasSubstr("if (i * 8 + j < 20) {"));
}

// The loop around stays one loop: bounds are computed when it runs.
TEST(PreprocessTest, LoopPartitionLeavesBoundsAlone) {
  const std::string text =
      AfterPasses(Complex(StrCat(kLoad, kStoreX)), "preprocess,loop_partition,simplify");
  EXPECT_THAT(text, HasSubstr("for (t, 0, 3) {"));
  EXPECT_THAT(text, Not(HasSubstr("no_partition")));
}

// ---- pad

std::string Padded(std::string_view value, std::string_view guard = "true", int64_t rows = 4) {
  return StrCat(
      "func f(A: i32[10, 6] in, C: i32[3, 4, 8] out, n: i32) {\n for (t, 0, 3) {\n"
      "allocate P: i32[4, 8] @nmem pragma \"pad\" { for (y, 0, ",
      rows, ") { for (x, 0, 8) { if (", guard, ") { P[y, x] = ", value, " } } } }\n for (y, 0, ",
      rows, ") { for (x, 0, 8) { if (", guard, ") { C[t, y, x] = P[y, x] } } } } }");
}

// The padding of a sliding window is one fill before all else, whatever is stored to it later.
TEST(PreprocessTest, PaddingOfASlidingWindow) {
  const auto window = [](std::string_view second, std::string_view extra = "") {
    return StrCat(
        "func f(A: i32[16] in, C: i32[16] out) { pragma \"sliding_window\" (i64(1)) {"
        " allocate P: i32[18] @nmem pragma \"pad\" { for (x, 0, 2) {"
        " P[x] = select(1 <= x, A[x - 1], 5) } } ",
        extra, " for (t, 0, 16) { pragma \"pad\" { for (x, 0, 1) { P[t + x + 2] = ", second,
        " } } C[t] = P[t] + P[t + 1] * 2 + P[t + 2] * 3 } } }");
  };
  const std::string text = After(window("select(t + x < 15, A[t + x + 1], 5)"));
  EXPECT_THAT(text, HasSubstr("    allocate P: i32[18] @nmem\n    pragma \"fill\" {\n"
                              "      for (f, 0, 18) {\n        P[f] = 5\n"));
  EXPECT_EQ(text.find("pragma \"fill\""), text.rfind("pragma \"fill\""));
  EXPECT_THAT(text, Not(HasSubstr("pragma \"pad\"")));
  // Another padding; another store.
  EXPECT_THAT(Decisions(window("select(t + x < 15, A[t + x + 1], 6)")),
              HasSubstr("kept: the window is not padded alike everywhere"));
  EXPECT_THAT(Decisions(window("select(t + x < 15, A[t + x + 1], 5)", "P[17] = 3")),
              HasSubstr("kept: the window is not padded alike everywhere"));
}

TEST(PreprocessTest, PaddingIsAFillAndACopy) {
  const std::string text = After(Padded(
      "select(1 <= t * 4 + y && t * 4 + y < 11 && 1 <= x && x < 7, A[t * 4 + y - 1, x - 1], 5)"));
  EXPECT_THAT(text, HasSubstr(R"(
    pragma "no_partition" {
      pragma "fill" {
        for (f, 0, 4) {
          for (f_1, 0, 8) {
            P[f, f_1] = 5
          }
        }
      }
      pragma "memcpy" {
        for (y, max(1 - t * 4, 0), min(11 - t * 4, 4) - max(1 - t * 4, 0)) {
          for (x, 1, 6) {
            P[y, x] = A[t * 4 + y - 1, x - 1]
          }
        }
      }
    }
)"));
}

// The fill runs only where something is outside.
TEST(PreprocessTest, FillUnderACondition) {
  for (const std::string value :
       {"select(1 <= t * 4 + y && t * 4 + y < 11, A[t * 4 + y - 1, x % 6], 5)",
        "select(1 <= t * 4 + y, select(t * 4 + y < 11, A[t * 4 + y - 1, x % 6], 5), 5)",
        "select(t * 4 + y < 1 || 11 <= t * 4 + y, 5, A[t * 4 + y - 1, x % 6])"}) {
    EXPECT_THAT(After(Padded(value)),
                AllOf(HasSubstr("if (t < 1 || 2 <= t) {\n        pragma \"fill\""),
                      HasSubstr("for (x, 0, 8) {\n            P[y, x] = A[t * 4 + y - 1, x % 6]")));
  }
  // All inside.
  const std::string inside = After(Padded("select(t * 4 + y < 12, A[t * 3 + y, x % 6], 5)"));
  EXPECT_THAT(inside, AllOf(Not(HasSubstr("fill")), HasSubstr("pragma \"memcpy\"")));
  EXPECT_THAT(After(Padded("A[t * 3 + y, x % 6]")), HasSubstr("pragma \"memcpy\""));
  EXPECT_THAT(After(Padded("5", "t * 4 + y < 10")),
              AllOf(HasSubstr("pragma \"fill\" {\n      for (y, 0, 4) {\n        for (x, 0, 8) {\n"
                              "          P[y, x] = 5"),
                    Not(HasSubstr("memcpy"))));
  // Outside by another condition: it stays in the copy.
  EXPECT_THAT(After(Padded("select((x + n) % 2 == 0, A[t * 3 + y, x % 6], 5)")),
              AllOf(Not(HasSubstr("no_partition")), HasSubstr("pragma \"fill\""),
                    HasSubstr("if ((x + n) % 2 == 0) {")));
}

// The inside is a diagonal: one loop for both dimensions.
TEST(PreprocessTest, DiagonalPadding) {
  const auto diagonal = [](std::string_view condition) {
    return StrCat(
        "func f(A: i32[3, 4, 5] in, C: i32[3, 4, 5, 4] out) { for (t, 0, 3) {"
        " allocate P: i32[4, 5, 4] @nmem pragma \"pad\" {"
        " for (i, 0, 4) { for (r, 0, 5) { for (j, 0, 4) { P[i, r, j] = select(",
        condition,
        ", A[t, i, r], 0) } } } } "
        "for (i, 0, 4) { for (r, 0, 5) { for (j, 0, 4) { C[t, i, r, j] = P[i, r, j] } } } } }");
  };
  // What is off the diagonal stays as it is in all iterations: it is filled once.
  for (const char* condition : {"i == j", "j == i", "i - j == 0"}) {
    EXPECT_THAT(After(diagonal(condition)), HasSubstr(R"(
  allocate P: i32[4, 5, 4] @nmem
  pragma "fill" {
    for (f, 0, 4) {
      for (f_1, 0, 5) {
        for (f_2, 0, 4) {
          P[f, f_1, f_2] = 0
        }
      }
    }
  }
  for (t, 0, 3) {
    pragma "memcpy" {
      for (i, 0, 4) {
        for (r, 0, 5) {
          P[i, r, i] = A[t, i, r]
        }
      }
    }
)")) << condition;
  }
  // Not where the diagonal has another place in each iteration, where a part of it is left out, where somebody else
  // stores, or where there may be several copies.
  const std::string filled = "for (t, 0, 3) {\n    allocate P";
  EXPECT_THAT(After(diagonal("i == j && r <= t")), HasSubstr("pragma \"fill\""));
  EXPECT_THAT(After(diagonal("i == j && r <= t")), HasSubstr(filled));
  std::string moving = diagonal("i == j");
  moving.replace(moving.find("P: i32[4"), 8, "P: i32[6");
  for (size_t at = 0; (at = moving.find("P[i, r, j]")) != std::string::npos;) {
    moving.replace(at, 4, "P[i + t,");
  }
  EXPECT_THAT(After(moving), HasSubstr("for (t, 0, 3) {\n    allocate P: i32[6"));
  std::string stored = diagonal("i == j");
  stored.insert(stored.rfind("for (i, 0, 4)"), "P[0, 0, 1] = 7 ");
  EXPECT_THAT(After(stored), HasSubstr(filled));
  std::string copied = diagonal("i == j");
  copied.insert(copied.find("allocate P"), "pragma \"double_buffer\" { ");
  copied += " }";
  EXPECT_THAT(After(copied), HasSubstr("double_buffer\" {\n      allocate P"));
  // A part of the diagonal; no diagonal, or one of loops over different ranges.
  EXPECT_THAT(After(diagonal("i == j && 1 <= r")),
              HasSubstr("for (r, 1, 4) {\n          P[i, r, i]"));
  EXPECT_THAT(After(diagonal("i == j + 1")), HasSubstr("P[i, r, j] = A"));
  EXPECT_THAT(After(diagonal("i == t")), HasSubstr("P[i, r, j] = A"));
  EXPECT_THAT(After(diagonal("i == r")), HasSubstr("P[i, r, j] = A"));
}

// In the last tile the fill covers what the tile does not have.
TEST(PreprocessTest, GuardedPadding) {
  const std::string text = After(
      Padded("select(1 <= x && x < 7, A[t * 4 + y, x - 1], 0)", "t * 4 + y < 10 && y < 3", 4));
  EXPECT_THAT(text, HasSubstr("for (f, 0, 4) {"));
  EXPECT_THAT(text, HasSubstr("for (y, 0, min(10 - t * 4, 3)) {"));
}

TEST(PreprocessTest, PaddingTwins) {
  // Two constants, a value that is no load, another store to P.
  EXPECT_THAT(After(Padded("select(1 <= x, select(x < 7, A[t, x - 1], 1), 0)")),
              HasSubstr("select(1 <= x"));
  EXPECT_THAT(After(Padded("select(1 <= x && x < 7, A[t, x - 1] + 1, 0)")),
              HasSubstr("select(1 <= x"));
  std::string twice = Padded("select(1 <= x && x < 7, A[t, x - 1], 0)");
  twice.replace(twice.find("for (y, 0, 4) { for (x, 0, 8) { if (true) { C"), 0, "P[0, 0] = 9 ");
  EXPECT_THAT(After(twice), HasSubstr("select(1 <= x"));
  EXPECT_THAT(Decisions(twice), HasSubstr("kept: not the only store"));
  // P lives longer: what one tile stored is still there in the next one.
  for (const std::string guard : {"t * 4 + y < 7", "true"}) {
    std::string longer = Padded("select(1 <= x && x < 7, A[t * 3 + y, x - 1], t)", guard);
    const std::string allocate = "allocate P: i32[4, 8] @nmem ";
    longer.replace(longer.find(allocate), allocate.size(), "");
    longer.replace(longer.find(" for (t, 0, 3)"), 0, allocate);
    longer.replace(longer.find(", t)"), 3, ", 9");
    longer.replace(longer.rfind(guard), guard.size(), "true");
    EXPECT_THAT(After(longer), HasSubstr(guard == "true" ? "fill" : "select(1 <= x")) << longer;
  }
  std::string moving = Padded("select(1 <= x && x < 7, A[t * 3 + y, x - 1], 0)");
  moving.replace(moving.find("P[y, x] = select"), 7, "P[(t + y) % 4, x]");
  EXPECT_THAT(After(moving), HasSubstr("select(1 <= x"));
}

// ---- functions without complex nests

// Tiles in an order that differs from thread to thread, of which one is short: loop_partition would
// make pieces of the loop over tiles.
TEST(PreprocessTest, RaggedTilesKeepTheirLoop) {
  const std::string program =
      "func add(A: f16[200] in, C: f16[200] out) { thread (tid, 2) { pragma \"ragged\" {"
      " for (t, 0, 2) { allocate L: f16[64] @nmem"
      " pragma \"memcpy\" { for (i, 0, 64) { if ((t + tid) % 2 * 64 + i < 100) {"
      " L[i] = A[tid * 100 + (t + tid) % 2 * 64 + i] } } }"
      " pragma \"relu\" { for (i, 0, 64) { if ((t + tid) % 2 * 64 + i < 100) {"
      " L[i] = max(L[i], 0.0) } } }"
      " pragma \"memcpy\" { for (i, 0, 64) { if ((t + tid) % 2 * 64 + i < 100) {"
      " C[tid * 100 + (t + tid) % 2 * 64 + i] = L[i] } } } } } } }";
  const std::string after = After(program);
  EXPECT_THAT(after, HasSubstr("min(100 - (tid + t) % 2 * 64, 64)")) << after;
  EXPECT_EQ(after.find("if ("), std::string::npos) << after;
}

TEST(PreprocessTest, ElementwiseFunctionsStay) {
  Unchanged(
      "func add(A: f16[200] in, C: f16[200] out) { thread (tid, 4) { allocate L: f16[64] @nmem"
      " pragma \"memcpy\" { for (i, 0, 64) { if (tid * 64 + i < 200) { L[i] = A[tid * 64 + i] } } }"
      " pragma \"relu\" { for (i, 0, 64) { if (tid * 64 + i < 200) { L[i] = max(L[i], 0.0) } } }"
      " pragma \"memcpy\" { for (i, 0, 64) { if (tid * 64 + i < 200) { C[tid * 64 + i] = L[i] } } "
      "} } }");
  // Not marked: nothing is asked for.
  Unchanged(
      "func f(A: i32[4, 8] in, C: i32[4] out) { for (y, 0, 4) { C[y] = 0 for (x, 0, 8) {"
      " if (x < y) { C[y] = C[y] + A[y, x] } } } }");
}

// ---- random programs

// What differs between the two, "" if nothing does. `ran`: whether `before` ran to its end on some
// arguments; a program that uses what was never stored stops, and may run to its end afterwards.
std::string Compared(const ir::Function& before, const ir::Function& after, uint64_t seed,
                     bool* ran) {
  bool stopped = false;
  ir::MeaningOptions options = MeaningOptionsFor(TestTarget());
  options.may_stop = true;
  options.stopped = &stopped;
  // A merged guard is a range whose ends are computed from n: `min(n + 1, 8) - max(n, 0)` overflows
  // for the greatest n, where `i == n` does not.
  options.arguments.small_integers = true;
  const std::string difference = ir::CompareMeaning(before, after, seed, options);
  *ran = !stopped;
  return difference;
}

// Nests on a few buffers under random guards: wherever the program runs before, it runs after, with
// the same result.
TEST(PreprocessTest, RandomGuards) {
  const std::vector<std::string> guards = {"true",
                                           "t * 8 + i < 20",
                                           "t * 8 + i < 20 && i < 6",
                                           "i + n < 9",
                                           "n <= i + t",
                                           "2 * i + 1 < n + t * 4",
                                           "i < 5",
                                           "1 <= i",
                                           "i == n",
                                           "i / 2 < n",
                                           "t < n",
                                           "k * 2 + i < 7",
                                           "t * 8 + i < 20 && t * 8 + i < 20 + n"};
  int changed = 0;
  int ran = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto pick = [&](const std::vector<std::string>& v) { return v[random() % v.size()]; };
    // Few guards in a program, so that nests share them.
    const std::string common = pick(guards);
    const auto guard = [&] { return random() % 4 == 0 ? pick(guards) : common; };
    std::string nests;
    std::string from = pick({"X", "Y", "K"});
    if (random() % 3 == 0) {
      StrAppend(&nests, "pragma \"fill\" { for (i, 0, 8) { ", from, "[i] = 7 } }\n");
    }
    for (size_t k = 2 + random() % 5; k > 0; --k) {
      const std::string to = pick({"X", "Y", "K"});
      const auto [pragma, value] = std::vector<std::pair<std::string, std::string>>{
          {"fill", "7"},
          {"memcpy", "A[t * 6 + i]"},
          {"memcpy", from + "[i]"},
          {"adds", from + "[i] + 3"},
          {"adds", from + "[i] + i"},
          {"pad", "select(1 <= t + i && i < 7, A[t * 6 + i], 2)"},
          {"add", from + "[i] + " + to + "[i]"}}[random() % 7];
      StrAppend(&nests, "pragma \"", pragma, "\" { for (i, 0, 8) { if (", guard(), ") { ", to,
                "[i] = ", value, " } } }\n");
      if (random() % 2 == 0) from = to;
    }
    StrAppend(&nests, "for (i, 0, 8) { if (t * 8 + i < 20 && ", guard(),
              ") { C[t * 8 + i] = ", from, "[i] } }");
    const std::string text =
        Complex(StrCat("for (k, 0, 2) {\n", nests, "}"), "allocate K: i32[8] @nmem\n");
    ir::Function f = ParseOrDie(text);
    const ir::Function before = ir::CloneInto(f, std::make_shared<ir::Context>());
    const absl::StatusOr<bool> done = Preprocess(f, TestTarget());
    ASSERT_TRUE(done.ok()) << done.status();
    changed += *done;
    const absl::Status valid = ir::Verify(f);
    EXPECT_TRUE(valid.ok()) << valid;
    bool complete = false;
    EXPECT_EQ(Compared(before, f, seed, &complete), "");
    ran += complete;
    if (HasFailure()) {
      ADD_FAILURE() << text << ir::Print(f);
      break;
    }
  }
  EXPECT_GT(changed, 150);
  EXPECT_GT(ran, 50);
}

struct RandomConv {
  explicit RandomConv(uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random() % (high - low + 1));
    };
    do {
      h = pick(1, 14), w = pick(1, 7), kh = pick(1, 3), kw = pick(1, 3);
      ci = pick(0, 3) == 0 ? pick(1, 70) : pick(1, 6);
      co = pick(0, 2) == 0 ? pick(1, 140) : pick(1, 70);
      stride = pick(1, 2), pad = pick(0, 2), dilation = pick(1, 2);
      ho = (h + 2 * pad - dilation * (kh - 1) - 1) / stride + 1;
      wo = (w + 2 * pad - dilation * (kw - 1) - 1) / stride + 1;
    } while (h + 2 * pad < dilation * (kh - 1) + 1 || w + 2 * pad < dilation * (kw - 1) + 1 ||
             ho * wo * co * kh * kw * ci > 60000);
    clusters = pick(1, 3), cores = pick(1, 3), rows = pick(1, 3);
    block = pick(0, 1) * 64;
    weights_inside = pick(0, 1) == 1;
    type = std::vector<Type>{Type::kI8, Type::kI16, Type::kF16, Type::kF32}[pick(0, 3)];
  }

  ir::Function Lowered() const {
    te::Graph g("conv");
    const Type sum = ir::IsFloat(type) ? Type::kF32 : Type::kI32;
    const te::Tensor in = g.Placeholder("In", {h, w, ci}, type);
    const te::Tensor wt = g.Placeholder("Wt", {co, kh, kw, ci}, type);
    const te::Tensor bias = g.Placeholder("Bias", {co}, Type::kF32);
    const te::Tensor p =
        g.Compute("P", {h + 2 * pad, w + 2 * pad, ci}, [&](Expr y, Expr x, Expr c) {
          const auto inside = [&](Expr i, int64_t n) { return ir::And(pad <= i, i < n + pad); };
          return te::Select(ir::And(inside(y, h), inside(x, w)), in(y - pad, x - pad, c), 0);
        });
    const te::ReduceAxis r = g.ReduceAxisOf("r", kh);
    const te::ReduceAxis q = g.ReduceAxisOf("s", kw);
    const te::ReduceAxis i = g.ReduceAxisOf("i", ci);
    const auto cast = [&](Type t, Expr e) { return g.context().Cast(t, e); };
    const te::Tensor cv = g.Compute("Cv", {ho, wo, co}, [&](Expr y, Expr x, Expr o) {
      return ReduceSum(cast(sum, p(y * stride + r * dilation, x * stride + q * dilation, i)) *
                           cast(sum, wt(o, r, q, i)),
                       r, q, i);
    });
    const te::Tensor f = g.Compute("F", {ho, wo, co}, [&](Expr y, Expr x, Expr o) {
      return ir::IsFloat(sum) ? cv(y, x, o) * 2 : cast(Type::kF32, cv(y, x, o));
    });
    const te::Tensor b =
        g.Compute("Fb", {ho, wo, co}, [&](Expr y, Expr x, Expr o) { return f(y, x, o) + bias(o); });
    const te::Tensor out = g.Compute(
        "Out", {ho, wo, co}, [&](Expr y, Expr x, Expr o) { return cast(Type::kF16, b(y, x, o)); });
    te::Schedule s(out);
    const te::Tensor yv = s.CacheWrite(out, "nmem");
    const te::Tensor ws = s.CacheRead(wt, "smem");
    const te::Tensor ww = s.CacheRead(ws, "wmem");
    const te::Tensor bb = s.CacheRead(bias, "nmem");
    const auto per = [](int64_t n, int64_t k) { return (n + k - 1) / k; };
    auto [cid, rest] = s[out].Split(s[out].axis(0), per(ho, clusters));
    auto [tid, rest2] = s[out].Split(rest, per(per(ho, clusters), cores));
    auto [t, row] = s[out].Split(rest2, rows);
    te::Axis at = t;
    if (block != 0) {
      auto [cb, channel] = s[out].Split(s[out].axis(2), block);
      s[out].Reorder({cid, tid, t, cb, row, s[out].axis(1), channel});
      at = cb;
    }
    s[out].Bind(cid, "cid").Bind(tid, "tid").Pragma(row, "memcpy");
    s[ws].ComputeAt(s[out], cid).Pragma(s[ws].axis(0), "memcpy");
    s[ww].ComputeAt(s[out], weights_inside ? at : tid).Pragma(s[ww].axis(0), "memcpy");
    s[bb].ComputeAt(s[out], at).Pragma(s[bb].axis(0), "memcpy");
    s[p].ComputeAt(s[out], at).SetScope("nmem").Pragma(s[p].axis(0), "pad");
    s[cv].ComputeAt(s[out], at).SetScope("nmem").Pragma(s[cv].axis(0), "conv");
    s[f].ComputeAt(s[out], at)
        .SetScope("nmem")
        .Pragma(s[f].axis(0), ir::IsFloat(sum) ? "muls" : "cast");
    s[b].ComputeAt(s[out], at).SetScope("nmem").Pragma(s[b].axis(0), "row_add").InPlace(f);
    s[yv].ComputeAt(s[out], at).SetScope("nmem").Pragma(s[yv].axis(0), "cast");
    absl::StatusOr<ir::Function> lowered = Lower(s);
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    return *std::move(lowered);
  }

  int64_t h, w, ci, co, kh, kw, stride, pad, dilation, ho, wo;
  int64_t clusters, cores, rows, block;
  bool weights_inside;
  Type type;
};

// Schedules with tiles that divide nothing: all guards of computation go, the weights are laid out, and
// all that is left are instructions, one convolution among them.
TEST(PreprocessTest, RandomConvolutions) {
  const auto passes =
      ParsePasses("simplify,preprocess,loop_partition,simplify,flatten,simplify,tensorize");
  ASSERT_TRUE(passes.ok());
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ir::Function f = RandomConv(seed).Lowered();
    const ir::Function before = ir::CloneInto(f, std::make_shared<ir::Context>());
    std::string said;
    PipelineOptions options = {.stats = true};
    options.on_step = [&](const PipelineOptions::Step& step) {
      if (step.pass->name != "preprocess") return;
      for (const std::string& line : step.stats) StrAppend(&said, line, "\n");
    };
    const absl::Status status = RunPasses(f, *passes, TestTarget(), options);
    ASSERT_TRUE(status.ok()) << status;
    const absl::Status same = CheckSameMeaning(before, f, TestTarget(), seed);
    EXPECT_TRUE(same.ok()) << same;
    EXPECT_THAT(said, AllOf(HasSubstr("in groups of 64"), Not(HasSubstr("kept"))));
    const std::string text = ir::Print(f);
    const size_t conv = text.find(" conv.");
    EXPECT_NE(conv, std::string::npos);
    EXPECT_EQ(text.find(" conv.", conv + 1), std::string::npos);
    EXPECT_THAT(text, Not(HasSubstr("] = ")));
    if (HasFailure()) {
      ADD_FAILURE() << said << ir::Print(before) << text;
      break;
    }
  }
}

}  // namespace
}  // namespace polynao
