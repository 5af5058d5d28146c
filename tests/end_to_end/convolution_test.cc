// conv2d on every target: values against plain loops.

#include <array>
#include <cstdlib>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "cases/run_case.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators.h"
#include "nlohmann/json.hpp"

namespace polynao::cases {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

kernels::OperatorCase Conv(const std::string& shape, ir::Type type = ir::Type::kI8,
                           std::map<std::string, std::string, std::less<>> attributes = {}) {
  kernels::OperatorCase c = {.op = "conv2d", .dtype = type, .attributes = std::move(attributes)};
  EXPECT_TRUE(kernels::ParseShapes(shape, c).ok());
  return c;
}

std::string Error(const kernels::OperatorCase& c, const CaseSettings& settings = {}) {
  const absl::StatusOr<CaseReport> report = RunCase(c, settings);
  EXPECT_FALSE(report.ok());
  return std::string(report.status().message());
}

TEST(ConvolutionTest, ProcessorTargets) {
  using Attributes = std::map<std::string, std::string, std::less<>>;
  for (const std::string target : {"cpu", "interp", "c"}) {
    for (const ir::Type type : {ir::Type::kI8, ir::Type::kI16, ir::Type::kF32}) {
      for (const Attributes& attributes :
           {Attributes{},
            {{"stride", "2"}, {"pad", "1"}},
            {{"dilation", "2"}, {"out", "f32"}},
            {{"bias", "1"}, {"relu", "1"}, {"out", "i8"}, {"scale", "0.3"}},
            {{"pad", "0"}, {"groups", "2"}}}) {
        if (target == "c" && !attributes.empty()) continue;
        const std::string filter = attributes.contains("groups") ? "4x3x3x3" : "4x3x3x6";
        const kernels::OperatorCase c = Conv("9x11x6," + filter, type, attributes);
        CaseSettings settings;
        settings.target = target;
        const absl::StatusOr<CaseReport> report = RunCase(c, settings);
        ASSERT_TRUE(report.ok()) << report.status();
        EXPECT_TRUE(report->ok) << kernels::ShapesText(c) << " " << target << " "
                                << ir::TypeName(type) << " " << report->difference;
      }
    }
  }
}

// Values agree, computed by tensor instructions.
void MustRun(const kernels::OperatorCase& c, const CaseSettings& settings = {}) {
  SCOPED_TRACE(kernels::ShapesText(c) + " " + std::string(ir::TypeName(c.dtype)) + " " +
               settings.impl + " " + settings.config);
  const absl::StatusOr<CaseReport> report = RunCase(c, settings);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->ok) << report->max_abs_error;
  EXPECT_EQ(report->max_abs_error, 0);
  // Element by element the scalar unit would take more than that.
  EXPECT_LT(report->simulated->instruction_count(), 60000);
}

TEST(ConvolutionTest, WindowsOnTheCard) {
  for (const int kernel : {1, 3, 5, 7}) {
    for (const int stride : {1, 2}) {
      for (const int pad : {0, 1, 3}) {
        for (const int dilation : {1, 2}) {
          const std::string k = std::to_string(kernel);
          MustRun(Conv("19x21x16,64x" + k + "x" + k + "x16", ir::Type::kI8,
                       {{"stride", std::to_string(stride)},
                        {"pad", std::to_string(pad)},
                        {"dilation", std::to_string(dilation)}}));
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(ConvolutionTest, ChannelsThatFillNoLanes) {
  for (const std::string co : {"1", "3", "32", "63", "65", "100", "130"}) {
    for (const std::string ci : {"1", "3", "17", "64", "65"}) {
      for (const ir::Type type : {ir::Type::kI8, ir::Type::kI16}) {
        MustRun(Conv("9x10x" + ci + "," + co + "x3x3x" + ci, type));
        if (HasFailure()) return;
      }
    }
  }
}

TEST(ConvolutionTest, SmallImages) {
  for (const std::string image : {"1x1", "1x7", "7x1", "2x3", "16x16", "17x15", "5x64"}) {
    MustRun(Conv(image + "x8,16x3x3x8"));
    MustRun(Conv(image + "x8,16x1x1x8"));
    if (HasFailure()) return;
  }
}

TEST(ConvolutionTest, OutputsAndSteps) {
  for (const std::string out : {"f16", "f32", "i8", "i16", "i32"}) {
    for (const std::string bias : {"0", "1"}) {
      for (const std::string relu : {"0", "1"}) {
        MustRun(Conv("11x13x20,40x3x3x20", ir::Type::kI8,
                     {{"out", out}, {"bias", bias}, {"relu", relu}, {"scale", "0.37"}}));
        MustRun(Conv("6x5x16,64x3x3x16", ir::Type::kI16,
                     {{"out", out}, {"bias", bias}, {"relu", relu}, {"scale", "1"}}));
        if (HasFailure()) return;
      }
    }
  }
}

TEST(ConvolutionTest, EveryMachine) {
  for (const char* config : {"mlu270", "mlu290", "mlu370", "unit"}) {
    for (const ir::Type type : {ir::Type::kI8, ir::Type::kI16}) {
      CaseSettings settings;
      settings.config = config;
      // The machine of tests has a WMEM of 16 KiB.
      const bool is_small = settings.config == "unit";
      MustRun(Conv(is_small ? "14x15x8,72x3x3x8" : "14x15x24,72x3x3x24", type), settings);
    }
  }
  CaseSettings settings;
  settings.config = "mlu370";
  MustRun(Conv("14x15x24,72x3x3x24", ir::Type::kF16), settings);
  MustRun(Conv("14x15x24,72x3x3x24", ir::Type::kF32), settings);
}

// Channel blocks, where WMEM does not hold all filters; filters that do not fit SMEM; tiles of
// columns.
TEST(ConvolutionTest, SmallMemories) {
  const kernels::OperatorCase c = Conv("24x40x32,200x3x3x32");
  for (const char* override : {"core.wmem_kib=64", "cluster.smem_kib=16", "core.nmem_kib=32"}) {
    CaseSettings settings;
    settings.overrides = {override};
    MustRun(c, settings);
  }
  CaseSettings settings;
  settings.overrides = {"core.wmem_kib=2"};
  EXPECT_THAT(Error(c, settings), HasSubstr("its smallest tile does not fit"));
}

// Images that stay in NMEM, loaded some tiles ahead, in orders that begin elsewhere in each cluster.
TEST(ConvolutionTest, Orders) {
  int ran = 0;
  for (const std::string shape : {"37x21x64,64x3x3x64", "29x12x16,32x5x3x16", "19x8x64,8x1x1x64"}) {
    for (const std::string stride : {"1", "2"}) {
      kernels::OperatorCase c = Conv(shape, ir::Type::kI8, {{"stride", stride}});
      for (const int rows : {1, 2, 3}) {
        for (const int ahead : {0, 1, 2}) {
          for (const int rotate : {0, 1, 3}) {
            c.schedule = {{"rows", rows}, {"ahead", ahead}, {"rotate", rotate}};
            if (ahead > 0) c.schedule["copies"] = 2 + rows % 2;
            // Not each of them exists for each tiling.
            const absl::StatusOr<CaseReport> report = RunCase(c, {});
            if (!report.ok()) {
              ASSERT_THAT(std::string(report.status().message()),
                          HasSubstr("no schedule that fits"));
              continue;
            }
            SCOPED_TRACE(kernels::ChoiceText(c.schedule));
            MustRun(c);
            ran += ahead > 0;
            if (HasFailure()) return;
          }
        }
      }
    }
  }
  EXPECT_GE(ran, 20);
}

// Cores and clusters that share channels, images by way of SMEM, blocks that come while others are used, sums that are
// added up part by part: the cheapest of each kind.
TEST(ConvolutionTest, EveryKindOfTiling) {
  const std::vector<kernels::ScheduleChoice> kinds = {
      {{"across", 2}, {"depth", 0}},
      {{"across", 4}, {"image_by_smem", 0}, {"depth", 0}},
      {{"across", 4}, {"image_by_smem", 1}, {"depth", 0}},
      {{"across", 4}, {"image_by_smem", 1}, {"depth", 0}, {"channel_clusters", 4}},
      {{"across", 2}, {"columns_apart", 2}, {"depth", 0}},
      {{"channel_clusters", 2}, {"depth", 0}},
      {{"channel_clusters", 4}, {"columns_apart", 2}, {"weights_by_smem", 0}},
      {{"pipelined", 1}},
      {{"pipelined", 1}, {"across", 2}, {"channel_clusters", 2}},
      {{"stream", 1}, {"channel_clusters", 2}},
      {{"stream", 1}, {"channel_clusters", 4}, {"across", 2}},
      {{"stream", 1}, {"channel_clusters", 2}, {"results_by_smem", 0}},
      {{"stream", 1}, {"columns_apart", 2}, {"image_by_smem", 1}}};
  std::vector<int> ran(kinds.size());
  for (const std::string shape :
       {"12x10x64,512x3x3x64", "9x7x20,1024x1x1x20", "7x5x64,300x2x3x64"}) {
    for (size_t i = 0; i < kinds.size(); ++i) {
      kernels::OperatorCase c = Conv(shape, ir::Type::kI8, {{"bias", "1"}, {"stride", "1"}});
      c.schedule = kinds[i];
      SCOPED_TRACE(kernels::ChoiceText(c.schedule));
      const absl::StatusOr<CaseReport> report = RunCase(c, {});
      if (!report.ok()) {
        ASSERT_THAT(std::string(report.status().message()), HasSubstr("no schedule that fits"));
        continue;
      }
      MustRun(c);
      ++ran[i];
    }
  }
  for (size_t i = 0; i < kinds.size(); ++i) EXPECT_GE(ran[i], 1) << kernels::ChoiceText(kinds[i]);
}

// Filters of which WMEM does not hold 64: sums are added up in parts of the window's rows, or of the channels.
TEST(ConvolutionTest, FiltersThatDoNotFit) {
  CaseSettings settings;
  settings.overrides = {"core.wmem_kib=16"};
  for (const char* shape : {"9x7x64,64x3x3x64", "6x5x48,100x5x2x48", "5x9x600,64x1x1x600"}) {
    for (const char* stride : {"1", "2"}) {
      MustRun(Conv(shape, ir::Type::kI8, {{"stride", stride}, {"bias", "1"}}), settings);
    }
    MustRun(Conv(shape, ir::Type::kI16, {{"dilation", "2"}}), settings);
  }
  // Nor does NMEM hold the rows that a window reads.
  settings.overrides = {"core.nmem_kib=24"};
  MustRun(Conv("9x9x256,64x3x3x256", ir::Type::kI8, {{"dilation", "4"}}), settings);
  settings.overrides = {"core.wmem_kib=2"};
  EXPECT_THAT(Error(Conv("9x7x64,64x3x3x64"), settings),
              HasSubstr("its smallest tile does not fit"));
}

// Each cluster, or two or four of them, adds the products of a part of the input channels; a second group adds these
// sums. Sums of integers are the same in any order, those of floats nearly.
TEST(ConvolutionTest, SumsThatClustersShare) {
  struct Shared {
    const char* op;
    const char* shape;
    std::map<std::string, std::string, std::less<>> attributes;
    int64_t parts;
  };
  const std::vector<Shared> cases = {
      {"conv2d", "7x7x256,40x3x3x256", {{"out", "i32"}}, 4},
      {"conv2d", "9x5x192,65x5x1x192", {{"stride", "2"}, {"relu", "1"}, {"bias", "1"}}, 3},
      {"conv2d", "12x12x128,64x3x3x128", {{"dilation", "3"}, {"pad", "0"}}, 2},
      {"conv2d", "1x1x512,1x1x1x512", {}, 4},
      {"conv2d_bn", "8x8x512,136x3x3x512", {{"residual", "1"}}, 2},
      {"matmul", "33x1024,100x1024", {}, 4},
  };
  for (const Shared& shared : cases) {
    for (const ir::Type type : {ir::Type::kI8, ir::Type::kI16, ir::Type::kF16, ir::Type::kF32}) {
      kernels::OperatorCase c = {.op = shared.op, .dtype = type, .attributes = shared.attributes};
      ASSERT_TRUE(kernels::ParseShapes(shared.shape, c).ok());
      if (ir::IsFloat(type)) c.attributes.erase("out");
      c.schedule = {{"sum_clusters", shared.parts}};
      CaseSettings settings;
      settings.config = ir::IsFloat(type) ? "mlu370" : "mlu270";
      settings.overrides = {StrCat("card.clusters=", shared.parts == 3 ? 6 : 4)};
      SCOPED_TRACE(StrCat(shared.op, " ", shared.shape, " ", ir::TypeName(type)));
      const absl::StatusOr<CaseReport> report = RunCase(c, settings);
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_TRUE(report->ok) << report->difference;
      EXPECT_EQ(report->is_reassociated, ir::IsFloat(type));
      EXPECT_EQ(report->scalar_stores, 0);
      if (ir::IsInt(type)) EXPECT_EQ(report->max_abs_error, 0);
    }
  }
  // Long sums and few results: clusters that share pixels would load all filters each.
  const kernels::OperatorCase few = Conv("7x7x512,112x3x3x512", ir::Type::kF16);
  CaseSettings settings;
  settings.config = "mlu370";
  const absl::StatusOr<CaseReport> chosen = RunCase(few, settings);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_TRUE(chosen->ok);
  kernels::OperatorCase by_pixels = few;
  by_pixels.schedule = {{"sum_clusters", 1}};
  const absl::StatusOr<CaseReport> other = RunCase(by_pixels, settings);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(chosen->is_reassociated);
  EXPECT_FALSE(other->is_reassociated);
  EXPECT_LT(chosen->simulated->cycles, 0.8 * static_cast<double>(other->simulated->cycles));
}

// POLYNAO_RANDOM_CASES=5000 runs more, POLYNAO_SEED=7 the same again.
TEST(ConvolutionTest, RandomCases) {
  const char* count_text = std::getenv("POLYNAO_RANDOM_CASES");
  const char* seed_text = std::getenv("POLYNAO_SEED");
  const int count = count_text != nullptr ? std::atoi(count_text) : 300;
  const unsigned seed = seed_text != nullptr ? std::atoi(seed_text) : std::random_device{}();
  SCOPED_TRACE(testing::Message() << "POLYNAO_SEED=" << seed);
  std::mt19937 random(seed);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  int ran = 0;
  for (int round = 0; round < count; ++round) {
    const int64_t kh = pick(1, 5), kw = pick(1, 5);
    const int64_t ci = std::array{16 * pick(1, 4), 64 * pick(2, 6), pick(1, 70)}[pick(0, 2)];
    const int64_t co = pick(0, 2) == 0 ? pick(1, 3) * 64 : pick(1, 140);
    const ir::Type type = pick(0, 2) == 0 ? ir::Type::kI16 : ir::Type::kI8;
    const kernels::OperatorCase c = Conv(
        StrCat(pick(1, 24), "x", pick(1, 24), "x", ci, ",", co, "x", kh, "x", kw, "x", ci), type,
        {{"stride", StrCat(pick(1, 3))},
         {"pad", pick(0, 1) == 0 ? "same" : StrCat(pick(0, 3))},
         {"dilation", StrCat(pick(1, 2))},
         {"bias", StrCat(pick(0, 1))},
         {"relu", StrCat(pick(0, 1))},
         {"out", std::array{"f16", "i8", "i32"}[pick(0, 2)]}});
    CaseSettings settings;
    settings.seed = random();
    settings.config = std::array{"mlu270", "mlu370", "mlu290"}[pick(0, 2)];
    settings.overrides = {StrCat("core.nmem_kib=", 1 << pick(6, 9)),
                          StrCat("card.clusters=", pick(1, 4)),
                          StrCat("cluster.cores=", pick(1, 4))};
    kernels::OperatorCase ordered = c;
    switch (pick(0, 3)) {
      case 0:
        ordered.schedule = {{"ahead", pick(0, 2)}, {"rotate", pick(0, 2)}};
        break;
      case 1:
        ordered.schedule = {{"sum_clusters", pick(2, 4)}};
        break;
      default:
        break;
    }
    SCOPED_TRACE(StrCat(
        kernels::ShapesText(c), " ", absl::StrJoin(c.attributes, " ", absl::PairFormatter("=")),
        " ", absl::StrJoin(settings.overrides, " "), " ", kernels::ChoiceText(ordered.schedule)));
    // A window larger than the image, a tile larger than the memory: said, not run.
    absl::StatusOr<CaseReport> report = RunCase(ordered, settings);
    if (!report.ok() && absl::StrContains(report.status().message(), "no schedule that fits")) {
      report = RunCase(c, settings);
    }
    if (!report.ok()) {
      ASSERT_THAT(std::string(report.status().message()),
                  AnyOf(HasSubstr("larger than the padded image"), HasSubstr("smallest tile")));
      continue;
    }
    EXPECT_EQ(report->max_abs_error, 0);
    ++ran;
    if (HasFailure()) return;
  }
  EXPECT_GE(ran, count / 2);
}

// Sums by two rows of the filters: the second two begin at byte 2,288 of a core's image, where no tensor instruction
// reads. All mappings that were tried were such.
TEST(ConvolutionTest, PartsOfFiltersBeginWhereInstructionsMayRead) {
  CaseSettings settings;
  settings.overrides = {"core.nmem_kib=64", "card.clusters=2", "cluster.cores=2"};
  const kernels::OperatorCase c =
      Conv("7x17x44,64x4x4x44", ir::Type::kI16, {{"pad", "3"}, {"bias", "1"}, {"out", "i32"}});
  for (const char* config : {"mlu270", "mlu370", "mlu290"}) {
    settings.config = config;
    const absl::StatusOr<CaseReport> report = RunCase(c, settings);
    ASSERT_TRUE(report.ok()) << config << ": " << report.status();
    EXPECT_EQ(report->max_abs_error, 0) << config;
    EXPECT_EQ(report->scalar_stores, 0) << config;
  }
}

TEST(ConvolutionTest, HandWritten) {
  CaseSettings settings;
  settings.impl = "expert";
  const kernels::OperatorCase whole = Conv("13x11x70,72x3x3x70");
  const absl::StatusOr<CaseReport> expert = RunCase(whole, settings);
  ASSERT_TRUE(expert.ok()) << expert.status();
  EXPECT_TRUE(expert->ok) << expert->max_abs_error;
  EXPECT_EQ(expert->host_step, "") << "it pads on the card";
  settings.impl = "library";
  for (const char* pad : {"same", "0"}) {
    const kernels::OperatorCase c = Conv("13x11x70,72x3x3x70", ir::Type::kI8, {{"pad", pad}});
    const absl::StatusOr<CaseReport> report = RunCase(c, settings);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->ok) << report->max_abs_error;
    EXPECT_GT(report->efficiency(), 0);
    // The host's work is named wherever there is some.
    EXPECT_EQ(report->host_step, pad == std::string("0") ? "" : "puts zeros around the image");
    EXPECT_EQ(report->ToJson().contains("host_step"), pad != std::string("0"));
  }
}

TEST(ConvolutionTest, WhatIsWrongSaysSo) {
  EXPECT_EQ(Error({.op = "conv2d", .shape = {4, 4, 4}, .dtype = ir::Type::kI8}),
            "operator conv2d: expected 2 shapes (image (H, W, CI), filters (CO, KH, KW, CI)), "
            "found 1");
  EXPECT_THAT(Error(Conv("4x4x4,8x3x3x5")), HasSubstr("found 5"));
  EXPECT_THAT(Error(Conv("4x4,8x3x3x5")), HasSubstr("expected 3 dimensions, found 2"));
  EXPECT_THAT(Error(Conv("4x0x4,8x3x3x4")), HasSubstr("expected extents of 1 and more"));
  EXPECT_THAT(Error(Conv("4x4x4,8x3x3x4", ir::Type::kI32)), HasSubstr("expected i8, i16"));
  EXPECT_THAT(Error(Conv("2x2x4,8x3x3x4", ir::Type::kI8, {{"pad", "0"}})),
              HasSubstr("the filter is larger than the padded image"));
  EXPECT_THAT(Error(Conv("4x4x4,8x3x3x4", ir::Type::kI8, {{"stride", "0"}})),
              HasSubstr("attribute stride: expected a whole number from 1 to 1048576, found '0'"));
  EXPECT_THAT(Error(Conv("4x4x4,8x3x3x4", ir::Type::kI8, {{"out", "i64"}})),
              HasSubstr("attribute out: expected one of f16, f32, i8, i16, i32, found 'i64'"));
  EXPECT_THAT(Error(Conv("4x4x4,8x3x3x4", ir::Type::kI8, {{"size", "1"}})),
              HasSubstr("attribute 'size': expected one of stride, pad"));
  EXPECT_EQ(Error(Conv("4x4x4,8x3x3x2", ir::Type::kF16, {{"groups", "2"}})),
            "operator conv2d of f16: mlu270 has no convolution of that type (tensor.macs_f16 = 0)");
  EXPECT_THAT(Error(Conv("4x4x4,8x3x3x4", ir::Type::kF16)),
              HasSubstr("mlu270 has no tensor instruction for it (tensor.macs_f16 = 0)"));
}

}  // namespace
}  // namespace polynao::cases
