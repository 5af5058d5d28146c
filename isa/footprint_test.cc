// Merging of dimensions, against sets of bytes. Footprints of the built-in table are compared with
// what the meanings touch in instruction_set_test.
#include "isa/instruction_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/check.h"
#include "base/text.h"

namespace polynao::isa {
namespace {

constexpr uint64_t kSeed = 20240612;

std::unique_ptr<InstructionSet> Load(std::string_view function) {
  auto set = InstructionSet::Load(
      {{"t.nir", StrCat("@doc(\"d\") @opcode(1) @unit(vector) @cost(1) func op", function)}});
  POLYNAO_CHECK(set.ok()) << set.status().message();
  return *std::move(set);
}

TEST(Footprint, StridesOfAnySignAndOrderGiveTheSameBytes) {
  const auto set = Load(
      "(d: i16[1000] @nmem out, a: i64, b: i64, c: i64, p: i64, q: i64, r: i64, base: i64) {"
      "for (i: i64, 0, a) { for (j: i64, 1, b) { for (k: i64, 0, c) { "
      "d[i * p + j * q - k * r + base] = 0 } } } }");
  const Instruction& op = set->instructions()[0];
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE(StrCat("seed ", kSeed));
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<int64_t> v = {4096};
    for (int k = 0; k < 3; ++k) v.push_back(static_cast<int64_t>(random() % 5));
    for (int k = 0; k < 3; ++k) v.push_back(static_cast<int64_t>(random() % 25) - 12);
    v.push_back(100);
    std::set<int64_t> expected, found;
    for (int64_t i = 0; i < v[1]; ++i) {
      for (int64_t j = 1; j < 1 + v[2]; ++j) {
        for (int64_t k = 0; k < v[3]; ++k) {
          const int64_t at = 4096 + 2 * (i * v[4] + j * v[5] - k * v[6] + v[7]);
          expected.insert({at, at + 1});
        }
      }
    }
    const auto ranges = set->Footprint(op, v);
    ASSERT_EQ(ranges.size(), expected.empty() ? 0u : 1u);
    for (const ByteRanges& range : ranges) {
      range.ForEachRun([&](int64_t begin, int64_t size) {
        for (int64_t b = begin; b < begin + size; ++b) found.insert(b);
      });
      EXPECT_EQ(range.begin, *expected.begin());
      EXPECT_EQ(range.end(), *expected.rbegin() + 1);
    }
    ASSERT_EQ(found, expected) << ::testing::PrintToString(v);
  }
}

TEST(Footprint, SeveralAccessesOfOneOperandAreListedOnce) {
  const auto set = Load(
      "(d: i32[n] @nmem, s: i32[n + 1] @nmem in, n: i64) { for (i: i64, 0, n) { d[i] = 0 "
      "d[i] = d[i] + s[i] * s[i] + s[i + 1] } }");
  const auto ranges = set->Footprint(set->instructions()[0], {0, 4096, 8});
  // d written, d read, s from 0, s from 1.
  ASSERT_EQ(ranges.size(), 4u);
  EXPECT_EQ(ranges[0].byte_count(), 32);
}

TEST(Footprint, CountsOfRunsAndEmptyRanges) {
  const ByteRanges none{.space = Space::kNmem, .begin = 8, .run = 4, .dims = {{0, 16}}};
  EXPECT_EQ(none.byte_count(), 0);
  EXPECT_EQ(none.end(), 8);
  none.ForEachRun([](int64_t, int64_t) { FAIL() << "there is no run"; });
  const ByteRanges two{.space = Space::kNmem, .begin = 8, .run = 4, .dims = {{2, 100}, {3, 16}}};
  EXPECT_EQ(two.byte_count(), 24);
  EXPECT_EQ(two.end(), 8 + 100 + 32 + 4);
  std::vector<int64_t> begins;
  two.ForEachRun([&](int64_t begin, int64_t size) {
    begins.push_back(begin);
    EXPECT_EQ(size, 4);
  });
  EXPECT_EQ(begins, (std::vector<int64_t>{8, 24, 40, 108, 124, 140}));
}

}  // namespace
}  // namespace polynao::isa
