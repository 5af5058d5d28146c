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

// The spaces of the parts, without parameters; of a count, those of its elements.
std::vector<isl::space> SpacesIn(const Value& value) {
  std::vector<isl::space> spaces;
  auto add = [&](isl_space* space) {
    spaces.push_back(isl::manage(isl_space_drop_all_params(space)));
  };
  if (const auto* set = value.As<isl::union_set>()) {
    set->foreach_set([&](const isl::set& part) { add(isl_set_get_space(part.get())); });
  } else if (const auto* map = value.As<isl::union_map>()) {
    map->foreach_map([&](const isl::map& part) { add(isl_map_get_space(part.get())); });
  } else if (const auto* function = value.As<isl::union_pw_multi_aff>()) {
    function->pw_multi_aff_list().foreach (
        [&](const isl::pw_multi_aff& part) { add(isl_pw_multi_aff_get_space(part.get())); });
  } else if (const auto* count = value.As<IslUnionQuasiPolynomial>()) {
    for (const IslPwQuasiPolynomial& part : PartsOf(*count)) {
      add(isl_pw_qpolynomial_get_domain_space(part.get()));
    }
  }
  return spaces;
}

}  // namespace

absl::Status Site::Failed(const isl::exception* error) const {
  if (isl.IsSpent()) {
    return absl::ResourceExhaustedError(std::string(
        Error("an operation within the limit on isl's operations", "one that needs more")
            .message()));
  }
  const char* message = isl_ctx_last_error_msg(isl.get());
  if (message == nullptr && error != nullptr) message = error->what();
  if (message != nullptr && std::string_view(message).ends_with("unbounded optimum")) {
    return Error("a set with a first and a last element in lexicographic order",
                 "one that is unbounded");
  }
  return Error("operands that isl can combine",
               StrCat("an error of isl: ", message == nullptr ? "no reason given" : message));
}

isl::val ReadNumber(const IslContext& isl, const std::string& text) {
  // isl does not read "-0".
  const bool is_negative = text.starts_with("-");
  const isl::val number(isl.ctx(), text.substr(is_negative));
  return is_negative ? number.neg() : number;
}

std::string KindOf(const Value& value) {
  return std::visit(Overloaded{
                        [](bool) { return "a truth value"; },
                        [](const isl::val&) { return "a number"; },
                        [](const isl::union_set&) { return "a set"; },
                        [](const isl::union_map&) { return "a map"; },
                        [](const isl::union_pw_multi_aff&) { return "a function"; },
                        [](const IslUnionQuasiPolynomial&) { return "a quasi-polynomial"; },
                        [](const std::string&) { return "text"; },
                    },
                    value.data);
}

std::string ToText(const Value& value) {
  std::string text =
      std::visit(Overloaded{
                     [](bool truth) { return std::string(truth ? "true" : "false"); },
                     [](const IslUnionQuasiPolynomial& count) { return ToString(count); },
                     [](const std::string& words) { return words; },
                     [](const auto& object) { return Text(object); },
                 },
                 value.data);
  std::string notes;
  auto note = [&](const char* text) { StrAppend(&notes, notes.empty() ? "  # " : "; ", text); };
  if (value.exactness == Exactness::kExactClosure) note("exact");
  if (value.exactness == Exactness::kOverApproximation) note("over-approximation");
  if (value.has_floor_division) note("'/' rounds down");
  return text + notes;
}

std::string SpacesOf(const Value& value, int most) {
  std::set<std::string> names;
  for (const isl::space& space : SpacesIn(value)) {
    names.insert(Text(space));
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
  const std::vector<isl::space> x = SpacesIn(a), y = SpacesIn(b);
  if (x.empty() || y.empty()) return true;
  for (const isl::space& p : x) {
    for (const isl::space& q : y) {
      // The names of dimensions do not matter.
      if (p.is_equal(q)) return true;
    }
  }
  return false;
}

}  // namespace polynao::poly::calculator
