// The hand-written CUDA kernels, run by the shim and compared with plain loops, and taken by nvcc
// where there is one.
#include <array>
#include <cmath>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/codegen/c/c_compiler.h"
#include "compiler/codegen/cuda/nvcc.h"
#include "compiler/codegen/cuda/run_cuda.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<float> Values(size_t count, int seed) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(static_cast<int>((i * 7 + seed) * 2654435761u % 33) - 16) / 8;
  }
  return values;
}

class HandWrittenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status found = codegen::FindCCompiler(false).status();
    if (!found.ok()) GTEST_SKIP() << "SKIPPED: " << found;
  }

  // Loads kernels/cuda/NAME.cu with a function `int run(float* const* buffers)` that launches it.
  void Load(const std::string& name, const std::string& grid, const std::string& call) {
    const std::string source = ReadWhole("kernels/cuda/" + name + ".cu");
    ASSERT_NE(source, "");
    const std::string text =
        StrCat(codegen::ShimmedText(source), "extern \"C\" int run(float* const* b) {\n",
               "  return nao_shim::Launch(\"k\", dim3{", grid, "}, dim3{256, 1, 1}, true, [=] { ",
               call, "; });\n}\n");
    codegen::LoadedCode::Options options{.compiler = *codegen::FindCCompiler(false)};
    options.suffix = ".cc";
    options.flags = codegen::ShimFlags();
    options.flags.insert(options.flags.end(), {"-w", "-O1"});
    auto code = codegen::LoadedCode::Create(text, options);
    ASSERT_TRUE(code.ok()) << code.status();
    code_ = *std::move(code);
  }
  void Run(const std::vector<float*>& buffers) {
    EXPECT_TRUE(reinterpret_cast<int (*)(float* const*)>(*code_->Find("run"))(buffers.data()))
        << reinterpret_cast<const char* (*)()>(*code_->Find("nao_shim_message"))();
  }

  std::unique_ptr<codegen::LoadedCode> code_;
};

TEST_F(HandWrittenTest, Matmul) {
  for (const auto& [batch, m, n, k] :
       {std::array<int, 4>{1, 64, 64, 16}, {1, 1, 1, 1}, {2, 65, 33, 17}, {3, 10, 130, 40}}) {
    Load("matmul", StrCat((n + 63) / 64, ", ", (m + 63) / 64, ", ", batch),
         StrCat("matmul_by_hand(b[0], b[1], b[2], ", m, ", ", n, ", ", k, ", ", m * k, ", 0)"));
    std::vector<float> x = Values(batch * m * k, 1);
    std::vector<float> w = Values(n * k, 2);
    std::vector<float> y(batch * m * n, NAN);
    Run({x.data(), w.data(), y.data()});
    for (int r = 0; r < batch * m; ++r) {
      for (int c = 0; c < n; ++c) {
        float sum = 0;
        for (int i = 0; i < k; ++i) sum += x[r * k + i] * w[c * k + i];
        ASSERT_EQ(y[r * n + c], sum) << m << "x" << n << "x" << k << " at " << r << ", " << c;
      }
    }
  }
}

struct Conv {
  int n, groups, in, h, w, out, kh, kw, stride, pad, dilation;
};

TEST_F(HandWrittenTest, Conv2d) {
  for (const Conv& c :
       {Conv{1, 1, 3, 20, 18, 9, 3, 3, 1, 1, 1}, Conv{2, 2, 2, 7, 5, 3, 3, 2, 2, 1, 1},
        Conv{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1}, Conv{1, 4, 1, 40, 40, 1, 5, 5, 4, 2, 2}}) {
    const int oh = (c.h + 2 * c.pad - (c.kh - 1) * c.dilation - 1) / c.stride + 1;
    const int ow = (c.w + 2 * c.pad - (c.kw - 1) * c.dilation - 1) / c.stride + 1;
    Load("conv2d",
         StrCat((ow + 15) / 16, ", ", (oh + 15) / 16, ", ", c.n * c.groups * ((c.out + 7) / 8)),
         StrCat("conv2d_by_hand(b[0], b[1], b[2], ", c.groups, ", ", c.in, ", ", c.h, ", ", c.w,
                ", ", c.out, ", ", c.kh, ", ", c.kw, ", ", oh, ", ", ow, ", ", c.stride, ", ",
                c.stride, ", ", c.pad, ", ", c.pad, ", ", c.dilation, ", ", c.dilation, ")"));
    std::vector<float> x = Values(c.n * c.groups * c.in * c.h * c.w, 1);
    std::vector<float> f = Values(c.groups * c.out * c.in * c.kh * c.kw, 2);
    std::vector<float> y(c.n * c.groups * c.out * oh * ow, NAN);
    Run({x.data(), f.data(), y.data()});
    for (size_t at = 0; at < y.size(); ++at) {
      const int q = static_cast<int>(at) % ow;
      const int p = static_cast<int>(at) / ow % oh;
      const int o = static_cast<int>(at) / ow / oh % (c.groups * c.out);
      const int n = static_cast<int>(at) / ow / oh / (c.groups * c.out);
      const int g = o / c.out;
      float sum = 0;
      for (int i = 0; i < c.in; ++i) {
        for (int ky = 0; ky < c.kh; ++ky) {
          for (int kx = 0; kx < c.kw; ++kx) {
            const int r = p * c.stride + ky * c.dilation - c.pad;
            const int s = q * c.stride + kx * c.dilation - c.pad;
            if (r < 0 || r >= c.h || s < 0 || s >= c.w) continue;
            sum += x[((n * c.groups * c.in + g * c.in + i) * c.h + r) * c.w + s] *
                   f[((o * c.in + i) * c.kh + ky) * c.kw + kx];
          }
        }
      }
      ASSERT_EQ(y[at], sum) << "at " << at;
    }
  }
}

TEST(HandWrittenNvccTest, Compiles) {
  if (!codegen::FindNvcc().ok()) GTEST_SKIP() << "SKIPPED: " << codegen::FindNvcc().status();
  for (const std::string name : {"matmul", "conv2d"}) {
    const auto binary =
        codegen::CompileWithNvcc(ReadWhole("kernels/cuda/" + name + ".cu"), {.arch = "sm_90"});
    ASSERT_TRUE(binary.ok()) << binary.status();
    ASSERT_EQ(binary->kernels.size(), 1);
    EXPECT_EQ(binary->kernels[0].name, name + "_by_hand");
    EXPECT_EQ(binary->kernels[0].spill_bytes, 0);
  }
}

}  // namespace
}  // namespace polynao
