// The least cycles in which any program can do a piece of work on a machine.
#ifndef ISA_BOUND_H_
#define ISA_BOUND_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/type.h"
#include "isa/machine.h"

namespace polynao::isa {

// What a task needs at least.
struct Work {
  int64_t gmem_bytes = 0;  // that must cross GMEM once
  int64_t macs = 0;        // multiply-accumulates of the tensor unit, of operand type
  ir::Type mac_type = ir::Type::kI8;
  int64_t vector_elements = 0;  // element operations of the vector unit, of type
  ir::Type vector_type = ir::Type::kF16;
  // Further work that either of the two units may do, or both: element operations of the vector unit, or these
  // multiply-accumulates of the tensor unit (a depthwise convolution of integers).
  int64_t either_elements = 0, either_macs = 0;
  // Of a contraction, bytes of gmem_bytes that are its two operands (an image or rows, and weights), and its results.
  int64_t operand_bytes[2] = {0, 0};
  int64_t results = 0;
};

struct Bound {
  int64_t cycles = 0;
  std::string_view
      by;  // "GMEM", "tensor unit", "vector unit", "both units", "clusters"; "" without work
};

// The greatest of these times, rounded up; no latency, no start-up cost.
// - GMEM, tensor unit, vector unit: work / peak rate of the whole card; "both units" if work that either may do fills
//   them.
// - clusters: clusters have no way to one another but GMEM. A contraction of which each cluster computes a part p loads
//   rho * lambda * (image) + kappa * lambda * (weights) bytes for each, rho * kappa * lambda = p (Loomis and Whitney:
//   a set of products is no larger than the box of its projections; Chen, Han, Wang, HPCA 2020, have the same for one
//   memory), and where lambda < 1, results as partial sums of four bytes. Fewer clusters load less and compute longer:
//   the bound is the least over p of the larger of the two times. Where loads look into the cache there is none.
// Errors: a type for which the machine has no rate.
absl::StatusOr<Bound> BoundOf(const Machine& machine, const Work& work);

// What is in reach, at least the bound: cycles of the best way in which whole clusters share a contraction, if all
// overlaps but the latencies of the first load and the last store. Of a * b * k clusters, a share the rows of the
// result, b its columns and k the sums:
//
//   GMEM      a * (weights) + b * (image) + (all else), and partial sums of four bytes, which k clusters each store and
//             load again
//   link      what a cluster loads or stores of these
//   compute   tensor unit and vector unit one after the other: a core has one queue for both
//
// Other work is the same without operands that several need. It is no bound: clusters may share in other ways.
// Errors: those of BoundOf.
absl::StatusOr<int64_t> ReachOf(const Machine& machine, const Work& work);

}  // namespace polynao::isa

#endif  // ISA_BOUND_H_
