#include "compiler/te/plan.h"

#include "base/text.h"

namespace polynao::te {

std::string StoreAtPlace(const StagePlan& plan) {
  return StrCat("stage ", plan.name(), ": StoreAt(", plan.data().store_axis->name, "): ");
}

bool Plans::NeedsGuard(const StagePlan& plan, const AxisRelation& relation) {
  return relation.kind != AxisRelation::Kind::kFuse &&
         relation.kind != AxisRelation::Kind::kRotate &&
         plan.extents.at(relation.outer) * plan.extents.at(relation.inner) !=
             plan.extents.at(relation.parent);
}

int64_t Plans::LoopMin(const StagePlan& plan, const AxisData* leaf) {
  const auto& reduce = plan.data().reduce;
  const auto it = std::find(reduce.begin(), reduce.end(), leaf);
  return it == reduce.end() ? 0 : plan.reduce_min(it - reduce.begin());
}

AxisValues Plans::FindAxisValues(const StagePlan& plan, AxisValues values, const AxisData* pinned,
                                 Expr pinned_value) const {
  const auto& relations = plan.data().relations;
  for (auto it = relations.rbegin(); it != relations.rend(); ++it) {
    const int64_t inner_extent = plan.extents.at(it->inner);
    if (it->kind == AxisRelation::Kind::kFuse) {
      // The loop does not run if the inner extent is 0.
      const Expr divisor = context.Int(index_type, std::max<int64_t>(1, inner_extent));
      const Expr fused = values.at(it->parent);
      values[it->outer] = inner_extent == 1 ? fused : fused / divisor;
      values[it->inner] = inner_extent == 1 ? context.Int(index_type, 0) : fused % divisor;
    } else if (it->parent == pinned) {
      values[it->parent] = pinned_value;
    } else if (it->kind == AxisRelation::Kind::kRotate) {
      const Expr place =
          ToExpr(Decompose(values.at(it->inner)) + Decompose(values.at(it->outer)) * it->amount);
      values[it->parent] =
          inner_extent <= 1 ? values.at(it->inner) : place % context.Int(index_type, inner_extent);
    } else {
      values[it->parent] =
          ToExpr(Decompose(values.at(it->outer)) * inner_extent + Decompose(values.at(it->inner)) -
                 LinearForm::Constant(it->before));
    }
  }
  return values;
}

Expr Plans::Coordinate(const StagePlan& plan, const AxisValues& values, size_t d) const {
  const Expr value = values.at(plan.data().spatial[d]);
  const LinearForm& start = plan.start[d];
  if (start == LinearForm()) return value;
  return ToExpr(start + Decompose(value));
}

Expr Plans::ReduceValue(const StagePlan& plan, const AxisValues& values, size_t i) const {
  const AxisData* axis = plan.data().reduce[i];
  const Expr value = values.at(axis);
  // An axis that is still a loop runs from its own minimum.
  if (plan.leaf_vars.contains(axis) || plan.reduce_min(i) == 0) return value;
  return value + context.Int(index_type, plan.reduce_min(i));
}

ir::VarMap Plans::BodyVars(const StagePlan& plan, const AxisValues& values) const {
  ir::VarMap vars;
  for (size_t d = 0; d < plan.data().axes.size(); ++d) {
    vars[plan.data().axes[d]] = Coordinate(plan, values, d);
  }
  for (size_t i = 0; i < plan.data().reduce.size(); ++i) {
    vars[plan.bodies[0].axes[i]] = ReduceValue(plan, values, i);
  }
  return vars;
}

}  // namespace polynao::te
