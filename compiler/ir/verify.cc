#include "compiler/ir/verify.h"

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Function& function) : function_(function) {}

  absl::Status Run() {
    for (const Param& param : function_.params) {
      if (static_cast<bool>(param.var) == static_cast<bool>(param.buffer)) {
        return InvalidInput("a parameter is a scalar or a buffer, and not both");
      }
      if (param.var) RETURN_IF_ERROR(BindVar(param.var));
    }
    for (const Param& param : function_.params) {
      if (param.buffer) RETURN_IF_ERROR(BindBuffer(param.buffer));
    }
    return CheckStmt(function_.body);
  }

 private:
  absl::Status BindVar(Var var) {
    if (!ever_bound_.insert(var.node()).second) {
      return InvalidInput("variable '", var.name(), "' is bound twice");
    }
    in_scope_.insert(var.node());
    return absl::OkStatus();
  }

  absl::Status BindBuffer(Buffer buffer) {
    if (!ever_bound_.insert(buffer.node()).second) {
      return InvalidInput("buffer '", buffer->name, "' is bound twice");
    }
    for (Expr extent : buffer->extents) {
      if (!IsIndexable(extent.type())) {
        return InvalidInput("buffer '", buffer->name, "' has an extent of ",
                            TypeName(extent.type()));
      }
      RETURN_IF_ERROR(CheckExpr(extent, false));
    }
    in_scope_.insert(buffer.node());
    return absl::OkStatus();
  }

  absl::Status CheckExpr(Expr root, bool is_statement) {
    absl::Status status;
    std::vector<const void*> lets;
    // Binds the variables of all lets inside the expression first: bodies are visited before lets.
    ForEachExpr(root, [&](Expr e) {
      if (e.Is(ExprKind::kLet)) lets.push_back(e.var().node());
    });
    for (const void* let : lets) in_scope_.insert(let);
    absl::flat_hash_set<const ExprNode*> call_arguments;
    ForEachExpr(root, [&](Expr e) {
      if (e.callee() == nullptr && !(is_statement && e == root)) return;
      for (Expr operand : e.operands()) call_arguments.insert(operand.node());
    });
    ForEachExpr(root, [&](Expr e) {
      if (status.ok()) status = CheckNode(e, e == root && is_statement, call_arguments);
    });
    for (const void* let : lets) in_scope_.erase(let);
    return status;
  }

  absl::Status CheckNode(Expr e, bool is_statement,
                         const absl::flat_hash_set<const ExprNode*>& call_arguments) {
    switch (e.kind()) {
      case ExprKind::kVar:
        if (!in_scope_.contains(e.node())) {
          return InvalidInput("variable '", e.name(), "' is used outside its scope");
        }
        break;
      case ExprKind::kLoad:
      case ExprKind::kAddress:
        if (!in_scope_.contains(e.buffer())) {
          return InvalidInput("buffer '", e.buffer()->name, "' is used outside its scope");
        }
        for (Expr index : e.operands()) {
          if (!IsIndexable(index.type())) {
            return InvalidInput("an index of '", e.buffer()->name, "' is ", TypeName(index.type()));
          }
        }
        if (e.Is(ExprKind::kAddress) && !call_arguments.contains(e.node())) {
          return InvalidInput("the address ", Print(e), " is no argument of an instruction");
        }
        break;
      case ExprKind::kCall:
        if (e.callee() != nullptr) return CheckExternCall(e, is_statement);
        if (IsPureIntrinsic(e.name())) {
          const size_t arity = PureIntrinsicArity(e.name());
          if (e.operands().size() != arity) {
            return InvalidInput(e.name(), " takes ", arity, " arguments, found ",
                                e.operands().size());
          }
          for (Expr operand : e.operands()) {
            if (operand.type() != e.type() || !IsFloat(e.type())) {
              return InvalidInput(e.name(), " of ", TypeName(operand.type()), " gives ",
                                  TypeName(e.type()));
            }
          }
        } else if (!is_statement) {
          return InvalidInput("the instruction ", e.name(), " is called inside an expression");
        }
        break;
      case ExprKind::kAdd:
      case ExprKind::kSub:
      case ExprKind::kMul:
      case ExprKind::kDiv:
      case ExprKind::kMod:
      case ExprKind::kMin:
      case ExprKind::kMax:
        if (e.type() == Type::kI1) {
          return InvalidInput("arithmetic on conditions: ", Print(e));
        }
        break;
      default:
        break;
    }
    return absl::OkStatus();
  }

  // Whether arguments are what the parameters want, and the call stands where its result is wanted.
  static absl::Status CheckExternCall(Expr call, bool is_statement) {
    const ExternNode& callee = *call.callee();
    if (callee.result.has_value() == is_statement) {
      return InvalidInput("the ", EffectName(callee.effect), " function ", callee.name,
                          is_statement ? " is called as a statement without an effect"
                                       : " is called inside an expression");
    }
    if (call.operands().size() != callee.params.size()) {
      return InvalidInput(callee.name, " takes ", callee.params.size(), " arguments, found ",
                          call.operands().size());
    }
    for (size_t i = 0; i < callee.params.size(); ++i) {
      const Param& param = callee.params[i];
      const Expr operand = call.operand(i);
      const bool is_address = operand.Is(ExprKind::kAddress);
      const Type wanted = param.buffer ? param.buffer->type : param.var.type();
      const Type found = is_address ? operand.buffer()->type : operand.type();
      if (is_address != static_cast<bool>(param.buffer) || found != wanted) {
        return InvalidInput(callee.name, ": argument '", param.name(), "' is ",
                            param.buffer ? "an address of " : "", TypeName(wanted), ", found ",
                            is_address ? "an address of " : "", TypeName(found));
      }
    }
    return absl::OkStatus();
  }

  // "in statement ...: " with the first line of its text.
  static absl::Status At(Stmt s, const absl::Status& status) {
    if (status.ok()) return status;
    return WithContext(StrCat("in '", PrintFirstLine(s), "'"), status);
  }

  absl::Status CheckStmt(Stmt s) {
    switch (s.kind()) {
      case StmtKind::kStore:
        if (!in_scope_.contains(s.buffer().node())) {
          return At(s, InvalidInput("buffer '", s.buffer()->name, "' is used outside its scope"));
        }
        for (Expr index : s.indices()) {
          if (!IsIndexable(index.type())) {
            return At(s, InvalidInput("an index is ", TypeName(index.type())));
          }
        }
        break;
      case StmtKind::kEvaluate:
        if (!s.value().Is(ExprKind::kCall) ||
            (s.value().callee() == nullptr && IsPureIntrinsic(s.value().name()))) {
          return At(s, InvalidInput("a statement without an effect"));
        }
        break;
      case StmtKind::kFor:
        // A loop over threadIdx may contain another one: the threads of a block do together the work
        // that each of them needs (docs/ir.md).
        if (s.for_kind() == ForKind::kThread && !s.name().starts_with("threadIdx.") &&
            !axes_.insert(std::string(s.name())).second) {
          return At(s, InvalidInput("thread axis '", s.name(), "' inside itself"));
        }
        break;
      default:
        break;
    }
    for (Expr e : s.operands()) {
      RETURN_IF_ERROR(At(s, CheckExpr(e, s.Is(StmtKind::kEvaluate))));
    }
    if (s.Is(StmtKind::kFor) || s.Is(StmtKind::kLet)) RETURN_IF_ERROR(At(s, BindVar(s.var())));
    if (s.Is(StmtKind::kAllocate)) RETURN_IF_ERROR(At(s, BindBuffer(s.buffer())));
    for (Stmt child : s.children()) RETURN_IF_ERROR(CheckStmt(child));
    if (s.Is(StmtKind::kFor) || s.Is(StmtKind::kLet)) in_scope_.erase(s.var().node());
    if (s.Is(StmtKind::kFor) && s.for_kind() == ForKind::kThread)
      axes_.erase(std::string(s.name()));
    if (s.Is(StmtKind::kAllocate)) in_scope_.erase(s.buffer().node());
    return absl::OkStatus();
  }

  const Function& function_;
  absl::flat_hash_set<const void*> in_scope_;
  absl::flat_hash_set<const void*> ever_bound_;
  absl::flat_hash_set<std::string> axes_;
};

}  // namespace

namespace {

// The declaration by itself, and that its meaning does no more than it declares.
absl::Status VerifyExtern(const ExternNode& callee) {
  if (const std::string fault = SignatureFault(callee); !fault.empty()) return InvalidInput(fault);
  if (!HasMeaning(callee)) return absl::OkStatus();
  const Function meaning = MeaningOf(callee);
  RETURN_IF_ERROR(Verifier(meaning).Run());
  absl::flat_hash_set<const BufferNode*> read_only;
  for (const Param& param : callee.params) {
    if (param.buffer && param.access == Access::kIn) read_only.insert(param.buffer.node());
  }
  absl::Status status;
  ForEachStmt(meaning.body, [&](Stmt s) {
    if (s.Is(StmtKind::kStore) && read_only.contains(s.buffer().node())) {
      status = InvalidInput("it stores to '", s.buffer()->name, "', which is declared 'in'");
    }
    return status.ok();
  });
  ForEachExprIn(meaning.body, [&](Expr e) {
    if (!status.ok() || !e.Is(ExprKind::kCall)) return;
    if (e.callee() == nullptr && !IsPureIntrinsic(e.name())) {
      status = InvalidInput("it calls the instruction ", e.name());
    } else if (e.callee() != nullptr && e.callee()->effect > callee.effect) {
      status = InvalidInput("it is declared ", EffectName(callee.effect), " and calls ", e.name(),
                            ", which is ", EffectName(e.callee()->effect));
    }
  });
  return status;
}

}  // namespace

absl::Status Verify(const Function& function) {
  for (const ExternNode* callee : ExternsOf(function)) {
    RETURN_IF_ERROR(
        WithContext(StrCat("extern function '", callee->name, "'"), VerifyExtern(*callee)));
  }
  return WithContext(StrCat("function '", function.name, "'"), Verifier(function).Run());
}

}  // namespace polynao::ir
