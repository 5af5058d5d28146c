#include "kernels/topi/schedules.h"

#include <algorithm>
#include <tuple>

namespace polynao::kernels {

using te::Axis;
using te::Schedule;
using te::Tensor;

int64_t DivisorUpTo(int64_t n, int64_t most) {
  int64_t divisor = std::min(n, most);
  while (n % divisor != 0) --divisor;
  return divisor;
}

void ParallelElementwise(Schedule& s, const Tensor& t, const Target& target) {
  if (!IsProcessor(target.name)) return;
  te::Stage& stage = s[t];
  std::vector<Axis> axes = stage.leaves();
  if (axes.size() < 2) {
    // With fewer elements, threads cost more than they gain.
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

int64_t ChannelBlock(int64_t channels) {
  constexpr int64_t kLanes = 16;
  if (channels < 6) return 0;
  const int64_t block = DivisorUpTo(channels, kLanes);
  return block >= 8 ? block : channels <= 8 ? 8 : kLanes;
}

int64_t RegisterRows(int64_t extent, int64_t block) {
  const int64_t most = block == 16 ? 6 : 12;
  const int64_t divisor = DivisorUpTo(extent, most);
  return std::min(extent, divisor * 2 > most || extent <= most ? divisor : most);
}

namespace {

constexpr int64_t kBlockThreads = 256;
constexpr const char* kBlockAxes[] = {"blockIdx.x", "blockIdx.y", "blockIdx.z"};
constexpr const char* kThreadAxes[] = {"threadIdx.x", "threadIdx.y", "threadIdx.z"};

std::vector<Axis> SpatialAxes(te::Stage& stage) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < stage.data().spatial.size(); ++d) axes.push_back(stage.axis(d));
  return axes;
}

}  // namespace

void BindElements(Schedule& s, const Tensor& t, std::optional<size_t> row) {
  const bool reduces = !s[t].data().reduce.empty();
  const Tensor sums = reduces ? s.CacheWrite(t, "local") : t;
  te::Stage& stage = s[t];
  std::vector<Axis> axes = SpatialAxes(stage);
  if (row) {
    const Axis inner = axes[*row];
    axes.erase(axes.begin() + static_cast<int64_t>(*row));
    std::vector<Axis> order = axes;
    order.push_back(inner);
    stage.Reorder(order).Unroll(inner);
  }
  auto [block, thread] = stage.Split(stage.Fuse(axes), kBlockThreads);
  stage.Bind(block, "blockIdx.x").Bind(thread, "threadIdx.x");
  if (reduces) s[sums].ComputeAt(stage, thread);
}

void TileOnGpu(Schedule& s, const Tensor& output, const Tensor& sums, const GpuTile& tile,
               const std::vector<Fetched>& fetched) {
  const Tensor local = output == sums ? s.CacheWrite(sums, "local") : sums;
  s[local].SetScope("local");
  te::Stage& out = s[output];
  const size_t rank = output.rank();
  std::vector<Axis> blocks, threads, each;
  std::vector<int64_t> thread_counts;
  for (size_t d = 0; d < rank; ++d) {
    auto [block, rest] = out.Split(out.axis(d), tile.threads[d] * tile.each[d]);
    blocks.push_back(block);
    // A thread axis is needed, if only of one thread.
    const bool is_bound = tile.threads[d] > 1 || (d + 1 == rank && threads.empty());
    if (is_bound) {
      auto [thread, own] = out.Split(rest, tile.each[d]);
      threads.push_back(thread);
      thread_counts.push_back(tile.threads[d]);
      rest = own;
    }
    each.push_back(rest);
  }
  std::vector<Axis> order = blocks;
  order.insert(order.end(), threads.begin(), threads.end());
  order.insert(order.end(), each.begin(), each.end());
  out.Reorder(order);
  // The last dimension is x; those before the third from last share z.
  while (blocks.size() > 3) {
    blocks[1] = out.Fuse(blocks[0], blocks[1]);
    blocks.erase(blocks.begin());
  }
  for (size_t i = 0; i < blocks.size(); ++i) out.Bind(blocks[blocks.size() - 1 - i], kBlockAxes[i]);
  for (size_t i = 0; i < threads.size(); ++i) {
    out.Bind(threads[threads.size() - 1 - i], kThreadAxes[i]);
  }

  te::Stage& inner = s[local];
  inner.ComputeAt(out, threads.back());
  std::vector<Axis> outer_reduce, inner_reduce;
  for (size_t i = 0; i < tile.reduce.size(); ++i) {
    auto [outer, rest] = inner.Split(inner.reduce_axis(i), tile.reduce[i]);
    outer_reduce.push_back(outer);
    inner_reduce.push_back(rest);
  }
  std::vector<Axis> loops = outer_reduce;
  const size_t before = inner_reduce.size() - (tile.dot_of_four ? 1 : 0);
  loops.insert(loops.end(), inner_reduce.begin(),
               inner_reduce.begin() + static_cast<int64_t>(before));
  for (size_t d = 0; d < rank; ++d) {
    loops.push_back(inner.axis(d));
    inner.Unroll(inner.axis(d));
  }
  if (tile.dot_of_four) {
    loops.push_back(inner_reduce.back());
    inner.Unroll(inner_reduce.back());
  }
  inner.Reorder(loops);
  constexpr int64_t kUnrolledTaps = 8;
  if (before > 0 && tile.reduce[before - 1] <= kUnrolledTaps)
    inner.Unroll(inner_reduce[before - 1]);

  for (const Fetched& fetch : fetched) {
    const Tensor copy = fetch.inlined ? fetch.tensor : s.CacheRead(fetch.tensor, "shared", {local});
    te::Stage& stage = s[copy];
    stage.SetScope("shared").ComputeAt(inner, outer_reduce.back());
    if (fetch.pitch > 0) stage.StorageAlign(stage.axis(copy.rank() - 2), 128, fetch.pitch);
    Axis rest = stage.Fuse(SpatialAxes(stage));
    Axis lane;
    if (fetch.lanes > 1) {
      std::tie(rest, lane) = stage.Split(rest, fetch.lanes);
      stage.Vectorize(lane);
    }
    // One split for all threads of the block, so that one condition guards the end. Each thread's turns are a loop
    // inside, so that the threads wait for one another only once.
    int64_t count = 1;
    for (const int64_t on_axis : thread_counts) count *= on_axis;
    auto [turn, all_threads] = stage.Split(rest, count);
    std::vector<Axis> fetch_order;
    rest = all_threads;
    for (size_t i = 0; i < threads.size(); ++i) {
      Axis thread = rest;
      if (i + 1 < threads.size()) {
        std::tie(rest, thread) = stage.Split(rest, thread_counts[threads.size() - 1 - i]);
      }
      stage.Bind(thread, kThreadAxes[i]);
      fetch_order.insert(fetch_order.begin(), thread);
    }
    fetch_order.push_back(turn);
    if (lane) fetch_order.push_back(lane);
    stage.Reorder(fetch_order);
  }
}

void ReduceAcrossThreads(Schedule& s, const Tensor& output, const Tensor& partials) {
  te::Stage& out = s[output];
  const Axis block = out.Fuse(SpatialAxes(out));
  out.Bind(block, "blockIdx.x");
  te::Stage& parts = s[partials];
  parts.SetScope("shared").ComputeAt(out, block);
  parts.Bind(parts.axis(partials.rank() - 1), "threadIdx.x");
}

}  // namespace polynao::kernels
