#include "compiler/poly/pack/panels.h"

#include <cmath>

#include "compiler/arith/logic.h"
#include "compiler/ir/affine.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;
using ir::Var;

namespace {

// Returns true if neighbours in memory are what `e` loads in iterations of `var` that follow each other.
bool WalksAlong(Expr e, Var var) {
  bool loads = false, walks = true;
  ir::ForEachExpr(e, [&](Expr load) {
    if (!load.Is(ExprKind::kLoad) || !ir::UsesVar(load, var)) return;
    loads = true;
    const size_t n = load.operands().size();
    const std::optional<ir::Affine> last = ir::Linearize(load.operand(n - 1), {var});
    walks &= last && last->coefficients[0] && last->coefficients[0].IsInt(1);
    for (size_t d = 0; d + 1 < n; ++d) walks &= !ir::UsesVar(load.operand(d), var);
  });
  return loads && walks;
}

// The step of all iterations of the loops, counted in their order, if there is one. (Of no loop: 0.)
std::optional<int64_t> StepOfAll(Expr load, std::vector<Range> loops) {
  std::erase_if(loops, [](const Range& loop) { return loop.count.IsInt(1); });
  const std::optional<std::vector<int64_t>> steps = StepsOf(load, loops);
  if (!steps) return std::nullopt;
  for (size_t i = 0; i + 1 < loops.size(); ++i) {
    const Expr count = loops[i + 1].count;
    if (!IsConstant(count) || (*steps)[i] != (*steps)[i + 1] * count.int_value())
      return std::nullopt;
  }
  return steps->empty() ? 0 : steps->back();
}

bool IsPowerOfTwo(int64_t n) { return n > 1 && (n & (n - 1)) == 0; }

}  // namespace

std::optional<std::vector<int64_t>> StepsOf(Expr load, const std::vector<Range>& loops) {
  std::vector<Var> vars;
  for (const Range& loop : loops) vars.push_back(loop.var);
  std::vector<int64_t> steps(loops.size(), 0);
  int64_t size = 1;
  for (size_t d = load.operands().size(); d-- > 0;) {
    const std::optional<ir::Affine> index = ir::Linearize(load.operand(d), vars);
    if (!index) return std::nullopt;
    for (size_t i = 0; i < vars.size(); ++i) {
      const Expr coefficient = index->coefficients[i];
      if (coefficient && !IsConstant(coefficient)) return std::nullopt;
      if (coefficient) steps[i] += coefficient.int_value() * size;
    }
    const Expr extent = Buffer(load.buffer())->extents[d];
    if (!IsConstant(extent) && d > 0) return std::nullopt;
    if (d > 0) size *= extent.int_value();
  }
  return steps;
}

bool AreRowsInPlace(const Contraction& contraction, const Dot& dot, const ContractionLoops& loops) {
  const Expr operand = dot.row_operand;
  if (!dot.instruction->IsTile() || !operand.Is(ExprKind::kLoad) || contraction.is_lanewise)
    return false;
  std::vector<Range> sums = loops.outer_sums;
  sums.push_back(loops.sum);
  const Expr count = CountOf(contraction.element.context(), sums);
  return IsConstant(count) && count.int_value() % dot.instruction->depth() == 0 &&
         StepOfAll(operand, sums) == 1 && StepOfAll(operand, loops.rows).has_value();
}

PanelWriter::PanelWriter(const Contraction& contraction, const std::optional<Dot>& dot,
                         const ContractionLoops& loops, const PackPlan& plan,
                         const std::optional<RowImage>& image, const Values& outer)
    : contraction_(contraction),
      dot_(dot),
      loops_(loops),
      plan_(plan),
      image_(image),
      outer_(outer),
      c_(contraction.element.context()),
      type_(contraction.element.type()) {
  row_count_ = CountOf(c_, loops.rows);
  lane_panels_ = CeilQuotient(loops.column.count, c_.I64(plan.width()));
  rows_by_sums_ = dot || contraction.is_lanewise ||
                  WalksAlong(contraction.row_operand, loops.sum.var) || loops.rows.empty() ||
                  !WalksAlong(contraction.row_operand, loops.rows.back().var);
  rows_in_place_ = dot && AreRowsInPlace(contraction, *dot, loops) && plan.depth() % plan.step == 0;
  const Expr element = contraction.element;
  sums_in_place_ = dot && dot->instruction->IsTile() && contraction.final == nullptr &&
                   StepOfAll(element, loops.rows).has_value();
  // Of runs of few sums most of a square would be zeros.
  const bool has_few_sums =
      IsConstant(loops.sum.count) && loops.sum.count.int_value() * 2 < plan.lanes;
  columns_by_sums_ = contraction.column_operand &&
                     WalksAlong(contraction.column_operand, loops.sum.var) &&
                     !WalksAlong(contraction.column_operand, loops.column.var) &&
                     IsPowerOfTwo(plan.lanes) && !dot && !has_few_sums;
  if (plan.row_place == RowPlace::kImage) image_buffer_ = image->NewBuffer(type_);
}

Stmt PanelWriter::WithImage(ForKind kind, Stmt body) const {
  if (!image_buffer_) return body;
  return c_.Allocate(image_buffer_, c_.Seq({image_->Fill(image_buffer_, kind, outer_), body}));
}

Panels PanelWriter::NewRowPanels(Expr count) const {
  if (AreAllRowsInPlace()) return {};
  const ir::Type type = dot_ ? dot_->instruction->a->type : type_;
  const Expr depth = c_.I64(plan_.padded_depth()), rows = c_.I64(plan_.rows);
  if (rows_by_sums_) return {c_.NewBuffer("row.panels", type, {count, rows, depth})};
  return {c_.NewBuffer("row.panels", type, {count, depth, rows})};
}

Panels PanelWriter::NewColumnPanels(Expr count) const {
  const Expr width = c_.I64(plan_.width());
  if (!dot_) {
    // Squares that are transposed reach beyond the last sum.
    const int64_t depth = plan_.depth() + (columns_by_sums_ ? plan_.lanes : 0);
    return {c_.NewBuffer("column.panels", type_, {count, c_.I64(depth), width})};
  }
  Panels panels{c_.NewBuffer(
      "column.panels", dot_->instruction->b->type,
      {count, c_.I64(plan_.padded_depth() / plan_.group), width, c_.I64(plan_.group)})};
  if (dot_->shifts_rows) panels.sums = c_.NewBuffer("column.sums", type_, {count, width});
  return panels;
}

// As panels have them.
Expr PanelWriter::ColumnElement(const Values& at) const {
  return ValueAt(*contraction_.statement, dot_ ? dot_->column_operand : contraction_.column_operand,
                 at);
}

// The sums of a block, with those that fill its last step.
Expr PanelWriter::PaddedDepth(const SumBlock& block) const {
  const Expr step = c_.I64(plan_.step);
  return Times(CeilQuotient(block.depth(), step), step);
}

// body(values, number of the first sum) for each run of a block. Loops of their own have cheaper numbers than quotients
// and remainders of one.
Stmt PanelWriter::ForRuns(const SumBlock& block, const Values& at, const Body& body) const {
  const Expr all = CountOf(c_, loops_.outer_sums);
  if (block.runs == all) return ForAllRuns(0, c_.I64(0), block, at, body);
  return LoopOver(c_, "run", block.runs, ForKind::kSerial, [&](Expr run) {
    Values here = at;
    Lets lets;
    SetIteration(loops_.outer_sums, Plus(block.first_run, run), here, lets);
    return Within(lets, body(here, Times(run, block.count)));
  });
}

Stmt PanelWriter::ForAllRuns(size_t loop, Expr run, const SumBlock& block, const Values& at,
                             const Body& body) const {
  if (loop == loops_.outer_sums.size())
    return body(at, run.IsInt(0) ? run : Times(run, block.count));
  const Range& range = loops_.outer_sums[loop];
  return LoopOver(c_, range.var.name(), range.count, ForKind::kSerial, [&](Expr i) {
    Values here = at;
    here[range.var] = Plus(range.first, i);
    return ForAllRuns(loop + 1, Plus(Times(run, range.count), i), block, here, body);
  });
}

// Whether runs of the last outer loop of sums follow each other in memory, as they do in a row panel: an image's
// channels of neighbours x. If some of them are padding, all between two that are none are none.
bool PanelWriter::CanJoinRuns(Expr operand, const SumBlock& block) const {
  if (loops_.outer_sums.empty() || !(block.runs == CountOf(c_, loops_.outer_sums))) return false;
  const Range& outer = loops_.outer_sums.back();
  if (!IsConstant(outer.count) || !(block.count == loops_.sum.count) || !IsConstant(block.count) ||
      outer.count.IsInt(1)) {
    return false;
  }
  if (operand.Is(ExprKind::kSelect)) {
    bool is_convex = true;
    for (const Expr term : arith::Conjuncts(operand.operand(0))) {
      is_convex &= term.Is(ExprKind::kLt) || term.Is(ExprKind::kLe);
      for (const Expr side : term.operands())
        is_convex = is_convex && ir::Linearize(side, {outer.var}).has_value();
    }
    if (!is_convex || ir::UsesVar(operand.operand(0), loops_.sum.var)) return false;
    operand = operand.operand(1);
  }
  if (!operand.Is(ExprKind::kLoad)) return false;
  const auto steps = StepsOf(operand, {outer, loops_.sum});
  return steps == std::vector<int64_t>{block.count.int_value(), 1};
}

// joined(values, first sum) for all runs of the last outer loop at once, where can_join(values) holds; else
// single(values, first sum) for each.
Stmt PanelWriter::ForJoinedRuns(size_t loop, Expr run, const SumBlock& block, const Values& at,
                                const Body& joined,
                                const std::function<Expr(const Values&)>& can_join,
                                const Body& single) const {
  const Range& range = loops_.outer_sums[loop];
  if (loop + 1 == loops_.outer_sums.size()) {
    const Stmt all = joined(at, Times(run, Times(range.count, block.count)));
    const Expr condition = can_join(at);
    if (condition.IsInt(1)) return all;
    return c_.If(condition, all, ForAllRuns(loop, run, block, at, single));
  }
  return LoopOver(c_, range.var.name(), range.count, ForKind::kSerial, [&](Expr i) {
    Values here = at;
    here[range.var] = Plus(range.first, i);
    return ForJoinedRuns(loop + 1, Plus(Times(run, range.count), i), block, here, joined, can_join,
                         single);
  });
}

// ---- rows

Stmt PanelWriter::OneRow(Buffer panels, Expr place, Expr i, const Values& at, bool is_zero,
                         const SumBlock& block) const {
  const auto kind = rows_by_sums_ ? ForKind::kVectorize : ForKind::kSerial;
  const Expr own = dot_ ? dot_->row_operand : contraction_.row_operand;
  const Expr operand = is_zero ? c_.Const(own.type(), 0) : own;
  const auto store = [&](Expr value, const Values& here, Expr sum) {
    value = ValueAt(*contraction_.statement, value, here);
    if (value.type() != panels->type) value = c_.Cast(panels->type, value);
    if (dot_ && dot_->shifts_rows) {
      value = c_.Binary(ExprKind::kBitXor, value, c_.Int(panels->type, 128));
    }
    return rows_by_sums_ ? c_.Store(panels, {place, i, sum}, value)
                         : c_.Store(panels, {place, sum, i}, value);
  };
  const Body single = [&](const Values& run, Expr base) {
    const auto over = [&](Expr value) {
      return LoopOver(c_, "sum", block.count, kind, [&](Expr k) {
        Values here = run;
        here[loops_.sum.var] = Plus(block.first, k);
        return store(value, here, Plus(base, k));
      });
    };
    // Padding: whether a run is inside of the image is asked once.
    if (!operand.Is(ExprKind::kSelect) || ir::UsesVar(operand.operand(0), loops_.sum.var))
      return over(operand);
    const Expr condition = ValueAt(*contraction_.statement, operand.operand(0), run);
    return c_.If(condition, over(operand.operand(1)), over(operand.operand(2)));
  };
  if (is_zero || !rows_by_sums_ || !CanJoinRuns(operand, block)) return ForRuns(block, at, single);
  const Range& outer = loops_.outer_sums.back();
  const Body joined = [&](const Values& run, Expr base) {
    const Expr inside = operand.Is(ExprKind::kSelect) ? operand.operand(1) : operand;
    return LoopOver(c_, "sum", Times(outer.count, block.count), kind, [&](Expr k) {
      Values here = run;
      SetIterationInline({outer, loops_.sum}, k, here);
      return store(inside, here, Plus(base, k));
    });
  };
  const auto can_join = [&](const Values& run) {
    if (!operand.Is(ExprKind::kSelect)) return c_.Bool(true);
    // No run is padding if the first one and the last one are none.
    std::vector<Expr> ends;
    for (const Expr k : {c_.I64(0), Plus(outer.count, -1)}) {
      Values here = run;
      here[outer.var] = Plus(outer.first, k);
      ends.push_back(ValueAt(*contraction_.statement, operand.operand(0), here));
    }
    return ir::And(ends[0], ends[1]);
  };
  return ForJoinedRuns(0, c_.I64(0), block, at, joined, can_join, single);
}

// Zeros behind the sums of a block, up to a whole step.
Stmt PanelWriter::RowPadding(Buffer panels, Expr place, Expr i, const SumBlock& block) const {
  const Expr depth = block.depth();
  return LoopOver(c_, "sum", Minus(PaddedDepth(block), depth), ForKind::kVectorize, [&](Expr k) {
    return c_.Store(panels, {place, i, Plus(depth, k)}, Zero(panels));
  });
}

Stmt PanelWriter::PackRows(const Panels& row_panels, Expr place, Expr number,
                           const SumBlock& block) const {
  const Buffer panels = row_panels.elements;
  const Expr first = Times(number, c_.I64(plan_.rows));
  if (AreAllRowsInPlace()) return c_.Seq({});
  if (!rows_by_sums_ && loops_.rows.size() == 1) {
    // A row of memory has the rows of the panel.
    const Expr left = Least(Minus(row_count_, first), c_.I64(plan_.rows));
    return ForRuns(block, outer_, [&](const Values& run, Expr base) {
      return LoopOver(c_, "sum", block.count, ForKind::kSerial, [&](Expr k) {
        Values here = run;
        here[loops_.sum.var] = Plus(block.first, k);
        const auto over = [&](Expr count, Expr begin, bool is_zero) {
          return LoopOver(c_, "row", count, ForKind::kVectorize, [&](Expr i) {
            Lets none;
            SetIteration(loops_.rows, Plus(Plus(first, begin), i), here, none);
            const Expr value =
                is_zero ? Zero(panels)
                        : ValueAt(*contraction_.statement, contraction_.row_operand, here);
            return c_.Store(panels, {place, Plus(base, k), Plus(begin, i)}, value);
          });
        };
        const Stmt rows = over(left, c_.I64(0), false);
        return c_.Seq({rows, over(Minus(c_.I64(plan_.rows), left), left, true)});
      });
    });
  }
  const Stmt rows = LoopOver(c_, "row", c_.I64(plan_.rows), ForKind::kSerial, [&](Expr i) {
    Values at = outer_;
    Lets lets;
    SetIteration(loops_.rows, Plus(first, i), at, lets);
    const Stmt row = Within(lets, OneRow(panels, place, i, at, false, block));
    const Stmt either = AreRowsWhole() ? row
                                       : c_.If(Plus(first, i) < row_count_, row,
                                               OneRow(panels, place, i, outer_, true, block));
    return dot_ ? c_.Seq({either, RowPadding(panels, place, i, block)}) : either;
  });
  if (!rows_in_place_) return rows;
  return c_.If(row_count_ < Plus(first, c_.I64(plan_.rows)), rows);
}

// ---- columns

// The first lane of a panel, and the iteration of the outer loops that it is in.
Expr PanelWriter::FirstLane(Expr number, Values& at, Lets& lets) const {
  Expr lane_panel = number;
  if (!loops_.outer_columns.empty()) {
    SetIteration(loops_.outer_columns, Quotient(number, lane_panels_), at, lets);
    lane_panel = Remainder(number, lane_panels_);
  }
  return Times(lane_panel, c_.I64(plan_.width()));
}

Stmt PanelWriter::PackColumns(const Panels& panels, Expr place, Expr number,
                              const SumBlock& block) const {
  Values at = outer_;
  Lets lets;
  const Expr first = FirstLane(number, at, lets);
  const Buffer elements = panels.elements;
  Stmt code = dot_               ? PackColumnsInGroups(elements, place, at, first, block)
              : columns_by_sums_ ? PackColumnsBySums(elements, place, at, first, block)
                                 : PackColumnsByLanes(elements, place, at, first, block);
  if (panels.sums) code = c_.Seq({code, Shifts(panels, place, block)});
  return Within(lets, code);
}

// Element q of group g of a lane is sum number group * g + q.
Stmt PanelWriter::PackColumnsInGroups(Buffer panels, Expr place, const Values& at, Expr first,
                                      const SumBlock& block) const {
  const Expr group = c_.I64(plan_.group);
  // Element q of group g, which is sum number k of a run.
  const auto store = [&](Expr g, Expr lane, Expr q, const Values& run, Expr k) {
    Values here = run;
    here[loops_.sum.var] = Plus(block.first, k);
    const Expr column = Plus(first, lane);
    here[loops_.column.var] = Plus(loops_.column.first, column);
    Expr value = ColumnElement(here);
    if (value.type() != panels->type) value = c_.Cast(panels->type, value);
    value = c_.Select(column < loops_.column.count, value, Zero(panels));
    return c_.Store(panels, {place, g, lane, q}, value);
  };
  const bool are_whole =
      IsConstant(loops_.sum.count) && loops_.sum.count.int_value() % plan_.group == 0;
  const Expr width = c_.I64(plan_.width());
  const bool by_lanes = WalksAlong(dot_->column_operand, loops_.column.var);
  // Groups of memory are groups of the panel, or rows of memory are interleaved to one row of groups.
  const auto groups = [&](const Values& run, Expr base) {
    const Expr count = Quotient(block.count, group);
    const auto element = [&](Expr g, Expr lane, Expr q) {
      return store(Plus(Quotient(base, group), g), lane, q, run, Plus(Times(g, group), q));
    };
    if (by_lanes) {
      return LoopOver(c_, "group", count, ForKind::kSerial, [&](Expr g) {
        return LoopOver(c_, "lane", width, ForKind::kVectorize, [&](Expr lane) {
          std::vector<Stmt> all;
          for (int64_t q = 0; q < plan_.group; ++q) all.push_back(element(g, lane, c_.I64(q)));
          return c_.Seq(all);
        });
      });
    }
    return LoopOver(c_, "lane", width, ForKind::kSerial, [&](Expr lane) {
      return LoopOver(c_, "group", count, ForKind::kSerial, [&](Expr g) {
        return LoopOver(c_, "q", group, ForKind::kVectorize,
                        [&](Expr q) { return element(g, lane, q); });
      });
    });
  };
  // Sums of a run from number `done` on.
  const auto singly = [&](const Values& run, Expr base, Expr done) {
    return LoopOver(c_, "lane", width, ForKind::kSerial, [&](Expr lane) {
      return LoopOver(c_, "sum", Minus(block.count, done), ForKind::kSerial, [&](Expr i) {
        const Expr k = Plus(done, i), sum = Plus(base, k);
        return store(Quotient(sum, group), lane, Remainder(sum, group), run, k);
      });
    });
  };
  const Stmt elements = ForRuns(block, at, [&](const Values& run, Expr base) {
    if (are_whole) return groups(run, base);
    if (!by_lanes || !loops_.outer_sums.empty()) return singly(run, base, c_.I64(0));
    const Expr done = Times(Quotient(block.count, group), group);
    return c_.Seq({groups(run, base), singly(run, base, done)});
  });
  const Expr depth = block.depth();
  const Stmt padding =
      LoopOver(c_, "sum", Minus(PaddedDepth(block), depth), ForKind::kSerial, [&](Expr k) {
        const Expr sum = Plus(depth, k);
        return LoopOver(c_, "lane", c_.I64(plan_.width()), ForKind::kSerial, [&](Expr lane) {
          return c_.Store(panels, {place, Quotient(sum, group), lane, Remainder(sum, group)},
                          Zero(panels));
        });
      });
  return c_.Seq({elements, padding});
}

// 128 times the sum of each lane's elements.
Stmt PanelWriter::Shifts(const Panels& panels, Expr place, const SumBlock& block) const {
  const Expr width = c_.I64(plan_.width()), group = c_.I64(plan_.group);
  const Stmt begin = LoopOver(c_, "lane", width, ForKind::kVectorize, [&](Expr lane) {
    return c_.Store(panels.sums, {place, lane}, Zero(panels.sums));
  });
  const Stmt add =
      LoopOver(c_, "group", CeilQuotient(block.depth(), group), ForKind::kSerial, [&](Expr g) {
        return LoopOver(c_, "lane", width, ForKind::kVectorize, [&](Expr lane) {
          Expr sum = panels.sums(place, lane);
          for (int64_t q = 0; q < plan_.group; ++q) {
            const Expr element = panels.elements(place, g, lane, c_.I64(q));
            sum = sum + c_.Cast(type_, element) * c_.Int(type_, 128);
          }
          return c_.Store(panels.sums, {place, lane}, sum);
        });
      });
  return c_.Seq({begin, add});
}

Stmt PanelWriter::PackColumnsByLanes(Buffer panels, Expr place, const Values& at, Expr first,
                                     const SumBlock& block) const {
  const Expr width = c_.I64(plan_.width());
  const Expr left = Minus(loops_.column.count, first);
  const auto pack = [&](bool is_whole) {
    return ForRuns(block, at, [&](const Values& run, Expr base) {
      return LoopOver(c_, "sum", block.count, ForKind::kSerial, [&](Expr k) {
        return LoopOver(c_, "lane", width, ForKind::kVectorize, [&](Expr lane) {
          Values here = run;
          here[loops_.sum.var] = Plus(block.first, k);
          here[loops_.column.var] = Plus(Plus(loops_.column.first, first), lane);
          Expr value = ColumnElement(here);
          if (!is_whole) value = c_.Select(lane < left, value, Zero(panels));
          return c_.Store(panels, {place, Plus(base, k), lane}, value);
        });
      });
    });
  };
  const Expr count = loops_.column.count;
  if (IsConstant(count) && count.int_value() % plan_.width() == 0) return pack(true);
  return c_.If(width <= left, pack(true), pack(false));
}

// A square of elements of a column panel: `lanes` lanes from lane0 on, and as many sums from number `sum` of a run on.
struct PanelWriter::Square {
  Buffer panels;
  Expr place;
  const Values& at;
  Expr first, lane0, sum, base;
};

// Squares of lanes x lanes elements: rows of memory, which are sums, become columns. Reading a square by the bits of
// its elements' numbers, one perfect shuffle moves the first bit to the end, and log2(lanes) of them swap the numbers
// of row and column.
Stmt PanelWriter::Transposed(const Square& square, const SumBlock& block, bool is_whole) const {
  const auto& [panels, place, at, first, lane0, sum, base] = square;
  const int64_t n = plan_.lanes;
  Buffer from = c_.NewBuffer("square", type_, {c_.I64(n * n)});
  std::vector<Buffer> squares = {from};
  std::vector<Stmt> steps;
  for (int64_t r = 0; r < n; ++r) {
    const Expr column = Plus(Plus(first, lane0), r);
    const auto row = [&](bool is_zero) {
      return LoopOver(c_, "sum", c_.I64(n), ForKind::kVectorize, [&](Expr k) {
        Values here = at;
        here[loops_.sum.var] = Plus(Plus(block.first, sum), k);
        here[loops_.column.var] = Plus(loops_.column.first, column);
        Expr value = Zero(panels);
        if (!is_zero) value = ColumnElement(here);
        if (!is_zero && !is_whole)
          value = c_.Select(Plus(sum, k) < block.count, value, Zero(panels));
        return c_.Store(from, {Plus(k, r * n)}, value);
      });
    };
    steps.push_back(is_whole ? row(false)
                             : c_.If(column < loops_.column.count, row(false), row(true)));
  }
  for (int64_t bit = 1; bit < n; bit *= 2) {
    const Buffer to = c_.NewBuffer("square", type_, {c_.I64(n * n)});
    const int64_t half = n * n / 2;
    steps.push_back(LoopOver(c_, "x", c_.I64(half), ForKind::kVectorize, [&](Expr x) {
      const Expr even = Times(x, c_.I64(2));
      return c_.Seq(
          {c_.Store(to, {even}, from(x)), c_.Store(to, {Plus(even, 1)}, from(Plus(x, half)))});
    }));
    squares.push_back(to);
    from = to;
  }
  for (int64_t r = 0; r < n; ++r) {
    steps.push_back(LoopOver(c_, "lane", c_.I64(n), ForKind::kVectorize, [&](Expr lane) {
      const Expr value = from(Plus(lane, r * n));
      return c_.Store(panels, {place, Plus(Plus(base, sum), r), Plus(lane0, lane)}, value);
    }));
  }
  Stmt code = c_.Seq(steps);
  for (size_t i = squares.size(); i-- > 0;) code = c_.Allocate(squares[i], code);
  return code;
}

Stmt PanelWriter::PackColumnsBySums(Buffer panels, Expr place, const Values& at, Expr first,
                                    const SumBlock& block) const {
  const Expr n = c_.I64(plan_.lanes);
  return ForRuns(block, at, [&](const Values& run, Expr base) {
    return LoopOver(c_, "square", c_.I64(plan_.vectors), ForKind::kSerial, [&](Expr v) {
      const Expr lane = Times(v, n);
      return LoopOver(c_, "square", CeilQuotient(block.count, n), ForKind::kSerial, [&](Expr s) {
        const Expr sum = Times(s, n);
        const Square square = {panels, place, run, first, lane, sum, base};
        const Expr is_whole =
            ir::And(Plus(Plus(first, lane), n) <= loops_.column.count, Plus(sum, n) <= block.count);
        return c_.If(is_whole, Transposed(square, block, true), Transposed(square, block, false));
      });
    });
  });
}

}  // namespace polynao::poly
