#include "kernels/topi/schedule.h"

#include <algorithm>

namespace polynao::kernels {

using te::Axis;
using te::Schedule;
using te::Tensor;

bool IsProcessor(const Target& target) { return target.name == "cpu" || target.name == "c"; }
bool IsGpu(const Target& target) { return target.name == "cuda"; }

int64_t DivisorUpTo(int64_t n, int64_t most) {
  int64_t divisor = std::min(n, most);
  while (n % divisor != 0) --divisor;
  return divisor;
}

void ParallelElementwise(Schedule& s, const Tensor& t, const Target& target) {
  if (!IsProcessor(target)) return;
  te::Stage& stage = s[t];
  std::vector<Axis> axes = stage.leaves();
  if (axes.size() < 2) {
    // Threads are not worth less than this many elements.
    constexpr int64_t kRun = 1 << 12;
    auto [run, element] =
        axes.empty() ? std::pair(stage.Fuse({}), Axis()) : stage.Split(axes[0], kRun);
    if (element) stage.Parallel(run).Vectorize(element);
    return;
  }
  stage.Vectorize(axes.back());
  axes.pop_back();
  stage.Parallel(stage.Fuse(axes));
}

void UnrollElementwise(Schedule& s, const Tensor& t, size_t d, int64_t lanes) {
  te::Stage& stage = s[t];
  const size_t last = t.rank() - 1;
  auto [run, lane] = stage.Split(stage.axis(last), lanes);
  std::vector<Axis> outer;
  for (size_t other = 0; other < last; ++other) {
    if (other != d) outer.push_back(stage.axis(other));
  }
  outer.push_back(run);
  std::vector<Axis> order = outer;
  order.push_back(stage.axis(d));
  order.push_back(lane);
  stage.Reorder(order).Unroll(stage.axis(d)).Vectorize(lane);
  stage.Parallel(stage.Fuse(outer));
}

void TileReduction(Schedule& s, const Tensor& t, const RegisterTile& tile) {
  const Tensor sums = s.CacheWrite(t, "local");
  te::Stage& out = s[t];
  const size_t last = t.rank() - 1;
  auto [vector_outer, vector] = out.Split(out.axis(last), tile.vector);
  Axis row_outer, row;
  if (tile.row_axis != last) {
    std::tie(row_outer, row) = out.Split(out.axis(tile.row_axis), tile.rows);
  }
  std::vector<Axis> outer;
  for (size_t d = 0; d < last; ++d) {
    outer.push_back(d == tile.row_axis && row ? row_outer : out.axis(d));
  }
  outer.push_back(vector_outer);
  std::vector<Axis> order = outer;
  if (row) order.push_back(row);
  order.push_back(vector);
  out.Reorder(order);
  const Axis place = out.Fuse(outer);
  out.Parallel(place);
  if (tile.vector > 1) out.Vectorize(vector);
  te::Stage& inner = s[sums];
  inner.ComputeAt(out, place);
  std::vector<Axis> loops;
  for (size_t i = 0; i < inner.data().reduce.size(); ++i) loops.push_back(inner.reduce_axis(i));
  if (row) loops.push_back(inner.axis(tile.row_axis));
  loops.push_back(inner.axis(last));
  // The other dimensions have one element here and stay outside.
  std::vector<Axis> all;
  for (size_t d = 0; d < last; ++d) {
    if (!(row && d == tile.row_axis)) all.push_back(inner.axis(d));
  }
  all.insert(all.end(), loops.begin(), loops.end());
  inner.Reorder(all);
  if (row) inner.Unroll(inner.axis(tile.row_axis));
  if (tile.vector > 1) inner.Vectorize(inner.axis(last));
}

}  // namespace polynao::kernels
