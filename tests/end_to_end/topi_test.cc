// The operators of the TOPI table on small shapes: compiled for processor and GPU and interpreted, against
// plain loops.

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "cases/run_case.h"
#include "compiler/codegen/cuda/run_cuda.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/tensor.h"
#include "compiler/registry/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators.h"
#include "kernels/topi_cases/cases.h"

namespace polynao::cases {
namespace {

using ::testing::HasSubstr;

struct Words {
  std::string op;
  std::string shape;
  std::string attributes = "";  // "stride_h=2 pad_top=1"
  std::string dtype = "f32";
};

// Extents of one and of primes, ones just off what tiles and vectors have, padding wider than the input,
// strides that skip elements.
const std::vector<Words>& SmallCases() {
  static const auto* cases = new std::vector<Words>{
      {"batch_matmul", "2x5x7,2x3x7"},
      {"batch_matmul", "1x17x32,3x20x32"},
      {"batch_to_space_nd", "8x1x3x1", "block_shape=2:2 crop_begin=0:2"},
      {"batch_to_space_nd", "18x2x1x2", "block_shape=2:3 crop_begin=1:1"},
      {"clip", "65x7", "a_min=-0.5"},
      {"relu", "13x17"},
      {"reduce", "7", "reduce_type=argmax premap=sqrt(exp(x))"},
      {"reduce", "3x5x33", "axes=1:2 keepdims=1"},
      {"reduce", "3x1100", "axes=1 reduce_type=min"},
      {"reduce", "5x4x7", "axes=0:2 reduce_type=max premap=sqrt(exp(x))"},
      {"reduce", "5x4x7", "axes=1 reduce_type=argmin"},
      {"reduce", "2x3", "reduce_type=all keepdims=1", "i1"},
      {"reduce", "1x4x7", "axes=1 reduce_type=any", "i1"},
      {"reduce", "3x40", "axes=1", "f64"},
      {"upsampling", "2x3x5x4", "method=nearest_neighbor scale_h=1.954545497894287 scale_w=3"},
      {"upsampling", "1x3x5x4", "layout=NHWC"},
      {"upsampling", "1x2x3x4x2",
       "layout=NDHWC method=trilinear coord_mode=half_pixel scale_w=1.5"},
      {"upsampling", "1x1x3x4x1x16", "layout=NCHW1n16c"},
      {"conv1d", "1x1x8,1x1x3", "pad_left=1 pad_right=1"},
      {"conv1d", "2x17x12,21x17x3", "stride_w=2 dilation_w=2 pad_left=2 pad_right=2"},
      {"conv1d", "2x12x5,3x5x18", "layout=NWC"},
      {"conv1d", "1x9x3,1x3x2", "layout=NWC pad_left=1"},
      {"conv1d_transpose_ncw", "1x3x10,3x2x5",
       "stride_w=2 pad_left=1 pad_right=3 output_padding_w=1"},
      {"conv1d_transpose_ncw", "1x2x7,2x9x4", "stride_w=5 epilogue=relu"},
      {"conv2d_hwcn", "5x6x7x1,3x3x7x9", "pad_top=1 pad_left=1 epilogue=bias"},
      {"conv2d_hwcn", "5x5x4x4,5x5x4x3", "stride_h=2 pad_top=2 pad_bottom=2 epilogue=bias_relu"},
      {"conv2d_nhwc", "1x7x7x3,3x3x3x8", "pad_top=1 pad_left=2 pad_bottom=2 pad_right=1"},
      {"conv2d_nhwc", "2x6x5x4,1x2x4x33", "stride_w=2 dilation_w=2"},
      {"conv2d_nchw", "1x3x9x11,16x3x3x3", "stride_h=2 stride_w=3 pad_top=1 epilogue=bias_relu"},
      {"conv2d_nchw", "2x5x7x7,7x5x1x1", "epilogue=relu"},
      {"conv2d_nchw", "1x2x3x3,3x2x5x5",
       "pad_top=2 pad_left=2 pad_bottom=2 pad_right=2 epilogue=bias"},
      {"conv2d_nchw", "1x4x5x37,40x4x2x2", "dilation_h=2 dilation_w=3"},
      {"conv2d_int8", "1x8x5x5,8x8x3x3", "pad_top=1 pad_left=1 epilogue=bias_relu", "i8"},
      {"conv2d_int8", "2x4x7x6,20x4x1x1", "stride_h=2 epilogue=bias", "i8"},
      {"group_conv2d_int8", "1x16x6x6,16x4x3x3", "groups=4 pad_top=1 dilation_w=2", "i8"},
      {"conv2d_transpose_nchw", "1x3x6x5,3x4x3x2", "stride_h=3 stride_w=2 pad_top=1 pad_left=1"},
      {"conv2d_transpose_nchw", "2x4x5x1,4x8x7x1", "pad_top=5 pad_bottom=4 epilogue=relu"},
      {"conv2d_transpose_nchw", "1x2x3x3,2x1x2x2",
       "stride_h=2 stride_w=2 output_padding_h=1 output_padding_w=1"},
      {"conv3d_ncdhw", "1x3x4x5x6,2x3x3x3x3", "pad_front=1 pad_top=1 pad_left=1 epilogue=bias"},
      {"conv3d_ncdhw", "1x2x5x5x5,8x2x2x1x3", "stride_d=2 dilation_w=2 epilogue=relu"},
      {"conv3d_ndhwc", "2x4x5x5x3,1x3x3x3x9", "stride_h=2 pad_top=1 pad_bottom=1"},
      {"conv3d_transpose_ncdhw", "1x2x3x4x3,2x3x2x3x2",
       "stride_d=2 stride_h=2 stride_w=2 pad_top=1"},
      {"conv3d_transpose_ncdhw", "1x1x3x3x3,1x8x1x1x1",
       "stride_d=3 stride_h=3 stride_w=3 output_padding_d=2 epilogue=relu"},
      {"conv2d_winograd", "1x3x7x7,5x3x3x3", "tile_size=2 pad_top=1 pad_left=1 epilogue=bias_relu"},
      {"conv2d_winograd", "2x9x8x8,12x9x3x3", "pad_top=1 pad_bottom=1 pad_left=1 pad_right=1"},
      {"conv2d_nhwc_winograd", "1x9x6x5,3x3x5x7", "tile_size=2 pad_bottom=1 epilogue=relu"},
      {"conv3d_winograd", "1x3x4x5x4,2x3x3x3x3", "pad_front=1 pad_top=1 pad_right=1"},
      {"conv3d_winograd", "2x2x4x5x6,3x2x1x3x3",
       "winograd_depth=0 dilation_h=2 epilogue=bias_relu"},
      {"conv3d_winograd", "1x2x5x5x6,3x2x2x3x3", "winograd_depth=0 pad_front=1 stride_d=2"},
      {"group_conv2d", "1x12x5x6,24x4x3x3", "groups=3 pad_top=1 pad_left=1 epilogue=bias_relu"},
      {"group_conv2d", "2x6x7x7,6x2x3x3", "groups=3 stride_h=2 dilation_w=2"},
      {"deformable_conv2d", "1x4x7x7,1x36x5x5,3x4x3x3", "deformable_groups=2"},
      {"deformable_conv2d", "1x4x5x5,1x8x5x5,6x4x2x2",
       "dilation_h=2 pad_top=1 pad_bottom=1 pad_left=1"},
      {"depthwise_conv2d", "1x5x9x9,5x1x3x3", "pad_top=1 pad_left=1 epilogue=scale_shift_relu"},
      {"depthwise_conv2d", "2x3x8x7,3x2x5x3", "stride_h=2 dilation_w=2 epilogue=scale_shift"},
      {"depthwise_conv2d_back_input", "2x3x4x6,3x3x3x2",
       "in_height=5 in_width=8 stride_h=2 stride_w=2 pad_top=1 pad_left=1 pad_bottom=1"},
      {"depthwise_conv2d_back_input", "1x5x5x33,3x3x33x1", "in_height=7 in_width=7"},
      {"depthwise_conv2d_back_weight", "3x5x7x4,3x5x7x4",
       "kernel_h=3 kernel_w=5 pad_top=1 pad_bottom=1 pad_left=2 pad_right=2"},
      {"depthwise_conv2d_back_weight", "1x7x7x35,1x3x3x70",
       "kernel_h=3 kernel_w=3 stride_h=2 stride_w=2"},
      {"dense", "1x100,17x100", "impl=small_batch epilogue=bias_relu"},
      {"dense", "5x33,24x33", "epilogue=relu"},
      {"dense", "7x24,40x24", "epilogue=bias impl=int8", "i8"},
      {"image", "1x3x5x7", "coord_mode=align_corners out_height=9 out_width=4"},
      {"image", "1x5x7x3", "layout=NHWC method=nearest_neighbor out_height=8 out_width=5"},
      {"image", "2x2x4x4x4",
       "kind=resize3d layout=NCDHW method=trilinear coord_mode=half_pixel out_depth=7 out_height=3 "
       "out_width=5"},
      {"image", "2x9x8x3",
       "kind=crop_and_resize layout=NHWC boxes=0.2:0.3:0.7:0.9:0:0.1:1.2:1 box_indices=1:0 "
       "crop_size=7:5 extrapolation_value=0.3"},
      {"image", "1x2x9x8",
       "kind=crop_and_resize method=nearest_neighbor boxes=0.2:0.3:0.7:0.9 box_indices=0 "
       "crop_size=3:4"},
      {"image", "3x2x3", "kind=affine_grid target_shape=5:7"},
      {"image", "2x3x5x7", "kind=grid_sample grid_shape=2:2:4:6"},
  };
  return *cases;
}

kernels::OperatorCase Case(const Words& words) {
  CaseText text{.op = words.op, .shape = words.shape, .dtype = words.dtype};
  for (const absl::string_view attribute :
       absl::StrSplit(ToAbsl(words.attributes), ' ', absl::SkipEmpty())) {
    text.attributes.emplace_back(attribute);
  }
  const absl::StatusOr<kernels::OperatorCase> c = ParseCase(text);
  EXPECT_TRUE(c.ok()) << c.status();
  return c.ok() ? *c : kernels::OperatorCase();
}

std::string Name(const kernels::OperatorCase& c) {
  return StrCat(c.op, " ", kernels::ShapesText(c), " ",
                absl::StrJoin(c.attributes, " ", absl::PairFormatter("=")));
}

void ExpectAgreement(const kernels::OperatorCase& c, const std::string& target,
                     const std::string& config = "mlu270") {
  CaseSettings settings;
  settings.target = target;
  settings.config = config;
  const absl::StatusOr<CaseReport> report = RunCase(c, settings);
  ASSERT_TRUE(report.ok()) << Name(c) << " " << target << ": " << report.status();
  EXPECT_TRUE(report->ok) << Name(c) << " " << target << ": off by " << report->max_abs_error;
}

// Every operator of the table is among the small cases.
TEST(TopiTest, SmallCasesHaveAllOperators) {
  for (const kernels::TopiCase& c : kernels::TopiCases()) {
    const bool found = std::any_of(SmallCases().begin(), SmallCases().end(),
                                   [&](const Words& words) { return words.op == c.op; });
    EXPECT_TRUE(found) << c.op;
  }
}

TEST(TopiTest, SmallCasesInterpreted) {
  for (const Words& words : SmallCases()) ExpectAgreement(Case(words), "interp");
}

TEST(TopiTest, SmallCasesOnTheProcessor) {
  for (const Words& words : SmallCases()) ExpectAgreement(Case(words), "cpu");
}

// By their loops: instructions where there are some, else the scalar unit.
TEST(TopiTest, SmallCasesOnTheCard) {
  for (const Words& words : SmallCases()) {
    ExpectAgreement(Case(words), "diannao", words.dtype == "i8" ? "mlu270" : "mlu370");
  }
}

// Kernels of all cases as one CUDA file, run by the shim with threads in three orders.
TEST(TopiTest, SmallCasesOnAGpu) {
  if (const absl::Status found = codegen::FindCCompiler(false).status(); !found.ok()) {
    GTEST_SKIP() << "SKIPPED: " << found;
  }
  const Target target{.name = "cuda"};
  std::vector<ir::Function> functions;
  for (size_t i = 0; i < SmallCases().size(); ++i) {
    const kernels::OperatorCase c = Case(SmallCases()[i]);
    const auto op = kernels::FindOperator(c);
    ASSERT_TRUE(op.ok()) << op.status();
    absl::StatusOr<ir::Function> function = (*op)->build(c, target);
    ASSERT_TRUE(function.ok()) << Name(c) << ": " << function.status();
    const absl::Status status = RunPasses(*function, *PipelineFor(target), target);
    ASSERT_TRUE(status.ok()) << Name(c) << ": " << status;
    StrAppend(&function->name, "_", i);
    functions.push_back(*std::move(function));
  }
  const auto compiled = codegen::ShimmedCuda::Create(functions);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (size_t i = 0; i < functions.size(); ++i) {
    const kernels::OperatorCase c = Case(SmallCases()[i]);
    const kernels::Operator& op = **kernels::FindOperator(c);
    std::vector<ir::Tensor> tensors = kernels::MakeTensors(op, c, 1, kernels::ValuesFor(op));
    std::vector<ir::Tensor> expected = {tensors.back()};
    op.reference(c, absl::MakeSpan(tensors).subspan(0, tensors.size() - 1),
                 absl::MakeSpan(expected));
    const auto shapes = ir::ParameterShapes(functions[i], {});
    ASSERT_TRUE(shapes.ok()) << shapes.status();
    for (const uint64_t order : {0, 1, 12345}) {
      std::vector<ir::Argument> arguments;
      for (size_t j = 0; j < tensors.size(); ++j) {
        tensors[j].shape = (*shapes)[j];
        arguments.push_back(ir::Argument::Of(&tensors[j]));
      }
      std::fill(tensors.back().bytes.begin(), tensors.back().bytes.end(), 0x5a);
      const absl::Status status = (*compiled)->Run(i, arguments, order);
      ASSERT_TRUE(status.ok()) << Name(c) << ": " << status;
      ir::Tensor actual = tensors.back();
      actual.shape = expected[0].shape;
      const ir::Difference difference = ir::Compare(actual, expected[0]);
      EXPECT_TRUE(kernels::ValuesAgree(op, c, target, expected[0], difference))
          << Name(c) << ": off by " << difference.max_abs << ", threads in order " << order;
    }
  }
}

// Without --dtype, the card takes loops of a type that the operator has.
TEST(TopiTest, ATypeThatNobodyNamed) {
  const auto machine = LoadMachine("mlu270", {});
  ASSERT_TRUE(machine.ok()) << machine.status();
  const auto target = MakeTarget("diannao", &*machine);
  ASSERT_TRUE(target.ok()) << target.status();
  for (const auto& [op, type] :
       {std::pair("conv2d_nchw", ir::Type::kF32), std::pair("conv2d_int8", ir::Type::kI8)}) {
    const auto c = ParseCase({.op = op, .shape = "1x8x5x5,8x8x3x3"}, *target);
    ASSERT_TRUE(c.ok()) << c.status();
    EXPECT_EQ(c->dtype, type) << op;
    ExpectAgreement(*c, "diannao");
    // What is wrong with a case is not its type.
    const auto wrong = ParseCase({.op = op, .shape = "1x8x5x5,8x8x7x7"}, *target);
    ASSERT_TRUE(wrong.ok()) << wrong.status();
    EXPECT_EQ(wrong->dtype, type) << op;
  }
}

// Convolutions of random extents in all layouts.
TEST(TopiTest, RandomConvolutions) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int i = 0; i < 60; ++i) {
    const int64_t ci = draw(1, 5), co = draw(1, 20), n = draw(1, 3), h = draw(1, 9), w = draw(1, 9);
    const int64_t kh = draw(1, 3), kw = draw(1, 3), pad = draw(0, 3);
    Words words;
    const int form = static_cast<int>(random() % 4);
    words.op = std::vector<std::string>{"conv2d_nchw", "conv2d_nhwc", "conv2d_hwcn",
                                        "conv2d_transpose_nchw"}[form];
    const std::string filter = form == 0   ? StrCat(co, "x", ci, "x", kh, "x", kw)
                               : form == 3 ? StrCat(ci, "x", co, "x", kh, "x", kw)
                                           : StrCat(kh, "x", kw, "x", ci, "x", co);
    words.shape = StrCat(form == 1   ? StrCat(n, "x", h, "x", w, "x", ci)
                         : form == 2 ? StrCat(h, "x", w, "x", ci, "x", n)
                                     : StrCat(n, "x", ci, "x", h, "x", w),
                         ",", filter);
    words.attributes = StrCat("stride_h=", draw(1, 3), " stride_w=", draw(1, 3), " pad_top=", pad,
                              " pad_right=", draw(0, 2));
    if (form != 3) StrAppend(&words.attributes, " dilation_h=", draw(1, 2));
    const kernels::OperatorCase c = Case(words);
    if (!kernels::FindOperator(c).ok()) continue;  // a filter that does not fit
    ExpectAgreement(c, "interp");
    if (i % 6 == 0) ExpectAgreement(c, "cpu");
    if (i % 3 == 0) ExpectAgreement(c, "diannao", i % 2 == 0 ? "mlu270" : "mlu370");
    if (HasFailure()) return;
  }
}

TEST(TopiTest, WrongCasesSayWhatIsExpected) {
  const auto error = [](const Words& words) {
    return std::string(kernels::FindOperator(Case(words)).status().message());
  };
  EXPECT_THAT(error({"conv2d_nchw", "1x3x5x5,4x2x3x3"}),
              HasSubstr("expected a filter for 3 input channels in 1 groups, found one of 2"));
  EXPECT_THAT(error({"conv2d_nchw", "1x3x5,4x3x3x3"}), HasSubstr("to have 4 dimensions"));
  EXPECT_THAT(
      error({"conv2d_nchw", "1x3x2x5,4x3x3x3"}),
      HasSubstr("expected a filter that fits the padded input, found an extent H of 3 on 2"));
  EXPECT_THAT(error({"conv2d_nchw", "1x3x5x5,4x3x3x3", "stride_h=0"}),
              HasSubstr("attribute stride_h: expected a whole number from 1"));
  EXPECT_THAT(error({"conv2d_nchw", "1x3x5x5,4x3x3x3", "", "i8"}), HasSubstr("expected f32"));
  EXPECT_THAT(error({"conv2d_int8", "1x6x5x5,4x6x3x3", "", "i8"}), HasSubstr("in blocks of 4"));
  EXPECT_THAT(error({"conv2d_winograd", "1x3x9x9,4x3x3x3", "stride_h=2"}),
              HasSubstr("expected a stride of 1"));
  EXPECT_THAT(error({"reduce", "3x4", "axes=2"}), HasSubstr("expected axes from 0 to 1, found 2"));
  EXPECT_THAT(error({"reduce", "3x4", "axes=a"}),
              HasSubstr("expected numbers like 0:2, found 'a'"));
  EXPECT_THAT(error({"image", "1x9x9x3",
                     "kind=crop_and_resize layout=NHWC boxes=0:0:1:1 box_indices=1 crop_size=2:2"}),
              HasSubstr("expected box_indices from 0 to 0, found 1"));
}

TEST(TopiTest, CasesOfTheTable) {
  for (const auto& [op, id] : {std::pair("conv1d", 3),
                               {"reduce", 15},
                               {"batch_matmul", 3},
                               {"batch_to_space_nd", 4},
                               {"deformable_conv2d", 3},
                               {"conv2d_nchw", 85}}) {
    const auto cases = ParseCases({.op = op, .shape = "", .table_case = id});
    ASSERT_TRUE(cases.ok()) << cases.status();
    for (const kernels::OperatorCase& c : *cases) ExpectAgreement(c, "cpu");
  }
  EXPECT_THAT(
      std::string(ParseCases({.op = "conv1d", .shape = "1x2", .table_case = 1}).status().message()),
      HasSubstr("--case=1 says what a case is"));
  EXPECT_FALSE(ParseCases({.op = "conv1d", .shape = "", .table_case = 23}).ok());
}

}  // namespace
}  // namespace polynao::cases
