#include "simulator/access_checker.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simulator/testing.h"

namespace polynao::simulator {
namespace {

using ::testing::HasSubstr;
using CoreId = AccessChecker::CoreId;

constexpr int64_t kBase = 4096;

isa::ByteRanges Range(isa::Space space, bool is_write, int64_t begin, int64_t run,
                      std::vector<std::pair<int64_t, int64_t>> dims = {}) {
  isa::ByteRanges range;
  range.space = space;
  range.is_write = is_write;
  range.begin = begin;
  range.run = run;
  range.dims = std::move(dims);
  return range;
}

isa::ByteRanges Reads(isa::Space space, int64_t begin, int64_t run) {
  return Range(space, false, begin, run);
}
isa::ByteRanges Writes(isa::Space space, int64_t begin, int64_t run) {
  return Range(space, true, begin, run);
}

// Two clusters of two cores and one tensor of 4096 bytes.
class AccessCheckerTest : public ::testing::Test {
 protected:
  AccessCheckerTest()
      : machine_(TestMachine("unit")),
        checker_(machine_, isa::DianNao(), {{"t", kBase, 4096, ir::Access::kInOut}}, {},
                 [](int64_t pc) { return absl::StrCat("at ", pc); }) {}

  // Issues an asynchronous copy by the IO-DMA or the Move-DMA.
  absl::Status Io(CoreId core, int64_t pc, std::vector<isa::ByteRanges> ranges) {
    return checker_.Issue(core, *isa::DianNao().Find("memcpy.i8.nmem.gmem.async"), pc, {}, ranges);
  }
  absl::Status Move(CoreId core, int64_t pc, std::vector<isa::ByteRanges> ranges) {
    return checker_.Issue(core, *isa::DianNao().Find("memcpy.i8.nmem.smem.async"), pc, {}, ranges);
  }

  static constexpr CoreId k00{0, 0};
  static constexpr CoreId k01{0, 1};
  static constexpr CoreId k10{1, 0};
  isa::Machine machine_;
  AccessChecker checker_;
};

#define EXPECT_OK(expression) EXPECT_EQ((expression), absl::OkStatus())
#define EXPECT_HAZARD(expression, text) \
  EXPECT_THAT(std::string((expression).message()), HasSubstr(text))

TEST_F(AccessCheckerTest, ADrainOrdersOneQueueOnly) {
  EXPECT_OK(Io(k00, 1, {Writes(isa::Space::kNmem, 0, 64)}));
  checker_.Drain(k00, isa::Queue::kMove);
  EXPECT_HAZARD(Move(k00, 2, {Reads(isa::Space::kNmem, 63, 1)}), "byte 63 of NMEM");
  checker_.Drain(k00, isa::Queue::kIo);
  EXPECT_OK(Move(k00, 2, {Reads(isa::Space::kNmem, 63, 1)}));
}

TEST_F(AccessCheckerTest, NmemIsEachCoresOwn) {
  EXPECT_OK(Io(k00, 1, {Writes(isa::Space::kNmem, 0, 64)}));
  EXPECT_OK(Move(k01, 2, {Writes(isa::Space::kNmem, 0, 64)}));
}

TEST_F(AccessCheckerTest, SmemIsEachClustersOwn) {
  EXPECT_OK(Move(k00, 1, {Writes(isa::Space::kSmem, 0, 64)}));
  EXPECT_OK(Move(k10, 2, {Writes(isa::Space::kSmem, 0, 64)}));
  EXPECT_HAZARD(Move(k01, 3, {Writes(isa::Space::kSmem, 0, 64)}),
                "cluster 0 core 0 writes at pc 1 \"at 1\"");
}

TEST_F(AccessCheckerTest, ABarrierOrdersWhatWasDrained) {
  EXPECT_OK(Move(k00, 1, {Writes(isa::Space::kSmem, 0, 64)}));
  checker_.ClusterBarrier(0);
  // Still in its queue.
  EXPECT_HAZARD(Move(k01, 2, {Reads(isa::Space::kSmem, 0, 64)}), "hazard");
  checker_.Drain(k00, isa::Queue::kMove);
  EXPECT_HAZARD(Move(k01, 2, {Reads(isa::Space::kSmem, 0, 64)}), "hazard");
  checker_.ClusterBarrier(0);
  EXPECT_OK(Move(k01, 2, {Reads(isa::Space::kSmem, 0, 64)}));
}

TEST_F(AccessCheckerTest, OnlyTheCardsBarrierOrdersClustersInGmem) {
  EXPECT_OK(Io(k00, 1, {Writes(isa::Space::kGmem, kBase, 64)}));
  checker_.Drain(k00, isa::Queue::kIo);
  checker_.ClusterBarrier(0);
  checker_.ClusterBarrier(1);
  EXPECT_OK(Io(k01, 2, {Reads(isa::Space::kGmem, kBase, 64)}));
  EXPECT_HAZARD(Io(k10, 3, {Reads(isa::Space::kGmem, kBase, 64)}), "no barrier of the card");
  checker_.GlobalBarrier();
  EXPECT_OK(Io(k10, 3, {Reads(isa::Space::kGmem, kBase, 64)}));
  // Of the reads since then, too: another core may not write.
  EXPECT_HAZARD(Io(k01, 4, {Writes(isa::Space::kGmem, kBase + 10, 1)}), "reads at pc 3");
}

TEST_F(AccessCheckerTest, ManySegmentsAreComparedExactly) {
  // Columns of a matrix: interleaved, they do not meet.
  const auto column = [](bool is_write, int64_t c) {
    return Range(isa::Space::kGmem, is_write, kBase + 64 * c, 64, {{8, 256}});
  };
  EXPECT_OK(Io(k00, 1, {column(true, 0)}));
  EXPECT_OK(Io(k01, 2, {column(true, 1)}));
  EXPECT_OK(Io(k10, 3, {column(true, 2)}));
  EXPECT_HAZARD(Io(k10, 4, {column(false, 1)}), absl::StrCat("byte ", kBase + 64));
}

TEST_F(AccessCheckerTest, RegionsEndWhereTheyEnd) {
  EXPECT_OK(Io(k00, 1, {Reads(isa::Space::kGmem, kBase + 4095, 1)}));
  EXPECT_HAZARD(Io(k00, 1, {Reads(isa::Space::kGmem, kBase + 4095, 2)}), "beyond tensor t");
  EXPECT_HAZARD(Io(k00, 1, {Reads(isa::Space::kGmem, kBase - 1, 2)}), "which start in no tensor");
  EXPECT_HAZARD(Io(k00, 1, {Range(isa::Space::kGmem, false, kBase, 1, {{2, -1}})}),
                "which start in no tensor");
  // An empty range lies in every memory.
  EXPECT_OK(Io(k00, 1, {Reads(isa::Space::kGmem, -5, 0)}));
}

TEST_F(AccessCheckerTest, UnwrittenOutputsAreCounted) {
  AccessChecker checker(machine_, isa::DianNao(),
                        {{"in", 0, 100, ir::Access::kIn},
                         {"out", 1000, 100, ir::Access::kOut},
                         {"full", 2000, 10, ir::Access::kOut}},
                        {}, [](int64_t) { return std::string(); });
  const isa::Instruction& store = *isa::DianNao().Find("store.i8.gmem");
  for (int i = 0; i < 10; ++i) {
    EXPECT_OK(checker.Issue(k00, store, 0, {}, {Writes(isa::Space::kGmem, 1010 + 2 * i, 1)}));
    EXPECT_OK(checker.Issue(k00, store, 0, {}, {Writes(isa::Space::kGmem, 2000 + i, 1)}));
  }
  EXPECT_THAT(checker.Unwritten(), testing::ElementsAre(testing::Pair("out", 90)));
}

}  // namespace
}  // namespace polynao::simulator
