#include "compiler/codegen/cuda/bundle.h"

#include <map>
#include <set>
#include <string>

#include "compiler/codegen/codegen_test_util.h"
#include "compiler/codegen/cuda/bundle_places.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/random_value.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/type.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::UnorderedElementsAre;

CudaModule Module(std::string_view text) {
  absl::StatusOr<CudaModule> module = EmitCuda(Parse(text));
  EXPECT_TRUE(module.ok()) << module.status();
  return *std::move(module);
}

TEST(BundleTest, FilesAndFacts) {
  const CudaModule module = Module(R"(
      func twice(A: f32[2, 50] in, B: i8[3] in, C: f32[100] out) {
        allocate T: f32[100]
        thread (x = "blockIdx.x", 2) {
          thread (t = "threadIdx.x", 50) { T[x * 50 + t] = A[x, t] * 2.0 }
        }
        thread (x = "blockIdx.x", 100) { C[x] = T[x] + cast(f32, B[1]) }
      })");
  BundleFacts facts;
  facts.operator_case = {{"op", "twice"}};
  facts.flops = 200;
  facts.bytes = 803;
  ir::Tensor own(ir::Type::kI8, {3});
  own.SetInt(1, 100);
  BundleReference reference;
  reference.seed = 7;
  reference.inputs = {ir::RandomTensor(ir::Type::kF32, {2, 50}, 7, ir::Values::kExact), own};
  reference.outputs = {ir::Tensor(ir::Type::kF32, {100})};
  for (int i = 0; i < 100; ++i) reference.outputs[0].SetValue(i, -i);
  facts.reference = reference;
  const auto files = MakeBundle(module, facts);
  ASSERT_TRUE(files.ok()) << files.status();
  std::map<std::string, std::string> by_name;
  for (const OutputFile& file : *files) by_name[file.name] = file.contents;
  EXPECT_THAT(by_name,
              UnorderedElementsAre(Key("bundle.json"), Key("kernel.cu"), Key("input1.bin")));
  EXPECT_EQ(by_name["kernel.cu"], module.source);
  EXPECT_EQ(by_name["input1.bin"], std::string("\0d\0", 3));
  const auto json = nlohmann::json::parse(by_name["bundle.json"]);
  EXPECT_EQ(json["case"]["op"], "twice");
  ASSERT_EQ(json["values"].size(), 4);
  EXPECT_EQ(json["values"][0]["seed"], 7);
  EXPECT_EQ(json["values"][1]["file"], "input1.bin");
  EXPECT_EQ(json["values"][2]["kind"], "out");
  EXPECT_EQ(json["values"][2]["check"]["largest"], 99);
  EXPECT_DOUBLE_EQ(json["values"][2]["check"]["tolerance"], 99e-5);
  EXPECT_EQ(json["values"][2]["check"]["samples"].size(), 100);
  EXPECT_EQ(json["values"][2]["check"]["sums"].size(), 50);  // of two elements each
  EXPECT_EQ(json["values"][2]["check"]["sums"][1], -5);
  EXPECT_EQ(json["values"][3]["kind"], "workspace");
  ASSERT_EQ(json["kernels"].size(), 2);
  EXPECT_THAT(json["kernels"][0]["grid"], ElementsAre(2, 1, 1));
  EXPECT_THAT(json["kernels"][0]["arguments"], ElementsAre(0, 3));
}

TEST(BundleTest, InputsFromSeeds) {
  for (ir::Type type : {ir::Type::kF32, ir::Type::kF16, ir::Type::kI8, ir::Type::kU8}) {
    const CudaModule module = Module("func f(A: " + std::string(ir::TypeName(type)) +
                                     "[9] in, B: i32[1] out) { B[0] = cast(i32, A[0]) }");
    BundleFacts facts;
    BundleReference& reference = facts.reference.emplace();
    reference.outputs = {ir::Tensor(ir::Type::kI32, {1})};
    ir::Tensor input(type, {9});
    for (uint64_t i = 0; i < 9; ++i) {
      if (ir::IsFloat(type)) {
        input.SetValue(static_cast<int64_t>(i), ir::UniformFloat(1, i));
      } else {
        input.SetInt(static_cast<int64_t>(i), ir::UniformInt(type, 1, i));
      }
    }
    reference.inputs = {input};
    const auto files = MakeBundle(module, facts);
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_EQ(files->size(), 2);
    const auto json = nlohmann::json::parse(files->back().contents);
    EXPECT_EQ(json["values"][0]["uniform_seed"], 1) << ir::TypeName(type);
  }
}

TEST(BundleTest, SamplesAreThereAndTheSameForAll) {
  EXPECT_EQ(BundleSamples(0).size(), 0);
  EXPECT_THAT(BundleSamples(3), ElementsAre(0, 1, 2));
  const std::vector<int64_t> places = BundleSamples(1000000);
  EXPECT_EQ(places.size(), 256);
  EXPECT_EQ(places.front(), 0);
  EXPECT_EQ(places.back(), 999999);
  EXPECT_GT(std::set<int64_t>(places.begin(), places.end()).size(), 250);
  EXPECT_EQ(places, BundleSamples(1000000));
}

TEST(BundleTest, Errors) {
  EXPECT_THAT(
      std::string(
          MakeBundle(Module("func f(A: f32[4], s: f32) { A[0] = s }"), {}).status().message()),
      HasSubstr("bundle: 's' is a scalar"));
  EXPECT_THAT(std::string(MakeBundle(CudaModule(), {}).status().message()),
              HasSubstr("bundle: expected one function, found 0"));
}

}  // namespace
}  // namespace polynao::codegen
