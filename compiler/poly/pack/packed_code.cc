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

PackShape ShapeOf(const ContractionLoops& loops, ir::Type type, const std::optional<Dot>& dot) {
  const int64_t bytes = ir::ByteSize(type);
  return {.batch = AssumedCount(loops.batch),
          .rows = AssumedCount(loops.rows),
          .outer_columns = AssumedCount(loops.outer_columns),
          .columns = loops.column.assumed,
          .outer_sums = AssumedCount(loops.outer_sums),
          .sums = loops.sum.assumed,
          .bytes = bytes,
          .operand_bytes = dot ? ir::ByteSize(dot->instruction->b->type) : bytes,
          .group = dot ? dot->instruction->group : 1};
}

Stmt Allocated(const Panels& panels, Stmt body) {
  ir::Context& c = body.context();
  if (panels.sums) body = c.Allocate(panels.sums, body);
  return c.Allocate(panels.elements, body);
}

// One of the two sides of the contraction.
struct Side {
  Expr count;        // tiles of rows, or panels of columns
  int64_t most = 1;  // of them, at a time
  std::function<Panels(Expr count)> make;
  std::function<Stmt(const Panels& panels, Expr place, Expr number, const SumBlock& block)> pack;
};

class Writer {
 public:
  Writer(const Contraction& contraction, const std::optional<Dot>& dot,
         const ContractionLoops& loops, const PackPlan& plan, const CpuMachine& machine,
         const Values& outer)
      : loops_(loops),
        plan_(plan),
        cores_(machine.cores),
        panels_(contraction, dot, loops, plan, outer),
        c_(contraction.element.context()) {
    rows_ = {.count = panels_.RowTiles(),
             .most = plan.block_tiles,
             .make = [&](Expr count) { return panels_.NewRowPanels(count); },
             .pack =
                 [&](const Panels& panels, Expr place, Expr number, const SumBlock& block) {
                   return panels_.PackRows(panels, place, number, block);
                 }};
    columns_ = {.count = panels_.ColumnPanels(),
                .most = plan.most_panels,
                .make = [&](Expr count) { return panels_.NewColumnPanels(count); },
                .pack =
                    [&](const Panels& panels, Expr place, Expr number, const SumBlock& block) {
                      return panels_.PackColumns(panels, place, number, block);
                    }};
    // Cores share the side that has something for each of them.
    shares_rows_ = !(IsConstant(rows_.count) && rows_.count.int_value() < cores_ &&
                     (!IsConstant(columns_.count) || columns_.count.int_value() >= cores_));
    if (!shares_rows_) {
      // Blocks of as many bytes.
      columns_.most = std::max<int64_t>(plan.block_tiles * plan.rows / plan.width(), 1);
      rows_.most = std::max<int64_t>(plan.most_panels * plan.width() / plan.rows, 1);
    }
  }

  // All blocks, for one iteration of the batch.
  Stmt Write() {
    Lets lets;
    for (Side* side : {&rows_, &columns_}) side->count = Named("count", side->count, lets);
    const Side& common = shares_rows_ ? columns_ : rows_;
    own_size_ = Named("size", BlockSize(shares_rows_ ? rows_ : columns_), lets);
    const Expr most = Least(common.count, c_.I64(common.most));
    const Panels panels = common.make(most);
    return Within(
        lets,
        Allocated(panels, LoopOver(c_, "block", CeilQuotient(common.count, c_.I64(common.most)),
                                   ForKind::kSerial, [&](Expr number) {
                                     const Expr first = Times(number, c_.I64(common.most));
                                     const Expr count =
                                         Least(Minus(common.count, first), c_.I64(common.most));
                                     return ForSumBlocks([&](const SumBlock& block) {
                                       return c_.Seq({Pack(common, panels, first, count, block),
                                                      OwnBlocks(panels, first, count, block)});
                                     });
                                   })));
  }

 private:
  // `value` as a variable, unless it is a constant.
  Expr Named(std::string_view name, Expr value, Lets& lets) const {
    if (IsConstant(value)) return value;
    const Var var = c_.NewVar(name, ir::Type::kI64);
    lets.emplace_back(var, value);
    return var;
  }

  ForKind Parallel() const { return cores_ > 1 ? ForKind::kParallel : ForKind::kSerial; }

  Stmt ForSumBlocks(const std::function<Stmt(const SumBlock&)>& body) const {
    const Expr runs = CountOf(c_, loops_.outer_sums);
    const Expr size = c_.I64(plan_.runs), length = c_.I64(plan_.run);
    return LoopOver(c_, "runs", CeilQuotient(runs, size), ForKind::kSerial, [&](Expr r) {
      return LoopOver(c_, "sums", CeilQuotient(loops_.sum.count, length), ForKind::kSerial,
                      [&](Expr s) {
                        SumBlock block;
                        block.first_run = Times(r, size);
                        block.runs = Least(size, Minus(runs, block.first_run));
                        const Expr done = Times(s, length);
                        block.count = Least(length, Minus(loops_.sum.count, done));
                        block.first = Plus(loops_.sum.first, done);
                        block.is_first = block.is_last = c_.Bool(true);
                        const auto require = [](Expr& all, Expr one) {
                          all = all.IsInt(1) ? one : ir::And(all, one);
                        };
                        for (const auto& [place, count] :
                             {std::pair(r, CeilQuotient(runs, size)),
                              std::pair(s, CeilQuotient(loops_.sum.count, length))}) {
                          if (IsConstant(place)) continue;
                          require(block.is_first, ir::Eq(place, c_.I64(0)));
                          require(block.is_last, ir::Eq(place, Plus(count, -1)));
                        }
                        return body(block);
                      });
    });
  }

  // The panels that all cores read.
  Stmt Pack(const Side& side, const Panels& panels, Expr first, Expr count,
            const SumBlock& block) const {
    return LoopOver(c_, "panel", count, Parallel(),
                    [&](Expr p) { return side.pack(panels, p, Plus(first, p), block); });
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
  Stmt OwnBlocks(const Panels& common, Expr first, Expr count, const SumBlock& block) const {
    const Side& own = shares_rows_ ? rows_ : columns_;
    const Expr size = own_size_;
    return LoopOver(c_, "block", CeilQuotient(own.count, size), Parallel(), [&](Expr b) {
      const Expr own_first = Times(b, size);
      const Expr own_count = Least(size, Minus(own.count, own_first));
      const Panels panels = own.make(size);
      const Stmt pack = LoopOver(c_, "panel", own_count, ForKind::kSerial, [&](Expr p) {
        return own.pack(panels, p, Plus(own_first, p), block);
      });
      const auto tile = [&](Expr p, Expr t) {
        const PanelWriter::Panel mine = {panels, shares_rows_ ? t : p,
                                         Plus(own_first, shares_rows_ ? t : p)};
        const PanelWriter::Panel theirs = {common, shares_rows_ ? p : t,
                                           Plus(first, shares_rows_ ? p : t)};
        return shares_rows_ ? panels_.Tile(mine, theirs, block) : panels_.Tile(theirs, mine, block);
      };
      // The panel of columns stays in the nearest cache while tiles of rows follow each other.
      const Stmt tiles =
          LoopOver(c_, "column", shares_rows_ ? count : own_count, ForKind::kSerial, [&](Expr p) {
            return LoopOver(c_, "tile", shares_rows_ ? own_count : count, ForKind::kSerial,
                            [&](Expr t) { return tile(p, t); });
          });
      return Allocated(panels, c_.Seq({pack, tiles}));
    });
  }

  const ContractionLoops& loops_;
  const PackPlan& plan_;
  const int cores_;
  const PanelWriter panels_;
  ir::Context& c_;
  Side rows_, columns_;
  Expr own_size_;            // panels in a block of a core's own
  bool shares_rows_ = true;  // cores have rows of their own, and read the same columns
};

std::string Line(const Contraction& contraction, const std::optional<Dot>& dot,
                 const PackPlan& plan) {
  std::string line = StrCat(contraction.statement->name, " packed in tiles of ", plan.rows, " x ",
                            plan.width(), ", ", plan.depth(), " sums at a time");
  if (dot) StrAppend(&line, ", by ", dot->instruction->name);
  if (contraction.initial != nullptr)
    StrAppend(&line, ", begun as ", contraction.initial->name, " has it");
  if (contraction.final != nullptr)
    StrAppend(&line, ", ended as ", contraction.final->name, " has it");
  return line;
}

}  // namespace

PackedCode WritePackedCode(const Scop& scop, const Contraction& contraction,
                           const CpuMachine& machine, const AssumedParameters& assumed,
                           Stmt otherwise) {
  ir::Context& c = scop.place.context();
  const PartNames names(scop);
  const ContractionLoops loops = LoopsOf(scop, contraction, names, assumed);
  PackedCode result;
  const std::optional<Dot> dot = FindDot(contraction, machine);
  result.plan = MakePackPlan(ShapeOf(loops, contraction.element.type(), dot), machine);
  result.line = Line(contraction, dot, result.plan);
  result.parallel_loops = machine.cores > 1 ? 2 : 0;
  Values outer = names.outer();
  std::vector<Var> batch;
  for (const Range& loop : loops.batch) {
    batch.push_back(c.NewVar(loop.var.name(), ir::Type::kI64));
    outer[loop.var] = Plus(loop.first, batch.back());
  }
  Stmt code = Writer(contraction, dot, loops, result.plan, machine, outer).Write();
  for (size_t i = batch.size(); i-- > 0;)
    code = c.For(batch[i], c.I64(0), loops.batch[i].count, code);
  const Expr has_instances = names.Condition(contraction.statement->domain.params());
  if (!has_instances.IsInt(1)) code = c.If(has_instances, code, otherwise);
  result.code = ir::CloneWithFreshBindings(names.Bind(code));
  return result;
}

}  // namespace polynao::poly
