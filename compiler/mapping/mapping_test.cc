#include "compiler/mapping/mapping.h"

#include <random>
#include <string>

#include "base/math.h"
#include "compiler/mapping/clusters.h"
#include "compiler/mapping/search.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/machine.h"
#include "testing/machine.h"

namespace polynao::mapping {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// conv2d 14x14x256,256x3x3x256 of i8, its results f16.
Layer Conv() {
  Layer layer;
  layer.rows = layer.columns = 14, layer.channels = 256;
  layer.image_rows = layer.image_columns = {.step = 1, .size = 3, .whole = 16, .inside = 14};
  layer.input_channels = 256;
  layer.is_padded = true;
  layer.filter_bytes = layer.filter_pitch = 9 * 256;
  layer.macs_per_cycle = 4096;
  layer.channel_vectors = 2;
  layer.result_bytes = 2;
  layer.temporaries = [](int64_t pixels, int64_t lanes, int64_t copies) {
    return pixels * lanes * (4 + 2 * copies);
  };
  layer.vector_cycles = [](int64_t pixels, int64_t lanes) {
    return 4 * (16 + static_cast<double>(pixels * lanes) / 64);
  };
  return layer;
}

Layer RandomLayer(std::mt19937_64& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Layer layer = Conv();
  layer.rows = pick(1, 30), layer.columns = pick(1, 30);
  layer.channels = pick(0, 1) == 0 ? 64 * pick(2, 16) : pick(65, 1024);
  const int64_t window = pick(1, 5), step = pick(1, 2);
  const auto margins = [&](int64_t outputs) {
    const int64_t whole = (outputs - 1) * step + window;
    return Window{step, window, whole, std::max<int64_t>(1, whole - pick(0, window - 1))};
  };
  layer.image_rows = margins(layer.rows), layer.image_columns = margins(layer.columns);
  layer.input_channels = pick(1, 300);
  layer.filter_bytes = window * window * layer.input_channels;
  layer.filter_pitch = (layer.filter_bytes + 63) / 64 * 64;
  layer.in_blocks = pick(0, 3) == 0;
  if (!layer.in_blocks && pick(0, 1) == 1) layer.loaded = {2};
  for (const int64_t count : {window, window * window}) {
    const int64_t bytes = layer.filter_bytes / count;
    if (count > 1 && pick(0, 1) == 1) {
      // Of the image too: at one place of the window.
      const int64_t channels = random() % 2 == 0 ? bytes / layer.element_bytes : 0;
      layer.parts.push_back(
          {.count = count, .bytes = bytes, .pitch = (bytes + 63) / 64 * 64, .channels = channels});
    }
  }
  return layer;
}

TEST(MappingTest, TextIsReadBack) {
  const Mapping m = {.channel_clusters = 4,
                     .columns_apart = 2,
                     .across = 2,
                     .block = 128,
                     .parts = 3,
                     .pieces = 2,
                     .weights_by_smem = true,
                     .image_by_smem = false,
                     .results_by_smem = true};
  EXPECT_EQ(m.Text(),
            "across=2 block=128 channel_clusters=4 columns_apart=2 image_by_smem=0 "
            "image_in_parts=0 parts=3 pieces=2 results_by_smem=1 turns=1 weights_by_smem=1");
  EXPECT_EQ(*ParseMapping(m.Text()), m);
  EXPECT_EQ(*ParseMapping(" weights_by_smem=1 results_by_smem=1  across=2 block=128 "
                          "columns_apart=2 image_by_smem=0 channel_clusters=4 parts=3 "
                          "pieces=2 turns=1 image_in_parts=0"),
            m);
}

TEST(MappingTest, WrongTextIsAnErrorThatNamesTheWord) {
  const auto error = [](std::string_view text) {
    return std::string(ParseMapping(text).status().message());
  };
  EXPECT_EQ(error("across"), "mapping: expected NAME=NUMBER, found 'across'");
  EXPECT_EQ(error("across=x"), "mapping: expected NAME=NUMBER, found 'across=x'");
  EXPECT_THAT(error("rows=2"), HasSubstr("'rows=2': there is no rows, there are across="));
  EXPECT_EQ(error("across=0"), "mapping: 'across=0': expected 1 and more");
  EXPECT_EQ(error("image_by_smem=2"), "mapping: 'image_by_smem=2': expected 0 or 1");
  EXPECT_EQ(error("across=1 across=2"), "mapping: 'across=2': across stands there twice");
  EXPECT_EQ(error("across=1"), "mapping: block is missing");
}

// Texts with some characters changed are read to a mapping that prints and reads back, or refused.
TEST(MappingTest, Fuzz) {
  std::mt19937_64 random(1);
  const std::string text = Mapping().Text();
  constexpr std::string_view kCharacters = " =0129acs_-";
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string changed = text;
    for (int j = static_cast<int>(random() % 3); j >= 0; --j) {
      changed[random() % changed.size()] = kCharacters[random() % kCharacters.size()];
    }
    const absl::StatusOr<Mapping> m = ParseMapping(changed);
    if (!m.ok()) continue;
    ++read;
    EXPECT_EQ(*ParseMapping(m->Text()), *m) << changed;
  }
  EXPECT_GT(read, 100);
}

TEST(MappingTest, SaysWhyItIsNone) {
  isa::Machine machine = TestMachine("mlu270");
  machine.Set("card.clusters", 1);
  const CardFacts card(machine);
  const auto why = [&](const Mapping& m) { return WhyNot(Conv(), card, m); };
  EXPECT_EQ(why({.across = 4, .results_by_smem = true}), "");
  EXPECT_THAT(why({.across = 4}), HasSubstr("results_by_smem = 1 is needed"));
  EXPECT_EQ(why({.across = 3, .results_by_smem = true}),
            "across * columns_apart = 3 is no divisor of 4 cores");
  EXPECT_EQ(why({.across = 4, .block = 128, .results_by_smem = true}),
            "channel_clusters = 1 times across = 4 blocks of 128: expected multiples of 64, or "
            "equal parts, with which "
            "more than half of the cores have some of 256 channels");
  Layer fewer = Conv();
  fewer.channels = 160;
  EXPECT_EQ(WhyNot(fewer, card, {.across = 4, .results_by_smem = true}), "");
  EXPECT_THAT(why({.across = 2, .block = 100, .results_by_smem = true}),
              HasSubstr("expected multiples of 64"));
  EXPECT_EQ(why({.across = 2, .block = 192, .results_by_smem = true}), "");
  EXPECT_EQ(why({.channel_clusters = 2}), "channel_clusters = 2 is no divisor of 1 clusters");
  EXPECT_EQ(why({.block = 256}), "all channels are one block: nothing streams");
  EXPECT_EQ(why({.across = 4, .parts = 3, .results_by_smem = true}),
            "parts = 3: filters have no such equal parts");
  machine.Set("core.wmem_kib", 256);
  EXPECT_EQ(WhyNot(Conv(), CardFacts(machine), {.block = 64}), "");
  const CardFacts small(machine);
  EXPECT_EQ(WeightCopies(small, SharesOf(Conv(), small, {.block = 64})), 1);
  EXPECT_EQ(WhyNot(Conv(), CardFacts(machine), {.block = 128}), "wmem: 294912 bytes of 262144");
}

TEST(MappingTest, NeedsAndSharesOfAConvolution) {
  isa::Machine machine = TestMachine("mlu270");
  machine.Set("card.clusters", 1);
  const CardFacts card(machine);
  const Mapping m = {.across = 4, .image_by_smem = true, .results_by_smem = true};
  const Shares shares = SharesOf(Conv(), card, m);
  EXPECT_EQ(shares.core_rows, 14);
  EXPECT_EQ(shares.core_columns, 14);
  EXPECT_EQ(shares.steps, 1);
  const Needs needs = NeedsOf(Conv(), card, m);
  EXPECT_EQ(needs.wmem, 2 * 64 * 9 * 256);
  EXPECT_EQ(needs.smem, 14 * 14 * 256 * 2 + 14 * 14 * 256);  // the image without its margins
}

// Clusters that share channels load their own weights and all of their rows' image.
TEST(MappingTest, ClustersThatShareChannels) {
  const CardFacts card(TestMachine("mlu270"));
  const Mapping m = {.channel_clusters = 2, .across = 2, .results_by_smem = true};
  const Shares shares = SharesOf(Conv(), card, m);
  EXPECT_EQ(shares.cluster_rows, 7);
  EXPECT_EQ(shares.cluster_channels, 128);
  EXPECT_EQ(shares.clusters, 4);
  EXPECT_EQ(shares.steps, 1);
  EXPECT_EQ(NeedsOf(Conv(), card, m).smem, 7 * 14 * 128 * 2);
}

// Where each core has one block, loads hide behind the sums of the parts before; less is on chip at a time.
TEST(MappingTest, PartsOfFiltersOverlap) {
  isa::Machine machine = TestMachine("mlu270");
  machine.Set("card.clusters", 1);
  const CardFacts card(machine);
  Layer layer = Conv();
  layer.parts = {{.count = 3, .bytes = 3 * 256, .pitch = 3 * 256},
                 {.count = 9, .bytes = 256, .pitch = 256}};
  Mapping m = {.across = 4, .image_by_smem = true, .results_by_smem = true};
  const double whole = CostOf(layer, card, m).cycles();
  m.parts = 9;
  EXPECT_EQ(SharesOf(layer, card, m).steps, 9);
  EXPECT_EQ(NeedsOf(layer, card, m).wmem, 2 * 64 * 256);
  // Weights take 5800 cycles, sums 7056; each part has its latency.
  EXPECT_LT(CostOf(layer, card, m).cycles(), whole - 3500);
  EXPECT_EQ(WhyNot(layer, card, {.block = 64, .parts = 9}),
            "parts = 9 of filters of a part of the channels");
}

// Sums of all rows stay, what is computed of them is there for a piece, and leaves while the next one is computed.
TEST(MappingTest, PiecesOverlap) {
  isa::Machine machine = TestMachine("mlu270");
  machine.Set("card.clusters", 1);
  const CardFacts card(machine);
  Layer layer = Conv();
  layer.parts = {{.count = 9, .bytes = 256, .pitch = 256}};
  Mapping m = {.across = 4, .parts = 9, .image_by_smem = true, .results_by_smem = true};
  const double whole = CostOf(layer, card, m).cycles();
  const int64_t nmem = NeedsOf(layer, card, m).nmem;
  m.pieces = 2;
  EXPECT_EQ(SharesOf(layer, card, m).piece_pixels, 7 * 14);
  EXPECT_LT(CostOf(layer, card, m).cycles(), whole);
  EXPECT_EQ(nmem - NeedsOf(layer, card, m).nmem, 196 * 64 * 8 - 98 * 64 * 8 - 196 * 64 * 4);
  m.pieces = 4;
  EXPECT_THAT(WhyNot(layer, card, m),
              HasSubstr("pieces = 4 of 14 rows of a core: expected a divisor"));
  EXPECT_THAT(WhyNot(layer, card, {.across = 4, .pieces = 2, .results_by_smem = true}),
              HasSubstr("1 if sums are not in parts"));
}

// A product whose bytes take longer than its sums: between turns the image comes and results leave, weights stay.
TEST(MappingTest, TurnsOverlap) {
  isa::Machine machine = TestMachine("mlu270");
  machine.Set("card.clusters", 1);
  const CardFacts card(machine);
  Layer layer = Conv();
  layer.image_rows = layer.image_columns = {.whole = 14, .inside = 14};
  layer.is_padded = false;
  layer.channels = 1024;
  layer.filter_bytes = layer.filter_pitch = 256;
  layer.loaded = {2};
  Mapping m = {.across = 4, .block = 256, .image_by_smem = true, .results_by_smem = true};
  const double at_once = CostOf(layer, card, m).cycles();
  const Needs needs = NeedsOf(layer, card, m);
  m.turns = 7;
  EXPECT_EQ(WhyNot(layer, card, m), "");
  const Shares shares = SharesOf(layer, card, m);
  EXPECT_EQ(shares.turn_rows, 2);
  EXPECT_EQ(shares.core_rows, 2);
  EXPECT_EQ(shares.pixels, 28);
  // Two copies of each seventh; weights are there once.
  EXPECT_EQ(NeedsOf(layer, card, m).smem, needs.smem * 2 / 7);
  EXPECT_EQ(NeedsOf(layer, card, m).wmem, 256 * 256);
  EXPECT_EQ(needs.wmem, 2 * 256 * 256);
  // The results of six turns, 802,816 bytes of all, leave beside what comes.
  EXPECT_LT(CostOf(layer, card, m).cycles(), at_once - 2000);
  m.turns = 6;
  EXPECT_EQ(WhyNot(layer, card, m), "turns = 6 of 14 rows");
  m.turns = 5;  // three rows in each but the last, which has two
  EXPECT_EQ(WhyNot(layer, card, m), "");
  // The weights of all blocks.
  m.block = 64;
  EXPECT_EQ(WhyNot(layer, card, m), "");
  EXPECT_EQ(NeedsOf(layer, card, m).wmem, 256 * 256 + 3 * 256);
  m.block = 192;
  EXPECT_EQ(WhyNot(layer, card, m),
            "turns = 5: block = 192 of a core's 256 channels, expected equal blocks");
  m.weights_by_smem = true;
  EXPECT_THAT(WhyNot(layer, card, m), HasSubstr("weights not"));
  EXPECT_THAT(WhyNot(layer, card, {.block = 1024, .turns = 2, .results_by_smem = true}),
              HasSubstr("image and results by way of SMEM"));
}

// Results that lie in blocks of channels: cores that share channels need no SMEM, nor do clusters store pixel by pixel.
TEST(MappingTest, ResultsInBlocks) {
  const CardFacts card(TestMachine("mlu370"));
  Layer layer = Conv();
  const Mapping m = {.channel_clusters = 4, .block = 64, .parts = 9, .image_by_smem = true};
  layer.parts = {{.count = 9, .bytes = 256, .pitch = 256}};
  const double pixels = CostOf(layer, card, m).cycles();
  layer.in_blocks = true;
  EXPECT_EQ(WhyNot(layer, card, m), "");
  // 49 pixels of a core are one segment; else they are one after the other, 271 cycles each.
  EXPECT_LT(CostOf(layer, card, m).cycles(), pixels - 48 * 250);
  EXPECT_EQ(WhyNot(layer, card, {.across = 4}), "");
  EXPECT_THAT(WhyNot(layer, card, {.across = 4, .results_by_smem = true}),
              HasSubstr("results_by_smem = 0 is needed"));
}

// Where weights and image go by way of SMEM and the image comes in parts, its part is copied to a core behind the next
// weights, and the sums wait for both: nothing of a step overlaps but the load of the weights after that.
TEST(MappingTest, PartsOfAnImageInSmemWait) {
  const CardFacts card(TestMachine("mlu370"));
  Layer layer = Conv();
  layer.parts = {{.count = 9, .bytes = 256, .pitch = 256, .channels = 256}};
  const auto beside_sums = [&](bool weights_by_smem) {
    const Mapping m = {.across = 2,
                       .block = 128,
                       .parts = 9,
                       .image_in_parts = true,
                       .weights_by_smem = weights_by_smem,
                       .image_by_smem = true,
                       .results_by_smem = true};
    EXPECT_EQ(WhyNot(layer, card, m), "");
    std::vector<std::string> parts;
    for (const CostParts::PhaseOf& phase : CostOf(layer, card, m).Phases()) {
      if (phase.name != "steps") continue;
      for (const CostParts::LaneOf& lane : phase.lanes) {
        if (std::none_of(lane.parts.begin(), lane.parts.end(),
                         [](const CostParts::Part& part) { return part.what == "sums"; })) {
          continue;
        }
        for (const CostParts::Part& part : lane.parts) parts.emplace_back(part.what);
      }
    }
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    return parts;
  };
  EXPECT_THAT(beside_sums(true), ElementsAre("weights to WMEM", "image", "padding", "sums"));
  EXPECT_THAT(beside_sums(false), ElementsAre("padding", "sums"));
}

// 80 channels of two cores: 40 each, or 64 and 16. The first core then loads for the longer one.
TEST(MappingTest, EqualBlocksOfFewChannels) {
  const CardFacts card(TestMachine("mlu370"));
  Layer layer = Conv();
  layer.channels = 80;
  layer.parts = {{.count = 9, .bytes = 256, .pitch = 256}};
  Mapping m = {
      .across = 2, .block = 40, .parts = 9, .image_by_smem = true, .results_by_smem = true};
  EXPECT_THAT(EvenBlocks(layer, m), ElementsAre(40));
  EXPECT_EQ(WhyNot(layer, card, m), "");
  EXPECT_EQ(SharesOf(layer, card, m).lanes, 64);
  EXPECT_EQ(SharesOf(layer, card, m).steps, 9);
  const double even = CostOf(layer, card, m).cycles();
  m.block = 64;
  EXPECT_LT(even, CostOf(layer, card, m).cycles());
  m.block = 48;
  EXPECT_THAT(WhyNot(layer, card, m),
              HasSubstr("blocks of 48: expected multiples of 64, or equal"));
  // Whole groups of lanes, each core's at once or 64 at a time; parts are rounded up to eight.
  layer.channels = 300;
  EXPECT_THAT(EvenBlocks(layer, m), ElementsAre(152));
  layer.channel_vectors = 0;
  EXPECT_THAT(EvenBlocks(layer, m), ElementsAre(152, 56));
  // Of vectors of channels the second block would begin at the 112th: instructions read from multiples of 64.
  layer.channel_vectors = 2, m.across = 4, layer.channels = 360;
  EXPECT_THAT(EvenBlocks(layer, m), ElementsAre(96, 48));
  m.across = 2;
  layer.channels = 256;
  EXPECT_THAT(EvenBlocks(layer, m), ElementsAre());
  // Blocks of 64 in GMEM have no part of one.
  layer.channels = 80, layer.in_blocks = true, m.block = 40;
  EXPECT_THAT(EvenBlocks(layer, m), ElementsAre());
  EXPECT_NE(WhyNot(layer, card, m), "");
}

// Of rows of 22 columns of 72 bytes every fourth begins where the tensor unit may read, margins included; of 24 columns
// each does, so that filters may come row by row of their window.
TEST(MappingTest, WiderRowsForPartsOfFilters) {
  isa::Machine machine = TestMachine("mlu270");
  machine.Set("card.clusters", 1);
  const CardFacts card(machine);
  Layer layer = Conv();
  layer.rows = layer.columns = 16;
  layer.image_rows = layer.image_columns = {.step = 1, .size = 7, .whole = 22, .inside = 16};
  layer.input_channels = layer.pixel_channels = 72;
  layer.filter_bytes = 49 * 72, layer.filter_pitch = 3584;
  layer.parts = {{.count = 7, .bytes = 504, .pitch = 512, .row_step = 1},
                 {.count = 49, .bytes = 72, .pitch = 128, .row_step = 1, .column_step = 1}};
  Mapping m = {.across = 4, .block = 64, .image_by_smem = true, .results_by_smem = true};
  EXPECT_EQ(SharesOf(layer, card, m).image_columns, 22);
  m.parts = 7;
  EXPECT_EQ(WhyNot(layer, card, m), "");
  EXPECT_EQ(SharesOf(layer, card, m).image_columns, 24);
  EXPECT_EQ(SharesOf(layer, card, m).core_image_bytes, 22 * 24 * 72);
  // Each core has its own columns.
  m.columns_apart = 2, m.across = 2, m.block = 128;
  EXPECT_EQ(SharesOf(layer, card, m).image_columns, 16);  // 8 + 6, and two more
  // Nothing fills what would be behind the columns of an image without margins.
  layer.is_padded = false;
  EXPECT_THAT(WhyNot(layer, card, m), HasSubstr("read between multiples of 64 bytes of the image"));
  layer.is_padded = true;
  // Of one column none are added: there may be no such dimension.
  layer.image_columns = {.step = 1, .size = 1, .whole = 1, .inside = 1};
  layer.columns = m.columns_apart = 1, m.across = 4, m.block = 64;
  EXPECT_EQ(SharesOf(layer, card, m).image_columns, 1);
  EXPECT_THAT(WhyNot(layer, card, m), HasSubstr("read between multiples of 64 bytes of the image"));
  layer.columns = 16, m.columns_apart = 2, m.across = 2, m.block = 128;
  layer.image_columns = layer.image_rows;
  // Nor do places of the window begin so, however wide rows are.
  m.parts = 49;
  EXPECT_THAT(WhyNot(layer, card, m), HasSubstr("read between multiples of 64 bytes of the image"));
}

// A bank's filters with gaps between them come in a copy for each group of lanes, and so do those of the last core, if
// these are no whole groups. Each copy is a trip, which the others' bytes hide where these take longer.
TEST(MappingTest, CopiesOfABlock) {
  isa::Machine machine = TestMachine("mlu370");
  machine.Set("card.clusters", 4);
  const CardFacts card(machine);
  const auto step = [&](int64_t channels, int64_t block, int64_t bytes) {
    Layer layer = Conv();
    layer.channels = channels;
    layer.parts = {{.count = 9, .bytes = bytes, .pitch = RoundUp(bytes, 64), .row_step = 1}};
    const Mapping m = {
        .across = 4, .block = block, .parts = 9, .image_by_smem = true, .results_by_smem = true};
    EXPECT_EQ(WhyNot(layer, card, m), "");
    for (const CostParts::PhaseOf& phase : CostOf(layer, card, m).Phases()) {
      if (phase.name != "steps" && phase.name != "last weights") continue;
      for (const CostParts::LaneOf& lane : phase.lanes) {
        double cycles = 0;
        for (const CostParts::Part& part : lane.parts) {
          if (part.what == "weights") cycles += part.cycles;
        }
        if (cycles > 0) return cycles;
      }
    }
    return 0.0;
  };
  EXPECT_LT(step(704, 192, 64), step(768, 192, 64));  // the last core has 128
  EXPECT_GT(step(728, 192, 64), 1.2 * step(768, 192, 64));
  EXPECT_GT(step(768, 192, 60), 1.2 * step(768, 192, 64));
  EXPECT_LT(step(728, 192, 1024), 1.02 * step(768, 192, 1024));
}

// Segments of which few are in flight, of a core's rows by themselves, keep neither their trips nor GMEM busy: that
// takes longer than either alone.
TEST(MappingTest, SegmentsTakeTripsAndGmem) {
  Layer layer = Conv();
  layer.columns = 28, layer.image_columns = {.step = 1, .size = 3, .whole = 30, .inside = 28};
  const Mapping m = {.columns_apart = 4, .block = 64, .weights_by_smem = true};
  const auto results = [&](int64_t segments, int64_t bytes_per_kilocycle) {
    isa::Machine machine = TestMachine("mlu270");
    machine.Set("cluster.store_segments", segments), machine.Set("io_dma.strided_writes", segments);
    machine.Set("gmem.channel_bytes_per_kilocycle", bytes_per_kilocycle);
    const CardFacts card(machine);
    EXPECT_EQ(WhyNot(layer, card, m), "");
    return CostOf(layer, card, m).Phases().back().cycles();
  };
  const double trips = results(2, 1'000'000), bytes = results(1000, 25'600),
               both = results(2, 25'600);
  EXPECT_GT(both, std::max(trips, bytes) * 1.1);
  EXPECT_LT(both, trips + bytes);
}

// Blocks that the memory core loads for one step after the other: clusters drift apart, so that a trip counts only
// where the port has no time left.
TEST(MappingTest, BlocksOfManyStepsWaitForNoTrip) {
  Layer layer = Conv();
  layer.channels = 1024;
  const Mapping m = {.across = 4, .block = 64, .weights_by_smem = true, .results_by_smem = true};
  const auto steps = [&](int64_t latency) {
    isa::Machine machine = TestMachine("mlu270");
    machine.Set("gmem.latency", latency);
    machine.Set("gmem.channel_bytes_per_kilocycle", 6400);
    const CardFacts card(machine);
    EXPECT_EQ(WhyNot(layer, card, m), "");
    for (const CostParts::PhaseOf& phase : CostOf(layer, card, m).Phases()) {
      if (phase.name == "steps") return phase.cycles();
    }
    return 0.0;
  };
  EXPECT_GT(steps(200), 0);
  EXPECT_EQ(steps(200), steps(400));
}

// With each part of the filters its part of the image: less is on chip, and the image crosses GMEM for each block.
TEST(MappingTest, PartsOfTheImage) {
  const CardFacts card(TestMachine("mlu370"));
  Layer product = Conv();
  product.rows = 512, product.columns = 1, product.channels = 4096;
  product.image_rows = {.whole = 512, .inside = 512}, product.image_columns = {};
  product.is_padded = false;
  product.element_bytes = 2;
  product.input_channels = 11008;
  product.filter_bytes = product.filter_pitch = 2 * 11008;
  product.parts = {{.count = 43, .bytes = 512, .pitch = 512, .channels = 256}};
  Mapping m = {.channel_clusters = 8, .block = 512, .parts = 43, .weights_by_smem = true};
  EXPECT_EQ(WhyNot(product, card, m), "parts = 43: filters have no such equal parts");
  m.image_in_parts = true;
  EXPECT_EQ(WhyNot(product, card, m), "");
  EXPECT_EQ(SharesOf(product, card, m).part_image_bytes, 128 * 512);
  EXPECT_EQ(SharesOf(product, card, m).steps, 43);
  product.image_rows.step = 3;
  EXPECT_EQ(SharesOf(product, card, m).part_image_bytes, (127 * 3 + 1) * 512);
  product.image_rows.step = 1;
  const double once = CostOf(product, card, m).cycles();
  m.block = 256;
  EXPECT_EQ(SharesOf(product, card, m).steps, 2 * 43);
  EXPECT_GT(CostOf(product, card, m).cycles(), once);
  // Whole in SMEM, which has no room for this one, each core's part on its way to NMEM.
  m.image_by_smem = true;
  EXPECT_THAT(WhyNot(product, card, m), HasSubstr("smem: "));
  product.image_rows.whole = product.image_rows.inside = product.rows = 64;
  EXPECT_EQ(WhyNot(product, card, m), "");
  m.image_by_smem = false, m.parts = 1;
  EXPECT_THAT(WhyNot(product, card, m), HasSubstr("expected parts of filters"));
}

// Channels of several pixels: runs of them are whole rows of these, pixels or parts of one.
TEST(MappingTest, RunsOfSubPixels) {
  const SubPixels all = {2, 2, 48};
  EXPECT_EQ(all.Run(192), all);
  EXPECT_EQ(all.Run(1000), all);
  EXPECT_EQ(all.Run(96), (SubPixels{1, 2, 48}));
  EXPECT_EQ(all.Run(48), (SubPixels{1, 1, 48}));
  EXPECT_EQ(all.Run(16), (SubPixels{1, 1, 16}));
  EXPECT_EQ(all.Run(64), std::nullopt);
  EXPECT_EQ(all.Run(144), std::nullopt);
  EXPECT_EQ((SubPixels{4, 3, 1}).Run(6), (SubPixels{2, 3, 1}));
}

// They meet in SMEM. What a cluster stores has a segment for each row of the result, or pixel, of which it has a part.
TEST(MappingTest, SubPixelsGoBySmem) {
  const CardFacts card(TestMachine("mlu370"));
  Layer layer = Conv();
  layer.channels = 4 * 64;
  Mapping m = {.across = 4};
  layer.sub_pixels = SubPixels{2, 2, 64};
  EXPECT_THAT(WhyNot(layer, card, m), HasSubstr("results_by_smem = 1 is needed"));
  m.results_by_smem = true;
  EXPECT_EQ(WhyNot(layer, card, m), "");
  layer.sub_pixels = SubPixels{2, 4, 32};
  EXPECT_EQ(WhyNot(layer, card, m), "");
  layer.sub_pixels = SubPixels{4, 4, 16};
  EXPECT_EQ(WhyNot(layer, card, m), "");
  layer.sub_pixels = SubPixels{8, 1, 32};
  EXPECT_EQ(WhyNot(layer, card, m), "");
  // Each of so many rows is a segment then, and waits.
  layer.sub_pixels = SubPixels{16, 1, 16};
  const double side_by_side = CostOf(layer, card, m).cycles();
  layer.rows_apart = true;
  EXPECT_GT(CostOf(layer, card, m).cycles(), side_by_side);
  layer.sub_pixels = SubPixels{16, 16, 1};
  m.block = 128, m.across = 1;
  EXPECT_EQ(WhyNot(layer, card, m), "");
  layer.channels = 4 * 48, layer.sub_pixels = SubPixels{2, 2, 48};
  m.block = 64, m.across = 2;
  EXPECT_THAT(WhyNot(layer, card, m), HasSubstr("expected whole rows, pixels or divisors"));
}

// The busiest part of a step binds it.
// A quarter of the input channels: what a cluster has of the sums that four clusters share.
TEST(MappingTest, PartsOfPixels) {
  Layer layer = Conv();
  layer.input_channels = 64, layer.pixel_channels = 256;
  layer.filter_bytes = layer.filter_pitch = 9 * 64;
  layer.parts = {{.count = 9, .bytes = 64, .pitch = 64}};
  const CardFacts card(TestMachine("mlu270", {"card.clusters=1"}));
  Mapping m = {.across = 4, .block = 64, .image_by_smem = true, .results_by_smem = true};
  EXPECT_THAT(WhyNot(layer, card, m), HasSubstr("filters come in parts, in one turn"));
  m.parts = 9;
  EXPECT_EQ(WhyNot(layer, card, m), "");
  // SMEM has whole pixels, of which a core takes its part.
  EXPECT_EQ(SharesOf(layer, card, m).cluster_loaded_bytes, 14 * 14 * 256);
  EXPECT_EQ(SharesOf(layer, card, m).core_image_bytes, 16 * 16 * 64);
  const double by_smem = CostOf(layer, card, m).cycles();
  // Each core loads each pixel's part as a segment: 196 of them, four under way.
  m.image_by_smem = false;
  const double by_cores = CostOf(layer, card, m).cycles();
  EXPECT_GT(by_cores - by_smem, 196 * card.latency / 4 - 14 * 14 * 256 / card.memory_core_port);
}

TEST(MappingTest, CostNamesWhatBinds) {
  isa::Machine machine = TestMachine("mlu270");
  machine.Set("card.clusters", 1);
  Layer layer = Conv();
  layer.channels = 1024;
  const Mapping m = {.across = 4, .image_by_smem = true, .results_by_smem = true};
  EXPECT_EQ(CostOf(layer, CardFacts(machine), m).Binds(), kTensorUnit);
  machine.Set("gmem.channel_bytes_per_kilocycle", 1600);
  EXPECT_EQ(CostOf(layer, CardFacts(machine), m).Binds(), kGmem);
}

TEST(SearchTest, FindsTheFirstOfAllMappingsAndBoundsAreBelow) {
  std::mt19937_64 random(7);
  int found = 0;
  int64_t costed = 0, all_mappings = 0;
  for (int i = 0; i < 100; ++i) {
    const Layer layer = RandomLayer(random);
    isa::Machine machine = TestMachine(i % 2 == 0 ? "mlu270" : "mlu370");
    machine.Set("card.clusters", 1 + static_cast<int64_t>(random() % 4));
    const CardFacts card(machine);
    const std::vector<Ranked> all = AllMappings(layer, card);
    const Found best = Search(layer, card);
    ASSERT_EQ(best.best.empty(), all.empty());
    costed += best.costed;
    all_mappings += static_cast<int64_t>(all.size());
    for (const Ranked& one : all) {
      EXPECT_LE(AtLeast(layer, card, one.mapping), one.cycles) << one.mapping.Text();
    }
    if (all.empty()) continue;
    ++found;
    EXPECT_EQ(best.best[0].mapping, all[0].mapping);
    EXPECT_EQ(best.best[0].cycles, all[0].cycles);
  }
  EXPECT_GT(found, 40);
  EXPECT_LT(costed, all_mappings);
}

std::vector<int64_t> Counts(int64_t clusters) {
  return ClusterCounts(WithClusters(isa::Machine(), clusters));
}

TEST(ClusterCounts, AreThoseOfSmallerCardsToo) {
  EXPECT_THAT(Counts(1), ElementsAre(1));
  EXPECT_THAT(Counts(3), ElementsAre(3, 2, 1));
  EXPECT_THAT(Counts(4), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(Counts(8), ElementsAre(8, 7, 6, 5, 4, 3, 2, 1));
  EXPECT_THAT(Counts(16), ElementsAre(16, 12, 8, 7, 6, 5, 4, 3, 2, 1));
  EXPECT_THAT(Counts(64), ElementsAre(64, 48, 32, 24, 16, 12, 8, 7, 6, 5, 4, 3, 2, 1));
}

}  // namespace
}  // namespace polynao::mapping
