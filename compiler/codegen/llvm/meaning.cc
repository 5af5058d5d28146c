#include "compiler/codegen/llvm/meaning.h"

#include <utility>

#include "compiler/codegen/llvm/vector_loop.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;

bool IsAlike(Expr meaning, Expr value, MeaningLoads& loads) {
  if (meaning.kind() != value.kind() || meaning.type() != value.type()) return false;
  if (meaning.Is(ExprKind::kLoad)) {
    const Buffer from(value.buffer());
    if (from->type != Buffer(meaning.buffer())->type) return false;
    const auto [it, is_new] = loads.emplace(Buffer(meaning.buffer()), value);
    return is_new || it->second == value;
  }
  if (meaning.Is(ExprKind::kCast)) return IsAlike(meaning.operand(0), value.operand(0), loads);
  if (!meaning.Is(ExprKind::kAdd) && !meaning.Is(ExprKind::kMul)) return false;
  // In any order.
  for (const size_t first : {size_t{0}, size_t{1}}) {
    MeaningLoads found = loads;
    if (IsAlike(meaning.operand(0), value.operand(first), found) &&
        IsAlike(meaning.operand(1), value.operand(1 - first), found)) {
      loads = std::move(found);
      return true;
    }
  }
  return false;
}

namespace {

// A number that stands for the form, the same for equal ones.
Expr KeyOf(ir::Context& c, const arith::LinearForm& form) {
  Expr sum = c.I64(form.constant());
  for (const arith::LinearForm::Term& term : form.terms())
    sum = sum + c.Cast(ir::Type::kI64, term.atom) * c.I64(term.coefficient);
  return sum;
}

// Quotients by a constant, and remainders by way of them, in one way, so that they cancel out:
//
//   (32 * b + r) / 14 = 2 * b + (4 * b + r) / 14          (32 * b + r) % 14 = (4 * b + r) - 14 * ((4 * b + r) / 14)
std::optional<arith::LinearForm> WithWholeParts(const arith::LinearForm& form,
                                                arith::Analyzer& analyzer) {
  arith::LinearForm result = arith::LinearForm::Constant(form.constant());
  for (const arith::LinearForm::Term& term : form.terms()) {
    const Expr atom = term.atom;
    const bool is_quotient = atom.Is(ExprKind::kDiv), is_remainder = atom.Is(ExprKind::kMod);
    const bool has_divisor = (is_quotient || is_remainder) && ir::IsInt(atom.type()) &&
                             atom.operand(1).Is(ExprKind::kIntImm) &&
                             atom.operand(1).int_value() > 0;
    if (!has_divisor) {
      if (!result.AddTerm(atom, term.coefficient)) return std::nullopt;
      continue;
    }
    const int64_t divisor = atom.operand(1).int_value();
    const arith::LinearForm numerator = analyzer.Form(atom.operand(0));
    const auto whole = [&](int64_t n) { return ir::FloorDiv(n, divisor); };
    arith::LinearForm wholes = arith::LinearForm::Constant(whole(numerator.constant()));
    arith::LinearForm rest =
        arith::LinearForm::Constant(numerator.constant() - divisor * whole(numerator.constant()));
    for (const arith::LinearForm::Term& one : numerator.terms()) {
      const int64_t part = whole(one.coefficient), left = one.coefficient - divisor * part;
      if (part != 0 && !wholes.AddTerm(one.atom, part)) return std::nullopt;
      if (left != 0 && !rest.AddTerm(one.atom, left)) return std::nullopt;
    }
    ir::Context& c = atom.context();
    const Expr quotient = c.Binary(ExprKind::kDiv, KeyOf(c, rest), c.I64(divisor));
    const bool fits = is_quotient ? result.Add(wholes, term.coefficient) &&
                                        result.AddTerm(quotient, term.coefficient)
                                  : result.Add(rest, term.coefficient) &&
                                        result.AddTerm(quotient, -term.coefficient * divisor);
    if (!fits) return std::nullopt;
  }
  return result;
}

}  // namespace

std::optional<arith::LinearForm> NumberOf(Buffer buffer, absl::Span<const Expr> indices,
                                          arith::Analyzer& analyzer, size_t outer) {
  arith::LinearForm number;
  int64_t size = 1;
  for (size_t d = indices.size(); d-- > outer;) {
    if (!number.Add(analyzer.Form(indices[d]), size)) return std::nullopt;
    if (d == outer) break;
    const Expr extent = buffer->extents[d];
    if (!extent.Is(ExprKind::kIntImm) || __builtin_mul_overflow(size, extent.int_value(), &size))
      return std::nullopt;
  }
  return WithWholeParts(number, analyzer);
}

std::optional<int64_t> StepOf(Buffer buffer, absl::Span<const Expr> indices, ir::Var var,
                              arith::Analyzer& analyzer) {
  // Outer indices that do not move do not count: their extents may be open.
  size_t outer = 0;
  while (outer < indices.size() && !ir::UsesVar(indices[outer], var)) ++outer;
  if (outer == indices.size()) return 0;
  const auto number = NumberOf(buffer, indices, analyzer, outer);
  return number ? SlopeIn(*number, var) : std::nullopt;
}

}  // namespace polynao::codegen
