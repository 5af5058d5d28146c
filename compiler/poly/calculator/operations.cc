// The operators of the calculator.
#include <map>
#include <utility>

#include "base/status.h"
#include "compiler/poly/calculator/value.h"

namespace polynao::poly::calculator {
namespace {

// The empty set as the kind that the other operand is: "{ }" may stand for an empty map.
void UnifyEmpty(Value& a, Value& b) {
  auto unify = [](Value& set, const Value& map) {
    const auto* empty = set.As<isl::union_set>();
    if (empty == nullptr || map.As<isl::union_map>() == nullptr) return;
    if (isl_union_set_n_set(empty->get()) != 0) return;
    set.data = isl::manage(isl_union_map_empty(isl_union_set_get_space(empty->get())));
  };
  unify(a, b);
  unify(b, a);
}

bool IsParameters(const isl::union_set& set) {
  return isl_union_set_n_set(set.get()) != 0 && isl_union_set_is_params(set.get()) == isl_bool_true;
}

// { : condition } as a set of parameters.
isl::set Parameters(const isl::union_set& set) {
  return isl::manage(isl_union_set_params(set.copy()));
}

absl::Status BadKinds(const Site& site, const std::string& mark, const Value& a, const Value& b,
                      std::string_view expected) {
  return site.Error(expected, StrCat(KindOf(a), " ", mark, " ", KindOf(b)));
}

// Both have elements of one kind of space, which the operation needs.
absl::Status NeedSharedSpace(const Site& site, const std::string& mark, const Value& a,
                             const Value& b) {
  if (ShareSpace(a, b)) return absl::OkStatus();
  return site.Error(StrCat("operands of '", mark, "' in isomorphic spaces"),
                    StrCat(SpacesOf(a), " and ", SpacesOf(b)));
}

template <typename T>
struct Pair {
  const T* a;
  const T* b;
  Pair(const Value& x, const Value& y) : a(x.As<T>()), b(y.As<T>()) {}
  explicit operator bool() const { return a != nullptr && b != nullptr; }
};

absl::StatusOr<Value> Sum(const Site& site, const std::string& mark, const Value& a,
                          const Value& b) {
  const bool is_sum = mark == "+";
  if (const Pair<isl::union_set> sets(a, b); sets) {
    if (!is_sum) RETURN_IF_ERROR(NeedSharedSpace(site, mark, a, b));
    if (IsParameters(*sets.a) != IsParameters(*sets.b) && isl_union_set_n_set(sets.a->get()) != 0 &&
        isl_union_set_n_set(sets.b->get()) != 0) {
      return site.Error("two sets, or two conditions on parameters", "one of each");
    }
    return Value{is_sum ? sets.a->unite(*sets.b) : sets.a->subtract(*sets.b)};
  }
  if (const Pair<isl::union_map> maps(a, b); maps) {
    if (!is_sum) RETURN_IF_ERROR(NeedSharedSpace(site, mark, a, b));
    return Value{is_sum ? maps.a->unite(*maps.b) : maps.a->subtract(*maps.b)};
  }
  if (const Pair<isl::union_pw_multi_aff> functions(a, b); functions) {
    RETURN_IF_ERROR(NeedSharedSpace(site, mark, a, b));
    return Value{is_sum ? functions.a->add(*functions.b) : functions.a->sub(*functions.b)};
  }
  if (const Pair<IslUnionQuasiPolynomial> counts(a, b); counts) {
    return Value{IslUnionQuasiPolynomial(
        is_sum ? isl_union_pw_qpolynomial_add(counts.a->copy(), counts.b->copy())
               : isl_union_pw_qpolynomial_sub(counts.a->copy(), counts.b->copy()))};
  }
  if (const Pair<isl::val> numbers(a, b); numbers) {
    return Value{is_sum ? numbers.a->add(*numbers.b) : numbers.a->sub(*numbers.b)};
  }
  return BadKinds(site, mark, a, b, "two sets, maps, functions, quasi-polynomials or numbers");
}

absl::StatusOr<Value> Product(const Site& site, const Value& a, const Value& b) {
  if (const Pair<isl::union_set> sets(a, b); sets) {
    if (IsParameters(*sets.b)) {
      return Value{sets.a->intersect_params(Parameters(*sets.b))};
    }
    if (IsParameters(*sets.a)) {
      return Value{sets.b->intersect_params(Parameters(*sets.a))};
    }
    RETURN_IF_ERROR(NeedSharedSpace(site, "*", a, b));
    return Value{sets.a->intersect(*sets.b)};
  }
  if (const Pair<isl::union_map> maps(a, b); maps) {
    RETURN_IF_ERROR(NeedSharedSpace(site, "*", a, b));
    return Value{maps.a->intersect(*maps.b)};
  }
  if (const Pair<isl::val> numbers(a, b); numbers) {
    return Value{numbers.a->mul(*numbers.b)};
  }
  if (const auto* number = a.As<isl::val>()) {
    if (const auto* function = b.As<isl::union_pw_multi_aff>()) {
      return Value{isl::manage(isl_union_pw_multi_aff_scale_val(function->copy(), number->copy()))};
    }
    if (const auto* count = b.As<IslUnionQuasiPolynomial>()) {
      return Value{IslUnionQuasiPolynomial(
          isl_union_pw_qpolynomial_scale_val(count->copy(), number->copy()))};
    }
  }
  if (b.As<isl::val>() != nullptr && a.As<isl::val>() == nullptr) return Product(site, b, a);
  if (const Pair<IslUnionQuasiPolynomial> counts(a, b); counts) {
    return Value{
        IslUnionQuasiPolynomial(isl_union_pw_qpolynomial_mul(counts.a->copy(), counts.b->copy()))};
  }
  // A map, function or quasi-polynomial on a part of its domain.
  if (const auto* set = b.As<isl::union_set>()) {
    const bool is_condition = IsParameters(*set);
    if (const auto* map = a.As<isl::union_map>()) {
      return Value{is_condition ? map->intersect_params(Parameters(*set))
                                : map->intersect_domain(*set)};
    }
    if (const auto* function = a.As<isl::union_pw_multi_aff>()) {
      return Value{is_condition ? function->intersect_params(Parameters(*set))
                                : function->intersect_domain(*set)};
    }
    if (const auto* count = a.As<IslUnionQuasiPolynomial>()) {
      return Value{IslUnionQuasiPolynomial(
          is_condition ? isl_union_pw_qpolynomial_intersect_params(
                             count->copy(), isl_union_set_params(set->copy()))
                       : isl_union_pw_qpolynomial_intersect_domain(count->copy(), set->copy()))};
    }
  }
  return BadKinds(site, "*", a, b,
                  "two sets, maps or numbers, a map with a set, or a number with a function");
}

absl::StatusOr<Value> Gist(const Site& site, const Value& a, const Value& b) {
  const auto* context = b.As<isl::union_set>();
  const bool is_condition = context != nullptr && IsParameters(*context);
  if (const Pair<isl::union_set> sets(a, b); sets) {
    if (is_condition) {
      return Value{sets.a->gist_params(Parameters(*context))};
    }
    RETURN_IF_ERROR(NeedSharedSpace(site, "%", a, b));
    return Value{sets.a->gist(*sets.b)};
  }
  if (const Pair<isl::union_map> maps(a, b); maps) {
    RETURN_IF_ERROR(NeedSharedSpace(site, "%", a, b));
    return Value{maps.a->gist(*maps.b)};
  }
  if (const auto* map = a.As<isl::union_map>(); map != nullptr && context != nullptr) {
    return Value{is_condition ? map->gist_params(Parameters(*context))
                              : map->gist_domain(*context)};
  }
  if (const auto* count = a.As<IslUnionQuasiPolynomial>(); count != nullptr && context != nullptr) {
    return Value{IslUnionQuasiPolynomial(
        is_condition ? isl_union_pw_qpolynomial_gist_params(count->copy(),
                                                            isl_union_set_params(context->copy()))
                     : isl_union_pw_qpolynomial_gist(count->copy(), context->copy()))};
  }
  return BadKinds(site, "%", a, b, "a set, map or quasi-polynomial % what is known");
}

// First a, then b.
absl::StatusOr<Value> Compose(const Site& site, const Value& a, const Value& b) {
  const Pair<isl::union_map> maps(a, b);
  const Pair<isl::union_pw_multi_aff> functions(a, b);
  if (!maps && !functions) return BadKinds(site, ".", a, b, "two maps or two functions");
  isl::union_map first, second;
  if (maps) {
    first = *maps.a;
    second = *maps.b;
  } else {
    first = functions.a->as_union_map();
    second = functions.b->as_union_map();
  }
  const Value range{first.range()};
  const Value domain{second.domain()};
  if (!ShareSpace(range, domain)) {
    return site.Error("a range and a domain in isomorphic spaces to compose",
                      StrCat(SpacesOf(range), " and ", SpacesOf(domain)));
  }
  if (functions) {
    return Value{functions.b->pullback(*functions.a)};
  }
  return Value{first.apply_range(second)};
}

absl::StatusOr<Value> Compare(const Site& site, const std::string& mark, const Value& a,
                              const Value& b) {
  if (mark == ">" || mark == ">=") {
    return Compare(site, mark == ">" ? "<" : "<=", b, a);
  }
  if (mark == "!=") {
    ASSIGN_OR_RETURN(Value equal, Compare(site, "=", a, b));
    return Value{!*equal.As<bool>()};
  }
  if (const Pair<isl::union_set> sets(a, b); sets) {
    RETURN_IF_ERROR(NeedSharedSpace(site, mark, a, b));
    const auto &x = *sets.a, &y = *sets.b;
    return Value{mark == "="    ? x.is_equal(y)
                 : mark == "<=" ? x.is_subset(y)
                                : x.is_strict_subset(y)};
  }
  if (const Pair<isl::union_map> maps(a, b); maps) {
    RETURN_IF_ERROR(NeedSharedSpace(site, mark, a, b));
    const auto &x = *maps.a, &y = *maps.b;
    return Value{mark == "="    ? x.is_equal(y)
                 : mark == "<=" ? x.is_subset(y)
                                : x.is_strict_subset(y)};
  }
  if (const Pair<isl::val> numbers(a, b); numbers) {
    const auto &x = *numbers.a, &y = *numbers.b;
    return Value{mark == "=" ? x.eq(y) : mark == "<=" ? x.le(y) : x.lt(y)};
  }
  if (const Pair<isl::union_pw_multi_aff> functions(a, b); functions && mark == "=") {
    return Value{functions.a->as_union_map().is_equal(functions.b->as_union_map())};
  }
  if (const Pair<bool> truths(a, b); truths && mark == "=") return Value{*truths.a == *truths.b};
  return BadKinds(site, mark, a, b, "two sets, maps or numbers to compare");
}

// { x -> y : x in a, y in b, x lexicographically before (after) y }.
absl::StatusOr<Value> Lexicographic(const Site& site, const std::string& mark, const Value& a,
                                    const Value& b) {
  const Pair<isl::union_set> sets(a, b);
  if (!sets) return BadKinds(site, mark, a, b, "two sets");
  RETURN_IF_ERROR(NeedSharedSpace(site, mark, a, b));
  isl_union_set *x = sets.a->copy(), *y = sets.b->copy();
  return Value{isl::manage(mark == "<<"    ? isl_union_set_lex_lt_union_set(x, y)
                           : mark == "<<=" ? isl_union_set_lex_le_union_set(x, y)
                           : mark == ">>"  ? isl_union_set_lex_gt_union_set(x, y)
                                           : isl_union_set_lex_ge_union_set(x, y))};
}

// [{ S(i) -> (i) }, { S(i) -> (-i) }]: the function whose values are those of a, then those of b.
absl::StatusOr<Value> Tuple(const Site& site, const Value& a, const Value& b) {
  const Pair<isl::union_map> maps(a, b);
  const Pair<isl::union_pw_multi_aff> functions(a, b);
  if (!maps && !functions) return BadKinds(site, ",", a, b, "two maps or two functions");
  const Value x{maps ? maps.a->domain() : functions.a->domain()};
  const Value y{maps ? maps.b->domain() : functions.b->domain()};
  if (!ShareSpace(x, y)) {
    return site.Error("pieces whose domains are in isomorphic spaces",
                      StrCat(SpacesOf(x), " and ", SpacesOf(y)));
  }
  if (maps) {
    return Value{isl::manage(isl_union_map_flat_range_product(maps.a->copy(), maps.b->copy()))};
  }
  return Value{functions.a->flat_range_product(*functions.b)};
}

absl::StatusOr<Value> Binary(const Site& site, const std::string& mark, const Value& a,
                             const Value& b) {
  if (mark == "+" || mark == "-") return Sum(site, mark, a, b);
  if (mark == "*") return Product(site, a, b);
  if (mark == "%") return Gist(site, a, b);
  if (mark == ".") return Compose(site, a, b);
  if (mark == "cross") {
    if (const Pair<isl::union_set> sets(a, b); sets) {
      return Value{isl::manage(isl_union_set_product(sets.a->copy(), sets.b->copy()))};
    }
    if (const Pair<isl::union_map> maps(a, b); maps) {
      return Value{maps.a->product(*maps.b)};
    }
    return BadKinds(site, "cross", a, b, "two sets or two maps");
  }
  if (mark == "->") {
    if (const Pair<isl::union_set> sets(a, b); sets) {
      return Value{isl::union_map::from_domain_and_range(*sets.a, *sets.b)};
    }
    return BadKinds(site, "->", a, b, "two sets");
  }
  if (mark == ",") return Tuple(site, a, b);
  if (mark == "and" || mark == "or" || mark == "implies" || mark == "iff") {
    const Pair<bool> truths(a, b);
    if (!truths) return BadKinds(site, mark, a, b, "two truth values");
    return Value{mark == "and"   ? *truths.a && *truths.b
                 : mark == "or"  ? *truths.a || *truths.b
                 : mark == "iff" ? *truths.a == *truths.b
                                 : !*truths.a || *truths.b};
  }
  if (mark.size() >= 2 && mark[0] == mark[1]) return Lexicographic(site, mark, a, b);
  return Compare(site, mark, a, b);
}

}  // namespace

absl::StatusOr<Value> ApplyBinary(const Site& site, const std::string& mark, const Value& a,
                                  const Value& b) {
  Value x = a, y = b;
  UnifyEmpty(x, y);
  return Binary(site, mark, x, y);
}

absl::StatusOr<Value> ApplyPower(const Site& site, const std::string& power, const Value& a) {
  const auto* map = a.As<isl::union_map>();
  if (map == nullptr) return site.Error("a map before '^'", KindOf(a));
  if (power == "+") {
    isl_bool is_exact = isl_bool_error;
    Value closure{isl::manage(isl_union_map_transitive_closure(map->copy(), &is_exact))};
    closure.exactness =
        is_exact == isl_bool_true ? Exactness::kExactClosure : Exactness::kOverApproximation;
    return closure;
  }
  isl::val exponent = ReadNumber(site.isl, power);
  if (exponent.is_zero()) {
    return site.Error("a power other than 0", StrCat("^", power));
  }
  return Value{map->fixed_power(exponent)};
}

absl::StatusOr<Value> ApplyNegate(const Site& site, const Value& a) {
  if (const auto* number = a.As<isl::val>()) {
    return Value{number->neg()};
  }
  if (const auto* function = a.As<isl::union_pw_multi_aff>()) {
    return Value{isl::manage(isl_union_pw_multi_aff_neg(function->copy()))};
  }
  if (const auto* count = a.As<IslUnionQuasiPolynomial>()) {
    return Value{IslUnionQuasiPolynomial(isl_union_pw_qpolynomial_neg(count->copy()))};
  }
  return site.Error("a number, function or quasi-polynomial after '-'", KindOf(a));
}

namespace {

// The count for the one element of a set: a number, or a function of the parameters. Where a condition on parameters
// excludes the element it counts as 0, as one outside of the count's domain does.
absl::StatusOr<Value> ApplyCount(const Site& site, const IslUnionQuasiPolynomial& count,
                                 const isl::union_set& set) {
  if (!ShareSpace(Value{count}, Value{set})) {
    return site.Error("a quasi-polynomial and a set in isomorphic spaces to apply",
                      StrCat("one of ", SpacesOf(Value{count}), " and ", SpacesOf(Value{set})));
  }
  const isl::union_set elements = isl::manage(isl_union_set_project_out_all_params(set.copy()));
  const isl::union_set element(elements.sample_point());
  const bool is_none = elements.is_empty();
  if (is_none || !elements.is_subset(element)) {
    return site.Error("a set of one element, as { S[3] }", is_none ? "none" : "more than one");
  }
  // isl puts the element's coordinates, which are numbers, into the polynomial.
  const IslUnionQuasiPolynomial there(isl_union_pw_qpolynomial_intersect_params(
      isl_union_pw_qpolynomial_intersect_domain(count.copy(), element.copy()),
      isl_union_set_params(set.copy())));
  IslUnionQuasiPolynomial sum(
      isl_union_pw_qpolynomial_zero(isl_space_params_alloc(site.isl.get(), 0)));
  bool has_parameters = false;
  for (const IslPwQuasiPolynomial& part : PartsOf(there)) {
    const IslPwQuasiPolynomial value(isl_pw_qpolynomial_project_domain_on_params(part.copy()));
    const int parameters = isl_pw_qpolynomial_dim(value.get(), isl_dim_param);
    has_parameters |= isl_pw_qpolynomial_involves_dims(value.get(), isl_dim_param, 0, parameters) ==
                      isl_bool_true;
    sum = IslUnionQuasiPolynomial(isl_union_pw_qpolynomial_add(
        sum.release(), isl_union_pw_qpolynomial_from_pw_qpolynomial(value.copy())));
  }
  if (has_parameters) return Value{std::move(sum)};
  return Call(site, "value", {Value{std::move(sum)}}, {});
}

}  // namespace

absl::StatusOr<Value> ApplyTo(const Site& site, const Value& a, const Value& b) {
  const auto* set = b.As<isl::union_set>();
  const auto* count = a.As<IslUnionQuasiPolynomial>();
  const auto* function = a.As<isl::union_pw_multi_aff>();
  const auto* as_map = a.As<isl::union_map>();
  if (set == nullptr || (count == nullptr && function == nullptr && as_map == nullptr)) {
    return site.Error("a map, function or quasi-polynomial applied to a set",
                      StrCat(KindOf(a), " applied to ", KindOf(b)));
  }
  if (count != nullptr) return ApplyCount(site, *count, *set);
  const isl::union_map map = function != nullptr ? function->as_union_map() : *as_map;
  const Value domain{map.domain()};
  if (!ShareSpace(domain, b)) {
    return site.Error("a map and a set in isomorphic spaces to apply",
                      StrCat("the domain ", SpacesOf(domain), " and ", SpacesOf(b)));
  }
  return Value{set->apply(map)};
}

}  // namespace polynao::poly::calculator
