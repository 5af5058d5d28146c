#include "compiler/passes/tensorize.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/logic.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/facts.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/tensor_conditions.h"
#include "compiler/passes/tensor_match.h"
#include "compiler/passes/tensor_pattern.h"

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

// Loads replaced by variables.
struct ReplaceLoads : ir::Mutator {
  using ir::Mutator::Mutate;
  Expr Mutate(Expr e) override {
    const auto it = by.find(e);
    return it != by.end() ? Expr(it->second) : MutateOperands(e);
  }
  absl::flat_hash_map<Expr, Var> by;
  std::vector<Expr> order;
};

class Tensorizer {
 public:
  Tensorizer(Function& function, const Target& target, std::vector<TensorizeDecision>* decisions)
      : function_(function),
        target_(target),
        c_(*function.context),
        decisions_(decisions),
        analyzer_(c_),
        matcher_(target, function.context, analyzer_, surroundings_) {
    AssumeParameters(function, analyzer_);
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
    // A nest that matches nothing is reported. Its parts are then tried in silence, and the report
    // is withdrawn if one of them matches.
    const size_t reports = decisions_ == nullptr ? 0 : decisions_->size();
    const int matches = matches_;
    bool tried = false;
    switch (s.kind()) {
      case StmtKind::kPragma: {
        const bool is_hint = s.name() == pragma::kTensorize || IsFamily(s.name());
        const std::string_view inner = is_hint ? s.name() : family;
        if (is_hint) {
          const Stmt bound = WithIndicesInFront(s);
          if (bound != s) return Walk(bound, family);
        }
        const Stmt body = Walk(s.body(), inner);
        // The hint has done its work: no store is left below it.
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
          surroundings_.conditions.emplace_back(s.cond(), truth);
          branches[truth ? 0 : 1] = Walk(truth ? s.then_case() : s.else_case(), family);
          surroundings_.conditions.pop_back();
        }
        return c_.Rebuild(s, s.operands(), branches);
      }
      case StmtKind::kAllocate:
        surroundings_.allocations[s.buffer()] = s;
        break;
      default:
        break;
    }
    const bool silent = tried && !family.empty();
    silent_ += silent;
    if (s.Is(StmtKind::kFor)) surroundings_.loops.push_back(s);
    std::vector<Stmt> children;
    for (Stmt child : s.children()) children.push_back(Walk(child, family));
    if (s.Is(StmtKind::kFor)) surroundings_.loops.pop_back();
    silent_ -= silent;
    if (silent) DropReport(reports, matches);
    return c_.Rebuild(s, s.operands(), children);
  }

  // An index from memory that no loop of a marked nest changes, as a variable in front of the nest:
  //
  //   pragma "memcpy" {                                 let number = I[i]
  //     for (j, 0, 64) { L[j] = A[I[i] * 64 + j] } -->  pragma "memcpy" { for (j, 0, 64) { L[j] = A[number * 64 + j] } }
  //   }
  //
  // All loops have iterations, so it is read there too.
  Stmt WithIndicesInFront(Stmt marked) {
    absl::flat_hash_set<Expr> loops;
    Stmt leaf = marked.body();
    for (; leaf.Is(StmtKind::kFor); leaf = leaf.body()) {
      if (!leaf.extent().Is(ExprKind::kIntImm) || leaf.extent().int_value() < 1) return marked;
      loops.insert(leaf.var());
    }
    if (!leaf.Is(StmtKind::kStore)) return marked;
    const auto is_fixed = [&](Expr load) {
      bool fixed = Buffer(load.buffer()) != leaf.buffer();
      ir::ForEachExpr(load, [&](Expr e) {
        fixed = fixed && !loops.contains(e) && (e == load || !e.Is(ExprKind::kLoad));
      });
      return fixed;
    };
    ReplaceLoads replace;
    ir::ForEachExpr(leaf.value(), [&](Expr e) {
      if (!e.Is(ExprKind::kLoad)) return;
      for (Expr index : e.operands()) {
        ir::ForEachExpr(index, [&](Expr part) {
          if (!part.Is(ExprKind::kLoad) || !is_fixed(part) || replace.by.contains(part)) return;
          replace.by[part] = c_.NewVar("number", part.type());
          replace.order.push_back(part);
        });
      }
    });
    if (replace.by.empty()) return marked;
    Stmt result = replace.Mutate(marked);
    for (Expr load : replace.order) result = c_.LetStmt(replace.by.at(load), load, result);
    return result;
  }

  // An initialisation may be a nest of its own, right before the nest of the update.
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

  // Withdraws report number `report` if something has matched since it was made.
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

  static bool HasStore(Stmt root) {
    bool found = false;
    ir::ForEachStmt(root, [&](Stmt s) {
      found = found || s.Is(StmtKind::kStore);
      return !found;
    });
    return found;
  }

  // ---- one nest

  std::optional<Stmt> TryNest(Stmt s, std::string_view family) {
    // Only marked nests are reported: not all code is meant to become instructions.
    const bool explains = decisions_ != nullptr && !family.empty() && silent_ == 0;
    matcher_.Begin(explains);
    std::string reason;
    const std::optional<TensorNest> nest = MakeTensorNest(s, analyzer_, reason);
    std::optional<TensorMatch> best;
    if (nest) best = matcher_.Best(*nest, family);
    if (!best) {
      if (explains) Report(s, family, reason);
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
    Stmt result = UnlessEmpty(
        *nest, best->around,
        c_.Evaluate(c_.Call(Type::kI32, best->pattern->instruction->mnemonic, best->arguments)));
    for (size_t k = best->around; k-- > 0;) {
      const Stmt loop = nest->loops[k].loop;
      result = c_.Rebuild(loop, loop.operands(), {result});
    }
    return result;
  }

  // The call for the nest's loops from number `around` on. Loops without an iteration touch nothing,
  // but the operands of an instruction must be inside their buffers even if it touches nothing: their
  // beginnings, and what is left of an operand of several dimensions when one extent is 0.
  Stmt UnlessEmpty(const TensorNest& nest, size_t around, Stmt call) {
    Analyzer::Scope scope(analyzer_);
    for (size_t k = 0; k < around; ++k) {
      const Stmt loop = nest.loops[k].loop;
      analyzer_.BindLoop(loop.var(), loop.min(), loop.extent());
    }
    std::vector<Expr> not_empty;
    for (size_t k = around; k < nest.loops.size(); ++k) {
      const Expr extent = nest.loops[k].loop.extent();
      const Expr runs = c_.Int(extent.type(), 0) < extent;
      if (!analyzer_.CanProve(runs)) not_empty.push_back(runs);
    }
    bool is_inside = nest.loops.size() == around + 1;
    for (Expr argument : call.value().operands()) {
      is_inside =
          is_inside && (!argument.Is(ExprKind::kAddress) ||
                        IsInside(Buffer(argument.buffer()), argument.operands(), analyzer_));
    }
    if (not_empty.empty() || is_inside) return call;
    return c_.If(analyzer_.Simplify(arith::Conjunction(not_empty)), call);
  }

  void Report(Stmt s, std::string_view family, std::string_view reason) {
    TensorizeDecision decision{.nest = ir::PrintFirstLine(s),
                               .instruction = "",
                               .reason = std::string(reason),
                               .explanation = ""};
    StrAppend(&decision.explanation, decision.nest, "  (marked \"", family,
              "\") is no instruction\n");
    if (matcher_.closest().progress < 0) {
      if (reason.empty()) decision.reason = StrCat("no instruction belongs to '", family, "'");
      StrAppend(&decision.explanation, "  no pattern fits its form: ", decision.reason, "\n");
    } else {
      decision.reason = StrCat(matcher_.closest().mnemonic, ": ", matcher_.closest().why);
      StrAppend(&decision.explanation, "  closest pattern: ", matcher_.closest().mnemonic,
                "\n  in the pattern:  ", matcher_.closest().pattern,
                "\n  in the program:  ", matcher_.closest().program,
                "\n  difference:      ", matcher_.closest().why, "\n");
    }
    decisions_->push_back(std::move(decision));
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
  Analyzer analyzer_;
  NestSurroundings surroundings_;  // of the statement being walked
  TensorMatcher matcher_;
  int silent_ = 0;
  int matches_ = 0;
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
