// The pure intrinsics: functions of floats without effects, which never stop a program.
//
// All arguments and the result have one float type. The value is what `evaluation` gives in f64 for
// the arguments x (y, z), rounded once to that type. docs/ir.md has the list for readers.
#ifndef COMPILER_IR_INTRINSICS_H_
#define COMPILER_IR_INTRINSICS_H_

#include <string_view>

#include "absl/types/span.h"
#include "compiler/ir/type.h"

namespace polynao::ir {

// V(name, arity, accuracy, evaluation)
//
// kExact: every target gives the correctly rounded value, by one or a few instructions. kLibrary: a
// library of mathematics computes it, whose last bits differ from target to target.
#define POLYNAO_PURE_INTRINSICS(V)                                          \
  V(exp, 1, kLibrary, std::exp(x))                                          \
  V(log, 1, kLibrary, std::log(x))                                          \
  V(sqrt, 1, kExact, std::sqrt(x))                                          \
  V(rsqrt, 1, kLibrary, 1 / std::sqrt(x))                                   \
  V(tanh, 1, kLibrary, std::tanh(x))                                        \
  V(sigmoid, 1, kLibrary, 1 / (1 + std::exp(-x)))                           \
  V(sin, 1, kLibrary, std::sin(x))                                          \
  V(cos, 1, kLibrary, std::cos(x))                                          \
  V(abs, 1, kExact, std::abs(x))                                            \
  V(floor, 1, kExact, std::floor(x))                                        \
  V(ceil, 1, kExact, std::ceil(x))                                          \
  V(round, 1, kExact, std::nearbyint(x)) /* halves to the even neighbour */ \
  V(pow, 2, kLibrary, std::pow(x, y))                                       \
  V(fma, 3, kExact, FusedMultiplyAdd(type, x, y, z)) /* x * y + z, rounded once */

enum class Accuracy { kExact, kLibrary };

struct PureIntrinsic {
  std::string_view name;
  int arity;
  Accuracy accuracy;
  // The value in f64, before it is rounded to the intrinsic's type. Ignores arguments beyond the arity.
  double (*evaluate)(Type type, double x, double y, double z);
};

// x * y + z of values of `type`, in f64, so that rounding it to `type` gives what one rounding of the exact value does.
//
// f64: std::fma. Of narrower types the product is exact in f64, and the sum is rounded to odd: if it is not exact, its
// last bit is 1. No value halfway between two of the narrower type ends in such a bit, so that the second rounding sees
// on which side of it the exact sum is. (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", IEEE
// Transactions on Computers 57(4), 2008.)
double FusedMultiplyAdd(Type type, double x, double y, double z);

// All of them, in the order of the list.
absl::Span<const PureIntrinsic> PureIntrinsics();

// The one named `name`, or null.
const PureIntrinsic* FindPureIntrinsic(std::string_view name);

// Whether code for a processor may compute it in the lanes of vectors, of values of `type`: by arithmetic alone,
// without a call. False of f64 for functions that a library computes, and of types narrower than f32 for fma, whose one
// rounding takes some twenty operations of f64.
bool HasVectorForm(const PureIntrinsic& intrinsic, Type type);

}  // namespace polynao::ir

#endif  // COMPILER_IR_INTRINSICS_H_
