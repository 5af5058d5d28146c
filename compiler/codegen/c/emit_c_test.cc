#include "compiler/codegen/c/emit_c.h"

#include <string>

#include "compiler/codegen/c/function_emitter.h"
#include "compiler/codegen/c/prelude.h"
#include "compiler/codegen/codegen_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Emit(std::string_view text) {
  absl::StatusOr<std::string> c = EmitC(Parse(text));
  EXPECT_TRUE(c.ok()) << c.status();
  return c.ok() ? *c : "";
}

// The whole text for a function that a person would want to read. To write it anew:
//   POLYNAO_UPDATE_GOLDENS=1 bazel run //compiler/codegen/c:emit_c_test
TEST(EmitCTest, Golden) {
  const std::string text = Emit(R"(
      func conv.f16(A: f16[h, w, 16] in, W: f16[3, 3, 16] in, bias: f32[16] in,
                    B: f16[h, w, 16] out, h: i32, w: i32, limit: f32) {
        parallel (y, 0, h) {
          for (x, 0, w) {
            allocate sum: f32[16] @local
            vectorize (c, 0, 16) {
              sum[c] = bias[c]
            }
            for (ky, 0, 3) {
              for (kx, 0, 3) {
                if (0 <= y + ky - 1 && y + ky - 1 < h && 0 <= x + kx - 1 && x + kx - 1 < w) {
                  vectorize (c, 0, 16) {
                    sum[c] = sum[c] + cast(f32, A[y + ky - 1, x + kx - 1, c] * W[ky, kx, c])
                  }
                }
              }
            }
            for (cc, 0, 16) {
              let v: f32 = min(max(sum[(cc / 4) * 4 + cc % 4], 0.0), limit)
              B[y, x, cc] = cast(f16, v)
            }
          }
        }
      })");
  ExpectGolden(text, "compiler/codegen/c/testdata/conv_f16.c");
}

// Declarations of what stands elsewhere, definitions of what has a meaning, calls. No variable hides a
// function, and nothing is promised about who overlaps where an opaque function is called.
TEST(EmitCTest, ExternFunctions) {
  const std::string text = Emit(R"(
      extern pure func g(x: f32, y: f16) -> f16
      extern reads func last(A: f32[n] in, n: i32) -> f32 = A[n - 1]
      extern opaque func tick(A: f32[2, 3] out, step: i64)
      func f(A: f32[4, 3], B: f16[4], n: i32) {
        let g: f32 = A[0, 1]
        B[0] = g(g, 0.5)
        A[n, 0] = last(&A[1, 2], n + 1)
        tick(&A[2, 0], 7)
      })");
  EXPECT_THAT(text, HasSubstr("\nfloat g(float x, float y);  // pure\n"));
  EXPECT_THAT(text, HasSubstr("static float last(const float *A, int32_t n) {\n"));
  EXPECT_THAT(text, HasSubstr("  return A[n - 1];\n"));
  EXPECT_THAT(text, HasSubstr("\nvoid tick(float *A, int64_t step);  // opaque\n"));
  EXPECT_THAT(text, HasSubstr("void f(float *A, uint16_t *B, int32_t n) {\n"));
  EXPECT_THAT(text, HasSubstr("g(g_1, 0.5f)"));
  EXPECT_THAT(text, HasSubstr("A[n * 3 + 0] = last(&A[1 * 3 + 2], n + 1);\n"));
  EXPECT_THAT(text, HasSubstr("tick(&A[2 * 3 + 0], 7);\n"));
  EXPECT_EQ(
      EmitC(Parse("extern opaque func register()\nfunc f() { register() }")).status().message(),
      "an extern function must not be called 'register', which is a word of C or a name that "
      "emitted text uses");
}

TEST(EmitCTest, IndicesUsePlainOperatorsAndValuesWrap) {
  const std::string text = Emit(R"(
      func f(A: i32[n, 8], n: i32, d: i32) {
        for (i, 0, n) {
          for (j, -2, 4) {
            A[i / 4 * 4 + i % 4, j + 2] = A[0, (j - 1) / 4 + 1] * 3 + i
          }
          A[i, d / 4] = i / d
        }
      })");
  EXPECT_THAT(text, HasSubstr("A[(int64_t)(i / 4 * 4 + i % 4) * 8 + j + 2] = "
                              "nao_add_i32(nao_mul_i32(A["));
  // j and d may be negative.
  EXPECT_THAT(text, HasSubstr("A[nao_div_i32(j - 1, 4) + 1], 3)"));
  EXPECT_THAT(text, HasSubstr("A[(int64_t)i * 8 + nao_div_i32(d, 4)] = nao_div_i32(i, d);"));
  EXPECT_THAT(text, HasSubstr("for (int32_t j = -2; j < 2; ++j) {"));
}

// A value's arithmetic wraps, unless loops say that it does not; conditions never do.
TEST(EmitCTest, ValuesThatDoNotWrap) {
  const auto let = [](const std::string& value) {
    return Emit("func f(A: f32[64] out, n: i32) { for (i, 0, 8) { let t = " + value +
                " for (j, 0, 8) { A[(t + j) / 8] = 1.0 } } }");
  };
  EXPECT_THAT(let("i * 8 / 4"), AllOf(HasSubstr("const int32_t t = i * 8 / 4;"),
                                      HasSubstr("A[(t + j) / 8]"), Not(HasSubstr("nao_"))));
  EXPECT_THAT(let("i * 8 - 1"), AllOf(HasSubstr("const int32_t t = i * 8 - 1;"),
                                      HasSubstr("A[nao_div_i32(t + j, 8)]")));
  EXPECT_THAT(let("n * 8"), HasSubstr("const int32_t t = nao_mul_i32(n, 8);"));
  EXPECT_THAT(let("i * 1000000000"), HasSubstr("nao_mul_i32(i, 1000000000)"));
  const std::string text = Emit(R"(
      func f(A: f32[64] out, n: i32) {
        for (i, 0, 8) {
          A[i] = select(n * 2 < i, cast(f32, i * 3), cast(f32, n * 3))
          if (3 < n) { if (n < 9) { let t = n * 8 / 2 A[t] = 1.0 } }
        }
      })");
  EXPECT_THAT(text, HasSubstr("A[i] = n * 2 < i ? (float)(i * 3) : (float)nao_mul_i32(n, 3);"));
  EXPECT_THAT(text, HasSubstr("const int32_t t = n * 8 / 2;"));
}

TEST(EmitCTest, SimdOnlyWhereIterationsAreIndependent) {
  const auto has_simd = [](const std::string& body) {
    const std::string text =
        Emit("func f(A: f32[64], B: f32[8, 64], n: i32, k: i32) { " + body + " }");
    return text.find("#pragma omp simd") != std::string::npos;
  };
  EXPECT_TRUE(has_simd("vectorize (i, 0, n) { A[i] = A[i] + 1.0 }"));
  EXPECT_TRUE(has_simd("vectorize (i, 0, n) { A[k * 4 + i] = A[k * 4 + i] + B[0, i + 1] }"));
  EXPECT_TRUE(has_simd("vectorize (i, 0, n) { for (j, 0, 4) { B[j, i] = B[j + 1, i] } }"));
  EXPECT_TRUE(has_simd("vectorize (i, 0, 8) { A[i * 2] = 0.0 }"));
  // One cell for all, a neighbour's cell, two iterations on one cell.
  EXPECT_FALSE(has_simd("vectorize (i, 0, n) { A[0] = A[0] + B[0, i] }"));
  EXPECT_FALSE(has_simd("vectorize (i, 0, n) { A[i] = A[i + 1] }"));
  EXPECT_FALSE(has_simd("vectorize (i, 0, n) { A[i / 2] = 0.0 }"));
  EXPECT_FALSE(has_simd("vectorize (i, 0, n) { for (j, 0, 4) { A[i + j] = 0.0 } }"));
  EXPECT_FALSE(has_simd("vectorize (i, 0, n) { let t = i / 2 A[i + t] = 0.0 }"));
  EXPECT_FALSE(has_simd("for (i, 0, n) { A[i] = 0.0 }"));
}

// Buffers that may overlap are not restrict, and a store to one keeps loads of the others in order.
TEST(EmitCTest, DeclaredAliases) {
  const std::string body =
      "func f(A: f32[64] in, B: f32[64], C: f32[64] in) {"
      " vectorize (i, 0, 63) { B[i + 1] = A[i] + C[i] } }";
  const std::string apart = Emit(body);
  EXPECT_THAT(apart, HasSubstr("void f(const float *restrict A, float *restrict B, "
                               "const float *restrict C)"));
  EXPECT_THAT(apart, HasSubstr("#pragma omp simd"));
  const std::string text = Emit("@may_alias(\"A\", \"B\") " + body);
  EXPECT_THAT(text, HasSubstr("void f(const float *A, float *B, const float *restrict C)"));
  EXPECT_THAT(text, Not(HasSubstr("#pragma omp simd")));
  // Those that only are loaded may overlap.
  EXPECT_THAT(Emit("@may_alias(\"A\", \"C\") " + body), HasSubstr("#pragma omp simd"));
}

TEST(EmitCTest, PragmasOfOtherLoops) {
  const std::string text = Emit(R"(
      func f(A: f32[n, 8, 4], n: i32) {
        parallel (i, 0, n) {
          parallel (j, 0, 8) {
            unroll (k, 0, 4) { A[i, j, k] = 0.0 }
          }
        }
        thread (t = "blockIdx.x", n) { A[t, 0, 0] = 1.0 }
      })");
  EXPECT_THAT(text,
              HasSubstr("  #pragma omp parallel for\n  for (int32_t i = 0; i < i_count; ++i) {\n"
                        "    for (int32_t j"));
  EXPECT_THAT(text, HasSubstr("#pragma GCC unroll 4\n"));
  EXPECT_THAT(text, HasSubstr("for (int32_t t = 0; t < n; ++t) {  // thread axis blockIdx.x"));
}

TEST(EmitCTest, ConditionalEvaluation) {
  const std::string text = Emit(R"(
      func f(A: f32[8], B: f32[8], i: i32) {
        A[0] = select(0 <= i && i < 8, A[i], 0.0)
        A[1] = select(i < 8 || i == 9, (let x: f32 = A[i] * 2.0 in x * x), 0.0)
      })");
  EXPECT_THAT(text, HasSubstr("A[0] = 0 <= i && i < 8 ? A[i] : 0.0f;"));
  EXPECT_THAT(text, HasSubstr("  float v1;\n"
                              "  if (i < 8 || i == 9) {\n"
                              "    const float x = A[i] * 2.0f;\n"
                              "    v1 = x * x;\n"
                              "  } else {\n"
                              "    v1 = 0.0f;\n"
                              "  }\n"
                              "  A[1] = v1;\n"));
}

// Compilers warn of variables that nothing uses.
TEST(EmitCTest, LeavesOutWhatNothingNeeds) {
  const std::string text = Emit(R"(
      func f(A: f32[8], B: f32[8], n: i32) {
        let t = n / 3
        let u = t + 1
        let kept = n * 5
        for (i, t + 2, n) { A[kept % 8] = 1.0 }
      })");
  EXPECT_THAT(text, HasSubstr("(void)B;"));
  EXPECT_THAT(text, HasSubstr("const int32_t kept = nao_mul_i32(n, 5);"));
  EXPECT_THAT(text, Not(HasSubstr("int32_t t ")));
  EXPECT_THAT(text, Not(HasSubstr("int32_t u ")));
}

TEST(EmitCTest, Names) {
  EXPECT_EQ(CName("add.f32"), "add_f32");
  EXPECT_EQ(CName("int"), "int_");
  EXPECT_EQ(CName("4x4"), "x_4x4");
  EXPECT_EQ(CName("_start"), "x__start");
  EXPECT_EQ(CName("nao_add_i32"), "x_nao_add_i32");
  EXPECT_EQ(CName("expf"), "expf_");
  const std::string text = Emit(R"(
      func for.each(float: i32[8], i.o: i32, i_o: i32) {
        for (i, 0, 8) { float[i] = i.o + i_o }
        for (i, 0, 8) { for (i, 0, 1) { float[i] = 0 } }
      })");
  EXPECT_THAT(text,
              HasSubstr("void for_each(int32_t *restrict float_, int32_t i_o, int32_t i_o_1)"));
  EXPECT_THAT(text, AllOf(HasSubstr("for (int32_t i = 0"), HasSubstr("for (int32_t i_1 = 0")));
}

TEST(EmitCTest, PreludeHoldsOnlyWhatIsUsed) {
  EXPECT_THAT(CPrelude("x = 1;"), Not(HasSubstr("nao_")));
  const std::string text = CPrelude("x = nao_round_f16(y);");
  EXPECT_THAT(text, AllOf(HasSubstr("float nao_round_f16("), HasSubstr("nao_f16_of_f32(float"),
                          HasSubstr("nao_bits_of_f32(float"), Not(HasSubstr("bf16"))));
  EXPECT_LT(text.find("float nao_f32_of_f16("), text.find("float nao_round_f16("));
}

TEST(EmitCTest, Errors) {
  EXPECT_THAT(
      std::string(EmitC(Parse("func f(A: f32[4]) { add.f32(&A[0], 4) }")).status().message()),
      HasSubstr("f: call of 'add.f32': the c target has no tensor instructions"));
  const ir::Function f = Parse("func f(A: f32[4]) { A[0] = 1.0 }");
  const std::vector<ir::Function> twice = {f, f};
  EXPECT_THAT(std::string(EmitC(twice).status().message()),
              HasSubstr("two functions of this file would be called 'f'"));
}

}  // namespace
}  // namespace polynao::codegen
