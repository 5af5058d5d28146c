#include "compiler/codegen/cuda/nvcc.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(NvccTest, CountsPtx) {
  const std::string ptx = R"(.version 9.0
.visible .entry other(
)
{
  ret;
}
  // .globl  add_kernel
.visible .entry add_kernel(
  .param .u64 .ptr .align 1 add_kernel_param_0
)
.maxntid 128
{
  .reg .pred   %p<2>;

  ld.param.u64   %rd1, [add_kernel_param_0];
  mov.u32   %r1, %ctaid.x;
  mad.lo.s32   %r3, %r1, %r2, %r1;
  setp.gt.s32   %p1, %r3, 99;
  @%p1 bra   $L__BB0_2;

  ld.global.nc.v4.f32   {%f1, %f2, %f3, %f4}, [%rd5];
  fma.rn.f32   %f5, %f1, %f2, %f3;
$L__BB0_2:
  st.shared.f32   [%rd6], %f5;
  ret;

}
)";
  EXPECT_THAT(CountPtx(ptx, "add_kernel"),
              UnorderedElementsAre(Pair("ld.param", 1), Pair("mov", 1), Pair("mad.lo.s32", 1),
                                   Pair("setp.s32", 1), Pair("bra", 1), Pair("ld.global", 1),
                                   Pair("fma.f32", 1), Pair("st.shared", 1), Pair("ret", 1),
                                   Pair("all", 9)));
  EXPECT_THAT(CountPtx(ptx, "other"), UnorderedElementsAre(Pair("ret", 1), Pair("all", 1)));
  EXPECT_TRUE(CountPtx(ptx, "none").empty());
}

TEST(NvccTest, CountsSass) {
  const std::string sass = R"(
    Function : add_kernel
  .headerflags  @"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;   /* 0x00000a00ff017b82 */
                                                            /* 0x000fe20000000800 */
        /*0010*/              @!P0 LDG.E.128 R4, [R2.64] ;  /* 0x00000a00ff017b82 */
        /*0020*/                   NOP;                     /* 0x00000a00ff017b82 */
    Function : other
        /*0000*/                   EXIT ;                   /* 0x00000a00ff017b82 */
)";
  EXPECT_THAT(CountSass(sass, "add_kernel"),
              UnorderedElementsAre(Pair("LDC", 1), Pair("LDG", 1), Pair("all", 2)));
}

TEST(NvccTest, SectionBytesOfNoElfFile) {
  EXPECT_EQ(SectionBytes("", ".text.f"), 0);
  EXPECT_EQ(SectionBytes(std::string(63, 'x'), ".text.f"), 0);
  EXPECT_EQ(SectionBytes(std::string(64, '\xff'), ".text.f"), 0);
}

TEST(NvccTest, Compiles) {
  if (!FindNvcc().ok()) GTEST_SKIP() << "SKIPPED: " << FindNvcc().status();
  const auto binary = CompileWithNvcc(
      "extern \"C\" __global__ void twice(float* a) {\n"
      "  __shared__ float s[64];\n"
      "  s[threadIdx.x] = a[threadIdx.x];\n"
      "  __syncthreads();\n"
      "  a[threadIdx.x] = 2 * s[63 - threadIdx.x];\n"
      "}\n",
      {.arch = "sm_90"});
  ASSERT_TRUE(binary.ok()) << binary.status();
  ASSERT_EQ(binary->kernels.size(), 1);
  const CompiledKernel& kernel = binary->kernels[0];
  EXPECT_EQ(kernel.name, "twice");
  EXPECT_GT(kernel.registers, 0);
  EXPECT_EQ(kernel.shared_bytes, 256);
  EXPECT_EQ(kernel.spill_bytes, 0);
  EXPECT_EQ(kernel.ptx.at("ld.global"), 1);
  EXPECT_EQ(kernel.ptx.at("st.shared"), 1);
  EXPECT_FALSE(binary->cubin.empty());
  EXPECT_GT(kernel.code_bytes, 0);
  EXPECT_EQ(kernel.code_bytes % 16, 0);
  EXPECT_THAT(std::string(CompileWithNvcc("wrong", {.arch = "sm_90"}).status().message()),
              HasSubstr("nvcc failed:"));
}

TEST(NvccTest, NoneIsNoErrorUnlessItIsNamed) {
  const auto none = CompileIfThereIsNvcc("", {.arch = "none"});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->has_value());
  EXPECT_THAT(std::string(CompileIfThereIsNvcc("", {.nvcc = "/no/nvcc"}).status().message()),
              HasSubstr("cannot start /no/nvcc"));
}

}  // namespace
}  // namespace polynao::codegen
