#include "compiler/codegen/cuda/execute_ptx.h"

#include <string>

#include "compiler/codegen/codegen_test_util.h"
#include "compiler/codegen/cuda/emit_cuda.h"
#include "compiler/codegen/cuda/nvcc.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ::testing::HasSubstr;

// A kernel k with this body.
std::string Ptx(const std::string& body) {
  return ".visible .entry other(\n)\n{\n\tret;\n}\n"
         ".visible .entry k(\n\t.param .u64 k_param_0\n)\n.maxntid 4, 1, 1\n{\n"
         "\t.reg .pred \t%p<9>;\n\n" +
         body + "\tret;\n\n}\n";
}

PtxExecution Execute(const std::string& body, Extents grid = {1, 1, 1}, Extents block = {1, 1, 1}) {
  absl::StatusOr<PtxExecution> execution = ExecutePtx(Ptx(body), "k", grid, block);
  EXPECT_TRUE(execution.ok()) << execution.status();
  return execution.ok() ? *std::move(execution) : PtxExecution();
}

TEST(ExecutePtxTest, LoopsCountAsOftenAsTheyRun) {
  const PtxExecution execution = Execute(
      "\tmov.u32 \t%r1, 0;\n\n"
      "$L__BB0_1:\n"
      "\tld.global.nc.v4.f32 \t{%f1, %f2, %f3, %f4}, [%rd1+16];\n"
      "\tfma.rn.f32 \t%f5, %f1, %f2, %f5;\n"
      "\tadd.s32 \t%r1, %r1, 2;\n"
      "\tsetp.lt.s32 \t%p1, %r1, 20;\n"
      "\t@%p1 bra \t$L__BB0_1;\n",
      {3, 1, 1}, {4, 2, 1});
  EXPECT_TRUE(execution.exact);
  EXPECT_EQ(execution.counts.at("ld.global"), 10 * 24);
  EXPECT_EQ(execution.counts.at("fma.f32"), 10 * 24);
  EXPECT_EQ(execution.counts.at("bra"), 10 * 24);
  EXPECT_EQ(execution.counts.at("mov"), 24);
  EXPECT_EQ(execution.counts.at("all"), 52 * 24);
}

// Each instruction's result against a number, by a branch that shows whether it is so.
TEST(ExecutePtxTest, Arithmetic) {
  const auto is = [](const std::string& code, const std::string& type,
                     const std::string& expected) {
    const PtxExecution execution =
        Execute(code + "\tsetp.ne." + type + " \t%p8, %x, " + expected +
                ";\n\t@%p8 bra \t$L__BB0_9;\n\tmax.s32 \t%r9, 1, 2;\n$L__BB0_9:\n");
    return execution.exact && execution.counts.contains("max.s32");
  };
  EXPECT_TRUE(is("\tmov.u32 %x, 7;\n", "s32", "7"));
  EXPECT_FALSE(is("\tmov.u32 %x, 7;\n", "s32", "8"));
  EXPECT_TRUE(is("\tadd.s32 %x, -3, 1;\n", "s32", "-2"));
  EXPECT_TRUE(is("\tadd.s32 %x, 2147483647, 1;\n", "s32", "-2147483648"));
  EXPECT_TRUE(is("\tsub.s16 %x, 1, 2;\n", "u16", "65535"));
  EXPECT_TRUE(is("\tmul.lo.s32 %x, -3, 5;\n", "s32", "-15"));
  EXPECT_TRUE(is("\tmul.wide.s32 %x, -3, 5;\n", "s64", "-15"));
  EXPECT_TRUE(is("\tmul.wide.u32 %x, -1, 2;\n", "s64", "8589934590"));
  EXPECT_TRUE(is("\tmul.wide.u16 %x, 7, 9363;\n", "u32", "65541"));
  // Division by 7 by a product.
  EXPECT_TRUE(
      is("\tmul.hi.s32 %r1, 100, -1840700269;\n\tadd.s32 %r2, %r1, 100;\n"
         "\tshr.s32 %x, %r2, 2;\n",
         "s32", "14"));
  EXPECT_TRUE(is("\tmul.hi.u32 %x, -1, 16;\n", "u32", "15"));
  EXPECT_TRUE(is("\tmad.lo.s32 %x, 3, 4, -20;\n", "s32", "-8"));
  EXPECT_TRUE(is("\tmad.wide.s32 %x, -3, 4, 20;\n", "s64", "8"));
  EXPECT_TRUE(is("\tshr.s32 %x, -8, 1;\n", "s32", "-4"));
  EXPECT_TRUE(is("\tshr.u32 %x, -8, 28;\n", "u32", "15"));
  EXPECT_TRUE(is("\tshl.b32 %x, 3, 31;\n", "s32", "-2147483648"));
  EXPECT_TRUE(is("\tshl.b32 %x, 3, 40;\n", "s32", "0"));
  EXPECT_TRUE(is("\tand.b32 %x, 12, 10;\n", "s32", "8"));
  EXPECT_TRUE(is("\tor.b32 %x, 12, 10;\n", "s32", "14"));
  EXPECT_TRUE(is("\txor.b32 %x, 12, 10;\n", "s32", "6"));
  EXPECT_TRUE(is("\tnot.b32 %x, 0;\n", "s32", "-1"));
  EXPECT_TRUE(is("\tneg.s32 %x, 5;\n", "s32", "-5"));
  EXPECT_TRUE(is("\tabs.s32 %x, -5;\n", "s32", "5"));
  EXPECT_TRUE(is("\tmin.s32 %x, -5, 5;\n", "s32", "-5"));
  EXPECT_TRUE(is("\tmin.u32 %x, -5, 5;\n", "s32", "5"));
  EXPECT_TRUE(is("\tdiv.s32 %x, -7, 2;\n", "s32", "-3"));
  EXPECT_TRUE(is("\trem.s32 %x, -7, 2;\n", "s32", "-1"));
  EXPECT_TRUE(is("\tcvt.s64.s32 %x, -7;\n", "s64", "-7"));
  EXPECT_TRUE(is("\tcvt.u64.u32 %x, -7;\n", "s64", "4294967289"));
  EXPECT_TRUE(is("\tcvt.u16.u32 %x, 65541;\n", "u16", "5"));
  EXPECT_TRUE(is("\tmov.u32 %x, 0x10;\n", "s32", "16"));
  EXPECT_TRUE(is("\tsetp.gt.u32 %p1, -1, 5;\n\tselp.b32 %x, 1, 2, %p1;\n", "s32", "1"));
  EXPECT_TRUE(is("\tsetp.gt.s32 %p1, -1, 5;\n\tselp.b32 %x, 1, 2, %p1;\n", "s32", "2"));
  EXPECT_TRUE(
      is("\tsetp.lt.s32 %p1, 1, 5;\n\tsetp.lt.and.s32 %p2, 6, 5, %p1;\n"
         "\tor.pred %p3, %p1, %p2;\n\tnot.pred %p4, %p3;\n\tselp.b32 %x, 1, 2, %p4;\n",
         "s32", "2"));
  // A guard that does not hold keeps the value.
  EXPECT_TRUE(
      is("\tmov.u32 %x, 3;\n\tsetp.eq.s32 %p1, 1, 2;\n\t@%p1 mov.u32 %x, 4;\n"
         "\t@!%p1 add.s32 %x, %x, 2;\n",
         "s32", "5"));
}

TEST(ExecutePtxTest, WhatIsNotKnown) {
  // Loads, floats, parameters, and what is made of them.
  for (const char* code :
       {"\tld.global.u32 \t%x, [%rd1];\n", "\tcvt.rzi.s32.f32 \t%x, 0f3F800000;\n",
        "\tld.param.u32 \t%x, [k_param_0];\n",
        "\tld.shared.u32 \t%r1, [s];\n\tadd.s32 \t%x, %r1, 1;\n", "\tdp4a.s32.s32 \t%x, 1, 2, 3;\n",
        "\tdiv.s32 \t%x, 1, 0;\n"}) {
    const PtxExecution execution = Execute(std::string(code) +
                                           "\tsetp.eq.s32 \t%p1, %x, 0;\n\t@%p1 bra "
                                           "\t$L__BB0_2;\n\tmax.s32 \t%r9, 1, 2;\n$L__BB0_2:\n");
    EXPECT_FALSE(execution.exact) << code;
    EXPECT_TRUE(execution.counts.contains("max.s32")) << code;
  }
  EXPECT_TRUE(Execute("\tld.global.f32 \t%f1, [%rd1];\n\tadd.f32 \t%f2, %f1, %f1;\n").exact);
}

// Threads count by what they do: here three of four blocks of a row, and half of the threads.
TEST(ExecutePtxTest, ThreadsAndBlocks) {
  const std::string body =
      "\tmov.u32 \t%r1, %ctaid.x;\n\tmov.u32 \t%r2, %tid.y;\n\tmov.u32 \t%r3, %ntid.y;\n"
      "\tshr.u32 \t%r3, %r3, 1;\n"
      "\tsetp.gt.u32 \t%p1, %r1, 2;\n\t@%p1 bra \t$L__BB0_2;\n"
      "\tsetp.ge.u32 \t%p2, %r2, %r3;\n\t@%p2 bra \t$L__BB0_2;\n\tmax.s32 \t%r9, 1, "
      "2;\n$L__BB0_2:\n";
  const auto execution = ExecutePtx(Ptx(body), "k", {4, 1, 1}, {1, 8, 1}, {.samples = 4000});
  ASSERT_TRUE(execution.ok()) << execution.status();
  EXPECT_NEAR(execution->counts.at("max.s32") / 32, 0.375, 0.03);
}

TEST(ExecutePtxTest, Errors) {
  EXPECT_THAT(std::string(ExecutePtx(Ptx(""), "j", {1, 1, 1}, {1, 1, 1}).status().message()),
              HasSubstr("no kernel 'j'"));
  EXPECT_THAT(std::string(ExecutePtx(Ptx("$L__BB0_1:\n\tbra.uni \t$L__BB0_1;\n"), "k", {1, 1, 1},
                                     {1, 1, 1}, {.samples = 1, .max_steps = 1000})
                              .status()
                              .message()),
              HasSubstr("kernel 'k': a thread takes more than 1000 instructions"));
}

// What nvcc writes: every load of a matrix product is there, as often as the program has it.
TEST(ExecutePtxTest, OfNvcc) {
  if (!FindNvcc().ok()) GTEST_SKIP() << "SKIPPED: " << FindNvcc().status();
  const auto module = EmitCuda(Parse(R"(
      func f(A: f32[37, 1000] in, B: f32[37] out) {
        thread (x = "blockIdx.x", 5) {
          thread (t = "threadIdx.x", 8) {
            if (x * 8 + t < 37) {
              allocate sum: f32[1] @local
              sum[0] = 0.0
              for (k, 0, 1000) { sum[0] = sum[0] + A[x * 8 + t, k] }
              B[x * 8 + t] = sum[0]
            }
          }
        }
      })"));
  ASSERT_TRUE(module.ok()) << module.status();
  const auto binary = CompileWithNvcc(module->source, {.arch = "sm_80"});
  ASSERT_TRUE(binary.ok()) << binary.status();
  const CudaKernel& kernel = module->functions[0].kernels[0];
  const auto execution =
      ExecutePtx(binary->ptx, kernel.name, kernel.grid, kernel.block, {.samples = 2000});
  ASSERT_TRUE(execution.ok()) << execution.status();
  EXPECT_TRUE(execution->exact);
  EXPECT_NEAR(execution->counts.at("ld.global") / (37 * 1000), 1, 0.03);
  EXPECT_NEAR(execution->counts.at("st.global") / 37, 1, 0.03);
}

}  // namespace
}  // namespace polynao::codegen
