#include "compiler/poly/card/sum_windows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/logic.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/iteration_box.h"

namespace polynao::poly {
namespace {

using arith::LinearForm;
using ir::Expr;
using ir::ExprKind;

class WindowTaker {
 public:
  WindowTaker(ir::Context& c, NestStage& stage) : c_(c), stage_(stage) {}

  // The stages of the windows that were taken out of the reduction.
  std::vector<NestStage> Run() {
    // By itself an element under a condition is read where it stands.
    const Expr whole = stage_.element;
    const bool is_read = whole.Is(ExprKind::kSelect) && whole.operand(1).Is(ExprKind::kLoad);
    if (!is_read) stage_.element = Taken(whole);
    return std::move(windows_);
  }

 private:
  // x * 2 + i of axes and ranges: an axis of a window.
  struct Place {
    LinearForm form;
    int64_t least, extent;
    ir::Var axis;
  };

  Expr Taken(Expr e) {
    if (e.Is(ExprKind::kSelect) && e.operand(2).IsConst()) {
      if (const std::optional<Expr> load = Window(e)) return *load;
    }
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) {
      operands.push_back(e.Is(ExprKind::kLoad) ? operand : Taken(operand));
    }
    return operands.empty() ? e : c_.Rebuild(e, operands);
  }

  // Whether each index is one of the places, plus a number; adds them. None shares a variable with another one: then
  // all combinations of them are read.
  bool FindPlaces(Expr e) {
    bool are_places = true;
    std::vector<Expr> seen;
    ir::ForEachExpr(e, [&](Expr part) {
      if (!part.Is(ExprKind::kLoad)) return;
      for (Expr index : part.operands()) are_places = are_places && AddPlace(index);
    });
    for (const Place& place : places_) {
      for (const LinearForm::Term& term : place.form.terms()) {
        if (std::count(seen.begin(), seen.end(), term.atom) > 0) return false;
        seen.push_back(term.atom);
      }
    }
    return are_places && !places_.empty();
  }

  bool AddPlace(Expr index) {
    LinearForm form = arith::Decompose(index);
    if (!form.AddConstant(-form.constant())) return false;
    const auto is_it = [&](const Place& place) { return place.form == form; };
    if (form.IsConstant() || std::any_of(places_.begin(), places_.end(), is_it)) return true;
    Place place = {.form = form, .least = 0, .extent = 1, .axis = {}};
    // The variables, the one of the smallest steps first: each steps no further than what those before it reach.
    std::vector<LinearForm::Term> terms(form.terms().begin(), form.terms().end());
    std::sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) {
      return std::abs(a.coefficient) < std::abs(b.coefficient);
    });
    for (const LinearForm::Term& term : terms) {
      const std::optional<NestStage::ReduceRange> loop = LoopOf(stage_, term.atom);
      const int64_t step = std::abs(term.coefficient);
      if (!loop || step > place.extent) return false;
      const int64_t last = loop->min + loop->extent - 1;
      place.least += term.coefficient * (term.coefficient > 0 ? loop->min : last);
      place.extent += step * (loop->extent - 1);
    }
    place.axis = c_.NewVar(ir::Var(terms.back().atom).name(), index.type());
    places_.push_back(std::move(place));
    return true;
  }

  // A form as one of the windows' axes; none if it is no sum of places.
  std::optional<LinearForm> InWindow(LinearForm form) const {
    LinearForm result = LinearForm::Constant(form.constant());
    for (const Place& place : places_) {
      const LinearForm::Term& first = place.form.terms()[0];
      const int64_t factor = form.CoefficientOf(first.atom) / first.coefficient;
      if (factor == 0) continue;
      if (!form.Add(place.form, -factor) || !result.AddTerm(place.axis, factor) ||
          !result.AddConstant(factor * place.least)) {
        return std::nullopt;
      }
    }
    return form.IsConstant() ? std::optional(result) : std::nullopt;
  }

  // A comparison of sums over the windows' axes, a number alone on its side.
  std::optional<Expr> ComparisonInWindow(Expr e) const {
    if (!e.Is(ExprKind::kLe) && !e.Is(ExprKind::kLt)) return std::nullopt;
    const ir::Type type = e.operand(0).type();
    LinearForm difference = arith::Decompose(e.operand(1));
    if (!difference.Add(arith::Decompose(e.operand(0)), -1)) return std::nullopt;
    // a < b is 0 <= b - a - 1.
    if (e.Is(ExprKind::kLt) && !difference.AddConstant(-1)) return std::nullopt;
    const std::optional<LinearForm> form = InWindow(difference);
    return form ? std::optional(IsNotNegative(*form, type, c_)) : std::nullopt;
  }

  // The value over the windows' axes.
  std::optional<Expr> ValueInWindow(Expr e) const {
    if (e.Is(ExprKind::kVar)) return std::nullopt;
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) {
      if (!e.Is(ExprKind::kLoad)) {
        const std::optional<Expr> part = ValueInWindow(operand);
        if (!part) return std::nullopt;
        operands.push_back(*part);
        continue;
      }
      const std::optional<LinearForm> form = InWindow(arith::Decompose(operand));
      if (!form) return std::nullopt;
      operands.push_back(arith::SumExpr(c_, operand.type(), form->terms(), form->constant()));
    }
    return operands.empty() ? e : c_.Rebuild(e, operands);
  }

  std::optional<Expr> Window(Expr select) {
    places_.clear();
    if (!FindPlaces(select.operand(1))) return std::nullopt;
    Expr condition;
    for (const Expr e : arith::Conjuncts(select.operand(0))) {
      const std::optional<Expr> part = ComparisonInWindow(e);
      if (!part) return std::nullopt;
      condition = condition ? ir::And(condition, *part) : *part;
    }
    const std::optional<Expr> value = ValueInWindow(select.operand(1));
    if (!value || !condition) return std::nullopt;
    NestStage window = {.name = StrCat(stage_.name, ".window"),
                        .place = stage_.place,
                        .target = {},
                        .axes = {},
                        .low = {},
                        .extents = {},
                        .value = c_.Select(condition, *value, select.operand(2))};
    std::vector<Expr> extents, indices;
    for (const Place& place : places_) {
      window.axes.push_back(place.axis);
      window.low.push_back(0);
      window.extents.push_back(place.extent);
      extents.push_back(c_.Int(place.axis.type(), place.extent));
      indices.push_back(arith::SumExpr(c_, place.axis.type(), place.form.terms(), -place.least));
    }
    window.target = c_.NewBuffer(StrCat(stage_.target->name, ".window"), select.type(), extents);
    windows_.push_back(window);
    return c_.Load(window.target, indices);
  }

  ir::Context& c_;
  NestStage& stage_;
  std::vector<Place> places_;
  std::vector<NestStage> windows_;
};

}  // namespace

void RunForwards(NestStage& stage) {
  for (const NestStage::ReduceRange& range : stage.ranges) {
    bool runs_backwards = false;
    ir::ForEachExpr(stage.element, [&](Expr part) {
      if (!part.Is(ExprKind::kLoad)) return;
      for (Expr index : part.operands()) {
        const LinearForm form = arith::Decompose(index);
        if (form.CoefficientOf(range.var) >= 0) continue;
        for (const LinearForm::Term& term : form.terms()) {
          const bool is_axis =
              std::find(stage.axes.begin(), stage.axes.end(), term.atom) != stage.axes.end();
          runs_backwards = runs_backwards || (is_axis && term.coefficient > 0);
        }
      }
    });
    if (!runs_backwards) continue;
    const Expr last = range.var.context().Int(range.var.type(), 2 * range.min + range.extent - 1);
    stage.element = ir::Substitute(stage.element, {{range.var, last - range.var}});
  }
}

void TakeWindowsOut(ir::Context& c, NestStages& stages) {
  std::vector<NestStage> list;
  for (NestStage& stage : stages.list) {
    if (stage.reduction) {
      for (NestStage& window : WindowTaker(c, stage).Run()) {
        stages.locals.push_back(window.target);
        list.push_back(std::move(window));
      }
    }
    list.push_back(std::move(stage));
  }
  stages.list = std::move(list);
}

}  // namespace polynao::poly
