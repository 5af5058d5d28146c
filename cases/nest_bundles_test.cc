#include "cases/nest_bundles.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/cuda/bundle.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace polynao::cases {
namespace {

using ir::Argument;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Scalars = std::map<std::string, Argument>;

// Also of scalars that break an @assert.
ir::RandomArguments ArgumentsOf(ir::Function function, Scalars scalars) {
  function.attributes.clear();
  absl::StatusOr<ir::RandomArguments> arguments = ir::RandomArguments::Draw(
      function, 1, {.values = ir::Values::kExact, .scalars = std::move(scalars)});
  EXPECT_TRUE(arguments.ok()) << arguments.status();
  return *std::move(arguments);
}

// The text of `text`'s function with these scalars; it stores the same elements.
std::string Constant(const std::string& text, const Scalars& scalars) {
  const absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  const ir::RandomArguments expected = ArgumentsOf(*function, scalars);
  const ir::RandomArguments actual(expected);
  const absl::StatusOr<ir::Function> constant = WithScalars(*function, expected);
  if (!constant.ok()) return std::string(constant.status().message());
  std::vector<Argument> tensors;
  for (size_t i = 0; i < function->params.size(); ++i) {
    if (function->params[i].buffer) tensors.push_back(actual.arguments()[i]);
  }
  EXPECT_EQ(ir::Interpret(*function, expected.arguments()), absl::OkStatus());
  EXPECT_EQ(ir::Interpret(*constant, tensors), absl::OkStatus());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(actual.tensors()[i].shape, expected.tensors()[i].shape);
    EXPECT_EQ(actual.tensors()[i].bytes, expected.tensors()[i].bytes);
  }
  return ir::Print(*constant);
}

TEST(WithScalarsTest, Everywhere) {
  const std::string text = Constant(R"(
          func f(A: f32[n + 1, m] in, B: f32[m, n] out, n: i32, m: i16, factor: f32, k: u8) {
            for (i, 0, n) {
              if (i % 2 == cast(i32, k)) {
                for (j: i16, 0, m) { B[j, i] = A[i + 1, j] * factor }
              }
            }
          })",
                                    {{"n", Argument::Int(5)},
                                     {"m", Argument::Int(3)},
                                     {"factor", Argument::Float(0.5)},
                                     {"k", Argument::Int(1)}});
  EXPECT_THAT(text, HasSubstr("func f(A: f32[6, i16(3)] in, B: f32[i16(3), 5] out) {"));
  EXPECT_THAT(text, HasSubstr("for (i, 0, 5)"));
  EXPECT_THAT(text, HasSubstr("* 0.5"));
  EXPECT_THAT(text, Not(HasSubstr("factor")));
}

// Buffers of the function, inside of loops and lets too.
TEST(WithScalarsTest, Allocations) {
  const std::string text = Constant(R"(
      func f(A: i32[n], n: i32) {
        allocate W: i32[n]
        for (i, 0, n) { W[i] = A[n - 1 - i] }
        let half: i32 = n / 2
        for (r, 0, 2) {
          allocate V: i32[2 * n, half]
          for (i, 0, half) { V[i + n, r] = W[i] + r }
          for (i, 0, half) { A[i] = A[i] + V[i + n, r] }
        }
      })",
                                    {{"n", Argument::Int(6)}});
  EXPECT_THAT(text, HasSubstr("allocate W: i32[6]"));
  EXPECT_THAT(text, HasSubstr("allocate V: i32[2 * 6, half]"));
}

TEST(WithScalarsTest, Attributes) {
  const std::string function = R"(
      @contract
      @may_alias("A", "B")
      @assert(1 <= n, n % 2 == m)
      func f(A: i32[n], B: i32[n] in, n: i32, m: i32) { A[0] = B[n - 1] + m })";
  const std::string text = Constant(function, {{"n", Argument::Int(3)}, {"m", Argument::Int(1)}});
  EXPECT_THAT(text, HasSubstr("@contract"));
  EXPECT_THAT(text, HasSubstr("@may_alias(\"A\", \"B\")"));
  EXPECT_THAT(text, Not(HasSubstr("@assert")));
  const ir::Function f = *ir::ParseFunction(function);
  const auto error = [&](int64_t n, int64_t m) {
    const ir::RandomArguments arguments =
        ArgumentsOf(f, {{"n", Argument::Int(n)}, {"m", Argument::Int(m)}});
    return std::string(WithScalars(f, arguments).status().message());
  };
  EXPECT_EQ(error(0, 0), "function 'f': '@assert(1 <= n)' does not hold: n = 0");
  EXPECT_EQ(error(4, 1), "function 'f': '@assert(n % 2 == m)' does not hold: n = 4, m = 1");
}

// Negative extents are empty buffers.
TEST(WithScalarsTest, NoElements) {
  EXPECT_THAT(Constant("func f(A: f64[n - 9], n: i32) { for (i, 0, n - 9) { A[i] = 1.0 } }",
                       {{"n", Argument::Int(4)}}),
              HasSubstr("func f(A: f64[0])"));
}

// ---- bundles

using Files = std::map<std::string, std::string>;

absl::StatusOr<Files> Build(const std::string& text, const Scalars& scalars,
                            const NestBundleSettings& settings) {
  const absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  absl::StatusOr<std::vector<codegen::OutputFile>> files =
      BuildNestBundles(*function, ArgumentsOf(*function, scalars), "a title", settings);
  if (!files.ok()) return files.status();
  Files result;
  for (codegen::OutputFile& file : *files) result[file.name] = std::move(file.contents);
  return result;
}

std::string Error(const std::string& text, const Scalars& scalars,
                  const NestBundleSettings& settings = {}) {
  return std::string(Build(text, scalars, settings).status().message());
}

constexpr char kProduct[] = R"(
    func product(C: f32[n, m], A: f32[n, l] in, B: f32[l, m] in, n: i32, m: i32, l: i32, alpha: f32) {
      for (i, 0, n) { for (j, 0, m) { for (k, 0, l) {
        C[i, j] = C[i, j] + alpha * A[i, k] * B[k, j]
      } } }
    })";
const Scalars& ProductScalars() {
  static const auto& scalars = *new Scalars{{"n", Argument::Int(20)},
                                            {"m", Argument::Int(70)},
                                            {"l", Argument::Int(40)},
                                            {"alpha", Argument::Float(1.5)}};
  return scalars;
}

TEST(NestBundlesTest, APairHasTheSameBlocks) {
  const absl::StatusOr<Files> files = Build(kProduct, ProductScalars(), {.pair = true});
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(),
            10);  // each kernel.cu, bundle.json, and inputs, whose seeds are not the settings'
  for (const std::string folder : {"baseline/", "optimised/"}) {
    const bool copies = folder == "optimised/";
    const auto json = nlohmann::json::parse(files->at(folder + "bundle.json"));
    EXPECT_EQ(json["case"]["op"], "a title");
    EXPECT_EQ(json["case"]["schedule"], "auto");
    EXPECT_EQ(json["case"]["copies"], copies);
    EXPECT_EQ(json["case"]["scalars"]["m"], 70);
    EXPECT_EQ(json["case"]["scalars"]["alpha"], 1.5);
    EXPECT_EQ(json["bytes"], 4 * (20 * 70 + 20 * 40 + 40 * 70));
    ASSERT_EQ(json["values"].size(), 3);
    EXPECT_EQ(json["values"][0]["kind"], "inout");
    EXPECT_THAT(json["values"][1]["extents"], ElementsAre(20 * 40));
    EXPECT_TRUE(json["values"][0].contains("check"));
    EXPECT_FALSE(json["values"][1].contains("check"));
    ASSERT_EQ(json["kernels"].size(), 1);
    EXPECT_FALSE(json.contains("launches"));
    EXPECT_THAT(json["kernels"][0]["grid"], ElementsAre(3, 3, 1));
    EXPECT_THAT(json["kernels"][0]["block"], ElementsAre(32, 8, 1));
    EXPECT_EQ(json["kernels"][0]["shared_bytes"], copies ? 5120 : 0);
    EXPECT_EQ(json["kernels"][0]["barriers"], copies ? 3 : 0);
    const std::string& cuda = files->at(folder + "kernel.cu");
    EXPECT_EQ(cuda.find("__syncthreads") != std::string::npos, copies);
    EXPECT_THAT(cuda, HasSubstr("1.5"));
  }
}

// The values to check against are those of the function as it is written.
TEST(NestBundlesTest, ValuesOfTheFunction) {
  const absl::StatusOr<Files> files =
      Build("func f(A: i32[n] out, n: i32) { for (i, 0, n) { A[i] = i * i } }",
            {{"n", Argument::Int(5)}}, {});
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 2);
  const auto json = nlohmann::json::parse(files->at("bundle.json"));
  EXPECT_THAT(json["values"][0]["check"]["samples"], ElementsAre(0, 1, 4, 9, 16));
  EXPECT_EQ(json["values"][0]["check"]["tolerance"], 0);
}

// Of a user, it may go beyond its buffers: then there are no values to check against.
TEST(NestBundlesTest, WhatStopsAFunctionIsAnError) {
  EXPECT_THAT(Error("func f(A: i32[n] out, n: i32) { for (i, 0, n) { A[i + n] = i } }",
                    {{"n", Argument::Int(5)}}, {.checks = true}),
              HasSubstr("f: index 0 of 'A' is out of its extent"));
}

// The variants of a pipeline: tiles of the sizes that are given, with a thread for each element of the last dimensions.
TEST(NestBundlesTest, Variants) {
  const absl::StatusOr<Files> files = Build(
      R"(
      func f(a: f32[2, 44, 73] in, y: f32[2, 40, 69] out) {
        allocate b: f32[2, 40, 73]
        for (c, 0, 2) { for (i, 0, 40) { for (j, 0, 73) {
          b[c, i, j] = a[c, i, j] + a[c, i + 1, j] * 4.0 + a[c, i + 2, j] * 6.0 + a[c, i + 4, j]
        } } }
        for (c, 0, 2) { for (i, 0, 40) { for (j, 0, 69) {
          y[c, i, j] = b[c, i, j] + b[c, i, j + 1] * 4.0 + b[c, i, j + 2] * 6.0 + b[c, i, j + 4]
        } } }
      })",
      {},
      {.variants = {
           {"baseline/", "min"}, {"published/", "fuse:2x16x32"}, {"large/", "fuse:2x32x48"}}});
  ASSERT_TRUE(files.ok()) << files.status();
  const auto baseline = nlohmann::json::parse(files->at("baseline/bundle.json"));
  EXPECT_EQ(baseline["case"]["schedule"], "min");
  EXPECT_EQ(baseline["kernels"].size(), 2);
  const auto published = nlohmann::json::parse(files->at("published/bundle.json"));
  EXPECT_EQ(published["case"]["schedule"], "fuse:2x16x32");
  EXPECT_THAT(published["case"]["notes"].dump(), HasSubstr("y in tiles of all x 16 x 32"));
  EXPECT_THAT(published["kernels"].back()["grid"], ElementsAre(3, 3, 1));
  EXPECT_THAT(published["kernels"].back()["block"], ElementsAre(1024, 1, 1));
  // A block has no thread for each of 3072 elements.
  const auto large = nlohmann::json::parse(files->at("large/bundle.json"));
  EXPECT_THAT(large["kernels"].back()["block"], ElementsAre(1024, 1, 1));
}

// The host's loops become launches. A workspace has a constant size.
TEST(NestBundlesTest, LoopsOfTheHost) {
  const absl::StatusOr<Files> files =
      Build(R"(
      func steps(A: f64[n], t: i32, n: i32) {
        allocate B: f64[n + 2]
        for (s, 0, t) {
          for (i, 1, n - 2) { B[i] = A[i - 1] + A[i + 1] }
          for (i, 1, n - 2) { A[i] = B[i] * 0.5 }
        }
      })",
            {{"t", Argument::Int(3)}, {"n", Argument::Int(500)}}, {});
  ASSERT_TRUE(files.ok()) << files.status();
  const auto json = nlohmann::json::parse(files->at("bundle.json"));
  EXPECT_EQ(json["launches"].size(), 6);
  EXPECT_EQ(json["values"][1]["kind"], "workspace");
  EXPECT_THAT(json["values"][1]["extents"], ElementsAre(502));
}

// With the sizes as constants isl's scheduler does not come to an end with this one, the factors of ludcmp, in minutes.
TEST(NestBundlesTest, SchedulesBeforeSizesAreConstant) {
  const absl::StatusOr<Files> files = Build(R"(
      func factors(A: i32[n, n], n: i32) {
        allocate w: i32[]
        for (i, 0, n) {
          for (j, 0, i) {
            w[] = A[i, j]
            for (k, 0, j) { w[] = w[] - A[i, k] * A[k, j] }
            A[i, j] = w[]
          }
          for (j, i, n - i) {
            w[] = A[i, j]
            for (k, 0, i) { w[] = w[] - A[i, k] * A[k, j] }
            A[i, j] = w[]
          }
        }
      })",
                                            {{"n", Argument::Int(40)}}, {.pair = true});
  ASSERT_TRUE(files.ok()) << files.status();
  const auto json = nlohmann::json::parse(files->at("optimised/bundle.json"));
  EXPECT_THAT(json["launches"], Not(IsEmpty()));
}

TEST(NestBundlesTest, Errors) {
  EXPECT_THAT(Error(kProduct, ProductScalars(), {.schedule = "best"}), HasSubstr("found 'best'"));
  EXPECT_EQ(Error(kProduct, ProductScalars(), {.schedule = "fuse:8xa"}),
            "--schedule: expected sizes of a tile like fuse:8x64, found '8xa'");
  EXPECT_THAT(Error(kProduct, ProductScalars(), {.schedule = "overlap:8x64"}),
              HasSubstr("found 'overlap'"));
  EXPECT_EQ(Error("@assert(1 <= n) func f(A: i32[n], n: i32) { A[0] = 7 / n }",
                  {{"n", Argument::Int(0)}}),
            "function 'f': '@assert(1 <= n)' does not hold: n = 0");
  EXPECT_THAT(Error(R"(
      func f(A: i32[6], B: i32[6], n: i32) {
        for (k, 0, n) {
          for (i, 1, 4) { B[i] = A[i - 1] + A[i + 1] }
          for (i, 1, 4) { A[i] = B[i] + k }
        }
      })",
                    {{"n", Argument::Int(600'000)}}),
              HasSubstr("bundle: 'f' has more than 1000000 launches"));
}

}  // namespace
}  // namespace polynao::cases
