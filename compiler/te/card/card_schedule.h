// The schedules that a group of computes has on a card.
#ifndef COMPILER_TE_CARD_CARD_SCHEDULE_H_
#define COMPILER_TE_CARD_CARD_SCHEDULE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "base/text.h"
#include "compiler/mapping/sub_pixels.h"
#include "compiler/te/card/tile_cost.h"
#include "isa/machine.h"

namespace polynao::te {

// Sizes and orders by name: {"tile", 4096}.
using CardChoice = std::map<std::string, int64_t, std::less<>>;

struct CardSchedule {
  CardChoice choice;
  double cycles = 0;  // by the cost model, which ranks schedules and predicts no cycles
};

// Returns true if `a` is cheaper; of equals the one whose choice is smaller.
inline bool IsBefore(const CardSchedule& a, const CardSchedule& b) {
  return std::tie(a.cycles, a.choice) < std::tie(b.cycles, b.choice);
}

// "tile=4096".
inline std::string ChoiceText(const CardChoice& choice) {
  std::string text;
  for (const auto& [name, value] : choice)
    StrAppend(&text, text.empty() ? "" : " ", name, "=", value);
  return text;
}

// "smem: 70000 bytes of 65536 with tile=4096".
inline std::string DoesNotFit(std::string_view memory, int64_t needed, int64_t has,
                              const CardChoice& choice) {
  return StrCat(memory, ": ", needed, " bytes of ", has, " with ", ChoiceText(choice));
}

// Returns true if `choice` has all choices of `wanted`.
inline bool Agrees(const CardChoice& choice, const CardChoice& wanted) {
  return std::includes(choice.begin(), choice.end(), wanted.begin(), wanted.end());
}

// Where results of a contraction go whose channels are those of several pixels (sub_pixel_graph.h): the result's row
// q * of_pixel.rows + a - rows_before for row q and row a of the pixel's, if it has that; columns alike.
struct SubPixelPlaces {
  mapping::SubPixels of_pixel;
  int64_t rows_before = 0, columns_before = 0;
  int64_t rows = 0, columns = 0;  // of the result
};

// A group may do this with each tile besides: column sums (column_sums.h).
struct TileExtras {
  int sums = 0;           // of f32; each has a tile of them
  int values = 0;         // that are computed for them, a tile each
  bool is_stored = true;  // the group's own output
  // Of a contraction: the output is stored in blocks of 64 channels, [channels / 64][rows][columns][64]
  // (channel_blocks.h).
  bool in_blocks = false;
  // Of a contraction: more than 1, the output is [sum_parts][rows][columns][channels], sums over a part of the input
  // channels each, by clusters of its own (shared_sums.h).
  int64_t sum_parts = 1;

  // Of a contraction: its output is stored as such a result.
  std::optional<SubPixelPlaces> sub_pixels = std::nullopt;

  bool any() const { return sums > 0; }
  // Cycles in which a core adds the rows of its tiles of sums.
  double RowCycles(const isa::Machine& m, int64_t pixels, int64_t channels) const {
    return static_cast<double>(sums * pixels) *
           VectorCycles(m, channels * ir::ByteSize(ir::Type::kF32));
  }
};

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_CARD_SCHEDULE_H_
