#include "compiler/poly/card/merged_axes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/stage_graph.h"

namespace polynao::poly {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;

class AxisMerger {
 public:
  AxisMerger(ir::Context& c, std::vector<NestStage>& stages) : c_(c), stages_(stages) {}

  std::vector<std::pair<Buffer, Buffer>> Run() {
    for (const NestStage& stage : stages_) {
      Joins& axes = axes_.emplace_back(stage.axes.empty() ? 0 : stage.axes.size() - 1, true);
      AddBuffer(stage.target);
      for (const Buffer read : ReadsOf(stage)) AddBuffer(read);
      if (!IsWhole(stage)) axes.assign(axes.size(), false);
    }
    // What one stage keeps apart, others keep apart too.
    for (changed_ = true; changed_;) {
      changed_ = false;
      for (size_t s = 0; s < stages_.size(); ++s) Check(s);
    }
    for (size_t s = 0; s < stages_.size(); ++s) Rewrite(s);
    return views_;
  }

 private:
  // Whether dimension d and the next one become one.
  using Joins = std::vector<bool>;

  void AddBuffer(Buffer buffer) {
    const size_t rank = buffer->extents.size();
    dimensions_.try_emplace(buffer, rank == 0 ? 0 : rank - 1, true);
  }

  void KeepApart(Joins& joins, size_t d) {
    changed_ = changed_ || joins[d];
    joins[d] = false;
  }

  // The axis that an index is; none: the number of axes.
  static size_t AxisOf(const NestStage& stage, Expr index) {
    return std::find(stage.axes.begin(), stage.axes.end(), index) - stage.axes.begin();
  }

  void Check(size_t s) {
    const NestStage& stage = stages_[s];
    Joins& stored = dimensions_.at(stage.target);
    for (size_t d = 0; d < axes_[s].size(); ++d) {
      if (!axes_[s][d]) KeepApart(stored, d);
      if (!stored[d]) KeepApart(axes_[s], d);
    }
    for (const Expr e : {stage.value, stage.element}) {
      if (e) CheckExpression(s, e);
    }
  }

  void CheckExpression(size_t s, Expr e) {
    if (e.Is(ExprKind::kLoad)) {
      CheckLoad(s, e);
      return;
    }
    KeepAxesApart(s, e);
    for (Expr operand : e.operands()) CheckExpression(s, operand);
  }

  // An axis that is used by itself.
  void KeepAxesApart(size_t s, Expr e) {
    const size_t axis = AxisOf(stages_[s], e);
    if (axis == stages_[s].axes.size()) return;
    if (axis > 0) KeepApart(axes_[s], axis - 1);
    if (axis < axes_[s].size()) KeepApart(axes_[s], axis);
  }

  void CheckLoad(size_t s, Expr load) {
    const NestStage& stage = stages_[s];
    const Buffer buffer(load.buffer());
    Joins& joins = dimensions_.at(buffer);
    const te::Shape shape = ShapeOf(buffer);
    const size_t none = stage.axes.size(), rank = load.operands().size();
    std::vector<size_t> axis;
    for (Expr index : load.operands()) {
      axis.push_back(AxisOf(stage, index));
      if (axis.back() == none) CheckExpression(s, index);
    }
    std::vector<bool> are_pairs(rank);  // index d and the next one
    for (size_t d = 0; d + 1 < rank; ++d) {
      are_pairs[d] = axis[d] < axes_[s].size() && axis[d + 1] == axis[d] + 1 &&
                     shape[d] == stage.extents[axis[d]] &&
                     shape[d + 1] == stage.extents[axis[d + 1]];
      if (!are_pairs[d] || !axes_[s][axis[d]]) KeepApart(joins, d);
      if (are_pairs[d] && !joins[d]) KeepApart(axes_[s], axis[d]);
    }
    for (size_t d = 0; d < rank; ++d) {
      if (axis[d] == none) continue;
      if ((d == 0 || !are_pairs[d - 1]) && axis[d] > 0) KeepApart(axes_[s], axis[d] - 1);
      if (!are_pairs[d] && axis[d] < axes_[s].size()) KeepApart(axes_[s], axis[d]);
    }
  }

  // The buffer with its dimensions joined.
  Buffer Merged(Buffer buffer) {
    const auto it = merged_.find(buffer);
    if (it != merged_.end()) return it->second;
    const Joins& joins = dimensions_.at(buffer);
    std::vector<Expr> extents;
    for (size_t d = 0; d < buffer->extents.size(); ++d) {
      const Expr extent = buffer->extents[d];
      if (d > 0 && joins[d - 1]) {
        extents.back() = c_.Int(extent.type(), extents.back().int_value() * extent.int_value());
      } else {
        extents.push_back(extent);
      }
    }
    Buffer merged = buffer;
    if (extents.size() < buffer->extents.size()) {
      merged = c_.NewBuffer(buffer->name, buffer->type, extents);
      views_.emplace_back(merged, buffer);
    }
    return merged_[buffer] = merged;
  }

  void Rewrite(size_t s) {
    NestStage& stage = stages_[s];
    const NestStage old = stage;
    const Buffer target = stage.target;
    ir::VarMap by;  // the first axis of several as the one that they become
    stage.axes.clear(), stage.low.clear(), stage.extents.clear();
    for (size_t d = 0; d < old.axes.size(); ++d) {
      if (d > 0 && axes_[s][d - 1]) {
        stage.extents.back() *= old.extents[d];
        continue;
      }
      stage.axes.push_back(c_.NewVar(old.axes[d].name(), old.axes[d].type()));
      stage.low.push_back(old.low[d]);
      stage.extents.push_back(old.extents[d]);
      by[old.axes[d]] = stage.axes.back();
    }
    stage.target = Merged(target);
    for (Expr* e : {&stage.value, &stage.element}) {
      if (*e) *e = ir::Substitute(WithMergedLoads(*e), by);
    }
  }

  Expr WithMergedLoads(Expr e) {
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(WithMergedLoads(operand));
    if (!e.Is(ExprKind::kLoad)) return operands.empty() ? e : c_.Rebuild(e, operands);
    const Buffer buffer(e.buffer());
    const Joins& joins = dimensions_.at(buffer);
    std::vector<Expr> indices;
    for (size_t d = 0; d < operands.size(); ++d) {
      if (d == 0 || !joins[d - 1]) indices.push_back(operands[d]);
    }
    return c_.Load(Merged(buffer), indices);
  }

  ir::Context& c_;
  std::vector<NestStage>& stages_;
  std::vector<Joins> axes_;  // of each stage
  absl::flat_hash_map<Buffer, Joins> dimensions_;
  absl::flat_hash_map<Buffer, Buffer> merged_;
  std::vector<std::pair<Buffer, Buffer>> views_;
  bool changed_ = false;
};

}  // namespace

std::vector<std::pair<Buffer, Buffer>> MergeAxes(ir::Context& c, std::vector<NestStage>& stages) {
  return AxisMerger(c, stages).Run();
}

}  // namespace polynao::poly
