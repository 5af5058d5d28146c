#include "compiler/poly/calculator/value.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/status.h"
#include "compiler/poly/calculator/count.h"

namespace polynao::poly::calculator {
namespace {

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

isl_stat AddSpace(isl_space* space, void* spaces) {
  static_cast<std::vector<IslSpace>*>(spaces)->emplace_back(isl_space_drop_all_params(space));
  return isl_stat_ok;
}

// The spaces of the parts, without parameters; of a count, those of its elements.
std::vector<IslSpace> SpacesIn(const Value& value) {
  std::vector<IslSpace> spaces;
  if (const auto* set = value.As<IslUnionSet>()) {
    isl_union_set_foreach_set(
        set->get(),
        [](isl_set* part, void* to) { return AddSpace(isl_set_get_space(IslSet(part).get()), to); },
        &spaces);
  } else if (const auto* map = value.As<IslUnionMap>()) {
    isl_union_map_foreach_map(
        map->get(),
        [](isl_map* part, void* to) { return AddSpace(isl_map_get_space(IslMap(part).get()), to); },
        &spaces);
  } else if (const auto* function = value.As<IslUnionFunction>()) {
    isl_union_pw_multi_aff_foreach_pw_multi_aff(
        function->get(),
        [](isl_pw_multi_aff* part, void* to) {
          isl_space* space = isl_pw_multi_aff_get_space(part);
          isl_pw_multi_aff_free(part);
          return AddSpace(space, to);
        },
        &spaces);
  } else if (const auto* count = value.As<IslUnionQuasiPolynomial>()) {
    isl_union_pw_qpolynomial_foreach_pw_qpolynomial(
        count->get(),
        [](isl_pw_qpolynomial* part, void* to) {
          isl_space* space = isl_pw_qpolynomial_get_domain_space(part);
          isl_pw_qpolynomial_free(part);
          return AddSpace(space, to);
        },
        &spaces);
  }
  return spaces;
}

}  // namespace

absl::Status Site::Failed() const {
  if (isl.IsSpent()) {
    return absl::ResourceExhaustedError(std::string(
        Error("an operation within the limit on isl's operations", "one that needs more")
            .message()));
  }
  const char* message = isl_ctx_last_error_msg(isl.get());
  if (message != nullptr && std::string_view(message) == "unbounded optimum") {
    return Error("a set with a first and a last element in lexicographic order",
                 "one that is unbounded");
  }
  return Error("operands that isl can combine",
               StrCat("an error of isl: ", message == nullptr ? "no reason given" : message));
}

IslVal ReadNumber(isl_ctx* context, const std::string& text) {
  // isl does not read "-0".
  const bool is_negative = text.starts_with("-");
  IslVal number(isl_val_read_from_str(context, text.c_str() + is_negative));
  return is_negative ? IslVal(isl_val_neg(number.take())) : number;
}

std::string KindOf(const Value& value) {
  return std::visit(Overloaded{
                        [](bool) { return "a truth value"; },
                        [](const IslVal&) { return "a number"; },
                        [](const IslUnionSet&) { return "a set"; },
                        [](const IslUnionMap&) { return "a map"; },
                        [](const IslUnionFunction&) { return "a function"; },
                        [](const IslUnionQuasiPolynomial&) { return "a quasi-polynomial"; },
                        [](const std::string&) { return "text"; },
                    },
                    value.data);
}

std::string ToText(const Value& value) {
  std::string text = std::visit(
      Overloaded{
          [](bool truth) { return std::string(truth ? "true" : "false"); },
          [](const IslVal& number) { return TakeIslText(isl_val_to_str(number.get())); },
          [](const IslUnionSet& set) { return TakeIslText(isl_union_set_to_str(set.get())); },
          [](const IslUnionMap& map) { return TakeIslText(isl_union_map_to_str(map.get())); },
          [](const IslUnionFunction& function) {
            return TakeIslText(isl_union_pw_multi_aff_to_str(function.get()));
          },
          [](const IslUnionQuasiPolynomial& count) { return ToString(count.get()); },
          [](const std::string& words) { return words; },
      },
      value.data);
  std::string notes;
  auto note = [&](const char* text) { StrAppend(&notes, notes.empty() ? "  # " : "; ", text); };
  if (value.exactness == Exactness::kExactClosure) note("exact");
  if (value.exactness == Exactness::kOverApproximation) note("over-approximation");
  if (value.has_floor_division) note("'/' rounds down");
  return text + notes;
}

absl::StatusOr<Value> Checked(const Site& site, Value value) {
  const bool has_value =
      std::visit(Overloaded{[](bool) { return true; }, [](const std::string&) { return true; },
                            [](const auto& handle) { return static_cast<bool>(handle); }},
                 value.data);
  if (!has_value) return site.Failed();
  return value;
}

std::string SpacesOf(const Value& value, int most) {
  std::set<std::string> names;
  for (const IslSpace& space : SpacesIn(value)) {
    names.insert(TakeIslText(isl_space_to_str(space.get())));
  }
  std::string text;
  int count = 0;
  for (const std::string& name : names) {
    if (++count > most) return text + " and others";
    StrAppend(&text, text.empty() ? "" : " and ", name);
  }
  return text.empty() ? "no space" : text;
}

bool ShareSpace(const Value& a, const Value& b) {
  const std::vector<IslSpace> x = SpacesIn(a), y = SpacesIn(b);
  if (x.empty() || y.empty()) return true;
  for (const IslSpace& p : x) {
    for (const IslSpace& q : y) {
      // The names of dimensions do not matter.
      if (isl_space_is_equal(p.get(), q.get()) == isl_bool_true) return true;
    }
  }
  return false;
}

}  // namespace polynao::poly::calculator
