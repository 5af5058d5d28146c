// A nest as stages for the card: each computes a box of one tensor's elements, from elements that are there before.
//
//   for (i, 0, n) {                                stage 0   x = A y    (a reduction; the zeros are its start)
//     x[i] = 0.0                                   stage 1   y[i] = x[i] * 2.0
//     for (j, 0, n) { x[i] = x[i] + A[i, j] * y[j] }
//   }
//   for (i, 0, n) { y[i] = x[i] * 2.0 }
//
// The polyhedral model says that this is the same: no dependence leads from a later statement to an earlier one, nor
// from one instance of a statement to another, updates of a reduction aside.
#ifndef COMPILER_POLY_CARD_NEST_STAGES_H_
#define COMPILER_POLY_CARD_NEST_STAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao::poly {

struct NestStage {
  std::string name;   // of its statement; with the iterations that it belongs to: "S0 t=3"
  std::string place;  // the statement's first line
  ir::Buffer target;
  // What is stored: target[low[d] + axes[d], ..] for axes[d] in [0, extents[d]).
  std::vector<ir::Var> axes;
  std::vector<int64_t> low, extents;
  // The element at `axes`. Of reductions what the sum, minimum or maximum begins with; empty: with nothing.
  ir::Expr value;
  // `element` over these ranges too is what a reduction takes in.
  struct ReduceRange {
    ir::Var var;
    int64_t min, extent;
  };
  std::optional<ir::ExprKind> reduction = std::nullopt;  // kAdd, kMin, kMax
  std::vector<ReduceRange> ranges = {};
  ir::Expr element = {};
  // Of the box only the elements for which this holds, over `axes`; empty: all. StoreParts (part_stores.h) makes such
  // stages others.
  ir::Expr condition = {};
};

// Whether it stores all of its target.
bool IsWhole(const NestStage& stage);

// Whether an expression reads elements of buffers.
bool HasLoads(ir::Expr e);

// The values of a variable that is an axis or a range of a stage; none if it is neither.
std::optional<NestStage::ReduceRange> LoopOf(const NestStage& stage, ir::Expr var);

// Whether all that `e` loads exists for all elements of the stage: indices are sums of axes and ranges. Divisions by an
// integer aside, it has a value then.
bool IsDefined(ir::Expr e, const NestStage& stage);

// The buffers that a stage reads.
absl::flat_hash_set<ir::Buffer> ReadsOf(const NestStage& stage);

struct NestStages {
  std::vector<NestStage> list;     // in an order in which they may run
  std::vector<ir::Buffer> locals;  // allocations of the nest
  // Other shapes in which stages store buffers: (shape, buffer).
  std::vector<std::pair<ir::Buffer, ir::Buffer>> views = {};
  // Whether some are what Parts::kAsBoxes alone allows.
  bool has_parts = false;
  // Buffers of which stages may read elements that nothing has stored, though the nest itself reads none.
  std::vector<ir::Buffer> read_first = {};

  // The buffer of which another one is a shape, or a shape of a shape.
  ir::Buffer WholeOf(ir::Buffer buffer) const;
};

// What becomes of statements whose iterations are no box, which read what a later iteration overwrites, or before
// which a later statement must run: stages of boxes of which a part is stored, that read copies, or in another order;
// or none, so that iterations are taken one by one.
enum class Parts { kAsBoxes, kOneByOne };

// The stages of a function without scalar parameters. Where a later statement, or a later iteration, needs what an
// earlier one stores, statements are taken one after the other, and iterations of the outermost loop one by one, up to
// 2000 stages in all: the time steps of a stencil. Errors: what is no such nest, with the statement and the reason.
absl::StatusOr<NestStages> FindStages(const ir::Function& function, Parts parts = Parts::kAsBoxes);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_NEST_STAGES_H_
