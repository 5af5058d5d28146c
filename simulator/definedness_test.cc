#include "simulator/definedness.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "isa/test_operands.h"

namespace polynao::simulator {
namespace {

std::vector<IntervalSet::Interval> Spread(const isa::Flow& flow, const IntervalSet& defined) {
  IntervalSet undefined;
  SpreadUndefined(flow, defined, &undefined);
  std::vector<IntervalSet::Interval> result;
  undefined.ForEach([&](const IntervalSet::Interval& interval) { result.push_back(interval); });
  return result;
}

isa::Flow MakeFlow(int64_t read_bytes, int64_t write_bytes, std::vector<isa::Flow::Loop> loops) {
  return {.read_space = isa::Space::kNmem,
          .write_space = isa::Space::kNmem,
          .read_begin = 1000,
          .read_bytes = read_bytes,
          .write_begin = 5000,
          .write_bytes = write_bytes,
          .loops = std::move(loops)};
}

IntervalSet Bytes(std::vector<std::pair<int64_t, int64_t>> intervals) {
  IntervalSet set;
  for (const auto& [begin, end] : intervals) set.Add(begin, end);
  return set;
}

TEST(SpreadUndefined, ElementByElementAnyByteOfAnElement) {
  // f32 from i16, 100 of them; bytes 1021 to 1030 missing: elements 10 to 14.
  const isa::Flow flow = MakeFlow(2, 4, {{100, 2, 4}});
  EXPECT_EQ(Spread(flow, Bytes({{1000, 1021}, {1030, 1200}})),
            (std::vector<IntervalSet::Interval>{{5040, 5060, 0}}));
  EXPECT_TRUE(Spread(flow, Bytes({{1000, 1200}})).empty());
  EXPECT_TRUE(Spread(MakeFlow(2, 4, {{0, 2, 4}}), Bytes({})).empty());
}

TEST(SpreadUndefined, AReductionIsOneResult) {
  // Three rows of 8 bytes; the second lacks one.
  const isa::Flow flow = MakeFlow(1, 4, {{3, 16, 4}, {8, 1, 0}});
  EXPECT_EQ(Spread(flow, Bytes({{1000, 1019}, {1020, 1100}})),
            (std::vector<IntervalSet::Interval>{{5004, 5008, 0}}));
  // The instruction does not read the bytes between the rows.
  EXPECT_TRUE(Spread(flow, Bytes({{1000, 1008}, {1016, 1024}, {1032, 1040}})).empty());
}

TEST(SpreadUndefined, FiltersAreChannelsOfEveryPixel) {
  // 4 pixels of 8 channels (i32); a filter of 6 bytes each, 16 apart; filters 2 and 3 are missing.
  const isa::Flow flow = MakeFlow(1, 4, {{4, 0, 32}, {8, 16, 4}, {6, 1, 0}});
  EXPECT_EQ(Spread(flow, Bytes({{1000, 1033}, {1064, 1200}})),
            (std::vector<IntervalSet::Interval>{
                {5008, 5016, 0}, {5040, 5048, 0}, {5072, 5080, 0}, {5104, 5112, 0}}));
}

TEST(SpreadUndefined, AgreesWithWalkingEveryIteration) {
  const uint32_t seed = 77;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  int some = 0, defined_results = 0;
  for (int round = 0; round < 3000; ++round) {
    isa::Flow flow = MakeFlow(1 << pick(3), 1 << pick(3), {});
    for (int64_t depth = pick(5); depth > 0; --depth) {
      flow.loops.push_back({pick(20) == 0 ? 0 : 1 + pick(5),
                            pick(3) * (pick(25) - 12) * flow.read_bytes,
                            pick(3) * (pick(25) - 12) * flow.write_bytes});
    }
    IntervalSet defined;
    for (int64_t i = pick(12); i > 0; --i) {
      const int64_t begin = 500 + pick(1000);
      defined.Add(begin, begin + pick(500));
    }
    std::set<int64_t> expected, found;
    std::vector<int64_t> index(flow.loops.size(), 0);
    bool more = true;
    for (const isa::Flow::Loop& loop : flow.loops) more &= loop.count > 0;
    while (more) {
      int64_t read = flow.read_begin, write = flow.write_begin;
      for (size_t k = 0; k < index.size(); ++k) {
        read += index[k] * flow.loops[k].read_stride;
        write += index[k] * flow.loops[k].write_stride;
      }
      defined_results += defined.Contains(read, read + flow.read_bytes);
      if (!defined.Contains(read, read + flow.read_bytes)) {
        for (int64_t b = 0; b < flow.write_bytes; ++b) expected.insert(write + b);
      }
      more = false;
      for (size_t k = index.size(); k-- > 0 && !more;) {
        more = ++index[k] < flow.loops[k].count;
        if (!more) index[k] = 0;
      }
    }
    for (const IntervalSet::Interval& interval : Spread(flow, defined)) {
      for (int64_t b = interval.begin; b < interval.end; ++b) found.insert(b);
    }
    ASSERT_EQ(found, expected) << "round " << round;
    some += !expected.empty();
  }
  EXPECT_GT(some, 1000);
  EXPECT_GT(defined_results, 1000);
}

// Changing bytes that count as undefined changes no result that counts as defined, whatever the
// instruction.
TEST(SpreadUndefined, CoversAllThatChanges) {
  constexpr int64_t kBytes = 1 << 14;
  const uint64_t seed = 4711;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const isa::InstructionSet& set = isa::DianNao();
  for (const isa::Instruction& instruction : set.instructions()) {
    if (instruction.queue != isa::Queue::kCompute) continue;
    for (int round = 0; round < 3; ++round) {
      const auto values = isa::RandomOperands(set, instruction, kBytes, random);
      ASSERT_TRUE(values) << instruction.mnemonic;
      SCOPED_TRACE(isa::DescribeOperands(instruction, *values));
      const auto flows = set.Flows(instruction, *values);
      ASSERT_TRUE(flows);
      isa::TestMachine first(kBytes);
      isa::FillOperands(set, instruction, *values, &first, random);
      isa::TestMachine second = first;
      std::array<IntervalSet, isa::kSpaceCount> defined, undefined;
      for (IntervalSet& all : defined) all.Add(0, kBytes);
      for (const isa::ByteRanges& range : set.Footprint(instruction, *values)) {
        if (range.is_write || range.byte_count() == 0) continue;
        const int64_t begin =
            range.begin + static_cast<int64_t>(random() % (range.end() - range.begin));
        const int64_t end = std::min<int64_t>(range.end(), begin + 1 + random() % 100);
        const size_t space = static_cast<size_t>(range.space);
        defined[space].Remove(begin, end);
        for (int64_t b = begin; b < end; ++b) {
          second.memory[space][static_cast<size_t>(b)] = static_cast<uint8_t>(random());
        }
      }
      for (const isa::Flow& flow : *flows) {
        SpreadUndefined(flow, defined[static_cast<size_t>(flow.read_space)],
                        &undefined[static_cast<size_t>(flow.write_space)]);
      }
      std::vector<int64_t> written(values->size());
      for (isa::TestMachine* machine : {&first, &second}) {
        ASSERT_TRUE(
            set.Execute(instruction, *values, machine->View(), absl::MakeSpan(written)).ok());
        isa::UnifyNans(set, instruction, *values, machine);
      }
      for (const isa::ByteRanges& range : set.Footprint(instruction, *values)) {
        if (!range.is_write) continue;
        const size_t space = static_cast<size_t>(range.space);
        range.ForEachRun([&](int64_t begin, int64_t size) {
          for (int64_t b = begin; b < begin + size; ++b) {
            if (undefined[space].Contains(b, b + 1)) continue;
            ASSERT_EQ(first.memory[space][static_cast<size_t>(b)],
                      second.memory[space][static_cast<size_t>(b)])
                << "byte " << b;
          }
        });
      }
    }
  }
}

}  // namespace
}  // namespace polynao::simulator
