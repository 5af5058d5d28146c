#include "compiler/poly/card/interleaved.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/merged_axes.h"
#include "compiler/poly/card/stage_graph.h"
#include "isa/granularity.h"

namespace polynao::poly {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;
using ir::Var;

class Deinterleaver {
 public:
  Deinterleaver(ir::Context& c, std::vector<NestStage> stages)
      : c_(c), stages_(std::move(stages)) {}

  std::optional<Deinterleaved> Run() {
    SplitStrides();
    for (const auto& view : MergeAxes(c_, stages_)) views_.push_back(view);
    if (!std::any_of(stages_.begin(), stages_.end(), HasStrides)) return std::nullopt;
    FindTurned();
    const Buffer output = stages_.back().target;
    if (inputs_.empty() && !turned_.contains(output)) return std::nullopt;
    std::vector<NestStage> list;
    for (const Buffer input : inputs_) {
      list.push_back(Copy(StrCat(input->name, ".turned"), input, turned_.at(input)));
    }
    for (NestStage& stage : stages_) list.push_back(Turned(std::move(stage)));
    if (const auto it = turned_.find(output); it != turned_.end()) {
      list.push_back(Copy(StrCat(list.back().name, ".turned"), it->second, output));
    }
    return Deinterleaved{.stages = std::move(list), .views = std::move(views_)};
  }

 private:
  template <typename F>
  static void ForEachLoad(const NestStage& stage, const F& f) {
    for (const Expr e : {stage.value, stage.element}) {
      if (!e) continue;
      ir::ForEachExpr(e, [&](Expr part) {
        if (part.Is(ExprKind::kLoad)) f(part);
      });
    }
  }

  // ---- even and odd places as a dimension of their own -------------------------------------------

  void SplitStrides() {
    absl::flat_hash_map<Buffer, int64_t> steps;
    std::vector<Buffer> order;
    for (const NestStage& stage : stages_) {
      ForEachLoad(stage, [&](Expr load) {
        if (load.operands().empty() || stage.axes.empty()) return;
        const int64_t step =
            arith::Decompose(load.operands().back()).CoefficientOf(stage.axes.back());
        const Buffer buffer(load.buffer());
        const int64_t extent = ShapeOf(buffer).back();
        if (step < 2 || step >= isa::kVectorGroup || extent % step != 0 || extent == step) return;
        if (steps.try_emplace(buffer, step).second) order.push_back(buffer);
      });
    }
    for (const NestStage& stage : stages_) steps.erase(stage.target);
    for (const Buffer buffer : order) {
      if (const auto it = steps.find(buffer); it != steps.end()) SplitLast(buffer, it->second);
    }
  }

  // The buffer's last dimension in steps: a place is step * q + r. Not where a read's r is not known to be a place of a
  // step.
  void SplitLast(Buffer buffer, int64_t step) {
    std::vector<Expr> extents(buffer->extents.begin(), buffer->extents.end());
    const ir::Type type = extents.back().type();
    extents.back() = c_.Int(type, extents.back().int_value() / step);
    extents.push_back(c_.Int(type, step));
    const Buffer split = c_.NewBuffer(buffer->name, buffer->type, extents);
    std::vector<NestStage> stages = stages_;
    for (NestStage& stage : stages) {
      for (Expr* e : {&stage.value, &stage.element}) {
        if (!*e) continue;
        *e = WithSplitLoads(stage, *e, buffer, split, step);
        if (!*e) return;
      }
    }
    stages_ = std::move(stages);
    views_.emplace_back(split, buffer);
  }

  Expr WithSplitLoads(const NestStage& stage, Expr e, Buffer from, Buffer to, int64_t step) {
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) {
      operands.push_back(WithSplitLoads(stage, operand, from, to, step));
      if (!operands.back()) return Expr();
    }
    if (!e.Is(ExprKind::kLoad) || !(Buffer(e.buffer()) == from)) {
      return operands.empty() ? e : c_.Rebuild(e, operands);
    }
    const Expr index = operands.back();
    const arith::LinearForm form = arith::Decompose(index);
    std::vector<arith::LinearForm::Term> steps, places;
    const int64_t place = ir::FloorMod(form.constant(), step);
    int64_t least = place, most = place;
    for (arith::LinearForm::Term term : form.terms()) {
      if (term.coefficient % step == 0) {
        term.coefficient /= step;
        steps.push_back(term);
        continue;
      }
      const std::optional<NestStage::ReduceRange> range = RangeOf(stage, term.atom);
      if (!range) return Expr();
      const int64_t first = term.coefficient * range->min;
      const int64_t last = term.coefficient * (range->min + range->extent - 1);
      least += std::min(first, last), most += std::max(first, last);
      places.push_back(term);
    }
    if (least < 0 || most >= step) return Expr();
    operands.back() = arith::SumExpr(c_, index.type(), steps, ir::FloorDiv(form.constant(), step));
    operands.push_back(arith::SumExpr(c_, index.type(), places, place));
    return c_.Load(to, operands);
  }

  static std::optional<NestStage::ReduceRange> RangeOf(const NestStage& stage, Expr atom) {
    for (size_t d = 0; d < stage.axes.size(); ++d) {
      if (stage.axes[d] == atom) return NestStage::ReduceRange{stage.axes[d], 0, stage.extents[d]};
    }
    for (const NestStage::ReduceRange& range : stage.ranges) {
      if (range.var == atom) return range;
    }
    return std::nullopt;
  }

  // ---- which tensors are turned ------------------------------------------------------------------

  // The axis of a stage whose places follow one another in its result.
  static Var InnerAxis(const NestStage& stage) {
    for (size_t d = stage.axes.size(); d-- > 0;) {
      if (stage.extents[d] > 1) return stage.axes[d];
    }
    return Var();
  }

  static bool HasStrides(const NestStage& stage) {
    const Var inner = InnerAxis(stage);
    bool has_strides = false;
    ForEachLoad(stage, [&](Expr load) {
      const bool is_one = load.operands().empty();
      if (!inner || is_one || ir::UsesVar(load.operands().back(), inner)) return;
      has_strides = true;
    });
    return has_strides;
  }

  // Whether the rows of a tensor fill no group of the vector unit, but its columns are longer.
  static bool HasShortRows(Buffer buffer) {
    const te::Shape shape = ShapeOf(buffer);
    const size_t rank = shape.size();
    return rank > 1 && shape[rank - 1] < isa::kVectorGroup && shape[rank - 1] < shape[rank - 2];
  }

  void FindTurned() {
    absl::flat_hash_set<Buffer> targets;
    for (const NestStage& stage : stages_) {
      targets.insert(stage.target);
      if (HasShortRows(stage.target) && IsWhole(stage)) Turn(stage.target);
    }
    // Inputs whose columns stand where the results' rows do then.
    for (const NestStage& stage : stages_) {
      const bool is_turned = turned_.contains(stage.target);
      const Var inner = is_turned ? stage.axes[stage.axes.size() - 2] : InnerAxis(stage);
      ForEachLoad(stage, [&](Expr load) {
        const Buffer buffer(load.buffer());
        if (!inner || targets.contains(buffer) || !HasShortRows(buffer)) return;
        const size_t rank = load.operands().size();
        const bool has_stride = ir::UsesVar(load.operand(rank - 2), inner) &&
                                !ir::UsesVar(load.operand(rank - 1), inner);
        if (has_stride && Turn(buffer)) inputs_.push_back(buffer);
      });
    }
  }

  // Whether it was not turned before.
  bool Turn(Buffer buffer) {
    const auto [it, is_new] = turned_.try_emplace(buffer);
    if (!is_new) return false;
    std::vector<Expr> extents(buffer->extents.begin(), buffer->extents.end());
    Swap(extents);
    it->second = c_.NewBuffer(StrCat(buffer->name, ".turned"), buffer->type, extents);
    return true;
  }

  // ---- the stages over them ----------------------------------------------------------------------

  template <typename List>
  static void Swap(List& list) {
    std::swap(list[list.size() - 1], list[list.size() - 2]);
  }

  // A stage `to` = `from` with the last two indices the other way round.
  NestStage Copy(const std::string& name, Buffer from, Buffer to) {
    NestStage copy = {.name = name,
                      .place = stages_.back().place,
                      .target = to,
                      .axes = {},
                      .low = {},
                      .extents = ShapeOf(to),
                      .value = {}};
    for (const Expr extent : to->extents) copy.axes.push_back(c_.NewVar("i", extent.type()));
    copy.low.resize(copy.axes.size());
    std::vector<Expr> at(copy.axes.begin(), copy.axes.end());
    Swap(at);
    copy.value = c_.Load(from, at);
    return copy;
  }

  NestStage Turned(NestStage stage) {
    for (Expr* e : {&stage.value, &stage.element}) {
      if (*e) *e = WithTurnedLoads(*e);
    }
    const auto it = turned_.find(stage.target);
    if (it == turned_.end()) return stage;
    stage.target = it->second;
    Swap(stage.axes), Swap(stage.low), Swap(stage.extents);
    return stage;
  }

  Expr WithTurnedLoads(Expr e) {
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(WithTurnedLoads(operand));
    const auto it = e.Is(ExprKind::kLoad) ? turned_.find(Buffer(e.buffer())) : turned_.end();
    if (it == turned_.end()) return operands.empty() ? e : c_.Rebuild(e, operands);
    Swap(operands);
    return c_.Load(it->second, operands);
  }

  ir::Context& c_;
  std::vector<NestStage> stages_;
  std::vector<std::pair<Buffer, Buffer>> views_;
  absl::flat_hash_map<Buffer, Buffer> turned_;  // each with its other form
  std::vector<Buffer> inputs_;                  // those that the group does not compute
};

}  // namespace

std::optional<Deinterleaved> Deinterleave(ir::Context& c, std::vector<NestStage> stages) {
  return Deinterleaver(c, std::move(stages)).Run();
}

}  // namespace polynao::poly
