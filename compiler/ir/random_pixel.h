// Random images: the inputs of image pipelines, in tests, in runs and on GPU machines.
#ifndef COMPILER_IR_RANDOM_PIXEL_H_
#define COMPILER_IR_RANDOM_PIXEL_H_

#include <cstdint>

#include "compiler/ir/random_value.h"

namespace polynao::ir {

// Element i of an image: of floats of [0, 1), multiples of 2^-24; of integers from 0 to levels - 1.
inline double PixelFloat(uint64_t seed, uint64_t i) {
  return static_cast<double>(Splitmix(seed, i) >> 40) * 0x1p-24;
}
inline int64_t PixelInt(int64_t levels, uint64_t seed, uint64_t i) {
  return static_cast<int64_t>((Splitmix(seed, i) >> 40) % static_cast<uint64_t>(levels));
}

}  // namespace polynao::ir

#endif  // COMPILER_IR_RANDOM_PIXEL_H_
