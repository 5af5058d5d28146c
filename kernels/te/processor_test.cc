// Operators on this machine's processor, compared with plain loops.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/text.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/target/target.h"
#include "isa/processor/processor.h"
#include "kernels/te/attention.h"
#include "kernels/te/convolution.h"
#include "kernels/te/matmul.h"
#include "kernels/te/normalization.h"
#include "kernels/te/operator.h"
#include "kernels/te/transposed_convolution.h"
#include "kernels/te/unscheduled.h"

namespace polynao::kernels {
namespace {

using Attributes = decltype(OperatorCase::attributes);

// What differs from the reference; "" if nothing does. With values for `nao run`, and others.
std::string WrongIn(const Operator& op, const std::string& shape, ir::Type type,
                    const Attributes& attributes, std::optional<ir::Values> others = {}) {
  OperatorCase c;
  c.op = op.name;
  c.dtype = type;
  c.attributes = attributes;
  if (const absl::Status status = ParseShapes(shape, c); !status.ok()) return status.ToString();
  if (const absl::Status status = op.check(c); !status.ok()) return status.ToString();
  const Target target = MakeTarget("cpu", nullptr).value();
  const absl::StatusOr<ir::Function> function = op.build(c, target);
  if (!function.ok()) return function.status().ToString();
  const auto compiled = codegen::Compile(*function, {.threads = 2, .wide_vectors = true});
  if (!compiled.ok()) return compiled.status().ToString();
  std::vector<ir::Values> all = {ValuesFor(op, c, target)};
  if (others) all.push_back(*others);
  for (const ir::Values values : all) {
    std::vector<ir::Tensor> tensors = MakeTensors(op, c, 1, values);
    std::vector<ir::Tensor> expected = {tensors.back()};
    const auto inputs = absl::MakeSpan(tensors).subspan(0, tensors.size() - 1);
    ComputeReference(op, c, target, inputs, absl::MakeSpan(expected));
    std::vector<ir::Argument> arguments;
    for (size_t i = 0; i < tensors.size(); ++i) {
      // A parameter may have another shape of as many elements.
      tensors[i].shape.clear();
      for (const ir::Expr extent : function->params[i].buffer->extents)
        tensors[i].shape.push_back(extent.int_value());
      arguments.push_back(ir::Argument::Of(&tensors[i]));
    }
    if (const absl::Status status = (*compiled)->Run(arguments); !status.ok())
      return status.ToString();
    tensors.back().shape = expected[0].shape;
    const ir::Difference difference = ir::Compare(tensors.back(), expected[0]);
    if (!ValuesAgree(op, c, target, expected[0], difference))
      return StrCat("differs by ", difference.max_abs);
  }
  return "";
}

// Sizes of a tile, around it, and 1; products that a processor rounds once, and integers that wrap.
TEST(ProcessorTest, Matmul) {
  const Operator op = std::move(MatmulOperators()[0]);
  for (const ir::Type type :
       {ir::Type::kF32, ir::Type::kI8, ir::Type::kI16, ir::Type::kF16, ir::Type::kBF16}) {
    for (const char* shape : {"1x1,1x1", "14x64,32x64", "15x65,33x65", "29x7,1x7", "1x97,50x97",
                              "64x400,96x400", "61x401,97x401"}) {
      // Of bf16, sums that are rounded in another order, too.
      std::optional<ir::Values> others;
      if (type == ir::Type::kBF16) others = ir::Values::kFinite;
      EXPECT_EQ(WrongIn(op, shape, type, {{"out", ir::IsFloat(type) ? "f32" : "i32"}}, others), "")
          << shape << " of " << ir::TypeName(type);
    }
  }
  EXPECT_EQ(WrongIn(op, "33x40,50x40", ir::Type::kI8,
                    {{"out", "f16"}, {"bias", "1"}, {"relu", "1"}, {"scale", "0.125"}}),
            "");
  for (const char* out : {"f16", "i8"}) {
    EXPECT_EQ(WrongIn(op, "33x40,50x40", ir::Type::kBF16,
                      {{"out", out}, {"bias", "1"}, {"relu", "1"}, {"scale", "0.125"}}),
              "")
        << out;
  }
}

// Sums of bf16 by an instruction where this machine has one, whose rows are whole tiles or not.
TEST(ProcessorTest, MatmulOfBf16TakesInstructions) {
  if (!isa::HostHas("amx-bf16")) {
    GTEST_SKIP() << "this machine has no tiles of bf16 (AMX), or the system does not give them";
  }
  const Operator op = std::move(MatmulOperators()[0]);
  for (const char* shape : {"128x256,128x256", "127x253,131x253"}) {
    OperatorCase c;
    c.op = op.name;
    c.dtype = ir::Type::kBF16;
    c.attributes = {{"out", "f32"}};
    ASSERT_TRUE(ParseShapes(shape, c).ok());
    const absl::StatusOr<ir::Function> function = op.build(c, MakeTarget("cpu", nullptr).value());
    ASSERT_TRUE(function.ok()) << function.status();
    const ir::Module module{.context = function->context, .functions = {*function}};
    const auto text = codegen::EmitLlvm(module, codegen::LlvmOutput::kIr, {.wide_vectors = true});
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_NE(text->find("@llvm.x86.tdpbf16ps("), std::string::npos) << ir::Print(*function);
  }
}

TEST(ProcessorTest, Conv2d) {
  const Operator op = std::move(ConvolutionOperators()[0]);
  int number = 0;
  for (const ir::Type type : {ir::Type::kF32, ir::Type::kI8, ir::Type::kBF16}) {
    const std::string out = ir::IsFloat(type) ? "f32" : "i32";
    std::optional<ir::Values> others;
    if (type == ir::Type::kBF16) others = ir::Values::kFinite;
    for (const Attributes& attributes : std::vector<Attributes>{{},
                                                                {{"stride", "2"}},
                                                                {{"dilation", "2"}},
                                                                {{"pad", "0"}},
                                                                {{"bias", "1"}, {"relu", "1"}}}) {
      for (const char* shape :
           {"14x14x16,32x3x3x16", "13x11x5,33x3x3x5", "9x9x3,17x5x5x3", "12x12x64,64x1x1x64"}) {
        // All shapes plainly, every other one with each attribute.
        if (!attributes.empty() && number++ % 2 == 1) continue;
        Attributes all = attributes;
        all["out"] = out;
        EXPECT_EQ(WrongIn(op, shape, type, all, others), "")
            << shape << " of " << ir::TypeName(type);
      }
    }
    EXPECT_EQ(WrongIn(op, "10x10x8,12x3x3x2", type, {{"groups", "4"}, {"out", out}}), "");
  }
}

// Operators that are nothing but expressions: sums of products in packed tiles, reductions of many rows in vectors of
// rows; few rows and columns in plain loops.
TEST(ProcessorTest, OperatorsByExpressions) {
  std::vector<Operator> operators = AttentionOperators();
  for (auto& list : {FusedLayers(), TransposedConvolutionOperators(), NormalizationOperators()})
    operators.insert(operators.end(), list.begin(), list.end());
  const auto check = [&](const char* name, const std::vector<const char*>& shapes,
                         const std::vector<ir::Type>& types, const std::vector<Attributes>& all,
                         const char* text = "column.panels") {
    const auto op = std::find_if(operators.begin(), operators.end(),
                                 [&](const Operator& one) { return one.name == name; });
    ASSERT_NE(op, operators.end()) << name;
    // Each shape, type and set of attributes, but not all of their combinations.
    for (size_t i = 0; i < std::max({shapes.size(), types.size(), all.size()}); ++i) {
      const char* shape = shapes[i % shapes.size()];
      const ir::Type type = types[i % types.size()];
      EXPECT_EQ(WrongIn(*op, shape, type, all[i % all.size()]), "")
          << name << " " << shape << " " << ir::TypeName(type);
    }
    OperatorCase c;
    c.op = name;
    c.dtype = types[0];
    ASSERT_TRUE(ParseShapes(shapes[0], c).ok());
    const auto function = op->build(c, MakeTarget("cpu", nullptr).value());
    ASSERT_TRUE(function.ok()) << function.status();
    EXPECT_THAT(ir::Print(*function), testing::HasSubstr(text)) << name;
  };
  using enum ir::Type;
  check("batched_matmul", {"12x40x33,12x33x50", "3x1x7,3x7x1", "1x5x1,1x1x65"}, {kF32, kI8, kF16},
        {{}, {{"bias", "1"}}, {{"relu", "1"}}, {{"scale", "0.5"}}});
  check("attention", {"4x40x32", "3x1x5,3x17x5"}, {kF32, kF16}, {{}});
  check("conv2d_bn", {"14x14x16,32x3x3x16", "5x7x3,1x1x1x3", "6x6x5,17x3x3x5"}, {kF32, kI8, kF16},
        {{}, {{"residual", "1"}}, {{"stride", "2"}}, {{"out", "i8"}}, {{"norm", "0"}}});
  check("conv2d_batch_norm", {"14x14x16,32x3x3x16", "3x2x1,3x1x1x1"}, {kF32, kI8},
        {{}, {{"variance", "deviations"}}, {{"residual", "1"}}});
  check("conv2d_pair", {"12x12x16,32x1x1x16,17x3x3x32", "5x5x3,2x3x3x3,1x1x1x2"}, {kI8, kI16},
        {{}, {{"stride", "2"}}});
  check("conv2d_transpose", {"14x14x16,8x3x3x16", "3x3x2,5x2x2x2"}, {kF32, kF16},
        {{}, {{"stride", "3"}}});
  check("softmax", {"70x33", "64x1", "8x7x65", "3x40", "5x64x3"}, {kF32, kF16, kBF16},
        {{}, {{"axis", "0"}}}, "vectorize (");
  check("layer_norm", {"100x17", "64x64", "2x300"}, {kF32, kF16, kBF16}, {{}}, "vectorize (");
  check("rms_norm", {"100x17", "1x1", "2x300"}, {kF32, kF16}, {{}}, "vectorize (");
  check("group_norm", {"2x5x3x8", "1x9x9x64"}, {kF32, kF16}, {{}, {{"groups", "4"}}}, "parallel (");
}

// Lane by lane: rows of one tile, of two, and of more with a short one at the end; channels around a vector's; windows
// that reach beyond the image on both sides; two filters for a channel.
TEST(ProcessorTest, DepthwiseConvolution) {
  const Operator op = std::move(ConvolutionOperators()[0]);
  int number = 0;
  for (const ir::Type type : {ir::Type::kF32, ir::Type::kI8, ir::Type::kBF16}) {
    for (const Attributes& attributes : std::vector<Attributes>{{},
                                                                {{"stride", "2"}},
                                                                {{"dilation", "2"}},
                                                                {{"pad", "0"}},
                                                                {{"bias", "1"}, {"relu", "1"}}}) {
      for (const auto& [shape, groups] :
           std::vector<std::pair<const char*, const char*>>{{"7x7x32,32x3x3x1", "32"},
                                                            {"5x29x17,17x3x3x1", "17"},
                                                            {"9x45x16,16x5x5x1", "16"},
                                                            {"5x5x3,3x1x3x1", "3"},
                                                            {"6x17x8,16x3x3x1", "8"}}) {
        if (!attributes.empty() && number++ % 2 == 1) continue;
        Attributes all = attributes;
        all["out"] = ir::IsFloat(type) ? "f32" : "i32";
        all["groups"] = groups;
        EXPECT_EQ(WrongIn(op, shape, type, all), "") << shape << " of " << ir::TypeName(type);
      }
    }
  }
}

}  // namespace
}  // namespace polynao::kernels
