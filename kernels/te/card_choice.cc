#include "kernels/te/card_choice.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "compiler/mapping/clusters.h"
#include "kernels/te/tuned.h"

namespace polynao::kernels {
namespace {

using mapping::ClusterCounts;
using mapping::WithClusters;

constexpr std::string_view kClusters = "clusters";

// The case without the number of clusters that it names, if any.
OperatorCase WithoutClusters(const OperatorCase& c) {
  OperatorCase rest = c;
  rest.schedule.erase(std::string(kClusters));
  return rest;
}

// The lists as one, each in its own order, which need not be that of its cycles: always the cheapest of those at the
// heads of the lists, of equals that of the earlier list.
std::vector<RankedSchedule> Merged(std::vector<std::vector<RankedSchedule>> lists) {
  std::vector<RankedSchedule> all;
  std::vector<size_t> heads(lists.size());
  while (true) {
    std::optional<size_t> next;
    for (size_t i = 0; i < lists.size(); ++i) {
      if (heads[i] == lists[i].size()) continue;
      if (!next || lists[i][heads[i]].cycles < lists[*next][heads[*next]].cycles) next = i;
    }
    if (!next) return all;
    all.push_back(std::move(lists[*next][heads[*next]++]));
  }
}

absl::StatusOr<std::vector<RankedSchedule>> Schedules(const Operator& op, const OperatorCase& c,
                                                      const Target& target, bool only_first);

// "1, 2 or 4"; of many the first ones.
std::string Alternatives(const std::vector<std::string>& words) {
  constexpr size_t kMost = 16;
  if (words.size() > kMost) {
    return StrCat(absl::StrJoin(words.begin(), words.begin() + kMost, ", "), ", ..");
  }
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    StrAppend(&text, i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", words[i]);
  }
  return text;
}

// Which word of a case's schedule is the one that no schedule has; "" if there is no schedule at all.
std::string AtFault(const Operator& op, const OperatorCase& c, const Target& target) {
  OperatorCase any = c;
  any.schedule.clear();
  const absl::StatusOr<std::vector<RankedSchedule>> all = Schedules(op, any, target, false);
  if (!all.ok() || all->empty()) return "";
  std::map<std::string, std::set<int64_t>> values;
  for (const RankedSchedule& schedule : *all) {
    for (const auto& [name, value] : schedule.choice) values[name].insert(value);
  }
  for (const auto& [name, value] : c.schedule) {
    std::vector<std::string> words;
    if (!values.contains(name)) {
      for (const auto& [known, numbers] : values) words.push_back(known);
      return StrCat("there is no ", name, ", expected ", Alternatives(words));
    }
    if (values[name].contains(value)) continue;
    for (const int64_t number : values[name]) words.push_back(StrCat(number));
    return StrCat(name, "=", value, ": expected ", Alternatives(words));
  }
  // Each word alone is one of a schedule's.
  const ScheduleChoice* nearest = nullptr;
  size_t most = 0;
  for (const RankedSchedule& schedule : *all) {
    const size_t shared = static_cast<size_t>(
        std::count_if(c.schedule.begin(), c.schedule.end(), [&](const auto& word) {
          const auto it = schedule.choice.find(word.first);
          return it != schedule.choice.end() && it->second == word.second;
        }));
    if (nearest == nullptr || shared > most) nearest = &schedule.choice, most = shared;
  }
  return StrCat("no schedule has all of it; ", most, " of ", c.schedule.size(), " has ",
                ChoiceText(*nearest));
}

// All schedules for all numbers of clusters, the first one first; with `only_first`, the others may lack.
absl::StatusOr<std::vector<RankedSchedule>> Schedules(const Operator& op, const OperatorCase& c,
                                                      const Target& target, bool only_first) {
  const std::vector<int64_t> counts = ClusterCounts(*target.machine);
  const auto wanted = c.schedule.find(kClusters);
  if (wanted != c.schedule.end() &&
      std::find(counts.begin(), counts.end(), wanted->second) == counts.end()) {
    return InvalidInput("operator ", c.op, ": no schedule has clusters=", wanted->second,
                        " on a machine of ", counts[0], " clusters: expected one of ",
                        absl::StrJoin(counts, ", "));
  }
  const OperatorCase rest = WithoutClusters(c);
  std::vector<std::vector<RankedSchedule>> lists;
  absl::Status error;
  double limit = std::numeric_limits<double>::infinity();
  for (int64_t count : counts) {
    if (wanted != c.schedule.end() && count != wanted->second) continue;
    const isa::Machine machine = WithClusters(*target.machine, count);
    Target fewer = target;
    fewer.machine = &machine;
    absl::StatusOr<std::vector<RankedSchedule>> list = only_first && op.first_schedules
                                                           ? op.first_schedules(rest, fewer, limit)
                                                           : op.schedules(rest, fewer);
    if (!list.ok()) {
      // What does not fit says more than what there is not.
      if (error.ok() ||
          (absl::IsResourceExhausted(list.status()) && !absl::IsResourceExhausted(error))) {
        error = list.status();
      }
      continue;
    }
    if (list->empty()) continue;  // none within the limit
    limit = std::min(limit, list->front().cycles);
    for (RankedSchedule& schedule : *list) schedule.choice[std::string(kClusters)] = count;
    lists.push_back(std::move(*list));
  }
  if (lists.empty() && error.ok()) return std::vector<RankedSchedule>();
  if (lists.empty() && !c.schedule.empty() && !absl::IsResourceExhausted(error)) {
    const std::string at_fault = AtFault(op, c, target);
    if (!at_fault.empty())
      return absl::Status(error.code(), StrCat(error.message(), ": ", at_fault));
  }
  if (lists.empty()) return error;
  return Merged(std::move(lists));
}

absl::StatusOr<ChosenSchedule> Chosen(const Operator& plain, const OperatorCase& c,
                                      const Target& target) {
  using enum ChosenSchedule::By;
  const std::optional<TunedSchedule> tuned = TunedFor(c, *target.machine);
  ASSIGN_OR_RETURN(const std::vector<RankedSchedule> ranked, Schedules(plain, c, target, !tuned));
  if (ranked.empty()) return ChosenSchedule();  // a shape without elements
  ChosenSchedule chosen = {.choice = Choose(ranked, tuned).choice};
  chosen.by = !c.schedule.empty()                       ? kCase
              : tuned && chosen.choice == tuned->choice ? kTuned
                                                        : kModel;
  return chosen;
}

// The case and the machine as they are for the operator itself.
struct OnFewer {
  OperatorCase c;
  isa::Machine machine;
  Target target;

  OnFewer(const OperatorCase& whole, const ScheduleChoice& choice, const Target& all)
      : c(whole), machine(WithClusters(*all.machine, choice.find(kClusters)->second)), target(all) {
    c.schedule = choice;
    c = WithoutClusters(c);
    target.machine = &machine;
  }
  OnFewer(const OnFewer&) = delete;
};

}  // namespace

void ChooseOnCard(Operator& op) {
  const Operator plain = op;
  op.schedules = [plain](const OperatorCase& c, const Target& target) {
    return Schedules(plain, c, target, false);
  };
  op.choose = [plain](const OperatorCase& c, const Target& target) {
    return Chosen(plain, c, target);
  };
  op.build = [plain](const OperatorCase& c, const Target& target) -> absl::StatusOr<ir::Function> {
    if (target.machine == nullptr) return plain.build(c, target);
    ASSIGN_OR_RETURN(const ChosenSchedule chosen, Chosen(plain, c, target));
    if (chosen.choice.empty()) return plain.build(WithoutClusters(c), target);
    const OnFewer fewer(c, chosen.choice, target);
    return plain.build(fewer.c, fewer.target);
  };
  if (!plain.estimate) return;
  op.estimate = [plain](const OperatorCase& c,
                        const Target& target) -> absl::StatusOr<mapping::Estimate> {
    if (!c.schedule.contains(kClusters)) {
      return InvalidInput("operator ", c.op, ": clusters is missing");
    }
    const OnFewer fewer(c, c.schedule, target);
    return plain.estimate(fewer.c, fewer.target);
  };
}

}  // namespace polynao::kernels
