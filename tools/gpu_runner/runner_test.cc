#include "tools/gpu_runner/runner.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "compiler/codegen/c/c_compiler.h"
#include "compiler/codegen/cuda/bundle.h"
#include "compiler/codegen/cuda/emit_cuda.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/random_value.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Needs no GPU: the libraries are fakes that run kernels by the shim.
class RunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status found = codegen::FindCCompiler(false).status();
    if (!found.ok()) GTEST_SKIP() << "SKIPPED: " << found;
    RunnerOptions options;
    options.driver = options.nvrtc = "tools/gpu_runner/libfake_cuda.so";
    options.samples = 3;
    options.sample_ms = 4;
    options.compare = true;
    options.kernels = "kernels/cuda";
    const Error error = runner_.Start(options);
    ASSERT_EQ(error, "");
  }

  // Writes a bundle of two kernels: C = 2 * A + B[0], by way of a workspace.
  std::string Write(const std::string& name,
                    const std::function<void(codegen::BundleReference&)>& change = {}) {
    const auto f = ir::ParseFunction(R"(
        func f(A: f32[500] in, B: f16[3] in, C: f32[500] out) {
          allocate T: f32[500]
          thread (x = "blockIdx.x", 2) {
            thread (t = "threadIdx.x", 250) { T[x * 250 + t] = A[x * 250 + t] * 2.0 }
          }
          thread (x = "blockIdx.x", 4) {
            allocate S: f32[125] @shared
            thread (t = "threadIdx.x", 125) { S[t] = T[x * 125 + 124 - t] }
            thread (t = "threadIdx.x", 125) { C[x * 125 + t] = S[124 - t] + cast(f32, B[0]) }
          }
        })");
    EXPECT_TRUE(f.ok()) << f.status();
    const auto module = codegen::EmitCuda(*f);
    EXPECT_TRUE(module.ok()) << module.status();
    codegen::BundleFacts facts;
    facts.operator_case = {{"op", "f"}};
    facts.flops = 1000;
    facts.bytes = 4000;
    codegen::BundleReference& reference = facts.reference.emplace();
    ir::Tensor b(ir::Type::kF16, {3});
    b.SetValue(0, 0.25);
    reference.inputs = {ir::RandomTensor(ir::Type::kF32, {500}, 1, ir::Values::kExact), b};
    reference.outputs = {ir::Tensor(ir::Type::kF32, {500})};
    for (int i = 0; i < 500; ++i) {
      reference.outputs[0].SetValue(i, reference.inputs[0].Float(i) * 2 + 0.25);
    }
    if (change) change(reference);
    const auto files = codegen::MakeBundle(*module, facts);
    EXPECT_TRUE(files.ok()) << files.status();
    const std::string folder = ::testing::TempDir() + "/" + name;
    std::filesystem::create_directories(folder);
    for (const codegen::OutputFile& file : *files) {
      std::ofstream(folder + "/" + file.name, std::ios::binary) << file.contents;
    }
    return folder;
  }

  Json Run(const std::string& folder) {
    const Bundle bundle = runner_.Load(folder);
    return runner_.RunGroup({&bundle})[0];
  }

  Runner runner_;
};

TEST_F(RunnerTest, ValuesAgreeAndTimesAreTaken) {
  const Json line = Run(Write("right"));
  EXPECT_EQ(line["ok"], true) << line.dump(1);
  EXPECT_EQ(line["max_error"], 0);
  EXPECT_EQ(line["compiled_by"], "nvrtc");
  EXPECT_EQ(line["registers"], 32);
  // The fake's clock: a millisecond for each of two kernels.
  EXPECT_EQ(line["time_us"], 2000);
  EXPECT_EQ(line["runs_per_sample"], 2);
  EXPECT_EQ(line["samples"], 3);
  EXPECT_DOUBLE_EQ(line["gflops"], 1000 / 2e-3 * 1e-9);
  EXPECT_EQ(line["machine"]["arch"], "sm_90");
}

// One element, wherever it is, and a small error in all of them.
TEST_F(RunnerTest, WrongValuesAreSeen) {
  for (int where : {0, 123, 499}) {
    const Json line = Run(Write("wrong" + std::to_string(where), [&](auto& reference) {
      reference.outputs[0].SetValue(where, reference.outputs[0].Float(where) + 1);
    }));
    EXPECT_EQ(line["ok"], false) << where;
    EXPECT_EQ(line["error"], "values differ");
    EXPECT_FALSE(line.contains("time_us"));
  }
  EXPECT_EQ(Run(Write("off",
                      [](auto& reference) {
                        for (int i = 0; i < 500; ++i) {
                          reference.outputs[0].SetValue(i, reference.outputs[0].Float(i) + 1e-3);
                        }
                      }))["ok"],
            false);
}

TEST_F(RunnerTest, PairsTakeTurns) {
  const std::string a = Write("pair/x/baseline");
  const std::string b = Write("pair/x/optimised");
  const std::string c = Write("pair/y");
  const std::string d = Write("pair/x/published");
  EXPECT_THAT(FindBundles(::testing::TempDir() + "/pair"),
              ElementsAre(ElementsAre(a, b, d), ElementsAre(c)));
  const Bundle first = runner_.Load(a);
  const Bundle second = runner_.Load(b);
  const std::vector<Json> lines = runner_.RunGroup({&first, &second});
  ASSERT_EQ(lines.size(), 2);
  for (const Json& line : lines) EXPECT_EQ(line["ok"], true) << line.dump();
}

// The case of a product is also given to the kernel written by hand, and its values are checked.
TEST_F(RunnerTest, OthersAreComparedWith) {
  const auto f = ir::ParseFunction(R"(
      func dense(X: f32[3, 7] in, W: f32[5, 7] in, Y: f32[3, 5] out) {
        thread (y = "blockIdx.x", 3) {
          thread (x = "threadIdx.x", 5) {
            Y[y, x] = 0.0
            for (k, 0, 7) { Y[y, x] = Y[y, x] + X[y, k] * W[x, k] }
          }
        }
      })");
  const auto module = codegen::EmitCuda(*f);
  ASSERT_TRUE(module.ok()) << module.status();
  codegen::BundleFacts facts;
  // Inputs of the other generator.
  const auto uniform = [](std::vector<int64_t> shape, uint64_t seed) {
    ir::Tensor tensor(ir::Type::kF32, std::move(shape));
    for (int64_t i = 0; i < tensor.element_count(); ++i) {
      tensor.SetValue(i, ir::UniformFloat(seed, static_cast<uint64_t>(i)));
    }
    return tensor;
  };
  facts.operator_case = {{"op", "dense"}, {"shape", {3, 7}}, {"dtype", "f32"}};
  facts.operator_case["operand_shapes"] = Json::array({Json::array({5, 7})});
  codegen::BundleReference& reference = facts.reference.emplace();
  reference.inputs = {uniform({3, 7}, 1), uniform({5, 7}, 2)};
  reference.outputs = {ir::Tensor(ir::Type::kF32, {3, 5})};
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 5; ++x) {
      double sum = 0;
      for (int k = 0; k < 7; ++k) {
        sum += reference.inputs[0].Float(y * 7 + k) * reference.inputs[1].Float(x * 7 + k);
      }
      reference.outputs[0].SetValue(y * 5 + x, sum);
    }
  }
  const auto files = codegen::MakeBundle(*module, facts);
  ASSERT_TRUE(files.ok()) << files.status();
  const std::string folder = ::testing::TempDir() + "/dense";
  std::filesystem::create_directories(folder);
  for (const codegen::OutputFile& file : *files) {
    std::ofstream(folder + "/" + file.name, std::ios::binary) << file.contents;
  }
  const Json line = Run(folder);
  EXPECT_EQ(line["ok"], true) << line.dump(1);
  // cuBLAS is where there is a GPU.
  const Json& peers = line["peers"];
  ASSERT_GE(peers.size(), 1) << line.dump(1);
  EXPECT_EQ(peers.back()["name"], "hand");
  EXPECT_EQ(peers.back()["ok"], true) << line.dump(1);
  EXPECT_EQ(peers.back()["time_us"], 1000);
}

// The bundle has a row for each launch, with the grid and the host's variables.
TEST_F(RunnerTest, LaunchesOfALoop) {
  const auto f = ir::ParseFunction(R"(
      func f(A: i32[8] in, B: i32[8] out) {
        thread (t = "threadIdx.x", 8) { B[t] = A[t] }
        for (k, 0, 5) {
          thread (x = "blockIdx.x", 8 - k) { B[x + k] = B[x + k] * 2 + k }
        }
      })");
  const auto module = codegen::EmitCuda(*f);
  ASSERT_TRUE(module.ok()) << module.status();
  codegen::BundleFacts facts;
  facts.operator_case = {{"op", "f"}};
  codegen::BundleReference& reference = facts.reference.emplace();
  reference.inputs = {ir::RandomTensor(ir::Type::kI32, {8}, 1, ir::Values::kExact)};
  reference.outputs = reference.inputs;
  for (int k = 0; k < 5; ++k) {
    for (int i = k; i < 8; ++i) {
      reference.outputs[0].SetInt(i, reference.outputs[0].Int(i) * 2 + k);
    }
  }
  const auto files = codegen::MakeBundle(*module, facts);
  ASSERT_TRUE(files.ok()) << files.status();
  const std::string folder = ::testing::TempDir() + "/loop";
  std::filesystem::create_directories(folder);
  for (const codegen::OutputFile& file : *files) {
    std::ofstream(folder + "/" + file.name, std::ios::binary) << file.contents;
  }
  Json line = Run(folder);
  EXPECT_EQ(line["ok"], true) << line.dump(1);
  EXPECT_EQ(line["launches"], 6);
  Json json = Json::parse(files->back().contents);
  EXPECT_EQ(json["launches"][2], Json::array({1, 7, 1, 1, 1}));
  json["launches"][2].push_back(1);
  std::ofstream(folder + "/bundle.json") << json.dump();
  line = Run(folder);
  EXPECT_THAT(line["error"].get<std::string>(), HasSubstr("bundle.json: launches: expected"));
}

TEST_F(RunnerTest, FailuresAreLinesToo) {
  const std::string folder = Write("failing");
  std::ofstream(folder + "/kernel.cu") << "no CUDA";
  EXPECT_THAT(Run(folder)["error"].get<std::string>(), HasSubstr("NVRTC: "));
  std::ofstream(folder + "/kernel.cu")
      << "extern \"C\" __global__ void __launch_bounds__(1) g() {}";
  EXPECT_THAT(Run(folder)["error"].get<std::string>(),
              HasSubstr("cuModuleGetFunction: named symbol not found"));
  std::ofstream(folder + "/bundle.json") << "{\"format\": 2}";
  EXPECT_THAT(Run(folder)["error"].get<std::string>(), HasSubstr("expected a bundle of format 1"));
  Runner other;
  EXPECT_THAT(other.Start({.driver = "/no/such/driver.so"}), HasSubstr("no /no/such/driver.so"));
}

// The real one needs no GPU to compile.
TEST(NvrtcTest, TakesGeneratedCode) {
  Nvrtc nvrtc;
  if (const Error error = nvrtc.Load(""); !error.empty()) GTEST_SKIP() << "SKIPPED: " << error;
  std::vector<ir::Function> functions;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    ir::Function f = ir::RandomProgram(seed);
    f.name += std::to_string(seed);
    if (codegen::EmitCuda(f).ok()) functions.push_back(f);
  }
  const auto module = codegen::EmitCuda(functions);
  ASSERT_TRUE(module.ok()) << module.status();
  std::string code;
  EXPECT_EQ(nvrtc.Compile(module->source, "sm_90", &code), "");
  EXPECT_GT(code.size(), 1000);
  EXPECT_THAT(nvrtc.Compile("int f() { return x; }", "sm_90", &code), HasSubstr("undefined"));
}

}  // namespace
}  // namespace polynao::gpu
