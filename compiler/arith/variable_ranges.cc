#include "compiler/arith/variable_ranges.h"

#include <algorithm>
#include <vector>

namespace polynao::arith {

using ir::Expr;
using ir::ExprKind;

void VariableRanges::BindLoop(ir::Var var, Expr min, Expr extent) {
  const int64_t most = std::max<int64_t>(Range(extent).max, 1);
  const int64_t last = most == kInfinity ? kInfinity : most - 1;
  ranges_[var] = Intersect(ConstRange::OfType(var.type()), Range(min) + ConstRange{0, last});
}

void VariableRanges::BindLet(ir::Var var, Expr value) {
  if (ir::IsInt(var.type())) ranges_[var] = Range(value);
}

ConstRange VariableRanges::Range(Expr e) {
  if (e.Is(ExprKind::kIntImm)) return ConstRange::Point(e.int_value());
  if (auto it = ranges_.find(e); it != ranges_.end()) return it->second;
  const ConstRange of_type = ConstRange::OfType(e.type());
  const auto operand = [&](size_t i) { return Range(e.operand(i)); };
  ConstRange range = of_type;
  // A range of u64 is one of its representation (type.h), in which it has no order.
  const bool has_order = ir::IsIndexable(e.type());
  if (!has_order && ir::IsBinary(e.kind())) return range;
  switch (e.kind()) {
    case ExprKind::kCast:
      if (ir::IsInt(e.operand(0).type())) range = operand(0);
      break;
    case ExprKind::kAdd:
      range = operand(0) + operand(1);
      break;
    case ExprKind::kSub:
      range = operand(0) - operand(1);
      break;
    case ExprKind::kMul:
      range = operand(0) * operand(1);
      break;
    case ExprKind::kDiv:
      range = FloorDiv(operand(0), operand(1));
      break;
    case ExprKind::kMod:
      range = FloorMod(operand(0), operand(1));
      break;
    case ExprKind::kMin:
      range = Min(operand(0), operand(1));
      break;
    case ExprKind::kMax:
      range = Max(operand(0), operand(1));
      break;
    case ExprKind::kSelect:
      range = Union(operand(1), operand(2));
      break;
    case ExprKind::kLet:
      BindLet(e.var(), e.operand(0));
      range = operand(1);
      break;
    default:
      break;
  }
  if (MayWrap(e, range)) range = of_type;
  ranges_[e] = range;
  return range;
}

bool VariableRanges::MayWrap(Expr e, ConstRange range) {
  const ConstRange of_type = ConstRange::OfType(e.type());
  if (!of_type.Contains(range)) return true;
  // The ends of i64 stand for infinity: a range that reaches one may go beyond it.
  if (of_type.IsBounded() || range.IsBounded()) return false;
  switch (e.kind()) {
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMul:
      return true;
    case ExprKind::kDiv:
      return Range(e.operand(1)).min < 0;  // the least i64 / -1
    default:
      return false;
  }
}

ConstRange VariableRanges::Range(const LinearForm& form) {
  ConstRange range = ConstRange::Point(form.constant());
  std::vector<LinearForm::Term> terms(form.terms().begin(), form.terms().end());
  for (size_t i = 0; i < terms.size(); ++i) {
    for (size_t j = i + 1; j < terms.size() && terms[i].coefficient != 0; ++j) {
      if (terms[i].coefficient != -terms[j].coefficient) continue;
      const std::optional<ConstRange> difference =
          DifferenceOfQuotients(analyzer_, terms[i].atom, terms[j].atom);
      if (!difference) continue;
      range = range + *difference * ConstRange::Point(terms[i].coefficient);
      terms[i].coefficient = terms[j].coefficient = 0;
    }
    range = range + Range(terms[i].atom) * ConstRange::Point(terms[i].coefficient);
  }
  return range;
}

std::optional<ConstRange> DifferenceOfQuotients(Analyzer& analyzer, Expr a, Expr b) {
  if (!a.Is(ExprKind::kDiv) || !b.Is(ExprKind::kDiv) || a.operand(1) != b.operand(1) ||
      !a.operand(1).Is(ExprKind::kIntImm) || a.operand(1).int_value() <= 0) {
    return std::nullopt;
  }
  const std::optional<int64_t> difference = analyzer.ConstantDifference(a.operand(0), b.operand(0));
  if (!difference) return std::nullopt;
  const int64_t divisor = a.operand(1).int_value();
  const int64_t least = FloorDiv(*difference, divisor);
  return ConstRange{least, least + (*difference % divisor != 0 ? 1 : 0)};
}

}  // namespace polynao::arith
