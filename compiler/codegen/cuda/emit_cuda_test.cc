#include "compiler/codegen/cuda/emit_cuda.h"

#include <string>

#include "compiler/codegen/codegen_test_util.h"
#include "compiler/codegen/cuda/nvcc.h"
#include "compiler/ir/random_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Emit(std::string_view text) {
  absl::StatusOr<CudaModule> module = EmitCuda(Parse(text));
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? module->source : "";
}

constexpr std::string_view kMatmul = R"(
    func matmul.f32(A: f32[30, 64] in, B: f32[64, 32] in, C: f32[30, 32] out) {
      thread (by = "blockIdx.y", 2) {
        thread (bx = "blockIdx.x", 2) {
          allocate A.shared: f32[16, 8] @shared
          allocate B.shared: f32[8, 16] @shared
          allocate sum: f32[8, 8, 2, 2] @local
          thread (ty = "threadIdx.y", 8) {
            thread (tx = "threadIdx.x", 8) {
              unroll (i, 0, 2) { unroll (j, 0, 2) { sum[ty, tx, i, j] = 0.0 } }
            }
          }
          for (k, 0, 8) {
            thread (ty = "threadIdx.y", 4) {
              thread (tx = "threadIdx.x", 8) {
                if (by * 16 + ty * 4 + tx / 2 < 30) {
                  vectorize (v, 0, 4) {
                    A.shared[ty * 4 + tx / 2, tx % 2 * 4 + v] =
                        A[by * 16 + ty * 4 + tx / 2, k * 8 + tx % 2 * 4 + v]
                  }
                }
              }
            }
            thread (ty = "threadIdx.y", 8) {
              thread (tx = "threadIdx.x", 4) {
                vectorize (v, 0, 4) {
                  B.shared[ty, tx * 4 + v] = max(B[k * 8 + ty, bx * 16 + tx * 4 + v], 0.0)
                }
              }
            }
            thread (ty = "threadIdx.y", 8) {
              thread (tx = "threadIdx.x", 8) {
                for (kk, 0, 8) {
                  unroll (i, 0, 2) {
                    unroll (j, 0, 2) {
                      sum[ty, tx, i, j] = sum[ty, tx, i, j]
                          + A.shared[ty * 2 + i, kk] * B.shared[kk, tx * 2 + j]
                    }
                  }
                }
              }
            }
          }
          thread (ty = "threadIdx.y", 8) {
            thread (tx = "threadIdx.x", 8) {
              unroll (i, 0, 2) {
                if (by * 16 + ty * 2 + i < 30) {
                  vectorize (j, 0, 2) {
                    C[by * 16 + ty * 2 + i, bx * 16 + tx * 2 + j] = sum[ty, tx, i, j]
                  }
                }
              }
            }
          }
        }
      }
    })";

// The whole text for a function that a person would want to read. To write it anew:
//   POLYNAO_UPDATE_GOLDENS=1 bazel run //compiler/codegen/cuda:emit_cuda_test
TEST(EmitCudaTest, Golden) {
  const std::string text = Emit(kMatmul);
  ExpectGolden(text, "compiler/codegen/cuda/testdata/matmul_f32.txt");
}

TEST(EmitCudaTest, Threads) {
  const std::string text = Emit(R"(
      func f(A: f32[64] out, n: i32) {
        thread (b = "blockIdx.x", 2) {
          A[b] = 0.0
          thread (t = "threadIdx.x", 32) { A[t] = 1.0 }
          thread (t = "threadIdx.x", 8) { A[t + n] = 2.0 }
        }
      })");
  EXPECT_THAT(text, HasSubstr("// Grid 2 x 1 x 1, block 32 x 1 x 1.\n"
                              "extern \"C\" __global__ void __launch_bounds__(32) f_kernel(\n"
                              "    float* __restrict__ A, int32_t n) {\n"
                              "  const int32_t b = (int32_t)blockIdx.x;\n"
                              "  {\n"
                              "    if (threadIdx.x == 0) {\n"
                              "      A[b] = 0.0f;\n"
                              "    }\n"
                              "  }\n"
                              "  __syncthreads();\n"
                              "  {\n"
                              "    const int32_t t = (int32_t)threadIdx.x;\n"
                              "    A[t] = 1.0f;\n"
                              "  }\n"
                              "  __syncthreads();\n"
                              "  {\n"
                              "    const int32_t t = (int32_t)threadIdx.x;\n"
                              "    if (t < 8) {\n"
                              "      A[t + n] = 2.0f;\n"
                              "    }\n"
                              "  }\n"));
}

TEST(EmitCudaTest, WideAccessesOnlyWhereTheyAreRight) {
  const auto wide = [](const std::string& body, const std::string& type = "f32") {
    const std::string text = Emit("func f(A: " + type + "[64], B: " + type + "[4, 64], D: " + type +
                                  "[9, 6], i: i32) { vectorize (v, 0, 4) { " + body + " } }");
    return text.find("reinterpret_cast") != std::string::npos;
  };
  EXPECT_TRUE(wide("A[i * 4 + v] = B[2, i * 8 + v]"));
  EXPECT_TRUE(wide("A[i * 4 + v] = A[i * 4 + v] + 1.0"));
  EXPECT_TRUE(wide("if (i < 3) { A[v] = B[3, i + v] }"));
  EXPECT_TRUE(wide("A[i * 8 + 4 + v] = 0", "i8"));
  EXPECT_TRUE(wide("A[v] = B[1, v]", "f16"));
  EXPECT_FALSE(wide("A[i + v] = B[2, v]"));
  EXPECT_FALSE(wide("A[i * 4 + v] = A[i * 4 + v + 4]"));
  EXPECT_FALSE(wide("A[v] = A[3 - v]"));
  EXPECT_FALSE(wide("A[v * 2] = B[2, v]"));
  EXPECT_FALSE(wide("D[i, v] = A[v]"));
  EXPECT_FALSE(wide("if (v < i) { A[v] = 1.0 }"));
  EXPECT_FALSE(wide("A[v] = 1.0", "f64"));
  // Lets around the loop and in it count by what they stand for, unless that may wrap.
  const auto wide_let = [](const std::string& around, const std::string& body) {
    const std::string text = Emit("func f(A: f32[64], B: f32[64], n: i32) { for (i, 0, 8) { " +
                                  around + " vectorize (v, 0, 4) { " + body + " } } }");
    return text.find("reinterpret_cast") != std::string::npos;
  };
  EXPECT_TRUE(wide_let("let t = i * 4", "A[t + v] = B[v]"));
  EXPECT_TRUE(wide_let("let t = i * 4", "let u = t + v A[u] = max(B[u], 0.0)"));
  EXPECT_TRUE(wide_let("let t = i * 4", "if (n < t) { let u = t + v A[u] = B[u] }"));
  EXPECT_FALSE(wide_let("let t = i * 2", "A[t + v] = B[v]"));
  EXPECT_FALSE(wide_let("let t = n * 4", "A[t + v] = B[v]"));
  EXPECT_FALSE(wide_let("let t = i * 4", "let u = v * n A[t + u] = B[v]"));
  EXPECT_FALSE(wide_let("let t = i * 4", "let u = t + v if (n < u) { A[u] = B[u] }"));
  // What may not be evaluated is not loaded ahead.
  EXPECT_THAT(Emit("func f(A: f32[64], B: f32[64], i: i32) { vectorize (v, 0, 4) {"
                   " A[v] = select(i < 60, B[i * 4 + v], 0.0) } }"),
              Not(HasSubstr("*>(&B")));
}

TEST(EmitCudaTest, DotProductsOfFourBytes) {
  const auto dots = [](const std::string& body) {
    const std::string text = Emit(
        "func f(A: i8[64] in, B: i8[4, 64] in, U: u8[64] in, S: i32[8], i: i32) { " + body + " }");
    return text.find("__dp4a") != std::string::npos;
  };
  EXPECT_TRUE(dots("unroll (k, 0, 4) { S[i] = S[i] + cast(i32, A[k]) * cast(i32, B[i, k]) }"));
  EXPECT_TRUE(dots("for (k, 0, 4) { S[i] = cast(i32, A[i * 4 + k]) * cast(i32, B[0, k]) + S[i] }"));
  EXPECT_TRUE(
      dots("let t = 8 for (k, 0, 4) { let u = t + k"
           " S[i] = S[i] + cast(i32, A[u]) * cast(i32, B[i, u]) }"));
  EXPECT_FALSE(
      dots("let t = 2 for (k, 0, 4) { let u = t + k"
           " S[i] = S[i] + cast(i32, A[u]) * cast(i32, B[i, u]) }"));
  EXPECT_FALSE(dots("for (k, 0, 3) { S[i] = S[i] + cast(i32, A[k]) * cast(i32, B[i, k]) }"));
  EXPECT_FALSE(dots("for (k, 0, 4) { S[k] = S[k] + cast(i32, A[k]) * cast(i32, B[i, k]) }"));
  EXPECT_FALSE(dots("for (k, 0, 4) { S[i] = S[i] + cast(i32, U[k]) * cast(i32, B[i, k]) }"));
  EXPECT_FALSE(dots("for (k, 0, 4) { S[i] = S[i] + cast(i32, A[i + k]) * cast(i32, B[i, k]) }"));
  EXPECT_FALSE(dots("for (k, 0, 4) { S[i] = S[1] + cast(i32, A[k]) * cast(i32, B[i, k]) }"));
}

// Buffers that may overlap are not __restrict__, and no lane or factor of one is read ahead of a store
// to another.
TEST(EmitCudaTest, DeclaredAliases) {
  const std::string copy = "func f(A: f32[64] in, B: f32[64] out, C: f32[64] in) { ";
  const std::string lanes =
      copy +
      "thread (t = \"threadIdx.x\", 16) { vectorize (v, 0, 4) { B[t * 4 + v] = "
      "A[t * 4 + v] + C[t * 4 + v] } } }";
  EXPECT_THAT(Emit(lanes), HasSubstr("const float* __restrict__ A, float* __restrict__ B, "));
  EXPECT_THAT(Emit(lanes), HasSubstr("reinterpret_cast<int4*>(&B"));
  const std::string text = Emit("@may_alias(\"A\", \"B\") " + lanes);
  EXPECT_THAT(text, HasSubstr("const float* A, float* B, const float* __restrict__ C"));
  EXPECT_THAT(text, Not(HasSubstr("reinterpret_cast")));
  // Those that only are loaded may overlap.
  EXPECT_THAT(Emit("@may_alias(\"A\", \"C\") " + lanes), HasSubstr("reinterpret_cast<int4*>(&B"));
  const std::string dots =
      "func f(A: i8[64] in, B: i8[64] in, S: i32[8]) {"
      " for (k, 0, 4) { S[0] = S[0] + cast(i32, A[k]) * cast(i32, B[k]) } }";
  EXPECT_THAT(Emit("@may_alias(\"A\", \"B\") " + dots), HasSubstr("__dp4a"));
  EXPECT_THAT(Emit("@may_alias(\"A\", \"S\") " + dots), Not(HasSubstr("__dp4a")));
}

TEST(EmitCudaTest, NamesOfCudaAreNotForVariables) {
  EXPECT_THAT(Emit("func f(int4: f32[4], this: i32) { int4[this] = 1.0 }"),
              HasSubstr("float* __restrict__ int4_, int32_t this_)"));
}

TEST(EmitCudaTest, Errors) {
  const auto error = [](std::string_view text) {
    return std::string(EmitCuda(Parse(text)).status().message());
  };
  EXPECT_THAT(error("func f(A: f32[4]) { add.f32(&A[0], 4) }"),
              HasSubstr("f: call of 'add.f32': the cuda target has no tensor instructions"));
  EXPECT_THAT(error("func f(A: f32[4]) { thread (tid, 4) { A[tid] = 1.0 } }"),
              HasSubstr("f: loop over thread axis 'tid': expected blockIdx.x"));
}

TEST(EmitCudaTest, NvccTakesIt) {
  if (!FindNvcc().ok()) GTEST_SKIP() << "SKIPPED: " << FindNvcc().status();
  std::vector<ir::Function> functions = {Parse(kMatmul)};
  functions.push_back(Parse(R"(
      func halves(A: f16[64] in, B: bf16[64] in, S: i32[8], X: i8[64] in, C: f16[64] out, D: i1[64] out) {
        thread (t = "threadIdx.x", 16) {
          vectorize (v, 0, 4) { C[t * 4 + v] = exp(A[t * 4 + v]) * cast(f16, B[t * 4 + v]) }
          unroll (k, 0, 4) { S[t / 2] = S[t / 2] + cast(i32, X[k]) * cast(i32, X[t * 4 + k]) }
          D[t] = cast(i1, A[t]) || sigmoid(B[t]) < cast(bf16, 0.5)
        }
      })"));
  for (uint64_t seed = 0; seed < 40; ++seed) {
    ir::Function f = ir::RandomProgram(seed);
    f.name += std::to_string(seed);
    if (EmitCuda(f).ok()) functions.push_back(f);
  }
  const auto module = EmitCuda(functions);
  ASSERT_TRUE(module.ok()) << module.status();
  const auto binary = CompileWithNvcc(module->source, {.arch = "sm_80"});
  ASSERT_TRUE(binary.ok()) << binary.status();
  for (const CompiledKernel& kernel : binary->kernels) {
    if (kernel.name != "matmul_f32_kernel") continue;
    EXPECT_EQ(kernel.spill_bytes, 0);
    EXPECT_EQ(kernel.stack_bytes, 0);  // the sums are in registers
    EXPECT_EQ(kernel.shared_bytes, 2 * 16 * 8 * 4);
    EXPECT_EQ(kernel.ptx.at("bar"), 2);
  }
}

}  // namespace
}  // namespace polynao::codegen
