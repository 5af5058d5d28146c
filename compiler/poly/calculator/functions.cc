// The functions of the calculator.
#include <functional>
#include <map>
#include <set>
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

// A function of a map, or of a set or a map: a member of isl's classes.
template <typename Result>
Body OfMap(Result (isl::union_map::*f)() const) {
  return [f](const CallSite& site) -> absl::StatusOr<Value> {
    const auto* map = site.operands[0].As<isl::union_map>();
    if (map == nullptr) return site.BadKind("a map");
    return Value{(map->*f)()};
  };
}
template <typename Result>
Body OfSet(Result (isl::union_set::*f)() const) {
  return [f](const CallSite& site) -> absl::StatusOr<Value> {
    const auto* set = site.operands[0].As<isl::union_set>();
    if (set == nullptr) return site.BadKind("a set");
    return Value{(set->*f)()};
  };
}
template <typename OfSet, typename OfMap>
Body OfEither(OfSet of_set, OfMap of_map) {
  return [=](const CallSite& site) -> absl::StatusOr<Value> {
    if (const auto* set = site.operands[0].As<isl::union_set>()) {
      return Value{std::invoke(of_set, *set)};
    }
    if (const auto* map = site.operands[0].As<isl::union_map>()) {
      return Value{std::invoke(of_map, *map)};
    }
    return site.BadKind("a set or a map");
  };
}
// Applies `f` to each set (map, through its wrapped set) of the union.
Body OfEachSet(isl_set* (*f)(isl_set*)) {
  auto of_each = [f](const isl::union_set& set) {
    isl::union_set result = isl::union_set::empty(set.ctx());
    set.foreach_set(
        [&](const isl::set& part) { result = result.unite(isl::manage(f(part.copy()))); });
    return result;
  };
  return OfEither(of_each,
                  [of_each](const isl::union_map& map) { return of_each(map.wrap()).unwrap(); });
}

absl::StatusOr<Value> Coalesce(const CallSite& site) {
  const Value& a = site.operands[0];
  if (const auto* function = a.As<isl::union_pw_multi_aff>()) {
    return Value{function->coalesce()};
  }
  if (const auto* count = a.As<IslUnionQuasiPolynomial>()) {
    return Value{IslUnionQuasiPolynomial(isl_union_pw_qpolynomial_coalesce(count->copy()))};
  }
  return OfEither(&isl::union_set::coalesce, &isl::union_map::coalesce)(site);
}

absl::StatusOr<Value> Domain(const CallSite& site) {
  const Value& a = site.operands[0];
  if (const auto* function = a.As<isl::union_pw_multi_aff>()) {
    return Value{function->domain()};
  }
  if (const auto* count = a.As<IslUnionQuasiPolynomial>()) {
    return Value{isl::manage(isl_union_pw_qpolynomial_domain(count->copy()))};
  }
  return OfMap(&isl::union_map::domain)(site);
}

absl::StatusOr<Value> Card(const CallSite& site) {
  absl::StatusOr<IslUnionQuasiPolynomial> count = absl::UnknownError("");
  if (const auto* set = site.operands[0].As<isl::union_set>()) {
    count = CountElements(*set);
  } else if (const auto* map = site.operands[0].As<isl::union_map>()) {
    count = CountImages(*map);
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
  const auto* map = site.operands[0].As<isl::union_map>();
  if (map == nullptr) return site.BadKind("a map");
  const isl::union_set range = map->range();
  isl::union_set onto = range.universe();
  if (site.operands.size() > 1) {
    const auto* set = site.operands[1].As<isl::union_set>();
    if (set == nullptr) return site.BadKind("a set", 1);
    if (!ShareSpace(Value{range}, site.operands[1])) {
      return site.Error("a range and a set in isomorphic spaces",
                        StrCat(SpacesOf(Value{range}), " and ", SpacesOf(site.operands[1])));
    }
    onto = *set;
  }
  return Value{onto.is_subset(range)};
}

absl::StatusOr<Value> Bijective(const CallSite& site) {
  ASSIGN_OR_RETURN(Value bijective, OfMap(&isl::union_map::is_bijective)(site));
  if (site.operands.size() == 1 || !*bijective.As<bool>()) return bijective;
  return Surjective(site);
}

absl::StatusOr<Value> Isomorphic(const CallSite& site) {
  for (size_t i = 0; i < 2; ++i) {
    if (site.operands[i].As<isl::union_set>() == nullptr &&
        site.operands[i].As<isl::union_map>() == nullptr) {
      return site.BadKind("a set or a map", i);
    }
  }
  return Value{ShareSpace(site.operands[0], site.operands[1])};
}

absl::StatusOr<Value> Space(const CallSite& site) {
  if (site.operands[0].As<isl::val>() != nullptr || site.operands[0].As<bool>() != nullptr) {
    return site.BadKind("a set, map or function");
  }
  return Value{SpacesOf(site.operands[0], 1000)};
}

isl::union_set ParametersOfSet(const isl::union_set& set) {
  return isl::manage(isl_union_set_from_set(isl_union_set_params(set.copy())));
}
isl::union_set ParametersOfMap(const isl::union_map& map) {
  return isl::manage(isl_union_set_from_set(isl_union_map_params(map.copy())));
}

Body OfTwoMaps(isl::union_map (isl::union_map::*f)(isl::union_map) const) {
  return [f](const CallSite& site) -> absl::StatusOr<Value> {
    for (size_t i = 0; i < 2; ++i) {
      if (site.operands[i].As<isl::union_map>() == nullptr) return site.BadKind("a map", i);
    }
    return Value{
        (site.operands[0].As<isl::union_map>()->*f)(*site.operands[1].As<isl::union_map>())};
  };
}

absl::StatusOr<Value> ToFunction(const CallSite& site) {
  const auto* map = site.operands[0].As<isl::union_map>();
  if (map == nullptr) return site.BadKind("a map");
  if (!map->is_single_valued()) {
    return site.Error("a map with one image for each element of its domain",
                      "one with more for some element");
  }
  return Value{isl::manage(isl_union_pw_multi_aff_from_union_map(map->copy()))};
}

absl::StatusOr<Value> ToMap(const CallSite& site) {
  const auto* function = site.operands[0].As<isl::union_pw_multi_aff>();
  if (function == nullptr) return site.BadKind("a function");
  return Value{function->as_union_map()};
}

// Two functions with disjoint domains as one.
absl::StatusOr<Value> Join(const CallSite& site) {
  const auto* a = site.operands[0].As<isl::union_pw_multi_aff>();
  const auto* b = site.operands[1].As<isl::union_pw_multi_aff>();
  if (a == nullptr) return site.BadKind("a function");
  if (b == nullptr) return site.BadKind("a function", 1);
  if (!a->domain().is_disjoint(b->domain())) {
    return site.Error("functions with disjoint domains", "domains that share elements");
  }
  return Value{a->union_add(*b)};
}

absl::StatusOr<Value> IsExact(const CallSite& site) {
  return Value{site.operands[0].exactness != Exactness::kOverApproximation};
}

absl::StatusOr<Value> Closure(const CallSite& site) {
  return ApplyPower(site, "+", site.operands[0]);
}

// Whether the elements and the parameters have bounds.
bool IsBounded(const isl::set& set) {
  isl_set* all = set.copy();
  if (isl_set_is_params(all) == isl_bool_true) all = isl_set_from_params(all);
  const int parameters = isl_set_dim(all, isl_dim_param);
  if (parameters > 0) {
    all = isl_set_move_dims(all, isl_dim_set, 0, isl_dim_param, 0, parameters);
  }
  return isl_set_is_bounded(isl::manage(all).get()) == isl_bool_true;
}

// The elements one by one.
absl::StatusOr<Value> Points(const CallSite& site) {
  const auto* set = site.operands[0].As<isl::union_set>();
  if (set == nullptr) return site.BadKind("a set");
  if (!set->every_set(IsBounded)) {
    return site.Error("a set of finitely many elements, for finitely many values of its parameters",
                      "one that is unbounded");
  }
  constexpr int kMaxPoints = 10000;
  struct TooMany {};
  std::vector<std::string> lines;
  try {
    set->foreach_point([&](const isl::point& point) {
      if (lines.size() == kMaxPoints) throw TooMany();
      lines.push_back(Text(isl::union_set(point)));
    });
  } catch (const TooMany&) {
    return site.Error(StrCat("a set of at most ", kMaxPoints, " points"), "more");
  }
  std::string text;
  for (const std::string& line : lines) StrAppend(&text, text.empty() ? "" : "\n", line);
  return Value{text};
}

// project(A, i, 1): without these dimensions (by name or position; of a map, its domain's first) or
// parameters.
absl::StatusOr<Value> Project(const CallSite& site) {
  const bool is_map = site.operands[0].As<isl::union_map>() != nullptr;
  if (!is_map && site.operands[0].As<isl::union_set>() == nullptr) {
    return site.BadKind("a set or a map");
  }
  if (site.arguments.empty()) return site.Error("a dimension to project out", "none");
  const isl::union_map maps =
      is_map ? *site.operands[0].As<isl::union_map>()
             : isl::union_map::from_range(*site.operands[0].As<isl::union_set>());
  std::vector<bool> found(site.arguments.size());
  isl::union_map result = isl::union_map::empty(maps.ctx());
  maps.foreach_map([&](const isl::map& part) {
    // Positions before anything is removed, by kind of dimension.
    std::map<isl_dim_type, std::set<int>> positions;
    for (size_t i = 0; i < site.arguments.size(); ++i) {
      const Token& name = site.arguments[i].name;
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
      found[i] = true;
      positions[type].insert(position);
    }
    isl::map map = part;
    for (const auto& [type, list] : positions) {
      // isl drops a tuple's name with its dimensions; the rest is still a part of it.
      const char* tuple =
          type == isl_dim_param ? nullptr : isl_map_get_tuple_name(part.get(), type);
      for (auto position = list.rbegin(); position != list.rend(); ++position) {
        map = isl::manage(isl_map_project_out(map.release(), type, *position, 1));
      }
      if (tuple != nullptr) map = isl::manage(isl_map_set_tuple_name(map.release(), type, tuple));
    }
    result = result.unite(map);
  });
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i]) continue;
    return ErrorAt(site.file, site.arguments[i].name.place,
                   StrCat("a dimension of ", SpacesOf(site.operands[0])),
                   Describe(site.arguments[i].name));
  }
  if (is_map) return Value{result};
  return Value{result.range()};
}

// at(A, n = 10): where the parameters have these values, without them.
absl::StatusOr<Value> At(const CallSite& site) {
  const Value& a = site.operands[0];
  isl::space space = isl::space::unit(site.isl.ctx());
  for (const Expression::Argument& argument : site.arguments) {
    space = space.add_param(isl::id(site.isl.ctx(), argument.name.text));
  }
  isl::set at = isl::set::universe(space);
  for (const Expression::Argument& argument : site.arguments) {
    isl::val value = ReadNumber(site.isl, argument.value);
    const int position =
        isl_space_find_dim_by_name(space.get(), isl_dim_param, argument.name.text.c_str());
    at = isl::manage(isl_set_fix_val(at.release(), isl_dim_param, position, value.release()));
  }
  auto without = [&](isl::union_map map) {
    for (const Expression::Argument& argument : site.arguments) {
      const int position =
          isl_union_map_find_dim_by_name(map.get(), isl_dim_param, argument.name.text.c_str());
      if (position < 0) continue;
      map = isl::manage(isl_union_map_project_out(map.release(), isl_dim_param, position, 1));
    }
    return map;
  };
  if (const auto* set = a.As<isl::union_set>()) {
    const isl::union_set there = set->intersect_params(at);
    if (isl_union_set_is_params(set->get()) == isl_bool_true) return Value{there};
    return Value{without(isl::union_map::from_range(there)).range()};
  }
  if (const auto* map = a.As<isl::union_map>()) return Value{without(map->intersect_params(at))};
  if (const auto* function = a.As<isl::union_pw_multi_aff>()) {
    return Value{function->intersect_params(at)};
  }
  if (const auto* count = a.As<IslUnionQuasiPolynomial>()) {
    return Value{IslUnionQuasiPolynomial(
        isl_union_pw_qpolynomial_intersect_params(count->copy(), at.copy()))};
  }
  return site.BadKind("a set, map, function or quasi-polynomial");
}

// value(card A, n = 10): the number.
absl::StatusOr<Value> ValueOf(const CallSite& site) {
  if (site.operands[0].As<isl::val>() != nullptr) return site.operands[0];
  const auto* count = site.operands[0].As<IslUnionQuasiPolynomial>();
  if (count == nullptr) return site.BadKind("a quasi-polynomial or a number");
  std::map<std::string, isl::val> values;
  for (const Expression::Argument& argument : site.arguments) {
    values.insert_or_assign(argument.name.text, ReadNumber(site.isl, argument.value));
  }
  isl::val sum = isl::val::zero(site.isl.ctx());
  for (const IslPwQuasiPolynomial& part : PartsOf(*count)) {
    const absl::StatusOr<isl::val> value = ValueAt(part, values);
    if (!value.ok()) {
      return absl::InvalidArgumentError(StrCat(site.file, ":", site.place.line, ":",
                                               site.place.column, ": ",
                                               std::string(value.status().message())));
    }
    sum = sum.add(*value);
  }
  return Value{sum};
}

const std::map<std::string, Function, std::less<>>& Functions() {
  static const auto* const functions = new std::map<std::string, Function, std::less<>>{
      {"affine_hull", {OfEither(&isl::union_set::affine_hull, &isl::union_map::affine_hull)}},
      {"at", {At, 1, 1, Arguments::kBindings}},
      {"bijective", {Bijective, 1, 2}},
      {"card", {Card}},
      {"closure", {Closure}},
      {"coalesce", {Coalesce}},
      {"complement",
       {OfEither([](const isl::union_set& s) { return s.universe().subtract(s); },
                 [](const isl::union_map& m) { return m.universe().subtract(m); })}},
      {"convex_hull",
       {OfEachSet([](isl_set* s) { return isl_set_from_basic_set(isl_set_convex_hull(s)); })}},
      {"deltas", {OfMap(&isl::union_map::deltas)}},
      {"domain", {Domain}},
      {"domain_product", {OfTwoMaps(&isl::union_map::domain_product), 2, 2}},
      {"exact", {IsExact}},
      {"function", {ToFunction}},
      {"identity", {OfSet(&isl::union_set::identity)}},
      {"injective", {OfMap(&isl::union_map::is_injective)}},
      {"inverse", {OfMap(&isl::union_map::reverse)}},
      {"is_empty", {OfEither(&isl::union_set::is_empty, &isl::union_map::is_empty)}},
      {"isomorphic", {Isomorphic, 2, 2}},
      {"join", {Join, 2, 2}},
      {"lexmax", {OfEither(&isl::union_set::lexmax, &isl::union_map::lexmax)}},
      {"lexmin", {OfEither(&isl::union_set::lexmin, &isl::union_map::lexmin)}},
      {"map", {ToMap}},
      {"parameters", {OfEither(ParametersOfSet, ParametersOfMap)}},
      {"points", {Points}},
      {"polyhedral_hull",
       {OfEither(&isl::union_set::polyhedral_hull, &isl::union_map::polyhedral_hull)}},
      {"project", {Project, 1, 1, Arguments::kDimensions}},
      {"range", {OfMap(&isl::union_map::range)}},
      {"range_product", {OfTwoMaps(&isl::union_map::range_product), 2, 2}},
      {"sample", {OfEachSet([](isl_set* s) { return isl_set_from_basic_set(isl_set_sample(s)); })}},
      {"simple_hull",
       {OfEither(
           [](const isl::union_set& s) {
             return isl::union_set(isl::manage(isl_union_set_simple_hull(s.copy())));
           },
           [](const isl::union_map& m) {
             return isl::union_map(isl::manage(isl_union_map_simple_hull(m.copy())));
           })}},
      {"single_valued", {OfMap(&isl::union_map::is_single_valued)}},
      {"space", {Space}},
      {"surjective", {Surjective, 1, 2}},
      {"universe", {OfEither(&isl::union_set::universe, &isl::union_map::universe)}},
      {"unwrap", {OfSet(&isl::union_set::unwrap)}},
      {"value", {ValueOf, 1, 1, Arguments::kBindings}},
      {"wrap", {OfMap(&isl::union_map::wrap)}},
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
  return function.body(CallSite{site, name, operands, arguments});
}

}  // namespace polynao::poly::calculator

namespace polynao::poly {

std::vector<std::string> CalculatorFunctions() {
  std::vector<std::string> names;
  for (const auto& [name, function] : calculator::Functions()) names.push_back(name);
  return names;
}

}  // namespace polynao::poly
