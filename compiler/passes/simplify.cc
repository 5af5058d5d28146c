#include "compiler/passes/simplify.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/facts.h"
#include "compiler/passes/pass.h"

namespace polynao {
namespace {

using arith::Analyzer;
using arith::ConstRange;
using arith::Mode;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::StmtKind;

class Simplifier {
 public:
  explicit Simplifier(ir::Function& function)
      : function_(function), context_(*function.context), analyzer_(context_) {
    AssumeParameters(function, analyzer_);
  }

  Stmt Run(Stmt s) {
    switch (s.kind()) {
      case StmtKind::kFor:
        return For(s);
      case StmtKind::kIf:
        return If(s);
      case StmtKind::kLet:
        return Let(s);
      case StmtKind::kAllocate: {
        for (Expr extent : s.buffer()->extents) NoteUses(extent);
        const Stmt body = Run(s.body());
        if (body.IsEmpty() && HasConstantExtents(s.buffer())) return body;
        return context_.Rebuild(s, {}, {body});
      }
      case StmtKind::kStore: {
        std::vector<Expr> operands;
        for (Expr index : s.indices()) operands.push_back(Simple(index, Mode::kIndex));
        operands.push_back(Simple(s.value(), Mode::kData));
        const Stmt store = context_.Rebuild(s, operands, {});
        return StoresWhatIsThere(store) ? context_.Nop() : store;
      }
      case StmtKind::kPragma: {
        std::vector<Expr> operands;
        for (Expr e : s.operands()) operands.push_back(Simple(e, Mode::kIndex));
        const Stmt body = Run(s.body());
        return body.IsEmpty() ? body : context_.Rebuild(s, operands, {body});
      }
      case StmtKind::kEvaluate:
        return context_.Rebuild(s, {Simple(s.value(), Mode::kIndex)}, {});
      case StmtKind::kSeq:
        return Seq(s);
    }
    POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
  }

 private:
  Expr Simple(Expr e, Mode mode) {
    if (!replaced_.empty()) e = ir::Substitute(e, replaced_);
    const Expr simple = analyzer_.Simplify(e, mode);
    NoteUses(simple);
    return simple;
  }

  void NoteUses(Expr e) {
    ir::ForEachExpr(e, [&](Expr x) {
      if (x.Is(ExprKind::kVar)) used_.insert(x);
    });
  }

  static bool HasConstantExtents(ir::Buffer buffer) {
    for (Expr extent : buffer->extents) {
      if (!extent.IsConst()) return false;
    }
    return true;
  }

  // A[i] = A[i], where the element exists.
  bool StoresWhatIsThere(Stmt s) {
    const Expr value = s.value();
    return value.Is(ExprKind::kLoad) && ir::Buffer(value.buffer()) == s.buffer() &&
           value.operands() == s.indices() &&
           std::none_of(s.indices().begin(), s.indices().end(),
                        [&](Expr index) { return analyzer_.CanTrap(index); }) &&
           IsInside(s.buffer(), s.indices(), analyzer_);
  }

  // Substitution reaches expressions of statements, not the extents of allocated buffers.
  static bool SizesMemory(ir::Var var, Stmt body) {
    bool found = false;
    ir::ForEachStmt(body, [&](Stmt s) {
      if (s.Is(StmtKind::kAllocate)) {
        for (Expr extent : s.buffer()->extents) found = found || ir::UsesVar(extent, var);
      }
      return !found;
    });
    return found;
  }

  Stmt For(Stmt s) {
    const Expr min = Simple(s.min(), Mode::kIndex);
    const Expr extent = Simple(s.extent(), Mode::kIndex);
    const bool total = !analyzer_.CanTrap(min) && !analyzer_.CanTrap(extent);
    if (total && analyzer_.Range(extent).max <= 0) return context_.Nop();
    if (extent.IsInt(1) && s.for_kind() != ForKind::kThread) {
      // As a let first: what can be substituted is.
      return LetIs(s.var(), min, s.body(), Mode::kIndex, Stmt());
    }
    Stmt body;
    {
      Analyzer::Scope scope(analyzer_);
      analyzer_.BindLoop(s.var(), min, extent);
      body = Run(s.body());
    }
    if (body.IsEmpty() && total) return body;
    return context_.Rebuild(s, {min, extent}, {body});
  }

  Stmt Let(Stmt s) {
    return LetIs(s.var(), Simple(s.value(), Mode::kData), s.body(), Mode::kData, s);
  }

  // `let var = value body`, where `value` is simplified; `original` is that statement, if there is
  // one.
  Stmt LetIs(ir::Var var, Expr value, Stmt body, Mode mode, Stmt original) {
    const bool is_short =
        value.IsConst() || value.Is(ExprKind::kVar) ||
        // A loop's start: sums of a variable and a constant read well in place.
        (mode == Mode::kIndex && !analyzer_.CanTrap(value) && value.operands().size() == 2 &&
         value.operand(0).Is(ExprKind::kVar) && value.operand(1).IsConst());
    if (is_short && !SizesMemory(var, body)) {
      replaced_[var] = value;
      const Stmt result = Run(body);
      replaced_.erase(var);  // what is left is copied with each expression
      return result;
    }
    Stmt simple;
    {
      Analyzer::Scope scope(analyzer_);
      analyzer_.BindLet(var, value, mode);
      simple = Run(body);
    }
    if (!used_.contains(var) && !analyzer_.CanTrap(value)) return simple;
    if (simple.IsEmpty() && !analyzer_.CanTrap(value)) return simple;
    if (original) return context_.Rebuild(original, {value}, {simple});
    return context_.LetStmt(var, value, simple);
  }

  Stmt If(Stmt s) {
    const Expr cond = Simple(s.cond(), Mode::kIndex);
    if (cond.IsConst()) return Run(cond.int_value() != 0 ? s.then_case() : s.else_case());
    auto run_branch = [&](Stmt branch, bool truth) {
      Analyzer::Scope scope(analyzer_);
      analyzer_.Assume(cond, truth);
      return Run(branch);
    };
    const Stmt then_case = run_branch(s.then_case(), true);
    const Stmt else_case =
        s.else_case().IsEmpty() ? s.else_case() : run_branch(s.else_case(), false);
    if (then_case.IsEmpty() && else_case.IsEmpty()) {
      return analyzer_.CanTrap(cond) ? context_.Rebuild(s, {cond}, {then_case, else_case})
                                     : then_case;
    }
    if (then_case.IsEmpty()) {
      return context_.If(Simple(context_.Not(cond), Mode::kIndex), else_case);
    }
    if (AreEqual(then_case, else_case) && !analyzer_.CanTrap(cond)) return then_case;
    if (then_case.Is(StmtKind::kIf) && then_case.else_case().IsEmpty() && else_case.IsEmpty()) {
      return context_.If(Simple(ir::And(cond, then_case.cond()), Mode::kIndex),
                         then_case.then_case());
    }
    return context_.Rebuild(s, {cond}, {then_case, else_case});
  }

  // Whether `a` and `b` do the same, up to the names of what they bind.
  bool AreEqual(Stmt a, Stmt b) const {
    if (a.kind() != b.kind()) return false;
    const auto function_of = [&](Stmt body) {
      ir::Function f;
      f.context = function_.context;
      f.body = body;
      return f;
    };
    return a == b || ir::StructurallyEqual(function_of(a), function_of(b));
  }

  Stmt Seq(Stmt s) {
    std::vector<Stmt> children;
    bool changed = false;
    for (Stmt child : s.children()) {
      const Stmt simple = Run(child);
      changed = changed || simple != child;
      if (!simple.IsEmpty()) children.push_back(simple);
    }
    // An empty statement inside a sequence goes, too; Rebuild would compare it away.
    return changed || children.size() != s.children().size() ? context_.Seq(children) : s;
  }

  const ir::Function& function_;
  ir::Context& context_;
  Analyzer analyzer_;
  // Variables of loops and lets that are gone, and what stands for them.
  ir::VarMap replaced_;
  // Variables that simplified expressions use.
  absl::flat_hash_set<ir::Var> used_;
};

}  // namespace

absl::StatusOr<bool> Simplify(ir::Function& function) {
  const Stmt body = Simplifier(function).Run(function.body);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

PassInfo SimplifyPass() {
  return {.name = "simplify",
          .doc = "shorter expressions; drops dead branches, loops and lets",
          .second_run_changes = "operands that it has made equal are joined by the next run",
          .run = [](ir::Function& function, const PassEnvironment&, const OptionValues&) {
            return Simplify(function);
          }};
}

}  // namespace polynao
