#include "compiler/ir/visit.h"

#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/ir/ir.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

// What ForEachExpr visits, by its meaning: operands from the left, then the node, each once.
void Walk(Expr e, std::set<const ExprNode*>& met, std::vector<Expr>& order) {
  if (!met.insert(e.node()).second) return;
  for (Expr operand : e.operands()) Walk(operand, met, order);
  order.push_back(e);
}

// Sizes on both sides of what is compared and what is hashed (Seen).
TEST(VisitTest, EachExpressionOnceOperandsFirst) {
  std::mt19937 random(1);
  for (size_t size = 1; size <= 40; ++size) {
    Context c;
    std::vector<Expr> nodes;
    for (size_t i = 0; i < size; ++i) {
      // Random graphs: most nodes are shared.
      const auto any = [&] { return nodes[random() % nodes.size()]; };
      nodes.push_back(nodes.size() < 3 || random() % 4 == 0 ? Expr(c.NewVar(StrCat("v", i)))
                                                            : any() * any() - any());
    }
    std::set<const ExprNode*> met, met_in;
    std::vector<Expr> expected, visited, expected_in, visited_in;
    Walk(nodes.back(), met, expected);
    ForEachExpr(nodes.back(), [&](Expr e) { visited.push_back(e); });
    EXPECT_EQ(visited, expected) << size << " nodes";

    // Over several statements that share operands.
    const Buffer buffer = c.NewBuffer("a", Type::kI32, {c.I32(8)});
    std::vector<Stmt> stores;
    for (Expr node : nodes) stores.push_back(c.Store(buffer, {node}, nodes.back()));
    const Stmt all = c.Seq(stores);
    for (Stmt store : stores) {
      for (Expr operand : store.operands()) Walk(operand, met_in, expected_in);
    }
    ForEachExprIn(all, [&](Expr e) { visited_in.push_back(e); });
    EXPECT_EQ(visited_in, expected_in) << size << " nodes";
    for (Expr node : nodes) {
      if (!node.Is(ExprKind::kVar)) continue;
      EXPECT_EQ(UsesVar(nodes.back(), node), met.contains(node.node()));
    }
  }
}

}  // namespace
}  // namespace polynao::ir
