#include "compiler/poly/order/schedule.h"

#include <isl/aff.h>
#include <isl/options.h>
#include <isl/schedule.h>
#include <isl/schedule_node.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/status.h"
#include "compiler/poly/calculator/map.h"
#include "compiler/poly/isl/tree_text.h"
#include "compiler/poly/order/canonical.h"

namespace polynao::poly {

namespace {

// Iterations by which a statement may run behind another one in a loop that both share. Without a limit, isl may try
// the number of all iterations, one after the other, where that is a constant.
constexpr int kLargestShift = 64;

// { [S0[i] -> x[]] -> [S1[j] -> x[]] }: a pair with the buffer that it is about, by which the
// scheduler knows which lifetimes an anti dependence may cut.
isl::union_map Tagged(const isl::union_map& pairs, const std::string& array) {
  isl_space* space = isl_space_set_tuple_name(isl_space_set_alloc(pairs.ctx().release(), 0, 0),
                                              isl_dim_set, array.c_str());
  const isl::union_set tag = isl::set::universe(isl::manage(space)).to_union_set();
  // { S0[i] -> S1[j] } x { x[] -> x[] }
  return pairs.product(tag.identity());
}

// Whether a value of the buffer lives from one iteration to the next of a loop around both its store and its use. Then
// the loops around must not swap: iterations of an outer loop, taken in turn, would share one element.
//
//   for (j) { b[] = 0.0  for (i) { Y[i, j] = A[i, j] + b[]  b[] = Y[i, j] } }     not for (i) for (j)
bool LivesAcrossIterations(const Scop& scop, const PrivateOrder& order) {
  for (const isl::map& map : MapsOf(order.flow)) {
    const Statement* source = scop.Find(DomainName(map));
    const Statement* target = scop.Find(RangeName(map));
    isl_map* same = isl_map_universe(isl_map_get_space(map.get()));
    for (size_t i = 0; i < std::min(source->iterators.size(), target->iterators.size()); ++i) {
      if (source->iterators[i] != target->iterators[i]) break;
      const int at = static_cast<int>(i);
      same = isl_map_equate(same, isl_dim_in, at, isl_dim_out, at);
    }
    if (!map.is_subset(isl::manage(same))) return true;
  }
  return false;
}

// A part of the operations that each search for an order may have. The integer programs of some orders have no end that
// anyone waits for: 10 s for two stages of an image pipeline, with all the operations of a part.
constexpr unsigned long kSearches = 10;

// Nothing if isl's scheduler gives up, or needs more operations than a search may have.
std::optional<isl::schedule> Computed(const Scop& scop,
                                      const isl::schedule_constraints& constraints) {
  const unsigned long all = isl_ctx_get_max_operations(scop.isl->get());
  scop.isl->Allow((all + kSearches - 1) / kSearches);
  std::optional<isl::schedule> schedule;
  try {
    schedule = constraints.compute_schedule();
  } catch (const isl::exception& error) {
    if (!scop.isl->IsSpent() && !absl::StrContains(error.what(), "unable to carry dependences"))
      throw;
  }
  scop.isl->Allow(all);
  return schedule;
}

}  // namespace

isl::schedule ComputeSchedule(const Scop& scop, const Dependences& dependences, Strategy strategy,
                              bool outer_coincidence, bool* is_original) {
  if (strategy == Strategy::kNone || strategy == Strategy::kOriginal) return scop.schedule;
  isl_ctx* ctx = scop.isl->get();
  const bool is_max = strategy == Strategy::kMax;
  isl_options_set_schedule_serialize_sccs(ctx, strategy == Strategy::kMin);
  isl_options_set_schedule_whole_component(ctx, is_max);
  isl_options_set_schedule_maximize_coincidence(ctx, !is_max);
  isl_options_set_schedule_outer_coincidence(ctx, outer_coincidence);
  isl_options_set_schedule_maximize_band_depth(ctx, 1);
  isl_options_set_schedule_treat_coalescing(ctx, 1);
  isl_options_set_schedule_max_constant_term(ctx, is_max ? -1 : kLargestShift);
  const isl::union_map validity = dependences.Validity();
  isl::union_map order = validity;
  isl::union_map condition = isl::union_map::empty(scop.isl->ctx());
  isl::union_map conditional = condition;
  for (const PrivateOrder& p : dependences.private_order) {
    if (LivesAcrossIterations(scop, p)) {
      order = order.unite(p.order);
      continue;
    }
    condition = condition.unite(Tagged(p.flow, p.array));
    conditional = conditional.unite(Tagged(p.order, p.array));
  }
  isl::schedule_constraints constraints =
      isl::schedule_constraints::on_domain(scop.Domain())
          .set_context(scop.context)
          .set_validity(order)
          .set_coincidence(validity.unite(dependences.reduction));
  if (!conditional.is_empty()) {
    constraints = constraints.set_conditional_validity(condition, conditional);
  }
  // isl finds no order for some constraints, although the original one is legal. It finds one here without the pairs
  // that are to come close together:
  //
  //   for (i, 0, max(n, 2)) { P[n + 5] = P[n + 5] + 1 }
  std::optional<isl::schedule> schedule =
      Computed(scop, constraints.set_proximity(dependences.flow.unite(dependences.reduction)));
  if (!schedule) schedule = Computed(scop, constraints);
  if (is_original != nullptr) *is_original = !schedule.has_value();
  return schedule ? Canonical(scop, dependences, *schedule) : scop.schedule;
}

namespace {

// Without marks, whose names might be ours, and without options for the code of bands, which cannot be tiled then.
isl::schedule OnlyTheOrder(const isl::schedule& schedule) {
  return isl::manage(isl_schedule_map_schedule_node_bottom_up(
      schedule.copy(),
      [](isl_schedule_node* node, void*) {
        switch (isl_schedule_node_get_type(node)) {
          case isl_schedule_node_mark:
            return isl_schedule_node_delete(node);
          case isl_schedule_node_band:
            return isl_schedule_node_band_set_ast_build_options(
                node, isl_union_set_empty_ctx(isl_schedule_node_get_ctx(node)));
          default:
            return node;
        }
      },
      nullptr));
}

// The text on one line, cut to some length, for messages.
std::string Excerpt(const std::string& text) {
  constexpr size_t kLongest = 100;
  std::string line;
  for (const char c : text) {
    const bool is_blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!is_blank) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  if (line.size() > kLongest) line = line.substr(0, line.rfind(' ', kLongest)) + " ..";
  return line;
}

// Whether a tree's text has isl's keys alone, and its sets and maps are quoted: domain: "{ S0[i] }". isl's reader
// crashes where a number stands for one, as in "filter: 2", and isl 0.27's on a key that it does not know.
bool HasQuotedValues(std::string_view text) {
  constexpr std::string_view kKeys[] = {"domain",    "context", "contraction", "expansion",
                                        "extension", "filter",  "guard",       "mark",
                                        "options",   "schedule"};
  constexpr std::string_view kOtherKeys[] = {"child",      "coincident", "leaf",
                                             "permutable", "sequence",   "set"};
  const auto is_letter = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
  std::string_view last;    // the word or string before
  bool needs_text = false;  // such a key and ':' stand before
  const size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos ||
      (!absl::ascii_isalpha(text[first]) && text[first] != '"' && text[first] != '{')) {
    return false;
  }
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (absl::ascii_isspace(text[at])) {
      at = end;
      continue;
    }
    const bool is_text = text[at] == '"';
    if (is_text) {
      end = text.find('"', end);
      if (end == std::string_view::npos) return false;
      last = text.substr(at + 1, end - at - 1);
      ++end;
    } else if (is_letter(text[at])) {
      while (end < text.size() && is_letter(text[end])) ++end;
      last = text.substr(at, end - at);
    }
    if (needs_text && !is_text) return false;
    needs_text =
        text[at] == ':' && std::find(std::begin(kKeys), std::end(kKeys), last) != std::end(kKeys);
    if (text[at] == ':' && !needs_text &&
        std::find(std::begin(kOtherKeys), std::end(kOtherKeys), last) == std::end(kOtherKeys)) {
      return false;
    }
    at = end;
  }
  return !needs_text;
}

// The tree of a text, or null. isl's reader does not end for some damaged texts, as for a "schedule:" under a "-
// filter:" that has no "child:"; so it may do a number of operations that any text of a tree is read with.
isl_schedule* ReadTree(IslContext& isl, const std::string& text) {
  constexpr unsigned long kOperations = 1'000'000;
  const std::string readable = Readable(text);
  if (!HasQuotedValues(readable)) return nullptr;
  const unsigned long all = isl_ctx_get_max_operations(isl.get());
  const bool is_less = all == 0 || kOperations < all;
  if (is_less) isl.Allow(kOperations);
  isl_schedule* read = isl_schedule_read_from_str(isl.get(), readable.c_str());
  if (is_less) isl.Allow(all);
  return read;
}

absl::Status CheckParameters(const Scop& scop, const isl::space& space) {
  for (int i = 0; i < isl_space_dim(space.get(), isl_dim_param); ++i) {
    const std::string name = isl_space_get_dim_name(space.get(), isl_dim_param, i);
    std::string known;
    bool is_known = false;
    for (const Parameter& parameter : scop.parameters) {
      is_known |= parameter.name == name;
      StrAppend(&known, known.empty() ? "" : ", ", parameter.name);
    }
    if (is_known) continue;
    return InvalidInput("a schedule: expected parameters of the part (",
                        known.empty() ? "it has none" : known, "), found '", name, "'");
  }
  return absl::OkStatus();
}

// The map over the part's statements, where it names them as texts on the subject do: by numbers from 1 on, or not at
// all if there is only one.
//
//   { S1[i] -> [i, 0]; S2[i] -> [i, 1] }    { S0[i] -> [i, 0]; S1[i] -> [i, 1] }
//   { [j, i] -> [j, i] }                    { S0[j, i] -> [j, i] }
isl::union_map OverStatements(const Scop& scop, const isl::union_map& map) {
  std::map<std::string, std::string> renamed;
  const auto number = [](size_t i) { return StrCat("S", i); };
  const size_t count = scop.statements.size();
  if (count == 1) renamed[""] = scop.statements[0].name;
  bool has_first = false, has_last = false;
  for (const isl::map& part : MapsOf(map)) {
    has_first |= DomainName(part) == number(0);
    has_last |= DomainName(part) == number(count);
  }
  for (size_t i = 0; i < count && has_last && !has_first; ++i) {
    renamed[number(i + 1)] = scop.statements[i].name;
  }
  isl::union_map result = isl::union_map::empty(map.ctx());
  for (const isl::map& part : MapsOf(map)) {
    const auto name = renamed.find(DomainName(part));
    const isl::map own =
        name == renamed.end()
            ? part
            : isl::manage(isl_map_set_tuple_name(part.copy(), isl_dim_in, name->second.c_str()));
    result = result.unite(own.to_union_map());
  }
  return result;
}

// The map's times without names and pairs: { S0[i] -> T[[i] -> [0]] } as { S0[i] -> [i, 0] }.
absl::StatusOr<isl::union_map> PlainTimes(const isl::union_map& map) {
  isl::union_map plain = isl::union_map::empty(map.ctx());
  std::map<std::string, int> lengths;  // of the times of each statement
  for (const isl::map& part : MapsOf(map)) {
    const isl::map times =
        isl::manage(isl_map_reset_tuple_id(isl_map_flatten_range(part.copy()), isl_dim_out));
    lengths.emplace(DomainName(times), static_cast<int>(isl_map_dim(times.get(), isl_dim_out)));
    plain = plain.unite(times.to_union_map());
  }
  for (const auto& [name, length] : lengths) {
    if (length == 0) {
      return InvalidInput("a schedule: expected a time [t0, ..] for the instances of ", name,
                          ", found []");
    }
    const auto& [first_name, first] = *lengths.begin();
    if (length == first) continue;
    return InvalidInput("a schedule: expected times of one length, found ", first, " for ",
                        first_name, " and ", length, " for ", name);
  }
  return plain;
}

}  // namespace

absl::StatusOr<isl::schedule> ParseSchedule(const Scop& scop, const Dependences& dependences,
                                            const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_map = first != std::string::npos && (text[first] == '[' || text[first] == '{') &&
                      text.find("domain") == std::string::npos;
  absl::StatusOr<isl::schedule> parsed = Guarded(*scop.isl, [&]() -> absl::StatusOr<isl::schedule> {
    isl::schedule schedule;
    // Domains of statements get the known values of parameters, so that "[n] -> { S0[i] : i < n }" equals
    // the extracted domain.
    const isl::set known = scop.context;
    isl::union_set scheduled;
    if (is_map) {
      ASSIGN_OR_RETURN(const isl::union_map read, EvaluateMap(*scop.isl, text, "schedule"));
      RETURN_IF_ERROR(CheckParameters(scop, read.space()));
      ASSIGN_OR_RETURN(const isl::union_map map,
                       PlainTimes(OverStatements(scop, read).intersect_domain(scop.Domain())));
      scheduled = map.domain();
      if (!map.is_single_valued()) {
        return InvalidInput("a schedule: expected one time for each instance, found '",
                            Excerpt(text), "'");
      }
      if (!scheduled.is_empty() && scop.Domain().is_subset(scheduled)) {
        schedule = isl::manage(isl_schedule_insert_partial_schedule(
            isl_schedule_from_domain(scop.Domain().release()),
            isl_multi_union_pw_aff_from_union_map(map.copy())));
      }
    } else {
      isl_schedule* read = ReadTree(*scop.isl, text);
      // isl gives null for what it cannot read, and past its operations: then manage throws.
      if (read == nullptr && !scop.isl->IsSpent()) {
        return InvalidInput(
            "expected a schedule tree (domain: .., child: ..) or a map { S0[i] -> [t0, ..] }, "
            "found '",
            Excerpt(text), "'");
      }
      schedule = OnlyTheOrder(isl::manage(read));
      scheduled = schedule.domain();
      RETURN_IF_ERROR(CheckParameters(scop, schedule.map().space()));
    }
    const isl::union_set all = scop.Domain().intersect_params(known);
    scheduled = scheduled.intersect_params(known);
    const isl::union_set missing = all.subtract(scheduled);
    if (!missing.is_empty()) {
      return InvalidInput("the schedule has no time for the instances ", Text(missing));
    }
    const isl::union_set unknown = scheduled.subtract(all);
    if (!unknown.is_empty()) {
      return InvalidInput("the schedule has times for instances that do not exist: ",
                          Text(unknown));
    }
    const std::string violation = FindViolation(scop, dependences, schedule);
    if (!violation.empty()) return InvalidInput("the schedule violates ", violation);
    return schedule;
  });
  // A tree that isl reads may still have parts that do not fit together.
  if (absl::IsInternal(parsed.status())) {
    return InvalidInput("expected a schedule ",
                        is_map ? "that gives each instance a time"
                               : "tree whose bands give each instance below them a time",
                        ", found '", Excerpt(text), "'");
  }
  return parsed;
}

}  // namespace polynao::poly
