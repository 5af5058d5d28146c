// Quasi-polynomials: polynomials over integer variables and over floors of affine forms of them,
// with exact rational coefficients. The algebra that symbolic counting (count.h) computes in.
//
//   1/2*n*n - n*floor(n/2)       variables {0: n}, one floor
//
// Variables are numbers that the user of this file chooses. A floor's numerator is affine in
// variables only: floors do not nest.
#ifndef COMPILER_POLY_CALCULATOR_COUNT_POLYNOMIAL_H_
#define COMPILER_POLY_CALCULATOR_COUNT_POLYNOMIAL_H_

#include <gmpxx.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace polynao::poly {

using Integer = mpz_class;
using Rational = mpq_class;

// Greatest integer at most a/b, for b > 0.
Integer FloorDiv(const Integer& a, const Integer& b);

// coefficients . variables + constant. No coefficient is 0.
struct IntegerForm {
  std::map<int, Integer> coefficients;
  Integer constant = 0;

  Integer CoefficientOf(int variable) const;
  void Add(int variable, const Integer& coefficient);
  // this += factor * other.
  void Add(const IntegerForm& other, const Integer& factor);
  // The form in which `variable` is replaced by numerator / denominator, times the denominator.
  // Without the variable, the form itself (not multiplied).
  IntegerForm Substituted(int variable, const IntegerForm& numerator,
                          const Integer& denominator) const;
  bool operator<(const IntegerForm& other) const;
};

// floor(numerator / denominator), reduced: 0 <= each coefficient and the constant < denominator,
// no common divisor, at least one variable. One number has one such floor and one integral form
// beside it, so equal floors meet in one term.
struct FloorTerm {
  IntegerForm numerator;
  Integer denominator;
  bool operator<(const FloorTerm& other) const;
};

// The floors of a computation, each with a number.
class FloorTable {
 public:
  int Number(const FloorTerm& floor);
  const FloorTerm& operator[](int number) const { return *by_number_[number]; }

 private:
  std::map<FloorTerm, int> numbers_;
  std::vector<const FloorTerm*> by_number_;
};

class QuasiPolynomial {
 public:
  // Variables have their number, floor number k is ~k. The exponents are positive.
  using Monomial = std::vector<std::pair<int, int>>;  // sorted by factor

  QuasiPolynomial() = default;  // 0
  explicit QuasiPolynomial(const Rational& constant);
  // form / denominator, as a rational number.
  static QuasiPolynomial Quotient(const IntegerForm& form, const Integer& denominator);
  // floor(form / denominator), denominator > 0.
  static QuasiPolynomial Floor(const IntegerForm& form, const Integer& denominator,
                               FloorTable& floors);

  const std::map<Monomial, Rational>& terms() const { return terms_; }
  // Returns true if this, or a polynomial that it was made from, had more than kMaxTerms terms;
  // then it means nothing.
  bool IsTooLarge() const { return is_too_large_; }
  bool IsZero() const { return terms_.empty() && !is_too_large_; }
  bool operator==(const QuasiPolynomial& other) const {
    return is_too_large_ == other.is_too_large_ && terms_ == other.terms_;
  }

  void Add(const QuasiPolynomial& other, const Rational& factor = 1);
  QuasiPolynomial Times(const QuasiPolynomial& other) const;

  // The coefficients of variable^0, variable^1, ...; no floor may contain the variable.
  std::vector<QuasiPolynomial> CoefficientsOf(int variable) const;
  // The floors (numbers) whose numerators have the variable.
  std::set<int> FloorsWith(int variable, const FloorTable& floors) const;
  // The variable replaced by numerator / denominator, denominator > 0, everywhere. The quotient
  // must be an integer wherever the polynomial is used.
  QuasiPolynomial Substituted(int variable, const IntegerForm& numerator,
                              const Integer& denominator, FloorTable& floors) const;
  // The factor (a variable, or ~number of a floor) replaced by the polynomial.
  QuasiPolynomial Replaced(const std::map<int, QuasiPolynomial>& replacements) const;

 private:
  // Products of sums grow without end otherwise; a count of that size is of no use.
  static constexpr size_t kMaxTerms = 5000;

  void AddTerm(Monomial monomial, const Rational& coefficient);
  void BecomeTooLarge();

  std::map<Monomial, Rational> terms_;
  bool is_too_large_ = false;
};

// The polynomial S with S(n) = 0^k + 1^k + ... + n^k for n >= 0, as coefficients of n^0, n^1, ...
// (Faulhaber's formula). S(b) - S(a - 1) is the sum of x^k over a <= x <= b for all integers
// b >= a - 1, negative ones too.
std::vector<Rational> PowerSum(int k);

// S(at), for the polynomial with these coefficients.
QuasiPolynomial Compose(const std::vector<Rational>& coefficients, const QuasiPolynomial& at);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CALCULATOR_COUNT_POLYNOMIAL_H_
