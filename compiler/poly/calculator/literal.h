// Literals as isl objects: written in isl's notation, and read by isl.
#ifndef COMPILER_POLY_CALCULATOR_LITERAL_H_
#define COMPILER_POLY_CALCULATOR_LITERAL_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/poly/calculator/syntax.h"
#include "compiler/poly/isl/isl_handle.h"

namespace polynao::poly::calculator {

// One of the two is not null.
struct LiteralValue {
  IslUnionSet set;
  IslUnionMap map;
};

// The set or map that `literal` describes. A name that its tuple does not define is a symbolic
// constant (a parameter); where the literal declares its parameters, only those are. "{ }" is a
// set. Errors, at their place in `file`: sets among maps, a product of two variables, a divisor
// that is no positive constant, lists of different lengths; any error where isl's operations are spent.
absl::StatusOr<LiteralValue> BuildLiteral(isl_ctx* context, const Literal& literal,
                                          std::string_view file);

}  // namespace polynao::poly::calculator

#endif  // COMPILER_POLY_CALCULATOR_LITERAL_H_
