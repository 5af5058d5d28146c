// exp, sigmoid and tanh as arithmetic: values in scalars and in vectors, on processors with and without instructions
// for a * b + c; and which intrinsics loops may compute in vectors at all.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/codegen/codegen_test_util.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/codegen/llvm/vector_loop.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/type.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ir::Tensor;
using ir::Type;

constexpr const char* kNames[] = {"exp", "sigmoid", "tanh"};

// As the interpreter computes it.
double Expected(const ir::PureIntrinsic& function, Type type, double x) {
  return ir::RoundFloat(type, function.evaluate(type, x, 0, 0));
}

bool Agree(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

// The functions of kNames over arrays of `count` elements, compiled in several ways.
class Compiled {
 public:
  Compiled(Type type, int64_t count) : x(type, {count}) {
    for (size_t k = 0; k < std::size(kNames); ++k) results.emplace_back(type, x.shape);
    Add("in scalars", "for", {.optimization_level = 1});
    Add("in scalars at -O0", "for", {.optimization_level = 0});
    Add("in vectors", "vectorize", {});
    Add("in wide vectors", "vectorize", {.wide_vectors = true});
    Add("in any order", "vectorize", {.float_rules = {.contract = true, .reassociate = true}});
#if defined(__x86_64__)
    Add("without fma", "vectorize", {.cpu = "x86-64"});
    Add("in scalars without fma", "for", {.optimization_level = 1, .cpu = "x86-64"});
#endif
  }

  template <typename Bits>
  void SetBits(int64_t i, Bits bits) {
    std::memcpy(x.bytes.data() + static_cast<size_t>(i) * sizeof(bits), &bits, sizeof(bits));
  }

  // Computes all values of `x` in all ways, and returns how many are not the interpreter's, with one of them.
  std::string Check() {
    std::vector<Tensor> expected;
    for (const char* name : kNames) {
      const ir::PureIntrinsic& function = *ir::FindPureIntrinsic(name);
      Tensor& values = expected.emplace_back(x.type, x.shape);
      for (int64_t i = 0; i < x.element_count(); ++i) {
        values.SetValue(i, Expected(function, x.type, x.Value(i)));
      }
    }
    std::string wrong;
    for (const auto& [way, function] : functions_) {
      EXPECT_TRUE(function
                      ->Run({ir::Argument::Of(&x), ir::Argument::Of(&results[0]),
                             ir::Argument::Of(&results[1]), ir::Argument::Of(&results[2])})
                      .ok());
      for (size_t k = 0; k < std::size(kNames); ++k) {
        if (results[k].bytes == expected[k].bytes) continue;
        int64_t count = 0;
        std::string one;
        for (int64_t i = 0; i < x.element_count(); ++i) {
          const double a = results[k].Value(i), b = expected[k].Value(i);
          if (Agree(a, b) || count++ > 0) continue;
          one = StrCat(kNames[k], " of ", x.Value(i), " (", way, "): ", a, ", expected ", b);
        }
        if (count > 0) StrAppend(&wrong, count, " differ: ", one, "\n");
      }
    }
    return wrong;
  }

  Tensor x;
  std::vector<Tensor> results;

 private:
  void Add(const char* way, const char* loop, const LlvmOptions& options) {
    const std::string array = StrCat(ir::TypeName(x.type), "[", x.element_count(), "]");
    auto compiled =
        Compile(Parse(StrCat("func f(X: ", array, " in, E: ", array, ", S: ", array, ", T: ", array,
                             ") { ", loop, " (i: i64, 0, ", x.element_count(),
                             ") { E[i] = exp(X[i]) S[i] = sigmoid(X[i]) T[i] = tanh(X[i]) } }")),
                options);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    functions_.emplace_back(way, std::move(*compiled));
  }

  std::vector<std::pair<std::string, std::unique_ptr<CompiledFunction>>> functions_;
};

TEST(ElementaryTest, Limits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {
      0.0F, kInfinity, std::numeric_limits<float>::quiet_NaN(),
      // The first e^x that is infinity and the last that is not; the least normal one; the least; the first that is 0.
      88.72284F, 88.72283F, 87.33654F, 87.33655F, 103.27893F, 103.97207F, 103.97208F,
      // Around what limits the arguments.
      89.0F, 88.99999F, 104.0F, 104.00001F, 10.0F, 10.000001F, 9.010913F, 9.010914F, 16.635532F,
      16.635534F, 1e10F, 0x1.fffffep127F,
      // Where tanh(x) is no longer x, and the smallest ones.
      0x1p-12F, 0x1.2p-12F, 0x1p-126F, 0x1p-149F, 1e-40F,
      // Around halves of ln 2, where n changes.
      0.34657356F, 0.34657362F, 1.0397207F, 0.17328678F, 0.1732868F, 0.5F, 1.0F, 2.0F};
  for (const Type type : {Type::kF32, Type::kF16, Type::kBF16}) {
    Compiled compiled(type, static_cast<int64_t>(2 * values.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      compiled.x.SetValue(static_cast<int64_t>(2 * i), values[i]);
      compiled.x.SetValue(static_cast<int64_t>(2 * i + 1), -values[i]);
    }
    EXPECT_EQ(compiled.Check(), "") << ir::TypeName(type);
  }
}

// Arguments whose values are almost halfway between two of f32: polynomials of relative error 8e-14, or of 1e-15 at r =
// 0 as well, round them to the wrong one. The values are those of 64 bits, rounded.
TEST(ElementaryTest, AlmostHalfway) {
  struct Case {
    const char* name;
    float x, value;
  };
  const std::vector<Case> cases = {
      {"exp", 0x1.eeffd8p-3F, 0x1.45fe4p+0F},       {"exp", -0x1.4c2a98p-2F, 0x1.7229b8p-1F},
      {"exp", -0x1.6727d6p-4F, 0x1.d5047ep-1F},     {"exp", 0x1.112856p+6F, 0x1.6f498ap+98F},
      {"sigmoid", 0x1.437902p-5F, 0x1.050db8p-1F},  {"sigmoid", -0x1.32c9ap-1F, 0x1.6b0962p-2F},
      {"sigmoid", -0x1.c29422p+4F, 0x1.4b4ebp-41F}, {"sigmoid", -0x1.c9bb96p+3F, 0x1.49596cp-21F},
      {"tanh", 0x1.713744p-12F, 0x1.713744p-12F},   {"tanh", 0x1.713746p-12F, 0x1.713744p-12F},
      {"tanh", 0x1.b79208p-10F, 0x1.b791ecp-10F},   {"tanh", 0x1.86fbc4p-10F, 0x1.86fbb2p-10F},
      {"tanh", 0x1.9c696p-7F, 0x1.9c63cep-7F},      {"tanh", -0x1.92bb6ep-4F, -0x1.91707ap-4F}};
  Compiled compiled(Type::kF32, static_cast<int64_t>(cases.size()));
  for (size_t i = 0; i < cases.size(); ++i) {
    const ir::PureIntrinsic& function = *ir::FindPureIntrinsic(cases[i].name);
    EXPECT_EQ(Expected(function, Type::kF32, cases[i].x), cases[i].value) << cases[i].name;
    compiled.x.SetValue(static_cast<int64_t>(i), cases[i].x);
  }
  EXPECT_EQ(compiled.Check(), "");
}

// Of f32, every 4099th value by its bits. POLYNAO_RANDOM_CASES=4294967296 takes all of them, in half an hour.
TEST(ElementaryTest, ValuesOfF32) {
  constexpr uint64_t kAll = uint64_t{1} << 32, kBlock = 1 << 16;
  const char* const wanted = std::getenv("POLYNAO_RANDOM_CASES");
  const uint64_t count =
      wanted == nullptr ? kAll / 4099 : std::max<uint64_t>(std::strtoull(wanted, nullptr, 10), 1);
  const uint64_t step = std::max<uint64_t>(kAll / count, 1);
  Compiled compiled(Type::kF32, kBlock);
  for (uint64_t first = 0; first < kAll; first += step * kBlock) {
    for (uint64_t i = 0; i < kBlock; ++i) {
      const auto bits = static_cast<uint32_t>(std::min(first + i * step, kAll - 1));
      compiled.SetBits(static_cast<int64_t>(i), bits);
    }
    ASSERT_EQ(compiled.Check(), "") << "from " << first << " on";
  }
}

// All of them.
TEST(ElementaryTest, ValuesOfNarrowFloats) {
  for (const Type type : {Type::kF16, Type::kBF16}) {
    Compiled compiled(type, 1 << 16);
    for (int i = 0; i < 1 << 16; ++i) compiled.SetBits(i, static_cast<uint16_t>(i));
    EXPECT_EQ(compiled.Check(), "") << ir::TypeName(type);
  }
}

// What has a vector form is computed in vectors and without a call; nothing else is.
TEST(ElementaryTest, IntrinsicsInVectorLoops) {
  const char* const arguments[] = {"A[i]", "A[i], A[i + 1]", "A[i], A[i + 1], A[i + 2]"};
  for (const ir::PureIntrinsic& intrinsic : ir::PureIntrinsics()) {
    for (const Type type : {Type::kF16, Type::kBF16, Type::kF32, Type::kF64}) {
      const std::string_view name = ir::TypeName(type);
      const ir::Function f =
          Parse(StrCat("func f(A: ", name, "[66] in, B: ", name,
                       "[64]) { vectorize (i: i64, 0, 64) { B[i] = ", intrinsic.name, "(",
                       arguments[intrinsic.arity - 1], ") } }"));
      const bool has_form = ir::HasVectorForm(intrinsic, type);
      arith::Analyzer analyzer(*f.context);
      EXPECT_EQ(FindVectorLoop(f.body, ir::Aliases(f), analyzer).has_value(), has_form)
          << intrinsic.name << " of " << name;
      if (type != Type::kF32 && type != Type::kF64) continue;
      // Of sigmoid in f64, exp.
      const std::string code = *EmitLlvm({f.context, {f}}, LlvmOutput::kIr);
      const auto calls = [&](std::string_view function) {
        const char* const suffix = type == Type::kF32 ? "f(" : "(";
        return code.find(StrCat("@", function, suffix)) != std::string::npos;
      };
      EXPECT_EQ(calls(intrinsic.name) || calls("exp"), !has_form)
          << intrinsic.name << " of " << name;
    }
  }
}

// A loop that nobody marked becomes vectors too.
TEST(ElementaryTest, LlvmMakesVectors) {
  for (const char* name : kNames) {
    const ir::Function f =
        Parse(StrCat("func f(A: f32[n] in, B: f32[n], n: i64) { for (i: i64, 0, n) { B[i] = ", name,
                     "(A[i]) } }"));
    const std::string code = *EmitLlvm({f.context, {f}}, LlvmOutput::kOptimizedIr);
    EXPECT_NE(code.find(" x double>"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace polynao::codegen
