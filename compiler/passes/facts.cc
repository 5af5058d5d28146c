#include "compiler/passes/facts.h"

#include <variant>

namespace polynao {

std::vector<ir::Expr> ParameterFacts(const ir::Function& function) {
  std::vector<ir::Expr> facts;
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

bool IsInside(ir::Buffer buffer, absl::Span<const ir::Expr> indices, arith::Analyzer& facts) {
  for (size_t d = 0; d < indices.size(); ++d) {
    const ir::Expr index = indices[d];
    const ir::Expr extent = buffer->extents[d];
    // The usual case costs no proof.
    const arith::ConstRange range = facts.Range(index);
    const bool is_constant = extent.Is(ir::ExprKind::kIntImm);
    if (range.min >= 0 && is_constant && range.max < extent.int_value()) continue;
    if (index.type() != extent.type()) return false;
    if (!facts.CanProve(0 <= index) || !facts.CanProve(index < extent)) return false;
  }
  return true;
}

}  // namespace polynao
