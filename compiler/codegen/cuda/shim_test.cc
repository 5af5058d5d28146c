// The shim itself, on kernels written by hand: right ones, and ones that a GPU would not survive.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/c/c_compiler.h"
#include "compiler/codegen/cuda/run_cuda.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ShimTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status found = FindCCompiler(false).status();
    if (!found.ok()) GTEST_SKIP() << "SKIPPED: " << found;
  }

  // Compiles a kernel k(float* a) and runs it on a copy of `a`, of which only the first `defined` elements are
  // stored; the error's text in error_.
  std::vector<float> Launch(const std::string& kernel, std::vector<float> a,
                            const std::string& grid, const std::string& block, uint64_t order = 0,
                            size_t defined = SIZE_MAX) {
    const std::string text =
        ShimmedText(kernel) + "\nextern \"C\" int run(float* p, unsigned char* undefined) { " +
        "const nao_shim::Memory memory = {\"a\", (char*)p, undefined, 4}; " +
        "const nao_shim::Pointer<float> a(p, &memory); return nao_shim::Launch(\"k\", dim3{" +
        grid + "}, dim3{" + block + "}, " +
        (kernel.find("__syncthreads") != std::string::npos ? "true" : "false") +
        ", [=] { k(a); }); }\n";
    LoadedCode::Options options{.compiler = *FindCCompiler(false)};
    options.suffix = ".cc";
    options.flags = ShimFlags();
    options.flags.insert(options.flags.end(),
                         {"-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"});
    auto code = LoadedCode::Create(text, options);
    EXPECT_TRUE(code.ok()) << code.status();
    if (!code.ok()) return {};
    EXPECT_EQ((*code)->messages(), "");
    reinterpret_cast<void (*)(uint64_t)>(*(*code)->Find("nao_shim_set_order"))(order);
    std::vector<unsigned char> undefined(a.size() * sizeof(float));
    for (size_t i = 0; i < undefined.size(); ++i) undefined[i] = i / sizeof(float) >= defined;
    using Run = int (*)(float*, unsigned char*);
    const bool ok = reinterpret_cast<Run>(*(*code)->Find("run"))(a.data(), undefined.data()) != 0;
    error_ = ok ? "" : reinterpret_cast<const char* (*)()>(*(*code)->Find("nao_shim_message"))();
    return a;
  }

  std::string error_;
};

TEST_F(ShimTest, ThreadsAndBlocks) {
  EXPECT_THAT(
      Launch("__global__ void k(float* a) {\n"
             "  a[((blockIdx.y * 2 + blockIdx.x) * 3 + threadIdx.z) * 2 + threadIdx.x] +=\n"
             "      100 * blockIdx.y + 10 * blockIdx.x + threadIdx.z + 0.5f * threadIdx.x;\n"
             "}",
             std::vector<float>(24), "2, 2, 1", "2, 1, 3"),
      ElementsAre(0, 0.5, 1, 1.5, 2, 2.5, 10, 10.5, 11, 11.5, 12, 12.5, 100, 100.5, 101, 101.5, 102,
                  102.5, 110, 110.5, 111, 111.5, 112, 112.5));
}

const std::string kReverse =
    "__global__ void k(float* a) {\n"
    "  __shared__ __align__(16) float s[8];\n"
    "  for (int i = 0; i < 3; ++i) {\n"
    "    s[threadIdx.x] = a[threadIdx.x];\n"
    "    __syncthreads();\n"
    "    a[threadIdx.x] = s[7 - threadIdx.x] + 1;\n"
    "    BARRIER\n"
    "  }\n"
    "}";

TEST_F(ShimTest, BarriersInEveryOrder) {
  std::string kernel = kReverse;
  kernel.replace(kernel.find("BARRIER"), 7, "__syncthreads();");
  for (uint64_t order : {0, 1, 2, 3, 99}) {
    EXPECT_THAT(Launch(kernel, {0, 1, 2, 3, 4, 5, 6, 7}, "1, 1, 1", "8, 1, 1", order),
                ElementsAre(10, 9, 8, 7, 6, 5, 4, 3))
        << order;
    EXPECT_EQ(error_, "");
  }
}

// Without its second barrier the same kernel comes to another result.
TEST_F(ShimTest, AMissingBarrierIsSeen) {
  std::string kernel = kReverse;
  kernel.replace(kernel.find("BARRIER"), 7, "");
  EXPECT_NE(Launch(kernel, {0, 1, 2, 3, 4, 5, 6, 7}, "1, 1, 1", "8, 1, 1"),
            (std::vector<float>{10, 9, 8, 7, 6, 5, 4, 3}));
}

// ---- loads of what nothing has stored

TEST_F(ShimTest, SharedMemoryStartsUndefinedInEachBlock) {
  const std::string kernel =
      "__global__ void k(float* a) {\n"
      "  __shared__ int s[4];\n"
      "  if (blockIdx.x < STORED) s[threadIdx.x] = 2;\n"
      "  __syncthreads();\n"
      "  a[blockIdx.x] = s[3 - threadIdx.x];\n"
      "}";
  const auto with = [&](const std::string& stored) {
    std::string text = kernel;
    return text.replace(text.find("STORED"), 6, stored);
  };
  EXPECT_THAT(Launch(with("3"), {0, 0, 0}, "3, 1, 1", "4, 1, 1"), Each(2));
  EXPECT_EQ(error_, "");
  for (const uint64_t order : {0, 1}) {
    Launch(with("2"), {0, 0, 0}, "3, 1, 1", "4, 1, 1", order);
    EXPECT_EQ(error_, order == 0 ? "k, block (2, 0, 0), thread (0, 0, 0): loads element 3 of 's', "
                                   "which nothing has stored"
                                 : "k, block (2, 0, 0), thread (3, 0, 0): loads element 0 of 's', "
                                   "which nothing has stored");
  }
}

TEST_F(ShimTest, ArraysOfThreadsStartUndefined) {
  const auto run = [&](const std::string& stored) {
    Launch(
        "__global__ void k(float* a) {\n"
        "  for (int i = 0; i < 2; ++i) {\n"
        "    __align__(16) float other[1] = {};\n"
        "    __align__(16) float x[4];\n"
        "    if (" +
            stored +
            ") x[2] = a[threadIdx.x];\n"
            "    a[threadIdx.x] += (x[2] + other[0]) * 0;\n"
            "  }\n"
            "}",
        {5, 6}, "1, 1, 1", "2, 1, 1");
    return error_;
  };
  EXPECT_EQ(run("i < 2"), "");
  // Each pass through a declaration starts undefined again.
  EXPECT_EQ(
      run("i < 1"),
      "k, block (0, 0, 0), thread (0, 0, 0): loads element 2 of 'x', which nothing has stored");
}

TEST_F(ShimTest, GlobalMemory) {
  const std::string kernel = "__global__ void k(float* a) { a[3 - threadIdx.x] = a[threadIdx.x]; }";
  EXPECT_THAT(Launch(kernel, {1, 2, 0, 0}, "1, 1, 1", "4, 1, 1", 0, 2), ElementsAre(1, 2, 2, 1));
  EXPECT_EQ(error_, "");
  Launch(kernel, {1, 2, 0, 0}, "1, 1, 1", "4, 1, 1", 0, 1);
  EXPECT_THAT(error_, HasSubstr("thread (1, 0, 0): loads element 1 of 'a'"));
}

TEST_F(ShimTest, WideLoadsNeedAllElements) {
  const auto run = [&](const std::string& n) {
    const std::vector<float> a = Launch(
        "__global__ void k(float* a) {\n"
        "  __shared__ __align__(16) float s[2][4];\n"
        "  for (int i = 0; i < " +
            n +
            "; ++i) s[1][i] = i;\n"
            "  __align__(16) float x[4];\n"
            "  *reinterpret_cast<int4*>(x) = *reinterpret_cast<const int4*>(&s[1][0]);\n"
            "  *reinterpret_cast<int2*>(&a[2]) = *reinterpret_cast<const int2*>(&x[1]);\n"
            "}",
        {7, 8, 9, 10}, "1, 1, 1", "1, 1, 1");
    return error_.empty() ? a : std::vector<float>();
  };
  EXPECT_THAT(run("4"), ElementsAre(7, 8, 1, 2));
  EXPECT_THAT(run("3"), testing::IsEmpty());
  EXPECT_THAT(error_, HasSubstr("loads element 7 of 's'"));
}

TEST_F(ShimTest, BarriersThatNotAllReach) {
  Launch(
      "__global__ void k(float* a) {\n"
      "  if (threadIdx.x < 3) __syncthreads();\n"
      "  a[threadIdx.x] = 1;\n"
      "}",
      {0, 0, 0, 0}, "2, 1, 1", "4, 1, 1");
  EXPECT_THAT(error_, HasSubstr("k, block (0, 0, 0): threads 0 and 3 are at different places"));
  Launch(
      "__global__ void k(float* a) {\n"
      "  if (threadIdx.x < 3)\n"
      "    __syncthreads();\n"
      "  else\n"
      "    __syncthreads();\n"
      "  a[threadIdx.x] = 1;\n"
      "}",
      {0, 0, 0, 0}, "1, 1, 1", "4, 1, 1");
  EXPECT_THAT(error_, HasSubstr("threads 0 and 3 are at different places"));
}

TEST_F(ShimTest, Intrinsics) {
  EXPECT_THAT(Launch("__global__ void k(float* a) {\n"
                     "  a[0] = __dp4a(0x01ff7f80, 0x02030405, -7);\n"
                     "  a[1] = __dp4a(0x7f7f7f7f, 0x7f7f7f7f, 2147483647) < 0;\n"
                     "  a[2] = __uint_as_float(__float_as_uint(1.5f) ^ 0x80000000u);\n"
                     "}",
                     {0, 0, 0}, "1, 1, 1", "1, 1, 1"),
              ElementsAre(-128 * 5 + 127 * 4 - 3 + 2 - 7, 1, -1.5));
}

}  // namespace
}  // namespace polynao::codegen
