// Sums over all pixels, one for each channel (the statistics of a batch normalisation), taken along with a group: from
// the tile in NMEM, in the same pass over the image.
#ifndef COMPILER_TE_CARD_COLUMN_SUMS_H_
#define COMPILER_TE_CARD_COLUMN_SUMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "compiler/te/card/steps.h"
#include "compiler/te/graph.h"

namespace polynao::te {

// S[c] = the sum over all other indices of an expression of one tensor's elements.
struct ColumnSum {
  std::string name;
  // Of the expression. The tensor is the only one read, at the same place; it may be the expression itself.
  Steps steps;
};

// Returns true if the compute is the sum over all dimensions but the last one, in their order, of an elementwise
// expression.
bool IsColumnSum(const Operation& operation);

// Gives `function`, a group of loops over cid and tid that stores its last parameter tile by tile (channels last), a
// further output for each sum: the partial sums f32[parts, channels] of the parts of the rows that cores have. Without
// `is_stored` the group's own output goes. A core adds its tiles into one tile of sums, and adds that one's rows at its
// end:
//
//   allocate A @nmem { A = 0
//     for (tile) { .. X = .. ; E = f(X); A = A + E; Y[tile ..] = X }
//     for (row) R = R + A[row];  PARTIAL[cid * 4 + tid] = R }
//
// So the sums are associated in another way than the expression's. `channel_clusters` clusters share rows, and so do
// `across` cores of each: they store the parts of their channels side by side.
// Errors: the output is stored otherwise.
absl::Status AddColumnSums(ir::Function& function, const std::vector<ColumnSum>& sums,
                           bool is_stored, int64_t channel_clusters, int64_t across);

// The function that adds partial sums: PARTIAL f32[parts, channels] to S f32[channels].
absl::StatusOr<ir::Function> AddParts(Graph graph, const Tensor& partial, const Target& target);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_COLUMN_SUMS_H_
