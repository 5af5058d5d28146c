#include "compiler/poly/card/stage_graph.h"

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/shapes.h"

namespace polynao::poly {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;

namespace {

std::shared_ptr<te::GraphState> NewState(const ir::Function& function, ir::Type index_type) {
  auto state = std::make_shared<te::GraphState>();
  state->name = function.name;
  state->context = function.context;
  state->index_type = index_type;
  return state;
}
std::string NameOf(const NestStage& stage) { return stage.target->name; }

// Whether what a stage stores has gaps in its target.
bool StandsApart(const NestStage& stage) {
  const te::Shape whole = ShapeOf(stage.target);
  bool has_several = false;
  for (size_t d = 0; d < stage.extents.size(); ++d) {
    if (has_several && stage.extents[d] != whole[d]) return true;
    has_several = has_several || stage.extents[d] > 1;
  }
  return false;
}

}  // namespace

te::Shape ShapeOf(Buffer buffer) {
  te::Shape shape;
  for (Expr extent : buffer->extents) {
    const absl::StatusOr<int64_t> number = ir::EvaluateInt(extent, {});
    shape.push_back(number.ok() ? *number : -1);
  }
  if (shape.empty()) shape.push_back(1);  // one element
  return shape;
}

StageGraph::StageGraph(const ir::Function& function, ir::Type index_type)
    : state_(NewState(function, index_type)), g_(state_) {}

void StageGraph::Add(const NestStage& stage) {
  const auto at = [&](const te::Axes& axes, ir::VarMap& by) {
    for (size_t d = 0; d < stage.axes.size(); ++d) by[stage.axes[d]] = axes[d];
  };
  const te::Shape extents = stage.extents.empty() ? te::Shape{1} : stage.extents;
  te::Tensor tensor;
  if (stage.reduction) {
    const te::Reducer reducer = *stage.reduction == ExprKind::kAdd   ? te::Reducer::kSum
                                : *stage.reduction == ExprKind::kMin ? te::Reducer::kMin
                                                                     : te::Reducer::kMax;
    const std::string name = stage.value ? StrCat(stage.name, ".all") : NameOf(stage);
    tensor = g_.Compute(name, extents, [&](const te::Axes& axes) {
      ir::VarMap by;
      at(axes, by);
      std::vector<te::ReduceAxis> over;
      for (const NestStage::ReduceRange& range : stage.ranges) {
        over.push_back(g_.ReduceAxisOf(range.var.name(), range.min, range.extent));
        by[range.var] = over.back();
      }
      return te::Body(reducer, Value(stage.element, by), over);
    });
    if (stage.value) {
      const te::Tensor all = tensor;
      tensor = g_.Compute(NameOf(stage), extents, [&](const te::Axes& axes) {
        ir::VarMap by;
        at(axes, by);
        const Expr start = Value(stage.value, by);
        return start.context().Binary(*stage.reduction, start, all(axes));
      });
    }
  } else {
    tensor = g_.Compute(NameOf(stage), extents, [&](const te::Axes& axes) {
      ir::VarMap by;
      at(axes, by);
      return Value(stage.value, by);
    });
  }
  computed_[stage.target] = {tensor, &stage};
  output_ = tensor;
  state_->within = StandsApart(stage) ? ShapeOf(stage.target) : te::Shape();
}

Expr StageGraph::Value(Expr e, const ir::VarMap& by) {
  if (e.Is(ExprKind::kVar)) {
    // A loop may have a variable of another type than the graph's axes.
    const auto it = by.find(e);
    if (it == by.end() || it->second.type() == e.type()) return it == by.end() ? e : it->second;
    return e.context().Cast(e.type(), it->second);
  }
  std::vector<Expr> operands;
  for (Expr operand : e.operands()) {
    const auto it = e.Is(ExprKind::kLoad) ? by.find(operand) : by.end();
    operands.push_back(it == by.end() ? Value(operand, by) : it->second);
  }
  if (!e.Is(ExprKind::kLoad)) {
    return operands.empty() ? e : e.context().Rebuild(e, operands);
  }
  const Buffer buffer(e.buffer());
  if (operands.empty()) operands.push_back(g_.context().Int(g_.index_type(), 0));
  if (const auto it = computed_.find(buffer); it != computed_.end()) {
    const auto& [tensor, stage] = it->second;
    for (size_t d = 0; d < stage->low.size(); ++d) {
      if (stage->low[d] != 0) operands[d] = operands[d] - stage->low[d];
    }
    return tensor(operands);
  }
  auto [it, is_new] = placeholders_.try_emplace(buffer);
  if (is_new) {
    it->second = g_.Placeholder(buffer->name, ShapeOf(buffer), buffer->type);
    inputs_.push_back(buffer);
  }
  return it->second(operands);
}

absl::Status PlaceBox(const NestStage& stage, const te::Shape& shape, te::Renamed& place) {
  const te::Shape whole = ShapeOf(stage.target);
  std::vector<int64_t> strides(whole.size(), 1);
  for (size_t d = whole.size(); d-- > 1;) strides[d - 1] = strides[d] * whole[d];
  for (size_t d = 0; d < whole.size(); ++d) place.offset += stage.low[d] * strides[d];
  // A dimension of the shape is one of the box, or several that stand one in the other without gaps.
  size_t d = whole.size();
  place.strides.assign(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 0;) {
    int64_t elements = 1;
    while (elements < shape[k] && d > 0) {
      --d;
      if (stage.extents[d] == 1) continue;
      if (elements == 1) place.strides[k] = strides[d];
      if (elements * place.strides[k] != strides[d]) break;
      elements *= stage.extents[d];
    }
    if (elements != shape[k]) {
      return InvalidInput("'", stage.place, "': expected a store of whole rows");
    }
  }
  return absl::OkStatus();
}

}  // namespace polynao::poly
