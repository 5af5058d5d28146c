#include "compiler/poly/card/axis_values.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;

class ValueTaker {
 public:
  ValueTaker(ir::Context& c, NestStages& stages) : c_(c), stages_(stages) {}

  void Run() {
    for (NestStage& stage : stages_.list) {
      const bool computes = stage.reduction || HasLoads(stage.value);
      if (computes) {
        for (Expr* e : {&stage.value, &stage.element}) {
          if (*e) *e = Taken(stage, *e);
        }
      }
      list_.push_back(std::move(stage));
    }
    stages_.list = std::move(list_);
  }

 private:
  static constexpr int64_t kMostValues = 1 << 16;

  // The loop that an expression without loads depends on, if it is one, and all values exist: a condition around it may
  // leave out a division by 0.
  static std::optional<NestStage::ReduceRange> OnlyLoopOf(const NestStage& stage, Expr e) {
    const absl::flat_hash_set<ir::Var> vars = ir::FreeVars(e);
    if (vars.size() != 1 || HasLoads(e) || !IsDefined(e, stage)) return std::nullopt;
    return LoopOf(stage, *vars.begin());
  }

  Expr Taken(const NestStage& stage, Expr e) {
    if (e.Is(ExprKind::kLoad) || e.IsConst()) return e;
    const bool is_condition = e.type() == ir::Type::kI1;
    if (is_condition && !HasLoads(e)) return e;
    const auto loop = is_condition ? std::nullopt : OnlyLoopOf(stage, e);
    if (loop && loop->extent <= kMostValues) return ValueOf(*loop, e);
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(Taken(stage, operand));
    return operands.empty() ? e : c_.Rebuild(e, operands);
  }

  // A load of the tensor of all values of `e`.
  Expr ValueOf(const NestStage::ReduceRange& loop, Expr e) {
    const ir::Type type = loop.var.type();
    Expr& any = any_[type];
    if (!any) any = c_.NewVar("value", type);
    const std::string key = StrCat(ir::Print(ir::Substitute(e, {{loop.var, any}})), " from ",
                                   loop.min, " to ", loop.extent, " ", ir::TypeName(e.type()));
    Buffer& values = values_[key];
    if (!values) {
      values =
          c_.NewBuffer(StrCat(loop.var.name(), ".values"), e.type(), {c_.Int(type, loop.extent)});
      const ir::Var axis = c_.NewVar(loop.var.name(), type);
      stages_.locals.push_back(values);
      list_.push_back(
          {.name = StrCat(loop.var.name(), list_.size()),
           .place = StrCat(loop.var.name(), ".values = ", ir::Print(e)),
           .target = values,
           .axes = {axis},
           .low = {0},
           .extents = {loop.extent},
           .value = ir::Substitute(e, {{loop.var, loop.min == 0 ? Expr(axis) : axis + loop.min}})});
    }
    return c_.Load(values, {loop.min == 0 ? Expr(loop.var) : loop.var - loop.min});
  }

  ir::Context& c_;
  NestStages& stages_;
  std::vector<NestStage> list_;
  absl::flat_hash_map<ir::Type, Expr> any_;
  absl::flat_hash_map<std::string, Buffer> values_;
};

}  // namespace

void TakeAxisValuesOut(ir::Context& c, NestStages& stages) { ValueTaker(c, stages).Run(); }

}  // namespace polynao::poly
