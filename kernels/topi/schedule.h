// The schedules that the operators of this folder share.
#ifndef KERNELS_TOPI_SCHEDULE_H_
#define KERNELS_TOPI_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "compiler/target/target.h"
#include "compiler/te/graph.h"
#include "compiler/te/schedule.h"

namespace polynao::kernels {

// Whether loops are to be scheduled for a processor: not the interpreter, whose programs stay plain.
bool IsProcessor(const Target& target);
bool IsGpu(const Target& target);

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

}  // namespace polynao::kernels

#endif  // KERNELS_TOPI_SCHEDULE_H_
