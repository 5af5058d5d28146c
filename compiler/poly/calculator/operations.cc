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
    const auto* empty = set.As<IslUnionSet>();
    if (empty == nullptr || map.As<IslUnionMap>() == nullptr) return;
    if (isl_union_set_n_set(empty->get()) != 0) return;
    set.data = IslUnionMap(isl_union_map_empty(isl_union_set_get_space(empty->get())));
  };
  unify(a, b);
  unify(b, a);
}

bool IsParameters(const IslUnionSet& set) {
  return isl_union_set_n_set(set.get()) != 0 && isl_union_set_is_params(set.get()) == isl_bool_true;
}

// { : condition } as a set of parameters.
isl_set* Parameters(const IslUnionSet& set) { return isl_union_set_params(set.copy()); }

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
  if (const Pair<IslUnionSet> sets(a, b); sets) {
    if (!is_sum) RETURN_IF_ERROR(NeedSharedSpace(site, mark, a, b));
    if (IsParameters(*sets.a) != IsParameters(*sets.b) && isl_union_set_n_set(sets.a->get()) != 0 &&
        isl_union_set_n_set(sets.b->get()) != 0) {
      return site.Error("two sets, or two conditions on parameters", "one of each");
    }
    return Value{IslUnionSet(is_sum ? isl_union_set_union(sets.a->copy(), sets.b->copy())
                                    : isl_union_set_subtract(sets.a->copy(), sets.b->copy()))};
  }
  if (const Pair<IslUnionMap> maps(a, b); maps) {
    if (!is_sum) RETURN_IF_ERROR(NeedSharedSpace(site, mark, a, b));
    return Value{IslUnionMap(is_sum ? isl_union_map_union(maps.a->copy(), maps.b->copy())
                                    : isl_union_map_subtract(maps.a->copy(), maps.b->copy()))};
  }
  if (const Pair<IslUnionFunction> functions(a, b); functions) {
    RETURN_IF_ERROR(NeedSharedSpace(site, mark, a, b));
    return Value{IslUnionFunction(
        is_sum ? isl_union_pw_multi_aff_add(functions.a->copy(), functions.b->copy())
               : isl_union_pw_multi_aff_sub(functions.a->copy(), functions.b->copy()))};
  }
  if (const Pair<IslUnionQuasiPolynomial> counts(a, b); counts) {
    return Value{IslUnionQuasiPolynomial(
        is_sum ? isl_union_pw_qpolynomial_add(counts.a->copy(), counts.b->copy())
               : isl_union_pw_qpolynomial_sub(counts.a->copy(), counts.b->copy()))};
  }
  if (const Pair<IslVal> numbers(a, b); numbers) {
    return Value{IslVal(is_sum ? isl_val_add(numbers.a->copy(), numbers.b->copy())
                               : isl_val_sub(numbers.a->copy(), numbers.b->copy()))};
  }
  return BadKinds(site, mark, a, b, "two sets, maps, functions, quasi-polynomials or numbers");
}

absl::StatusOr<Value> Product(const Site& site, const Value& a, const Value& b) {
  if (const Pair<IslUnionSet> sets(a, b); sets) {
    if (IsParameters(*sets.b)) {
      return Value{
          IslUnionSet(isl_union_set_intersect_params(sets.a->copy(), Parameters(*sets.b)))};
    }
    if (IsParameters(*sets.a)) {
      return Value{
          IslUnionSet(isl_union_set_intersect_params(sets.b->copy(), Parameters(*sets.a)))};
    }
    RETURN_IF_ERROR(NeedSharedSpace(site, "*", a, b));
    return Value{IslUnionSet(isl_union_set_intersect(sets.a->copy(), sets.b->copy()))};
  }
  if (const Pair<IslUnionMap> maps(a, b); maps) {
    RETURN_IF_ERROR(NeedSharedSpace(site, "*", a, b));
    return Value{IslUnionMap(isl_union_map_intersect(maps.a->copy(), maps.b->copy()))};
  }
  if (const Pair<IslVal> numbers(a, b); numbers) {
    return Value{IslVal(isl_val_mul(numbers.a->copy(), numbers.b->copy()))};
  }
  if (const auto* number = a.As<IslVal>()) {
    if (const auto* function = b.As<IslUnionFunction>()) {
      return Value{
          IslUnionFunction(isl_union_pw_multi_aff_scale_val(function->copy(), number->copy()))};
    }
    if (const auto* count = b.As<IslUnionQuasiPolynomial>()) {
      return Value{IslUnionQuasiPolynomial(
          isl_union_pw_qpolynomial_scale_val(count->copy(), number->copy()))};
    }
  }
  if (b.As<IslVal>() != nullptr && a.As<IslVal>() == nullptr) return Product(site, b, a);
  if (const Pair<IslUnionQuasiPolynomial> counts(a, b); counts) {
    return Value{
        IslUnionQuasiPolynomial(isl_union_pw_qpolynomial_mul(counts.a->copy(), counts.b->copy()))};
  }
  // A map, function or quasi-polynomial on a part of its domain.
  if (const auto* set = b.As<IslUnionSet>()) {
    const bool is_condition = IsParameters(*set);
    if (const auto* map = a.As<IslUnionMap>()) {
      return Value{IslUnionMap(is_condition
                                   ? isl_union_map_intersect_params(map->copy(), Parameters(*set))
                                   : isl_union_map_intersect_domain(map->copy(), set->copy()))};
    }
    if (const auto* function = a.As<IslUnionFunction>()) {
      return Value{IslUnionFunction(
          is_condition ? isl_union_pw_multi_aff_intersect_params(function->copy(), Parameters(*set))
                       : isl_union_pw_multi_aff_intersect_domain(function->copy(), set->copy()))};
    }
    if (const auto* count = a.As<IslUnionQuasiPolynomial>()) {
      return Value{IslUnionQuasiPolynomial(
          is_condition ? isl_union_pw_qpolynomial_intersect_params(count->copy(), Parameters(*set))
                       : isl_union_pw_qpolynomial_intersect_domain(count->copy(), set->copy()))};
    }
  }
  return BadKinds(site, "*", a, b,
                  "two sets, maps or numbers, a map with a set, or a number with a function");
}

absl::StatusOr<Value> Gist(const Site& site, const Value& a, const Value& b) {
  const auto* context = b.As<IslUnionSet>();
  const bool is_condition = context != nullptr && IsParameters(*context);
  if (const Pair<IslUnionSet> sets(a, b); sets) {
    if (is_condition) {
      return Value{IslUnionSet(isl_union_set_gist_params(sets.a->copy(), Parameters(*context)))};
    }
    RETURN_IF_ERROR(NeedSharedSpace(site, "%", a, b));
    return Value{IslUnionSet(isl_union_set_gist(sets.a->copy(), sets.b->copy()))};
  }
  if (const Pair<IslUnionMap> maps(a, b); maps) {
    RETURN_IF_ERROR(NeedSharedSpace(site, "%", a, b));
    return Value{IslUnionMap(isl_union_map_gist(maps.a->copy(), maps.b->copy()))};
  }
  if (const auto* map = a.As<IslUnionMap>(); map != nullptr && context != nullptr) {
    return Value{IslUnionMap(is_condition
                                 ? isl_union_map_gist_params(map->copy(), Parameters(*context))
                                 : isl_union_map_gist_domain(map->copy(), context->copy()))};
  }
  if (const auto* count = a.As<IslUnionQuasiPolynomial>(); count != nullptr && context != nullptr) {
    return Value{IslUnionQuasiPolynomial(
        is_condition ? isl_union_pw_qpolynomial_gist_params(count->copy(), Parameters(*context))
                     : isl_union_pw_qpolynomial_gist(count->copy(), context->copy()))};
  }
  return BadKinds(site, "%", a, b, "a set, map or quasi-polynomial % what is known");
}

// First a, then b.
absl::StatusOr<Value> Compose(const Site& site, const Value& a, const Value& b) {
  const Pair<IslUnionMap> maps(a, b);
  const Pair<IslUnionFunction> functions(a, b);
  if (!maps && !functions) return BadKinds(site, ".", a, b, "two maps or two functions");
  IslUnionMap first, second;
  if (maps) {
    first = *maps.a;
    second = *maps.b;
  } else {
    first = IslUnionMap(isl_union_pw_multi_aff_as_union_map(functions.a->copy()));
    second = IslUnionMap(isl_union_pw_multi_aff_as_union_map(functions.b->copy()));
  }
  const Value range{IslUnionSet(isl_union_map_range(first.copy()))};
  const Value domain{IslUnionSet(isl_union_map_domain(second.copy()))};
  if (!ShareSpace(range, domain)) {
    return site.Error("a range and a domain in isomorphic spaces to compose",
                      StrCat(SpacesOf(range), " and ", SpacesOf(domain)));
  }
  if (functions) {
    return Value{IslUnionFunction(isl_union_pw_multi_aff_pullback_union_pw_multi_aff(
        functions.b->copy(), functions.a->copy()))};
  }
  return Value{IslUnionMap(isl_union_map_apply_range(first.take(), second.take()))};
}

absl::StatusOr<Value> Truth(const Site& site, isl_bool result) {
  if (result == isl_bool_error) return site.Failed();
  return Value{result == isl_bool_true};
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
  if (const Pair<IslUnionSet> sets(a, b); sets) {
    RETURN_IF_ERROR(NeedSharedSpace(site, mark, a, b));
    isl_union_set *x = sets.a->get(), *y = sets.b->get();
    return Truth(site, mark == "="    ? isl_union_set_is_equal(x, y)
                       : mark == "<=" ? isl_union_set_is_subset(x, y)
                                      : isl_union_set_is_strict_subset(x, y));
  }
  if (const Pair<IslUnionMap> maps(a, b); maps) {
    RETURN_IF_ERROR(NeedSharedSpace(site, mark, a, b));
    isl_union_map *x = maps.a->get(), *y = maps.b->get();
    return Truth(site, mark == "="    ? isl_union_map_is_equal(x, y)
                       : mark == "<=" ? isl_union_map_is_subset(x, y)
                                      : isl_union_map_is_strict_subset(x, y));
  }
  if (const Pair<IslVal> numbers(a, b); numbers) {
    isl_val *x = numbers.a->get(), *y = numbers.b->get();
    return Truth(site, mark == "="    ? isl_val_eq(x, y)
                       : mark == "<=" ? isl_val_le(x, y)
                                      : isl_val_lt(x, y));
  }
  if (const Pair<IslUnionFunction> functions(a, b); functions && mark == "=") {
    const IslUnionMap x(isl_union_pw_multi_aff_as_union_map(functions.a->copy()));
    const IslUnionMap y(isl_union_pw_multi_aff_as_union_map(functions.b->copy()));
    return Truth(site, isl_union_map_is_equal(x.get(), y.get()));
  }
  if (const Pair<bool> truths(a, b); truths && mark == "=") return Value{*truths.a == *truths.b};
  return BadKinds(site, mark, a, b, "two sets, maps or numbers to compare");
}

// { x -> y : x in a, y in b, x lexicographically before (after) y }.
absl::StatusOr<Value> Lexicographic(const Site& site, const std::string& mark, const Value& a,
                                    const Value& b) {
  const Pair<IslUnionSet> sets(a, b);
  if (!sets) return BadKinds(site, mark, a, b, "two sets");
  RETURN_IF_ERROR(NeedSharedSpace(site, mark, a, b));
  isl_union_set *x = sets.a->copy(), *y = sets.b->copy();
  return Value{IslUnionMap(mark == "<<"    ? isl_union_set_lex_lt_union_set(x, y)
                           : mark == "<<=" ? isl_union_set_lex_le_union_set(x, y)
                           : mark == ">>"  ? isl_union_set_lex_gt_union_set(x, y)
                                           : isl_union_set_lex_ge_union_set(x, y))};
}

// [{ S(i) -> (i) }, { S(i) -> (-i) }]: the function whose values are those of a, then those of b.
absl::StatusOr<Value> Tuple(const Site& site, const Value& a, const Value& b) {
  const Pair<IslUnionMap> maps(a, b);
  const Pair<IslUnionFunction> functions(a, b);
  if (!maps && !functions) return BadKinds(site, ",", a, b, "two maps or two functions");
  const Value x{IslUnionSet(maps ? isl_union_map_domain(maps.a->copy())
                                 : isl_union_pw_multi_aff_domain(functions.a->copy()))};
  const Value y{IslUnionSet(maps ? isl_union_map_domain(maps.b->copy())
                                 : isl_union_pw_multi_aff_domain(functions.b->copy()))};
  if (!ShareSpace(x, y)) {
    return site.Error("pieces whose domains are in isomorphic spaces",
                      StrCat(SpacesOf(x), " and ", SpacesOf(y)));
  }
  if (maps) {
    return Value{IslUnionMap(isl_union_map_flat_range_product(maps.a->copy(), maps.b->copy()))};
  }
  return Value{IslUnionFunction(
      isl_union_pw_multi_aff_flat_range_product(functions.a->copy(), functions.b->copy()))};
}

absl::StatusOr<Value> Binary(const Site& site, const std::string& mark, const Value& a,
                             const Value& b) {
  if (mark == "+" || mark == "-") return Sum(site, mark, a, b);
  if (mark == "*") return Product(site, a, b);
  if (mark == "%") return Gist(site, a, b);
  if (mark == ".") return Compose(site, a, b);
  if (mark == "cross") {
    if (const Pair<IslUnionSet> sets(a, b); sets) {
      return Value{IslUnionSet(isl_union_set_product(sets.a->copy(), sets.b->copy()))};
    }
    if (const Pair<IslUnionMap> maps(a, b); maps) {
      return Value{IslUnionMap(isl_union_map_product(maps.a->copy(), maps.b->copy()))};
    }
    return BadKinds(site, "cross", a, b, "two sets or two maps");
  }
  if (mark == "->") {
    if (const Pair<IslUnionSet> sets(a, b); sets) {
      return Value{
          IslUnionMap(isl_union_map_from_domain_and_range(sets.a->copy(), sets.b->copy()))};
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
  ASSIGN_OR_RETURN(Value value, Binary(site, mark, x, y));
  return Checked(site, std::move(value));
}

absl::StatusOr<Value> ApplyPower(const Site& site, const std::string& power, const Value& a) {
  const auto* map = a.As<IslUnionMap>();
  if (map == nullptr) return site.Error("a map before '^'", KindOf(a));
  if (power == "+") {
    isl_bool is_exact = isl_bool_error;
    Value closure{IslUnionMap(isl_union_map_transitive_closure(map->copy(), &is_exact))};
    if (is_exact == isl_bool_error) return site.Failed();
    closure.exactness =
        is_exact == isl_bool_true ? Exactness::kExactClosure : Exactness::kOverApproximation;
    return Checked(site, std::move(closure));
  }
  IslVal exponent = ReadNumber(site.isl.get(), power);
  if (isl_val_is_zero(exponent.get()) != isl_bool_false) {
    return site.Error("a power other than 0", StrCat("^", power));
  }
  return Checked(site,
                 Value{IslUnionMap(isl_union_map_fixed_power_val(map->copy(), exponent.take()))});
}

absl::StatusOr<Value> ApplyNegate(const Site& site, const Value& a) {
  if (const auto* number = a.As<IslVal>()) {
    return Checked(site, Value{IslVal(isl_val_neg(number->copy()))});
  }
  if (const auto* function = a.As<IslUnionFunction>()) {
    return Checked(site, Value{IslUnionFunction(isl_union_pw_multi_aff_neg(function->copy()))});
  }
  if (const auto* count = a.As<IslUnionQuasiPolynomial>()) {
    return Checked(site,
                   Value{IslUnionQuasiPolynomial(isl_union_pw_qpolynomial_neg(count->copy()))});
  }
  return site.Error("a number, function or quasi-polynomial after '-'", KindOf(a));
}

namespace {

// The count for the one element of a set: a number, or a function of the parameters. Where a condition on parameters
// excludes the element it counts as 0, as one outside of the count's domain does.
absl::StatusOr<Value> ApplyCount(const Site& site, const IslUnionQuasiPolynomial& count,
                                 const IslUnionSet& set) {
  if (!ShareSpace(Value{count}, Value{set})) {
    return site.Error("a quasi-polynomial and a set in isomorphic spaces to apply",
                      StrCat("one of ", SpacesOf(Value{count}), " and ", SpacesOf(Value{set})));
  }
  const IslUnionSet elements(isl_union_set_project_out_all_params(set.copy()));
  const IslUnionSet element(isl_union_set_from_point(isl_union_set_sample_point(elements.copy())));
  const isl_bool is_none = isl_union_set_is_empty(elements.get());
  const isl_bool is_one = isl_union_set_is_subset(elements.get(), element.get());
  if (is_none == isl_bool_error || is_one == isl_bool_error) return site.Failed();
  if (is_none == isl_bool_true || is_one == isl_bool_false) {
    return site.Error("a set of one element, as { S[3] }",
                      is_none == isl_bool_true ? "none" : "more than one");
  }
  struct Visit {
    IslUnionQuasiPolynomial sum;
    bool has_parameters = false;
  } visit{IslUnionQuasiPolynomial(
      isl_union_pw_qpolynomial_zero(isl_space_params_alloc(site.isl.get(), 0)))};
  // isl puts the element's coordinates, which are numbers, into the polynomial.
  const IslUnionQuasiPolynomial there(isl_union_pw_qpolynomial_intersect_params(
      isl_union_pw_qpolynomial_intersect_domain(count.copy(), element.copy()),
      isl_union_set_params(set.copy())));
  const isl_stat visited = isl_union_pw_qpolynomial_foreach_pw_qpolynomial(
      there.get(),
      [](isl_pw_qpolynomial* taken, void* user) {
        Visit* visit = static_cast<Visit*>(user);
        const IslPwQuasiPolynomial value(isl_pw_qpolynomial_project_domain_on_params(taken));
        const int parameters = isl_pw_qpolynomial_dim(value.get(), isl_dim_param);
        visit->has_parameters |= isl_pw_qpolynomial_involves_dims(value.get(), isl_dim_param, 0,
                                                                  parameters) == isl_bool_true;
        visit->sum = IslUnionQuasiPolynomial(isl_union_pw_qpolynomial_add(
            visit->sum.take(), isl_union_pw_qpolynomial_from_pw_qpolynomial(value.copy())));
        return visit->sum ? isl_stat_ok : isl_stat_error;
      },
      &visit);
  if (visited == isl_stat_error) return site.Failed();
  if (visit.has_parameters) return Checked(site, Value{std::move(visit.sum)});
  return Call(site, "value", {Value{std::move(visit.sum)}}, {});
}

}  // namespace

absl::StatusOr<Value> ApplyTo(const Site& site, const Value& a, const Value& b) {
  const auto* set = b.As<IslUnionSet>();
  IslUnionMap map;
  if (const auto* as_map = a.As<IslUnionMap>()) map = *as_map;
  if (const auto* function = a.As<IslUnionFunction>()) {
    map = IslUnionMap(isl_union_pw_multi_aff_as_union_map(function->copy()));
  }
  if (set == nullptr || (!map && a.As<IslUnionQuasiPolynomial>() == nullptr)) {
    return site.Error("a map, function or quasi-polynomial applied to a set",
                      StrCat(KindOf(a), " applied to ", KindOf(b)));
  }
  if (const auto* count = a.As<IslUnionQuasiPolynomial>()) {
    return ApplyCount(site, *count, *set);
  }
  const Value domain{IslUnionSet(isl_union_map_domain(map.copy()))};
  if (!ShareSpace(domain, b)) {
    return site.Error("a map and a set in isomorphic spaces to apply",
                      StrCat("the domain ", SpacesOf(domain), " and ", SpacesOf(b)));
  }
  return Checked(site, Value{IslUnionSet(isl_union_set_apply(set->copy(), map.take()))});
}

}  // namespace polynao::poly::calculator
