// Code that packs operands of a contraction into panels, and that computes a tile of sums from two panels.
#ifndef COMPILER_POLY_PACK_PANELS_H_
#define COMPILER_POLY_PACK_PANELS_H_

#include <functional>
#include <optional>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/pack/contraction.h"
#include "compiler/poly/pack/dot.h"
#include "compiler/poly/pack/iterations.h"
#include "compiler/poly/pack/pack_plan.h"
#include "compiler/poly/pack/row_image.h"

namespace polynao::poly {

// The contraction's loops by role, the lane apart.
struct ContractionLoops {
  std::vector<Range> batch, rows, outer_columns, outer_sums;
  Range column, sum;  // the last ones
  // Of rows without panels: how many the last loop of rows has; its range is one of whole tiles.
  ir::Expr last_rows = {};
};

// A block of sums: iterations [first_run, first_run + runs) of the outer loops of sums, and [first, first + count) of
// the last one. Panels have them one after the other: sum number run * count + iteration.
struct SumBlock {
  ir::Expr number;  // of the block
  ir::Expr first_run, runs, first, count;
  ir::Expr is_first;  // holds in the block that the sums begin with
  ir::Expr is_last;   // and in the one that they end with
  ir::Expr depth() const { return Times(runs, count); }
};

// Packed operands: [panel, ..]. With a dot that shifts rows, column panels also have what that adds to the sums of each
// lane: i32[panel, lane].
struct Panels {
  ir::Buffer elements, sums = {};
};

// How many elements further the load is in the next iteration of each loop, if it moves by constants.
std::optional<std::vector<int64_t>> StepsOf(ir::Expr load, const std::vector<Range>& loops);

// Returns true if an instruction on tiles can read the row operand where it is: rows and sums follow each other in
// memory at constant steps, and all sums are whole steps of the instruction.
bool AreRowsInPlace(const Contraction& contraction, const Dot& dot, const ContractionLoops& loops);

// Writes the parts of the code that know what a panel looks like.
class PanelWriter {
 public:
  // `outer` has the values of what stands around: the part's names, and the loops of the batch.
  // `image`: of the rows, if the plan has them in one.
  PanelWriter(const Contraction& contraction, const std::optional<Dot>& dot,
              const ContractionLoops& loops, const PackPlan& plan,
              const std::optional<RowImage>& image, const Values& outer);

  // Buffers for `count` panels; none for rows that are all read in place.
  Panels NewRowPanels(ir::Expr count) const;
  Panels NewColumnPanels(ir::Expr count) const;

  // How many there are.
  ir::Expr RowTiles() const { return CeilQuotient(row_count_, c_.I64(plan_.rows)); }
  ir::Expr ColumnPanels() const { return Times(CountOf(c_, loops_.outer_columns), lane_panels_); }

  bool AreAllRowsInPlace() const { return !HasRowPanels() || (rows_in_place_ && AreRowsWhole()); }

  // `body` behind code that fills the image of the rows, if there is one.
  ir::Stmt WithImage(ir::ForKind kind, ir::Stmt body) const;

  // Fills panel `place` of `panels` with those rows or columns that tile or panel `number` has. What is beyond the last
  // row or column is zero.
  ir::Stmt PackRows(const Panels& panels, ir::Expr place, ir::Expr number,
                    const SumBlock& block) const;
  ir::Stmt PackColumns(const Panels& panels, ir::Expr place, ir::Expr number,
                       const SumBlock& block) const;

  // Adds the products of a block to the sums of tile `row_number` x `column_number`.
  struct Panel {
    Panels panels;
    ir::Expr place, number;
  };
  ir::Stmt Tile(const Panel& rows, const Panel& columns, const SumBlock& block) const;

  // The same lane by lane: computes the sums of rows [first_row, first_row + plan's rows) x panel `columns.number`, in
  // which all sums are one block. `tile` is the variable of a loop of so many iterations in which first_row is; null:
  // it is a constant.
  ir::Stmt LaneTile(const Panel& columns, ir::Expr first_row, ir::Var tile, ir::Expr tiles,
                    const SumBlock& block) const;

 private:
  using Body = std::function<ir::Stmt(const Values& at, ir::Expr base)>;

  ir::Stmt ForRuns(const SumBlock& block, const Values& at, const Body& body) const;
  ir::Expr FirstLane(ir::Expr number, Values& at, Lets& lets) const;
  ir::Stmt ForJoinedRuns(size_t loop, ir::Expr run, const SumBlock& block, const Values& at,
                         const Body& joined, const std::function<ir::Expr(const Values&)>& can_join,
                         const Body& single) const;
  bool CanJoinRuns(ir::Expr operand, const SumBlock& block) const;
  ir::Stmt ForAllRuns(size_t loop, ir::Expr run, const SumBlock& block, const Values& at,
                      const Body& body) const;
  ir::Stmt PackColumnsByLanes(ir::Buffer panels, ir::Expr place, const Values& at, ir::Expr first,
                              const SumBlock& block) const;
  ir::Stmt PackColumnsBySums(ir::Buffer panels, ir::Expr place, const Values& at, ir::Expr first,
                             const SumBlock& block) const;
  struct Square;
  ir::Stmt Transposed(const Square& square, const SumBlock& block, bool is_whole) const;
  ir::Stmt OneRow(ir::Buffer panels, ir::Expr place, ir::Expr i, const Values& at, bool is_zero,
                  const SumBlock& block) const;

  ir::Stmt PackColumnsInGroups(ir::Buffer panels, ir::Expr place, const Values& at, ir::Expr first,
                               const SumBlock& block) const;
  ir::Stmt Shifts(const Panels& panels, ir::Expr place, const SumBlock& block) const;
  ir::Stmt RowPadding(ir::Buffer panels, ir::Expr place, ir::Expr i, const SumBlock& block) const;
  ir::Expr ColumnElement(const Values& at) const;
  ir::Expr PaddedDepth(const SumBlock& block) const;

  // Where a tile's elements are: its first row, and the loops of its columns. Without row panels these are those of
  // the first row, too.
  struct TilePlace {
    ir::Expr first_row, first_lane;
    Values columns;
  };
  bool HasRowPanels() const { return plan_.row_place == RowPlace::kPanels; }
  void SetFirstRow(ir::Expr number, TilePlace& tile, Lets& lets) const;
  Values RowOf(const TilePlace& tile, ir::Expr i, Lets& lets) const;
  ir::Expr IsRowThere(const TilePlace& tile, ir::Expr i) const;
  ir::Expr AreRowsThere(const TilePlace& tile) const;
  using Element =
      std::function<ir::Stmt(const Values& at, ir::Expr i, ir::Expr lane, ir::Expr is_there)>;
  ir::Stmt ForElements(const TilePlace& tile, bool is_whole, const Element& body) const;
  ir::Stmt EndAt(const Values& at, ir::Expr sum) const;
  ir::Stmt StoreTile(const TilePlace& tile, ir::Buffer sums, bool is_whole,
                     const SumBlock& block) const;
  ir::Stmt Load(const TilePlace& tile, ir::Buffer sums, bool is_whole, const SumBlock& block) const;
  ir::Stmt Unshift(ir::Buffer sums, const Panel& columns) const;
  ir::Stmt Add(ir::Buffer sums, const TilePlace& tile, const Panel& rows, const Panel& columns,
               const SumBlock& block) const;
  // The sums are in `sums`, or, without it, where their elements are.
  ir::Stmt AddByTiles(ir::Buffer sums, const TilePlace& tile, const Panel& rows,
                      const Panel& columns, const SumBlock& block, bool is_in_place) const;
  ir::Stmt TileInPlace(const TilePlace& tile, const Panel& rows, const Panel& columns,
                       const SumBlock& block) const;
  ir::Expr RowInPlace(ir::Expr row, ir::Expr sum, const SumBlock& block) const;
  ir::Stmt Update(ir::Buffer sums, ir::Expr i, ir::Expr lane, ir::Expr row, ir::Expr column) const;
  ir::Stmt AddWithoutPanels(ir::Buffer sums, const TilePlace& tile, const Panel& columns,
                            const SumBlock& block) const;
  bool AreRowsWhole() const {
    return IsConstant(row_count_) && row_count_.int_value() % plan_.rows == 0;
  }
  struct Condition;
  struct Product {
    int64_t sum, row;
  };
  std::vector<Product> InOrderOfMemory(ir::Expr inside, int64_t sums, int64_t rows) const;
  Condition PaddingOf() const;
  ir::Expr BeginningAt(const Values& at) const;
  static ir::Expr Zero(ir::Buffer buffer) { return buffer->context->Const(buffer->type, 0); }

  const Contraction& contraction_;
  const std::optional<Dot>& dot_;
  const ContractionLoops& loops_;
  const PackPlan& plan_;
  const std::optional<RowImage>& image_;
  const Values& outer_;
  ir::Context& c_;
  const ir::Type type_;
  ir::Buffer image_buffer_;
  ir::Expr row_count_, lane_panels_;
  bool rows_by_sums_;     // A[t, row, sum], else A[t, sum, row]
  bool sums_in_place_;    // instructions on tiles add to the elements
  bool rows_in_place_;    // whole tiles read the row operand where it is
  bool columns_by_sums_;  // the column operand walks along memory with the sums: it is transposed
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_PACK_PANELS_H_
