#include "compiler/poly/pack/packed_code.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/pack/dot.h"
#include "compiler/poly/pack/iterations.h"
#include "compiler/poly/pack/panels.h"

namespace polynao::poly {

using ir::Expr;
using ir::ForKind;
using ir::Stmt;
using ir::Var;

namespace {

ContractionLoops LoopsOf(const Scop& scop, const Contraction& contraction, const PartNames& names,
                         const AssumedParameters& assumed) {
  const auto ranges = [&](const std::vector<size_t>& places) {
    std::vector<Range> result;
    for (const size_t place : places)
      result.push_back(RangeOf(scop, *contraction.statement, place, names, assumed));
    return result;
  };
  ContractionLoops loops;
  loops.batch = ranges(contraction.batch);
  loops.rows = ranges(contraction.rows);
  loops.outer_columns = ranges(contraction.columns);
  loops.outer_sums = ranges(contraction.sums);
  loops.column = loops.outer_columns.back();
  loops.outer_columns.pop_back();
  loops.sum = loops.outer_sums.back();
  loops.outer_sums.pop_back();
  return loops;
}

bool AreConstant(const std::vector<Range>& loops) {
  return std::all_of(loops.begin(), loops.end(),
                     [](const Range& loop) { return IsConstant(loop.count); });
}

PackShape ShapeOf(const ContractionLoops& loops, ir::Type type, const std::optional<Dot>& dot,
                  const std::optional<RowImage>& image, const CoreRates& rates, bool columns_before,
                  bool rows_in_place) {
  const int64_t bytes = ir::ByteSize(type);
  PackShape shape = {.batch = AssumedCount(loops.batch),
                     .rows = AssumedCount(loops.rows),
                     .outer_columns = AssumedCount(loops.outer_columns),
                     .columns = loops.column.assumed,
                     .outer_sums = AssumedCount(loops.outer_sums),
                     .sums = loops.sum.assumed,
                     .bytes = bytes,
                     .operand_bytes = bytes,
                     .is_known = AreConstant(loops.rows) && AreConstant(loops.outer_columns) &&
                                 IsConstant(loops.column.count),
                     .columns_before = columns_before};
  if (dot) {
    const isa::ProcessorInstruction& row = *dot->instruction;
    shape.operand_bytes = ir::ByteSize(row.b->type);
    shape.group = row.group;
    shape.step = row.depth();
    shape.registers = row.registers;
    shape.unit_rows = row.rows;
    shape.unit_cycles = rates.CyclesOf(row);
    shape.rows_in_place = rows_in_place;
  } else if (image) {
    shape.last_rows = loops.rows.back().count.int_value();
    shape.image_elements = image->Elements();
    shape.image_step = image->ImageStep();
    if (image->IsPlain()) shape.memory_step = image->MemoryStep();
  }
  return shape;
}

Stmt Allocated(const Panels& panels, Stmt body) {
  ir::Context& c = body.context();
  if (panels.sums) body = c.Allocate(panels.sums, body);
  if (!panels.elements) return body;
  return c.Allocate(panels.elements, body);
}

// One of the two sides of the contraction.
struct Side {
  Expr count;        // tiles of rows, or panels of columns
  int64_t most = 1;  // of them, at a time, with all sums
  std::function<Panels(Expr count)> make;
  std::function<Stmt(const Panels& panels, Expr place, Expr number, const SumBlock& block)> pack;
  bool is_in_place = false;  // there is nothing to pack
};

class Writer {
 public:
  Writer(const Contraction& contraction, const std::optional<Dot>& dot,
         const ContractionLoops& loops, const PackPlan& plan, const std::optional<RowImage>& image,
         const CpuMachine& machine, bool columns_before, const Values& outer)
      : loops_(loops),
        plan_(plan),
        cores_(machine.cores),
        shares_columns_(plan.shares_columns),
        columns_before_(columns_before),
        panels_(contraction, dot, loops, plan, image, outer),
        c_(contraction.element.context()),
        runs_(CountOf(c_, loops.outer_sums)),
        run_blocks_(CeilQuotient(runs_, c_.I64(plan.runs))),
        sum_blocks_(CeilQuotient(loops.sum.count, c_.I64(plan.run))),
        all_blocks_(Times(run_blocks_, sum_blocks_)) {
    rows_ = {.count = panels_.RowTiles(),
             .make = [&](Expr count) { return panels_.NewRowPanels(count); },
             .pack =
                 [&](const Panels& panels, Expr place, Expr number, const SumBlock& block) {
                   return panels_.PackRows(panels, place, number, block);
                 }};
    columns_ = {.count = panels_.ColumnPanels(),
                .make = [&](Expr count) { return panels_.NewColumnPanels(count); },
                .pack =
                    [&](const Panels& panels, Expr place, Expr number, const SumBlock& block) {
                      return panels_.PackColumns(panels, place, number, block);
                    }};
    rows_.is_in_place = panels_.AreAllRowsInPlace();
    (shares_columns_ ? columns_ : rows_).most = plan.most_common;
    (shares_columns_ ? rows_ : columns_).most = plan.most_own;
  }

  // All blocks, for one iteration of the batch.
  Stmt Write() { return panels_.WithImage(Parallel(), Blocks()); }

  // What packs the columns, after Write().
  PackedBefore Before() const {
    PackedBefore before;
    before.panels.push_back(columns_panels_.elements);
    if (columns_panels_.sums) before.panels.push_back(columns_panels_.sums);
    before.code = Pack(columns_, columns_panels_, c_.I64(0), columns_.count, columns_.count);
    return before;
  }

 private:
  Stmt Blocks() {
    Lets lets;
    for (Side* side : {&rows_, &columns_}) side->count = Named("count", side->count, lets);
    const Side& common = shares_columns_ ? columns_ : rows_;
    own_size_ = Named("size", BlockSize(shares_columns_ ? rows_ : columns_), lets);
    if (columns_before_) {
      columns_panels_ = columns_.make(Times(all_blocks_, columns_.count));
      if (shares_columns_) {
        most_ = common.count;
        return Within(lets, OwnBlocks(columns_panels_, c_.I64(0), common.count));
      }
    }
    most_ = Least(common.count, c_.I64(common.most));
    const Panels panels = common.make(Times(all_blocks_, most_));
    const auto block = [&](Expr number) {
      const Expr first = Times(number, c_.I64(common.most));
      const Expr count = Least(Minus(common.count, first), c_.I64(common.most));
      return c_.Seq({Pack(common, panels, first, count, most_), OwnBlocks(panels, first, count)});
    };
    return Within(lets, Allocated(panels, LoopOver(c_, "block",
                                                   CeilQuotient(common.count, c_.I64(common.most)),
                                                   ForKind::kSerial, block)));
  }

  // `value` as a variable, unless it is a constant.
  Expr Named(std::string_view name, Expr value, Lets& lets) const {
    if (IsConstant(value)) return value;
    const Var var = c_.NewVar(name, ir::Type::kI64);
    lets.emplace_back(var, value);
    return var;
  }

  ForKind Parallel() const { return cores_ > 1 ? ForKind::kParallel : ForKind::kSerial; }

  // Block s of the last loop of sums, in block r of the runs of those around.
  SumBlock BlockAt(Expr r, Expr s) const {
    const Expr size = c_.I64(plan_.runs), length = c_.I64(plan_.run);
    SumBlock block;
    block.number = Plus(Times(r, sum_blocks_), s);
    block.first_run = Times(r, size);
    block.runs = Least(size, Minus(runs_, block.first_run));
    const Expr done = Times(s, length);
    block.count = Least(length, Minus(loops_.sum.count, done));
    block.first = Plus(loops_.sum.first, done);
    block.is_first = block.is_last = c_.Bool(true);
    const auto require = [](Expr& all, Expr one) { all = all.IsInt(1) ? one : ir::And(all, one); };
    for (const auto& [place, count] : {std::pair(r, run_blocks_), std::pair(s, sum_blocks_)}) {
      if (IsConstant(place)) continue;
      require(block.is_first, ir::Eq(place, c_.I64(0)));
      require(block.is_last, ir::Eq(place, Plus(count, -1)));
    }
    return block;
  }

  Stmt ForSumBlocks(const std::function<Stmt(const SumBlock&)>& body) const {
    return LoopOver(c_, "runs", run_blocks_, ForKind::kSerial, [&](Expr r) {
      return LoopOver(c_, "sums", sum_blocks_, ForKind::kSerial,
                      [&](Expr s) { return body(BlockAt(r, s)); });
    });
  }

  // The panels that all cores read, of all blocks of sums: one loop, so that cores wait for one another once.
  // `most` of them have places in each block.
  Stmt Pack(const Side& side, const Panels& panels, Expr first, Expr count, Expr most) const {
    if (side.is_in_place) return c_.Seq({});
    const auto pack = [&](const SumBlock& block, Expr p) {
      return side.pack(panels, Plus(Times(block.number, most), p), Plus(first, p), block);
    };
    return LoopOver(c_, "panel", Times(all_blocks_, count), Parallel(), [&](Expr q) {
      if (all_blocks_.IsInt(1)) return pack(BlockAt(c_.I64(0), c_.I64(0)), q);
      Lets lets;
      const Expr number = Named("number", Quotient(q, count), lets);
      const Expr p = Named("panel", Remainder(q, count), lets);
      const Expr r =
          run_blocks_.IsInt(1) ? c_.I64(0) : Named("runs", Quotient(number, sum_blocks_), lets);
      const Expr s =
          sum_blocks_.IsInt(1) ? c_.I64(0) : Named("sums", Remainder(number, sum_blocks_), lets);
      return Within(lets, pack(BlockAt(r, s), p));
    });
  }

  // How many panels of the other side a block has: as many blocks for each core, of a size as equal as can be; of a
  // size that is not known, at least a block for each.
  Expr BlockSize(const Side& own) const {
    const Expr cores = c_.I64(cores_);
    if (!IsConstant(own.count)) return Least(CeilQuotient(own.count, cores), c_.I64(own.most));
    const Expr blocks =
        Times(CeilQuotient(CeilQuotient(own.count, c_.I64(own.most)), cores), cores);
    return CeilQuotient(own.count, blocks);
  }

  // Each core's own panels of the other side, and the tiles of both.
  Stmt OwnBlocks(const Panels& common, Expr first, Expr count) const {
    const Side& own = shares_columns_ ? rows_ : columns_;
    const bool is_packed = columns_before_ && !shares_columns_;
    const Expr size = own_size_;
    return LoopOver(c_, "block", CeilQuotient(own.count, size), Parallel(), [&](Expr b) {
      const Expr own_first = Times(b, size);
      const Expr own_count = Least(size, Minus(own.count, own_first));
      const Panels panels = is_packed ? columns_panels_ : own.make(size);
      const Stmt blocks = ForSumBlocks([&](const SumBlock& block) {
        const Stmt pack = LoopOver(c_, "panel", own_count, ForKind::kSerial, [&](Expr p) {
          return own.pack(panels, p, Plus(own_first, p), block);
        });
        const auto tile = [&](Expr p, Expr t) {
          const Expr i = shares_columns_ ? t : p, j = shares_columns_ ? p : t;
          const Expr number = Plus(own_first, i);
          const PanelWriter::Panel mine = {
              panels, is_packed ? Plus(Times(block.number, own.count), number) : i, number};
          const PanelWriter::Panel theirs = {common, Plus(Times(block.number, most_), j),
                                             Plus(first, j)};
          return shares_columns_ ? panels_.Tile(mine, theirs, block)
                                 : panels_.Tile(theirs, mine, block);
        };
        // The panel of columns stays in the nearest cache while tiles of rows follow each other.
        const Stmt tiles = LoopOver(
            c_, "column", shares_columns_ ? count : own_count, ForKind::kSerial, [&](Expr p) {
              return LoopOver(c_, "tile", shares_columns_ ? own_count : count, ForKind::kSerial,
                              [&](Expr t) { return tile(p, t); });
            });
        return is_packed || own.is_in_place ? tiles : c_.Seq({pack, tiles});
      });
      return is_packed ? blocks : Allocated(panels, blocks);
    });
  }

  const ContractionLoops& loops_;
  const PackPlan& plan_;
  const int cores_;
  const bool
      shares_columns_;  // cores have rows of their own, and read the same columns; or the other way round
  const bool columns_before_;
  Panels columns_panels_;  // with columns_before_
  const PanelWriter panels_;
  ir::Context& c_;
  const Expr runs_;                     // of the last loop of sums
  const Expr run_blocks_, sum_blocks_;  // blocks of these, and of its iterations
  const Expr all_blocks_;
  Side rows_, columns_;
  Expr own_size_;  // panels in a block of a core's own
  Expr most_;      // panels that all cores read, at a time
};

// Lane by lane: cores share blocks of the last loop of the batch, and panels of columns. Rows are no panels.
//
//   for (p) pack column panel p, which is short
//   parallel (p, b) for (y, iterations of block b of the batch) for (t, tiles of rows) a tile
//
// A panel has a line or two of each pixel. So of an image and a result that a core's second cache does not hold, cores
// share rows, and all panels of a tile follow one another:
//
//   parallel (y) for (t) for (p) a tile
class LanewiseWriter {
 public:
  LanewiseWriter(const Contraction& contraction, const ContractionLoops& loops,
                 const PackPlan& plan, const CpuMachine& machine, bool columns_before,
                 const std::optional<Range>& outer_row, Values& outer)
      : loops_(loops),
        plan_(plan),
        cores_(machine.cores),
        cache_bytes_(machine.cache_bytes),
        columns_before_(columns_before),
        outer_row_(outer_row),
        c_(contraction.element.context()),
        row_(c_.NewVar(outer_row ? outer_row->var.name() : "row", ir::Type::kI64)),
        panels_(contraction, no_dot_, loops, plan, no_image_, WithRow(outer)) {
    block_.number = c_.I64(0);
    block_.first_run = c_.I64(0);
    block_.runs = CountOf(c_, loops.outer_sums);
    block_.first = loops.sum.first;
    block_.count = loops.sum.count;
    block_.is_first = block_.is_last = c_.Bool(true);
    has_panels_ = bool{contraction.column_operand};
    if (has_panels_) columns_ = panels_.NewColumnPanels(panels_.ColumnPanels());
    for (const Expr operand : {contraction.row_operand, contraction.element})
      bytes_ += BytesRead(operand);
  }

  Stmt Write() const {
    const Stmt tiles = Tiles();
    return columns_before_ || !has_panels_ ? tiles : Allocated(columns_, c_.Seq({Pack(), tiles}));
  }
  PackedBefore Before() const { return {{columns_.elements}, Pack()}; }

 private:
  // Of the arrays that it loads, if their extents are constants.
  static int64_t BytesRead(Expr operand) {
    int64_t bytes = 0;
    ir::ForEachExpr(operand, [&](Expr e) {
      if (!e.Is(ir::ExprKind::kLoad)) return;
      const std::vector<Expr>& extents = ir::Buffer(e.buffer())->extents;
      const bool is_known = std::all_of(extents.begin(), extents.end(), IsConstant);
      int64_t size = is_known ? ir::ByteSize(e.type()) : 0;
      for (size_t d = 0; d < extents.size() && is_known; ++d) size *= extents[d].int_value();
      bytes += size;
    });
    return bytes;
  }
  const Values& WithRow(Values& outer) const {
    if (outer_row_) outer[outer_row_->var] = Plus(outer_row_->first, row_);
    return outer;
  }
  ForKind Parallel() const { return cores_ > 1 ? ForKind::kParallel : ForKind::kSerial; }

  Stmt Pack() const {
    return LoopOver(c_, "panel", panels_.ColumnPanels(), ForKind::kSerial,
                    [&](Expr p) { return panels_.PackColumns(columns_, p, p, block_); });
  }

  Stmt Tiles() const {
    const Expr panels = panels_.ColumnPanels();
    const Expr rows = outer_row_ ? outer_row_->count : c_.I64(1);
    // Some blocks for each core, if the panels alone are too few to share them well.
    constexpr int64_t kBlocksOfCore = 4;
    const bool is_shared = cores_ == 1 || panels.int_value() >= kBlocksOfCore * cores_;
    const bool fits = bytes_ / cores_ <= cache_bytes_ / 2;
    if (!fits && rows.int_value() >= kBlocksOfCore * cores_) {
      return LoopOver(c_, "row", rows, Parallel(),
                      [&](Expr y) { return c_.LetStmt(row_, y, RowTiles({})); });
    }
    const Expr blocks = is_shared ? c_.I64(1) : Least(rows, c_.I64(kBlocksOfCore * cores_));
    const Expr size = CeilQuotient(rows, blocks);
    return LoopOver(c_, "panel", Times(panels, blocks), Parallel(), [&](Expr q) {
      const Expr p = Quotient(q, blocks), first = Times(Remainder(q, blocks), size);
      const Expr count = Least(size, Minus(rows, first));
      const Var y = c_.NewVar("y", ir::Type::kI64);
      return c_.For(y, c_.I64(0), count, c_.LetStmt(row_, Plus(first, y), RowTiles(p)));
    });
  }

  // The tiles of a row: the first and the last one are at constant places, so that they know where padding is.
  Stmt RowTiles(Expr panel) const {
    const auto lane_tile = [&](Expr first, Var t, Expr count) {
      const auto one = [&](Expr p) {
        return panels_.LaneTile(PanelWriter::Panel{columns_, p, p}, first, t, count, block_);
      };
      return panel ? one(panel)
                   : LoopOver(c_, "panel", panels_.ColumnPanels(), ForKind::kSerial, one);
    };
    const int64_t tiles = (loops_.rows[0].count.int_value() + plan_.rows - 1) / plan_.rows;
    std::vector<Stmt> code = {lane_tile(c_.I64(0), {}, {})};
    if (tiles > 2) {
      const Var t = c_.NewVar("tile", ir::Type::kI64);
      const Expr count = c_.I64(tiles - 2);
      code.push_back(
          c_.For(t, c_.I64(0), count, lane_tile(Times(Plus(t, 1), c_.I64(plan_.rows)), t, count)));
    }
    if (tiles > 1) code.push_back(lane_tile(c_.I64((tiles - 1) * plan_.rows), {}, {}));
    return c_.Seq(code);
  }

  const std::optional<Dot> no_dot_ = {};
  const std::optional<RowImage> no_image_ = {};
  const ContractionLoops& loops_;
  const PackPlan& plan_;
  const int cores_;
  const int64_t cache_bytes_;
  int64_t bytes_ = 0;  // of image and result
  const bool columns_before_;
  const std::optional<Range>& outer_row_;
  ir::Context& c_;
  const Var row_;
  const PanelWriter panels_;
  SumBlock block_;
  bool has_panels_;
  Panels columns_;
};

// What LanewiseWriter writes: sizes are constants, and a tile is short enough to be written out. Without a product,
// most of a vector has to be filled.
bool CanBeLanewise(const Contraction& contraction, const ContractionLoops& loops,
                   const CpuMachine& machine) {
  constexpr int64_t kMostSums = 8;
  const Expr columns = loops.column.count;
  const int64_t row_bytes =
      IsConstant(columns) ? columns.int_value() * ir::ByteSize(contraction.element.type()) : 0;
  if (!contraction.column_operand && 2 * row_bytes < machine.vector_bytes) return false;
  return AreConstant(loops.batch) && AreConstant(loops.rows) && AreConstant(loops.outer_sums) &&
         loops.outer_columns.empty() && IsConstant(loops.column.count) &&
         IsConstant(loops.sum.count) && loops.sum.count.int_value() <= kMostSums;
}

std::string Line(const Contraction& contraction, const std::optional<Dot>& dot,
                 const PackPlan& plan) {
  std::string line = StrCat(contraction.statement->name, " packed in tiles of ", plan.rows, " x ",
                            plan.width(), ", ", plan.depth(), " sums at a time");
  if (dot) StrAppend(&line, ", by ", dot->instruction->name);
  if (plan.row_place == RowPlace::kMemory) StrAppend(&line, ", rows where they are");
  if (plan.row_place == RowPlace::kImage) StrAppend(&line, ", rows from one image");
  if (contraction.initial != nullptr)
    StrAppend(&line, ", begun as ", contraction.initial->name, " has it");
  if (contraction.final != nullptr)
    StrAppend(&line, ", ended as ", contraction.final->name, " has it");
  return line;
}

// The column operand is made of constants, and how many there are is known.
bool AreColumnsKnown(const Contraction& contraction, const ContractionLoops& loops,
                     const std::vector<std::string>& constants) {
  if (!contraction.column_operand) return false;
  bool are_known = (loops.batch.empty() || contraction.is_lanewise) &&
                   AreConstant(loops.outer_columns) && AreConstant(loops.outer_sums) &&
                   IsConstant(loops.column.count) && IsConstant(loops.sum.count);
  ir::ForEachExpr(contraction.column_operand, [&](Expr e) {
    if (e.Is(ir::ExprKind::kLoad)) {
      are_known &= std::count(constants.begin(), constants.end(), e.buffer()->name) > 0;
    }
    if (!e.Is(ir::ExprKind::kVar)) return;
    const std::vector<Var>& own = contraction.statement->iterators;
    are_known &= std::count(own.begin(), own.end(), Var(e)) > 0;
  });
  return are_known;
}

}  // namespace

PackedCode WritePackedCode(const Scop& scop, const Contraction& contraction,
                           const CpuMachine& machine, const AssumedParameters& assumed,
                           const ScheduleOptions& options, Stmt otherwise) {
  ir::Context& c = scop.place.context();
  const PartNames names(scop);
  ContractionLoops loops = LoopsOf(scop, contraction, names, assumed);
  PackedCode result;
  if (contraction.is_lanewise && !CanBeLanewise(contraction, loops, machine)) return result;
  const Expr has_instances = names.Condition(contraction.statement->domain.params());
  const bool columns_before =
      has_instances.IsInt(1) && AreColumnsKnown(contraction, loops, options.constants);
  std::optional<Dot> dot;
  std::optional<RowImage> image =
      RowImage::Of(contraction, loops.rows, loops.outer_sums, loops.sum);
  const auto shape = [&] {
    return ShapeOf(loops, contraction.element.type(), dot, image, machine.rates, columns_before,
                   dot && AreRowsInPlace(contraction, *dot, loops));
  };
  if (contraction.is_lanewise) {
    PackShape lanewise = shape();
    lanewise.has_columns = bool{contraction.column_operand};
    result.plan = MakeLanewisePlan(lanewise, machine);
  } else {
    // An instruction that adds several products is faster than one that adds one.
    std::optional<Dot> best;
    for (Dot& one : FindDots(contraction, machine, options.takes_dots)) {
      dot = std::move(one);
      const PackPlan plan = MakePackPlan(shape(), machine);
      if (!best || plan.cycles < result.plan.cycles) best = dot, result.plan = plan;
    }
    // One that adds two floats may also be slower than two that add one each.
    const bool may_lose =
        best && !best->instruction->IsExact() && options.packing == Packing::kByCost;
    if (!best || may_lose) {
      dot.reset();
      const PackPlan plan = MakePackPlan(shape(), machine);
      if (!best || plan.cycles < result.plan.cycles) best.reset(), result.plan = plan;
    }
    dot = best;
  }
  if (result.plan.row_place != RowPlace::kPanels) {
    Range& last = loops.rows.back();
    loops.last_rows = last.count;
    last.count = Times(CeilQuotient(last.count, c.I64(result.plan.rows)), c.I64(result.plan.rows));
    image->Extend(last.count.int_value(), result.plan.image_pad);
  }
  result.line = Line(contraction, dot, result.plan);
  if (columns_before) StrAppend(&result.line, ", columns packed before");
  if (result.plan.shares_batch) StrAppend(&result.line, ", each core its own of the batch");
  result.parallel_loops = machine.cores == 1 ? 0 : result.plan.shares_batch ? 1 : 2;
  std::optional<Range> outer_row;
  if (contraction.is_lanewise && !loops.batch.empty()) {
    outer_row = loops.batch.back();
    loops.batch.pop_back();
  }
  Values outer = names.outer();
  // The iterations of the batch are one loop where cores share them.
  const bool shares_batch = result.plan.shares_batch;
  std::vector<Var> batch;
  Lets of_batch;
  if (shares_batch) {
    batch.push_back(c.NewVar("batch", ir::Type::kI64));
    SetIteration(loops.batch, batch[0], outer, of_batch);
  } else {
    for (const Range& loop : loops.batch) {
      batch.push_back(c.NewVar(loop.var.name(), ir::Type::kI64));
      outer[loop.var] = Plus(loop.first, batch.back());
    }
  }
  CpuMachine of_iteration = machine;
  if (shares_batch) of_iteration.cores = 1;
  Stmt code;
  PackedBefore before;
  const auto write = [&](auto&& writer) {
    code = writer.Write();
    if (columns_before) before = writer.Before();
  };
  if (contraction.is_lanewise) {
    write(
        LanewiseWriter(contraction, loops, result.plan, machine, columns_before, outer_row, outer));
  } else {
    write(Writer(contraction, dot, loops, result.plan, image, of_iteration, columns_before, outer));
  }
  if (shares_batch) {
    code = c.For(batch[0], c.I64(0), CountOf(c, loops.batch), Within(of_batch, code),
                 ForKind::kParallel);
  } else {
    for (size_t i = batch.size(); i-- > 0;)
      code = c.For(batch[i], c.I64(0), loops.batch[i].count, code);
  }
  if (!has_instances.IsInt(1)) code = c.If(has_instances, code, otherwise);
  result.code = ir::CloneWithFreshBindings(names.Bind(code));
  if (columns_before) {
    before.code = ir::CloneWithFreshBindings(names.Bind(before.code));
    result.before = std::move(before);
  }
  return result;
}

}  // namespace polynao::poly
