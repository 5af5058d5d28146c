#include "simulator/cycle_classes.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/fuzz.h"

namespace polynao::simulator {
namespace {

using ::testing::ElementsAre;

// The order of CycleClass: compute, DRAM rows, load, store, move, barrier, scalar, idle.
TEST(CycleClassesTest, TheFirstClassThatHoldsCounts) {
  CycleClasses core(0);
  const std::vector<ChannelStates> none;
  core.Change(CycleClasses::kMoving, 1, 10);
  core.Change(CycleClasses::kStoring, 1, 20);
  core.Change(CycleClasses::kLoading, 1, 30);
  core.Change(CycleClasses::kComputing, 1, 40);
  core.Change(CycleClasses::kComputing, -1, 50);
  core.Change(CycleClasses::kLoading, -1, 60);
  core.Change(CycleClasses::kStoring, -1, 70);
  core.Change(CycleClasses::kMoving, -1, 80);
  core.Change(CycleClasses::kWaiting, 1, 5);
  core.Change(CycleClasses::kWaiting, -1, 90);
  core.Change(CycleClasses::kAtBarrier, 1, 90);
  core.Change(CycleClasses::kAtBarrier, -1, 93);
  core.Change(CycleClasses::kHalted, 1, 95);
  // Scalar [0, 5) and [93, 95); idle [5, 10), [80, 90) and from 95 on.
  EXPECT_THAT(core.Finish(100, none), ElementsAre(10, 0, 20, 20, 20, 3, 7, 20));
}

TEST(CycleClassesTest, RowsCountWhileNoChannelMovesData) {
  CycleClasses core(2);
  std::vector<ChannelStates> channels(2);
  core.Change(CycleClasses::kLoading, 1, 0);
  core.ChangeBursts(0, 1, 10);
  core.ChangeBursts(1, 1, 10);
  core.ChangeBursts(0, -1, 50);
  core.ChangeBursts(1, -1, 60);
  channels[0].Set(5, DramState::kRows);  // no burst of the core is there yet
  channels[0].Set(20, DramState::kOther);
  channels[1].Set(15, DramState::kData);  // hides the rows of channel 0
  channels[1].Set(18, DramState::kOther);
  channels[1].Set(40, DramState::kRows);
  channels[0].Set(45, DramState::kData);  // counts until the core's burst has left
  channels[1].Set(100, DramState::kOther);
  // Rows: [10, 15), [18, 20), [40, 45), [50, 60).
  EXPECT_THAT(core.Finish(80, channels), ElementsAre(0, 22, 58, 0, 0, 0, 0, 0));
}

TEST(ChannelStatesTest, ReadersGoOnWhenThePastIsForgotten) {
  ChannelStates states;
  states.Set(10, DramState::kRows);
  states.Set(20, DramState::kData);
  states.Set(20, DramState::kOther);  // replaces it
  int64_t place = 0, other = 0;
  EXPECT_EQ(states.At(0, place).until, 10);
  EXPECT_EQ(states.At(12, place).state, DramState::kRows);
  states.Forget(19);
  EXPECT_EQ(states.At(19, other).state, DramState::kRows);
  EXPECT_EQ(states.At(19, other).until, 20);
  states.Set(30, DramState::kData);
  EXPECT_EQ(states.At(20, place).state, DramState::kOther);
  states.Forget(35);
  EXPECT_EQ(states.At(40, other).state, DramState::kData);
  EXPECT_EQ(states.At(50, place).state, DramState::kData);
}

// Counted in pieces as at once, and as a loop over cycles counts; whatever happens, they sum to the run's end.
TEST(CycleClassesTest, AgreesWithALoopOverCyclesOnRandomActivities) {
  const uint64_t seed = FuzzSeed();
  std::array<int64_t, kCycleClassCount> total{};
  for (int64_t i = 0; i < FuzzCases(300); ++i) {
    SCOPED_TRACE(testing::Message() << "POLYNAO_SEED=" << seed << ", case " << i);
    std::mt19937_64 random(seed * 1'000'003 + static_cast<uint64_t>(i));
    const int64_t cycles = 200;
    const auto draw = [&](int64_t below) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
    };
    constexpr int kChannels = 2;
    std::vector<ChannelStates> channels(kChannels);
    std::vector<std::vector<DramState>> states(kChannels);
    for (int c = 0; c < kChannels; ++c) {
      DramState state = DramState::kOther;
      for (int64_t t = 0; t < cycles; ++t) {
        if (draw(10) == 0) {
          state = static_cast<DramState>(draw(3));
          channels[static_cast<size_t>(c)].Set(t, state);
        }
        states[static_cast<size_t>(c)].push_back(state);
      }
    }
    struct Span {
      int what;
      int64_t begin, end;
    };
    std::vector<Span> spans;
    for (int64_t n = draw(20); n >= 0; --n) {
      const int64_t begin = draw(cycles);
      spans.push_back({static_cast<int>(draw(CycleClasses::kActivities + kChannels)), begin,
                       begin + 1 + draw(60)});
    }
    std::array<int64_t, kCycleClassCount> expected{};
    const int64_t end = draw(cycles);
    for (int64_t t = 0; t < end; ++t) {
      const auto is = [&](int what) {
        return std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
          return span.what == what && span.begin <= t && t < span.end;
        });
      };
      bool rows = false, data = false;
      for (int c = 0; c < kChannels; ++c) {
        if (!is(CycleClasses::kActivities + c)) continue;
        const DramState state = states[static_cast<size_t>(c)][static_cast<size_t>(t)];
        rows |= state == DramState::kRows;
        data |= state == DramState::kData;
      }
      const bool holds[] = {is(CycleClasses::kComputing),
                            rows && !data,
                            is(CycleClasses::kLoading),
                            is(CycleClasses::kStoring),
                            is(CycleClasses::kMoving),
                            is(CycleClasses::kAtBarrier),
                            !is(CycleClasses::kWaiting) && !is(CycleClasses::kHalted),
                            true};
      ++expected[static_cast<size_t>(std::find(holds, std::end(holds), true) - holds)];
    }
    // Each change becomes known some time before it happens; now and then cycles are counted.
    std::sort(spans.begin(), spans.end(),
              [](const Span& a, const Span& b) { return a.begin < b.begin; });
    CycleClasses core(kChannels);
    for (const Span& span : spans) {
      for (const auto& [delta, cycle] : {std::pair(1, span.begin), std::pair(-1, span.end)}) {
        if (span.what < CycleClasses::kActivities) {
          core.Change(static_cast<CycleClasses::Activity>(span.what), delta, cycle);
        } else {
          core.ChangeBursts(span.what - CycleClasses::kActivities, delta, cycle);
        }
      }
      // Where the run would end if nothing more were written is not after now; once it is `end`, it stays there.
      if (draw(2) == 0) core.Count(span.begin, std::min(end, span.begin), channels);
    }
    if (draw(2) == 0) core.Count(cycles, end, channels);
    const auto counted = core.Finish(end, channels);
    ASSERT_EQ(counted, expected);
    for (size_t c = 0; c < total.size(); ++c) total[c] += counted[c];
  }
  for (int64_t count : total) EXPECT_GT(count, 100);
}

}  // namespace
}  // namespace polynao::simulator
