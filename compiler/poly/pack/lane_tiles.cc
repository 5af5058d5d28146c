// The part of PanelWriter that computes tiles lane by lane: vectors of the row operand, straight from memory, times
// vectors of a column panel, or by themselves.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/logic.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/pack/panels.h"

namespace polynao::poly {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::Var;

// The row operand is `inside` where all terms hold, and `outside` elsewhere.
struct PanelWriter::Condition {
  std::vector<Expr> outer = {};  // terms without the last loops of rows and sums
  std::vector<Expr> inner = {};
  Expr inside = {}, outside = {};
};

PanelWriter::Condition PanelWriter::PaddingOf() const {
  Expr operand = contraction_.row_operand;
  Condition result{.inside = operand, .outside = {}};
  // A cast of a choice is a choice of casts.
  const std::optional<ir::Type> cast =
      operand.Is(ExprKind::kCast) ? std::optional(operand.type()) : std::nullopt;
  if (cast) operand = operand.operand(0);
  if (!operand.Is(ExprKind::kSelect)) return result;
  const Expr condition = operand.operand(0);
  bool has_loads = false;
  ir::ForEachExpr(condition, [&](Expr e) { has_loads |= e.Is(ExprKind::kLoad); });
  if (has_loads || ir::UsesVar(condition, loops_.column.var)) return result;
  result.inside = cast ? c_.Cast(*cast, operand.operand(1)) : operand.operand(1);
  result.outside = cast ? c_.Cast(*cast, operand.operand(2)) : operand.operand(2);
  for (const Expr term : arith::Conjuncts(condition)) {
    const bool is_inner =
        ir::UsesVar(term, loops_.rows.back().var) || ir::UsesVar(term, loops_.sum.var);
    (is_inner ? result.inner : result.outer).push_back(term);
  }
  return result;
}

// Iterations of the sum and of the row: first those that read the first vector of memory. So a vector that several
// elements of a window read is in a register for these alone. The order of a row's sums is the program's.
std::vector<PanelWriter::Product> PanelWriter::InOrderOfMemory(Expr inside, int64_t sums,
                                                               int64_t rows) const {
  std::vector<Product> products;
  for (int64_t k = 0; k < sums; ++k) {
    for (int64_t i = 0; i < rows; ++i) products.push_back({k, i});
  }
  if (!inside.Is(ExprKind::kLoad)) return products;
  const auto steps = StepsOf(inside, {loops_.sum, loops_.rows.back()});
  if (!steps || (*steps)[0] <= 0 || (*steps)[1] <= 0) return products;
  const auto key = [&](const Product& one) {
    return std::pair(one.sum * (*steps)[0] + one.row * (*steps)[1], one.sum);
  };
  std::sort(products.begin(), products.end(),
            [&](const Product& a, const Product& b) { return key(a) < key(b); });
  return products;
}

Stmt PanelWriter::LaneTile(const Panel& columns, Expr first_row, Var tile_var, Expr tiles,
                           const SumBlock& block) const {
  const Expr width = c_.I64(plan_.width()), height = c_.I64(plan_.rows);
  const Buffer sums = c_.NewBuffer("sums", type_, {height, width});
  TilePlace tile;
  tile.columns = outer_;
  Lets lets;
  tile.first_row = first_row;
  tile.first_lane = FirstLane(columns.number, tile.columns, lets);
  const int64_t count = row_count_.int_value();
  const bool are_whole_rows = !IsConstant(first_row) || first_row.int_value() + plan_.rows <= count;
  const bool are_whole_lanes = loops_.column.count.int_value() % plan_.width() == 0;
  const bool is_whole = are_whole_rows && are_whole_lanes;

  arith::Analyzer analyzer(c_);
  arith::Analyzer::Scope scope(analyzer);
  if (tile_var) analyzer.BindLoop(tile_var, c_.I64(0), tiles);
  const Condition padding = PaddingOf();
  const Statement& statement = *contraction_.statement;
  // Adds the products of iteration `k` of the last loop of sums, which has number `number` in the panel. Rows that the
  // padding covers for certain take the value outside; with `is_outside` all do.
  const auto add = [&](const Values& run, Expr k, Expr number, Expr i, bool is_outside) {
    Values at = run;
    at[loops_.sum.var] = Plus(block.first, k);
    at[loops_.rows.back().var] = Plus(loops_.rows.back().first, Plus(first_row, i));
    std::vector<Expr> unknown;
    for (const Expr term : padding.inner) {
      if (is_outside) break;
      const Expr here = ValueAt(statement, term, at);
      if (analyzer.CanProve(here)) continue;
      if (analyzer.CanProve(ir::Not(here))) is_outside = true;
      unknown.push_back(here);
    }
    return LoopOver(c_, "lane", width, ForKind::kVectorize, [&](Expr lane) {
      Values there = at;
      const Expr column = Plus(tile.first_lane, lane);
      there[loops_.column.var] = Plus(loops_.column.first, column);
      Expr row = ValueAt(statement, is_outside ? padding.outside : padding.inside, there);
      if (!is_outside && !unknown.empty()) {
        row =
            c_.Select(arith::Conjunction(unknown), row, ValueAt(statement, padding.outside, there));
      }
      if (!are_whole_lanes) {
        row = c_.Select(column < loops_.column.count, row, c_.Const(row.type(), 0));
      }
      absl::flat_hash_map<Expr, Expr> by = {{contraction_.element, sums(i, lane)},
                                            {contraction_.row_operand, row}};
      if (contraction_.column_operand)
        by[contraction_.column_operand] = columns.panels.elements(columns.place, number, lane);
      return c_.Store(sums, {i, lane}, ir::Replace(statement.code.value(), by));
    });
  };
  const int64_t rows =
      IsConstant(first_row) ? std::min(plan_.rows, count - first_row.int_value()) : plan_.rows;
  const Stmt all = ForRuns(block, outer_, [&](const Values& run, Expr base) {
    std::vector<Stmt> steps;
    for (const auto& [k, i] : InOrderOfMemory(padding.inside, block.count.int_value(), rows))
      steps.push_back(add(run, c_.I64(k), Plus(base, k), c_.I64(i), false));
    const Stmt inside = c_.Seq(steps);
    if (padding.outer.empty()) return inside;
    std::vector<Expr> terms;
    for (const Expr term : padding.outer) terms.push_back(ValueAt(statement, term, run));
    const Stmt outside = LoopOver(c_, "sum", block.count, ForKind::kSerial, [&](Expr k) {
      return LoopOver(c_, "row", c_.I64(rows), ForKind::kUnroll,
                      [&](Expr i) { return add(run, k, Plus(base, k), i, true); });
    });
    return c_.If(arith::Conjunction(terms), inside, outside);
  });
  const Stmt load = Load(tile, sums, is_whole, block);
  const Stmt store = StoreTile(tile, sums, is_whole, block);
  return Within(lets, c_.Allocate(sums, c_.Seq({load, all, store})));
}

}  // namespace polynao::poly
