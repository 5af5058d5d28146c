// Layers whose weights stream (docs/mapping.md) compute what the reference does, under any of their mappings.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "cases/run_case.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators.h"

namespace polynao::cases {
namespace {

struct Layer {
  std::string machine;
  CaseText text;
};

// Extents of 1, primes, just off a multiple of what divides them; strides, dilations, margins; everything that can be
// loaded beside the image.
std::vector<Layer> Layers() {
  const auto layer = [](const char* machine, const char* op, const char* shape, const char* dtype,
                        std::vector<std::string> attributes = {}) {
    CaseText text;
    text.op = op, text.shape = shape, text.dtype = dtype;
    text.attributes = std::move(attributes);
    return Layer{machine, text};
  };
  return {
      layer("mlu270", "conv2d", "1x1x64,128x1x1x64", "i8"),
      layer("mlu270", "conv2d", "7x5x30,128x3x3x30", "i8"),
      layer("mlu270", "conv2d", "13x11x64,192x3x3x64", "i8", {"stride=2"}),
      layer("mlu270", "conv2d", "9x17x17,256x3x2x17", "i8", {"dilation=2", "pad=1"}),
      layer("mlu270", "conv2d", "15x16x64,256x1x1x64", "i16", {"bias=1", "relu=1"}),
      layer("mlu370", "conv2d", "11x3x33,128x5x1x33", "f16", {"relu=1"}),
      layer("mlu270", "matmul", "1x70,128x70", "i8"),
      layer("mlu270", "matmul", "63x64,512x64", "i8", {"bias=1"}),
      layer("mlu370", "matmul", "17x129,192x129", "f16"),
      layer("mlu270", "conv2d_bn", "5x7x64,256x1x1x64", "i8", {"residual=1"}),
      layer("mlu270", "conv2d_bn", "14x13x65,128x3x3x65", "i8", {"relu=0"}),
      layer("mlu270", "conv2d_bn", "16x15x32,128x3x3x32", "i8", {"out=i8"}),
      layer("mlu370", "conv2d_bn", "9x9x64,300x3x3x64", "f16"),
  };
}

TEST(StreamsTest, ValuesAgreeUnderAnyMapping) {
  std::mt19937_64 random(1);
  for (Layer& layer : Layers()) {
    SCOPED_TRACE(layer.text.op + " " + layer.text.shape);
    layer.text.schedule = {"stream=1"};
    const auto machine = LoadMachine(layer.machine, {});
    const auto target = MakeTarget("diannao", &*machine);
    kernels::OperatorCase c = *ParseCase(layer.text, *target);
    auto mappings = (*kernels::FindOperator(c))->schedules(c, *target);
    ASSERT_TRUE(mappings.ok()) << mappings.status();
    // The first choice, and some others.
    std::shuffle(mappings->begin() + 1, mappings->end(), random);
    if (mappings->size() > 9) mappings->resize(9);
    for (const kernels::RankedSchedule& mapping : *mappings) {
      c.schedule = mapping.choice;
      SCOPED_TRACE(kernels::ChoiceText(mapping.choice));
      CaseSettings settings;
      settings.config = layer.machine;
      const auto report = RunCase(c, settings);
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_TRUE(report->ok) << report->max_abs_error;
      // Scalar code in place of an instruction would take hundreds of times as long.
      EXPECT_LT(static_cast<double>(report->simulated->cycles), 2 * mapping.cycles);
    }
  }
}

// Filters in rows of their window, of channels of which a pixel is no whole 64 bytes: rows of a core's image are made
// longer, its columns shared or not, with strides and dilations.
TEST(StreamsTest, PartsOfFiltersOfAnyChannels) {
  struct Case {
    const char *machine, *shape, *dtype, *parts;
    std::vector<std::string> attributes;
  };
  const std::vector<Case> cases = {
      {"mlu270", "9x17x40,70x5x5x40", "i8", "parts=5", {}},
      {"mlu270", "7x10x33,130x3x3x33", "i8", "parts=3", {"bias=1"}},
      {"mlu270", "16x19x72,96x7x7x72", "i8", "parts=7", {"stride=2"}},
      {"mlu370", "13x11x36,40x3x3x36", "f16", "parts=3", {"dilation=2", "relu=1"}},
      {"mlu370", "8x15x24,200x3x3x24", "f16", "parts=3", {"pad=2"}},
  };
  for (const Case& c : cases) {
    const auto machine = LoadMachine(c.machine, {});
    const auto target = MakeTarget("diannao", &*machine);
    for (const char* apart : {"columns_apart=1", "columns_apart=2"}) {
      CaseText text;
      text.op = "conv2d", text.shape = c.shape, text.dtype = c.dtype;
      text.attributes = c.attributes, text.schedule = {"stream=1", c.parts, apart};
      SCOPED_TRACE(StrCat(c.shape, " ", c.parts, " ", apart));
      kernels::OperatorCase layer = *ParseCase(text, *target);
      const auto mappings = (*kernels::FindOperator(layer))->schedules(layer, *target);
      ASSERT_TRUE(mappings.ok()) << mappings.status();
      CaseSettings settings;
      settings.config = c.machine;
      for (size_t i = 0; i < std::min<size_t>(mappings->size(), 3); ++i) {
        layer.schedule = (*mappings)[i].choice;
        SCOPED_TRACE(kernels::ChoiceText(layer.schedule));
        const auto report = RunCase(layer, settings);
        ASSERT_TRUE(report.ok()) << report.status();
        EXPECT_TRUE(report->ok) << report->max_abs_error;
        EXPECT_EQ(report->scalar_stores, 0);
      }
    }
  }
}

TEST(StreamsTest, TwoRunsChooseTheSame) {
  const auto machine = LoadMachine("mlu270", {});
  const auto target = MakeTarget("diannao", &*machine);
  CaseText text;
  text.op = "conv2d", text.shape = "14x14x256,256x3x3x256", text.dtype = "i8";
  const kernels::OperatorCase c = *ParseCase(text, *target);
  const auto* op = *kernels::FindOperator(c);
  const auto first = op->schedules(c, *target), second = op->schedules(c, *target);
  EXPECT_EQ((*first)[0].choice, (*second)[0].choice);
  EXPECT_TRUE((*first)[0].choice.contains("stream")) << kernels::ChoiceText((*first)[0].choice);
}

}  // namespace
}  // namespace polynao::cases
