#include "compiler/arith/integer_set.h"

#include <isl/aff.h>
#include <isl/ctx.h>
#include <isl/local_space.h>
#include <isl/options.h>
#include <isl/point.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/arith/const_range.h"

namespace polynao::arith {

using ir::Expr;
using ir::ExprKind;
using ir::Type;

namespace {

// Owns one isl object. `copy()` and `take()` give what isl's functions consume (__isl_take),
// `get()` what they borrow (__isl_keep). isl passes null through after an error, and so do these.
template <typename T, T* (*Copy)(T*), T* (*Free)(T*)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T* object) : object_(object) {}
  Handle(const Handle& other) : object_(Copy(other.object_)) {}
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle() { Free(object_); }

  T* get() const { return object_; }
  T* copy() const { return Copy(object_); }
  T* take() { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

using Set = Handle<isl_set, isl_set_copy, isl_set_free>;
using PwAff = Handle<isl_pw_aff, isl_pw_aff_copy, isl_pw_aff_free>;

bool IsExactType(Type type) { return type == Type::kI32 || type == Type::kI64; }

bool IsNumber(Type type) { return ir::IsIndexable(type); }

bool IsPositiveConstant(Expr e) { return e.Is(ExprKind::kIntImm) && e.int_value() > 0; }

}  // namespace

// One question: a space with a dimension for each variable and each opaque expression.
class IntegerSets::Impl {
 public:
  explicit Impl(unsigned long max_operations) : context_(isl_ctx_alloc()) {
    POLYNAO_CHECK(context_ != nullptr) << "no memory";
    isl_options_set_on_error(context_, ISL_ON_ERROR_CONTINUE);
    isl_ctx_set_max_operations(context_, max_operations);
  }
  ~Impl() { isl_ctx_free(context_); }

  // The values of all dimensions, `var` being the first, for which the bounds hold, and those for
  // which the condition does.
  struct Question {
    Set domain;
    Set holds;
  };

  Question Ask(Expr condition, ir::Var var, absl::Span<const BoundedVar> bounds,
               absl::Span<const Expr> facts = {}) {
    isl_ctx_reset_operations(context_);
    dimensions_.clear();
    order_.clear();
    values_.clear();
    if (var) AddDimension(var);
    Collect(condition);
    for (Expr fact : facts) Collect(fact);
    // Bounds of what occurs, which may name further variables.
    std::vector<const BoundedVar*> used;
    for (size_t i = 0; i < order_.size(); ++i) {
      for (const BoundedVar& bound : bounds) {
        if (bound.var != order_[i]) continue;
        Collect(bound.min);
        Collect(bound.extent);
        used.push_back(&bound);
      }
    }
    Question question;
    question.domain = Universe();
    for (Expr e : order_) {
      const ConstRange range = ConstRange::OfType(e.type());
      Constrain(question.domain, isl_pw_aff_ge_set(Value(e).take(), Constant(range.min).take()));
      Constrain(question.domain, isl_pw_aff_le_set(Value(e).take(), Constant(range.max).take()));
    }
    for (const BoundedVar* bound : used) {
      Constrain(question.domain,
                isl_pw_aff_ge_set(Value(bound->var).take(), Value(bound->min).take()));
      PwAff end(isl_pw_aff_add(Value(bound->min).take(), Value(bound->extent).take()));
      Constrain(question.domain, isl_pw_aff_lt_set(Value(bound->var).take(), end.take()));
    }
    for (Expr fact : facts) Constrain(question.domain, Truth(fact).take());
    question.holds = Truth(condition);
    return question;
  }

  // Whether something failed since the last question; clears the error.
  bool Failed() {
    const bool failed =
        std::exchange(failed_, false) || isl_ctx_last_error(context_) != isl_error_none;
    isl_ctx_reset_error(context_);
    return failed;
  }

  // What of `range` is in the projection of `set` to its first dimension.
  std::optional<Intervals> FirstDimension(Set set, Interval range, int max_intervals) {
    const int dimensions = static_cast<int>(order_.size());
    Set line(isl_set_project_out(set.take(), isl_dim_set, 1, dimensions - 1));
    line = Set(isl_set_coalesce(line.take()));
    line = Bounded(std::move(line), range.first, range.last);
    const Set rest = Bounded(Set(isl_set_complement(line.copy())), range.first, range.last);
    Intervals intervals;
    int64_t from = range.first;
    while (true) {
      const auto first = Smallest(line, from, range.last);
      if (!first) break;
      if (static_cast<int>(intervals.size()) == max_intervals) return std::nullopt;
      const auto gap = Smallest(rest, *first, range.last);
      intervals.push_back({*first, gap ? *gap - 1 : range.last});
      if (!gap) break;
      from = *gap;
    }
    return intervals;
  }

 private:
  isl_space* Space() { return isl_space_set_alloc(context_, 0, order_.size()); }
  isl_local_space* LocalSpace() { return isl_local_space_from_space(Space()); }
  Set Universe() { return Set(isl_set_universe(Space())); }
  Set Nothing() { return Set(isl_set_empty(Space())); }
  static void Constrain(Set& set, isl_set* by) { set = Set(isl_set_intersect(set.take(), by)); }

  Set Bounded(Set set, int64_t first, int64_t last) {
    isl_set* bounded =
        isl_set_lower_bound_val(set.take(), isl_dim_set, 0, isl_val_int_from_si(context_, first));
    return Set(
        isl_set_upper_bound_val(bounded, isl_dim_set, 0, isl_val_int_from_si(context_, last)));
  }

  // The smallest element of the one-dimensional `set` in [from, to].
  std::optional<int64_t> Smallest(const Set& set, int64_t from, int64_t to) {
    Set part = Bounded(set, from, to);
    const isl_bool is_empty = isl_set_is_empty(part.get());
    if (is_empty == isl_bool_true) return std::nullopt;
    isl_point* point = isl_set_sample_point(isl_set_lexmin(part.take()));
    isl_val* value = isl_point_get_coordinate_val(point, isl_dim_set, 0);
    isl_point_free(point);
    std::optional<int64_t> result;
    if (is_empty == isl_bool_false && isl_val_is_int(value) == isl_bool_true) {
      result = isl_val_get_num_si(value);
    } else {
      failed_ = true;
    }
    isl_val_free(value);
    return result;
  }

  void AddDimension(Expr e) {
    if (dimensions_.emplace(e, static_cast<int>(order_.size())).second) order_.push_back(e);
  }

  // Whether the value of `e` is affine in those of its operands.
  static bool IsAffine(Expr e) {
    switch (e.kind()) {
      case ExprKind::kIntImm:
        return true;
      case ExprKind::kAdd:
      case ExprKind::kSub:
        return IsExactType(e.type());
      case ExprKind::kMul:
        return IsExactType(e.type()) &&
               (e.operand(0).Is(ExprKind::kIntImm) || e.operand(1).Is(ExprKind::kIntImm));
      case ExprKind::kDiv:
      case ExprKind::kMod:
        return IsNumber(e.type()) && IsPositiveConstant(e.operand(1));
      case ExprKind::kMin:
      case ExprKind::kMax:
      case ExprKind::kSelect:
        return IsNumber(e.type());
      case ExprKind::kCast:
        // To a type that holds all values of the first.
        return IsNumber(e.type()) && IsNumber(e.operand(0).type()) &&
               ConstRange::OfType(e.type()).Contains(ConstRange::OfType(e.operand(0).type()));
      default:
        return false;
    }
  }

  static bool IsIntComparison(Expr e) {
    return IsComparison(e.kind()) && IsNumber(e.operand(0).type());
  }

  // Dimensions for the variables and opaque integers and conditions that Value() and Truth() will
  // meet.
  void Collect(Expr root) {
    std::vector<Expr> stack = {root};
    absl::flat_hash_map<Expr, bool> seen;
    while (!stack.empty()) {
      const Expr e = stack.back();
      stack.pop_back();
      if (!seen.emplace(e, true).second || e.Is(ExprKind::kIntImm)) continue;
      const bool is_logic = e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr) || e.Is(ExprKind::kNot);
      if (is_logic || IsIntComparison(e) || IsAffine(e)) {
        for (size_t i = e.operands().size(); i-- > 0;) stack.push_back(e.operand(i));
      } else if (ir::IsInt(e.type())) {
        AddDimension(e);
      }
    }
  }

  PwAff Constant(int64_t value) {
    return PwAff(isl_pw_aff_from_aff(
        isl_aff_val_on_domain(LocalSpace(), isl_val_int_from_si(context_, value))));
  }

  PwAff Value(Expr e) {
    if (auto it = values_.find(e); it != values_.end()) return it->second;
    PwAff value = ComputeValue(e);
    values_.emplace(e, value);
    return value;
  }

  PwAff ComputeValue(Expr e) {
    if (auto it = dimensions_.find(e); it != dimensions_.end()) {
      return PwAff(
          isl_pw_aff_from_aff(isl_aff_var_on_domain(LocalSpace(), isl_dim_set, it->second)));
    }
    POLYNAO_CHECK(IsAffine(e)) << ir::ExprKindName(e.kind()) << " has no dimension";
    if (e.Is(ExprKind::kIntImm)) return Constant(e.int_value());
    if (e.Is(ExprKind::kCast)) return Value(e.operand(0));
    if (e.Is(ExprKind::kSelect)) return SelectValue(e);
    PwAff a = Value(e.operand(0)), b = Value(e.operand(1));
    switch (e.kind()) {
      case ExprKind::kAdd:
        return PwAff(isl_pw_aff_add(a.take(), b.take()));
      case ExprKind::kSub:
        return PwAff(isl_pw_aff_sub(a.take(), b.take()));
      case ExprKind::kMul:
        return PwAff(isl_pw_aff_mul(a.take(), b.take()));
      case ExprKind::kDiv:
        return PwAff(isl_pw_aff_floor(isl_pw_aff_div(a.take(), b.take())));
      case ExprKind::kMod:
        return PwAff(
            isl_pw_aff_mod_val(a.take(), isl_val_int_from_si(context_, e.operand(1).int_value())));
      case ExprKind::kMin:
        return PwAff(isl_pw_aff_min(a.take(), b.take()));
      case ExprKind::kMax:
        return PwAff(isl_pw_aff_max(a.take(), b.take()));
      default:
        POLYNAO_UNREACHABLE(ir::ExprKindName(e.kind()));
    }
  }

  PwAff SelectValue(Expr e) {
    Set holds = Truth(e.operand(0));
    PwAff then_value(isl_pw_aff_intersect_domain(Value(e.operand(1)).take(), holds.copy()));
    PwAff else_value(isl_pw_aff_subtract_domain(Value(e.operand(2)).take(), holds.take()));
    return PwAff(isl_pw_aff_union_add(then_value.take(), else_value.take()));
  }

  // Where the condition holds.
  Set Truth(Expr e) {
    switch (e.kind()) {
      case ExprKind::kIntImm:
        return e.int_value() != 0 ? Universe() : Nothing();
      case ExprKind::kNot:
        return Set(isl_set_complement(Truth(e.operand(0)).take()));
      case ExprKind::kAnd:
        return Set(isl_set_intersect(Truth(e.operand(0)).take(), Truth(e.operand(1)).take()));
      case ExprKind::kOr:
        return Set(isl_set_union(Truth(e.operand(0)).take(), Truth(e.operand(1)).take()));
      default:
        break;
    }
    // An opaque condition is a number that is 0 or 1.
    if (!IsIntComparison(e)) return Set(isl_pw_aff_ne_set(Value(e).take(), Constant(0).take()));
    PwAff a = Value(e.operand(0)), b = Value(e.operand(1));
    switch (e.kind()) {
      case ExprKind::kEq:
        return Set(isl_pw_aff_eq_set(a.take(), b.take()));
      case ExprKind::kNe:
        return Set(isl_pw_aff_ne_set(a.take(), b.take()));
      case ExprKind::kLt:
        return Set(isl_pw_aff_lt_set(a.take(), b.take()));
      default:
        return Set(isl_pw_aff_le_set(a.take(), b.take()));
    }
  }

  bool failed_ = false;
  isl_ctx* context_;
  // Dimension of each variable and opaque expression, and these in the order of dimensions.
  absl::flat_hash_map<Expr, int> dimensions_;
  std::vector<Expr> order_;
  absl::flat_hash_map<Expr, PwAff> values_;

 public:
  // Objects of isl must go before the context.
  void Forget() { values_.clear(); }
};

Intervals Union(const Intervals& a, const Intervals& b) {
  Intervals both(a.begin(), a.end());
  both.insert(both.end(), b.begin(), b.end());
  std::sort(both.begin(), both.end(),
            [](const Interval& x, const Interval& y) { return x.first < y.first; });
  Intervals result;
  for (const Interval& interval : both) {
    if (!result.empty() &&
        (interval.first <= result.back().last || interval.first - 1 == result.back().last)) {
      result.back().last = std::max(result.back().last, interval.last);
    } else {
      result.push_back(interval);
    }
  }
  return result;
}

Intervals Intersect(const Intervals& a, const Intervals& b) {
  Intervals result;
  for (const Interval& x : a) {
    for (const Interval& y : b) {
      const Interval both = {std::max(x.first, y.first), std::min(x.last, y.last)};
      if (both.first <= both.last) result.push_back(both);
    }
  }
  return result;
}

Intervals Complement(const Intervals& intervals, Interval range) {
  Intervals result;
  int64_t from = range.first;
  for (const Interval& interval : Intersect(intervals, {range})) {
    if (from < interval.first) result.push_back({from, interval.first - 1});
    if (interval.last == range.last) return result;  // there may be no number behind it
    from = interval.last + 1;
  }
  result.push_back({from, range.last});
  return result;
}

bool Contains(const Intervals& intervals, int64_t value) {
  return std::any_of(intervals.begin(), intervals.end(), [&](const Interval& interval) {
    return interval.first <= value && value <= interval.last;
  });
}

std::string ToString(const Intervals& intervals) {
  if (intervals.empty()) return "none";
  std::string text;
  for (const Interval& interval : intervals) {
    absl::StrAppend(&text, text.empty() ? "" : " ", "[", interval.first, ", ", interval.last, "]");
  }
  return text;
}

IntegerSets::IntegerSets(const IntegerSetOptions& options)
    : options_(options), impl_(std::make_unique<Impl>(options.max_operations)) {}

IntegerSets::~IntegerSets() { impl_->Forget(); }

IntegerSets::Truth IntegerSets::Decide(Expr condition, absl::Span<const BoundedVar> bounds) {
  ++questions_;
  Truth truth = Truth::kUnknown;
  {
    const Impl::Question q = impl_->Ask(condition, ir::Var(), bounds);
    const isl_bool always = isl_set_is_subset(q.domain.get(), q.holds.get());
    const isl_bool never = isl_set_is_disjoint(q.domain.get(), q.holds.get());
    if (always == isl_bool_true) {
      truth = Truth::kAlways;
    } else if (never == isl_bool_true) {
      truth = Truth::kNever;
    } else if (always == isl_bool_false && never == isl_bool_false) {
      truth = Truth::kSometimes;
    }
  }
  if (impl_->Failed()) truth = Truth::kUnknown;
  impl_->Forget();
  return truth;
}

std::optional<IntegerSets::Split> IntegerSets::SplitByTruth(Expr condition, ir::Var var,
                                                            Interval range,
                                                            absl::Span<const BoundedVar> bounds,
                                                            absl::Span<const Expr> facts) {
  ++questions_;
  std::optional<Split> split;
  {
    Impl::Question q = impl_->Ask(condition, var, bounds, facts);
    // always = range - projection(domain - holds), never = range - projection(domain and holds).
    auto without = [&](Set set) -> std::optional<Intervals> {
      auto inside = impl_->FirstDimension(std::move(set), range, options_.max_intervals);
      if (!inside) return std::nullopt;
      return Complement(*inside, range);
    };
    auto always = without(Set(isl_set_subtract(q.domain.copy(), q.holds.copy())));
    auto never = without(Set(isl_set_intersect(q.domain.take(), q.holds.take())));
    if (always && never) split = Split{*std::move(always), *std::move(never)};
  }
  if (impl_->Failed()) split = std::nullopt;
  impl_->Forget();
  return split;
}

}  // namespace polynao::arith
