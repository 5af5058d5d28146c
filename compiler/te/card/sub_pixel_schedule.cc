#include "compiler/te/card/sub_pixel_schedule.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "base/math.h"
#include "base/text.h"
#include "isa/levels.h"

namespace polynao::te {
namespace {

using mapping::SubPixels;

// The loops over a pixel's rows, columns and channels.
using Boxes = std::array<Axis, 3>;

// Cuts `all` into runs of `size` channels: the loop over runs, outside all others, and those of one, which `inside`
// become.
Axis CutRuns(Stage& stage, Boxes& inside, SubPixels& all, int64_t size) {
  const std::optional<SubPixels> run = all.Run(size);
  POLYNAO_CHECK(run.has_value()) << stage.name() << ": runs of " << size << " channels";
  const std::array<int64_t, 3> extents = {run->rows, run->columns, run->channels};
  std::vector<Axis> outer;
  for (size_t d = 0; d < inside.size(); ++d) {
    Axis runs;
    std::tie(runs, inside[d]) = stage.Split(inside[d], extents[d]);
    outer.push_back(runs);
  }
  std::vector<Axis> order = outer;
  for (const Axis& axis : stage.leaves()) {
    if (std::find(outer.begin(), outer.end(), axis) == outer.end()) order.push_back(axis);
  }
  stage.Reorder(order);
  all = *run;
  return stage.Fuse(outer);
}

}  // namespace

SubPixelTensors MakeSubPixels(Graph& graph, const std::string& name, const Shape& shape,
                              const SubPixelPlaces& places,
                              const std::function<Expr(const Axes&)>& element) {
  const SubPixels& of = places.of_pixel;
  SubPixelTensors made;
  made.whole =
      graph.Compute(StrCat(name, ".whole"), {shape[0], of.rows, shape[1], of.columns, of.channels},
                    [&](Expr q, Expr a, Expr x, Expr b, Expr o) {
                      return element({q, x, (a * of.columns + b) * of.channels + o});
                    });
  made.result =
      graph.Compute(name, {places.rows, places.columns, of.channels}, [&](Expr y, Expr x, Expr o) {
        const Expr row = y + places.rows_before, column = x + places.columns_before;
        return made.whole(row / of.rows, row % of.rows, column / of.columns, column % of.columns,
                          o);
      });
  return made;
}

SubPixelLoops ScheduleSubPixels(Stage& y, Stage& whole, const SubPixelPlaces& places,
                                const mapping::Mapping& m, const mapping::Shares& shares) {
  SubPixelLoops loops;
  SubPixels own = places.of_pixel;
  int64_t row_step = own.rows;  // of loops over rows
  auto [cid, row] = y.Split(y.axis(0), shares.cluster_rows * own.rows, places.rows_before);
  // Where clusters share a pixel's channels: of its rows and columns those of one, outside of the copy's loops, so that
  // the copy is of whole pixels, or has whole rows; then those loops.
  std::vector<Axis> apart, copied;
  if (m.channel_clusters > 1) {
    const SubPixels all = own;
    const SubPixels run = all.Run(shares.cluster_channels).value_or(all);
    Boxes inside = {Axis(), y.axis(1), y.axis(2)};
    std::tie(row, inside[0]) = y.Split(row, own.rows);
    Axis shared;
    if (run.columns == all.columns && run.channels == all.channels) {
      std::tie(shared, inside[0]) = y.Split(inside[0], run.rows);
      own = run;
      apart = {inside[0]}, copied = {inside[1], inside[2]};
    } else {
      Axis column;
      std::tie(column, inside[1]) = y.Split(inside[1], own.columns, places.columns_before);
      shared = CutRuns(y, inside, own, shares.cluster_channels);
      apart = {inside[0], inside[1]}, copied = {column, inside[2]};
    }
    std::vector<Axis> order = {cid, shared, row};
    order.insert(order.end(), apart.begin(), apart.end());
    order.insert(order.end(), copied.begin(), copied.end());
    y.Reorder(order);
    cid = y.Fuse(cid, shared);
    row_step = 1;
  }
  y.Bind(cid, isa::kClusterAxis);
  loops.turn = cid;
  if (m.turns > 1) {
    std::tie(loops.turn, row) = y.Split(row, shares.turn_rows * row_step);
    // By cores: one transfer of the memory core waits for the other.
    Axis core;
    std::tie(core, row) = y.SplitParts(row, shares.storing_cores);
    y.Bind(core, isa::kCoreAxis);
  }
  if (!apart.empty()) {
    std::vector<Axis> order = apart;
    order.push_back(row);
    y.Reorder(order);
  }
  y.Pragma(row, "memcpy");
  whole.ComputeAt(y, loops.turn).SetScope(isa::kSmem);
  if (m.turns > 1) whole.DoubleBuffer();

  auto [core_row, yy] = whole.Split(whole.axis(0), shares.core_rows);
  Axis piece;
  if (m.pieces > 1) std::tie(piece, yy) = whole.Split(yy, CeilDiv(shares.core_rows, m.pieces));
  auto [core_column, xx] = whole.Split(whole.axis(2), shares.core_columns);
  Boxes inside = {whole.axis(1), whole.axis(3), whole.axis(4)};
  Axis core_channel;
  if (m.turns > 1) {
    // A core's weights stand side by side.
    core_channel = CutRuns(whole, inside, own, shares.core_channels);
    loops.blocks = CutRuns(whole, inside, own, m.block);
  } else {
    loops.blocks = CutRuns(whole, inside, own, m.across * m.block);
    core_channel = CutRuns(whole, inside, own, m.block);
  }
  std::vector<Axis> order = {core_row, core_column, core_channel, loops.blocks};
  if (piece) order.push_back(piece);
  order.insert(order.end(), {yy, inside[0], xx, inside[1], inside[2]});
  whole.Reorder(order);
  loops.tid = whole.Fuse({core_row, core_column, core_channel});
  whole.Bind(loops.tid, isa::kCoreAxis).Pragma(yy, "memcpy");
  loops.tile = piece ? piece : loops.blocks;
  return loops;
}

}  // namespace polynao::te
