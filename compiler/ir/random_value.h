// Random values that depend on a seed and their place alone: the inputs of tests, of `nao run`, of
// `nao sim` and of `nao opt --check` all come from here.
#ifndef COMPILER_IR_RANDOM_VALUE_H_
#define COMPILER_IR_RANDOM_VALUE_H_

#include <cstdint>

#include "compiler/ir/type.h"

namespace polynao::ir {

// Number i + 1 of the generator splitmix64 that starts at `seed`. It depends on nothing else, so
// values can be made in any order.
inline uint64_t Splitmix(uint64_t seed, uint64_t i) {
  uint64_t bits = seed + (i + 1) * 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

// Which values of a type are drawn. A test that narrows them says why.
enum class Values : uint8_t {
  // All of them. Integers: all bits, small numbers, the least and the greatest, neighbours of powers
  // of two. Floats: full mantissas around 1, both zeros, subnormals, neighbours of powers of two,
  // and infinities, NaNs, the greatest values and any bit pattern. The last four end up in every
  // sum they are part of, so they are frequent among the first elements of a tensor (one in eight)
  // and rare behind (at element i, one in 8 + i / 16): long sums meet them and short ones, not all.
  kAll,
  // Without infinities, NaNs and values near overflow. For comparisons with a tolerance, where the
  // order of a sum may differ: (max + max) - max is infinite in one order and max in another.
  kFinite,
  // Integers of a few bits and multiples of 1/16 from -4 to 4. Products and sums of a few hundred of
  // them are exact in f32, sums of a few in f16, so that every order of a sum gives the same bits.
  kExact,
};

// From here on elements repeat, so that tensors of millions of elements take no time: a prime, since no loop's length
// should divide it. Behind the first period kAll is kFinite.
inline constexpr uint64_t kRandomPeriod = 65537;

// Element i of RandomTensor(type, shape, seed, values); the double is a value of `type`.
double RandomFloat(Type type, uint64_t seed, uint64_t i, Values values);
int64_t RandomInt(Type type, uint64_t seed, uint64_t i, Values values);

// Element i of a tensor of uniform values: floats of [-1, 1) that use all bits, whole numbers of
// -128 .. 127 (wrapped to the type), mostly true conditions.
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
