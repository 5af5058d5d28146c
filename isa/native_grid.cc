#include "isa/native_grid.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace polynao::isa::native {
namespace {

constexpr int64_t kResultBytes = 4;
// Lanes that RunDotGrid takes at once.
constexpr int64_t kMaxLanes = 64;

// Whether all iterations store to elements of their own.
bool AreApart(std::vector<GridLoop> loops) {
  std::sort(loops.begin(), loops.end(),
            [](const GridLoop& a, const GridLoop& b) { return a.dst_stride < b.dst_stride; });
  int64_t size = kResultBytes;
  for (const GridLoop& loop : loops) {
    if (loop.dst_stride < size || loop.dst_stride > INT64_MAX / loop.count) return false;
    size = loop.dst_stride * loop.count;
  }
  return true;
}

// The loops over the elements of one sum, outermost first, as rows. Sums that wrap around may run in any order.
std::optional<DotRows> FindRows(std::vector<GridLoop> loops, ir::Type element) {
  const int64_t element_bytes = ir::ByteSize(element);
  std::reverse(loops.begin(), loops.end());
  if (!ir::IsFloat(element)) {
    std::sort(loops.begin(), loops.end(),
              [](const GridLoop& a, const GridLoop& b) { return a.b_stride < b.b_stride; });
  }
  DotRows rows{.n = 1};
  size_t next = 0;
  while (next < loops.size() && loops[next].a_stride == rows.n * element_bytes &&
         loops[next].b_stride == rows.n * element_bytes) {
    rows.n *= loops[next++].count;
  }
  if (next == loops.size()) return rows;
  rows.rows = loops[next].count;
  rows.a_stride = loops[next].a_stride;
  rows.b_stride = loops[next].b_stride;
  if (next + 1 != loops.size()) return std::nullopt;
  return rows;
}

}  // namespace

std::optional<Grid> FindGrid(absl::Span<const GridLoop> loops, ir::Type element, bool adds) {
  Grid result;
  result.grid.element = element;
  result.grid.adds = adds;
  std::vector<GridLoop> sum, outer;
  for (const GridLoop& loop : loops) {
    if (loop.count <= 0) return std::nullopt;
    if (loop.count > 1) (loop.dst_stride == 0 ? sum : outer).push_back(loop);
  }
  if (!AreApart(outer)) return std::nullopt;
  const auto lane = std::find_if(outer.begin(), outer.end(), [](const GridLoop& loop) {
    return loop.dst_stride == kResultBytes;
  });
  if (lane == outer.end()) return std::nullopt;
  if (lane->b_stride == 0) {
    result.is_swapped = true;
    for (std::vector<GridLoop>* list : {&sum, &outer}) {
      for (GridLoop& loop : *list) std::swap(loop.a_stride, loop.b_stride);
    }
  }
  if (lane->b_stride == 0) return std::nullopt;
  const std::optional<DotRows> rows = FindRows(sum, element);
  if (!rows) return std::nullopt;
  DotGrid& grid = result.grid;
  grid.shape = *rows;
  for (const GridLoop& loop : outer) {
    if (loop.a_stride != 0 && loop.b_stride != 0) return std::nullopt;
    const bool is_window = loop.b_stride == 0;
    int& depth = is_window ? grid.window_depth : grid.group_depth;
    if (depth + 1 >= DotGrid::kMaxLoops) return std::nullopt;
    if (is_window) {
      grid.windows[depth++] = {loop.count, loop.a_stride, loop.dst_stride};
    } else if (&loop != &*lane) {
      grid.groups[depth++] = {loop.count, loop.b_stride, loop.dst_stride};
    }
  }
  grid.lanes = lane->count;
  grid.lane_stride = lane->b_stride;
  if (grid.lanes > kMaxLanes) {
    // Groups of as many lanes as divide them.
    int64_t lanes = kMaxLanes;
    while (lanes > 16 && grid.lanes % lanes != 0) lanes -= 16;
    if (grid.lanes % lanes != 0) return std::nullopt;
    grid.groups[grid.group_depth++] = {grid.lanes / lanes, lanes * grid.lane_stride,
                                       lanes * kResultBytes};
    grid.lanes = lanes;
  }
  return result;
}

}  // namespace polynao::isa::native
