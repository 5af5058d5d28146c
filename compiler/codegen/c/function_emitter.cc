// Names, uses and statements; expressions are in expression_emitter.cc.
#include "compiler/codegen/c/function_emitter.h"

#include <algorithm>
#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "base/check.h"
#include "compiler/arith/logic.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::Var;

std::string FunctionEmitter::Lines() const {
  std::string text;
  for (const CodeLine& line : lines_) {
    StrAppend(&text, std::string(line.text.empty() ? 0 : 2 * line.indent, ' '), line.text, "\n");
  }
  return text;
}

bool FunctionEmitter::CallsOpaque() const {
  const std::vector<const ir::ExternNode*> called = ir::ExternsOf(function_);
  return std::any_of(called.begin(), called.end(), [](const ir::ExternNode* callee) {
    return callee->effect == ir::Effect::kOpaque;
  });
}

std::vector<std::string> FunctionEmitter::Parameters(std::string_view pointer,
                                                     std::string_view restricted) {
  std::vector<std::string> parameters;
  const bool calls_opaque = CallsOpaque();
  // No name may hide a function that is called.
  for (const ir::ExternNode* callee : ir::ExternsOf(function_)) in_scope_.insert(callee->name);
  for (const ir::Param& param : function_.params) {
    if (!param.buffer) {
      parameters.push_back(
          StrCat(ValueType(param.var.type()), " ", Bind(param.var.node(), param.name())));
      continue;
    }
    const std::string name = Bind(param.buffer.node(), param.buffer->name);
    parameters.push_back(StrCat(
        stored_.contains(param.buffer.node()) ? "" : "const ", MemoryType(param.buffer->type),
        aliases_.Group(param.buffer) || calls_opaque ? pointer : restricted, name));
  }
  return parameters;
}

std::string FunctionEmitter::Bind(const void* node, std::string_view name) {
  std::string unique = NewName(name);
  names_[node] = unique;
  return unique;
}

std::string FunctionEmitter::NewName(std::string_view name) {
  const std::string base = CName(name);
  std::string unique = base;
  for (int i = 1; !in_scope_.insert(unique).second; ++i) unique = StrCat(base, "_", i);
  return unique;
}

void FunctionEmitter::Unbind(const std::string& name) { in_scope_.erase(name); }

void FunctionEmitter::CollectUses() {
  CollectUses(function_.body);
  for (const ir::Param& param : function_.params) {
    if (param.buffer) CollectUsesOfExtents(param.buffer);
  }
}

void FunctionEmitter::CollectUses(Expr root) {
  ForEachExpr(root, [&](Expr e) {
    if (e.Is(ExprKind::kVar)) used_.insert(e.node());
    if (e.Is(ExprKind::kLoad) || e.Is(ExprKind::kAddress)) {
      used_.insert(e.buffer());
      read_.insert(e.buffer());
    }
    if (e.callee() == nullptr) return;
    for (size_t i = 0; i < e.operands().size(); ++i) {
      const ir::Param& param = e.callee()->params[i];
      if (param.buffer && param.access != ir::Access::kIn) stored_.insert(e.operand(i).buffer());
    }
  });
}

void FunctionEmitter::CollectUses(Stmt s) {
  for (Stmt child : s.children()) CollectUses(child);
  if (s.Is(StmtKind::kLet) && !used_.contains(s.var().node())) return;
  if (s.Is(StmtKind::kStore)) {
    used_.insert(s.buffer().node());
    stored_.insert(s.buffer().node());
  }
  if (s.Is(StmtKind::kAllocate)) {
    CollectUsesOfExtents(s.buffer());
    if (used_.contains(s.buffer().node()) && !s.buffer()->extents.empty()) {
      CollectUses(s.buffer()->extents[0]);  // its size
    }
  }
  if (s.Is(StmtKind::kPragma)) return;
  if (s.Is(StmtKind::kFor) && !used_.contains(s.var().node())) {
    // The loop's lower bound is not used then.
    CollectUses(s.extent());
    return;
  }
  for (Expr e : s.operands()) CollectUses(e);
}

void FunctionEmitter::CollectUsesOfExtents(Buffer buffer) {
  if (!used_.contains(buffer.node())) return;
  for (size_t d = 1; d < buffer->extents.size(); ++d) CollectUses(buffer->extents[d]);
}

absl::Status FunctionEmitter::EmitStmt(Stmt s) {
  switch (s.kind()) {
    case StmtKind::kFor:
      return EmitFor(s);
    case StmtKind::kIf: {
      ASSIGN_OR_RETURN(const Text condition, Operand(s.cond(), true));
      Line(StrCat("if (", condition.text, ") {"));
      for (const bool truth : {true, false}) {
        const Stmt branch = truth ? s.then_case() : s.else_case();
        if (!truth && branch.IsEmpty()) break;
        if (!truth) Line("} else {");
        arith::Analyzer::Scope scope(analyzer_);
        analyzer_.Assume(s.cond(), truth);
        RETURN_IF_ERROR(EmitBlock(branch));
      }
      Line("}");
      return absl::OkStatus();
    }
    case StmtKind::kLet: {
      if (!used_.contains(s.var().node())) return EmitStmt(s.body());
      arith::Analyzer::Scope known(analyzer_);
      std::optional<ScopedNames> scope(this);
      CountUses({s.value()});
      ASSIGN_OR_RETURN(const std::string name, EmitLet(s.var(), s.value()));
      scope.reset();
      RETURN_IF_ERROR(EmitStmt(s.body()));
      Unbind(name);
      return absl::OkStatus();
    }
    case StmtKind::kAllocate:
      return EmitAllocate(s);
    case StmtKind::kStore:
      return EmitStore(s);
    case StmtKind::kPragma:
      Line(StrCat("// pragma ", s.name()));
      return EmitStmt(s.body());
    case StmtKind::kEvaluate: {
      ASSIGN_OR_RETURN(const Text call, Operand(s.value(), false));
      Line(StrCat(call.text, ";"));
      return absl::OkStatus();
    }
    case StmtKind::kSeq:
      for (Stmt child : s.children()) {
        // A declaration's scope ends with its statement's.
        const bool declares = child.Is(StmtKind::kLet) || child.Is(StmtKind::kAllocate) ||
                              child.Is(StmtKind::kPragma);
        if (!declares || child == s.children().back()) {
          RETURN_IF_ERROR(EmitStmt(child));
          continue;
        }
        Line("{");
        RETURN_IF_ERROR(EmitBlock(child));
        Line("}");
      }
      return absl::OkStatus();
  }
  POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
}

absl::StatusOr<std::string> FunctionEmitter::EmitLet(Expr var, Expr value) {
  const Type type = var.type();
  const bool exact = IsExact(value);
  ASSIGN_OR_RETURN(const Text text, EmitExpr(value, exact));
  std::string name = Bind(var.node(), var.name());
  Line(StrCat("const ", ValueType(type), " ", name, " = ", text.text, ";"));
  analyzer_.BindLet(var, value, exact ? arith::Mode::kIndex : arith::Mode::kData);
  if (exact) exact_lets_.emplace(var, value);
  return name;
}

absl::Status FunctionEmitter::EmitBlock(Stmt s) {
  ++indent_;
  const auto outer = in_scope_;
  RETURN_IF_ERROR(EmitStmt(s));
  in_scope_ = outer;
  --indent_;
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitExtents(Buffer buffer) {
  std::vector<std::string>& extents = extents_[buffer.node()];
  for (size_t d = 0; d < buffer->extents.size(); ++d) {
    const Expr extent = buffer->extents[d];
    if (d == 0 || !used_.contains(buffer.node())) {
      extents.emplace_back();
      continue;
    }
    ASSIGN_OR_RETURN(const Text text, Operand(extent, true));
    if (extent.Is(ExprKind::kIntImm) || extent.Is(ExprKind::kVar)) {
      extents.push_back(text.text);
      continue;
    }
    const std::string name = NewName(StrCat(buffer->name, "_extent", d));
    Line(StrCat("const ", ValueType(extent.type()), " ", name, " = ", text.text, ";"));
    extents.push_back(name);
  }
  return absl::OkStatus();
}

absl::Status FunctionEmitter::EmitStore(Stmt s) {
  // All operands are one evaluation, so that they share subexpressions.
  ScopedNames scope(this);
  CountUses(s.operands());
  ASSIGN_OR_RETURN(const std::string element, Element(s.buffer(), s.indices()));
  ASSIGN_OR_RETURN(const std::string value, StoredValue(s));
  Line(StrCat(element, " = ", value, ";"));
  return absl::OkStatus();
}

absl::StatusOr<std::string> FunctionEmitter::StoredValue(Stmt store) {
  const Type type = store.buffer()->type;
  if (IsNarrowFloat(type)) {
    ASSIGN_OR_RETURN(const Text unrounded, EmitUnrounded(store.value()));
    return StrCat("nao_", ir::TypeName(type), "_of_f32(", unrounded.text, ")");
  }
  ASSIGN_OR_RETURN(Text text, EmitExpr(store.value(), false));
  return std::move(text.text);
}

absl::Status FunctionEmitter::EmitLoop(Stmt s, absl::Span<const std::string> pragmas,
                                       std::string_view comment) {
  const Var var = s.var();
  Text min;
  if (s.min().IsConst() || used_.contains(var.node())) {
    ASSIGN_OR_RETURN(min, Operand(s.min(), true));
    // The loop may store what its first value was loaded from.
    if (arith::ReadsMemory(s.min())) {
      const std::string name = NewName(StrCat(var.name(), "_min"));
      Line(StrCat("const ", ValueType(var.type()), " ", name, " = ", min.text, ";"));
      min = {name};
    }
  }
  ASSIGN_OR_RETURN(Text extent, Operand(s.extent(), true));
  // A variable or a constant can stand in the loop's condition: it does not change.
  if (!s.extent().Is(ExprKind::kVar) && !s.extent().IsConst()) {
    const std::string name = NewName(StrCat(var.name(), "_extent"));
    Line(StrCat("const ", ValueType(var.type()), " ", name, " = ", extent.text, ";"));
    extent = {name};
  }
  // OpenMP counts a loop's iterations before it asks whether there are any, and the count of a loop
  // that ends at its type's least value is one less than that (OpenMP 5.2, section 4.4.2).
  const bool openmp = absl::c_any_of(
      pragmas, [](const std::string& pragma) { return absl::StrContains(pragma, " omp "); });
  if (openmp && !s.extent().IsConst() && !ir::IsUnsigned(var.type()) &&
      !analyzer_.CanProve(s.extent() >= 0)) {
    const std::string name = NewName(StrCat(var.name(), "_count"));
    Line(StrCat("const ", ValueType(var.type()), " ", name, " = ", extent.At(kRelational),
                " > 0 ? ", extent.text, " : 0;"));
    extent = {name};
  }
  for (const std::string& pragma : pragmas) Line(pragma);
  const auto outer = in_scope_;
  const std::string name = Bind(var.node(), var.name());
  const std::string_view type = ValueType(var.type());
  arith::Analyzer::Scope scope(analyzer_);
  analyzer_.BindLoop(var, s.min(), s.extent());
  // The loop's end, if it is known to fit the variable's type.
  std::optional<std::string> end;
  if (s.min().IsInt(0)) {
    end = extent.At(kAdditive);
  } else if (s.min().Is(ExprKind::kIntImm) && s.extent().Is(ExprKind::kIntImm)) {
    int64_t last;
    if (!__builtin_add_overflow(s.min().int_value(), std::max<int64_t>(s.extent().int_value(), 0),
                                &last) &&
        last < INT32_MAX && ir::FitsInt(var.type(), last)) {
      end = StrCat(last);
    }
  }
  const std::string counter = end ? name : NewName(StrCat(name, "_step"));
  if (end) {
    Line(StrCat("for (", type, " ", name, " = ", min.text, "; ", name, " < ", *end, "; ++", name,
                ") {", comment));
  } else {
    Line(StrCat("for (int64_t ", counter, " = 0; ", counter, " < ", extent.At(kAdditive), "; ++",
                counter, ") {", comment));
    if (used_.contains(var.node())) {
      ++indent_;
      Line(StrCat("const ", type, " ", name, " = (", type, ")(", min.At(kAdditive), " + ", counter,
                  ");"));
      --indent_;
    }
  }
  RETURN_IF_ERROR(EmitBlock(s.body()));
  Line("}");
  in_scope_ = outer;
  return absl::OkStatus();
}

}  // namespace polynao::codegen
