#include "compiler/passes/let_names.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "compiler/ir/visit.h"

namespace polynao {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

LetNames::LetNames(const ir::Function& function, std::string_view stem) : stem_(stem) {
  for (const ir::Param& param : function.params) taken_.insert(std::string(param.name()));
  ir::ForEachStmt(function.body, [&](Stmt s) {
    if (s.Is(StmtKind::kFor) || s.Is(StmtKind::kLet)) taken_.insert(std::string(s.var().name()));
    if (s.Is(StmtKind::kAllocate)) taken_.insert(s.buffer()->name);
    return true;
  });
}

ir::Var LetNames::NewVar(Expr value) {
  Parts parts;
  int steps = kMaxSteps;
  AddParts(value, steps, parts);
  std::string stem = stem_;
  for (const std::string& part : parts) StrAppend(&stem, "_", part);
  std::string name = stem;
  int& number = numbers_[stem];
  while (!taken_.insert(name).second) name = StrCat(stem, "_", ++number);
  const ir::Var var = value.context().NewVar(name, value.type());
  parts_[var] = std::move(parts);
  return var;
}

void LetNames::AddParts(Expr e, int& steps, Parts& parts) const {
  if (--steps < 0) return;
  const auto add = [&](std::string_view part) {
    const bool known = std::find(parts.begin(), parts.end(), part) != parts.end();
    if (!known && parts.size() < kMaxParts) parts.emplace_back(part);
  };
  if (const auto own = parts_.find(e); own != parts_.end()) {
    for (const std::string& part : own->second) add(part);
  } else if (e.Is(ExprKind::kVar)) {
    add(e.name());
  } else if (e.buffer() != nullptr) {
    add(e.buffer()->name);
  } else {
    if (e.Is(ExprKind::kCall)) add(e.name());
    for (Expr operand : e.operands()) AddParts(operand, steps, parts);
  }
}

}  // namespace polynao
