// The pure intrinsics: functions of floats without effects, which never stop a program.
//
// All arguments and the result have one float type. The value is what `evaluation` gives in f64 for
// the arguments x (and y), rounded once to that type. docs/ir.md has the list for readers.
#ifndef COMPILER_IR_INTRINSICS_H_
#define COMPILER_IR_INTRINSICS_H_

#include <string_view>

#include "absl/types/span.h"

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
  V(pow, 2, kLibrary, std::pow(x, y))

enum class Accuracy { kExact, kLibrary };

struct PureIntrinsic {
  std::string_view name;
  int arity;
  Accuracy accuracy;
  // The value in f64, before it is rounded to the intrinsic's type. Ignores `y` if the arity is 1.
  double (*evaluate)(double x, double y);
};

// All of them, in the order of the list.
absl::Span<const PureIntrinsic> PureIntrinsics();

// The one named `name`, or null.
const PureIntrinsic* FindPureIntrinsic(std::string_view name);

}  // namespace polynao::ir

#endif  // COMPILER_IR_INTRINSICS_H_
