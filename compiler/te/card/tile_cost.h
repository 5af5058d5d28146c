// Estimates what tiles cost on a card: bytes on chip, cycles of copies and of the pipeline of loads, computation and
// stores.
#ifndef COMPILER_TE_CARD_TILE_COST_H_
#define COMPILER_TE_CARD_TILE_COST_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/type.h"
#include "compiler/mapping/card_facts.h"
#include "compiler/mapping/estimate.h"
#include "isa/machine.h"

namespace polynao::te {

// Bytes that a buffer of so many elements takes on chip, rounded up to the vector unit's groups.
int64_t OnChipBytes(int64_t elements, ir::Type type);

// How many cores start their copies at the same time and leave GMEM to wait out latencies; of more cores some drift
// apart. Chosen on 60 random tilings of each of 37 convolutions (mlu270), checked on 23 grouped ones.
inline constexpr double kCoresInStep = 5;
// Of more cores than those that this was chosen on it is the same part.
inline constexpr double kPartInStep = kCoresInStep / 16;

// A tile needs this: bytes of NMEM, where buffers that are loaded or stored count twice (one copy is computed while the
// other one is moved); bytes to and from GMEM and the number of their segments; cycles of the vector and the tensor
// unit.
struct TileNeeds {
  int64_t nmem_bytes = 0;
  int64_t moved_bytes = 0;
  int64_t load_segments = 1, store_segments = 1;
  double compute_cycles = 0;
  // Of these, the tensor unit's, and those of copies to WMEM; the others are the vector unit's.
  double tensor_cycles = 0, copy_cycles = 0;
  int64_t cores = 0;  // that have tiles; 0: all
};

// Cycles of one vector instruction on so many bytes of its widest operand.
double VectorCycles(const isa::Machine& m, int64_t bytes);
double VectorCycles(const mapping::CardFacts& card, int64_t bytes);
// What a core's tiles take, one after the other in three stages: load, compute, store. A simple model for ranking: a
// step takes as long as the slower of the units and the core's share of GMEM; between steps the core waits for its
// queues.
mapping::CostParts PipelinedParts(const mapping::CardFacts& card, int64_t tiles,
                                  const TileNeeds& needs);
inline mapping::CostParts PipelinedParts(const isa::Machine& m, int64_t tiles,
                                         const TileNeeds& needs) {
  return PipelinedParts(mapping::CardFacts(m), tiles, needs);
}

// The numbers that divide n, the smallest first.
std::vector<int64_t> Divisors(int64_t n);

// Sizes of tiles to try for a run of n: n, a half of it, a third, ..., then in larger steps, and 1.
std::vector<int64_t> Fractions(int64_t n);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_TILE_COST_H_
