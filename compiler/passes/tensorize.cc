#include "compiler/passes/tensorize.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/tensor_parameters.h"
#include "compiler/passes/tensor_pattern.h"
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

// How many ways to lay a nest's loops over a pattern's are followed to the end; a convolution has
// a handful.
constexpr int kMaxAssignments = 64;
// No allocation on chip grows beyond so many elements.
constexpr int64_t kMaxReach = int64_t{1} << 24;

// An instruction that a compiler may choose, and what its pattern stores, to sort out most of them
// before anything is copied.
struct Candidate {
  const isa::Instruction* instruction;
  Buffer store_buffer;  // of the meaning, in its own context
  ExprKind value_kind;  // kVar matches any value
  bool initialises;
  // Made when the first nest needs it; absent if the meaning has not the form of a pattern.
  bool made = false;
  std::optional<TensorPattern> pattern = {};
};

std::vector<Candidate> MakeCandidates(const isa::InstructionSet& set) {
  std::vector<Candidate> candidates;
  for (const isa::Instruction& instruction : set.instructions()) {
    // A waiting twin of a queued instruction does nothing more; sync places the waits.
    if (instruction.queue == isa::Queue::kNone || instruction.waits) continue;
    const NestShape shape = ShapeOf(instruction.meaning.body);
    if (!shape.store) continue;
    candidates.push_back({.instruction = &instruction,
                          .store_buffer = shape.store.buffer(),
                          .value_kind = shape.store.value().kind(),
                          .initialises = shape.initialises});
  }
  return candidates;
}

// A stride or a count for people: numbers without their type.
std::string Number(Expr e) {
  return e.Is(ExprKind::kIntImm) ? StrCat(e.int_value()) : ir::Print(e);
}

// A store for people: without the line's end.
std::string Line(Stmt store) {
  std::string text = ir::Print(store);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// The pattern that came closest to a nest, and the nodes that differ.
struct Difference {
  // How far the match came: nodes of the value, then kLoops + loops, then kConditions + ...
  int progress = -1;
  std::string mnemonic;
  std::string why;
  std::string program;
  std::string pattern;
};
constexpr int kLoops = 1000;
constexpr int kConditions = 2000;

// What a pattern's value and the nest's bind to each other.
struct Binding {
  ir::VarMap values = {};  // scalar operands of the value
  absl::flat_hash_map<Buffer, const NestAccess*> buffers = {};
  // The same access in the pattern and in the nest.
  std::vector<std::pair<const isa::Affine*, const NestAccess*>> accesses = {};
};

// A match of one nest with one pattern.
struct Match {
  const TensorPattern* pattern = nullptr;
  std::vector<Expr> arguments = {};
  size_t around = 0;  // the nest's loops that stay around the instruction
  int64_t cost = 0;
  // The smallest wins: few instructions, cheap ones, few operands.
  auto Rank() const { return std::tuple(around, cost, arguments.size()); }
  // Elements that an instruction reaches beyond what the nest does, by buffer.
  absl::flat_hash_map<Buffer, int64_t> needed = {};
};

// One try: a nest, a pattern, how many loops stay around, and what has been bound so far.
struct Attempt {
  const TensorNest& nest;
  const TensorPattern& pattern;
  size_t around;
  ir::VarMap to_min = {};  // of the loops that the instruction runs
  Binding binding = {};
  // For each loop of the pattern the run [begin, end) of the nest's loops that it stands for; an
  // empty one is one iteration.
  std::vector<std::pair<size_t, size_t>> runs = {};
  int assignments = 0;
  std::optional<Match> match = {};
};

class Tensorizer {
 public:
  Tensorizer(Function& function, const Target& target, std::vector<TensorizeDecision>* decisions)
      : function_(function),
        target_(target),
        c_(*function.context),
        decisions_(decisions),
        candidates_(MakeCandidates(*target.instructions)),
        analyzer_(c_) {
    // Facts that hold throughout.
    for (const ir::Param& param : function.params) {
      if (!param.buffer) continue;
      for (Expr extent : param.buffer->extents) {
        if (!extent.IsConst()) analyzer_.Assume(0 <= extent);
      }
    }
    if (const ir::Attribute* attribute = function.FindAttribute("assert")) {
      for (const ir::AttributeValue& value : attribute->values) {
        const Expr* condition = std::get_if<Expr>(&value);
        if (condition != nullptr && condition->type() == Type::kI1) analyzer_.Assume(*condition);
      }
    }
  }

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
    // What matches nothing is reported; its parts get their own try in silence, and if one of them
    // matches, the report goes.
    const size_t reports = decisions_ == nullptr ? 0 : decisions_->size();
    const int matches = matches_;
    bool tried = false;
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
          tried = true;
        }
        analyzer_.BindLoop(s.var(), s.min(), s.extent());
        break;
      }
      case StmtKind::kStore:
        if (std::optional<Stmt> call = TryNest(s, family)) return *call;
        return s;
      case StmtKind::kSeq:
        return WalkSequence(s, family);
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
    const bool silent = tried && !family.empty();
    silent_ += silent;
    if (s.Is(StmtKind::kFor)) open_loops_.push_back(s);
    std::vector<Stmt> children;
    for (Stmt child : s.children()) children.push_back(Walk(child, family));
    if (s.Is(StmtKind::kFor)) open_loops_.pop_back();
    silent_ -= silent;
    if (silent) DropReport(reports, matches);
    return c_.Rebuild(s, s.operands(), children);
  }

  // A nest that initialises may stand right before the one that updates.
  Stmt WalkSequence(Stmt s, std::string_view family) {
    std::vector<Stmt> children;
    for (size_t k = 0; k < s.children().size(); ++k) {
      const Stmt child = s.children()[k];
      if (k + 1 < s.children().size() && ShapeOf(child, s.children()[k + 1]).initialises) {
        const size_t reports = decisions_ == nullptr ? 0 : decisions_->size();
        const int matches = matches_;
        const Stmt both = c_.Seq({child, s.children()[k + 1]});
        if (std::optional<Stmt> call = TryNest(both, family)) {
          children.push_back(*call);
        } else {
          const bool silent = !family.empty();
          silent_ += silent;
          children.push_back(Walk(child, family));
          children.push_back(Walk(s.children()[k + 1], family));
          silent_ -= silent;
          if (silent) DropReport(reports, matches);
        }
        ++k;
        continue;
      }
      children.push_back(Walk(child, family));
    }
    return children.size() == s.children().size() ? c_.Rebuild(s, {}, children) : c_.Seq(children);
  }

  // Takes back the report number `report`, if there is one and something has matched since.
  void DropReport(size_t report, int matches) {
    if (decisions_ == nullptr || matches == matches_ || report >= decisions_->size()) return;
    if ((*decisions_)[report].instruction.empty()) {
      decisions_->erase(decisions_->begin() + static_cast<ptrdiff_t>(report));
    }
  }

  bool IsFamily(std::string_view name) const {
    for (const isa::Instruction& instruction : target_.instructions->instructions()) {
      if (instruction.family == name) return true;
    }
    return false;
  }

  // Whether a pragma of that key (empty: none) leaves the choice of an instruction of `family`. The
  // form for planes of a copy and the one that adds to what is there belong to the plain one.
  static bool Allows(std::string_view key, std::string_view family) {
    if (key.empty() || key == "tensorize" || key == family) return true;
    if (!family.starts_with(key)) return false;
    const std::string_view form = family.substr(key.size());
    return form == "3d" || form == "_acc";
  }

  static bool HasStore(Stmt root) {
    bool found = false;
    ir::ForEachStmt(root, [&](Stmt s) {
      found = found || s.Is(StmtKind::kStore);
      return !found;
    });
    return found;
  }

  // ---- one nest

  // Whether a difference that far on is worth describing.
  bool Closer(int progress) const { return explaining_ && progress > closest_.progress; }

  // The pattern of a candidate that may match a nest, else null.
  const TensorPattern* PatternFor(Candidate& candidate, const TensorNest& nest) {
    const isa::Instruction& instruction = *candidate.instruction;
    const Expr value = nest.store.value();
    if (candidate.store_buffer->type != nest.target.buffer->type ||
        candidate.store_buffer->scope != nest.target.buffer->scope) {
      // Cheap to sort out, but worth a word where nothing else comes closer.
      if (Closer(0)) {
        closest_ = {
            .progress = 0,
            .mnemonic = instruction.mnemonic,
            .why = StrCat("'", nest.target.buffer->name, "' is ",
                          ir::TypeName(nest.target.buffer->type), " in ", nest.target.buffer->scope,
                          ", not ", ir::TypeName(candidate.store_buffer->type), " in ",
                          candidate.store_buffer->scope),
            .program = Line(nest.store),
            .pattern = Line(ShapeOf(instruction.meaning.body).store)};
      }
      return nullptr;
    }
    if (candidate.value_kind != ExprKind::kVar && candidate.value_kind != value.kind()) {
      if (Closer(1)) {
        closest_ = {.progress = 1,
                    .mnemonic = instruction.mnemonic,
                    .why = StrCat("'", ir::Print(value), "' is ", ir::ExprKindName(value.kind()),
                                  ", not ", ir::ExprKindName(candidate.value_kind)),
                    .program = Line(nest.store),
                    .pattern = Line(ShapeOf(instruction.meaning.body).store)};
      }
      return nullptr;
    }
    if (candidate.initialises != static_cast<bool>(nest.init)) {
      if (Closer(2)) {
        closest_ = {.progress = 2,
                    .mnemonic = instruction.mnemonic,
                    .why = candidate.initialises
                               ? "nothing stores a constant before the update"
                               : StrCat("'", Line(nest.init), "' stands before the update"),
                    .program = Line(nest.init ? nest.init : nest.store),
                    .pattern = Line(ShapeOf(instruction.meaning.body).store)};
      }
      return nullptr;
    }
    if (!candidate.made) {
      candidate.made = true;
      candidate.pattern = MakeTensorPattern(instruction, function_.context);
    }
    return candidate.pattern ? &*candidate.pattern : nullptr;
  }

  std::optional<Stmt> TryNest(Stmt s, std::string_view family) {
    // Only nests that somebody marked are reported: not all code is meant to be instructions.
    explaining_ = decisions_ != nullptr && !family.empty() && silent_ == 0;
    closest_ = {};
    std::string reason;
    const std::optional<TensorNest> nest = MakeTensorNest(s, analyzer_, reason);
    std::optional<Match> best;
    for (Candidate& candidate : candidates_) {
      if (!nest) break;
      if (!Allows(family, candidate.instruction->family)) continue;
      const TensorPattern* pattern = PatternFor(candidate, *nest);
      if (pattern == nullptr) continue;
      std::optional<Match> match = TryPattern(*nest, *pattern);
      if (match && (!best || match->Rank() < best->Rank())) best = std::move(match);
    }
    if (!best) {
      if (explaining_) Report(s, family, reason);
      return std::nullopt;
    }
    ++matches_;
    if (decisions_ != nullptr) {
      decisions_->push_back({.nest = ir::PrintFirstLine(s),
                             .instruction = best->pattern->instruction->mnemonic,
                             .reason = "",
                             .explanation = ""});
    }
    for (const auto& [buffer, elements] : best->needed) {
      int64_t& needed = needed_[buffer];
      needed = std::max(needed, elements);
    }
    Stmt result =
        c_.Evaluate(c_.Call(Type::kI32, best->pattern->instruction->mnemonic, best->arguments));
    for (size_t k = best->around; k-- > 0;) {
      const Stmt loop = nest->loops[k].loop;
      result = c_.Rebuild(loop, loop.operands(), {result});
    }
    return result;
  }

  void Report(Stmt s, std::string_view family, std::string_view reason) {
    TensorizeDecision decision{.nest = ir::PrintFirstLine(s),
                               .instruction = "",
                               .reason = std::string(reason),
                               .explanation = ""};
    StrAppend(&decision.explanation, decision.nest, "  (marked \"", family,
              "\") is no instruction\n");
    if (closest_.progress < 0) {
      if (reason.empty()) decision.reason = StrCat("no instruction belongs to '", family, "'");
      StrAppend(&decision.explanation, "  no pattern fits its form: ", decision.reason, "\n");
    } else {
      decision.reason = StrCat(closest_.mnemonic, ": ", closest_.why);
      StrAppend(&decision.explanation, "  closest pattern: ", closest_.mnemonic,
                "\n  in the pattern:  ", closest_.pattern,
                "\n  in the program:  ", closest_.program, "\n  difference:      ", closest_.why,
                "\n");
    }
    decisions_->push_back(std::move(decision));
  }

  std::optional<Match> TryPattern(const TensorNest& nest, const TensorPattern& pattern) {
    const size_t loops = nest.loops.size();
    const size_t max_around = std::min(nest.max_around, loops - std::min<size_t>(loops, 1));
    // All loops in the instruction, or only inner ones.
    Analyzer::Scope scope(analyzer_);
    for (size_t around = 0; around <= max_around; ++around) {
      if (around > 0) {
        const Stmt loop = nest.loops[around - 1].loop;
        analyzer_.BindLoop(loop.var(), loop.min(), loop.extent());
      }
      // Updates may stand in any order of loops that keeps that of each element.
      std::optional<TensorNest> sorted;
      if (pattern.accumulates && !pattern.init && nest.accumulates()) {
        sorted = SortLoops(nest, around, analyzer_);
      }
      Attempt a{.nest = sorted ? *sorted : nest, .pattern = pattern, .around = around};
      a.to_min = nest.single;
      for (size_t k = around; k < loops; ++k) {
        a.to_min[nest.loops[k].loop.var()] = nest.loops[k].loop.min();
      }
      structure_differs_ = true;
      if (MatchPattern(a)) return a.match;
      // With fewer loops inside the same operators differ.
      if (structure_differs_) break;
    }
    return std::nullopt;
  }

  // ---- values

  bool MatchPattern(Attempt& a) {
    Binding binding;
    if (!MatchBuffer(a, binding, a.pattern.store.buffer(), a.nest.target, 3)) return false;
    binding.accesses.emplace_back(&a.pattern.store_index, &a.nest.target);
    std::vector<std::pair<Expr, Expr>> pairs = {{a.pattern.store.value(), a.nest.store.value()}};
    if (a.pattern.init) pairs.emplace_back(a.pattern.init.value(), a.nest.init.value());
    return MatchValues(a, std::move(binding), std::move(pairs), 4);
  }

  bool MatchBuffer(const Attempt& a, Binding& binding, Buffer pattern, const NestAccess& access,
                   int progress) {
    auto [it, added] = binding.buffers.try_emplace(pattern, &access);
    if (pattern->type == access.buffer->type && pattern->scope == access.buffer->scope &&
        (added || (it->second->buffer == access.buffer && it->second->index == access.index))) {
      return true;
    }
    if (Closer(progress)) {
      std::string why;
      if (pattern->type != access.buffer->type) {
        why = StrCat("'", access.buffer->name, "' holds ", ir::TypeName(access.buffer->type),
                     ", not ", ir::TypeName(pattern->type));
      } else if (pattern->scope != access.buffer->scope) {
        why = StrCat("'", access.buffer->name, "' is in ", access.buffer->scope, ", not ",
                     pattern->scope);
      } else {
        why = StrCat("two addresses for '", pattern->name, "'");
      }
      closest_ = {.progress = progress,
                  .mnemonic = a.pattern.instruction->mnemonic,
                  .why = std::move(why),
                  .program = Line(a.nest.store),
                  .pattern = Line(a.pattern.store)};
    }
    return false;
  }

  static bool IsCommutative(ExprKind kind) {
    // min and max are not: a NaN decides by its side.
    return kind == ExprKind::kAdd || kind == ExprKind::kMul || kind == ExprKind::kEq ||
           kind == ExprKind::kNe;
  }

  bool Differs(const Attempt& a, int progress, Expr pattern, Expr value, std::string_view what,
               std::string_view expected) {
    if (Closer(progress)) {
      closest_ = {.progress = progress,
                  .mnemonic = a.pattern.instruction->mnemonic,
                  .why = StrCat("'", ir::Print(value), "' is ", what, ", not ", expected),
                  .program = ir::Print(value),
                  .pattern = ir::Print(pattern)};
    }
    return false;
  }

  // Matches pairs of expressions (pattern, nest), last ones first; operands of commutative
  // operators in either order, until one order leads to a match of the whole.
  bool MatchValues(Attempt& a, Binding binding, std::vector<std::pair<Expr, Expr>> pairs,
                   int progress) {
    while (!pairs.empty()) {
      const auto [pattern, value] = pairs.back();
      pairs.pop_back();
      ++progress;
      if (pattern.type() != value.type()) {
        return Differs(a, progress, pattern, value, ir::TypeName(value.type()),
                       ir::TypeName(pattern.type()));
      }
      if (pattern.Is(ExprKind::kVar)) {
        if (!MatchScalar(a, binding, pattern, value, progress)) return false;
        continue;
      }
      if (pattern.kind() != value.kind()) {
        return Differs(a, progress, pattern, value, ir::ExprKindName(value.kind()),
                       ir::ExprKindName(pattern.kind()));
      }
      if (pattern.Is(ExprKind::kLoad)) {
        const NestAccess& access = a.nest.loads.at(value);
        if (!MatchBuffer(a, binding, Buffer(pattern.buffer()), access, progress)) return false;
        binding.accesses.emplace_back(&a.pattern.load_index.at(pattern), &access);
        continue;
      }
      if (pattern.IsConst()) {
        if (pattern != value) {
          return Differs(a, progress, pattern, value, "the constant", ir::Print(pattern));
        }
        continue;
      }
      if (pattern.Is(ExprKind::kCall) && pattern.name() != value.name()) {
        return Differs(a, progress, pattern, value, StrCat("a call of ", value.name()),
                       pattern.name());
      }
      if (IsCommutative(pattern.kind())) {
        std::vector<std::pair<Expr, Expr>> other = pairs;
        other.emplace_back(pattern.operand(1), value.operand(0));
        other.emplace_back(pattern.operand(0), value.operand(1));
        pairs.emplace_back(pattern.operand(1), value.operand(1));
        pairs.emplace_back(pattern.operand(0), value.operand(0));
        return MatchValues(a, binding, std::move(pairs), progress) ||
               MatchValues(a, std::move(binding), std::move(other), progress);
      }
      for (size_t i = pattern.operands().size(); i-- > 0;) {
        pairs.emplace_back(pattern.operand(i), value.operand(i));
      }
    }
    structure_differs_ = false;
    a.binding = std::move(binding);
    a.runs.assign(a.pattern.vars.size(), {0, 0});
    return AssignLoops(a, static_cast<int>(a.pattern.vars.size()) - 1, a.nest.loops.size());
  }

  bool MatchScalar(const Attempt& a, Binding& binding, Var pattern, Expr value, int progress) {
    value = ir::Substitute(value, a.nest.single);
    for (size_t k = a.around; k < a.nest.loops.size(); ++k) {
      const Var var = a.nest.loops[k].loop.var();
      if (!ir::UsesVar(value, var)) continue;
      structure_differs_ = false;  // it may be the same with this loop around the instruction
      if (Closer(progress)) {
        closest_ = {.progress = progress,
                    .mnemonic = a.pattern.instruction->mnemonic,
                    .why = StrCat("'", ir::Print(value), "' changes with '", var.name(), "'"),
                    .program = Line(a.nest.store),
                    .pattern = Line(a.pattern.store)};
      }
      return false;
    }
    // A value from memory would be read once, by the scalar unit; only constants and variables are
    // taken.
    bool loads = false;
    ir::ForEachExpr(value, [&](Expr e) { loads = loads || e.Is(ExprKind::kLoad); });
    if (loads) {
      return Differs(a, progress, pattern, value, "read from memory", "in a register");
    }
    auto [it, added] = binding.values.try_emplace(pattern, value);
    return added || it->second == value;
  }

  // ---- loops

  // Lays the nest's loops up to number `end` over the pattern's loops up to number `j`, innermost
  // first. A loop of the pattern takes as many loops of the nest as can be joined, or none.
  bool AssignLoops(Attempt& a, int j, size_t end) {
    const bool reduces = a.pattern.init && j >= static_cast<int>(a.pattern.outer_loops);
    const bool turn = a.pattern.init && j == static_cast<int>(a.pattern.outer_loops) - 1;
    if (j < 0 || (turn && end > a.nest.outer_loops)) {
      if (j < 0 && end == a.around) return Finish(a);
      if (Closer(kLoops + Assigned(a, j))) {
        const Stmt loop = a.nest.loops[end - 1].loop;
        closest_ = {.progress = kLoops + Assigned(a, j),
                    .mnemonic = a.pattern.instruction->mnemonic,
                    .why = StrCat("the loop '", loop.var().name(), "' has no counterpart"),
                    .program = ir::PrintFirstLine(loop),
                    .pattern = ir::PrintFirstLine(a.pattern.meaning.body)};
      }
      return false;
    }
    const size_t low = reduces ? a.nest.outer_loops : a.around;
    size_t begin = end;
    if (end > low) --begin;
    while (begin > low && a.nest.joinable[begin - 1]) --begin;
    for (;; ++begin) {
      if (a.assignments > kMaxAssignments) return false;
      a.runs[j] = {begin, end};
      if (LoopFits(a, j) && AssignLoops(a, j - 1, begin)) return true;
      if (begin == end) return false;
    }
  }

  // How many of the pattern's loops from number j + 1 on stand for loops of the nest.
  static int Assigned(const Attempt& a, int j) {
    int assigned = 0;
    for (size_t i = j + 1; i < a.runs.size(); ++i) assigned += a.runs[i].first < a.runs[i].second;
    return assigned;
  }

  Expr Extent(const Attempt& a, size_t j) {
    Expr extent = c_.I64(1);
    for (size_t k = a.runs[j].first; k < a.runs[j].second; ++k) {
      const Expr factor = a.nest.loops[k].extent;
      if (extent.IsInt(1)) {
        extent = factor;
      } else if (extent.Is(ExprKind::kIntImm) && factor.Is(ExprKind::kIntImm)) {
        extent = c_.I64(extent.int_value() * factor.int_value());
      } else {
        extent = analyzer_.Simplify(extent * factor);
      }
    }
    return extent;
  }

  // Whether what is constant in the pattern's loop `j` is the same in the nest's.
  bool LoopFits(Attempt& a, int j) {
    const auto [begin, end] = a.runs[j];
    const auto same = [&](Expr pattern, Expr value) {
      if (!pattern) return value.IsInt(0);
      if (!pattern.Is(ExprKind::kIntImm)) return true;
      return value.Is(ExprKind::kIntImm) ? value == pattern
                                         : analyzer_.CanProve(ir::Eq(pattern, value));
    };
    const auto differ = [&](const auto& make_why) {
      const int progress = kLoops + Assigned(a, j - 1);
      if (!Closer(progress)) return false;
      closest_ = {
          .progress = progress,
          .mnemonic = a.pattern.instruction->mnemonic,
          .why = make_why(),
          .program = begin < end ? ir::PrintFirstLine(a.nest.loops[end - 1].loop) : "no loop",
          .pattern = StrCat("for (", a.pattern.vars[j].name(), ": i64, 0, ",
                            Number(a.pattern.extents[j]), ")")};
      return false;
    };
    const Expr extent = Extent(a, j);
    if (!same(a.pattern.extents[j], extent)) {
      return differ([&] {
        return StrCat("a loop has ", Number(extent), " iterations, not ",
                      Number(a.pattern.extents[j]));
      });
    }
    if (begin == end) return true;
    for (const auto& [pattern, access] : a.binding.accesses) {
      const Expr expected = pattern->coefficients[j];
      const Expr stride = access->coefficients[end - 1];
      if (same(expected, stride)) continue;
      return differ([&, access = access] {
        return StrCat("'", access->buffer->name, "' has the stride ", Number(stride), " over '",
                      a.nest.loops[end - 1].loop.var().name(), "', not ",
                      expected ? Number(expected) : "0");
      });
    }
    return true;
  }

  // ---- conditions

  // With values and loops matched: strides, conditions, and what the order of reads and writes
  // needs.
  bool Finish(Attempt& a) {
    ++a.assignments;
    return Aliasing(a) && Parameters(a);
  }

  bool Unproved(const Attempt& a, int progress, std::string why) {
    if (Closer(progress)) {
      closest_ = {.progress = progress,
                  .mnemonic = a.pattern.instruction->mnemonic,
                  .why = std::move(why),
                  .program = Line(a.nest.store),
                  .pattern = Line(a.pattern.store)};
    }
    return false;
  }

  // An instruction reads all before it writes, or element by element; the loops do the latter. Both
  // are the same where the destination is no source, or is one with the same index.
  bool Aliasing(const Attempt& a) {
    for (const auto& [load, access] : a.nest.loads) {
      if (access.buffer == a.nest.target.buffer && access.index != a.nest.target.index) {
        return Unproved(
            a, kConditions,
            StrCat("'", access.buffer->name, "' is read and written at different places"));
      }
    }
    // In place needs an instruction that reads and writes with one index; a copy onto itself has
    // two.
    for (const auto& [load, index] : a.pattern.load_index) {
      if (a.binding.buffers.at(Buffer(load.buffer()))->buffer == a.nest.target.buffer &&
          index.coefficients != a.pattern.store_index.coefficients) {
        return Unproved(a, kConditions + 1,
                        StrCat("'", a.nest.target.buffer->name, "' would be copied onto itself"));
      }
    }
    return true;
  }

  bool Parameters(Attempt& a) {
    ParameterProblem problem;
    for (const ir::Param& param : a.pattern.meaning.params) {
      if (param.var && param.var.type() == Type::kI64 && !a.binding.values.contains(param.var)) {
        problem.parameters.push_back(param.var);
      }
    }
    for (size_t j = 0; j < a.pattern.vars.size(); ++j) {
      if (!a.pattern.extents[j].Is(ExprKind::kIntImm)) {
        problem.equations.push_back({a.pattern.extents[j], Extent(a, j)});
      }
    }
    for (const auto& [pattern, access] : a.binding.accesses) {
      for (size_t j = 0; j < a.pattern.vars.size(); ++j) {
        const Expr stride = pattern->coefficients[j];
        if (!stride || stride.Is(ExprKind::kIntImm)) continue;
        for (Var var : problem.parameters) problem.uses[var] += ir::UsesVar(stride, var);
        // The stride of one iteration is free.
        if (a.runs[j].first == a.runs[j].second) continue;
        problem.equations.push_back({stride, access->coefficients[a.runs[j].second - 1]});
      }
    }
    // The conditions of the copy in this function's context stand in its attributes.
    std::vector<Expr> texts;  // as in the table, for messages
    for (const ir::Attribute& attribute : a.pattern.meaning.attributes) {
      if (attribute.key != "require") continue;
      for (const ir::AttributeValue& value : attribute.values) {
        if (const auto* condition = std::get_if<Expr>(&value)) {
          texts.push_back(*condition);
          problem.conditions.push_back(WithAddresses(a, *condition));
        }
      }
    }
    std::string why;
    const bool solved = SolveParameters(
        problem, analyzer_,
        [&](const ir::VarMap& values) { return Accept(a, problem, texts, values); }, &why);
    return solved || Unproved(a, kConditions + 2, why);
  }

  // A condition with addresses put in. On chip an allocation's own address is a multiple of
  // kOnChipAlignment and a tensor's in GMEM one of isa::kTensorAlignment, so the offset decides.
  Expr WithAddresses(const Attempt& a, Expr e) {
    if (e.Is(ExprKind::kAddress)) {
      const NestAccess& access = *a.binding.buffers.at(Buffer(e.buffer()));
      return analyzer_.Simplify(Base(a, access) * ir::ByteSize(access.buffer->type));
    }
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(WithAddresses(a, operand));
    return c_.Rebuild(e, operands);
  }

  // The element (i64) where the instruction starts in the buffer of `access`.
  Expr Base(const Attempt& a, const NestAccess& access) {
    return analyzer_.Simplify(Widened(c_.Cast(Type::kI64, ir::Substitute(access.index, a.to_min))));
  }

  // Checks all that has to hold for these values of the parameters; makes the match if it does.
  bool Accept(Attempt& a, const ParameterProblem& problem, absl::Span<const Expr> texts,
              ir::VarMap values) {
    absl::flat_hash_map<Buffer, int64_t> needed;
    const auto provable = [&](Expr condition) {
      const Expr bound = BindParameters(condition, values, problem.parameters, analyzer_);
      return bound.Is(ExprKind::kIntImm) ? bound.int_value() != 0 : analyzer_.CanProve(bound);
    };
    for (size_t i = 0; i < problem.conditions.size(); ++i) {
      const Expr condition = problem.conditions[i];
      if (provable(condition)) continue;
      std::string why = StrCat("it must have ", ir::Print(texts[i]));
      if (RoundUpCount(a, condition, values, needed, why) && provable(condition)) continue;
      return Unproved(a, kConditions + 3 + static_cast<int>(i), std::move(why));
    }
    if (!Reaches(a, problem, values, needed)) return false;

    Match match{.pattern = &a.pattern, .around = a.around};
    for (const ir::Param& param : a.pattern.meaning.params) {
      if (param.buffer) {
        const NestAccess& access = *a.binding.buffers.at(param.buffer);
        const Expr first = analyzer_.Simplify(ir::Substitute(access.index, a.to_min));
        match.arguments.push_back(c_.Address(access.buffer, {first}));
      } else if (auto it = a.binding.values.find(param.var); it != a.binding.values.end()) {
        match.arguments.push_back(it->second);
      } else {
        match.arguments.push_back(values.at(param.var));
      }
    }
    const std::optional<int64_t> cost = Cost(a.pattern, match.arguments);
    if (!cost) return Unproved(a, kConditions + 500, "the machine lacks this instruction");
    match.cost = *cost;
    match.needed = std::move(needed);
    a.match = std::move(match);
    return true;
  }

  // `count % N == 0` of a lanewise instruction of one loop: rounds the count up, if that is
  // harmless.
  bool RoundUpCount(const Attempt& a, Expr condition, ir::VarMap& values,
                    absl::flat_hash_map<Buffer, int64_t>& needed, std::string& why) {
    if (!a.pattern.instruction->lanewise || a.pattern.vars.size() != 1) return false;
    if (!condition.Is(ExprKind::kEq) || !condition.operand(0).Is(ExprKind::kMod) ||
        !condition.operand(1).IsInt(0) || condition.operand(0).operand(0) != a.pattern.extents[0] ||
        !condition.operand(0).operand(1).Is(ExprKind::kIntImm)) {
      return false;
    }
    const Var count_param = condition.operand(0).operand(0);
    const int64_t multiple = condition.operand(0).operand(1).int_value();
    const Expr count = values.at(count_param);
    if (!count.Is(ExprKind::kIntImm)) {
      why =
          StrCat("the count ", Number(count), " must be a constant to be rounded up to ", multiple);
      return false;
    }
    const int64_t rounded = (count.int_value() + multiple - 1) / multiple * multiple;
    for (const auto& [param, access] : a.binding.buffers) {
      const Expr base = Base(a, *access);
      const bool is_target = access->buffer == a.nest.target.buffer;
      if (!IsOnChip(access->buffer->scope) ||
          (is_target ? !base.Is(ExprKind::kIntImm) : analyzer_.Range(base).max > kMaxReach)) {
        why = StrCat("'", access->buffer->name, "' must be on chip",
                     is_target ? " from a constant place on" : "");
        return false;
      }
      if (is_target && !NothingDefinedFrom(access->buffer, base.int_value() + count.int_value(),
                                           base.int_value() + rounded)) {
        why = StrCat("elements of '", access->buffer->name, "' behind the ", Number(count),
                     " computed ones must not be in use");
        return false;
      }
    }
    for (const auto& [param, access] : a.binding.buffers) {
      int64_t& reached = needed[access->buffer];
      reached = std::max(reached, analyzer_.Range(Base(a, *access)).max + rounded);
    }
    values[count_param] = c_.I64(rounded);
    return true;
  }

  // Operands of several dimensions are as large as their extents say, though the loops may touch
  // less (the last row of a convolution's source). All of it must be in the buffer, or the buffer
  // must be one that can grow.
  bool Reaches(const Attempt& a, const ParameterProblem& problem, const ir::VarMap& values,
               absl::flat_hash_map<Buffer, int64_t>& needed) {
    for (const ir::Param& param : a.pattern.meaning.params) {
      if (!param.buffer || param.buffer->extents.size() < 2) continue;
      const NestAccess& access = *a.binding.buffers.at(param.buffer);
      Expr elements = c_.I64(1);
      for (Expr extent : param.buffer->extents) {
        elements = elements * c_.Cast(Type::kI64, extent);
      }
      elements = BindParameters(elements, values, problem.parameters, analyzer_);
      const Expr base = Base(a, access);
      const Expr end = analyzer_.Simplify(base + elements);
      const Expr extent = access.buffer->extents[0];
      if (analyzer_.CanProve(end <= Widened(c_.Cast(Type::kI64, extent)))) continue;
      // What the nest touches is in the buffer.
      Expr touched = c_.I64(1);
      for (size_t k = a.around; k < a.nest.loops.size(); ++k) {
        touched = touched + access.coefficients[k] * (a.nest.loops[k].extent - 1);
      }
      if (analyzer_.CanProve(elements <= touched)) continue;
      const arith::ConstRange range = analyzer_.Range(end);
      if (!scope_of_.contains(access.buffer) || !IsOnChip(access.buffer->scope) ||
          range.max > kMaxReach) {
        return Unproved(a, kConditions + 400,
                        StrCat("it would reach behind the end of '", access.buffer->name, "'"));
      }
      int64_t& reached = needed[access.buffer];
      reached = std::max(reached, range.max);
    }
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
      if (s.Is(StmtKind::kLet) && ir::IsInt(s.var().type())) analyzer.BindLet(s.var(), s.value());
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

  // Cycles by the table, with what is known at run time only counted as 0; none if the machine
  // lacks the instruction.
  std::optional<int64_t> Cost(const TensorPattern& pattern, absl::Span<const Expr> arguments) {
    if (target_.machine == nullptr) return 0;
    std::vector<int64_t> values;
    for (const isa::Operand& operand : pattern.instruction->operands) {
      const Expr argument = arguments[operand.param];
      values.push_back(argument.Is(ExprKind::kIntImm) ? argument.int_value() : 0);
    }
    const absl::StatusOr<int64_t> cost =
        target_.instructions->Cost(*pattern.instruction, values, target_.machine->parameters);
    return cost.ok() ? std::optional(*cost) : std::nullopt;
  }

  // ---- allocations

  Stmt ExpandAllocations(Stmt body) {
    ir::BufferMap expanded;
    for (const auto& [buffer, needed] : needed_) {
      const Expr extent = buffer->extents[0];
      const bool constant = extent.Is(ExprKind::kIntImm);
      if (constant && extent.int_value() >= needed) continue;
      const Expr size = c_.Int(extent.type(), needed);
      expanded[buffer] = c_.NewBuffer(buffer->name, buffer->type,
                                      {constant ? size : ir::Max(extent, size)}, buffer->scope);
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
  int matches_ = 0;
  // About the nest at hand.
  bool explaining_ = false;
  Difference closest_;
  bool structure_differs_ = false;
  // Around the statement that is walked, outermost first.
  std::vector<Stmt> open_loops_;
  std::vector<std::pair<Expr, bool>> open_conditions_;
  absl::flat_hash_map<Buffer, Stmt> scope_of_;
  absl::flat_hash_map<Buffer, int64_t> needed_;  // elements that instructions reach
};

}  // namespace

absl::StatusOr<bool> Tensorize(Function& function, const Target& target,
                               std::vector<TensorizeDecision>* decisions) {
  if (target.instructions == nullptr) {
    return InvalidInput("tensorize: target '", target.name, "' has no tensor instructions");
  }
  return Tensorizer(function, target, decisions).Run();
}

namespace {

absl::StatusOr<bool> RunTensorize(ir::Function& function, const PassEnvironment& environment,
                                  const OptionValues&) {
  std::vector<TensorizeDecision> decisions;
  const bool report = environment.stats != nullptr || environment.explanations != nullptr;
  ASSIGN_OR_RETURN(bool changed,
                   Tensorize(function, environment.target, report ? &decisions : nullptr));
  for (const TensorizeDecision& decision : decisions) {
    if (environment.explanations != nullptr && !decision.explanation.empty()) {
      environment.explanations->push_back(decision.explanation);
    }
    if (environment.stats == nullptr) continue;
    environment.stats->push_back(StrCat(decision.nest, "  -->  ",
                                        decision.instruction.empty()
                                            ? StrCat("(scalar) ", decision.reason)
                                            : decision.instruction));
  }
  return changed;
}

}  // namespace

PassInfo TensorizePass() {
  return {.name = "tensorize",
          .doc = "replaces loop nests by tensor instructions",
          .run = RunTensorize};
}

}  // namespace polynao
