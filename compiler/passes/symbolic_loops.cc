// Method: a piece [start, end) is cut at a border into [start, min(end, border)) and
// [max(start, border), end), which needs no order between borders; pieces that are provably empty go.
// New bounds must fit their type whatever the parameters are, since a bound that overflows stops the
// program, or wraps to another number in the types other than i32 and i64: what cannot be written so (n - 3 for n
// of u32) is clamped first, `max(n, 3) - 3`. That the old bounds fitted is known.
#include "compiler/passes/symbolic_loops.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/wraps.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/guard_elimination.h"

namespace polynao {
namespace {

using arith::Analyzer;
using arith::ConstRange;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::Var;

// start <= variable < end, of which the loop may have no value.
struct Part {
  Expr start, end;
  Truths truths = {};
  std::vector<Expr> facts = {};  // of the variable, besides its bounds
  // The loop's body without the guards in `truths`, and which guards are left
  // in it.
  Stmt body = {};
  absl::flat_hash_set<PlacedExpr> live = {};
};

// A comparison that is constant below `low`, the opposite from `high` on.
struct Cut {
  PlacedExpr guard;
  Expr condition;
  Expr low, high;
  bool truth_below;
};

std::string RangeText(Expr start, Expr end) {
  return StrCat("[", ir::Print(start), ", ", ir::Print(end), ")");
}

class SymbolicPlanner {
 public:
  SymbolicPlanner(Stmt loop, PartitionPlanner& planner, Surroundings& around)
      : loop_(loop),
        var_(loop.var()),
        planner_(planner),
        around_(around),
        analyzer_(around.analyzer()),
        limit_(planner.PieceLimit()) {}

  std::optional<std::vector<SymbolicPiece>> Plan() {
    const Expr min = around_.Expand(loop_.min()), extent = around_.Expand(loop_.extent());
    if (analyzer_.CanTrap(min) || analyzer_.CanTrap(extent)) return std::nullopt;
    AssumeFits(min);
    AssumeFits(extent);
    const auto start = Safe(min), end = Safe(min + extent);
    if (!start || !end) return std::nullopt;
    const Part whole = {*start, *end};
    PiecePlan constant;
    std::vector<Part> parts = {whole};
    CutAtConstants(constant, parts);

    std::vector<SymbolicPiece> pieces;
    limit_ -= static_cast<int>(parts.size()) - 1;
    for (const Part& part : parts) {
      const Stmt body = EliminateGuards(loop_.body(), part.truths, constant.found, analyzer_);
      if (body.IsEmpty() && !loop_.body().IsEmpty()) continue;
      GuardsBelow found;
      const std::vector<Part> smaller = CutAtBorders(body, part, found);
      limit_ -= static_cast<int>(smaller.size()) - 1;
      for (const Part& small : smaller) {
        if (small.body.IsEmpty() && !body.IsEmpty()) continue;
        const bool is_whole = parts.size() == 1 && smaller.size() == 1;
        pieces.push_back({is_whole, small.start, is_whole ? loop_.extent() : *ExtentOf(small),
                          small.body, small.facts});
      }
    }
    return pieces;
  }

 private:
  // `e` in the shortest form that cannot leave its type; a bound must not stop the program where the
  // original did not, not even that of a piece without iterations.
  std::optional<Expr> Safe(Expr e) {
    const bool wraps = CanWrap(analyzer_, e);
    // The simpler form is equal modulo 2^bits: in i32 and i64, which do not wrap in a bound, as a number.
    if (wraps && !arith::IsMathematical(e.type())) return std::nullopt;
    const Expr simple = analyzer_.Simplify(e);
    if (!CanWrap(analyzer_, simple)) return simple;
    return wraps ? std::nullopt : std::optional(e);
  }

  std::optional<Expr> ExtentOf(const Part& part) {
    if (const auto extent = Safe(part.end - part.start)) return extent;
    return Safe(ir::Max(part.end, part.start) - part.start);
  }

  bool IsEmptyPart(const Part& part) { return analyzer_.CanProve(part.end <= part.start); }

  // `part` below `border`, and from there on; nothing where there is provably no iteration. False if
  // bounds cannot be written.
  bool SplitPart(const Part& part, Expr border, std::optional<Part>& below,
                 std::optional<Part>& above) {
    const auto end = Safe(ir::Min(part.end, border)), start = Safe(ir::Max(part.start, border));
    if (!start || !end) return false;
    below = part;
    below->end = *end;
    below->facts.push_back(var_ < border);
    above = part;
    above->start = *start;
    above->facts.push_back(border <= var_);
    if (IsEmptyPart(*below)) below.reset();
    if (IsEmptyPart(*above)) above.reset();
    return (!below || ExtentOf(*below)) && (!above || ExtentOf(*above));
  }

  // `border` in a form that does not overflow, or `border` if there is none. It cuts `whole` alike:
  //  - a border needs to be right only where `whole` has an iteration, since a piece of an empty loop is
  //    empty whatever the border is: `max(n, 1) - 7` for n - 7 and a loop from 0 to n;
  //  - a border beyond the values of the type cuts like the last one: `min(m, 2147483646) + 1` for m + 1.
  Expr WithoutOverflow(Expr border, const Part& whole) {
    if (!CanWrap(analyzer_, border)) return border;
    ir::VarMap clamped;
    for (Var x : ir::FreeVars(border)) {
      if (ir::IsFloat(x.type())) continue;  // in the condition of a select
      const ConstRange outside = analyzer_.Range(x);
      Analyzer::Scope scope(analyzer_);
      analyzer_.Assume(whole.start < whole.end);
      const ConstRange inside = analyzer_.Range(x);
      if (inside.IsEmpty()) return border;
      Expr value = x;
      if (inside.min > outside.min) value = ir::Max(value, Constant(inside.min, x.type()));
      if (inside.max < outside.max) value = ir::Min(value, Constant(inside.max, x.type()));
      if (value != x) clamped[x] = value;
    }
    const Expr right_if_run = ir::Substitute(border, clamped);
    if (!CanWrap(analyzer_, right_if_run)) return right_if_run;
    const arith::LinearForm form = analyzer_.Form(border);
    if (form.terms().size() != 1 || !form.terms()[0].atom.Is(ExprKind::kVar) ||
        form.terms()[0].coefficient != 1) {
      return border;
    }
    const Var x(form.terms()[0].atom);
    const int64_t constant = form.constant();
    const ConstRange type = ConstRange::OfType(x.type());
    const auto known = clamped.find(x);
    const Expr value = known == clamped.end() ? Expr(x) : known->second;
    const Expr fits = constant > 0 ? ir::Min(value, Constant(type.max - constant, x.type()))
                                   : ir::Max(value, Constant(type.min - constant, x.type()));
    const Expr result = fits + Constant(constant, x.type());
    return CanWrap(analyzer_, result) ? border : result;
  }

  Expr Constant(int64_t value, ir::Type type) const { return loop_.context().Int(type, value); }

  // The program has got past the evaluation of the bound `e`, so nothing in it wrapped, but for what a select, && or ||
  // may have left out: (n + 3) / 4 says n <= 2^31 - 4. Only from sums of one variable.
  void AssumeFits(Expr e) {
    const bool is_conditional =
        e.Is(ExprKind::kSelect) || e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr);
    for (size_t i = 0; i < e.operands().size() && !(is_conditional && i > 0); ++i) {
      AssumeFits(e.operand(i));
    }
    if (!e.Is(ExprKind::kAdd) && !e.Is(ExprKind::kSub)) return;
    const ConstRange fits = ConstRange::OfType(e.type());
    const arith::LinearForm form = analyzer_.Form(e);
    if (e.type() != ir::Type::kI32 || form.terms().size() != 1) return;
    const arith::LinearForm::Term term = form.terms()[0];
    if (!term.atom.Is(ExprKind::kVar) || term.coefficient != 1) return;
    const ConstRange shifted = fits - ConstRange::Point(form.constant());
    analyzer_.BindRange(term.atom, Intersect(analyzer_.Range(term.atom), shifted));
  }

  // Splits the one part in `parts` at the constants of `plan`, all of them or none.
  void CutAtConstants(PiecePlan& plan, std::vector<Part>& parts) {
    const Part whole = parts.front();
    {
      Surroundings::Scope scope(around_);
      analyzer_.BindLoop(var_, around_.Expand(loop_.min()), around_.Expand(loop_.extent()));
      around_.Assume(whole.start <= var_);
      around_.Assume(var_ < whole.end);
      if (const ConstRange range = analyzer_.Range(var_); range.IsBounded() && !range.IsEmpty()) {
        plan = planner_.Plan(loop_, loop_.body(), {range.min, range.max},
                             /*is_symbolic=*/true);
      }
    }
    for (const Piece& piece : plan.pieces) {
      std::optional<Part> below, above;
      if (piece.range.first != plan.pieces.front().range.first) {
        const Expr border = loop_.context().Int(var_.type(), piece.range.first);
        if (!SplitPart(parts.back(), border, below, above) || !below || !above) {
          planner_.GiveBackPieces(plan.pieces.size());
          plan = {};
          parts = {whole};
          break;
        }
        parts.back() = *below;
        parts.push_back(*above);
      }
      parts.back().truths = piece.truths;
    }
    if (plan.pieces.empty()) return;
    std::vector<std::string> texts;
    for (const Part& part : parts) texts.push_back(RangeText(part.start, part.end));
    planner_.Record(var_, {plan.pieces.front().range.first, plan.pieces.back().range.last}, plan,
                    RangeText(whole.start, whole.end), texts);
  }

  void Eliminate(Stmt body, const GuardsBelow& found, Part& part) {
    part.live.clear();
    part.body = EliminateGuards(body, part.truths, found, analyzer_, &part.live);
  }

  // The pieces of `whole` by the comparisons in `body`.
  std::vector<Part> CutAtBorders(Stmt body, const Part& whole, GuardsBelow& found) {
    std::vector<Part> parts = {whole};
    parts[0].truths.clear();
    parts[0].body = body;
    if (!planner_.HasGuard(body)) return parts;
    std::vector<Cut> cuts;
    {
      Surroundings::Scope scope(around_);
      analyzer_.BindLoop(var_, around_.Expand(loop_.min()), around_.Expand(loop_.extent()));
      for (Expr fact : whole.facts) analyzer_.Assume(fact);
      found = planner_.FindGuards(loop_, body);
      FindCuts(found, cuts);
    }
    for (Cut& cut : cuts) {
      cut.low = WithoutOverflow(cut.low, whole);
      cut.high = WithoutOverflow(cut.high, whole);
    }

    const int limit = std::min(limit_, planner_.PieceLimit());
    LoopPartitionStats::Loop record = {.variable = std::string(var_.name()),
                                       .bounds = RangeText(whole.start, whole.end)};
    if (!cuts.empty()) Eliminate(body, found, parts[0]);
    for (const Cut& cut : cuts) {
      // Only where the comparison still decides something: not where another
      // one that is false has taken its branch away.
      const auto is_live = [&](const Part& part) { return part.live.contains(cut.guard); };
      if (std::none_of(parts.begin(), parts.end(), is_live)) continue;
      std::vector<Part> with;
      bool can_write = !CanWrap(analyzer_, cut.low) && !CanWrap(analyzer_, cut.high);
      for (size_t i = 0; i < parts.size() && can_write; ++i) {
        if (!is_live(parts[i])) {
          with.push_back(parts[i]);
          continue;
        }
        std::optional<Part> below, middle, above;
        can_write = SplitPart(parts[i], cut.low, below, above);
        if (can_write && above && cut.low != cut.high) {
          const Part rest = *above;
          can_write = SplitPart(rest, cut.high, middle, above);
        }
        if (below) below->truths[cut.guard] = cut.truth_below;
        if (above) above->truths[cut.guard] = !cut.truth_below;
        for (const std::optional<Part>& part : {below, middle, above}) {
          if (part) with.push_back(*part);
        }
      }
      if (!can_write || with.empty()) continue;
      const bool taken = static_cast<int>(with.size()) <= limit;
      if (taken) {
        parts = std::move(with);
        for (Part& part : parts) {
          if (is_live(part) && part.truths.contains(cut.guard)) Eliminate(body, found, part);
        }
      }
      const std::string low = ir::Print(cut.low), high = ir::Print(cut.high);
      const std::string below = StrCat("[.., ", low, ")"), above = StrCat("[", high, ", ..)");
      record.guards.push_back({.condition = ir::Print(cut.condition),
                               .true_set = cut.truth_below ? below : above,
                               .false_set = cut.truth_below ? above : below,
                               .both_set = low == high ? "none" : StrCat("[", low, ", ", high, ")"),
                               .taken = taken});
    }
    planner_.TakePieces(parts.size());
    if (planner_.stats() != nullptr && !record.guards.empty()) {
      for (const Part& part : parts) {
        record.piece_bounds.push_back(RangeText(part.start, part.end));
      }
      planner_.stats()->loops.push_back(std::move(record));
    }
    return parts;
  }

  // The comparisons of the guards, and of their parts, that change at values known before the loop.
  void FindCuts(const GuardsBelow& found, std::vector<Cut>& cuts) {
    absl::flat_hash_set<PlacedExpr> seen;
    for (const LoopGuard& guard : found.guards) {
      for (const Expr part : found.PartsOf(guard.node)) {
        if (!seen.insert({guard.place, part}).second) continue;
        // A min or max stands for its comparison.
        const Expr condition = part == guard.node ? guard.condition : around_.Expand(part);
        if (auto cut = FindCut(condition, found)) {
          cut->guard = {guard.place, part};
          cuts.push_back(*cut);
        }
      }
    }
  }

  // coefficient * var + inner + outer < 0, where `inner` is a sum of variables of inner loops of
  // constant bounds, and `outer` is known before the loop.
  std::optional<Cut> FindCut(Expr condition, const GuardsBelow& found) {
    const bool is_le = condition.Is(ExprKind::kLe);
    const ir::Type type = var_.type();
    if (!(is_le || condition.Is(ExprKind::kLt)) || condition.operand(0).type() != type ||
        analyzer_.CanTrap(condition)) {
      return std::nullopt;
    }
    arith::LinearForm form = analyzer_.Form(condition.operand(0));
    if (!form.Add(analyzer_.Form(condition.operand(1)), -1)) return std::nullopt;
    if (is_le && !form.AddConstant(-1)) return std::nullopt;
    const int64_t coefficient = form.CoefficientOf(var_);
    if (coefficient == 0 || !form.AddTerm(var_, -coefficient)) return std::nullopt;
    arith::LinearForm inner, outer = arith::LinearForm::Constant(form.constant());
    for (const arith::LinearForm::Term& term : form.terms()) {
      const bool is_inner = term.atom.Is(ExprKind::kVar) && found.inner.contains(term.atom);
      if (is_inner && !around_.HasConstantBounds(term.atom)) return std::nullopt;
      if (!is_inner) {
        for (Var x : ir::FreeVars(term.atom)) {
          if (x == var_ || found.inner.contains(x)) return std::nullopt;
        }
        if (term.atom.type() != type) return std::nullopt;
      }
      if (!(is_inner ? inner : outer).AddTerm(term.atom, term.coefficient)) return std::nullopt;
    }
    const ConstRange range = analyzer_.Range(inner);
    if (outer.IsConstant() || !range.IsBounded()) return std::nullopt;
    // True where coefficient * var < -outer - range.max, false where it is not even below
    // -outer - range.min.
    const auto where_true = Border(outer, range.max, coefficient, type);
    const auto where_false = Border(outer, range.min, coefficient, type);
    if (!where_true || !where_false) return std::nullopt;
    Cut cut = {.guard = {}, .condition = condition, .low = {}, .high = {}, .truth_below = {}};
    cut.truth_below = coefficient > 0;
    cut.low = cut.truth_below ? *where_true : *where_false;
    cut.high = cut.truth_below ? *where_false : *where_true;
    return cut;
  }

  // The first x with coefficient * x + outer + inner >= 0, or with < 0 for a negative coefficient.
  std::optional<Expr> Border(const arith::LinearForm& outer, int64_t inner, int64_t coefficient,
                             ir::Type type) {
    // floor((-outer - inner - 1) / coefficient) + 1, and floor((outer + inner) / -coefficient) + 1.
    const int64_t sign = coefficient > 0 ? -1 : 1;
    const int64_t divisor = coefficient > 0 ? coefficient : -coefficient;
    arith::LinearForm numerator;
    if (!numerator.Add(outer, sign) || !numerator.AddConstant(sign * inner) ||
        !numerator.AddConstant((sign - 1) / 2 + (divisor == 1 ? 1 : 0))) {
      return std::nullopt;
    }
    const ConstRange fits = ConstRange::OfType(type);
    if (!fits.Contains(numerator.constant()) || !fits.Contains(divisor)) return std::nullopt;
    for (const arith::LinearForm::Term& term : numerator.terms()) {
      if (!fits.Contains(term.coefficient)) return std::nullopt;
    }
    ir::Context& context = loop_.context();
    const Expr sum = arith::SumExpr(
        context, type, arith::InPrintingOrder(numerator, [](Expr) { return uint64_t{0}; }),
        numerator.constant());
    if (divisor == 1) return sum;
    return sum / context.Int(type, divisor) + context.Int(type, 1);
  }

  const Stmt loop_;
  const Var var_;
  PartitionPlanner& planner_;
  Surroundings& around_;
  Analyzer& analyzer_;
  int limit_;  // of pieces that the loop may still get
};

}  // namespace

std::optional<std::vector<SymbolicPiece>> PlanSymbolicLoop(Stmt loop, PartitionPlanner& planner,
                                                           Surroundings& around) {
  return SymbolicPlanner(loop, planner, around).Plan();
}

}  // namespace polynao
