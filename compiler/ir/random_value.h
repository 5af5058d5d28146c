// Values that depend on a seed and their place alone, for all who make the inputs of a run.
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
  if (IsUnsigned(type)) return static_cast<int64_t>(bits % 16);
  return static_cast<int64_t>(bits % 33) - 16;
}

// Element i of a tensor of uniform values: floats of [-1, 1) that use all bits, whole numbers of
// -128 .. 127 (or what the type has of them), mostly true conditions.
inline double UniformFloat(uint64_t seed, uint64_t i) {
  return static_cast<double>(Splitmix(seed, i) >> 40) * 0x1p-23 - 1;
}
inline int64_t UniformInt(Type type, uint64_t seed, uint64_t i) {
  const uint64_t bits = Splitmix(seed, i);
  if (type == Type::kI1) return bits % 8 != 0 ? 1 : 0;
  return static_cast<int8_t>(bits >> 32);
}

}  // namespace polynao::ir

#endif  // COMPILER_IR_RANDOM_VALUE_H_
