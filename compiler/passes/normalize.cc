// Method: one walk. An expression is taken apart at chains of one operator; the operands, themselves
// normalized, are sorted by rank and put together again:
//
//   j + i + n * 2 - 1     ranks 2 1 0 0     -->     ((n * 2 - 1) + i) + j
//
// What may change is left alone where the new order could stop a program that ran before:
//   - In an index, bound or condition each sum on the way must fit its type by the ranges of its
//     terms, or all terms must be >= 0, so that no sum on the way exceeds the last one.
//   - An operand of && or || that may trap keeps everything in front of it that was there.
#include "compiler/passes/normalize.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/logic.h"
#include "compiler/ir/expr_map.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/effects.h"
#include "compiler/passes/facts.h"
#include "compiler/passes/join_ifs.h"
#include "compiler/passes/pass.h"

namespace polynao {
namespace {

using arith::Analyzer;
using arith::ConstRange;
using arith::Mode;
using arith::OperandMode;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

// Longer chains are taken apart in pieces, which keeps time linear where expressions are shared.
constexpr size_t kMaxOperands = 64;
// Of what is loaded from memory that the function writes.
constexpr int kMemoryRank = std::numeric_limits<int>::max();

// An operand of a chain. Of sums: `negative` if it is subtracted.
struct Term {
  Expr e;
  bool negative = false;
  int rank = 0;
};

class Normalizer {
 public:
  Normalizer(const ir::Function& function, const Target& target, const NormalizeOptions& options,
             NormalizeStats& stats)
      : context_(*function.context),
        options_(options),
        stats_(stats),
        effects_(function, target.instructions ? &target.instructions->intrinsics() : nullptr),
        // Conditions inside of an index are no facts here: each select would be simplified anew for
        // every operand around it.
        analyzer_(context_, {.max_nested_conditions = 0}),
        written_(effects_.Writes(function.body)) {
    AssumeParameters(function, analyzer_);
  }

  Stmt Walk(Stmt s) {
    switch (s.kind()) {
      case StmtKind::kFor: {
        const Expr min = Normal(s.min(), Mode::kIndex);
        const Expr extent = Normal(s.extent(), Mode::kIndex);
        ranks_.Set(s.var(), ++depth_);
        const Stmt body = InScope([&] { analyzer_.BindLoop(s.var(), min, extent); }, s.body());
        --depth_;
        return context_.Rebuild(s, {min, extent}, {body});
      }
      case StmtKind::kIf:
        return If(s);
      case StmtKind::kLet: {
        const Expr value = Normal(s.value(), Mode::kData);
        ranks_.Set(s.var(), Rank(value));
        const Stmt body =
            InScope([&] { analyzer_.BindLet(s.var(), value, Mode::kData); }, s.body());
        return context_.Rebuild(s, {value}, {body});
      }
      case StmtKind::kStore: {
        std::vector<Expr> operands;
        for (Expr index : s.indices()) operands.push_back(Normal(index, Mode::kIndex));
        operands.push_back(Normal(s.value(), Mode::kData));
        return context_.Rebuild(s, operands, {});
      }
      case StmtKind::kSeq:
        return Seq(s);
      case StmtKind::kAllocate:
      case StmtKind::kPragma:
      case StmtKind::kEvaluate: {
        std::vector<Expr> operands;
        for (Expr e : s.operands()) operands.push_back(Normal(e, Mode::kIndex));
        std::vector<Stmt> children;
        for (Stmt child : s.children()) children.push_back(Walk(child));
        return context_.Rebuild(s, operands, children);
      }
    }
    POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
  }

 private:
  // ---- statements -------------------------------------------------------------------------------

  template <typename Assume>
  Stmt InScope(const Assume& assume, Stmt body) {
    Stmt result;
    {
      Analyzer::Scope scope(analyzer_);
      assume();
      Forget();
      result = Walk(body);
    }
    Forget();
    return result;
  }

  // What was proven elsewhere need not hold here, and the other way round.
  void Forget() {
    done_as_index_.Clear();
    done_as_data_.Clear();
  }

  Stmt If(Stmt s) {
    const Expr cond = Normal(s.cond(), Mode::kIndex);
    const Stmt then_case = InScope([&] { analyzer_.Assume(cond); }, s.then_case());
    const Stmt else_case = s.else_case().IsEmpty()
                               ? s.else_case()
                               : InScope([&] { analyzer_.Assume(cond, false); }, s.else_case());
    if (then_case.Is(StmtKind::kIf) && then_case.else_case().IsEmpty() && else_case.IsEmpty()) {
      ++stats_.nested_ifs;
      return context_.If(Normal(ir::And(cond, then_case.cond()), Mode::kIndex),
                         then_case.then_case());
    }
    return context_.Rebuild(s, {cond}, {then_case, else_case});
  }

  Stmt Seq(Stmt s) {
    const Stmt walked = ir::MapChildren(s, [&](Stmt child) { return Walk(child); });
    if (!walked.Is(StmtKind::kSeq)) return walked;
    const std::vector<Stmt> joined = JoinNeighbours(walked.children(), effects_, stats_.joined_ifs);
    return joined.size() == walked.children().size() ? walked : context_.Seq(joined);
  }

  // ---- expressions ------------------------------------------------------------------------------

  int Rank(Expr e) {
    if (e.IsConst()) return 0;
    if (const int* rank = ranks_.Find(e)) return *rank;
    int rank = 0;
    if (e.Is(ExprKind::kLet)) ranks_.Set(e.var(), Rank(e.operand(0)));
    if ((e.Is(ExprKind::kLoad) && effects_.Contains(written_, ir::Buffer(e.buffer()))) ||
        (e.Is(ExprKind::kCall) && !ir::IsPureCall(e))) {
      rank = kMemoryRank;
    }
    for (Expr operand : e.operands()) rank = std::max(rank, Rank(operand));
    return ranks_.Set(e, rank);
  }

  Expr Normal(Expr e, Mode mode) {
    if (e.operands().empty() && !e.Is(ExprKind::kLoad)) return e;
    ir::ExprMap<Expr>& done = mode == Mode::kIndex ? done_as_index_ : done_as_data_;
    if (const Expr* known = done.Find(e)) return *known;
    return done.Set(e, NormalNew(e, mode));
  }

  Expr NormalNew(Expr e, Mode mode) {
    if (e.Is(ExprKind::kSelect)) return Collapse(e, mode);
    if (e.Is(ExprKind::kLet)) Rank(e);  // gives its variable a rank
    if (IsChain(e)) {
      const Expr chain = Chain(e, mode);
      if (chain) return chain;
    }
    return NormalOperands(e, mode);
  }

  Expr NormalOperands(Expr e, Mode mode) {
    std::vector<Expr> operands;
    operands.reserve(e.operands().size());
    for (size_t i = 0; i < e.operands().size(); ++i) {
      operands.push_back(Normal(e.operand(i), OperandMode(e, i, mode)));
    }
    return context_.Rebuild(e, operands);
  }

  // A select and those in its branches that have a result in common.
  Expr Collapse(Expr e, Mode mode) {
    Expr cond = Normal(e.operand(0), Mode::kIndex);
    Expr a = Normal(e.operand(1), mode);
    Expr b = Normal(e.operand(2), mode);
    bool collapsed = true;
    for (; collapsed && a != b; stats_.collapsed += collapsed) {
      collapsed = true;
      if (a.Is(ExprKind::kSelect) && a.operand(2) == b) {
        cond = ir::And(cond, a.operand(0));
        a = a.operand(1);
      } else if (a.Is(ExprKind::kSelect) && a.operand(1) == b) {
        cond = ir::And(cond, arith::Negation(a.operand(0)));
        a = a.operand(2);
      } else if (b.Is(ExprKind::kSelect) && b.operand(1) == a) {
        cond = ir::Or(cond, b.operand(0));
        b = b.operand(2);
      } else if (b.Is(ExprKind::kSelect) && b.operand(2) == a) {
        cond = ir::Or(cond, arith::Negation(b.operand(0)));
        b = b.operand(1);
      } else {
        collapsed = false;
      }
    }
    if (a == b) {
      ++stats_.collapsed;
      return a;
    }
    return context_.Rebuild(e, {Normal(cond, Mode::kIndex), a, b});
  }

  // ---- chains of an associative operator --------------------------------------------------------

  static bool IsSum(Expr e) { return e.Is(ExprKind::kAdd) || e.Is(ExprKind::kSub); }

  bool IsChain(Expr e) const {
    switch (e.kind()) {
      case ExprKind::kAdd:
      case ExprKind::kSub:
      case ExprKind::kMul:
        return ir::IsInt(e.type()) || options_.floats;
      case ExprKind::kMin:
      case ExprKind::kMax:
        return ir::IsInt(e.type());
      default:
        return e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr);
    }
  }

  // The operands of the chain that `root` ends, normalized, from left to right.
  std::vector<Term> Operands(Expr root, Mode mode) {
    const auto continues = [&](Expr e) { return IsSum(root) ? IsSum(e) : e.kind() == root.kind(); };
    std::vector<Term> terms;
    std::vector<Term> stack = {{root}};
    bool at_root = true;
    while (!stack.empty()) {
      Term term = stack.back();
      stack.pop_back();
      const bool room = terms.size() + stack.size() < kMaxOperands;
      if (!at_root && !(continues(term.e) && room)) term.e = Normal(term.e, mode);
      at_root = false;
      if (continues(term.e) && room) {
        const bool negative = term.negative != term.e.Is(ExprKind::kSub);
        stack.push_back({term.e.operand(1), negative});
        stack.push_back({term.e.operand(0), term.negative});
        continue;
      }
      term.rank = Rank(term.e);
      terms.push_back(term);
    }
    return terms;
  }

  // The chain `e` in order of rank; null if that order might stop the program.
  Expr Chain(Expr e, Mode mode) {
    std::vector<Term> terms = Operands(e, mode);
    // Each of two values leaves its loops by itself. Their order stays as back ends know it: of
    // `sum + a * b`, of which they make multiply-add and dot product instructions.
    if (mode == Mode::kData && terms.size() == 2) return {};
    if (e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr)) HoldBack(terms, mode);
    const bool needs_proof = mode == Mode::kIndex && ir::IsInt(e.type()) &&
                             (e.type() == ir::Type::kI32 || e.type() == ir::Type::kI64) &&
                             (IsSum(e) || e.Is(ExprKind::kMul));
    const bool ordered = std::is_sorted(terms.begin(), terms.end(), ByRank);
    if (!ordered) SortByRank(terms);
    ConstantsAfterFirst(terms);
    const Expr result = Build(e, terms, needs_proof);
    stats_.regrouped += result && result != e;
    return result;
  }

  static bool ByRank(const Term& a, const Term& b) { return a.rank < b.rank; }

  static void SortByRank(std::vector<Term>& terms) {
    // A stable sort: by rank, then by place.
    std::vector<std::pair<Term, size_t>> places;
    places.reserve(terms.size());
    for (const Term& term : terms) places.emplace_back(term, places.size());
    std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.rank, a.second) < std::pair(b.first.rank, b.second);
    });
    for (size_t i = 0; i < terms.size(); ++i) terms[i] = places[i].first;
  }

  // Operands of && and || that may trap get the rank of the highest in front of them, which keeps
  // all of these in front: `i < n && A[i] < 3` guards its load.
  void HoldBack(std::vector<Term>& terms, Mode mode) {
    int highest = 0;
    for (Term& term : terms) {
      if (term.rank < highest && effects_.MayTrap(term.e, analyzer_, mode)) term.rank = highest;
      highest = std::max(highest, term.rank);
    }
  }

  // Constants stand behind the operands of the lowest other rank, as in `i * 4 + 3`, and join them.
  static void ConstantsAfterFirst(std::vector<Term>& terms) {
    std::vector<Term> constants, others;
    for (const Term& term : terms) (term.e.IsConst() ? constants : others).push_back(term);
    if (constants.empty() || others.empty()) return;
    size_t end = 0;
    while (end < others.size() && others[end].rank == others[0].rank) ++end;
    for (Term& constant : constants) constant.rank = others[0].rank;
    others.insert(others.begin() + static_cast<int64_t>(end), constants.begin(), constants.end());
    terms = std::move(others);
  }

  // Part of a chain that is put together.
  struct Part {
    Expr e;
    bool negative = false;
    ConstRange range;  // of `e`, if a proof is needed
  };

  Expr Build(Expr like, const std::vector<Term>& terms, bool needs_proof) {
    // Without a negative term no sum on the way exceeds the whole.
    bool grows = needs_proof && IsSum(like);
    std::vector<Part> parts;
    for (const Term& term : terms) {
      parts.push_back({.e = term.e, .negative = term.negative, .range = {}});
      if (!needs_proof) continue;
      parts.back().range = analyzer_.Range(term.e, Mode::kIndex);
      grows = grows && !term.negative && parts.back().range.min >= 0;
    }
    needs_proof = needs_proof && !grows;
    std::optional<Part> all;
    for (size_t begin = 0, end; begin < terms.size(); begin = end) {
      for (end = begin; end < terms.size() && terms[end].rank == terms[begin].rank;) ++end;
      // A sum begins with what is added.
      size_t first = begin;
      while (first < end && parts[first].negative) ++first;
      if (first == end) first = begin;
      Part group = parts[first];
      for (size_t i = begin; i < end; ++i) {
        if (i != first && !Combine(like, group, parts[i], needs_proof)) return {};
      }
      if (!all) {
        all = group;
      } else if (!Combine(like, *all, group, needs_proof)) {
        return {};
      }
    }
    // Nothing but subtrahends can not be: a chain begins with what is added.
    POLYNAO_CHECK(!all->negative);
    return all->e;
  }

  // Makes `a` the combination of both; false if that could overflow where it must not.
  bool Combine(Expr like, Part& a, const Part& b, bool needs_proof) {
    if (!IsSum(like)) {
      a.e = context_.Binary(like.kind(), a.e, b.e);
      if (needs_proof) a.range = a.range * b.range;
    } else if (a.negative == b.negative) {
      a.e = a.e + b.e;
      a.range = a.range + b.range;
    } else if (b.negative) {
      a.e = a.e - b.e;
      a.range = a.range - b.range;
    } else {
      a = {.e = b.e - a.e, .negative = false, .range = b.range - a.range};
    }
    if (!needs_proof) return true;
    return like.type() == ir::Type::kI64 ? a.range.IsBounded()
                                         : ConstRange::OfType(like.type()).Contains(a.range);
  }

  ir::Context& context_;
  const NormalizeOptions& options_;
  NormalizeStats& stats_;
  Effects effects_;
  Analyzer analyzer_;
  const BufferSet written_;
  int depth_ = 0;
  ir::ExprMap<int> ranks_;
  // Normal forms, which hold as long as the facts do.
  ir::ExprMap<Expr> done_as_index_;
  ir::ExprMap<Expr> done_as_data_;
};

}  // namespace

absl::StatusOr<bool> Normalize(ir::Function& function, const Target& target,
                               const NormalizeOptions& options, NormalizeStats* stats) {
  NormalizeStats local;
  const ir::Stmt body =
      Normalizer(function, target, options, stats ? *stats : local).Walk(function.body);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

namespace {

absl::StatusOr<bool> RunNormalize(ir::Function& function, const PassEnvironment& environment,
                                  NormalizeOptions options) {
  NormalizeStats stats;
  ASSIGN_OR_RETURN(bool changed, Normalize(function, environment.target, options, &stats));
  if (environment.stats != nullptr) {
    environment.stats->push_back(
        StrCat(stats.regrouped, " expressions regrouped, ", stats.collapsed, " selects collapsed, ",
               stats.nested_ifs, " nested ifs and ", stats.joined_ifs, " neighbours joined"));
  }
  return changed;
}

}  // namespace

PassInfo NormalizePass() {
  return WithOptions<NormalizeOptions>(
      {.name = "normalize",
       .doc = "orders operands by the depth of their loops; joins conditions and branches"},
      {BoolOption("float", &NormalizeOptions::floats, "order sums and products of floats, too")},
      FixedDefaults, RunNormalize);
}

}  // namespace polynao
