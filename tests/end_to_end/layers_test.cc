// Broadcasting, reductions, pooling, padding and matrix products on every target: values against
// plain loops, bit for bit.

#include <array>
#include <cstdlib>
#include <random>
#include <set>

#include "absl/strings/str_join.h"
#include "base/text.h"
#include "cases/case_text.h"
#include "cases/machines.h"
#include "cases/run_case.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators.h"

namespace polynao::cases {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

using Strings = std::vector<std::string>;

// A case in the words of the command line: "add", "7x64,64", {"f16", "f32"}, {"axis=0"}.
struct Words {
  std::string op;
  std::string shape;
  Strings types = {"f16"};
  Strings attributes = {};
};

CaseReport MustRun(const Words& words, const std::string& type, const CaseSettings& settings) {
  const std::string name =
      StrCat(words.op, " ", words.shape, " ", type, " ", settings.target, " ", settings.config);
  const absl::StatusOr<kernels::OperatorCase> c = ParseCase(
      {.op = words.op, .shape = words.shape, .dtype = type, .attributes = words.attributes});
  EXPECT_TRUE(c.ok()) << name << ": " << c.status();
  if (!c.ok()) return CaseReport();
  absl::StatusOr<CaseReport> report = RunCase(*c, settings);
  std::string attributes;
  for (const std::string& attribute : words.attributes) StrAppend(&attributes, " ", attribute);
  EXPECT_TRUE(report.ok()) << name << attributes << ": " << report.status();
  if (!report.ok()) return CaseReport();
  // Long sums may be added in another order.
  const kernels::Operator& op = **kernels::FindOperator(*c);
  const bool is_other = op.only_card_reorders && settings.target != "diannao";
  const bool is_exact = !report->is_reassociated && (op.tolerance_of_largest == 0 || is_other);
  EXPECT_TRUE(report->ok && (!is_exact || report->max_abs_error == 0))
      << name << attributes << ": off by " << report->max_abs_error << " " << report->difference;
  return *std::move(report);
}

std::string Error(const Words& words, const CaseSettings& settings = {}) {
  const absl::StatusOr<kernels::OperatorCase> c = ParseCase({.op = words.op,
                                                             .shape = words.shape,
                                                             .dtype = words.types[0],
                                                             .attributes = words.attributes});
  EXPECT_TRUE(c.ok()) << c.status();
  const absl::StatusOr<CaseReport> report = RunCase(*c, settings);
  EXPECT_FALSE(report.ok());
  return std::string(report.status().message());
}

const Strings kVector = {"f16", "f32", "i32", "i16", "i8"};
const Strings kWide = {"f16", "f32", "i32"};
const Strings kFloats = {"f16", "f32"};

const std::vector<Words>& BroadcastCases() {
  static const auto* cases = new std::vector<Words>{
      // A bias, a scale per channel.
      {"add", "7x64,64", kVector},
      {"sub", "33x65,65", kVector},
      {"mul", "5x9x27,27", kVector},
      {"max", "129x128,1x128", kVector},
      {"div", "17x63,63", kFloats},
      // Either operand.
      {"sub", "64,19x64", kWide},
      {"div", "3,100x3", kFloats},
      // One element, or one for each row.
      {"add", "1000,1", kVector},
      {"sub", "1,65x3", kWide},
      {"min", "13x17,scalar", kWide},
      {"mul", "37x63,37x1", kVector},
      {"sub", "37x1,37x128", kWide},
      // Both, and in between.
      {"add", "31x1,1x67", kWide},
      {"mul", "5x1x16,5x7x16", kWide},
      {"sub", "3x5x7x11,5x1x11", kWide},
      {"add", "2x3x1x5,1x7x1", kWide},
      {"max", "1x1,1", kWide},
      {"add", "1,1x1x64", kWide},
      {"add", "3x0x5,5", kWide},
      {"mul", "0,1", kWide},
  };
  return *cases;
}

const std::vector<Words>& ReduceCases() {
  static const auto* cases = [] {
    auto* all = new std::vector<Words>;
    for (const char* op : {"reduce_sum", "reduce_max", "reduce_min", "reduce_mean"}) {
      const Strings types = std::string_view(op) == "reduce_mean" ? kFloats : kWide;
      all->push_back({op, "37x64", types});
      all->push_back({op, "1", types});
      all->push_back({op, "19x67", types});
      all->push_back({op, "1000", types});
      all->push_back({op, "3x5x63", types, {"axis=1", "axes=2"}});
      all->push_back({op, "5x7x100", types, {"axis=0"}});
      all->push_back({op, "7x49x128", types, {"axis=1"}});
      all->push_back({op, "7x7x65", types, {"axis=0", "axes=2"}});
      all->push_back({op, "11x13x3", types, {"axis=-2"}});
      all->push_back({op, "1x5", types, {"axis=0"}});
    }
    all->push_back({"reduce_max", "9x64", {"i8", "i16"}, {"axis=0"}});
    all->push_back({"reduce_min", "9x31", {"i8", "i16"}, {"axis=0"}});
    all->push_back({"global_avg_pool", "7x7x256", kFloats});
    all->push_back({"global_avg_pool", "7x5x100", kFloats});
    all->push_back({"global_avg_pool", "1x1x1", kFloats});
    // Means of bytes are rounded to the nearest.
    all->push_back({"global_avg_pool", "7x7x256", {"i8"}});
    all->push_back({"global_avg_pool", "2x1x65", {"i8"}});
    all->push_back({"reduce_mean", "37x64", {"i8"}});
    all->push_back({"reduce_mean", "7x49x128", {"i8"}, {"axis=1"}});
    all->push_back({"reduce_mean", "1x5", {"i8"}, {"axis=0"}});
    return all;
  }();
  return *cases;
}

const std::vector<Words>& PoolCases() {
  static const auto* cases = new std::vector<Words>{
      {"max_pool2d", "16x16x64", kVector},
      {"max_pool2d", "1x1x1", kVector, {"window=1"}},
      {"max_pool2d", "14x13x64", kVector, {"window=3", "stride=1"}},
      {"max_pool2d", "17x15x13", kVector, {"window=3", "stride=2"}},
      {"max_pool2d", "17x15x64", kVector, {"window=3", "stride=2", "pad=1"}},
      {"max_pool2d", "7x7x65", kVector, {"window=5", "stride=1", "pad=2"}},
      {"max_pool2d", "2x3x7", kVector, {"window=2", "pad=1"}},
      {"avg_pool2d", "16x16x64", kFloats},
      {"avg_pool2d", "14x13x64", kFloats, {"window=3", "stride=1"}},
      {"avg_pool2d", "17x15x13", kFloats, {"window=3", "stride=2"}},
      {"avg_pool2d", "8x9x128", kFloats, {"window=3", "stride=1", "pad=1"}},
      {"avg_pool2d", "7x7x31", kFloats, {"window=7", "stride=3"}},
      {"avg_pool2d", "10x12x32", kFloats, {"window=5"}},
      {"avg_pool2d", "16x16x64", {"i8"}},
      {"avg_pool2d", "17x15x13", {"i8"}, {"window=3", "stride=2", "pad=1"}},
      {"avg_pool2d", "5x5x3", {"i8"}, {"window=1"}},
      {"pad", "12x13x16", kVector},
      {"pad", "1x1x1", kVector, {"before=0", "after=3"}},
      {"pad", "9x7x64", kVector, {"before=2", "after=0", "value=-3"}},
      {"pad", "5x31x3", kVector, {"before=0"}},
  };
  return *cases;
}

const std::vector<Words>& NormalizationCases() {
  static const auto* cases = [] {
    auto* all = new std::vector<Words>;
    for (const char* shape : {"37x64", "1", "19x67", "1000", "3x5x63", "65x1", "130x130"}) {
      for (const char* op : {"softmax", "layer_norm", "rms_norm"}) {
        all->push_back({op, shape, kFloats});
      }
    }
    all->push_back({"softmax", "5x7x100", kFloats, {"axis=0"}});
    all->push_back({"softmax", "7x49x128", kFloats, {"axis=1"}});
    all->push_back({"softmax", "11x13x3", kFloats, {"axis=-2"}});
    all->push_back({"softmax", "1x5", kFloats, {"axis=0"}});
    all->push_back({"layer_norm", "31x200", kFloats, {"eps=0.1"}});
    all->push_back({"rms_norm", "2x3x64", kFloats, {"eps=1e-12"}});
    for (const char* shape : {"1x1", "3x64", "2x7x5x65", "2x3x5x128"}) {
      all->push_back({"instance_norm", shape, kFloats});
      all->push_back({"group_norm", shape, kFloats});
    }
    all->push_back({"group_norm", "2x7x5x66", kFloats, {"groups=3"}});
    all->push_back({"group_norm", "1x13x128", kFloats, {"groups=32", "eps=0.1"}});
    all->push_back({"group_norm", "3x1x7", kFloats, {"groups=7"}});
    // Groups of channels that cores share, by way of SMEM.
    all->push_back({"group_norm", "4x7x7x512", kFloats, {"groups=32"}});
    all->push_back({"group_norm", "9x14x3x96", {"f16"}, {"groups=3"}});
    all->push_back({"instance_norm", "8x7x7x256", kFloats});
    return all;
  }();
  return *cases;
}

const std::vector<Words>& MovementCases() {
  static const auto* cases = new std::vector<Words>{
      {"transpose", "1", kVector},
      {"transpose", "63x65", kVector},
      {"transpose", "130x64", kVector},
      {"transpose", "7x13x64", kVector, {"perm=1:0:2"}},
      {"transpose", "5x64x31", kVector, {"perm=0:2:1"}},
      {"transpose", "3x1x7x64", kVector, {"perm=3:0:1:2"}},
      {"transpose", "2x3x5x7", kVector},
      {"slice", "130x65", kVector},
      {"slice", "130x65", kVector, {"begin=1:3", "end=-1:64"}},
      {"slice", "64x63", kVector, {"step=2:1"}},
      {"slice", "64x63", kVector, {"begin=1:5", "step=3:2"}},
      {"slice", "7x9x11", kVector, {"begin=0:8:0", "end=7:9:1"}},
      {"slice", "1", kVector},
      {"flip", "1", kVector},
      {"flip", "5x67", kVector},
      {"flip", "3x256", kVector},
      {"flip", "7x2x33", kVector},
      {"flip", "130x100", kVector},
      {"flip", "64x65", kVector, {"axis=0"}},
      {"flip", "3x13x64", kVector, {"axis=1"}},
      {"concat", "37x65,37x63", kVector},
      {"concat", "1,1", kVector},
      {"concat", "64x63,13x63", kVector, {"axis=0"}},
      {"concat", "3x1x65,3x130x65", kVector, {"axis=1"}},
      {"concat", "37x65,37x63", {"bf16", "u8", "i64", "f64"}},
      {"concat", "3x64,5x64", {"bf16", "u8"}, {"axis=0"}},
      {"resize_nearest", "7x9x64", kVector},
      {"resize_nearest", "1x1x1", kVector, {"scale=1"}},
      {"resize_nearest", "5x3x13", kVector, {"scale=3"}},
      {"resize_bilinear", "7x9x64", kFloats},
      {"resize_bilinear", "1x1x1", kFloats},
      {"resize_bilinear", "5x3x13", kFloats},
      {"rotary", "3x5x64", kFloats},
      {"rotary", "1x2", kFloats},
      {"rotary", "2x3x7x128", kFloats},
      {"rotary", "65x34", kFloats},
  };
  return *cases;
}

const std::vector<Words>& MatmulCases() {
  static const Strings integers = {"i8", "i16"};
  static const auto* cases = new std::vector<Words>{
      {"matmul", "33x64,128x64", integers},
      {"matmul", "1x1,1x1", integers},
      {"matmul", "17x63,65x63", integers, {"bias=1", "relu=1"}},
      {"matmul", "64x65,63x65", integers, {"out=i8", "scale=0.3"}},
      {"matmul", "7x128,64x128", integers, {"out=i32", "bias=1"}},
      {"matmul", "1x512,1000x512", {"i8"}, {"bias=1", "out=f32"}},
  };
  return *cases;
}

// Products with weights of their own for each of a batch.
const std::vector<Words>& BatchedCases() {
  static const Strings integers = {"i8", "i16"};
  static const auto* cases = new std::vector<Words>{
      {"batched_matmul", "1x1x1,1x1x1", integers},
      {"batched_matmul", "3x17x65,3x65x33", integers, {"bias=1", "relu=1"}},
      {"batched_matmul", "17x64x128,17x128x64", integers, {"out=i32"}},
      {"batched_matmul", "2x1x63,2x63x200", {"i8"}, {"out=i8", "scale=0.3"}},
      {"batched_matmul", "5x130x1,5x1x64", {"i8"}, {"out=f32", "bias=1"}},
      {"batched_matmul", "1x257x64,1x64x320", {"i16"}},
  };
  return *cases;
}

// Scores, softmax and a product on chip, or through GMEM where they do not fit.
const std::vector<Words>& AttentionCases() {
  static const auto* cases = new std::vector<Words>{
      {"attention", "1x1x1", kFloats},          {"attention", "2x31x20", kFloats},
      {"attention", "8x64x64", kFloats},        {"attention", "3x65x64,3x130x64", kFloats},
      {"attention", "1x7x63,1x1x63", kFloats},  {"attention", "12x33x128", {"f16"}, {"scale=0.5"}},
      {"attention", "1x130x1,1x64x1", {"f16"}}, {"attention", "5x67x33", kFloats},
      {"attention", "3x5x64", {"f16"}},
  };
  return *cases;
}

// Larger images: windows that are no multiple of the stride, cut edges, one pixel, one channel.
const std::vector<Words>& TransposedCases() {
  static const auto* cases = new std::vector<Words>{
      {"conv2d_transpose", "1x1x1,1x1x1x1", kFloats, {"stride=1"}},
      {"conv2d_transpose", "5x6x16,33x4x4x16", {"f16"}, {"pad=1"}},
      {"conv2d_transpose", "5x4x7,65x3x3x7", {"f32"}},
      {"conv2d_transpose", "1x7x16,3x5x2x16", kFloats, {"stride=3"}},
      {"conv2d_transpose", "4x3x5,7x2x2x5", kFloats, {"stride=4", "pad=1"}},
      {"conv2d_transpose", "6x6x8,16x3x3x8", {"f16"}, {"stride=1", "pad=1"}},
      {"conv2d_transpose", "7x5x64,21x16x16x64", {"f16"}, {"stride=8", "pad=4"}},
      {"conv2d_transpose", "9x13x32,48x5x5x32", kFloats, {"stride=3", "pad=2"}},
      {"conv2d_transpose", "4x4x128,64x4x4x128", kFloats, {"pad=1"}},
      {"conv2d_transpose", "40x3x64,64x2x3x64", {"f16"}, {"pad=1"}},
  };
  return *cases;
}

const std::vector<Words>& GatherCases() {
  static const auto* cases = new std::vector<Words>{
      {"gather", "1,1", kVector},       {"gather", "7,5", kVector},
      {"gather", "100x64,33", kVector}, {"gather", "13x3x5,17x7", kVector},
      {"gather", "1x65,130", kWide},    {"gather", "1000x100,2", kWide},
      {"gather", "9x640,2x33", kWide},  {"gather", "3x300001,2", kVector},
  };
  return *cases;
}

// Convolutions of channels in groups, and of each channel by itself.
const std::vector<Words>& GroupCases() {
  static const Strings integers = {"i8", "i16"};
  static const Strings all = {"i8", "i16", "f16", "f32"};
  static const auto* cases = new std::vector<Words>{
      {"conv2d", "9x11x64,64x3x3x1", all, {"groups=64"}},
      {"conv2d", "13x8x128,128x3x3x1", all, {"groups=128", "stride=2", "bias=1", "relu=1"}},
      {"conv2d", "13x11x27,27x3x3x1", all, {"groups=27", "bias=1", "out=i8", "scale=0.3"}},
      {"conv2d", "7x7x65,65x5x5x1", {"i8"}, {"groups=65", "pad=0", "out=i32", "bias=1"}},
      {"conv2d", "9x9x64,64x3x3x1", {"f32"}, {"groups=64", "dilation=2", "out=f32"}},
      {"conv2d", "1x1x3,3x1x1x1", all, {"groups=3"}},
      {"conv2d", "14x13x64,64x3x3x32", integers, {"groups=2"}},
      {"conv2d", "9x7x24,36x3x3x2", integers, {"groups=12", "stride=2", "bias=1", "relu=1"}},
      {"conv2d", "13x11x12,24x3x3x1", integers, {"groups=12", "out=f32", "bias=1"}},
      {"conv2d", "5x6x4,130x1x1x2", {"i8"}, {"groups=2", "out=i32"}},
  };
  return *cases;
}

// POLYNAO_RANDOM_CASES asks for what a test leaves out to be short.
bool RunsAll() { return std::getenv("POLYNAO_RANDOM_CASES") != nullptr; }

void RunAll(const std::vector<Words>& cases, const Strings& targets) {
  for (const Words& words : cases) {
    for (const std::string& type : words.types) {
      for (const std::string& target : targets) {
        CaseSettings settings;
        settings.target = target;
        MustRun(words, type, settings);
      }
    }
  }
}

// All types by the interpreter; compiled, they take turns from case to case.
void RunOnProcessors(const std::vector<Words>& cases, const Strings& compiled = {"cpu"}) {
  size_t turn = 0;
  for (const Words& words : cases) {
    RunAll({words}, {"interp"});
    Words one = words;
    if (!RunsAll()) one.types = {words.types[turn++ % words.types.size()]};
    RunAll({one}, compiled);
  }
}

// Types take turns on the machines; with POLYNAO_RANDOM_CASES each runs on all of them.
void RunOnCard(const std::vector<Words>& cases, const Strings& configs) {
  size_t turn = 0;
  for (const Words& words : cases) {
    for (const std::string& type : words.types) {
      ++turn;
      for (const std::string& config : configs) {
        if (!RunsAll() && config != configs[turn % configs.size()]) continue;
        CaseSettings settings;
        settings.config = config;
        EXPECT_EQ(MustRun(words, type, settings).scalar_stores, 0)
            << words.op << " " << words.shape << " " << type << " " << config;
      }
    }
  }
}

TEST(LayersTest, BroadcastOnTheCard) { RunOnCard(BroadcastCases(), {"mlu270", "unit"}); }
TEST(LayersTest, ReduceOnTheCard) { RunOnCard(ReduceCases(), {"mlu270", "unit"}); }
TEST(LayersTest, PoolOnTheCard) { RunOnCard(PoolCases(), {"mlu270", "unit"}); }
TEST(LayersTest, NormalizationOnTheCard) { RunOnCard(NormalizationCases(), {"mlu270", "unit"}); }
TEST(LayersTest, MovementOnTheCard) { RunOnCard(MovementCases(), {"mlu270", "unit"}); }
TEST(LayersTest, MatmulOnTheCard) { RunOnCard(MatmulCases(), {"mlu270", "mlu370"}); }
TEST(LayersTest, BatchedOnTheCard) { RunOnCard(BatchedCases(), {"mlu270", "mlu370"}); }
TEST(LayersTest, AttentionOnTheCard) { RunOnCard(AttentionCases(), {"mlu370"}); }
TEST(LayersTest, TransposedOnTheCard) { RunOnCard(TransposedCases(), {"mlu370"}); }
TEST(LayersTest, GatherOnTheCard) { RunOnCard(GatherCases(), {"mlu270", "unit"}); }

// The scores of a head do not cross GMEM, as long as they fit.
TEST(LayersTest, AttentionKeepsItsScores) {
  for (const int64_t cut : {0, 1}) {
    CaseSettings settings;
    settings.config = "mlu370";
    auto c = ParseCase({.op = "attention", .shape = "4x128x64", .dtype = "f16"});
    ASSERT_TRUE(c.ok()) << c.status();
    if (cut == 1) c->schedule = {{"cut", 1}};
    const auto report = RunCase(*c, settings);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->ok);
    const int64_t of_y = 4 * 128 * 64 * 2, of_scores = 4 * 128 * 128 * 2;
    EXPECT_EQ(report->simulated->gmem_written, of_y + cut * of_scores);
  }
}

// Cores of a cluster share the rows of a head though their number is a prime: the last core has fewer. Where they did
// not, each core made the weights of all heads by itself, which took three times as long.
TEST(LayersTest, AttentionOfAPrimeLength) {
  const auto cycles = [](const char* shape) {
    CaseSettings settings;
    settings.config = "mlu370";
    return MustRun({"attention", shape, {}}, "f16", settings).simulated->cycles;
  };
  EXPECT_LT(cycles("12x61x64"), 2 * cycles("12x64x64"));
}

// Two clusters share the rows of each of four heads, and all eight the one of a single head; also a prime number of
// rows, of which the last core has fewer.
TEST(LayersTest, ClustersShareTheRowsOfFewHeads) {
  CaseSettings settings;
  settings.config = "mlu370";
  const int64_t four = MustRun({"attention", "4x256x64", {}}, "f16", settings).simulated->cycles;
  const int64_t one = MustRun({"attention", "1x256x64", {}}, "f16", settings).simulated->cycles;
  MustRun({"attention", "2x131x64", {}}, "f16", settings);
  MustRun({"attention", "1x67x40,1x31x40", {}}, "f32", settings);
  settings.overrides = {"card.clusters=4"};
  EXPECT_LT(four * 10,
            8 * MustRun({"attention", "4x256x64", {}}, "f16", settings).simulated->cycles);
  settings.overrides = {"card.clusters=2"};
  EXPECT_LT(one * 5, 4 * MustRun({"attention", "1x256x64", {}}, "f16", settings).simulated->cycles);
}

// Rows of no whole groups that one core has: nothing of them is copied element by element.
TEST(LayersTest, LongRowsWithARest) {
  CaseSettings settings;
  settings.config = "mlu370";
  EXPECT_LT(MustRun({"softmax", "32x20001", {}}, "f16", settings).simulated->cycles, 25'000);
  // A row that does not fit NMEM, of 29 parts; element by element it took 300 times as long.
  EXPECT_LT(MustRun({"softmax", "3x50257", {}}, "f16", settings).simulated->cycles, 40'000);
  settings.config = "mlu270";
  EXPECT_LT(MustRun({"softmax", "2x65536", {}}, "f16", settings).simulated->cycles, 60'000);
}

// What is repeated along rows that are no whole groups of the vector unit takes a few instructions, not some for each
// row: twice the rows of a core in one tile are no longer program.
TEST(LayersTest, RowsWithARestAreRepeatedTogether) {
  CaseSettings settings;
  settings.config = "mlu370";
  const auto instructions = [&](const char* shape) {
    return MustRun({"softmax", shape, {}}, "f16", settings).simulated->instruction_count();
  };
  EXPECT_LT(instructions("1024x197"), instructions("512x197") * 5 / 4);
}

TEST(LayersTest, GroupsOnTheCard) {
  for (const Words& words : GroupCases()) {
    // MLU270 multiplies floats by the vector unit only, MLU370 by both.
    const bool is_depthwise = words.shape.ends_with("x1") && !words.shape.ends_with("24x3x3x1");
    RunOnCard({words}, is_depthwise ? Strings{"mlu270", "unit"} : Strings{"mlu270", "mlu370"});
  }
}

// Sums are added up by parts of filters: rows of the window, places, parts of the channels at a place.
TEST(LayersTest, FiltersOfGroupsThatWmemDoesNotHold) {
  for (const char* wmem : {"core.wmem_kib=16", "core.wmem_kib=8", "core.wmem_kib=4"}) {
    CaseSettings settings;
    settings.config = "mlu370";
    settings.overrides = {wmem};
    const Words words = {"conv2d", "5x6x64,40x3x2x32", {}, {"groups=2", "bias=1", "pad=1"}};
    for (const char* type : {"f32", "i16"}) {
      EXPECT_EQ(MustRun(words, type, settings).scalar_stores, 0) << wmem << " " << type;
    }
  }
}

// Groups as slices of the tensor unit, and depthwise ones on the vector unit: the first schedule of every kind,
// whatever the cost model prefers.
TEST(LayersTest, EveryKindOfGroups) {
  const auto machine = LoadMachine("mlu270", {});
  ASSERT_TRUE(machine.ok()) << machine.status();
  const auto target = MakeTarget("diannao", &*machine);
  ASSERT_TRUE(target.ok()) << target.status();
  std::set<std::vector<int64_t>> kinds;
  for (const Words& words : std::vector<Words>{
           {"conv2d", "9x11x64,64x3x3x1", {"i8", "i16"}, {"groups=64", "bias=1"}},
           {"conv2d", "8x5x72,72x5x5x1", {"i8"}, {"groups=72", "stride=2", "relu=1"}},
           {"conv2d", "6x7x36,36x3x1x1", {"i8"}, {"groups=36", "dilation=2", "out=i8"}},
           {"conv2d", "5x9x24,48x3x3x1", {"i8"}, {"groups=24"}},
           {"conv2d", "7x6x32,32x3x3x4", {"i8", "i16"}, {"groups=8", "bias=1"}},
           {"conv2d", "10x3x48,32x2x2x6", {"i8"}, {"groups=8", "stride=2", "out=i32"}}}) {
    for (const std::string& type : words.types) {
      const auto c = ParseCase(
          {.op = words.op, .shape = words.shape, .dtype = type, .attributes = words.attributes});
      ASSERT_TRUE(c.ok()) << c.status();
      const auto all = (*kernels::FindOperator(*c))->schedules(*c, *target);
      ASSERT_TRUE(all.ok()) << all.status();
      std::set<std::vector<int64_t>> seen;
      for (const kernels::RankedSchedule& schedule : *all) {
        std::vector<int64_t> kind;
        for (const char* name : {"merged", "shared", "across", "turns", "flat", "shifts", "smem"}) {
          const auto it = schedule.choice.find(name);
          kind.push_back(it == schedule.choice.end() ? -1 : it->second);
        }
        if (!seen.insert(kind).second) continue;
        kernels::OperatorCase chosen = *c;
        chosen.schedule = schedule.choice;
        const auto report = RunCase(chosen, {});
        ASSERT_TRUE(report.ok()) << report.status();
        // Long sums may be added in another order.
        const bool is_exact =
            !report->is_reassociated && (*kernels::FindOperator(*c))->tolerance_of_largest == 0;
        EXPECT_TRUE(report->ok && (!is_exact || report->max_abs_error == 0))
            << words.shape << " " << type << " " << kernels::ChoiceText(schedule.choice);
      }
      kinds.insert(seen.begin(), seen.end());
    }
  }
  EXPECT_GE(kinds.size(), 20u);
}

// Of clusters whose images come by way of SMEM the model counts what each of them loads, at the border without a halo:
// counted as the largest load each, 7x7x960 had another, slower schedule (7505 cycles). It counts what cores do while
// filters come, and that of filters before turns. With rows of filters repeated at each place 7x7x1152 of 5x5 took
// 10,100 cycles, with cores of a cluster that share rows alone 112x112x32 took 16,885, and with channels that are
// shared, 64 and 8 of them, 56x56x72 took 14,245. With rows of its image taken apart 14x14x576 took 5239, and
// with pixels behind each of its rows, so that they were whole runs, 56x56x144 took 11,154.
TEST(LayersTest, ModelOfClustersBySmem) {
  struct Expected {
    std::string shape, groups, type, config;
    int64_t at_most, stride = 1;
  };
  for (const Expected& e :
       std::vector<Expected>{{"7x7x960,960x3x3x1", "960", "i8", "mlu270", 6'450},
                             {"7x7x1152,1152x3x3x1", "1152", "i8", "mlu270", 6'700},
                             {"7x7x1152,1152x3x3x1", "1152", "f16", "mlu370", 5'050},
                             {"7x7x1152,1152x5x5x1", "1152", "f16", "mlu370", 9'850},
                             {"14x14x480,480x3x3x1", "480", "f16", "mlu370", 6'150},
                             {"56x56x144,144x3x3x1", "144", "f16", "mlu370", 21'700},
                             {"112x112x32,32x3x3x1", "32", "f16", "mlu370", 15'200},
                             {"56x56x72,72x5x5x1", "72", "f16", "mlu370", 11'400, 2},
                             {"14x14x576,576x3x3x1", "576", "f16", "mlu370", 4'700, 2},
                             {"56x56x144,144x3x3x1", "144", "f16", "mlu370", 10'700, 2}}) {
    const auto machine = LoadMachine(e.config, {});
    ASSERT_TRUE(machine.ok()) << machine.status();
    const auto target = MakeTarget("diannao", &*machine);
    ASSERT_TRUE(target.ok()) << target.status();
    auto c = ParseCase({.op = "conv2d",
                        .shape = e.shape,
                        .dtype = e.type,
                        .attributes = {StrCat("groups=", e.groups), StrCat("stride=", e.stride)}});
    ASSERT_TRUE(c.ok()) << c.status();
    const auto all = (*kernels::FindOperator(*c))->schedules(*c, *target);
    ASSERT_TRUE(all.ok()) << all.status();
    c->schedule = all->front().choice;
    EXPECT_EQ(c->schedule.at("smem"), 1) << e.shape;
    CaseSettings settings;
    settings.config = e.config;
    const auto report = RunCase(*c, settings);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->ok) << report->difference;
    EXPECT_LE(report->simulated->cycles, e.at_most) << e.shape << " " << e.type;
    const double ratio = all->front().cycles / static_cast<double>(report->simulated->cycles);
    EXPECT_GT(ratio, 0.96) << e.shape << " " << e.type;
    EXPECT_LT(ratio, 1.06) << e.shape << " " << e.type;
  }
}

// A core makes the filters of its slices once, while the image comes, if WMEM holds them all; then the rows of a
// cluster may come in turns, which are loaded and stored while others are convolved.
TEST(LayersTest, FiltersOfSlicesAndTurns) {
  const auto cycles = [](std::string_view shape, std::string_view groups,
                         kernels::ScheduleChoice schedule, std::string_view wmem) {
    auto c = ParseCase({.op = "conv2d",
                        .shape = std::string(shape),
                        .dtype = "i8",
                        .attributes = {StrCat("groups=", groups)}});
    EXPECT_TRUE(c.ok()) << c.status();
    c->schedule = std::move(schedule);
    CaseSettings settings;
    settings.overrides = {StrCat("core.wmem_kib=", wmem)};
    const auto report = RunCase(*c, settings);
    EXPECT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->ok) << report->difference;
    return report->simulated->cycles;
  };
  // Four slices of 49,152 bytes, and three of 768 behind the last bank: 194 KiB and a quarter.
  const kernels::ScheduleChoice slices = {
      {"across", 4}, {"merged", 30}, {"shared", 1}, {"turns", 1}};
  const int64_t at_once = cycles("14x14x480,480x5x5x1", "480", slices, "195");
  EXPECT_LT(at_once, cycles("14x14x480,480x5x5x1", "480", slices, "193") - 1000);
  // A core's only slice is not copied, which would take 118 cycles of 9712.
  const kernels::ScheduleChoice only_slice = {
      {"across", 4}, {"clusters", 4}, {"merged", 48}, {"shared", 1}, {"turns", 1}};
  EXPECT_LT(cycles("28x28x192,192x3x3x1", "192", only_slice, "1024"), 9650);
  // Without filters made in each turn.
  kernels::ScheduleChoice turns = {{"across", 4}, {"merged", 36}, {"shared", 1}, {"turns", 5}};
  const int64_t in_turns = cycles("56x56x144,144x3x3x1", "144", turns, "1024");
  turns["turns"] = 1;
  EXPECT_LT(5 * in_turns, 4 * cycles("56x56x144,144x3x3x1", "144", turns, "1024"));
}

// Reductions part by part have no pieces in SMEM: a piece of 460,800 bytes was counted as one of its parts.
TEST(LayersTest, PartsOfReductionsAndPieces) {
  CaseSettings settings;
  settings.config = "unit";
  settings.overrides = {"card.clusters=4", "cluster.cores=4", "core.nmem_kib=224"};
  MustRun({"reduce_mean", "20x60x192", {"f16"}, {"axis=-2", "axes=1"}}, "f16", settings);
}

// The cores of a cluster share the turning of filters where these are many: parts of whole and of ragged 64s, a core
// without channels, biases, strides, windows larger than the image.
TEST(LayersTest, DepthwiseFilters) {
  RunOnCard({{"conv2d", "7x7x960,960x3x3x1", {"i8", "f16"}, {"groups=960"}},
             {"conv2d", "5x3x257,257x5x5x1", {"i8", "f32"}, {"groups=257", "bias=1"}},
             {"conv2d", "3x2x192,192x7x7x1", {"i8", "f16"}, {"groups=192", "stride=2", "pad=3"}},
             {"conv2d", "9x1x1000,1000x3x1x1", {"i8"}, {"groups=1000", "pad=1"}},
             {"conv2d", "1x1x2048,2048x3x3x1", {"f16"}, {"groups=2048", "relu=1"}}},
            {"mlu270", "mlu290", "mlu370"});
}

TEST(LayersTest, EveryMachine) {
  RunOnCard({{"add", "255x27x3,3"},
             {"mul", "100x200,100x1"},
             {"reduce_mean", "50x100"},
             {"reduce_max", "49x200", {"f32"}, {"axis=0"}},
             {"global_avg_pool", "7x7x130"},
             {"max_pool2d", "28x27x64", {"i8"}, {"window=3", "stride=2", "pad=1"}},
             {"avg_pool2d", "28x27x31", {"f16"}, {"window=3", "stride=1", "pad=1"}},
             {"pad", "28x27x31"},
             {"softmax", "50x100"},
             {"layer_norm", "70x128"},
             {"transpose", "70x130"},
             {"gather", "70x130,9"},
             {"concat", "33x64,33x100"},
             {"rotary", "9x17x64"},
             {"matmul", "33x100,200x100", {"i8", "i16"}, {"bias=1"}},
             {"conv2d", "28x27x64,64x3x3x1", {"i8"}, {"groups=64"}},
             {"conv2d", "14x13x24,24x3x3x6", {"i8"}, {"groups=4"}}},
            {"mlu270", "mlu290", "mlu370", "unit"});
  // Where the tensor unit has floats.
  RunOnCard({{"matmul", "33x100,200x100", kFloats, {"bias=1", "scale=0.3"}},
             {"attention", "2x9x16", kFloats},
             {"batched_matmul", "2x33x20,2x20x65", kFloats},
             {"conv2d", "9x8x24,24x3x3x6", kFloats, {"groups=4", "relu=1"}}},
            {"mlu370", "unit"});
}

// Tiles get smaller with memory, down to where nothing fits; then the message says what did not.
TEST(LayersTest, SmallMemories) {
  const std::vector<Words> cases = {
      {"sub", "100x999,100x1"},
      {"add", "999x64,64"},
      {"reduce_sum", "40x1000"},
      {"reduce_sum", "300x200", {"f32"}, {"axis=0"}},
      {"max_pool2d", "30x32x64", {"f16"}, {"window=3", "stride=2", "pad=1"}},
      {"avg_pool2d", "30x32x48", {"f16"}, {"window=3", "stride=1"}},
      {"pad", "20x22x128"},
      {"softmax", "40x500"},
      {"layer_norm", "40x500"},
      {"transpose", "200x300"},
      {"concat", "200x300,200x64"},
      {"matmul", "50x300,200x300", {"i8"}, {"bias=1"}},
      {"conv2d", "20x32x64,64x3x3x1", {"i8"}, {"groups=64", "bias=1"}},
      {"conv2d", "5x4x512,512x3x3x1", {"i8"}, {"groups=512"}},
      {"conv2d", "20x32x64,64x3x3x16", {"i8"}, {"groups=4"}}};
  int run = 0;
  for (const Words& words : cases) {
    for (const char* kib : {"8", "16", "32", "64"}) {
      CaseSettings settings;
      settings.overrides = {StrCat("core.nmem_kib=", kib), "core.wmem_kib=16"};
      const absl::StatusOr<kernels::OperatorCase> c = ParseCase({.op = words.op,
                                                                 .shape = words.shape,
                                                                 .dtype = words.types[0],
                                                                 .attributes = words.attributes});
      const absl::StatusOr<CaseReport> report = RunCase(*c, settings);
      if (!report.ok()) {
        EXPECT_THAT(std::string(report.status().message()),
                    HasSubstr(StrCat("operator ", words.op)))
            << kib;
        EXPECT_THAT(std::string(report.status().message()),
                    AnyOf(HasSubstr("bytes of"), HasSubstr("its smallest tile does not fit")))
            << kib;
        continue;
      }
      ++run;
      // Long sums may be added in another order.
      const bool is_exact =
          !report->is_reassociated && (*kernels::FindOperator(*c))->tolerance_of_largest == 0;
      EXPECT_TRUE(report->ok && (!is_exact || report->max_abs_error == 0))
          << words.op << " " << words.shape << " " << kib;
    }
  }
  EXPECT_GE(run, 30);
}

// Random shapes and attributes on random machines; POLYNAO_SEED=7 runs those of a failure again.
TEST(LayersTest, RandomCases) {
  const char* seed_text = std::getenv("POLYNAO_SEED");
  const unsigned seed = seed_text != nullptr ? std::atoi(seed_text) : std::random_device{}();
  std::mt19937 random(seed);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  const auto one_of = [&](const Strings& words) { return words[pick(0, words.size() - 1)]; };
  const auto extent = [&] { return pick(1, 12) * pick(1, 3); };
  const auto channels = [&] { return pick(0, 1) ? pick(1, 3) * 64 : pick(1, 130); };
  for (int round = 0; round < 60; ++round) {
    Words words;
    switch (pick(0, 5)) {
      case 0: {
        words = {one_of({"add", "sub", "mul", "max", "min"}), "", kVector};
        Strings a, b;
        for (int64_t rank = pick(1, 4); rank > 0; --rank) {
          const std::string n = StrCat(pick(0, 3) == 0 ? pick(1, 60) : pick(1, 12));
          a.push_back(pick(0, 3) == 0 ? "1" : n);
          b.push_back(pick(0, 2) == 0 ? "1" : n);
        }
        if (pick(0, 1)) b.erase(b.begin());
        words.shape = StrCat(absl::StrJoin(a, "x"), ",", b.empty() ? "1" : absl::StrJoin(b, "x"));
        break;
      }
      case 1: {
        words = {one_of({"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}),
                 StrCat(extent(), "x", pick(1, 200), "x", pick(0, 1) ? extent() : channels()),
                 kFloats,
                 {StrCat("axis=", pick(-3, -1)), "axes=1"}};
        break;
      }
      case 2: {
        const int64_t window = pick(1, 6);
        words = {one_of({"max_pool2d", "avg_pool2d"}),
                 StrCat(window + extent(), "x", window + extent(), "x", channels()),
                 kFloats,
                 {StrCat("window=", window), StrCat("stride=", pick(1, 6)),
                  StrCat("pad=", pick(0, window - 1))}};
        break;
      }
      case 3:
        words = {"pad",
                 StrCat(extent(), "x", extent(), "x", channels()),
                 kVector,
                 {StrCat("before=", pick(0, 3)), StrCat("after=", pick(0, 3)), "value=7"}};
        break;
      case 4: {
        const int64_t k = pick(1, 300);
        words = {"matmul",
                 StrCat(pick(1, 70), "x", k, ",", pick(1, 300), "x", k),
                 {"i8", "i16"},
                 {StrCat("bias=", pick(0, 1)), StrCat("relu=", pick(0, 1)),
                  "out=" + one_of({"f16", "f32", "i8", "i16", "i32"})}};
        break;
      }
      default: {
        const int64_t groups = pick(2, 70), per_group = pick(0, 1) ? 1 : pick(1, 4);
        const int64_t window = pick(1, 5);
        const bool has_floats = per_group == 1 && pick(0, 1);
        words = {
            "conv2d",
            StrCat(window + pick(0, 12), "x", window + pick(0, 12), "x", groups * per_group, ",",
                   groups * (per_group == 1 ? 1 : pick(1, 4)), "x", window, "x", window, "x",
                   per_group),
            has_floats ? kFloats : Strings{"i8", "i16"},
            {StrCat("groups=", groups), StrCat("stride=", pick(1, 5)), StrCat("bias=", pick(0, 1)),
             StrCat("relu=", pick(0, 1)), StrCat("pad=", pick(0, 2)),
             "out=" +
                 one_of(has_floats ? Strings{"f16", "f32"} : Strings{"f16", "f32", "i8", "i32"})}};
      }
    }
    CaseSettings settings;
    settings.seed = random();
    settings.config = one_of({"mlu270", "mlu370", "unit"});
    settings.overrides = {StrCat("card.clusters=", pick(1, 4)),
                          StrCat("cluster.cores=", pick(1, 4)),
                          StrCat("core.nmem_kib=", pick(4, 16) * 32), "core.wmem_kib=256"};
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << settings.overrides[0] << " "
                                    << settings.overrides[1] << " " << settings.overrides[2]);
    const std::string type = one_of(words.types);
    EXPECT_EQ(MustRun(words, type, settings).scalar_stores, 0);
    if (HasFailure()) {
      ADD_FAILURE() << words.op << " " << words.shape << " " << type << " "
                    << absl::StrJoin(words.attributes, " ") << " " << settings.config;
      return;
    }
  }
}

TEST(LayersTest, BroadcastOnProcessors) { RunOnProcessors(BroadcastCases()); }
TEST(LayersTest, ReduceOnProcessors) { RunOnProcessors(ReduceCases()); }
TEST(LayersTest, PoolOnProcessors) { RunOnProcessors(PoolCases()); }
TEST(LayersTest, NormalizationOnProcessors) { RunOnProcessors(NormalizationCases()); }
TEST(LayersTest, MovementOnProcessors) { RunOnProcessors(MovementCases()); }
TEST(LayersTest, MatmulOnProcessors) { RunOnProcessors(MatmulCases()); }
TEST(LayersTest, BatchedOnProcessors) { RunOnProcessors(BatchedCases()); }
TEST(LayersTest, AttentionOnProcessors) { RunOnProcessors(AttentionCases()); }
TEST(LayersTest, GatherOnProcessors) { RunOnProcessors(GatherCases(), {"cpu", "c", "cuda"}); }

TEST(LayersTest, GroupsOnProcessors) { RunOnProcessors(GroupCases()); }

// A value of bf16 may be rounded to either neighbour.
TEST(LayersTest, RoundingOfBf16IsNoDifference) {
  CaseSettings settings;
  settings.target = "cpu";
  settings.seed = 57;
  EXPECT_GT(MustRun({"group_norm", "3x1x2x1", {}}, "bf16", settings).max_abs_error, 0);
}

TEST(LayersTest, TypesThatOnlyProcessorsHave) {
  RunAll({{"add", "7x1,9", {"bf16", "f64", "u8", "i64"}},
          {"reduce_sum", "7x9", {"bf16", "f64", "i64"}},
          {"reduce_max", "7x9", {"bf16", "f64", "u8", "i64", "i8"}},
          {"avg_pool2d", "5x6x7", {"bf16", "f64"}, {"pad=1"}},
          {"max_pool2d", "5x6x7", {"bf16", "u8", "i64"}, {"pad=1"}},
          {"pad", "3x4x5", {"bf16", "u8", "i64"}, {"value=9"}},
          {"softmax", "5x7", {"bf16", "f64"}},
          {"layer_norm", "5x7", {"bf16", "f64"}},
          {"rms_norm", "5x7", {"bf16", "f64"}},
          {"transpose", "3x5", {"bf16", "f64", "u8", "i64"}},
          {"concat", "3x5,3x2", {"bf16", "f64", "u8", "i64"}},
          {"matmul", "5x7,9x7", {"f16", "f32"}, {"bias=1", "scale=0.3", "out=f32"}}},
         {"cpu", "interp"});
}

TEST(LayersTest, ByWayOfC) {
  RunAll({{"add", "7x1x5,9x5"},
          {"reduce_mean", "5x7x9", {"f16"}, {"axis=1"}},
          {"max_pool2d", "7x8x9", {"f16"}, {"pad=1"}},
          {"avg_pool2d", "7x8x9"},
          {"pad", "3x4x5"},
          {"softmax", "5x9"},
          {"layer_norm", "5x9"},
          {"rms_norm", "5x9"},
          {"transpose", "5x9"},
          {"slice", "5x9", {"f16"}, {"begin=1:2"}},
          {"flip", "5x9"},
          {"concat", "5x9,5x3"},
          {"resize_nearest", "3x4x5"},
          {"resize_bilinear", "3x4x5"},
          {"rotary", "5x10"},
          {"matmul", "5x7,9x7", {"i8"}, {"bias=1"}}},
         {"c"});
}

TEST(LayersTest, WhatIsWrongSaysSo) {
  EXPECT_EQ(Error({"add", "4x4,3"}),
            "operator add 4x4,3: expected shapes that agree from the last dimension on, or are 1 "
            "there");
  EXPECT_THAT(Error({"add", "4x4,4,4"}), HasSubstr("expected 1 shape (any), or 2"));
  EXPECT_THAT(Error({"relu", "4x4,4"}), HasSubstr("expected 1 shape (any), found 2"));
  EXPECT_EQ(
      Error({"matmul", "4x5,6x4", {"i8"}}),
      "operator matmul 4x5,6x4: expected weights of as many elements as a row has, 5, found 4");
  EXPECT_THAT(Error({"matmul", "4x5,6x5", {"i32"}}),
              HasSubstr("expected i8, i16, f16, bf16 or f32"));
  EXPECT_THAT(Error({"matmul", "4x5,6x5", {"f16"}, {"out=i32"}}),
              HasSubstr("the sum of floats is no i32"));
  for (const auto& [op, shape] : std::vector<std::pair<std::string, std::string>>{
           {"matmul", "4x5,6x5"}, {"batched_matmul", "2x4x5,2x5x6"}, {"attention", "2x4x5"}}) {
    EXPECT_THAT(Error({op, shape, {"f16"}}),
                HasSubstr("mlu270 has no tensor instruction for it (tensor.macs_f16 = 0)"))
        << op;
  }
  EXPECT_EQ(Error({"conv2d_batch_norm", "2x1x8,4x3x3x8", {"i8"}, {"stride=2"}}),
            "operator conv2d_batch_norm 2x1x8,4x3x3x8: the output is one pixel, of which there is "
            "no variance");
  EXPECT_EQ(Error({"reduce_sum", "4x5", {"f16"}, {"axis=2"}}),
            "operator reduce_sum 4x5: attribute axis: expected a whole number from -2 to 1, found "
            "'2'");
  EXPECT_THAT(Error({"reduce_sum", "4x5", {"f16"}, {"axis=-1", "axes=2"}}),
              HasSubstr("attribute axes: expected a whole number from 1 to 1, found '2'"));
  EXPECT_THAT(Error({"reduce_sum", "scalar"}), HasSubstr("expected 1 dimension or more"));
  EXPECT_THAT(Error({"reduce_sum", "4x0"}), HasSubstr("expected extents of 1 and more"));
  EXPECT_THAT(Error({"reduce_sum", "4", {"i8"}}), HasSubstr("expected f16, bf16, f32"));
  EXPECT_THAT(Error({"reduce_mean", "4", {"i32"}}),
              HasSubstr("expected f16, bf16, f32, f64 or i8"));
  EXPECT_THAT(Error({"max_pool2d", "4x4"}), HasSubstr("expected 3 dimensions, found 2"));
  EXPECT_THAT(Error({"max_pool2d", "4x4x4", {"f16"}, {"pad=2"}}),
              HasSubstr("attribute pad: expected a whole number from 0 to 1, found '2'"));
  EXPECT_THAT(Error({"max_pool2d", "4x4x4", {"f16"}, {"window=5"}}),
              HasSubstr("the window is larger than the padded image"));
  EXPECT_THAT(Error({"pad", "4x4x4", {"i8"}, {"value=200"}}),
              HasSubstr("attribute value: expected a value of i8, found 200"));
  EXPECT_THAT(Error({"add", "4x4,4", {"f64"}}),
              HasSubstr("the card has no instruction for A[i, j] + B[j] of f64"));
  EXPECT_THAT(Error({"softmax", "4x5", {"f16"}, {"axis=2"}}),
              HasSubstr("attribute axis: expected a whole number from -2 to 1, found"));
  EXPECT_THAT(Error({"softmax", "4x5", {"i32"}}), HasSubstr("expected f16, bf16, f32 or f64"));
  EXPECT_THAT(Error({"rms_norm", "scalar"}), HasSubstr("expected 1 dimension or more"));
  EXPECT_EQ(Error({"layer_norm", "4x5", {"f16"}, {"eps=0"}}),
            "operator layer_norm 4x5: attribute eps: expected a number above 0 and up to 1, found "
            "0");
  EXPECT_EQ(Error({"transpose", "4x5", {"f16"}, {"perm=0:0"}}),
            "operator transpose 4x5: attribute perm: expected each number from 0 to 1 once, found "
            "'0:0'");
  EXPECT_THAT(Error({"transpose", "4x5", {"f16"}, {"perm=0"}}),
              HasSubstr("attribute perm: expected 2 numbers, found 1"));
  EXPECT_THAT(Error({"slice", "4x5", {"f16"}, {"begin=0:0.5"}}),
              HasSubstr("attribute begin: expected whole numbers, found 0.5"));
  EXPECT_THAT(Error({"slice", "4x5", {"f16"}, {"begin=4:0"}}),
              HasSubstr("dimension 0: the slice is empty"));
  EXPECT_THAT(Error({"slice", "4x5", {"f16"}, {"step=1:0"}}),
              HasSubstr("attribute step: expected 1 or more, found 0"));
  EXPECT_THAT(Error({"concat", "4x5,3x5"}),
              HasSubstr("expected shapes that differ along axis 1 only"));
  EXPECT_THAT(Error({"rotary", "4x5"}),
              HasSubstr("expected 2 dimensions or more, the last one even"));
  CaseSettings small;
  small.overrides = {"core.nmem_kib=1"};
  EXPECT_THAT(Error({"max_pool2d", "40x40x500", {"f32"}, {"window=4"}}, small),
              HasSubstr("nmem has 1024 bytes"));
  EXPECT_THAT(Error({"max_pool2d", "4x4x4", {"u8"}}), HasSubstr("no instruction that reduces u8"));
}

}  // namespace
}  // namespace polynao::cases
