#include "compiler/passes/facts.h"

#include "compiler/ir/assertions.h"

namespace polynao {

std::vector<ir::Expr> ParameterFacts(const ir::Function& function) {
  return ir::Assertions(function);
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
