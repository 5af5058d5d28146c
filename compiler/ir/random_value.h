// The values that RandomTensor puts into a tensor, for those who make them elsewhere.
#ifndef COMPILER_IR_RANDOM_VALUE_H_
#define COMPILER_IR_RANDOM_VALUE_H_

#include <cstdint>

#include "compiler/ir/type.h"

namespace polynao::ir {

// Number i + 1 of the generator splitmix64 that starts at `seed`: it depends on nothing else, so
// that values can be made in any order.
inline uint64_t Splitmix(uint64_t seed, uint64_t i) {
  uint64_t bits = seed + (i + 1) * 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

// Element i of RandomTensor(type, shape, seed), of a float or an integer type.
inline double RandomFloat(uint64_t seed, uint64_t i) {
  return (static_cast<int>(Splitmix(seed, i) % 129) - 64) / 16.0;
}
inline int64_t RandomInt(Type type, uint64_t seed, uint64_t i) {
  const uint64_t bits = Splitmix(seed, i);
  if (type == Type::kU8 || type == Type::kI1) return static_cast<int64_t>(bits % 16);
  return static_cast<int64_t>(bits % 33) - 16;
}

}  // namespace polynao::ir

#endif  // COMPILER_IR_RANDOM_VALUE_H_
