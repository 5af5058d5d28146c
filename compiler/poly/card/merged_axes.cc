#include "compiler/poly/card/merged_axes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
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
    for (NestStage& stage : stages_) {
      SortRanges(stage);
      const size_t axes = stage.axes.size(), variables = axes + stage.ranges.size();
      Joins& joins = joins_.emplace_back(variables == 0 ? 0 : variables - 1, true);
      AddBuffer(stage.target);
      for (const Buffer read : ReadsOf(stage)) AddBuffer(read);
      if (!IsWhole(stage)) std::fill_n(joins.begin(), std::min(axes, joins.size()), false);
      if (axes > 0 && axes < variables) joins[axes - 1] = false;
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
  // Whether each dimension or variable and the next one become one. A stage's variables are its axes, then its ranges.
  using Joins = std::vector<bool>;

  void AddBuffer(Buffer buffer) {
    const size_t rank = buffer->extents.size();
    dimensions_.try_emplace(buffer, rank == 0 ? 0 : rank - 1, true);
  }

  void KeepApart(Joins& joins, size_t d) {
    changed_ = changed_ || joins[d];
    joins[d] = false;
  }

  static size_t VariablesOf(const NestStage& stage) {
    return stage.axes.size() + stage.ranges.size();
  }
  // The variable that an index is; none: the number of variables.
  static size_t VariableOf(const NestStage& stage, Expr index) {
    const auto axis = std::find(stage.axes.begin(), stage.axes.end(), index);
    if (axis != stage.axes.end()) return axis - stage.axes.begin();
    const auto range =
        std::find_if(stage.ranges.begin(), stage.ranges.end(),
                     [&](const NestStage::ReduceRange& r) { return r.var == index; });
    return stage.axes.size() + (range - stage.ranges.begin());
  }
  static bool IsWholeOf(const NestStage& stage, size_t variable, int64_t extent) {
    const size_t axes = stage.axes.size();
    if (variable < axes) return stage.extents[variable] == extent;
    const NestStage::ReduceRange& range = stage.ranges[variable - axes];
    return range.min == 0 && range.extent == extent;
  }

  // Ranges, whose order is free, in the order of dimensions: those that are indices of the first load. Others stay
  // where they are.
  static void SortRanges(NestStage& stage) {
    if (!stage.reduction) return;
    Expr first;
    ir::ForEachExpr(stage.element, [&](Expr e) {
      if (e.Is(ExprKind::kLoad) && !first) first = e;
    });
    std::vector<size_t> places;
    std::vector<NestStage::ReduceRange> sorted;
    for (size_t r = 0; first && r < stage.ranges.size(); ++r) {
      const absl::Span<const Expr> indices = first.operands();
      if (std::find(indices.begin(), indices.end(), stage.ranges[r].var) != indices.end()) {
        places.push_back(r);
      }
    }
    for (size_t d = 0; first && d < first.operands().size(); ++d) {
      for (const size_t r : places) {
        if (stage.ranges[r].var == first.operand(d)) sorted.push_back(stage.ranges[r]);
      }
    }
    if (sorted.size() != places.size()) return;  // a diagonal
    for (size_t i = 0; i < places.size(); ++i) stage.ranges[places[i]] = sorted[i];
  }

  void Check(size_t s) {
    const NestStage& stage = stages_[s];
    Joins& stored = dimensions_.at(stage.target);
    for (size_t d = 0; d < stored.size(); ++d) {
      if (!joins_[s][d]) KeepApart(stored, d);
      if (!stored[d]) KeepApart(joins_[s], d);
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
    KeepVariableApart(s, e);
    for (Expr operand : e.operands()) CheckExpression(s, operand);
  }

  // A variable that is used by itself.
  void KeepVariableApart(size_t s, Expr e) {
    const size_t variable = VariableOf(stages_[s], e);
    if (variable == VariablesOf(stages_[s])) return;
    if (variable > 0) KeepApart(joins_[s], variable - 1);
    if (variable < joins_[s].size()) KeepApart(joins_[s], variable);
  }

  void CheckLoad(size_t s, Expr load) {
    const NestStage& stage = stages_[s];
    const Buffer buffer(load.buffer());
    Joins &joins = dimensions_.at(buffer), &own = joins_[s];
    const te::Shape shape = ShapeOf(buffer);
    const size_t none = VariablesOf(stage), rank = load.operands().size();
    std::vector<size_t> variable;
    for (Expr index : load.operands()) {
      variable.push_back(VariableOf(stage, index));
      if (variable.back() == none) CheckExpression(s, index);
    }
    std::vector<bool> are_pairs(rank);  // index d and the next one
    for (size_t d = 0; d + 1 < rank; ++d) {
      are_pairs[d] = variable[d] < own.size() && variable[d + 1] == variable[d] + 1 &&
                     IsWholeOf(stage, variable[d], shape[d]) &&
                     IsWholeOf(stage, variable[d + 1], shape[d + 1]);
      if (!are_pairs[d] || !own[variable[d]]) KeepApart(joins, d);
      if (are_pairs[d] && !joins[d]) KeepApart(own, variable[d]);
    }
    for (size_t d = 0; d < rank; ++d) {
      if (variable[d] == none) continue;
      if ((d == 0 || !are_pairs[d - 1]) && variable[d] > 0) KeepApart(own, variable[d] - 1);
      if (!are_pairs[d] && variable[d] < own.size()) KeepApart(own, variable[d]);
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
      if (d > 0 && joins_[s][d - 1]) {
        stage.extents.back() *= old.extents[d];
        continue;
      }
      stage.axes.push_back(c_.NewVar(old.axes[d].name(), old.axes[d].type()));
      stage.low.push_back(old.low[d]);
      stage.extents.push_back(old.extents[d]);
      by[old.axes[d]] = stage.axes.back();
    }
    stage.ranges.clear();
    for (size_t r = 0; r < old.ranges.size(); ++r) {
      const size_t variable = old.axes.size() + r;
      if (r > 0 && joins_[s][variable - 1]) {
        stage.ranges.back().extent *= old.ranges[r].extent;
      } else {
        stage.ranges.push_back(old.ranges[r]);
      }
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
  std::vector<Joins> joins_;  // of each stage
  absl::flat_hash_map<Buffer, Joins> dimensions_;
  absl::flat_hash_map<Buffer, Buffer> merged_;
  std::vector<std::pair<Buffer, Buffer>> views_;
  bool changed_ = false;
};

class DigitSplitter {
 public:
  DigitSplitter(ir::Context& c, std::vector<NestStage>& stages) : c_(c), stages_(stages) {}

  std::vector<std::pair<Buffer, Buffer>> Run() {
    for (const NestStage& stage : stages_) stored_.insert(stage.target);
    for (NestStage& stage : stages_) {
      for (Expr* e : {&stage.value, &stage.element}) {
        if (*e) *e = InStage(stage, *e);
      }
    }
    return std::move(views_);
  }

 private:
  struct Digit {
    Expr var;
    int64_t extent;
  };

  // The outermost first; empty if the index is no such number.
  static std::vector<Digit> DigitsOf(const NestStage& stage, Expr index, int64_t extent) {
    const arith::LinearForm form = arith::Decompose(index);
    if (form.terms().size() < 2 || form.constant() != 0) return {};
    std::vector<arith::LinearForm::Term> terms(form.terms().begin(), form.terms().end());
    std::sort(terms.begin(), terms.end(),
              [](const auto& a, const auto& b) { return a.coefficient < b.coefficient; });
    std::vector<Digit> digits;
    int64_t radix = 1;
    for (const arith::LinearForm::Term& term : terms) {
      const std::optional<NestStage::ReduceRange> loop = LoopOf(stage, term.atom);
      if (!loop || loop->min != 0 || term.coefficient != radix) return {};
      digits.insert(digits.begin(), {term.atom, loop->extent});
      radix *= loop->extent;
    }
    return radix == extent ? digits : std::vector<Digit>();
  }

  // Windows that lie side by side, X[2 * y + r], stay windows, if the place in a window does not go on into the next
  // dimension.
  static bool IsOfUse(const NestStage& stage, const std::vector<Digit>& digits, Expr next) {
    const auto is_axis = [&](Expr var) {
      return std::find(stage.axes.begin(), stage.axes.end(), var) != stage.axes.end();
    };
    const bool is_last_axis = is_axis(digits.back().var);
    const bool are_alike = std::all_of(digits.begin(), digits.end(), [&](const Digit& digit) {
      return is_axis(digit.var) == is_last_axis;
    });
    return are_alike || (next && LoopOf(stage, next) && is_axis(next) == is_last_axis);
  }

  Expr InStage(const NestStage& stage, Expr e) {
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(InStage(stage, operand));
    if (!e.Is(ExprKind::kLoad)) return operands.empty() ? e : c_.Rebuild(e, operands);
    const Buffer buffer(e.buffer());
    if (stored_.contains(buffer)) return c_.Rebuild(e, operands);
    const te::Shape shape = ShapeOf(buffer);
    std::vector<Expr> indices, extents;
    for (size_t d = 0; d < operands.size(); ++d) {
      std::vector<Digit> digits = DigitsOf(stage, operands[d], shape[d]);
      const Expr next = d + 1 < operands.size() ? operands[d + 1] : Expr();
      if (!digits.empty() && !IsOfUse(stage, digits, next)) digits.clear();
      for (const Digit& digit : digits) {
        indices.push_back(digit.var);
        extents.push_back(c_.Int(digit.var.type(), digit.extent));
      }
      if (!digits.empty()) continue;
      indices.push_back(operands[d]);
      extents.push_back(buffer->extents[d]);
    }
    if (indices.size() == operands.size()) return c_.Rebuild(e, operands);
    const auto is_it = [&](const auto& view) {
      return view.second == buffer && view.first->extents == extents;
    };
    auto view = std::find_if(views_.begin(), views_.end(), is_it);
    if (view == views_.end()) {
      views_.emplace_back(c_.NewBuffer(buffer->name, buffer->type, extents), buffer);
      view = views_.end() - 1;
    }
    return c_.Load(view->first, indices);
  }

  ir::Context& c_;
  std::vector<NestStage>& stages_;
  absl::flat_hash_set<Buffer> stored_;
  std::vector<std::pair<Buffer, Buffer>> views_;
};

}  // namespace

std::vector<std::pair<Buffer, Buffer>> SplitDigits(ir::Context& c, std::vector<NestStage>& stages) {
  return DigitSplitter(c, stages).Run();
}

std::vector<std::pair<Buffer, Buffer>> MergeAxes(ir::Context& c, std::vector<NestStage>& stages) {
  return AxisMerger(c, stages).Run();
}

}  // namespace polynao::poly
