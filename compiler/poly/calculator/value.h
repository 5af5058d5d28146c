// The values of the calculator, and what it does with them. Where isl fails, all of this throws isl::exception.
#ifndef COMPILER_POLY_CALCULATOR_VALUE_H_
#define COMPILER_POLY_CALCULATOR_VALUE_H_

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/poly/calculator/syntax.h"
#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly::calculator {

// How a value relates to what its expression means: transitive closures can be too large.
enum class Exactness { kUsual, kExactClosure, kOverApproximation };

struct Value {
  // A truth value, a number, a set, a map, a piecewise quasi-affine function, a piecewise
  // quasi-polynomial (a count), or text.
  std::variant<bool, isl::val, isl::union_set, isl::union_map, isl::union_pw_multi_aff,
               IslUnionQuasiPolynomial, std::string>
      data;
  Exactness exactness = Exactness::kUsual;
  // A literal that the value comes of has a '/', which rounds down, outside of floor() and ceil().
  bool has_floor_division = false;

  template <typename T>
  const T* As() const {
    return std::get_if<T>(&data);
  }
};

// Where an operation stands; makes its errors.
struct Site {
  const IslContext& isl;
  std::string_view file;
  Place place;

  absl::Status Error(std::string_view expected, std::string_view found) const {
    return ErrorAt(file, place, expected, found);
  }
  // Returns the error that isl's failure means: most often, that the operations allowed are spent (ResourceExhausted).
  absl::Status Failed(const isl::exception* error = nullptr) const;
};

// Of digits with a sign: "-12".
isl::val ReadNumber(const IslContext& isl, const std::string& text);

// "a set", "a number", ...
std::string KindOf(const Value& value);
// Empty where isl's operations are spent.
std::string ToText(const Value& value);

// The spaces of a set, map or function as text, sorted: "{ S[i, j] }". At most `most`, then "...".
std::string SpacesOf(const Value& value, int most = 3);
// Returns true if some set (map) of `a` is in the space of one of `b`, or one of them is empty.
bool ShareSpace(const Value& a, const Value& b);

// The set or map that `literal` describes. A name that its tuple does not define is a symbolic
// constant (a parameter); where the literal declares its parameters, only those are. "{ }" is a
// set. Errors, at their place: sets among maps, a product of two variables, a divisor that is no
// positive constant, lists of different lengths.
absl::StatusOr<Value> BuildLiteral(const Site& site, const Literal& literal);
absl::StatusOr<Value> ApplyBinary(const Site& site, const std::string& mark, const Value& a,
                                  const Value& b);
absl::StatusOr<Value> ApplyPower(const Site& site, const std::string& power, const Value& a);
absl::StatusOr<Value> ApplyNegate(const Site& site, const Value& a);
// a(b).
absl::StatusOr<Value> ApplyTo(const Site& site, const Value& a, const Value& b);
absl::StatusOr<Value> Call(const Site& site, const std::string& function,
                           const std::vector<Value>& operands,
                           const std::vector<Expression::Argument>& arguments);

}  // namespace polynao::poly::calculator

#endif  // COMPILER_POLY_CALCULATOR_VALUE_H_
