// Simplification of expressions: constants, sums, min and max, conditions, then the table of rules.
// Comparisons are in simplify_compare.cc.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/analyzer_parts.h"
#include "compiler/arith/logic.h"
#include "compiler/arith/rules.h"
#include "compiler/ir/visit.h"

namespace polynao::arith {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

Expr Analyzer::Simplify(Expr e, Mode mode) {
  // Recursion goes as deep as the expression; what is deeper is simplified from the leaves up, and
  // without facts from conditions inside.
  constexpr int kMaxDepth = 200;
  if (questions_ == 0) steps_ = 0;
  ++questions_;
  if (Depth(e) > kMaxDepth) {
    const int nested = nested_conditions_;
    nested_conditions_ = options_.max_nested_conditions;
    ir::ForEachExpr(e, [&](Expr x) {
      steps_ = 0;
      SimplifyIn(x, mode);
      if (mode == Mode::kData) SimplifyIn(x, Mode::kIndex);
    });
    nested_conditions_ = nested;
  }
  const Expr result = SimplifyIn(e, mode);
  --questions_;
  return result;
}

Expr Analyzer::SimplifyIn(Expr e, Mode mode) {
  if (e.operands().empty()) {
    if (!e.Is(ExprKind::kVar)) return e;
    if (e.type() == Type::kI1) {
      auto it = known_.find(e);
      return it == known_.end() ? e : context_.Bool(it->second);
    }
    if (!ir::IsInt(e.type())) return e;
    auto it = ranges_.find(e);
    return it != ranges_.end() && it->second.IsPoint() ? context_.Int(e.type(), it->second.min) : e;
  }
  const Key key = {e.node(), mode};
  if (auto it = memo().simplified.find(key); it != memo().simplified.end()) return it->second;
  if (OutOfSteps() || recursion_ > kMaxRecursion) return e;
  // What opens a scope has a new memo inside; it must not come back to itself through a fact.
  const bool opens_scope = e.Is(ExprKind::kSelect) || e.Is(ExprKind::kLet) ||
                           e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr);
  if (opens_scope && !active_.insert(e).second) return e;
  // Stands in should the computation come back to `e`.
  memo().simplified[key] = e;
  ++recursion_;
  Expr result = SimplifyNew(e, mode);
  --recursion_;
  if (opens_scope) active_.erase(e);
  if (result.type() == Type::kI1 && !result.IsConst()) {
    for (Expr x : {result, e}) {
      auto it = known_.find(x);
      if (it != known_.end() && !CanTrap(e)) result = context_.Bool(it->second);
    }
  }
  memo().simplified[key] = result;
  if (result != e) memo().simplified.emplace(Key{result.node(), mode}, result);
  return result;
}

Expr Analyzer::SimplifyNew(Expr e, Mode mode) {
  switch (e.kind()) {
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kVar:
      return e;
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMul:
    case ExprKind::kDiv:
    case ExprKind::kMod:
      return ir::IsIndexable(e.type()) ? SimplifySum(e, mode) : SimplifyOpaque(e, mode);
    case ExprKind::kMin:
    case ExprKind::kMax:
      return SimplifyMinMax(e, mode);
    case ExprKind::kEq:
    case ExprKind::kNe:
    case ExprKind::kLt:
    case ExprKind::kLe:
      return SimplifyCompare(e, mode);
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return SimplifyLogic(e, mode);
    case ExprKind::kSelect:
      return SimplifySelect(e, mode);
    case ExprKind::kLet:
      return SimplifyLet(e, mode);
    case ExprKind::kCast:
      return SimplifyCast(e, mode);
    case ExprKind::kBitAnd:
    case ExprKind::kBitOr:
    case ExprKind::kBitXor:
    case ExprKind::kShiftLeft:
    case ExprKind::kShiftRight:
    case ExprKind::kNot:
    case ExprKind::kLoad:
    case ExprKind::kAddress:
    case ExprKind::kCall:
      return SimplifyOpaque(e, mode);
  }
  POLYNAO_UNREACHABLE(static_cast<int>(e.kind()));
}

Expr Analyzer::SimplifyOperands(Expr e, Mode mode) {
  std::vector<Expr> operands;
  operands.reserve(e.operands().size());
  for (size_t i = 0; i < e.operands().size(); ++i) {
    operands.push_back(SimplifyIn(e.operand(i), OperandMode(e, i, mode)));
  }
  return context_.Rebuild(e, operands);
}

// Operands, constants and rules, without taking `e` itself apart as a sum or comparison.
Expr Analyzer::SimplifyOpaque(Expr e, Mode mode) {
  return ApplyRules(FoldFloats(SimplifyOperands(e, mode)), mode);
}

// ---- constants ----------------------------------------------------------------------------------

Expr Analyzer::FoldFloats(Expr e) {
  if (ir::IsBitOperation(e.kind()) && e.operand(0).Is(ExprKind::kIntImm) &&
      e.operand(1).Is(ExprKind::kIntImm)) {
    return context_.Int(e.type(), *ir::EvaluateInt(e.kind(), e.type(), e.operand(0).int_value(),
                                                   e.operand(1).int_value()));
  }
  if (!ir::IsBinary(e.kind()) || !e.operand(0).Is(ExprKind::kFloatImm) ||
      !e.operand(1).Is(ExprKind::kFloatImm)) {
    return e;
  }
  const double a = e.operand(0).float_value(), b = e.operand(1).float_value();
  // One rounding: sums, products and quotients of narrower floats rounded to f64 first, then to the
  // narrower type, are as if rounded once.
  switch (e.kind()) {
    case ExprKind::kAdd:
      return context_.Float(e.type(), a + b);
    case ExprKind::kSub:
      return context_.Float(e.type(), a - b);
    case ExprKind::kMul:
      return context_.Float(e.type(), a * b);
    case ExprKind::kDiv:
      return context_.Float(e.type(), a / b);
    case ExprKind::kMin:
      return b < a ? e.operand(1) : e.operand(0);
    case ExprKind::kMax:
      return a < b ? e.operand(1) : e.operand(0);
    case ExprKind::kEq:
      return context_.Bool(a == b);
    case ExprKind::kNe:
      return context_.Bool(a != b);
    case ExprKind::kLt:
      return context_.Bool(a < b);
    case ExprKind::kLe:
      return context_.Bool(a <= b);
    default:
      return e;
  }
}

// An operator on a constant and a select of constants: select(p, 5, 7) + 7 is select(p, 12, 14), and
// select(p, 5, 7) < 6 is p.
std::optional<Expr> Analyzer::FoldSelect(Expr e, Mode mode, int depth) {
  constexpr int kMaxDepth = 3;  // of selects in selects
  if (!ir::IsBinary(e.kind()) || depth == kMaxDepth) return std::nullopt;
  const bool first = e.operand(0).Is(ExprKind::kSelect);
  const Expr select = e.operand(first ? 0 : 1), other = e.operand(first ? 1 : 0);
  if (!select.Is(ExprKind::kSelect) || !other.IsConst()) return std::nullopt;
  Expr arms[2];
  for (size_t i = 0; i < 2; ++i) {
    const Expr arm = select.operand(i + 1);
    const Expr applied =
        first ? context_.Binary(e.kind(), arm, other) : context_.Binary(e.kind(), other, arm);
    if (arm.IsConst()) {
      arms[i] = SimplifyIn(applied, mode);
      if (!arms[i].IsConst()) return std::nullopt;  // divides by zero
    } else if (const auto folded = FoldSelect(applied, mode, depth + 1)) {
      arms[i] = *folded;
    } else {
      return std::nullopt;
    }
  }
  return SimplifyIn(context_.Select(select.operand(0), arms[0], arms[1]), mode);
}

Expr Analyzer::SimplifyCast(Expr e, Mode mode) {
  Expr from = SimplifyIn(e.operand(0), mode);
  const bool to_int = ir::IsInt(e.type());
  if (from.Is(ExprKind::kIntImm)) {
    const int64_t value = from.int_value();
    if (to_int && e.type() != Type::kI1) return context_.Int(e.type(), value);
    if (!to_int) return context_.Float(e.type(), ir::IntToFloat(from.type(), value, e.type()));
  }
  if (from.Is(ExprKind::kFloatImm) && !to_int) return context_.Float(e.type(), from.float_value());
  // Integer to integer through a type that holds the value: the step between changes nothing.
  if (from.Is(ExprKind::kCast) && ir::IsIndexable(e.type()) && ir::IsIndexable(from.type())) {
    const Expr origin = from.operand(0);
    if (ir::IsInt(origin.type()) &&
        ConstRange::OfType(from.type()).Contains(RangeOf(origin, mode))) {
      from = origin;
    }
  }
  return context_.Cast(e.type(), from);
}

// ---- sums ---------------------------------------------------------------------------------------

namespace {

// What in `root` may trap wherever `root` is evaluated. A select whose arms may trap counts as a whole:
// that an arm is evaluated somewhere does not say that the arm's loads are.
absl::flat_hash_set<Expr> Traps(Expr root) {
  absl::flat_hash_set<Expr> traps, seen;
  std::vector<Expr> stack = {root};
  while (!stack.empty()) {
    const Expr e = stack.back();
    stack.pop_back();
    if (e.operands().empty() && !IsTrap(e)) continue;
    if (!seen.insert(e).second) continue;
    const bool is_conditional =
        e.Is(ExprKind::kSelect) || e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr);
    if (IsTrap(e)) traps.insert(e);
    for (size_t i = 0; i < e.operands().size(); ++i) {
      if (!is_conditional || i == 0) {
        stack.push_back(e.operand(i));
      } else if (CanTrap(e.operand(i))) {
        traps.insert(e);
      }
    }
  }
  return traps;
}

}  // namespace

// Whether whatever may trap in `before` is still there in `after`.
bool Analyzer::KeepsTraps(Expr before, Expr after) {
  if (before == after || !CanTrap(before)) return true;
  const absl::flat_hash_set<Expr> kept = Traps(after);
  for (Expr e : Traps(before)) {
    if (!kept.contains(e)) return false;
  }
  return true;
}

Expr Analyzer::SimplifySum(Expr e, Mode mode) {
  const Expr opaque = SimplifyOpaque(e, mode);
  if (!opaque.operands().empty() && !IsArithmetic(opaque.kind())) return opaque;
  if (opaque.operands().empty()) return opaque;
  const LinearForm form = RingForm(e, mode, 0);
  const bool exact = NoWrap(e, mode);
  if (!CanTrap(opaque)) {
    if (form.IsConstant()) return context_.Int(e.type(), form.constant());
    const ConstRange range = RangeOf(e, mode);
    if (range.IsPoint()) return context_.Int(e.type(), range.min);
  }
  std::vector<LinearForm> computed;
  if (exact && mode == Mode::kIndex) CollectSums(e, mode, computed);
  const auto printed = Print(
      form, {.type = e.type(), .mode = mode, .fits = true, .wraps = !exact, .computed = computed});
  if (!printed || Cost(*printed) > Cost(opaque) || !KeepsTraps(opaque, *printed)) return opaque;
  return *printed;
}

// ---- min and max --------------------------------------------------------------------------------

Expr Analyzer::SimplifyMinMax(Expr e, Mode mode) {
  constexpr int kFactDepth = 1;
  Expr a = SimplifyIn(e.operand(0), mode);
  Expr b = SimplifyIn(e.operand(1), mode);
  if (ir::IsIndexable(e.type())) {
    LinearForm difference = *MathForm(a, mode);
    if (difference.Add(*MathForm(b, mode), -1)) {
      const ConstRange range = Bound(difference, mode, kFactDepth);
      const bool is_min = e.Is(ExprKind::kMin);
      if (range.max <= 0 && !CanTrap(is_min ? b : a)) return is_min ? a : b;
      if (range.min >= 0 && !CanTrap(is_min ? a : b)) return is_min ? b : a;
    }
    // Constants stand right, and min(i, j) is min(j, i).
    auto order = [&](Expr x) { return std::tuple(x.IsConst(), Rank(x), x.id()); };
    if (order(b) < order(a)) std::swap(a, b);
  }
  return ApplyRules(FoldFloats(context_.Binary(e.kind(), a, b)), mode);
}

// ---- conditions ---------------------------------------------------------------------------------

namespace {

void Flatten(Expr e, ExprKind kind, size_t limit, std::vector<Expr>& parts) {
  if (e.Is(kind) && parts.size() < limit) {
    Flatten(e.operand(0), kind, limit, parts);
    Flatten(e.operand(1), kind, limit, parts);
  } else {
    parts.push_back(e);
  }
}

}  // namespace

// p && q: q is evaluated where p is true, so p is a fact in it; and where nothing can trap the
// order is free, so q is a fact in p. For || with the negations.
Expr Analyzer::SimplifyLogic(Expr e, Mode mode) {
  constexpr size_t kMaxParts = 16;
  const ExprKind kind = e.kind();
  const bool is_and = kind == ExprKind::kAnd;
  std::vector<Expr> parts;
  Flatten(e, kind, kMaxParts, parts);
  if (parts.size() > kMaxParts || nested_conditions_ >= options_.max_nested_conditions) {
    return ApplyRules(SimplifyOperands(e, mode), mode);
  }
  ++nested_conditions_;
  std::vector<Expr> kept;
  {
    Scope scope(*this);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Expr part = SimplifyIn(parts[i], mode);
      if (part.IsInt(is_and ? 1 : 0)) continue;
      const size_t first = kept.size();
      Flatten(part, kind, kMaxParts, kept);
      if (part.IsConst()) break;  // the rest is not evaluated
      for (size_t j = first; j < kept.size(); ++j) AssumeInScope(kept[j], is_and, mode);
    }
  }
  if (kept.size() > 1 && kept.size() <= kMaxParts) DropImplied(is_and, mode, kept);
  --nested_conditions_;
  if (kept.empty()) return context_.Bool(is_and);
  Expr result = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) result = context_.Binary(kind, result, kept[i]);
  if (result == e || result.kind() != kind) return ApplyRules(result, mode);
  // Rules look at pairs; the chain is short here.
  result = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) {
    result = ApplyRules(context_.Binary(kind, result, kept[i]), mode);
  }
  return result;
}

// Drops parts that others imply. A part may rely on those behind it, too, up to the first one that
// may stop the program: without the part they are evaluated more often.
void Analyzer::DropImplied(bool is_and, Mode mode, std::vector<Expr>& kept) {
  // Asked before any part is a fact.
  bool total = true;
  std::vector<bool> may_trap, may_stop;
  for (Expr e : kept) {
    may_trap.push_back(CanTrap(e));
    may_stop.push_back(may_trap.back() || (mode == Mode::kIndex && CanOverflow(e)));
    total = total && !may_trap.back();
  }
  for (size_t i = kept.size(); i-- > 0 && kept.size() > 1;) {
    if (may_trap[i]) continue;
    Scope scope(*this);
    for (size_t j = 0; j < kept.size() && !(j > i && may_stop[j]); ++j) {
      if (j != i) AssumeInScope(kept[j], is_and, mode);
    }
    const Expr part = SimplifyIn(kept[i], mode);
    if (part.IsInt(is_and ? 1 : 0)) {
      const auto at = static_cast<int64_t>(i);
      kept.erase(kept.begin() + at);
      may_trap.erase(may_trap.begin() + at);
      may_stop.erase(may_stop.begin() + at);
    } else if (part.IsConst() && total) {
      kept = {part};
    }
  }
}

Expr Analyzer::SimplifySelect(Expr e, Mode mode) {
  const Expr condition = SimplifyIn(e.operand(0), Mode::kIndex);
  if (condition.IsConst()) return SimplifyIn(e.operand(condition.int_value() != 0 ? 1 : 2), mode);
  Expr arms[2];
  for (int i = 0; i < 2; ++i) {
    const Expr arm = e.operand(i + 1);
    if (nested_conditions_ >= options_.max_nested_conditions || arm.operands().empty()) {
      arms[i] = SimplifyIn(arm, mode);
      continue;
    }
    ++nested_conditions_;
    Scope scope(*this);
    AssumeInScope(condition, i == 0, Mode::kIndex);
    arms[i] = SimplifyIn(arm, mode);
    --nested_conditions_;
  }
  return ApplyRules(context_.Select(condition, arms[0], arms[1]), mode);
}

Expr Analyzer::SimplifyLet(Expr e, Mode mode) {
  const Expr value = SimplifyIn(e.operand(0), mode);
  if (value.operands().empty()) {
    return SimplifyIn(ir::Substitute(e.operand(1), {{e.var(), value}}), mode);
  }
  Expr body;
  {
    Scope scope(*this);
    BindLet(e.var(), value, mode);
    body = SimplifyIn(e.operand(1), mode);
  }
  if (!CanTrap(value) && !ir::UsesVar(body, e.var())) return body;
  return context_.Let(e.var(), value, body);
}

// ---- rules --------------------------------------------------------------------------------------

Expr Analyzer::ApplyRules(Expr e, Mode mode) {
  if (const auto folded = FoldSelect(e, mode, 0)) return *folded;
  auto fits_domain = [&](const CompiledRule& rule, const Bindings& bindings) {
    for (std::string_view meta : {"x", "y", "z", "w"}) {
      const Expr bound = bindings.Find(meta);
      if (!bound) continue;
      const bool is_int = ir::IsIndexable(bound.type());
      switch (rule.rule->domain) {
        case Domain::kBool:
          return false;
        case Domain::kInt:
        case Domain::kIndex:
          if (!is_int) return false;
          break;
        case Domain::kFloat:
          if (!ir::IsFloat(bound.type())) return false;
          break;
        case Domain::kAny:
          break;
      }
    }
    return true;
  };
  for (const CompiledRule& rule : RulesFor(e.kind())) {
    Bindings bindings;
    if (!Match(rule.pattern, e, bindings) || !fits_domain(rule, bindings)) continue;
    if (rule.rule->domain == Domain::kIndex) {
      // The arithmetic of the pattern must not wrap: all of it is i32 or i64 in an index, or
      // proven.
      std::vector<std::pair<const Pattern*, Expr>> nodes = {{&rule.pattern, e}};
      bool exact = true;
      while (!nodes.empty() && exact) {
        auto [pattern, x] = nodes.back();
        nodes.pop_back();
        if (pattern->kind != Pattern::Kind::kOperation) continue;
        if (IsArithmetic(x.kind())) exact = NoWrap(x, mode);
        for (size_t i = 0; i < pattern->operands.size(); ++i) {
          nodes.push_back({&pattern->operands[i], x.operand(i)});
        }
      }
      if (!exact) continue;
    }
    bool total = true;
    for (char meta : rule.rule->total) {
      total = total && !CanTrap(bindings.Find(std::string_view(&meta, 1)));
    }
    if (!total || OutOfSteps()) continue;
    if (!rule.rule->condition.empty()) {
      const Expr condition = Instantiate(rule.condition, bindings, Type::kI1, context_);
      if (!SimplifyIn(condition, mode).IsInt(1)) continue;
    }
    const Type type = IsComparison(e.kind()) ? Type::kI1 : e.type();
    return SimplifyIn(Instantiate(rule.replacement, bindings, type, context_), mode);
  }
  return e;
}

}  // namespace polynao::arith
