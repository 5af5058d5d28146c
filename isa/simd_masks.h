// Masks of AVX512's vectors.
#ifndef ISA_SIMD_MASKS_H_
#define ISA_SIMD_MASKS_H_

#include <cstdint>

namespace polynao::isa {

// The first `left` of a vector's elements, or all. Masked loads at the end of a row: a short row is one step.
template <typename Mask>
Mask First(int64_t left) {
  constexpr int64_t kBits = 8 * sizeof(Mask);
  return left >= kBits ? static_cast<Mask>(~Mask{0}) : static_cast<Mask>((Mask{1} << left) - 1);
}

}  // namespace polynao::isa

#endif  // ISA_SIMD_MASKS_H_
