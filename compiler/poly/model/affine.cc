#include "compiler/poly/model/affine.h"

#include <isl/aff.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>

#include <algorithm>

#include "absl/strings/ascii.h"

#include "base/check.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

namespace {

bool IsExact(Type type) { return type == Type::kI32 || type == Type::kI64; }

// Whether `to` holds every value of `from`.
bool Holds(Type to, Type from) {
  if (!ir::IsIndexable(to) || !ir::IsIndexable(from)) return false;
  return ir::LeastInt(to) <= ir::LeastInt(from) && ir::GreatestInt(from) <= ir::GreatestInt(to);
}

isl::val Number(isl::ctx ctx, int64_t value) {
  return isl::manage(isl_val_int_from_si(ctx.get(), value));
}

}  // namespace

Expr Widen(Expr e, const absl::flat_hash_map<ir::Var, Expr>& wide) {
  ir::Context& c = e.context();
  if (const auto it = wide.find(e); it != wide.end()) return it->second;
  if (e.Is(ExprKind::kIntImm) && ir::IsIndexable(e.type())) return c.I64(e.int_value());
  // What a cast from i64 to a narrower type gives is the same number here: it does not wrap.
  if (e.Is(ExprKind::kCast) && Holds(e.type(), e.operand(0).type())) {
    return Widen(e.operand(0), wide);
  }
  bool is_arithmetic = false;
  switch (e.kind()) {
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMul:
      is_arithmetic = IsExact(e.type());
      break;
    case ExprKind::kMin:
    case ExprKind::kMax:
      is_arithmetic = ir::IsIndexable(e.type());
      break;
    case ExprKind::kDiv:
    case ExprKind::kMod:
      // The least value by -1 wraps.
      is_arithmetic = ir::IsIndexable(e.type()) && e.operand(1).Is(ExprKind::kIntImm) &&
                      e.operand(1).int_value() > 0;
      break;
    default:
      break;
  }
  if (is_arithmetic) {
    return c.Binary(e.kind(), Widen(e.operand(0), wide), Widen(e.operand(1), wide));
  }
  if (e.Is(ExprKind::kSelect) && ir::IsIndexable(e.type())) {
    return c.Select(e.operand(0), Widen(e.operand(1), wide), Widen(e.operand(2), wide));
  }
  return e.type() == Type::kI64 ? e : c.Cast(Type::kI64, e);
}

void AffineBuilder::PushLoop(ir::Var var) {
  loops_.push_back(var);
  values_.clear();
}

void AffineBuilder::PopLoop() {
  loops_.pop_back();
  values_.clear();
}

isl::space AffineBuilder::Space() const {
  return isl::manage(isl_space_set_alloc(isl_->get(), 0, loops_.size()));
}

isl::set AffineBuilder::Universe() { return isl::set::universe(Space()); }

isl::pw_aff AffineBuilder::Constant(int64_t value) {
  return isl::manage(isl_pw_aff_from_aff(
      isl_aff_val_on_domain_space(Space().release(), Number(isl_->ctx(), value).release())));
}

std::nullopt_t AffineBuilder::Fail(Expr e) {
  reason_ = e;
  return std::nullopt;
}

std::string AffineBuilder::reason() const { return reason_ ? ir::Print(reason_) : ""; }

// Whether `e` may be computed once, before everything: over outer variables, no memory, no trap.
bool AffineBuilder::IsInvariant(Expr e) const {
  bool invariant = true;
  ir::ForEachExpr(e, [&](Expr x) {
    switch (x.kind()) {
      case ExprKind::kVar:
        invariant &= outer_.contains(x);
        break;
      case ExprKind::kDiv:
      case ExprKind::kMod:
        invariant &= x.operand(1).Is(ExprKind::kIntImm) && x.operand(1).int_value() != 0;
        break;
      case ExprKind::kLoad:
      case ExprKind::kAddress:
      case ExprKind::kCall:
      case ExprKind::kLet:
        invariant = false;
        break;
      default:
        break;
    }
  });
  return invariant;
}

std::string IslName(std::string name, absl::FunctionRef<bool(const std::string&)> taken) {
  for (char& ch : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(ch))) ch = '_';
  }
  std::string unique = name;
  for (int i = 1; taken(unique); ++i) unique = StrCat(name, "_", i);
  return unique;
}

std::optional<isl::pw_aff> AffineBuilder::ParameterValue(Expr e) {
  if (!ir::IsIndexable(e.type()) || !IsInvariant(e)) return Fail(e);
  auto [it, is_new] = parameter_of_.emplace(e, parameters_.size());
  if (is_new) {
    const auto taken = [&](const std::string& text) {
      return std::any_of(parameters_.begin(), parameters_.end(),
                         [&](const Parameter& p) { return p.name == text; });
    };
    const std::string name =
        e.Is(ExprKind::kVar) ? std::string(e.name()) : StrCat("p", parameters_.size());
    parameters_.push_back({IslName(name, taken), Widen(e, {})});
    parameter_terms_.push_back(e);
  }
  isl_id* id = isl_id_alloc(isl_->get(), parameters_[it->second].name.c_str(), nullptr);
  isl_space* space = isl_space_add_param_id(Space().release(), id);
  return isl::manage(isl_pw_aff_from_aff(
      isl_aff_var_on_domain(isl_local_space_from_space(space), isl_dim_param, 0)));
}

isl::set AffineBuilder::ParameterRanges() {
  isl::set ranges = isl::manage(isl_set_universe(isl_space_params_alloc(isl_->get(), 0)));
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Type type = parameter_terms_[i].type();
    isl_set* range = isl_set_universe(
        isl_space_add_param_id(isl_space_params_alloc(isl_->get(), 0),
                               isl_id_alloc(isl_->get(), parameters_[i].name.c_str(), nullptr)));
    range = isl_set_lower_bound_val(range, isl_dim_param, 0,
                                    Number(isl_->ctx(), ir::LeastInt(type)).release());
    range = isl_set_upper_bound_val(range, isl_dim_param, 0,
                                    Number(isl_->ctx(), ir::GreatestInt(type)).release());
    ranges = ranges.intersect(isl::manage(range));
  }
  return ranges;
}

std::optional<isl::pw_aff> AffineBuilder::Value(Expr e) {
  if (const auto it = values_.find(e); it != values_.end()) return it->second;
  std::optional<isl::pw_aff> value = Compute(e);
  if (value) {
    values_.emplace(e, *value);
  } else if (ir::IsInt(e.type()) && !e.IsConst()) {
    const Expr term = reason_;
    value = ParameterValue(e);
    if (!value) reason_ = term;
  }
  return value;
}

std::optional<isl::pw_aff> AffineBuilder::Compute(Expr e) {
  if (!ir::IsIndexable(e.type())) return Fail(e);
  switch (e.kind()) {
    case ExprKind::kIntImm: {
      const int64_t most = int64_t{1} << kLargestBits;
      if (e.int_value() < -most || e.int_value() > most) return Fail(e);
      return Constant(e.int_value());
    }
    case ExprKind::kVar: {
      const auto it = std::find(loops_.begin(), loops_.end(), e);
      if (it == loops_.end()) return Fail(e);
      return isl::manage(isl_pw_aff_from_aff(
          isl_aff_var_on_domain(isl_local_space_from_space(Space().release()), isl_dim_set,
                                static_cast<unsigned>(it - loops_.begin()))));
    }
    case ExprKind::kCast:
      if (!Holds(e.type(), e.operand(0).type())) return Fail(e);
      return Value(e.operand(0));
    case ExprKind::kSelect: {
      const std::optional<isl::set> holds = Truth(e.operand(0));
      if (!holds) return std::nullopt;
      const std::optional<isl::pw_aff> a = Value(e.operand(1));
      if (!a) return std::nullopt;
      const std::optional<isl::pw_aff> b = Value(e.operand(2));
      if (!b) return std::nullopt;
      return a->intersect_domain(*holds).union_add(b->subtract_domain(*holds));
    }
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMul:
      if (!IsExact(e.type())) return Fail(e);
      return Binary(e);
    case ExprKind::kMin:
    case ExprKind::kMax:
      return Binary(e);
    case ExprKind::kDiv:
    case ExprKind::kMod:
    case ExprKind::kShiftRight: {
      if (!e.operand(1).Is(ExprKind::kIntImm)) return Fail(e);
      int64_t by = e.operand(1).int_value();
      if (e.Is(ExprKind::kShiftRight)) {
        if (by < 0 || by >= std::min(ir::BitWidth(e.type()), 62)) return Fail(e);
        by = int64_t{1} << by;
      }
      // By -1 the least value wraps.
      if (by == 0 || by == -1) return Fail(e);
      const std::optional<isl::pw_aff> a = Value(e.operand(0));
      if (!a) return std::nullopt;
      const isl::val divisor = Number(isl_->ctx(), by < 0 ? -by : by);
      const isl::pw_aff quotient = (by < 0 ? a->neg() : *a).scale_down(divisor).floor();
      if (!e.Is(ExprKind::kMod)) return quotient;
      return a->sub(quotient.scale(Number(isl_->ctx(), by)));
    }
    default:
      return Fail(e);
  }
}

std::optional<isl::pw_aff> AffineBuilder::Binary(Expr e) {
  const std::optional<isl::pw_aff> a = Value(e.operand(0));
  if (!a) return std::nullopt;
  const std::optional<isl::pw_aff> b = Value(e.operand(1));
  if (!b) return std::nullopt;
  switch (e.kind()) {
    case ExprKind::kAdd:
      return a->add(*b);
    case ExprKind::kSub:
      return a->sub(*b);
    case ExprKind::kMin:
      return a->min(*b);
    case ExprKind::kMax:
      return a->max(*b);
    default:
      break;
  }
  if (isl_pw_aff_is_cst(a->get()) != isl_bool_true &&
      isl_pw_aff_is_cst(b->get()) != isl_bool_true) {
    return Fail(e);
  }
  return a->mul(*b);
}

std::optional<isl::set> AffineBuilder::Truth(Expr e) {
  switch (e.kind()) {
    case ExprKind::kIntImm:
      return e.int_value() != 0 ? Universe() : isl::set::empty(Space());
    case ExprKind::kNot: {
      const std::optional<isl::set> a = Truth(e.operand(0));
      if (!a) return std::nullopt;
      return a->complement();
    }
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      const std::optional<isl::set> a = Truth(e.operand(0));
      if (!a) return std::nullopt;
      const std::optional<isl::set> b = Truth(e.operand(1));
      if (!b) return std::nullopt;
      return e.Is(ExprKind::kAnd) ? a->intersect(*b) : a->unite(*b);
    }
    default:
      break;
  }
  if (!ir::IsComparison(e.kind()) || !ir::IsIndexable(e.operand(0).type())) return Fail(e);
  const std::optional<isl::pw_aff> a = Value(e.operand(0));
  if (!a) return std::nullopt;
  const std::optional<isl::pw_aff> b = Value(e.operand(1));
  if (!b) return std::nullopt;
  switch (e.kind()) {
    case ExprKind::kEq:
      return a->eq_set(*b);
    case ExprKind::kNe:
      return a->ne_set(*b);
    case ExprKind::kLt:
      return a->lt_set(*b);
    default:
      return a->le_set(*b);
  }
}

std::optional<isl::set> AffineBuilder::NeverWraps(Expr e, const isl::set& domain,
                                                  const isl::set& context) {
  if (!Value(e)) return std::nullopt;
  isl::set wraps = isl::set::empty(Space());
  bool affine = true;
  ir::ForEachExpr(e, [&](Expr x) {
    if (!x.Is(ExprKind::kAdd) && !x.Is(ExprKind::kSub) && !x.Is(ExprKind::kMul)) return;
    const std::optional<isl::pw_aff> value = Value(x);
    // A parameter stands for the number without wrapping.
    if (!value || parameter_of_.contains(x)) {
      affine = false;
      return;
    }
    wraps = wraps.unite(value->lt_set(Constant(ir::LeastInt(x.type()))))
                .unite(value->gt_set(Constant(ir::GreatestInt(x.type()))));
  });
  if (!affine) return std::nullopt;
  const isl::set bad = wraps.intersect(domain)
                           .intersect_params(context)
                           .intersect_params(ParameterRanges())
                           .params();
  return bad.complement();
}

}  // namespace polynao::poly
