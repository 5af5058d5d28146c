#include "compiler/poly/arrange/slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace polynao::poly {
namespace {

using ir::Type;
using testing::ElementsAre;

TEST(SlotsTest, ArraysOfOneTypeFollowEachOther) {
  const Slots slots = AssignSlots({
      {.type = Type::kF32, .elements = 10, .first = 0, .last = 1},
      {.type = Type::kF32, .elements = 8, .first = 1, .last = 2},  // the first one is still read
      {.type = Type::kI32, .elements = 9, .first = 2, .last = 3},  // of another type
      {.type = Type::kF32, .elements = 12, .first = 2, .last = 3},
      {.type = Type::kF32, .elements = 7, .first = 3, .last = 3},
  });
  EXPECT_THAT(slots.slot_of, ElementsAre(0, 1, 2, 0, 1));
  ASSERT_EQ(slots.slots.size(), 3);
  EXPECT_EQ(slots.slots[0].elements, 12);
  EXPECT_EQ(slots.slots[0].arrays, 2);
  EXPECT_EQ(slots.bytes(), 4 * (12 + 8 + 9));
}

TEST(SlotsTest, TheClosestSize) {
  const Slots slots = AssignSlots({
      {.type = Type::kF32, .elements = 100, .first = 0, .last = 0},
      {.type = Type::kF32, .elements = 10, .first = 0, .last = 0},
      {.type = Type::kF32, .elements = 12, .first = 1, .last = 1},
  });
  EXPECT_THAT(slots.slot_of, ElementsAre(0, 1, 1));
}

TEST(SlotsTest, MoreBytesThanThereAre) {
  EXPECT_EQ(AssignSlots({{.type = Type::kF64, .elements = INT64_MAX / 2}}).bytes(), INT64_MAX);
}

TEST(SlotsTest, NoTwoThatLiveAtOnce) {
  std::mt19937_64 random(1);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  for (int program = 0; program < 200; ++program) {
    std::vector<LivingArray> arrays;
    int phase = 0;
    for (int i = 0; i < 20; ++i) {
      phase += pick(3) == 0;
      arrays.push_back({.type = pick(2) == 0 ? Type::kF32 : Type::kU8,
                        .elements = pick(50),
                        .first = phase,
                        .last = phase + pick(4)});
    }
    const Slots slots = AssignSlots(arrays);
    for (size_t a = 0; a < arrays.size(); ++a) {
      const Slot& slot = slots.slots[static_cast<size_t>(slots.slot_of[a])];
      EXPECT_EQ(slot.type, arrays[a].type);
      EXPECT_GE(slot.elements, arrays[a].elements);
      for (size_t b = 0; b < a; ++b) {
        if (slots.slot_of[a] == slots.slot_of[b]) EXPECT_LT(arrays[b].last, arrays[a].first);
      }
    }
  }
}

}  // namespace
}  // namespace polynao::poly
