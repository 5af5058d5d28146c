// The part of PanelWriter that computes tiles of sums.
#include <utility>

#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/generate/instance.h"
#include "compiler/poly/pack/panels.h"

namespace polynao::poly {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::ForKind;
using ir::Stmt;

Expr PanelWriter::BeginningAt(const Values& at) const {
  const Statement& initial = *contraction_.initial;
  const std::vector<Expr> element = ElementAt(*contraction_.statement, at);
  Values there = outer_;
  for (size_t d = 0; d < element.size(); ++d) there[initial.code.indices()[d]] = element[d];
  return ValueAt(initial, initial.code.value(), there);
}

// What becomes of a sum whose last product has been added: the final statement, on the sum in place of the element.
Stmt PanelWriter::EndAt(const Values& at, Expr sum) const {
  const Statement& last = *contraction_.final;
  const std::vector<Expr> element = ElementAt(*contraction_.statement, at);
  const Buffer buffer = contraction_.statement->code.buffer();
  Values there = outer_;
  ir::ForEachExpr(last.code.value(), [&](Expr load) {
    if (!load.Is(ExprKind::kLoad) || Buffer(load.buffer()) != buffer) return;
    for (size_t d = 0; d < element.size(); ++d) there[load.operand(d)] = element[d];
  });
  const Stmt store = InstanceCode(last, there, nullptr);
  const absl::flat_hash_map<Expr, Expr> by = {{c_.Load(buffer, element), sum}};
  return c_.Store(store.buffer(), store.indices(), ir::Replace(store.value(), by));
}

// Without row panels, the iterations of the loops of rows at the first one of tile `number`.
void PanelWriter::SetFirstRow(Expr number, TilePlace& tile, Lets& lets) const {
  tile.first_row = Times(number, c_.I64(plan_.rows));
  if (HasRowPanels()) return;
  const Range& last = loops_.rows.back();
  const Expr tiles = CeilQuotient(last.count, c_.I64(plan_.rows));
  const std::vector<Range> outer(loops_.rows.begin(), loops_.rows.end() - 1);
  SetIteration(outer, Quotient(number, tiles), tile.columns, lets);
  const Expr first = Times(outer.empty() ? number : Remainder(number, tiles), c_.I64(plan_.rows));
  const ir::Var var = c_.NewVar(last.var.name(), ir::Type::kI64);
  lets.emplace_back(var, Plus(last.first, first));
  tile.columns[last.var] = var;
}

// The iterations of row number `i` of a tile.
Values PanelWriter::RowOf(const TilePlace& tile, Expr i, Lets& lets) const {
  Values at = tile.columns;
  if (HasRowPanels()) {
    SetIteration(loops_.rows, Plus(tile.first_row, i), at, lets);
  } else {
    Expr& last = at[loops_.rows.back().var];
    last = Plus(last, i);
  }
  return at;
}

Expr PanelWriter::IsRowThere(const TilePlace& tile, Expr i) const {
  if (HasRowPanels()) return Plus(tile.first_row, i) < row_count_;
  const Range& last = loops_.rows.back();
  return Minus(Plus(tile.columns.at(last.var), i), last.first) < loops_.last_rows;
}

// All of the tile's; the constant 1 if tiles have no others.
Expr PanelWriter::AreRowsThere(const TilePlace& tile) const {
  const Expr count = HasRowPanels() ? row_count_ : loops_.last_rows;
  if (IsConstant(count) && count.int_value() % plan_.rows == 0) return c_.Bool(true);
  if (HasRowPanels()) return Plus(tile.first_row, plan_.rows) <= row_count_;
  return IsRowThere(tile, c_.I64(plan_.rows - 1));
}

// Runs body(values, row, lane, condition) for the elements of a tile. The condition says which of them there are; null:
// all. A tile that is not whole has masks and no branches, so that its sums stay in registers.
Stmt PanelWriter::ForElements(const TilePlace& tile, bool is_whole, const Element& body) const {
  const Expr width = c_.I64(plan_.width());
  // Sums in registers of tiles are in memory here.
  const ForKind kind = plan_.unit_rows > 1 ? ForKind::kSerial : ForKind::kUnroll;
  return LoopOver(c_, "row", c_.I64(plan_.rows), kind, [&](Expr i) {
    Lets lets;
    Values at = RowOf(tile, i, lets);
    return Within(lets, LoopOver(c_, "lane", width, ForKind::kVectorize, [&](Expr lane) {
                    const Expr column = Plus(tile.first_lane, lane);
                    at[loops_.column.var] = Plus(loops_.column.first, column);
                    const Expr is_there =
                        ir::And(IsRowThere(tile, i), column < loops_.column.count);
                    return body(at, i, lane, is_whole ? Expr() : is_there);
                  }));
  });
}

Stmt PanelWriter::Load(const TilePlace& tile, Buffer sums, bool is_whole,
                       const SumBlock& block) const {
  const auto elements = [&](bool begins) {
    if (begins && plan_.unit_rows > 1 && contraction_.initial->code.value().IsConst()) {
      // Elements that are not there have it, too: a loop that the code generator knows.
      return LoopOver(c_, "row", c_.I64(plan_.rows), ForKind::kSerial, [&](Expr i) {
        return LoopOver(c_, "lane", c_.I64(plan_.width()), ForKind::kVectorize, [&](Expr lane) {
          return c_.Store(sums, {i, lane}, contraction_.initial->code.value());
        });
      });
    }
    return ForElements(tile, is_whole, [&](const Values& at, Expr i, Expr lane, Expr is_there) {
      Expr value =
          begins ? BeginningAt(at) : ValueAt(*contraction_.statement, contraction_.element, at);
      if (is_there) value = c_.Select(is_there, value, Zero(sums));
      return c_.Store(sums, {i, lane}, value);
    });
  };
  if (contraction_.initial == nullptr) return elements(false);
  if (block.is_first.IsInt(1)) return elements(true);
  return c_.If(block.is_first, elements(true), elements(false));
}

Stmt PanelWriter::StoreTile(const TilePlace& tile, Buffer sums, bool is_whole,
                            const SumBlock& block) const {
  const auto elements = [&](bool ends) {
    return ForElements(tile, is_whole, [&](const Values& at, Expr i, Expr lane, Expr is_there) {
      const Statement& statement = *contraction_.statement;
      const Stmt store =
          ends ? EndAt(at, sums(i, lane))
               : c_.Store(statement.code.buffer(), ElementAt(statement, at), sums(i, lane));
      return is_there ? c_.If(is_there, store) : store;
    });
  };
  if (contraction_.final == nullptr) return elements(false);
  if (block.is_last.IsInt(1)) return elements(true);
  return c_.If(block.is_last, elements(true), elements(false));
}

// Takes off what the products of this block have too much.
Stmt PanelWriter::Unshift(Buffer sums, const Panel& columns) const {
  return LoopOver(c_, "row", c_.I64(plan_.rows), ForKind::kUnroll, [&](Expr i) {
    return LoopOver(c_, "lane", c_.I64(plan_.width()), ForKind::kVectorize, [&](Expr lane) {
      return c_.Store(sums, {i, lane}, sums(i, lane) - columns.panels.sums(columns.place, lane));
    });
  });
}

// Element `sum` of a block of row number `row`, of an operand that is read in place.
Expr PanelWriter::RowInPlace(Expr row, Expr sum, const SumBlock& block) const {
  std::vector<Range> sums = loops_.outer_sums;
  sums.push_back(loops_.sum);
  Values at = outer_;
  SetIterationInline(loops_.rows, row, at);
  const Expr done =
      Plus(Times(block.first_run, loops_.sum.count), Minus(block.first, loops_.sum.first));
  SetIterationInline(sums, Plus(done, sum), at);
  return ValueAt(*contraction_.statement, dot_->row_operand, at);
}

// Tiles side by side, as instructions add to them (isa/processor).
Stmt PanelWriter::AddByTiles(Buffer sums, const TilePlace& place, const Panel& rows,
                             const Panel& columns, const SumBlock& block, bool is_in_place) const {
  const isa::ProcessorInstruction& tile = *dot_->instruction;
  const Buffer a = rows.panels.elements, b = columns.panels.elements;
  const auto loop = [&](std::string_view name, int64_t count, ForKind kind,
                        const std::function<Stmt(Expr)>& body) {
    return LoopOver(c_, name, c_.I64(count), kind, body);
  };
  const Buffer elements = sums ? sums : Buffer(contraction_.statement->code.buffer());
  const auto sum_at = [&](Expr i, Expr lane) -> std::vector<Expr> {
    if (sums) return {i, lane};
    Values at = place.columns;
    SetIterationInline(loops_.rows, Plus(place.first_row, i), at);
    at[loops_.column.var] = Plus(loops_.column.first, Plus(place.first_lane, lane));
    return ElementAt(*contraction_.statement, at);
  };
  using Indices = absl::Span<const Expr>;
  const auto products = [&](Expr step, Expr first_row, Expr first_lane) {
    const auto at = [&](Indices is) {
      return sum_at(Plus(first_row, is[0]), Plus(first_lane, is[1]));
    };
    DotElements parts;
    parts.sum = [&](Indices is) { return c_.Load(elements, at(is)); };
    parts.store = [&](Indices is, Expr value) { return c_.Store(elements, at(is), value); };
    parts.a = [&](Indices is) {
      const Expr row = Plus(first_row, is[0]), sum = Plus(Times(step, c_.I64(tile.depth())), is[1]);
      return is_in_place ? RowInPlace(Plus(place.first_row, row), sum, block)
                         : a(rows.place, row, sum);
    };
    parts.b = [&](Indices is) {
      return b(columns.place, Plus(Times(step, c_.I64(tile.steps)), is[0]), Plus(first_lane, is[1]),
               is[2]);
    };
    return InstanceOf(tile, c_, parts);
  };
  const Expr steps = CeilQuotient(block.depth(), c_.I64(plan_.step));
  return LoopOver(c_, "step", steps, ForKind::kSerial, [&](Expr step) {
    return loop("tile", plan_.rows / tile.rows, ForKind::kUnroll, [&](Expr r) {
      return loop("tile", plan_.width() / tile.lanes, ForKind::kUnroll, [&](Expr c) {
        return products(step, Times(r, c_.I64(tile.rows)), Times(c, c_.I64(tile.lanes)));
      });
    });
  });
}

// A whole tile whose sums are their elements.
Stmt PanelWriter::TileInPlace(const TilePlace& tile, const Panel& rows, const Panel& columns,
                              const SumBlock& block) const {
  const Stmt add = Add({}, tile, rows, columns, block);
  if (contraction_.initial == nullptr) return add;
  const Stmt begin = LoopOver(c_, "row", c_.I64(plan_.rows), ForKind::kSerial, [&](Expr i) {
    return LoopOver(c_, "lane", c_.I64(plan_.width()), ForKind::kVectorize, [&](Expr lane) {
      Values at = tile.columns;
      SetIterationInline(loops_.rows, Plus(tile.first_row, i), at);
      at[loops_.column.var] = Plus(loops_.column.first, Plus(tile.first_lane, lane));
      return c_.Store(contraction_.statement->code.buffer(), ElementAt(*contraction_.statement, at),
                      BeginningAt(at));
    });
  });
  const Stmt both = c_.Seq({begin, add});
  return block.is_first.IsInt(1) ? both : c_.If(block.is_first, both, add);
}

Stmt PanelWriter::Update(Buffer sums, Expr i, Expr lane, Expr row, Expr column) const {
  const absl::flat_hash_map<Expr, Expr> by = {{contraction_.element, sums(i, lane)},
                                              {contraction_.row_operand, row},
                                              {contraction_.column_operand, column}};
  return c_.Store(sums, {i, lane}, ir::Replace(contraction_.statement->code.value(), by));
}

// Rows from memory, or from their image: loops as the operand has them.
Stmt PanelWriter::AddWithoutPanels(Buffer sums, const TilePlace& tile, const Panel& columns,
                                   const SumBlock& block) const {
  const auto add = [&](const Values& run, Expr count, Expr base) {
    return LoopOver(c_, "sum", count, ForKind::kSerial, [&](Expr k) {
      Values here = run;
      here[loops_.sum.var] = Plus(block.first, k);
      const Expr row = here.at(loops_.rows.back().var);
      return LoopOver(c_, "row", c_.I64(plan_.rows), ForKind::kUnroll, [&](Expr i) {
        here[loops_.rows.back().var] = Plus(row, i);
        const Expr value = image_buffer_
                               ? image_->At(image_buffer_, here)
                               : ValueAt(*contraction_.statement, contraction_.row_operand, here);
        return LoopOver(c_, "lane", c_.I64(plan_.width()), ForKind::kVectorize, [&](Expr lane) {
          return Update(sums, i, lane, value,
                        columns.panels.elements(columns.place, Plus(base, k), lane));
        });
      });
    });
  };
  const Body single = [&](const Values& run, Expr base) { return add(run, block.count, base); };
  const bool are_joined = image_buffer_ && image_->JoinsSums() &&
                          block.runs == CountOf(c_, loops_.outer_sums) &&
                          block.count == loops_.sum.count;
  if (!are_joined) return ForRuns(block, tile.columns, single);
  const Range& outer = loops_.outer_sums.back();
  const Body joined = [&](const Values& run, Expr base) {
    Values here = run;
    here[outer.var] = outer.first;
    return add(here, Times(outer.count, block.count), base);
  };
  const auto always = [&](const Values&) { return c_.Bool(true); };
  return ForJoinedRuns(0, c_.I64(0), block, tile.columns, joined, always, single);
}

Stmt PanelWriter::Add(Buffer sums, const TilePlace& tile, const Panel& rows, const Panel& columns,
                      const SumBlock& block) const {
  if (dot_ && dot_->instruction->IsTile()) {
    const auto add = [&](bool is_in_place) {
      return AddByTiles(sums, tile, rows, columns, block, is_in_place);
    };
    if (!rows_in_place_ || AreRowsWhole()) return add(rows_in_place_);
    const Expr end = Times(Plus(rows.number, 1), c_.I64(plan_.rows));
    return c_.If(end <= row_count_, add(true), add(false));
  }
  if (!HasRowPanels()) return AddWithoutPanels(sums, tile, columns, block);
  const Expr width = c_.I64(plan_.width()), height = c_.I64(plan_.rows);
  const Expr group = c_.I64(plan_.group);
  const Buffer a = rows.panels.elements, b = columns.panels.elements;
  const Expr steps = CeilQuotient(block.depth(), group);
  return LoopOver(c_, "sum", steps, ForKind::kSerial, [&](Expr k) {
    return LoopOver(c_, "row", height, ForKind::kUnroll, [&](Expr i) {
      return LoopOver(c_, "lane", width, ForKind::kVectorize, [&](Expr lane) {
        if (!dot_) {
          const Expr row = rows_by_sums_ ? a(rows.place, i, k) : a(rows.place, k, i);
          return Update(sums, i, lane, row, b(columns.place, k, lane));
        }
        using Indices = absl::Span<const Expr>;
        DotElements parts;
        parts.sum = [&](Indices) { return sums(i, lane); };
        parts.store = [&](Indices, Expr value) { return c_.Store(sums, {i, lane}, value); };
        parts.a = [&](Indices is) { return a(rows.place, i, Plus(Times(k, group), is[0])); };
        parts.b = [&](Indices is) { return b(columns.place, k, lane, is[1]); };
        return InstanceAt(*dot_->instruction, lane, parts);
      });
    });
  });
}

Stmt PanelWriter::Tile(const Panel& rows, const Panel& columns, const SumBlock& block) const {
  const Expr width = c_.I64(plan_.width()), height = c_.I64(plan_.rows);
  const Buffer sums = c_.NewBuffer("sums", type_, {height, width});
  TilePlace tile;
  tile.columns = outer_;
  Lets lets;
  SetFirstRow(rows.number, tile, lets);
  tile.first_lane = FirstLane(columns.number, tile.columns, lets);
  Expr is_whole = AreRowsThere(tile);
  const Expr lanes = loops_.column.count;
  if (!IsConstant(lanes) || lanes.int_value() % plan_.width() != 0) {
    const Expr fits = Plus(tile.first_lane, width) <= lanes;
    is_whole = is_whole.IsInt(1) ? fits : ir::And(is_whole, fits);
  }
  const auto either = [&](const std::function<Stmt(bool)>& elements) {
    return is_whole.IsInt(1) ? elements(true) : c_.If(is_whole, elements(true), elements(false));
  };
  const Stmt load = either([&](bool whole) { return Load(tile, sums, whole, block); });
  const Stmt store = either([&](bool whole) { return StoreTile(tile, sums, whole, block); });
  const Stmt begin = columns.panels.sums ? c_.Seq({load, Unshift(sums, columns)}) : load;
  const Stmt all = c_.Allocate(sums, c_.Seq({begin, Add(sums, tile, rows, columns, block), store}));
  if (!sums_in_place_) return Within(lets, all);
  const Stmt in_place = TileInPlace(tile, rows, columns, block);
  return Within(lets, is_whole.IsInt(1) ? in_place : c_.If(is_whole, in_place, all));
}

}  // namespace polynao::poly
