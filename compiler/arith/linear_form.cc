#include "compiler/arith/linear_form.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/check.h"

namespace polynao::arith {
namespace {

using ir::Expr;

constexpr int64_t kNoCoefficient = std::numeric_limits<int64_t>::min();

bool IdLess(const LinearForm::Term& a, const LinearForm::Term& b) {
  return a.atom.id() < b.atom.id();
}

}  // namespace

LinearForm LinearForm::Constant(int64_t value) {
  LinearForm form;
  form.constant_ = value;
  return form;
}

LinearForm LinearForm::Atom(Expr atom, int64_t coefficient) {
  LinearForm form;
  if (coefficient != 0) form.terms_.push_back({atom, coefficient});
  return form;
}

bool LinearForm::IsAtom(Expr atom) const {
  return constant_ == 0 && terms_.size() == 1 && terms_[0] == Term{atom, 1};
}

int64_t LinearForm::CoefficientOf(Expr atom) const {
  auto it = std::lower_bound(terms_.begin(), terms_.end(), Term{atom, 0}, IdLess);
  return it != terms_.end() && it->atom == atom ? it->coefficient : 0;
}

int64_t LinearForm::CommonFactor() const {
  int64_t factor = 0;
  for (const Term& term : terms_) {
    factor = std::gcd(factor, term.coefficient);
  }
  return factor;
}

bool LinearForm::Add(const LinearForm& other, int64_t factor) {
  if (factor == 0) return true;
  std::vector<Term> sum;
  sum.reserve(terms_.size() + other.terms_.size());
  auto a = terms_.begin();
  auto b = other.terms_.begin();
  while (a != terms_.end() || b != other.terms_.end()) {
    if (b == other.terms_.end() || (a != terms_.end() && IdLess(*a, *b))) {
      sum.push_back(*a++);
      continue;
    }
    Term term = {b->atom, 0};
    if (__builtin_mul_overflow(b->coefficient, factor, &term.coefficient)) return false;
    if (a != terms_.end() && a->atom == b->atom) {
      if (__builtin_add_overflow(a->coefficient, term.coefficient, &term.coefficient)) return false;
      ++a;
    }
    ++b;
    if (term.coefficient == kNoCoefficient) return false;
    if (term.coefficient != 0) sum.push_back(term);
  }
  terms_ = std::move(sum);
  int64_t product;
  return !__builtin_mul_overflow(other.constant_, factor, &product) && AddConstant(product);
}

bool LinearForm::AddTerm(Expr atom, int64_t coefficient) { return Add(Atom(atom), coefficient); }

bool LinearForm::AddConstant(int64_t value) {
  return !__builtin_add_overflow(constant_, value, &constant_);
}

bool LinearForm::Scale(int64_t factor) {
  if (factor == 0) {
    *this = LinearForm();
    return true;
  }
  for (Term& term : terms_) {
    if (__builtin_mul_overflow(term.coefficient, factor, &term.coefficient) ||
        term.coefficient == kNoCoefficient) {
      return false;
    }
  }
  return !__builtin_mul_overflow(constant_, factor, &constant_);
}

LinearForm LinearForm::WrappedTo(ir::Type type) const {
  LinearForm wrapped;
  wrapped.constant_ = ir::WrapInt(type, constant_);
  for (const Term& term : terms_) {
    const int64_t coefficient = ir::WrapInt(type, term.coefficient);
    if (coefficient != 0) wrapped.terms_.push_back({term.atom, coefficient});
  }
  return wrapped;
}

LinearForm operator+(LinearForm a, const LinearForm& b) {
  POLYNAO_CHECK(a.Add(b)) << "a coefficient leaves int64_t";
  return a;
}

LinearForm operator-(LinearForm a, const LinearForm& b) {
  POLYNAO_CHECK(a.Add(b, -1)) << "a coefficient leaves int64_t";
  return a;
}

LinearForm operator*(LinearForm a, int64_t factor) {
  POLYNAO_CHECK(a.Scale(factor)) << "a coefficient leaves int64_t";
  return a;
}

std::vector<LinearForm::Term> InPrintingOrder(const LinearForm& form,
                                              const std::function<uint64_t(Expr)>& rank) {
  std::vector<LinearForm::Term> terms(form.terms().begin(), form.terms().end());
  std::sort(terms.begin(), terms.end(), [&](const auto& a, const auto& b) {
    return std::pair(rank(a.atom), a.atom.id()) < std::pair(rank(b.atom), b.atom.id());
  });
  auto positive =
      std::find_if(terms.begin(), terms.end(), [](const auto& t) { return t.coefficient > 0; });
  if (positive != terms.end()) std::rotate(terms.begin(), positive, positive + 1);
  return terms;
}

Expr SumExpr(ir::Context& context, ir::Type type, absl::Span<const LinearForm::Term> terms,
             int64_t constant) {
  // The smallest value has no negation of its type: it is added, not subtracted.
  auto can_subtract = [&](int64_t c) {
    return c < 0 && c != std::numeric_limits<int64_t>::min() && ir::FitsInt(type, -c);
  };
  Expr sum;
  if (!terms.empty() && constant >= 0 && can_subtract(terms[0].coefficient)) {
    sum = context.Int(type, constant);  // no positive term: c - x - y
    constant = 0;
  }
  for (const LinearForm::Term& term : terms) {
    const bool subtract = sum && can_subtract(term.coefficient);
    const int64_t coefficient = subtract ? -term.coefficient : term.coefficient;
    const Expr product = coefficient == 1 ? term.atom : term.atom * context.Int(type, coefficient);
    sum = !sum ? product : subtract ? sum - product : sum + product;
  }
  if (!sum) return context.Int(type, constant);
  if (constant == 0) return sum;
  return can_subtract(constant) ? sum - context.Int(type, -constant)
                                : sum + context.Int(type, constant);
}

}  // namespace polynao::arith
