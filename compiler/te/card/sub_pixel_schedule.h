// The last two tensors of a contraction whose channels are those of several pixels (sub_pixel_graph.h):
//
//   whole[q, a, x, b, o] = f(sums)[q, x, (a, b, o)]      in SMEM, where the cores of a cluster put their channels
//   Y[y, x, o] = whole[(y + t) / 2, (y + t) % 2, ..]     by the memory core, whole rows of Y
//
// What `whole` has more than Y, rows and columns before and behind it, stays in SMEM.
#ifndef COMPILER_TE_CARD_SUB_PIXEL_SCHEDULE_H_
#define COMPILER_TE_CARD_SUB_PIXEL_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "compiler/mapping/mapping.h"
#include "compiler/te/card/card_schedule.h"
#include "compiler/te/graph.h"
#include "compiler/te/schedule.h"

namespace polynao::te {

struct SubPixelTensors {
  Tensor whole, result;
};
// `element`: of the contraction's results, at row, column and channel; `name` and `shape` are those of its output.
SubPixelTensors MakeSubPixels(Graph& graph, const std::string& name, const Shape& shape,
                              const SubPixelPlaces& places,
                              const std::function<Expr(const Axes&)>& element);

// Loops of `result` over clusters and their turns; of `whole` over cores, blocks of channels and, in these, tiles.
struct SubPixelLoops {
  Axis turn, tid, blocks, tile;
};
SubPixelLoops ScheduleSubPixels(Stage& result, Stage& whole, const SubPixelPlaces& places,
                                const mapping::Mapping& m, const mapping::Shares& shares);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_SUB_PIXEL_SCHEDULE_H_
