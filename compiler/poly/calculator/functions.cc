// The functions of the calculator.
#include <isl/id.h>
#include <isl/point.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/status.h"
#include "compiler/poly/calculator/calculator.h"
#include "compiler/poly/calculator/count.h"
#include "compiler/poly/calculator/value.h"

namespace polynao::poly::calculator {
namespace {

using Bindings = std::vector<Expression::Argument>;

// A call. The operands are as many as the function's row says.
struct CallSite : Site {
  const std::string& function;
  const std::vector<Value>& operands;
  const Bindings& arguments;

  absl::Status BadKind(std::string_view expected, size_t operand = 0) const {
    return Error(StrCat(expected, " as operand ", operand + 1, " of '", function, "'"),
                 KindOf(operands[operand]));
  }
};

using Body = std::function<absl::StatusOr<Value>(const CallSite&)>;

struct Function {
  Body body;
  size_t min_operands = 1;
  size_t max_operands = 1;
  Arguments arguments = Arguments::kExpressions;
};

absl::StatusOr<Value> Truth(const CallSite& site, isl_bool result) {
  if (result == isl_bool_error) return site.Failed();
  return Value{result == isl_bool_true};
}

// A function of a map, or of a set or a map.
template <typename Result>
Body OfMap(Result* (*f)(isl_union_map*)) {
  return [f](const CallSite& site) -> absl::StatusOr<Value> {
    const auto* map = site.operands[0].As<IslUnionMap>();
    if (map == nullptr) return site.BadKind("a map");
    if constexpr (std::is_same_v<Result, isl_union_set>) {
      return Value{IslUnionSet(f(map->copy()))};
    } else {
      return Value{IslUnionMap(f(map->copy()))};
    }
  };
}
Body OfEither(isl_union_set* (*of_set)(isl_union_set*), isl_union_map* (*of_map)(isl_union_map*)) {
  return [=](const CallSite& site) -> absl::StatusOr<Value> {
    if (const auto* set = site.operands[0].As<IslUnionSet>()) {
      return Value{IslUnionSet(of_set(set->copy()))};
    }
    if (const auto* map = site.operands[0].As<IslUnionMap>()) {
      return Value{IslUnionMap(of_map(map->copy()))};
    }
    return site.BadKind("a set or a map");
  };
}
Body TestOfMap(isl_bool (*f)(isl_union_map*)) {
  return [f](const CallSite& site) -> absl::StatusOr<Value> {
    const auto* map = site.operands[0].As<IslUnionMap>();
    if (map == nullptr) return site.BadKind("a map");
    return Truth(site, f(map->get()));
  };
}

// Applies `f` to each set (map, through its wrapped set) of the union.
IslUnionSet ForEachSet(const IslUnionSet& set, isl_set* (*f)(isl_set*)) {
  struct Visit {
    isl_set* (*f)(isl_set*);
    IslUnionSet result;
  } visit{f, IslUnionSet(isl_union_set_empty(isl_union_set_get_space(set.get())))};
  const isl_stat visited = isl_union_set_foreach_set(
      set.get(),
      [](isl_set* part, void* user) {
        Visit* visit = static_cast<Visit*>(user);
        visit->result = IslUnionSet(isl_union_set_add_set(visit->result.take(), visit->f(part)));
        return visit->result ? isl_stat_ok : isl_stat_error;
      },
      &visit);
  return visited == isl_stat_ok ? visit.result : IslUnionSet();
}
Body OfEachSet(isl_set* (*f)(isl_set*)) {
  return [f](const CallSite& site) -> absl::StatusOr<Value> {
    if (const auto* set = site.operands[0].As<IslUnionSet>()) return Value{ForEachSet(*set, f)};
    const auto* map = site.operands[0].As<IslUnionMap>();
    if (map == nullptr) return site.BadKind("a set or a map");
    const IslUnionSet wrapped(isl_union_map_wrap(map->copy()));
    return Value{IslUnionMap(isl_union_set_unwrap(ForEachSet(wrapped, f).take()))};
  };
}

absl::StatusOr<Value> Coalesce(const CallSite& site) {
  const Value& a = site.operands[0];
  if (const auto* function = a.As<IslUnionFunction>()) {
    return Value{IslUnionFunction(isl_union_pw_multi_aff_coalesce(function->copy()))};
  }
  if (const auto* count = a.As<IslUnionQuasiPolynomial>()) {
    return Value{IslUnionQuasiPolynomial(isl_union_pw_qpolynomial_coalesce(count->copy()))};
  }
  return OfEither(isl_union_set_coalesce, isl_union_map_coalesce)(site);
}

absl::StatusOr<Value> Domain(const CallSite& site) {
  const Value& a = site.operands[0];
  if (const auto* function = a.As<IslUnionFunction>()) {
    return Value{IslUnionSet(isl_union_pw_multi_aff_domain(function->copy()))};
  }
  if (const auto* count = a.As<IslUnionQuasiPolynomial>()) {
    return Value{IslUnionSet(isl_union_pw_qpolynomial_domain(count->copy()))};
  }
  return OfMap<isl_union_set>(isl_union_map_domain)(site);
}

absl::StatusOr<Value> Card(const CallSite& site) {
  absl::StatusOr<IslUnionQuasiPolynomial> count = absl::UnknownError("");
  if (const auto* set = site.operands[0].As<IslUnionSet>()) {
    count = CountElements(set->get());
  } else if (const auto* map = site.operands[0].As<IslUnionMap>()) {
    count = CountImages(map->get());
  } else {
    return site.BadKind("a set or a map");
  }
  if (absl::IsFailedPrecondition(count.status())) {
    // "expected ..., found ...".
    return absl::InvalidArgumentError(StrCat(site.file, ":", site.place.line, ":",
                                             site.place.column, ": ",
                                             std::string(count.status().message())));
  }
  if (!count.ok()) {
    return site.Error("a set that can be counted",
                      StrCat("one for which ", std::string(count.status().message())));
  }
  return Value{*std::move(count)};
}

absl::StatusOr<Value> Surjective(const CallSite& site) {
  const auto* map = site.operands[0].As<IslUnionMap>();
  if (map == nullptr) return site.BadKind("a map");
  const IslUnionSet range(isl_union_map_range(map->copy()));
  IslUnionSet onto(isl_union_set_universe(range.copy()));
  if (site.operands.size() > 1) {
    const auto* set = site.operands[1].As<IslUnionSet>();
    if (set == nullptr) return site.BadKind("a set", 1);
    if (!ShareSpace(Value{range}, site.operands[1])) {
      return site.Error("a range and a set in isomorphic spaces",
                        StrCat(SpacesOf(Value{range}), " and ", SpacesOf(site.operands[1])));
    }
    onto = *set;
  }
  return Truth(site, isl_union_set_is_subset(onto.get(), range.get()));
}

absl::StatusOr<Value> Bijective(const CallSite& site) {
  ASSIGN_OR_RETURN(Value bijective, TestOfMap(isl_union_map_is_bijective)(site));
  if (site.operands.size() == 1 || !*bijective.As<bool>()) return bijective;
  return Surjective(site);
}

absl::StatusOr<Value> IsEmpty(const CallSite& site) {
  if (const auto* set = site.operands[0].As<IslUnionSet>()) {
    return Truth(site, isl_union_set_is_empty(set->get()));
  }
  return TestOfMap(isl_union_map_is_empty)(site);
}

absl::StatusOr<Value> Isomorphic(const CallSite& site) {
  for (size_t i = 0; i < 2; ++i) {
    if (site.operands[i].As<IslUnionSet>() == nullptr &&
        site.operands[i].As<IslUnionMap>() == nullptr) {
      return site.BadKind("a set or a map", i);
    }
  }
  return Value{ShareSpace(site.operands[0], site.operands[1])};
}

absl::StatusOr<Value> Space(const CallSite& site) {
  if (site.operands[0].As<IslVal>() != nullptr || site.operands[0].As<bool>() != nullptr) {
    return site.BadKind("a set, map or function");
  }
  return Value{SpacesOf(site.operands[0], 1000)};
}

absl::StatusOr<Value> Parameters(const CallSite& site) {
  if (const auto* set = site.operands[0].As<IslUnionSet>()) {
    return Value{IslUnionSet(isl_union_set_from_set(isl_union_set_params(set->copy())))};
  }
  if (const auto* map = site.operands[0].As<IslUnionMap>()) {
    return Value{IslUnionSet(isl_union_set_from_set(isl_union_map_params(map->copy())))};
  }
  return site.BadKind("a set or a map");
}

absl::StatusOr<Value> Complement(const CallSite& site) {
  if (const auto* set = site.operands[0].As<IslUnionSet>()) {
    return Value{
        IslUnionSet(isl_union_set_subtract(isl_union_set_universe(set->copy()), set->copy()))};
  }
  if (const auto* map = site.operands[0].As<IslUnionMap>()) {
    return Value{
        IslUnionMap(isl_union_map_subtract(isl_union_map_universe(map->copy()), map->copy()))};
  }
  return site.BadKind("a set or a map");
}

template <isl_union_map* (*F)(isl_union_map*, isl_union_map*)>
absl::StatusOr<Value> OfTwoMaps(const CallSite& site) {
  for (size_t i = 0; i < 2; ++i) {
    if (site.operands[i].As<IslUnionMap>() == nullptr) return site.BadKind("a map", i);
  }
  return Value{IslUnionMap(
      F(site.operands[0].As<IslUnionMap>()->copy(), site.operands[1].As<IslUnionMap>()->copy()))};
}

absl::StatusOr<Value> ToFunction(const CallSite& site) {
  const auto* map = site.operands[0].As<IslUnionMap>();
  if (map == nullptr) return site.BadKind("a map");
  const isl_bool is_single_valued = isl_union_map_is_single_valued(map->get());
  if (is_single_valued == isl_bool_error) return site.Failed();
  if (is_single_valued == isl_bool_false) {
    return site.Error("a map with one image for each element of its domain",
                      "one with more for some element");
  }
  return Value{IslUnionFunction(isl_union_pw_multi_aff_from_union_map(map->copy()))};
}

absl::StatusOr<Value> ToMap(const CallSite& site) {
  const auto* function = site.operands[0].As<IslUnionFunction>();
  if (function == nullptr) return site.BadKind("a function");
  return Value{IslUnionMap(isl_union_pw_multi_aff_as_union_map(function->copy()))};
}

// Two functions with disjoint domains as one.
absl::StatusOr<Value> Join(const CallSite& site) {
  const auto* a = site.operands[0].As<IslUnionFunction>();
  const auto* b = site.operands[1].As<IslUnionFunction>();
  if (a == nullptr) return site.BadKind("a function");
  if (b == nullptr) return site.BadKind("a function", 1);
  const IslUnionSet x(isl_union_pw_multi_aff_domain(a->copy()));
  const IslUnionSet y(isl_union_pw_multi_aff_domain(b->copy()));
  const isl_bool is_disjoint = isl_union_set_is_disjoint(x.get(), y.get());
  if (is_disjoint == isl_bool_error) return site.Failed();
  if (is_disjoint == isl_bool_false) {
    return site.Error("functions with disjoint domains", "domains that share elements");
  }
  return Value{IslUnionFunction(isl_union_pw_multi_aff_union_add(a->copy(), b->copy()))};
}

absl::StatusOr<Value> IsExact(const CallSite& site) {
  return Value{site.operands[0].exactness != Exactness::kOverApproximation};
}

absl::StatusOr<Value> Closure(const CallSite& site) {
  return ApplyPower(site, "+", site.operands[0]);
}

// Whether the elements and the parameters have bounds.
isl_bool IsBounded(const IslUnionSet& set) {
  isl_bool is_bounded = isl_bool_true;
  const isl_stat visited = isl_union_set_foreach_set(
      set.get(),
      [](isl_set* part, void* user) {
        if (isl_set_is_params(part) == isl_bool_true) part = isl_set_from_params(part);
        const int parameters = isl_set_dim(part, isl_dim_param);
        if (parameters > 0) {
          part = isl_set_move_dims(part, isl_dim_set, 0, isl_dim_param, 0, parameters);
        }
        const isl_bool is_part_bounded = isl_set_is_bounded(part);
        isl_set_free(part);
        if (is_part_bounded == isl_bool_false) *static_cast<isl_bool*>(user) = isl_bool_false;
        return is_part_bounded == isl_bool_error ? isl_stat_error : isl_stat_ok;
      },
      &is_bounded);
  return visited == isl_stat_ok ? is_bounded : isl_bool_error;
}

// The elements one by one.
absl::StatusOr<Value> Points(const CallSite& site) {
  const auto* set = site.operands[0].As<IslUnionSet>();
  if (set == nullptr) return site.BadKind("a set");
  const isl_bool is_bounded = IsBounded(*set);
  if (is_bounded == isl_bool_error) return site.Failed();
  if (is_bounded == isl_bool_false) {
    return site.Error("a set of finitely many elements, for finitely many values of its parameters",
                      "one that is unbounded");
  }
  constexpr int kMaxPoints = 10000;
  struct Visit {
    std::string text;
    int count = 0;
  } visit;
  const isl_stat visited = isl_union_set_foreach_point(
      set->get(),
      [](isl_point* point, void* user) {
        Visit* visit = static_cast<Visit*>(user);
        if (++visit->count > kMaxPoints) {
          isl_point_free(point);
          return isl_stat_error;
        }
        const IslUnionSet one(isl_union_set_from_point(point));
        StrAppend(&visit->text, visit->text.empty() ? "" : "\n",
                  TakeIslText(isl_union_set_to_str(one.get())));
        return isl_stat_ok;
      },
      &visit);
  if (visit.count > kMaxPoints) {
    return site.Error(StrCat("a set of at most ", kMaxPoints, " points"), "more");
  }
  if (visited == isl_stat_error) return site.Failed();
  return Value{visit.text};
}

// project(A, i, 1): without these dimensions (by name or position; of a map, its domain's first) or
// parameters.
absl::StatusOr<Value> Project(const CallSite& site) {
  const bool is_map = site.operands[0].As<IslUnionMap>() != nullptr;
  if (!is_map && site.operands[0].As<IslUnionSet>() == nullptr) {
    return site.BadKind("a set or a map");
  }
  if (site.arguments.empty()) return site.Error("a dimension to project out", "none");
  const IslUnionMap maps =
      is_map ? *site.operands[0].As<IslUnionMap>()
             : IslUnionMap(isl_union_map_from_range(site.operands[0].As<IslUnionSet>()->copy()));
  struct Visit {
    const CallSite* site;
    bool is_map;
    std::vector<bool> found;
    IslUnionMap result;
  } visit{&site, is_map, std::vector<bool>(site.arguments.size()),
          IslUnionMap(isl_union_map_empty(isl_union_map_get_space(maps.get())))};
  const isl_stat visited = isl_union_map_foreach_map(
      maps.get(),
      [](isl_map* taken, void* user) {
        Visit* visit = static_cast<Visit*>(user);
        const IslMap part(taken);
        // Positions before anything is removed, by kind of dimension.
        std::map<isl_dim_type, std::vector<int>> positions;
        for (size_t i = 0; i < visit->site->arguments.size(); ++i) {
          const Token& name = visit->site->arguments[i].name;
          isl_dim_type type = isl_dim_out;
          int position = -1;
          if (name.kind == TokenKind::kNumber) {
            const int in = isl_map_dim(part.get(), isl_dim_in);
            const int out = isl_map_dim(part.get(), isl_dim_out);
            const long number = name.text.size() > 6 ? -1 : std::stol(name.text);
            if (number >= 0 && number < in) {
              type = isl_dim_in;
              position = static_cast<int>(number);
            } else if (number >= in && number < in + out) {
              position = static_cast<int>(number) - in;
            }
          } else {
            for (isl_dim_type candidate : {isl_dim_in, isl_dim_out, isl_dim_param}) {
              position = isl_map_find_dim_by_name(part.get(), candidate, name.text.c_str());
              type = candidate;
              if (position >= 0) break;
            }
          }
          if (position < 0) continue;
          visit->found[i] = true;
          positions[type].push_back(position);
        }
        isl_map* map = part.copy();
        for (auto& [type, list] : positions) {
          std::sort(list.begin(), list.end());
          list.erase(std::unique(list.begin(), list.end()), list.end());
          for (size_t i = list.size(); i-- > 0;) {
            // isl drops a tuple's name with its dimensions; the rest is still a part of it.
            isl_id* id = isl_map_has_tuple_id(map, type == isl_dim_param ? isl_dim_out : type) ==
                                 isl_bool_true
                             ? isl_map_get_tuple_id(map, type == isl_dim_param ? isl_dim_out : type)
                             : nullptr;
            map = isl_map_project_out(map, type, list[i], 1);
            if (id != nullptr && type != isl_dim_param) {
              map = isl_map_set_tuple_id(map, type, id);
            } else {
              isl_id_free(id);
            }
          }
        }
        visit->result = IslUnionMap(isl_union_map_add_map(visit->result.take(), map));
        return visit->result ? isl_stat_ok : isl_stat_error;
      },
      &visit);
  if (visited == isl_stat_error) return site.Failed();
  for (size_t i = 0; i < visit.found.size(); ++i) {
    if (visit.found[i]) continue;
    return ErrorAt(site.file, site.arguments[i].name.place,
                   StrCat("a dimension of ", SpacesOf(site.operands[0])),
                   Describe(site.arguments[i].name));
  }
  if (is_map) return Value{std::move(visit.result)};
  return Value{IslUnionSet(isl_union_map_range(visit.result.take()))};
}

// at(A, n = 10): where the parameters have these values, without them.
absl::StatusOr<Value> At(const CallSite& site) {
  const Value& a = site.operands[0];
  isl_space* space = isl_space_params_alloc(site.isl.get(), site.arguments.size());
  for (size_t i = 0; i < site.arguments.size(); ++i) {
    space = isl_space_set_dim_name(space, isl_dim_param, i, site.arguments[i].name.text.c_str());
  }
  isl_set* values = isl_set_universe(space);
  for (size_t i = 0; i < site.arguments.size(); ++i) {
    values = isl_set_fix_val(values, isl_dim_param, i,
                             ReadNumber(site.isl.get(), site.arguments[i].value).take());
  }
  const IslSet at(values);
  auto without = [&](isl_union_map* map) {
    for (const Expression::Argument& argument : site.arguments) {
      const int position =
          isl_union_map_find_dim_by_name(map, isl_dim_param, argument.name.text.c_str());
      if (position >= 0) map = isl_union_map_project_out(map, isl_dim_param, position, 1);
    }
    return map;
  };
  if (const auto* set = a.As<IslUnionSet>()) {
    if (isl_union_set_is_params(set->get()) == isl_bool_true) {
      return Value{IslUnionSet(isl_union_set_intersect_params(set->copy(), at.copy()))};
    }
    return Value{IslUnionSet(isl_union_map_range(without(
        isl_union_map_from_range(isl_union_set_intersect_params(set->copy(), at.copy())))))};
  }
  if (const auto* map = a.As<IslUnionMap>()) {
    return Value{IslUnionMap(without(isl_union_map_intersect_params(map->copy(), at.copy())))};
  }
  if (const auto* function = a.As<IslUnionFunction>()) {
    return Value{
        IslUnionFunction(isl_union_pw_multi_aff_intersect_params(function->copy(), at.copy()))};
  }
  if (const auto* count = a.As<IslUnionQuasiPolynomial>()) {
    return Value{IslUnionQuasiPolynomial(
        isl_union_pw_qpolynomial_intersect_params(count->copy(), at.copy()))};
  }
  return site.BadKind("a set, map, function or quasi-polynomial");
}

// value(card A, n = 10): the number.
absl::StatusOr<Value> ValueOf(const CallSite& site) {
  if (site.operands[0].As<IslVal>() != nullptr) return site.operands[0];
  const auto* count = site.operands[0].As<IslUnionQuasiPolynomial>();
  if (count == nullptr) return site.BadKind("a quasi-polynomial or a number");
  struct Visit {
    std::map<std::string, IslVal> values;
    IslVal sum;
    absl::Status status;
  } visit;
  for (const Expression::Argument& argument : site.arguments) {
    visit.values.insert_or_assign(argument.name.text, ReadNumber(site.isl.get(), argument.value));
  }
  visit.sum = IslVal(isl_val_zero(site.isl.get()));
  const isl_stat visited = isl_union_pw_qpolynomial_foreach_pw_qpolynomial(
      count->get(),
      [](isl_pw_qpolynomial* taken, void* user) {
        Visit* visit = static_cast<Visit*>(user);
        const IslPwQuasiPolynomial part(taken);
        const absl::StatusOr<IslVal> value = ValueAt(part.get(), visit->values);
        visit->status = value.status();
        if (!value.ok()) return isl_stat_error;
        visit->sum = IslVal(isl_val_add(visit->sum.take(), value->copy()));
        return isl_stat_ok;
      },
      &visit);
  if (!visit.status.ok()) {
    return absl::InvalidArgumentError(StrCat(site.file, ":", site.place.line, ":",
                                             site.place.column, ": ",
                                             std::string(visit.status.message())));
  }
  if (visited == isl_stat_error) return site.Failed();
  return Value{std::move(visit.sum)};
}

const std::map<std::string, Function, std::less<>>& Functions() {
  static const auto* const functions = new std::map<std::string, Function, std::less<>>{
      {"affine_hull", {OfEither(isl_union_set_affine_hull, isl_union_map_affine_hull)}},
      {"at", {At, 1, 1, Arguments::kBindings}},
      {"bijective", {Bijective, 1, 2}},
      {"card", {Card}},
      {"closure", {Closure}},
      {"coalesce", {Coalesce}},
      {"complement", {Complement}},
      {"convex_hull",
       {OfEachSet([](isl_set* s) { return isl_set_from_basic_set(isl_set_convex_hull(s)); })}},
      {"deltas", {OfMap<isl_union_set>(isl_union_map_deltas)}},
      {"domain", {Domain}},
      {"domain_product", {OfTwoMaps<isl_union_map_domain_product>, 2, 2}},
      {"exact", {IsExact}},
      {"function", {ToFunction}},
      {"identity", {[](const CallSite& site) -> absl::StatusOr<Value> {
         const auto* set = site.operands[0].As<IslUnionSet>();
         if (set == nullptr) return site.BadKind("a set");
         return Value{IslUnionMap(isl_union_set_identity(set->copy()))};
       }}},
      {"injective", {TestOfMap(isl_union_map_is_injective)}},
      {"inverse", {OfMap<isl_union_map>(isl_union_map_reverse)}},
      {"is_empty", {IsEmpty}},
      {"isomorphic", {Isomorphic, 2, 2}},
      {"join", {Join, 2, 2}},
      {"lexmax", {OfEither(isl_union_set_lexmax, isl_union_map_lexmax)}},
      {"lexmin", {OfEither(isl_union_set_lexmin, isl_union_map_lexmin)}},
      {"map", {ToMap}},
      {"parameters", {Parameters}},
      {"points", {Points}},
      {"polyhedral_hull", {OfEither(isl_union_set_polyhedral_hull, isl_union_map_polyhedral_hull)}},
      {"project", {Project, 1, 1, Arguments::kDimensions}},
      {"range", {OfMap<isl_union_set>(isl_union_map_range)}},
      {"range_product", {OfTwoMaps<isl_union_map_range_product>, 2, 2}},
      {"sample", {OfEachSet([](isl_set* s) { return isl_set_from_basic_set(isl_set_sample(s)); })}},
      {"simple_hull", {OfEither(isl_union_set_simple_hull, isl_union_map_simple_hull)}},
      {"single_valued", {TestOfMap(isl_union_map_is_single_valued)}},
      {"space", {Space}},
      {"surjective", {Surjective, 1, 2}},
      {"universe", {OfEither(isl_union_set_universe, isl_union_map_universe)}},
      {"unwrap", {[](const CallSite& site) -> absl::StatusOr<Value> {
         const auto* set = site.operands[0].As<IslUnionSet>();
         if (set == nullptr) return site.BadKind("a set");
         return Value{IslUnionMap(isl_union_set_unwrap(set->copy()))};
       }}},
      {"value", {ValueOf, 1, 1, Arguments::kBindings}},
      {"wrap", {OfMap<isl_union_set>(isl_union_map_wrap)}},
  };
  return *functions;
}

}  // namespace

const Arguments* FindFunction(std::string_view name) {
  const auto it = Functions().find(name);
  return it == Functions().end() ? nullptr : &it->second.arguments;
}

absl::StatusOr<Value> Call(const Site& site, const std::string& name,
                           const std::vector<Value>& operands, const Bindings& arguments) {
  const Function& function = Functions().at(name);
  if (operands.size() < function.min_operands || operands.size() > function.max_operands) {
    return site.Error(function.min_operands == function.max_operands
                          ? StrCat("'", name, "' with ", function.min_operands, " operands")
                          : StrCat("'", name, "' with ", function.min_operands, " to ",
                                   function.max_operands, " operands"),
                      StrCat(operands.size()));
  }
  ASSIGN_OR_RETURN(Value value, function.body(CallSite{site, name, operands, arguments}));
  return Checked(site, std::move(value));
}

}  // namespace polynao::poly::calculator

namespace polynao::poly {

std::vector<std::string> CalculatorFunctions() {
  std::vector<std::string> names;
  for (const auto& [name, function] : calculator::Functions()) names.push_back(name);
  return names;
}

}  // namespace polynao::poly
