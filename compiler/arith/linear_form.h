// Canonical sums: constant + coefficient * atom + ..., where an atom is any integer expression that
// is no sum itself. Two sums are equal if their forms are, since equal atoms are one interned node.
#ifndef COMPILER_ARITH_LINEAR_FORM_H_
#define COMPILER_ARITH_LINEAR_FORM_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/ir.h"

namespace polynao::arith {

class LinearForm {
 public:
  struct Term {
    ir::Expr atom;
    int64_t coefficient;  // never 0, nor -2^63, which has no negative
    bool operator==(const Term&) const = default;
  };

  LinearForm() = default;
  static LinearForm Constant(int64_t value);
  static LinearForm Atom(ir::Expr atom, int64_t coefficient = 1);

  int64_t constant() const { return constant_; }
  // In order of the atoms' ids, each atom once.
  absl::Span<const Term> terms() const { return terms_; }
  bool IsConstant() const { return terms_.empty(); }
  // Returns true if this is `atom` alone.
  bool IsAtom(ir::Expr atom) const;
  // The coefficient of `atom`; 0 if it is absent.
  int64_t CoefficientOf(ir::Expr atom) const;
  // The greatest common divisor of all coefficients (not of the constant); 0 if there are none.
  int64_t CommonFactor() const;

  // *this += factor * other. False if a coefficient leaves int64_t or is -2^63; *this is then unspecified.
  [[nodiscard]] bool Add(const LinearForm& other, int64_t factor = 1);
  [[nodiscard]] bool AddTerm(ir::Expr atom, int64_t coefficient);
  [[nodiscard]] bool AddConstant(int64_t value);
  [[nodiscard]] bool Scale(int64_t factor);
  // The same form with coefficients reduced to the range of `type`: equal modulo 2^bits. With it
  // sums of a wrapping type can be formed term by term.
  LinearForm WrappedTo(ir::Type type) const;

  bool operator==(const LinearForm&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const LinearForm& form) {
    h = H::combine(std::move(h), form.constant_, form.terms_.size());
    for (const Term& term : form.terms_) h = H::combine(std::move(h), term.atom, term.coefficient);
    return h;
  }

 private:
  std::vector<Term> terms_;
  int64_t constant_ = 0;
};

// Sums of forms whose coefficients are known to stay in int64_t, as extents and strides of tensors do;
// they abort if one does not. Where values come from a program, use Add and Scale.
LinearForm operator+(LinearForm a, const LinearForm& b);
LinearForm operator-(LinearForm a, const LinearForm& b);
LinearForm operator*(LinearForm a, int64_t factor);

// The terms in the order in which they are printed: by `rank` of their atoms (a larger rank stands
// further right), then by id; the first one is positive if any is, so that `b - a` does not become
// `a * -1 + b`.
std::vector<LinearForm::Term> InPrintingOrder(const LinearForm& form,
                                              const std::function<uint64_t(ir::Expr)>& rank);

// `terms + constant` as an expression of `type`, left-associated: x * 4 + y - z - 1.
ir::Expr SumExpr(ir::Context& context, ir::Type type, absl::Span<const LinearForm::Term> terms,
                 int64_t constant);

}  // namespace polynao::arith

#endif  // COMPILER_ARITH_LINEAR_FORM_H_
