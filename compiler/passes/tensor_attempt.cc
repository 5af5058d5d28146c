#include "compiler/passes/tensor_attempt.h"

#include "base/text.h"
#include "compiler/ir/text.h"

namespace polynao {

std::string NumberText(ir::Expr e) {
  return e.Is(ir::ExprKind::kIntImm) ? StrCat(e.int_value()) : ir::Print(e);
}

std::string StoreText(ir::Stmt store) {
  std::string text = ir::Print(store);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace polynao
