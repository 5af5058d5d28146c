#include "compiler/passes/tensorize.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "isa/affine.h"

namespace polynao {
namespace {

using arith::Analyzer;
using ir::Buffer;
using ir::Context;
using ir::Expr;
using ir::ExprKind;
using ir::Function;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::Var;

// ---- patterns -----------------------------------------------------------------------------------

// A perfect nest of loops from 0 over one store, indices linear in the loops.
struct Pattern {
  const isa::Instruction* instruction;
  std::vector<Var> vars = {};  // outermost first
  std::vector<Expr> extents = {};
  Stmt store = {};
  // Of the store and of each load (by node), over `vars`.
  isa::Affine store_index = {};
  absl::flat_hash_map<Expr, isa::Affine> load_index = {};
};

// The pattern of an instruction, if its meaning has the form; copied into `context`, so that its
// expressions can be compared and combined with the function's.
std::optional<Pattern> MakePattern(const isa::Instruction& instruction, const Function& meaning) {
  Pattern pattern{.instruction = &instruction};
  Stmt s = meaning.body;
  while (s.Is(StmtKind::kFor)) {
    if (!s.min().IsInt(0)) return std::nullopt;
    pattern.vars.push_back(s.var());
    pattern.extents.push_back(s.extent());
    s = s.body();
  }
  if (!s.Is(StmtKind::kStore) || s.indices().size() != 1 || pattern.vars.empty()) {
    return std::nullopt;
  }
  pattern.store = s;
  const std::optional<isa::Affine> store = isa::Linearize(s.indices()[0], pattern.vars);
  if (!store || store->constant) return std::nullopt;
  pattern.store_index = *store;
  bool linear = true;
  ir::ForEachExpr(s.value(), [&](Expr e) {
    if (!e.Is(ExprKind::kLoad)) return;
    const std::optional<isa::Affine> index = isa::Linearize(e.operand(0), pattern.vars);
    if (!index || index->constant) {
      linear = false;
    } else {
      pattern.load_index[e] = *index;
    }
  });
  return linear ? std::optional(pattern) : std::nullopt;
}

// An instruction that a compiler may choose, and what its pattern stores, to sort out most of them
// before anything is copied.
struct Candidate {
  const isa::Instruction* instruction;
  Buffer store_buffer;  // of the meaning, in its own context
  ExprKind value_kind;  // kVar matches any value
  // In the function's context; made when the first nest needs it, and absent if the meaning has not
  // the form of a pattern.
  bool made = false;
  std::optional<Pattern> pattern = {};
  Function meaning = {};
};

std::vector<Candidate> MakeCandidates(const isa::InstructionSet& set) {
  std::vector<Candidate> candidates;
  for (const isa::Instruction& instruction : set.instructions()) {
    // A waiting twin of a queued instruction does nothing more; sync places the waits.
    if (instruction.queue == isa::Queue::kNone || instruction.waits) continue;
    Stmt s = instruction.meaning.body;
    while (s.Is(StmtKind::kFor)) s = s.body();
    if (!s.Is(StmtKind::kStore)) continue;
    candidates.push_back(
        {.instruction = &instruction, .store_buffer = s.buffer(), .value_kind = s.value().kind()});
  }
  return candidates;
}

// ---- nests --------------------------------------------------------------------------------------

// One loop of the matched nest; several loops of the program where they run through memory without
// a gap.
struct NestLoop {
  std::vector<Stmt> loops;  // the program's loops, outermost first
  Expr extent;              // i64
};

struct Access {
  Buffer buffer;
  Expr index;                           // as in the program
  std::vector<Expr> coefficients = {};  // i64, one per nest loop, never null
};

struct Nest {
  Stmt root;
  std::vector<NestLoop> loops = {};
  Stmt store = {};
  Access target = {};
  absl::flat_hash_map<Expr, Access> loads = {};
};

// A match of one nest with one pattern.
struct Match {
  const Pattern* pattern = nullptr;
  std::vector<Expr> arguments = {};
  size_t outer_loops = 0;  // nest loops that stay around the instruction
  bool unit_loop = false;
  int64_t cost = 0;
  // The smallest wins: few instructions, cheap ones, long segments, few operands.
  auto Rank() const { return std::tuple(outer_loops, cost, unit_loop, arguments.size()); }
  // Elements that rounded counts reach, by buffer.
  absl::flat_hash_map<Buffer, int64_t> needed = {};
};

class Tensorizer {
 public:
  Tensorizer(Function& function, const Target& target, std::vector<TensorizeDecision>* decisions)
      : function_(function),
        target_(target),
        c_(*function.context),
        decisions_(decisions),
        candidates_(MakeCandidates(*target.instructions)),
        analyzer_(c_) {}

  absl::StatusOr<bool> Run() {
    const Stmt body = ExpandAllocations(Walk(function_.body, ""));
    const bool changed = body != function_.body;
    function_.body = body;
    return changed;
  }

 private:
  // ---- walking

  Stmt Walk(Stmt s, std::string_view family) {
    Analyzer::Scope scope(analyzer_);
    switch (s.kind()) {
      case StmtKind::kPragma: {
        const bool is_hint = s.name() == "tensorize" || IsFamily(s.name());
        const std::string_view inner = is_hint ? s.name() : family;
        const Stmt body = Walk(s.body(), inner);
        // A hint has done its work when nothing is left to match below it.
        if (is_hint && body != s.body() && !HasStore(body)) return body;
        return c_.Rebuild(s, s.operands(), {body});
      }
      case StmtKind::kFor: {
        if (s.for_kind() != ir::ForKind::kThread) {
          if (std::optional<Stmt> call = TryNest(s, family)) return *call;
        }
        analyzer_.BindLoop(s.var(), s.min(), s.extent());
        break;
      }
      case StmtKind::kStore:
        if (std::optional<Stmt> call = TryNest(s, family)) return *call;
        return s;
      case StmtKind::kLet:
        if (ir::IsInt(s.var().type())) analyzer_.BindLet(s.var(), s.value());
        break;
      case StmtKind::kIf: {
        Stmt branches[2];
        for (const bool truth : {true, false}) {
          Analyzer::Scope branch(analyzer_);
          analyzer_.Assume(s.cond(), truth);
          open_conditions_.emplace_back(s.cond(), truth);
          branches[truth ? 0 : 1] = Walk(truth ? s.then_case() : s.else_case(), family);
          open_conditions_.pop_back();
        }
        return c_.Rebuild(s, s.operands(), branches);
      }
      case StmtKind::kAllocate:
        scope_of_[s.buffer()] = s;
        break;
      default:
        break;
    }
    // What matched nothing has been reported; its parts get their own try in silence.
    const bool reported = s.Is(StmtKind::kFor) && s.for_kind() != ir::ForKind::kThread;
    silent_ += reported;
    if (s.Is(StmtKind::kFor)) open_loops_.push_back(s);
    std::vector<Stmt> children;
    for (Stmt child : s.children()) children.push_back(Walk(child, family));
    if (s.Is(StmtKind::kFor)) open_loops_.pop_back();
    silent_ -= reported;
    return c_.Rebuild(s, s.operands(), children);
  }

  bool IsFamily(std::string_view name) const {
    for (const isa::Instruction& instruction : target_.instructions->instructions()) {
      if (instruction.family == name) return true;
    }
    return false;
  }

  static bool HasStore(Stmt root) {
    bool found = false;
    ir::ForEachStmt(root, [&](Stmt s) {
      found = found || s.Is(StmtKind::kStore);
      return !found;
    });
    return found;
  }

  // The pattern of a candidate that may match a nest, else null.
  const Pattern* PatternFor(Candidate& candidate, const Nest& nest) {
    const Expr value = nest.store.value();
    if (candidate.value_kind != ExprKind::kVar && candidate.value_kind != value.kind()) {
      return nullptr;
    }
    if (!candidate.made) {
      candidate.made = true;
      candidate.meaning = ir::CloneInto(candidate.instruction->meaning, function_.context);
      candidate.pattern = MakePattern(*candidate.instruction, candidate.meaning);
    }
    return candidate.pattern ? &*candidate.pattern : nullptr;
  }

  std::optional<Stmt> TryNest(Stmt s, std::string_view family) {
    std::string reason;
    int reason_progress = -1;
    std::optional<Nest> nest = MakeNest(s, reason);
    std::optional<Match> best;
    for (Candidate& candidate : candidates_) {
      if (!nest) break;
      const isa::Instruction& instruction = *candidate.instruction;
      if (!family.empty() && family != "tensorize" && instruction.family != family) continue;
      if (candidate.store_buffer->type != nest->target.buffer->type ||
          candidate.store_buffer->scope != nest->target.buffer->scope) {
        // Cheap to sort out, but worth a word where nothing else comes closer.
        if (reason_progress < 0) {
          reason =
              StrCat(instruction.mnemonic, ": '", nest->target.buffer->name, "' is ",
                     ir::TypeName(nest->target.buffer->type), " in ", nest->target.buffer->scope);
        }
        continue;
      }
      const Pattern* pattern = PatternFor(candidate, *nest);
      if (pattern == nullptr) {
        if (reason_progress < 0) {
          reason_progress = 0;
          reason = StrCat(instruction.mnemonic, ": '", ir::Print(nest->store.value()), "' is ",
                          ir::ExprKindName(nest->store.value().kind()), ", not ",
                          ir::ExprKindName(candidate.value_kind));
        }
        continue;
      }
      // The nest as it is, or with a loop of one iteration inside (a column copied one by one); all
      // of its loops in the instruction, or only inner ones.
      const int nest_loops = static_cast<int>(nest->loops.size());
      for (const bool unit_loop : {false, true}) {
        const int available = static_cast<int>(pattern->vars.size()) - unit_loop;
        for (int used = std::min(nest_loops, available); used >= std::min(nest_loops, 1); --used) {
          Attempt attempt{.nest = *nest, .pattern = *pattern, .meaning = candidate.meaning};
          const std::optional<Match> match = TryPattern(attempt, used, unit_loop);
          if (match && (!best || match->Rank() < best->Rank())) best = match;
          if (!match && attempt.progress > reason_progress) {
            reason_progress = attempt.progress;
            reason = StrCat(instruction.mnemonic, ": ", attempt.why);
          }
        }
      }
    }
    if (!best) {
      // Only nests that somebody marked: not all code is meant to be tensor instructions.
      if (decisions_ != nullptr && !family.empty() && silent_ == 0) {
        decisions_->push_back({FirstLine(s), "", reason});
      }
      return std::nullopt;
    }
    if (decisions_ != nullptr) {
      decisions_->push_back({FirstLine(s), best->pattern->instruction->mnemonic, ""});
    }
    for (const auto& [buffer, elements] : best->needed) {
      int64_t& needed = needed_[buffer];
      needed = std::max(needed, elements);
    }
    Stmt result =
        c_.Evaluate(c_.Call(Type::kI32, best->pattern->instruction->mnemonic, best->arguments));
    for (size_t k = best->outer_loops; k-- > 0;) {
      const std::vector<Stmt>& loops = nest->loops[k].loops;
      for (size_t j = loops.size(); j-- > 0;) {
        result = c_.Rebuild(loops[j], loops[j].operands(), {result});
      }
    }
    return result;
  }

  static std::string FirstLine(Stmt s) {
    const std::string text = ir::Print(s);
    return text.substr(0, text.find('\n'));
  }

  // ---- nests

  Expr Wide(Expr e) {
    if (e.Is(ExprKind::kIntImm)) return c_.I64(e.int_value());
    return analyzer_.Simplify(c_.Cast(Type::kI64, e));
  }

  // An i64 expression, simplified; null counts as 0.
  Expr Settle(Expr e) { return e ? Wide(analyzer_.Simplify(e)) : c_.I64(0); }

  std::optional<Access> MakeAccess(Buffer buffer, Expr index, absl::Span<const Var> vars) {
    const std::optional<isa::Affine> affine = isa::Linearize(index, vars);
    if (!affine) return std::nullopt;
    Access access{.buffer = buffer, .index = index};
    for (Expr coefficient : affine->coefficients)
      access.coefficients.push_back(Settle(coefficient));
    return access;
  }

  std::optional<Nest> MakeNest(Stmt root, std::string& reason) {
    Nest nest{.root = root};
    std::vector<Var> vars;
    Stmt s = root;
    Analyzer::Scope scope(analyzer_);
    while (s.Is(StmtKind::kFor) || s.Is(StmtKind::kPragma)) {
      if (s.Is(StmtKind::kFor)) {
        if (s.for_kind() == ir::ForKind::kThread) {
          reason = StrCat("the thread loop '", s.var().name(), "' stands inside");
          return std::nullopt;
        }
        vars.push_back(s.var());
        // A negative extent runs no iteration; a count must not be negative.
        const Expr zero = c_.Int(s.extent().type(), 0);
        const bool not_negative = analyzer_.CanProve(zero <= s.extent());
        nest.loops.push_back({{s}, Wide(not_negative ? s.extent() : ir::Max(s.extent(), zero))});
        analyzer_.BindLoop(s.var(), s.min(), s.extent());
      }
      s = s.body();
    }
    if (!s.Is(StmtKind::kStore)) {
      reason = s.Is(StmtKind::kIf) ? StrCat("a guard stands inside: ", FirstLine(s))
                                   : "the body is not one store";
      return std::nullopt;
    }
    // Inner loops' bounds must not depend on outer ones of the nest.
    for (size_t k = 0; k < vars.size(); ++k) {
      for (Var var : vars) {
        const Stmt loop = nest.loops[k].loops[0];
        if (ir::UsesVar(loop.min(), var) || ir::UsesVar(loop.extent(), var)) {
          reason = StrCat("the bounds of '", loop.var().name(), "' depend on '", var.name(), "'");
          return std::nullopt;
        }
      }
    }
    nest.store = s;
    if (s.indices().size() != 1) {
      reason = "the buffers are not flattened";
      return std::nullopt;
    }
    std::optional<Access> target = MakeAccess(s.buffer(), s.indices()[0], vars);
    bool linear = target.has_value();
    ir::ForEachExpr(s.value(), [&](Expr e) {
      if (!e.Is(ExprKind::kLoad) || !linear) return;
      std::optional<Access> access = e.operands().size() == 1
                                         ? MakeAccess(Buffer(e.buffer()), e.operand(0), vars)
                                         : std::nullopt;
      linear = access.has_value();
      if (linear) nest.loads[e] = *std::move(access);
    });
    if (!linear) {
      reason = "an index is not linear in the loop variables";
      return std::nullopt;
    }
    nest.target = *std::move(target);
    Collapse(nest);
    return nest;
  }

  template <typename Visit>
  static void ForEachAccess(Nest& nest, const Visit& visit) {
    visit(nest.target);
    for (auto& [load, access] : nest.loads) visit(access);
  }

  // Drops loops of one iteration and joins neighbours that run through memory without a gap.
  void Collapse(Nest& nest) {
    for (size_t k = nest.loops.size(); k-- > 0;) {
      if (!nest.loops[k].extent.IsInt(1)) continue;
      // The loop's variable is its min from here on; Base() puts it in.
      dropped_.insert(dropped_.end(), nest.loops[k].loops.begin(), nest.loops[k].loops.end());
      nest.loops.erase(nest.loops.begin() + k);
      ForEachAccess(nest, [&](Access& a) { a.coefficients.erase(a.coefficients.begin() + k); });
    }
    for (size_t k = nest.loops.size(); k-- > 1;) {
      NestLoop& outer = nest.loops[k - 1];
      NestLoop& inner = nest.loops[k];
      if (!outer.extent.Is(ExprKind::kIntImm) || !inner.extent.Is(ExprKind::kIntImm)) continue;
      bool contiguous = true;
      ForEachAccess(nest, [&](Access& a) {
        const Expr x = a.coefficients[k - 1];
        const Expr y = a.coefficients[k];
        contiguous = contiguous && x.Is(ExprKind::kIntImm) && y.Is(ExprKind::kIntImm) &&
                     x.int_value() == y.int_value() * inner.extent.int_value();
      });
      if (!contiguous) continue;
      outer.extent = c_.I64(outer.extent.int_value() * inner.extent.int_value());
      outer.loops.insert(outer.loops.end(), inner.loops.begin(), inner.loops.end());
      nest.loops.erase(nest.loops.begin() + k);
      ForEachAccess(nest,
                    [&](Access& a) { a.coefficients.erase(a.coefficients.begin() + (k - 1)); });
    }
  }

  // ---- matching

  struct Attempt {
    const Nest& nest;
    const Pattern& pattern;
    const Function& meaning;
    // Of the pattern's loops, the nest loop or -1 for one iteration.
    std::vector<int> loop_of = {};
    // Nest loops that are the instruction's own, for bases and invariance.
    std::vector<Var> inner_vars = {};
    ir::VarMap to_min = {};
    absl::flat_hash_map<Var, Expr> scalars = {};  // i64 or the parameter's type
    absl::flat_hash_map<Buffer, const Access*> buffers = {};
    std::vector<std::pair<Expr, Expr>> equations = {};  // pattern expression, required value
    absl::flat_hash_map<Buffer, int64_t> needed = {};
    std::string why = {};
    int progress = 0;  // how many parts matched, to choose the reason that tells most
  };

  // The expression of a pattern with its parameters bound, simplified; none if one is unbound.
  std::optional<Expr> Bound(const Attempt& a, Expr e) {
    ir::VarMap map;
    for (Var var : ir::FreeVars(e)) {
      auto it = a.scalars.find(var);
      if (it == a.scalars.end()) return std::nullopt;
      map[var] = it->second;
    }
    return analyzer_.Simplify(ir::Substitute(e, map));
  }

  // Requires the pattern's i64 expression (null: 0) to have `value`.
  bool Require(Attempt& a, Expr pattern, Expr value) {
    if (!pattern) pattern = c_.I64(0);
    if (pattern.Is(ExprKind::kVar)) {
      auto [it, added] = a.scalars.try_emplace(pattern, value);
      return added || analyzer_.CanProve(ir::Eq(it->second, value));
    }
    if (pattern.Is(ExprKind::kIntImm) && value.Is(ExprKind::kIntImm)) {
      return pattern.int_value() == value.int_value();
    }
    a.equations.emplace_back(pattern, value);
    return true;
  }

  bool MatchIndex(Attempt& a, const isa::Affine& pattern, const Access& access) {
    for (size_t j = 0; j < a.pattern.vars.size(); ++j) {
      const int k = a.loop_of[j];
      if (k < 0) continue;  // one iteration: its stride is free
      if (!Require(a, pattern.coefficients[j], access.coefficients[k])) {
        a.why =
            StrCat("'", access.buffer->name, "' has the stride ", ir::Print(access.coefficients[k]),
                   " over '", a.nest.loops[k].loops.back().var().name(), "'");
        return false;
      }
    }
    return true;
  }

  bool MatchBuffer(Attempt& a, Buffer pattern, const Access& access) {
    if (pattern->type != access.buffer->type) {
      a.why = StrCat("'", access.buffer->name, "' holds ", ir::TypeName(access.buffer->type),
                     ", not ", ir::TypeName(pattern->type));
      return false;
    }
    if (pattern->scope != access.buffer->scope) {
      a.why = StrCat("'", access.buffer->name, "' is in ", access.buffer->scope, ", not ",
                     pattern->scope);
      return false;
    }
    auto [it, added] = a.buffers.try_emplace(pattern, &access);
    if (added || (it->second->buffer == access.buffer && it->second->index == access.index)) {
      return true;
    }
    a.why = StrCat("two addresses for '", pattern->name, "'");
    return false;
  }

  static bool IsCommutative(ExprKind kind) {
    // min and max are not: a NaN decides by its side.
    return kind == ExprKind::kAdd || kind == ExprKind::kMul || kind == ExprKind::kEq ||
           kind == ExprKind::kNe;
  }

  bool MatchValue(Attempt& a, Expr pattern, Expr value) {
    ++a.progress;
    if (pattern.type() != value.type()) {
      a.why = StrCat("'", ir::Print(value), "' is ", ir::TypeName(value.type()), ", not ",
                     ir::TypeName(pattern.type()));
      return false;
    }
    if (pattern.Is(ExprKind::kVar)) {
      for (Var var : a.inner_vars) {
        if (ir::UsesVar(value, var)) {
          a.why = StrCat("'", ir::Print(value), "' changes with '", var.name(), "'");
          return false;
        }
      }
      // A value from memory would be read once, by the scalar unit; only constants and variables
      // are taken.
      bool loads = false;
      ir::ForEachExpr(value, [&](Expr e) { loads = loads || e.Is(ExprKind::kLoad); });
      if (loads) {
        a.why = StrCat("'", ir::Print(value), "' is read from memory, not from a register");
        return false;
      }
      auto [it, added] = a.scalars.try_emplace(pattern, value);
      return added || it->second == value;
    }
    if (pattern.kind() != value.kind()) {
      a.why = StrCat("'", ir::Print(value), "' is ", ir::ExprKindName(value.kind()), ", not ",
                     ir::ExprKindName(pattern.kind()));
      return false;
    }
    if (pattern.Is(ExprKind::kLoad)) {
      const Access& access = a.nest.loads.at(value);
      return MatchBuffer(a, Buffer(pattern.buffer()), access) &&
             MatchIndex(a, a.pattern.load_index.at(pattern), access);
    }
    if (pattern.IsConst()) {
      if (pattern == value) return true;
      a.why = StrCat("the constant ", ir::Print(value), ", not ", ir::Print(pattern));
      return false;
    }
    if (pattern.Is(ExprKind::kCall) && pattern.name() != value.name()) {
      a.why = StrCat("a call of ", value.name(), ", not ", pattern.name());
      return false;
    }
    if (IsCommutative(pattern.kind())) {
      // Bindings of a failed order must not stay.
      auto scalars = a.scalars;
      auto buffers = a.buffers;
      auto equations = a.equations;
      if (MatchValue(a, pattern.operand(0), value.operand(0)) &&
          MatchValue(a, pattern.operand(1), value.operand(1))) {
        return true;
      }
      a.scalars = std::move(scalars);
      a.buffers = std::move(buffers);
      a.equations = std::move(equations);
      return MatchValue(a, pattern.operand(0), value.operand(1)) &&
             MatchValue(a, pattern.operand(1), value.operand(0));
    }
    for (size_t i = 0; i < pattern.operands().size(); ++i) {
      if (!MatchValue(a, pattern.operand(i), value.operand(i))) return false;
    }
    return true;
  }

  // Matches with the nest's innermost `used` loops; with `unit_loop` the pattern's innermost loop
  // has one iteration.
  std::optional<Match> TryPattern(Attempt& a, int used, bool unit_loop) {
    const Nest& nest = a.nest;
    const Pattern& pattern = a.pattern;
    const int nest_loops = static_cast<int>(nest.loops.size());
    const int pattern_loops = static_cast<int>(pattern.vars.size());
    const int available = pattern_loops - unit_loop;
    a.loop_of.assign(pattern_loops, -1);
    for (int j = 0; j < used; ++j) a.loop_of[available - 1 - j] = nest_loops - 1 - j;
    const size_t outer_loops = nest_loops - used;
    for (int k = static_cast<int>(outer_loops); k < nest_loops; ++k) {
      for (Stmt loop : nest.loops[k].loops) {
        a.inner_vars.push_back(loop.var());
        a.to_min[loop.var()] = loop.min();
      }
    }
    for (Stmt loop : dropped_) a.to_min[loop.var()] = loop.min();

    const bool matches = MatchExtents(a) && MatchBuffer(a, pattern.store.buffer(), nest.target) &&
                         MatchIndex(a, pattern.store_index, nest.target) &&
                         MatchValue(a, pattern.store.value(), nest.store.value()) && Aliasing(a) &&
                         Equations(a) && Constraints(a);
    if (!matches) return std::nullopt;
    Match match{.pattern = &pattern, .outer_loops = outer_loops, .unit_loop = unit_loop};
    for (const ir::Param& param : a.meaning.params) {
      if (param.buffer) {
        match.arguments.push_back(
            c_.Address(a.buffers.at(param.buffer)->buffer, {Base(a, *a.buffers.at(param.buffer))}));
      } else {
        // A stride over one iteration may be anything.
        auto it = a.scalars.find(param.var);
        match.arguments.push_back(it == a.scalars.end() ? c_.Const(param.var.type(), 0)
                                                        : it->second);
      }
    }
    match.cost = Cost(a, match);
    match.needed = std::move(a.needed);
    return match;
  }

  bool MatchExtents(Attempt& a) {
    for (size_t j = 0; j < a.pattern.vars.size(); ++j) {
      const Expr extent = a.loop_of[j] < 0 ? c_.I64(1) : a.nest.loops[a.loop_of[j]].extent;
      if (!Require(a, a.pattern.extents[j], extent)) {
        a.why = StrCat("a loop has ", ir::Print(extent), " iterations");
        return false;
      }
    }
    return true;
  }

  // An instruction reads all before it writes, or element by element; the loops do the latter. Both
  // are the same where the destination is no source, or is one with the same index.
  bool Aliasing(Attempt& a) {
    a.progress += 100;  // all that is written matches; the rest is about what can be proved
    for (const auto& [load, access] : a.nest.loads) {
      if (access.buffer == a.nest.target.buffer && access.index != a.nest.target.index) {
        a.why = StrCat("'", access.buffer->name, "' is read and written at different places");
        return false;
      }
    }
    // In place needs an instruction that reads and writes with one index; a copy onto itself has
    // two.
    for (const auto& [load, index] : a.pattern.load_index) {
      if (a.buffers.at(Buffer(load.buffer()))->buffer == a.nest.target.buffer &&
          index.coefficients != a.pattern.store_index.coefficients) {
        a.why = StrCat("'", a.nest.target.buffer->name, "' would be copied onto itself");
        return false;
      }
    }
    return true;
  }

  bool Equations(Attempt& a) {
    for (const auto& [pattern, value] : a.equations) {
      const std::optional<Expr> bound = Bound(a, pattern);
      if (!bound || !analyzer_.CanProve(ir::Eq(*bound, value))) {
        a.why = StrCat("'", ir::Print(pattern), "' would have to be ", ir::Print(value));
        return false;
      }
    }
    return true;
  }

  // The element where the instruction starts in the buffer of `access`.
  Expr Base(const Attempt& a, const Access& access) {
    return analyzer_.Simplify(ir::Substitute(access.index, a.to_min));
  }

  // A constraint with operands put in. On chip an allocation's own address is a multiple of
  // kOnChipAlignment and a tensor's in GMEM one of isa::kTensorAlignment, so the offset decides.
  std::optional<Expr> BoundConstraint(const Attempt& a, Expr e) {
    if (e.Is(ExprKind::kAddress)) {
      auto it = a.buffers.find(Buffer(e.buffer()));
      if (it == a.buffers.end()) return std::nullopt;
      return analyzer_.Simplify(Wide(Base(a, *it->second)) *
                                ir::ByteSize(it->second->buffer->type));
    }
    if (e.Is(ExprKind::kVar)) {
      auto it = a.scalars.find(e);
      return it == a.scalars.end() ? c_.Const(e.type(), 0) : it->second;
    }
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) {
      std::optional<Expr> bound = BoundConstraint(a, operand);
      if (!bound) return std::nullopt;
      operands.push_back(*bound);
    }
    return c_.Rebuild(e, operands);
  }

  bool Constraints(Attempt& a) {
    // The conditions of the copy in this function's context stand in its attributes.
    for (const ir::Attribute& attribute : a.meaning.attributes) {
      if (attribute.key != "require") continue;
      for (const ir::AttributeValue& value : attribute.values) {
        const auto* condition = std::get_if<Expr>(&value);
        if (condition == nullptr) continue;
        if (Provable(a, *condition)) continue;
        if (RoundUpCount(a, *condition) && Provable(a, *condition)) continue;
        if (a.why.empty() || a.why.find("must") == std::string::npos) {
          a.why = StrCat("it must have ", ir::Print(*condition));
        }
        return false;
      }
    }
    return true;
  }

  bool Provable(const Attempt& a, Expr condition) {
    const std::optional<Expr> bound = BoundConstraint(a, condition);
    return bound && analyzer_.CanProve(*bound);
  }

  // `count % N == 0` of a lanewise instruction of one loop: rounds the bound count up, if that is
  // harmless.
  bool RoundUpCount(Attempt& a, Expr condition) {
    if (!a.pattern.instruction->lanewise || a.pattern.vars.size() != 1) return false;
    if (!condition.Is(ExprKind::kEq) || !condition.operand(0).Is(ExprKind::kMod) ||
        !condition.operand(1).IsInt(0) || condition.operand(0).operand(0) != a.pattern.extents[0] ||
        !condition.operand(0).operand(1).Is(ExprKind::kIntImm)) {
      return false;
    }
    const Var count_param = condition.operand(0).operand(0);
    const int64_t multiple = condition.operand(0).operand(1).int_value();
    const Expr count = a.scalars.at(count_param);
    if (!count.Is(ExprKind::kIntImm)) {
      a.why = StrCat("the count ", ir::Print(count), " must be a constant to be rounded up to ",
                     multiple);
      return false;
    }
    const int64_t rounded = (count.int_value() + multiple - 1) / multiple * multiple;
    for (const auto& [param, access] : a.buffers) {
      const Expr base = Base(a, *access);
      if (!IsOnChip(access->buffer->scope) || !base.Is(ExprKind::kIntImm)) {
        a.why = StrCat("'", access->buffer->name, "' must be on chip from a constant place on");
        return false;
      }
      if (access->buffer == a.nest.target.buffer &&
          !NothingDefinedFrom(access->buffer, base.int_value() + count.int_value(),
                              base.int_value() + rounded)) {
        a.why = StrCat("elements of '", access->buffer->name, "' behind the ", ir::Print(count),
                       " computed ones must not be in use");
        return false;
      }
    }
    for (const auto& [param, access] : a.buffers) {
      int64_t& needed = a.needed[access->buffer];
      needed = std::max(needed, Base(a, *access).int_value() + rounded);
    }
    a.scalars[count_param] = c_.I64(rounded);
    return true;
  }

  // Whether no statement in the allocation's scope stores to elements begin .. end - 1 of `buffer`
  // while this one's branch is taken.
  bool NothingDefinedFrom(Buffer buffer, int64_t begin, int64_t end) {
    auto it = scope_of_.find(buffer);
    if (it == scope_of_.end()) return false;
    bool harmless = true;
    absl::flat_hash_set<Var> bound_inside;
    ir::ForEachStmt(it->second.body(), [&](Stmt s) {
      if (s.Is(StmtKind::kFor) || s.Is(StmtKind::kLet)) bound_inside.insert(s.var());
      return true;
    });
    // What is known here about variables from outside the allocation (thread numbers, say) holds as
    // long as it lives; loops inside it give ranges of indices.
    Analyzer analyzer(c_);
    Analyzer::Scope facts(analyzer);
    for (Stmt loop : open_loops_) {
      if (!bound_inside.contains(loop.var())) {
        analyzer.BindLoop(loop.var(), loop.min(), loop.extent());
      }
    }
    for (const auto& [condition, truth] : open_conditions_) {
      bool outside = true;
      for (Var var : ir::FreeVars(condition)) outside = outside && !bound_inside.contains(var);
      if (outside) analyzer.Assume(condition, truth);
    }
    const std::function<void(Stmt)> visit = [&](Stmt s) {
      if (!harmless) return;
      Analyzer::Scope scope(analyzer);
      if (s.Is(StmtKind::kFor)) analyzer.BindLoop(s.var(), s.min(), s.extent());
      if (s.Is(StmtKind::kStore) && s.buffer() == buffer) {
        const arith::ConstRange range = analyzer.Range(s.indices()[0]);
        if (!(range.max < begin || range.min >= end)) harmless = false;
      }
      if (s.Is(StmtKind::kEvaluate)) {
        for (Expr operand : s.value().operands()) {
          if (operand.Is(ExprKind::kAddress) && Buffer(operand.buffer()) == buffer)
            harmless = false;
        }
      }
      if (s.Is(StmtKind::kIf)) {
        for (const bool truth : {true, false}) {
          if (analyzer.CanProve(truth ? ir::Not(s.cond()) : s.cond())) continue;
          Analyzer::Scope branch(analyzer);
          analyzer.Assume(s.cond(), truth);
          visit(truth ? s.then_case() : s.else_case());
        }
        return;
      }
      for (Stmt child : s.children()) visit(child);
    };
    visit(it->second.body());
    return harmless;
  }

  int64_t Cost(const Attempt& a, const Match& match) {
    std::vector<int64_t> values;
    for (const isa::Operand& operand : a.pattern.instruction->operands) {
      const Expr argument = match.arguments[operand.param];
      values.push_back(argument.Is(ExprKind::kIntImm) ? argument.int_value() : 0);
    }
    if (target_.machine == nullptr) return 0;
    const absl::StatusOr<int64_t> cost =
        target_.instructions->Cost(*a.pattern.instruction, values, target_.machine->parameters);
    return cost.ok() ? *cost : 0;
  }

  // ---- allocations

  Stmt ExpandAllocations(Stmt body) {
    ir::BufferMap expanded;
    for (const auto& [buffer, needed] : needed_) {
      const Expr extent = buffer->extents[0];
      if (extent.Is(ExprKind::kIntImm) && extent.int_value() >= needed) continue;
      expanded[buffer] =
          c_.NewBuffer(buffer->name, buffer->type, {c_.Int(extent.type(), needed)}, buffer->scope);
    }
    if (expanded.empty()) return body;
    const std::function<Stmt(Stmt)> reallocate = [&](Stmt s) -> Stmt {
      std::vector<Stmt> children;
      for (Stmt child : s.children()) children.push_back(reallocate(child));
      if (s.Is(StmtKind::kAllocate)) {
        auto it = expanded.find(s.buffer());
        if (it != expanded.end()) return c_.Allocate(it->second, children[0]);
      }
      return c_.Rebuild(s, s.operands(), children);
    };
    return reallocate(ir::Substitute(body, {}, expanded));
  }

  Function& function_;
  const Target& target_;
  Context& c_;
  std::vector<TensorizeDecision>* const decisions_;
  std::vector<Candidate> candidates_;
  Analyzer analyzer_;
  int silent_ = 0;
  // Around the statement that is walked, outermost first.
  std::vector<Stmt> open_loops_;
  std::vector<std::pair<Expr, bool>> open_conditions_;
  absl::flat_hash_map<Buffer, Stmt> scope_of_;
  absl::flat_hash_map<Buffer, int64_t> needed_;  // elements that rounded counts reach
  std::vector<Stmt> dropped_;                    // loops of one iteration
};

}  // namespace

absl::StatusOr<bool> Tensorize(Function& function, const Target& target,
                               std::vector<TensorizeDecision>* decisions) {
  if (target.instructions == nullptr) {
    return InvalidInput("tensorize: target '", target.name, "' has no tensor instructions");
  }
  return Tensorizer(function, target, decisions).Run();
}

}  // namespace polynao
