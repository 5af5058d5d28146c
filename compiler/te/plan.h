// Plans hold what lowering knows of each stage's loops, and of the values of their axes. stages.h makes the plans,
// regions.h finds which part of a tensor a stage computes, lower.cc turns plans into loops.
#ifndef COMPILER_TE_PLAN_H_
#define COMPILER_TE_PLAN_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/visit.h"
#include "compiler/te/schedule.h"
#include "isa/levels.h"

namespace polynao::te {

using arith::ConstRange;
using arith::Decompose;
using arith::LinearForm;
using arith::SymbolicInterval;

using AxisValues = absl::flat_hash_map<const AxisData*, Expr>;

// The first value behind the interval.
inline LinearForm End(const SymbolicInterval& interval) {
  return interval.min + LinearForm::Constant(interval.size);
}

// Everything known about the loops of one stage.
struct StagePlan {
  const Stage* stage = nullptr;
  std::vector<Body> bodies;  // after inlining, over the graph's axes
  size_t order = 0;          // producers come before their readers
  std::vector<StagePlan*> readers;
  StagePlan* attach_plan = nullptr;
  size_t attach_leaf = 0;
  std::vector<std::vector<StagePlan*>> attached;  // per leaf, producers first
  // Per leaf: sliding windows, which are computed one leaf further in.
  std::vector<std::vector<StagePlan*>> stored;

  // The part of the tensor that is computed: per dimension start and size, and whether the part may
  // reach over the tensor's ends.
  std::vector<LinearForm> start;
  std::vector<int64_t> size;
  std::vector<bool> below;
  std::vector<bool> above;
  // Per dimension: intervals after whose end nothing is needed, because guards of the reader skip
  // what would read it.
  std::vector<std::vector<SymbolicInterval>> limits;
  // Where in its storage the part lies, and how large that is.
  std::vector<LinearForm> place;
  Shape store_size;
  // Of a sliding window, in the place of its own loops: those before the first iteration, and those
  // of an iteration.
  std::vector<std::unique_ptr<StagePlan>> head;
  std::vector<std::unique_ptr<StagePlan>> steps;
  Expr condition;  // under which the loops run; null: always
  // The condition under which the part behind this one runs in its place; null: never.
  Expr restarts;

  absl::flat_hash_map<const AxisData*, int64_t> extents;
  AxisValues leaf_vars;
  std::vector<Expr> values;  // the bodies' values over loop variables
  std::vector<ir::Buffer> buffers;
  std::vector<bool> is_allocated;        // per buffer
  StagePlan* in_place_reader = nullptr;  // the stage that is computed in this one's storage

  const StageData& data() const { return stage->data(); }
  const std::string& name() const { return stage->name(); }
  bool is_reduction() const { return bodies[0].reducer.has_value(); }
  int64_t reduce_min(size_t i) const { return bodies[0].axes[i].min; }
  // The outermost reduce leaf, or the number of leaves.
  size_t FirstReduceLeaf() const {
    const auto& leaves = data().leaves;
    return std::find_if(leaves.begin(), leaves.end(),
                        [](const AxisData* leaf) { return leaf->is_reduce; }) -
           leaves.begin();
  }
};

// "stage A: StoreAt(xo): ", the place of an error.
std::string StoreAtPlace(const StagePlan& plan);

// Returns true if the threads of a GPU's block have one copy of the results, for all of them.
inline bool IsShared(const StagePlan& plan) { return plan.data().scope == "shared"; }
inline bool IsBlockThread(const AxisData* leaf) {
  return leaf->kind == ir::ForKind::kThread && leaf->thread.starts_with("threadIdx.");
}

// Returns true if the results are computed inside the loop `leaf` for all of its iterations at once: memory that its
// threads, or a cluster's cores, have in common.
inline bool IsForAllOf(const StagePlan& plan, const AxisData* leaf) {
  if (IsShared(plan)) return IsBlockThread(leaf);
  return plan.data().scope == isa::kSmem && leaf->kind == ir::ForKind::kThread &&
         leaf->thread == isa::kCoreAxis;
}

// The plans of a schedule's stages.
class Plans {
 public:
  explicit Plans(const GraphState& graph)
      : graph(graph), context(*graph.context), index_type(graph.index_type) {}

  Expr ToExpr(const LinearForm& form) const { return arith::ToExpr(form, context, index_type); }

  // Returns true if the loops of a split run over iterations that the axis does not have.
  static bool NeedsGuard(const StagePlan& plan, const AxisRelation& relation);
  // The first value of the variable of a leaf.
  static int64_t LoopMin(const StagePlan& plan, const AxisData* leaf);

  // The values of all axes (counted from 0) given those of the leaves; an axis `pinned` has the
  // value given for it whatever its leaves have.
  AxisValues FindAxisValues(const StagePlan& plan, AxisValues values,
                            const AxisData* pinned = nullptr, Expr pinned_value = {}) const;
  // The element of dimension d that the loops are at.
  Expr Coordinate(const StagePlan& plan, const AxisValues& values, size_t d) const;
  // Returns the values of the graph's axes in the bodies.
  ir::VarMap BodyVars(const StagePlan& plan, const AxisValues& values) const;

  const GraphState& graph;
  ir::Context& context;
  const ir::Type index_type;
  std::vector<std::unique_ptr<StagePlan>> list;  // producers before readers
  absl::flat_hash_map<const Operation*, StagePlan*> by_operation;
  arith::VarRanges ranges;  // of the variables of all loops

 private:
  Expr ReduceValue(const StagePlan& plan, const AxisValues& values, size_t i) const;
};

}  // namespace polynao::te

#endif  // COMPILER_TE_PLAN_H_
