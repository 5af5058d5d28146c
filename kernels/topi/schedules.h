// Schedules for processors and GPUs that the operators here share: their loops are those of the experiment on code
// motion.
#ifndef KERNELS_TOPI_SCHEDULES_H_
#define KERNELS_TOPI_SCHEDULES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "base/math.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "compiler/te/schedule.h"

namespace polynao::kernels {

// The largest divisor of n that is `most` or less.
int64_t DivisorUpTo(int64_t n, int64_t most);

// A tensor without a reduction: threads share all dimensions but the last, which is vectorized.
void ParallelElementwise(te::Schedule& s, const te::Tensor& t, const Target& target);

// A tensor without a reduction: threads share all dimensions; of the last one `lanes` elements at a
// time are vectorized, inside the loop over dimension `d`, which is unrolled.
void UnrollElementwise(te::Schedule& s, const te::Tensor& t, size_t d, int64_t lanes);

// A register tile of `vector` elements of dimension `vector_axis`, which must be the last one, by
// `rows` of `row_axis`.
struct RegisterTile {
  size_t row_axis = 0;
  int64_t rows = 1;
  int64_t vector = 1;
};
// A reduction `t`: each thread of the processor takes tiles; the sums of one are kept in registers
// while the reduction runs, rows unrolled and the vector axis vectorized inside all of its loops.
void TileReduction(te::Schedule& s, const te::Tensor& t, const RegisterTile& tile);

// Output channels in a block, which are the lanes of a processor's vectors: 8 to 16, a divisor of `channels`
// where there is one; 0: too few channels for a block.
int64_t ChannelBlock(int64_t channels);
// Rows of a register tile (RegisterTile::rows) of `block` channels along an axis of `extent` places: up to
// twelve of a processor's sixteen vector registers hold sums.
int64_t RegisterRows(int64_t extent, int64_t block);

// ---- for a GPU

// Each thread computes elements of `t`: of one dimension `row`, if given, all of them, unrolled. A
// reduction is kept in a register.
void BindElements(te::Schedule& s, const te::Tensor& t, std::optional<size_t> row = std::nullopt);

// How a grid shares a reduction. Per dimension a block has threads * each elements; `each` are a
// thread's own, next to one another, in registers. At most three dimensions have threads.
struct GpuTile {
  std::vector<int64_t> threads, each;
  // Per reduce axis: so many at a time, while the inputs' tiles for them are in shared memory.
  std::vector<int64_t> reduce;
  // This is true if the last reduce axis is innermost, four products of bytes.
  bool dot_of_four = false;
};

// An input of the reduction that all threads of a block fetch together, `lanes` elements each at a
// time: a parameter of the function, a tensor that other kernels have computed, or (`inlined`) one whose
// elements are computed as they are fetched.
struct Fetched {
  te::Tensor tensor;
  bool inlined = false;
  int64_t lanes = 1;
  // Elements from one row of the last dimension to the next in shared memory, modulo 128; 0: no more
  // than needed. An odd number of words lets threads read a column at a time.
  int64_t pitch = 0;
};

// `output` is `sums`, or is made of it element by element; both have the same dimensions.
void TileOnGpu(te::Schedule& s, const te::Tensor& output, const te::Tensor& sums,
               const GpuTile& tile, const std::vector<Fetched>& fetched);

// `output` is reduced over `partials`, whose last dimension has an element per thread of a block: each
// block makes one element of the output.
void ReduceAcrossThreads(te::Schedule& s, const te::Tensor& output, const te::Tensor& partials);

}  // namespace polynao::kernels

#endif  // KERNELS_TOPI_SCHEDULES_H_
