// The instruction table fixes these figures for all rows of a unit. These are facts of the instruction set, not of a
// machine; granularity_test reads them off the table.
#ifndef ISA_GRANULARITY_H_
#define ISA_GRANULARITY_H_

#include <cstdint>

namespace polynao::isa {

// Vector instructions count elements in whole groups of this many: `count % 64 == 0`.
inline constexpr int64_t kVectorGroup = 64;

// Output channels that tensor instructions compute together. Each lane has a bank of WMEM for its weights:
// `weights: T[64, bank] @wmem`.
inline constexpr int64_t kTensorLanes = 64;

// Tensor instructions read images and weights from multiples of this many bytes: `&src[0] % 64 == 0`,
// `pitch * sizeof(T) % 64 == 0`.
inline constexpr int64_t kTensorUnitAlignment = 64;

}  // namespace polynao::isa

#endif  // ISA_GRANULARITY_H_
