// Loop IR expressions as affine functions and sets over the loop variables around them.
#ifndef COMPILER_POLY_MODEL_AFFINE_H_
#define COMPILER_POLY_MODEL_AFFINE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/isl/isl_tools.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// The index arithmetic of generated loops is i64 and must not overflow: constants beyond 2^40 are not affine, and
// parameters beyond, which only i64 ones and products can be, get the original code.
inline constexpr int kLargestBits = 40;

// `e`, an integer whose arithmetic does not wrap (an index, a bound, the side of a comparison), as an
// i64. What is below other operators keeps its type and is cast: i + 1 of i32 becomes
// cast(i64, i) + 1, and A[i] becomes cast(i64, A[i]). `wide` has i64s of terms that have one already.
ir::Expr Widen(ir::Expr e, const absl::flat_hash_map<ir::Expr, ir::Expr>& wide);

// `name` with "_" for what isl does not read in a name, and a number behind it if that is `taken`.
std::string IslName(std::string name, absl::FunctionRef<bool(const std::string&)> taken);

// Knows the loops around a place, and makes functions on their variables: { [i, j] -> [i + 2j + n] }.
//
// Affine are constants, variables, + and -, * by constants, / % and >> by constants, min, max, select on
// affine conditions, and casts that keep the value. Conditions: comparisons, && || !. An integer over
// outer variables alone that is not affine (n * m) becomes a parameter. Arithmetic of i32 and i64
// is mathematical, that of other types wraps and is not affine.
class AffineBuilder {
 public:
  // `outer`: the variables that do not change. Their types, and nothing else, bound them.
  AffineBuilder(std::shared_ptr<IslContext> isl, const absl::flat_hash_set<ir::Var>& outer)
      : isl_(std::move(isl)), outer_(outer) {}

  void PushLoop(ir::Var var);
  void PopLoop();
  const std::vector<ir::Var>& loops() const { return loops_; }

  // Nothing if `e` is not affine; then reason() has the term that is not.
  std::optional<isl::pw_aff> Value(ir::Expr e);
  std::optional<isl::set> Truth(ir::Expr e);
  std::string reason() const;

  // A value whose + - * may wrap (of a let), where the loops have values in `domain`: what has to hold
  // of the parameters so that it does not. Nothing if it is not affine.
  std::optional<isl::set> NeverWraps(ir::Expr e, const isl::set& domain, const isl::set& context);

  isl::set Universe();  // { [i, j] }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  // The values that the types of the parameters hold.
  isl::set ParameterRanges();

 private:
  std::optional<isl::pw_aff> Compute(ir::Expr e);
  std::optional<isl::pw_aff> Binary(ir::Expr e);
  std::optional<isl::pw_aff> ParameterValue(ir::Expr e);
  std::nullopt_t Fail(ir::Expr e);
  bool IsInvariant(ir::Expr e) const;
  isl::space Space() const;
  isl::pw_aff Constant(int64_t value);

  std::shared_ptr<IslContext> isl_;
  const absl::flat_hash_set<ir::Var>& outer_;
  std::vector<ir::Var> loops_;
  std::vector<Parameter> parameters_;
  absl::flat_hash_map<ir::Expr, size_t> parameter_of_;
  std::vector<ir::Expr> parameter_terms_;
  absl::flat_hash_map<ir::Expr, isl::pw_aff> values_;  // at these loops
  ir::Expr reason_;
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_MODEL_AFFINE_H_
