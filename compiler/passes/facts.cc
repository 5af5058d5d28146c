#include "compiler/passes/facts.h"

#include <variant>

namespace polynao {

std::vector<ir::Expr> ParameterFacts(const ir::Function& function) {
  std::vector<ir::Expr> facts;
  for (const ir::Param& param : function.params) {
    if (!param.buffer) continue;
    for (ir::Expr extent : param.buffer->extents) {
      if (!extent.IsConst()) facts.push_back(0 <= extent);
    }
  }
  if (const ir::Attribute* attribute = function.FindAttribute("assert")) {
    for (const ir::AttributeValue& value : attribute->values) {
      const ir::Expr* condition = std::get_if<ir::Expr>(&value);
      if (condition != nullptr && condition->type() == ir::Type::kI1) facts.push_back(*condition);
    }
  }
  return facts;
}

void AssumeParameters(const ir::Function& function, arith::Analyzer& analyzer) {
  for (ir::Expr fact : ParameterFacts(function)) analyzer.Assume(fact);
}

}  // namespace polynao
