#include "compiler/poly/fuse/inner_parts.h"

#include <numeric>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {

namespace {

using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;

constexpr int64_t kMaxPeriod = 4;
// Expressions in a body that is repeated.
constexpr int kMaxSize = 2000;
// Fewer iterations are not worth more code.
constexpr int64_t kLeastIterations = 64;

int SizeOf(Stmt body) {
  int size = 0;
  ir::ForEachExprIn(body, [&](Expr) { ++size; });
  return size;
}

// By how much `e` grows with `var`, if it is a sum of multiples of variables.
std::optional<int64_t> SlopeOf(Expr e, ir::Var var) {
  if (!ir::UsesVar(e, var)) return 0;
  if (e == Expr(var)) return 1;
  switch (e.kind()) {
    case ExprKind::kCast:
      return SlopeOf(e.operand(0), var);
    case ExprKind::kAdd:
    case ExprKind::kSub: {
      const std::optional<int64_t> a = SlopeOf(e.operand(0), var), b = SlopeOf(e.operand(1), var);
      if (!a || !b) return std::nullopt;
      return e.Is(ExprKind::kAdd) ? *a + *b : *a - *b;
    }
    case ExprKind::kMul:
      for (size_t i = 0; i < 2; ++i) {
        const std::optional<int64_t> a = SlopeOf(e.operand(1 - i), var);
        if (e.operand(i).Is(ExprKind::kIntImm) && a) return *a * e.operand(i).int_value();
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// The number of iterations after which the quotients and remainders in the body move on together; 1: none to speak of.
int64_t PeriodOf(Stmt loop) {
  int64_t period = 1;
  ir::ForEachExprIn(loop.body(), [&](Expr e) {
    if (!e.Is(ExprKind::kDiv) && !e.Is(ExprKind::kMod)) return;
    if (!ir::IsInt(e.type()) || !e.operand(1).Is(ExprKind::kIntImm)) return;
    const int64_t by = e.operand(1).int_value();
    const std::optional<int64_t> slope = SlopeOf(e.operand(0), loop.var());
    if (!slope || *slope == 0 || by <= 1 || by > kMaxPeriod) return;
    const int64_t own = by / std::gcd(by, std::abs(*slope));
    if (std::lcm(period, own) <= kMaxPeriod) period = std::lcm(period, own);
  });
  return period;
}

bool HasLoops(Stmt loop) {
  return ir::AnyStmt(loop.body(), [](Stmt s) { return s.Is(StmtKind::kFor); });
}

bool IsSplittable(Stmt s) {
  if (!s.Is(StmtKind::kFor) || s.var().type() != ir::Type::kI64) return false;
  const Expr extent = s.extent();
  return (!extent.Is(ExprKind::kIntImm) || extent.int_value() >= kLeastIterations) &&
         (s.for_kind() == ForKind::kSerial || s.for_kind() == ForKind::kVectorize);
}

// The iterations of `loop` from `first` up to `end`, which may be few.
Stmt Border(Stmt loop, Expr first, Expr end) {
  ir::Context& c = loop.context();
  const Stmt part = c.For(loop.var(), first, end - first, loop.body(), ForKind::kSerial);
  return c.Pragma(pragma::kFewIterations, {}, ir::CloneWithFreshBindings(part));
}

// The iterations of `loop` from `first` up to `end`.
Stmt Part(Stmt loop, Expr first, Expr end, Stmt body) {
  ir::Context& c = loop.context();
  return ir::CloneWithFreshBindings(c.For(loop.var(), first, end - first, body, loop.for_kind()));
}

// Comparisons that hold from some value of a loop's variable on, or up to one.
struct Borders {
  Expr first, end;  // null: none
  absl::flat_hash_set<Expr> conditions;
};

class BorderFinder {
 public:
  explicit BorderFinder(Stmt loop) : var_(loop.var()) {
    ir::ForEachStmt(loop.body(), [&](Stmt s) {
      if (s.Is(StmtKind::kFor) || s.Is(StmtKind::kLet)) inside_.insert(s.var());
      return true;
    });
    ir::ForEachExprIn(loop.body(), [&](Expr e) {
      if (e.Is(ExprKind::kLet)) inside_.insert(e.var());
    });
    ir::ForEachExprIn(loop.body(), [&](Expr e) {
      if (e.Is(ExprKind::kSelect)) Visit(e.operand(0));
    });
  }

  const Borders& found() const { return found_; }

 private:
  void Visit(Expr condition) {
    if (condition.Is(ExprKind::kAnd)) {
      Visit(condition.operand(0));
      Visit(condition.operand(1));
      return;
    }
    const bool is_less = condition.Is(ExprKind::kLt);
    if (!is_less && !condition.Is(ExprKind::kLe)) return;
    const Expr a = condition.operand(0), b = condition.operand(1);
    if (a.type() != ir::Type::kI64) return;
    ir::Context& c = a.context();
    // The condition is 0 <= slope v + rest.
    const Expr difference = is_less ? b - a - c.I64(1) : b - a;
    const std::optional<int64_t> slope = SlopeOf(difference, var_);
    const Expr rest = ir::Substitute(difference, {{var_, c.I64(0)}});
    if (!slope || *slope == 0 || !IsFixed(rest)) return;
    if (*slope > 0) {
      const Expr first = (c.I64(*slope - 1) - rest) / c.I64(*slope);
      found_.first = found_.first ? ir::Max(found_.first, first) : first;
    } else {
      const Expr end = rest / c.I64(-*slope) + c.I64(1);
      found_.end = found_.end ? ir::Min(found_.end, end) : end;
    }
    found_.conditions.insert(condition);
  }

  bool IsFixed(Expr e) const {
    bool is_fixed = true;
    ir::ForEachExpr(e, [&](Expr part) {
      const bool is_inside = part.Is(ExprKind::kVar) && inside_.contains(part);
      is_fixed &= !is_inside && !part.Is(ExprKind::kLoad) && !part.Is(ExprKind::kCall) &&
                  !part.Is(ExprKind::kDiv) && !part.Is(ExprKind::kMod);
    });
    return is_fixed;
  }

  const ir::Var var_;
  absl::flat_hash_set<ir::Var> inside_;
  Borders found_;
};

class Holds : public ir::Mutator {
 public:
  explicit Holds(const absl::flat_hash_set<Expr>& conditions) : conditions_(conditions) {}
  using Mutator::Mutate;
  Expr Mutate(Expr e) override {
    if (conditions_.contains(e)) return e.context().Int(ir::Type::kI1, 1);
    return Mutator::Mutate(e);
  }

 private:
  const absl::flat_hash_set<Expr>& conditions_;
};

class Splitter : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Stmt Mutate(Stmt s) override {
    if (s.Is(StmtKind::kIf)) return WithTest(s);
    if (!s.Is(StmtKind::kFor)) return Mutator::Mutate(s);
    around_.push_back(s);
    const Stmt result = Loop(s);
    around_.pop_back();
    return result;
  }

 private:
  Stmt Loop(Stmt s) {
    if (!IsSplittable(s) || SizeOf(s.body()) > kMaxSize) return Mutator::Mutate(s);
    const BorderFinder finder(s);
    const Borders& borders = finder.found();
    if (borders.conditions.empty()) return WithPeriod(s);
    ir::Context& c = s.context();
    if (HasLoops(s)) {
      // Its iterations are whole loops, and few differ: one test, and one slow form of them.
      ir::Expr holds = c.Int(ir::Type::kI1, 1);
      if (borders.first) holds = ir::And(holds, borders.first <= s.var());
      if (borders.end) holds = ir::And(holds, s.var() < borders.end);
      const Stmt fast = Mutate(Holds(borders.conditions).Mutate(s.body()));
      const Stmt slow = c.Pragma(pragma::kFewIterations, {}, ir::CloneWithFreshBindings(s.body()));
      return c.For(s.var(), s.min(), s.extent(), c.If(holds, fast, slow), s.for_kind());
    }
    const ir::Var first = c.NewVar("first", ir::Type::kI64), end = c.NewVar("end", ir::Type::kI64),
                  from = c.NewVar("from", ir::Type::kI64), to = c.NewVar("to", ir::Type::kI64);
    // first <= from <= to <= end, where the loop has iterations.
    const Expr from_value =
        borders.first ? ir::Min(ir::Max(first, borders.first), end) : Expr(first);
    const Expr to_value = borders.end ? ir::Max(from, ir::Min(end, borders.end)) : Expr(end);
    const Stmt middle = Part(s, from, to, Holds(borders.conditions).Mutate(s.body()));
    Stmt all = c.Seq({Border(s, first, from), WithPeriod(middle), Border(s, to, end)});
    all = c.LetStmt(from, from_value, c.LetStmt(to, to_value, all));
    return c.LetStmt(first, s.min(), c.LetStmt(end, ir::Max(first, first + s.extent()), all));
  }

  // What the first iteration of a loop alone does, such as the whole of windows, is not worth more code.
  Stmt WithTest(Stmt s) {
    const std::optional<bool> of_first = IsFirst(s.cond());
    if (!of_first) return Mutator::Mutate(s);
    const auto often = [&](Stmt part) { return part ? Mutate(part) : part; };
    const Stmt then = *of_first ? s.then_case() : often(s.then_case());
    const Stmt other = *of_first ? often(s.else_case()) : s.else_case();
    return s.context().If(s.cond(), then, other);
  }

  // Whether the condition holds in the first iteration of a loop around alone (true), in all but that one (false), or
  // neither is known.
  std::optional<bool> IsFirst(Expr condition) const {
    const bool is_order = condition.Is(ExprKind::kLt) || condition.Is(ExprKind::kLe);
    if (!is_order && !condition.Is(ExprKind::kEq)) return std::nullopt;
    const Expr a = condition.operand(0), b = condition.operand(1);
    for (const Stmt loop : around_) {
      if (a.type() != ir::Type::kI64 || loop.var().type() != a.type()) continue;
      const std::optional<int64_t> of_a = SlopeOf(a, loop.var()), of_b = SlopeOf(b, loop.var());
      if (!of_a || !of_b || std::abs(*of_b - *of_a) != 1) continue;
      const auto in_iteration = [&](int64_t number) {
        const Expr at = loop.min() + loop.context().I64(number);
        return arith::Analyzer(loop.context())
            .Simplify(ir::Substitute(condition, {{loop.var(), at}}));
      };
      const Expr first = in_iteration(0), second = in_iteration(1);
      if (!first.Is(ExprKind::kIntImm) || !second.Is(ExprKind::kIntImm) || first == second)
        continue;
      return first.IsInt(1);
    }
    return std::nullopt;
  }

  // The loops inside are taken apart where most iterations are, and only there.
  Stmt WithPeriod(Stmt loop) {
    const int64_t period = HasLoops(loop) ? 1 : PeriodOf(loop);
    if (period == 1 || SizeOf(loop.body()) * period > kMaxSize) return Mutator::Mutate(loop);
    ir::Context& c = loop.context();
    const Expr by = c.I64(period);
    const ir::Var first = c.NewVar("first", ir::Type::kI64), end = c.NewVar("end", ir::Type::kI64),
                  from = c.NewVar("from", ir::Type::kI64), to = c.NewVar("to", ir::Type::kI64);
    const auto body_at = [&](Expr value) {
      return ir::CloneWithFreshBindings(ir::Substitute(loop.body(), {{loop.var(), value}}));
    };
    const ir::Var k = c.NewVar(loop.var().name(), ir::Type::kI64);
    // Iterations from * period up to to * period, which may both be behind the end.
    std::vector<Stmt> before, body, behind;
    for (int64_t r = 0; r < period; ++r) {
      body.push_back(Mutate(body_at(k * by + c.I64(r))));
      if (r + 1 == period) break;
      const Expr early = first + c.I64(r), late = to * by + c.I64(r);
      before.push_back(c.If(early < ir::Min(from * by, end), body_at(early)));
      behind.push_back(c.If(late < end, body_at(late)));
    }
    Stmt all = c.Seq(
        {c.Seq(before), c.For(k, from, to - from, c.Seq(body), loop.for_kind()), c.Seq(behind)});
    all = c.LetStmt(from, (first + c.I64(period - 1)) / by,
                    c.LetStmt(to, ir::Max(end / by, from), all));
    return c.LetStmt(first, loop.min(), c.LetStmt(end, first + loop.extent(), all));
  }

  std::vector<Stmt> around_;  // outermost first
};

}  // namespace

Stmt WithInnerParts(Stmt s) { return Splitter().Mutate(s); }

}  // namespace polynao::poly
