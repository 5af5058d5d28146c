#include "compiler/poly/calculator/count_polynomial.h"

#include <algorithm>
#include <tuple>

namespace polynao::poly {

Integer FloorDiv(const Integer& a, const Integer& b) {
  Integer quotient;
  mpz_fdiv_q(quotient.get_mpz_t(), a.get_mpz_t(), b.get_mpz_t());
  return quotient;
}

Integer IntegerForm::CoefficientOf(int variable) const {
  const auto it = coefficients.find(variable);
  return it == coefficients.end() ? Integer(0) : it->second;
}

void IntegerForm::Add(int variable, const Integer& coefficient) {
  if (coefficient == 0) return;
  const auto [it, is_new] = coefficients.emplace(variable, coefficient);
  if (is_new) return;
  it->second += coefficient;
  if (it->second == 0) coefficients.erase(it);
}

void IntegerForm::Add(const IntegerForm& other, const Integer& factor) {
  for (const auto& [variable, coefficient] : other.coefficients) {
    Add(variable, coefficient * factor);
  }
  constant += other.constant * factor;
}

IntegerForm IntegerForm::Substituted(int variable, const IntegerForm& numerator,
                                     const Integer& denominator) const {
  const Integer coefficient = CoefficientOf(variable);
  if (coefficient == 0) return *this;
  IntegerForm rest = *this;
  rest.coefficients.erase(variable);
  IntegerForm result;
  result.Add(rest, denominator);
  result.Add(numerator, coefficient);
  return result;
}

bool IntegerForm::operator<(const IntegerForm& other) const {
  return std::tie(constant, coefficients) < std::tie(other.constant, other.coefficients);
}

bool FloorTerm::operator<(const FloorTerm& other) const {
  return std::tie(denominator, numerator) < std::tie(other.denominator, other.numerator);
}

int FloorTable::Number(const FloorTerm& floor) {
  const auto [it, is_new] = numbers_.emplace(floor, static_cast<int>(by_number_.size()));
  if (is_new) by_number_.push_back(&it->first);
  return it->second;
}

QuasiPolynomial::QuasiPolynomial(const Rational& constant) { AddTerm({}, constant); }

QuasiPolynomial QuasiPolynomial::Quotient(const IntegerForm& form, const Integer& denominator) {
  QuasiPolynomial result;
  auto quotient = [&](const Integer& numerator) {
    Rational value(numerator, denominator);
    value.canonicalize();
    return value;
  };
  for (const auto& [variable, coefficient] : form.coefficients) {
    result.AddTerm({{variable, 1}}, quotient(coefficient));
  }
  result.AddTerm({}, quotient(form.constant));
  return result;
}

QuasiPolynomial QuasiPolynomial::Floor(const IntegerForm& form, const Integer& denominator,
                                       FloorTable& floors) {
  IntegerForm integral;
  FloorTerm floor;
  floor.denominator = denominator;
  Integer common = denominator;
  for (const auto& [variable, coefficient] : form.coefficients) {
    const Integer whole = FloorDiv(coefficient, denominator);
    const Integer rest = coefficient - whole * denominator;
    integral.Add(variable, whole);
    floor.numerator.Add(variable, rest);
    common = gcd(common, rest);
  }
  integral.constant = FloorDiv(form.constant, denominator);
  floor.numerator.constant = form.constant - integral.constant * denominator;
  QuasiPolynomial result = Quotient(integral, 1);
  // With no variable left, the numerator is a constant in [0, denominator).
  if (floor.numerator.coefficients.empty()) return result;
  for (auto& [variable, coefficient] : floor.numerator.coefficients) coefficient /= common;
  floor.numerator.constant = FloorDiv(floor.numerator.constant, common);
  floor.denominator /= common;
  result.AddTerm({{~floors.Number(floor), 1}}, 1);
  return result;
}

void QuasiPolynomial::BecomeTooLarge() {
  is_too_large_ = true;
  terms_.clear();
}

void QuasiPolynomial::AddTerm(Monomial monomial, const Rational& coefficient) {
  if (coefficient == 0 || is_too_large_) return;
  const auto [it, is_new] = terms_.emplace(std::move(monomial), coefficient);
  if (is_new) {
    if (terms_.size() > kMaxTerms) BecomeTooLarge();
    return;
  }
  it->second += coefficient;
  if (it->second == 0) terms_.erase(it);
}

void QuasiPolynomial::Add(const QuasiPolynomial& other, const Rational& factor) {
  if (other.is_too_large_) BecomeTooLarge();
  for (const auto& [monomial, coefficient] : other.terms_) AddTerm(monomial, coefficient * factor);
}

QuasiPolynomial QuasiPolynomial::Times(const QuasiPolynomial& other) const {
  QuasiPolynomial result;
  if (is_too_large_ || other.is_too_large_) result.BecomeTooLarge();
  for (const auto& [a, a_coefficient] : terms_) {
    if (result.is_too_large_) break;
    for (const auto& [b, b_coefficient] : other.terms_) {
      Monomial product;
      size_t i = 0, j = 0;
      while (i < a.size() || j < b.size()) {
        if (j == b.size() || (i < a.size() && a[i].first < b[j].first)) {
          product.push_back(a[i++]);
        } else if (i == a.size() || b[j].first < a[i].first) {
          product.push_back(b[j++]);
        } else {
          product.push_back({a[i].first, a[i].second + b[j].second});
          ++i, ++j;
        }
      }
      result.AddTerm(std::move(product), a_coefficient * b_coefficient);
    }
  }
  return result;
}

std::vector<QuasiPolynomial> QuasiPolynomial::CoefficientsOf(int variable) const {
  std::vector<QuasiPolynomial> result(1);
  if (is_too_large_) result[0].BecomeTooLarge();
  for (const auto& [monomial, coefficient] : terms_) {
    Monomial rest;
    size_t power = 0;
    for (const auto& factor : monomial) {
      if (factor.first == variable) {
        power = factor.second;
      } else {
        rest.push_back(factor);
      }
    }
    if (result.size() <= power) result.resize(power + 1);
    result[power].AddTerm(std::move(rest), coefficient);
  }
  return result;
}

std::set<int> QuasiPolynomial::FloorsWith(int variable, const FloorTable& floors) const {
  std::set<int> result;
  for (const auto& [monomial, coefficient] : terms_) {
    for (const auto& [factor, power] : monomial) {
      if (factor < 0 && floors[~factor].numerator.coefficients.contains(variable)) {
        result.insert(~factor);
      }
    }
  }
  return result;
}

QuasiPolynomial QuasiPolynomial::Substituted(int variable, const IntegerForm& numerator,
                                             const Integer& denominator, FloorTable& floors) const {
  std::map<int, QuasiPolynomial> replacements;
  replacements.emplace(variable, Quotient(numerator, denominator));
  for (int number : FloorsWith(variable, floors)) {
    const FloorTerm floor = floors[number];
    replacements.emplace(~number,
                         Floor(floor.numerator.Substituted(variable, numerator, denominator),
                               floor.denominator * denominator, floors));
  }
  return Replaced(replacements);
}

QuasiPolynomial QuasiPolynomial::Replaced(
    const std::map<int, QuasiPolynomial>& replacements) const {
  QuasiPolynomial result;
  if (is_too_large_) result.BecomeTooLarge();
  for (const auto& [monomial, coefficient] : terms_) {
    if (result.is_too_large_) break;
    Monomial kept;
    QuasiPolynomial product(coefficient);
    for (const auto& factor : monomial) {
      const auto it = replacements.find(factor.first);
      if (it == replacements.end()) {
        kept.push_back(factor);
        continue;
      }
      for (int i = 0; i < factor.second; ++i) product = product.Times(it->second);
    }
    if (product.is_too_large_) {
      result.BecomeTooLarge();
      break;
    }
    if (product.terms_.size() == 1 && product.terms_.begin()->first.empty()) {
      result.AddTerm(std::move(kept), product.terms_.begin()->second);
      continue;
    }
    QuasiPolynomial rest;
    rest.AddTerm(std::move(kept), 1);
    result.Add(product.Times(rest));
  }
  return result;
}

std::vector<Rational> PowerSum(int k) {
  // S_k(n) = ((n + 1)^(k + 1) - sum over j < k of C(k + 1, j) S_j(n)) / (k + 1) for k >= 1, from
  // the telescoping sum of (x + 1)^(k + 1) - x^(k + 1) over 0 <= x <= n, where S_0 counts 0^0 = 1.
  static thread_local std::vector<std::vector<Rational>> known;
  while (static_cast<int>(known.size()) <= k) {
    const int m = static_cast<int>(known.size());
    std::vector<Rational> sum(m + 2);
    std::vector<Integer> binomial(m + 2);  // C(m + 1, j)
    binomial[0] = 1;
    for (int j = 1; j <= m + 1; ++j) binomial[j] = binomial[j - 1] * (m + 2 - j) / j;
    for (int j = 0; j <= m + 1; ++j) sum[j] = binomial[j];  // (n + 1)^(m + 1)
    for (int j = 0; j < m; ++j) {
      for (size_t i = 0; i < known[j].size(); ++i) sum[i] -= binomial[j] * known[j][i];
    }
    for (Rational& coefficient : sum) coefficient /= m + 1;
    known.push_back(std::move(sum));
  }
  return known[k];
}

QuasiPolynomial Compose(const std::vector<Rational>& coefficients, const QuasiPolynomial& at) {
  QuasiPolynomial result;
  for (size_t i = coefficients.size(); i-- > 0;) {  // Horner's scheme
    result = result.Times(at);
    result.Add(QuasiPolynomial(coefficients[i]));
  }
  return result;
}

}  // namespace polynao::poly
