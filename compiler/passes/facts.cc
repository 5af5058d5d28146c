#include "compiler/passes/facts.h"

#include <variant>

namespace polynao {

void AssumeParameters(const ir::Function& function, arith::Analyzer& analyzer) {
  for (const ir::Param& param : function.params) {
    if (!param.buffer) continue;
    for (ir::Expr extent : param.buffer->extents) {
      if (!extent.IsConst()) analyzer.Assume(0 <= extent);
    }
  }
  if (const ir::Attribute* attribute = function.FindAttribute("assert")) {
    for (const ir::AttributeValue& value : attribute->values) {
      const ir::Expr* condition = std::get_if<ir::Expr>(&value);
      if (condition != nullptr && condition->type() == ir::Type::kI1) analyzer.Assume(*condition);
    }
  }
}

}  // namespace polynao
