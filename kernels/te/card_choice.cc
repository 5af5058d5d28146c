#include "kernels/te/card_choice.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "kernels/te/tuned.h"

namespace polynao::kernels {
namespace {

constexpr std::string_view kClusters = "clusters";
// `machine` as schedules see it that use `clusters` of its clusters.
isa::Machine WithClusters(const isa::Machine& machine, int64_t clusters) {
  isa::Machine fewer = machine;
  fewer.Set("card.clusters", clusters);
  return fewer;
}

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
  for (int64_t count : counts) {
    if (wanted != c.schedule.end() && count != wanted->second) continue;
    const isa::Machine machine = WithClusters(*target.machine, count);
    Target fewer = target;
    fewer.machine = &machine;
    absl::StatusOr<std::vector<RankedSchedule>> list = only_first && op.first_schedules
                                                           ? op.first_schedules(rest, fewer)
                                                           : op.schedules(rest, fewer);
    if (!list.ok()) {
      error.Update(list.status());
      continue;
    }
    for (RankedSchedule& schedule : *list) schedule.choice[std::string(kClusters)] = count;
    lists.push_back(std::move(*list));
  }
  if (lists.empty()) return error;
  return Merged(std::move(lists));
}

}  // namespace

std::vector<int64_t> ClusterCounts(const isa::Machine& machine) {
  const int64_t all = machine.clusters();
  std::vector<int64_t> counts = {all};
  for (int64_t power = 1; power < all; power *= 2) {
    counts.push_back(power);
    if (power >= 4 && power / 2 * 3 < all) counts.push_back(power / 2 * 3);
  }
  std::sort(counts.begin(), counts.end(), std::greater<>());
  return counts;
}

void ChooseOnCard(Operator& op) {
  const Operator plain = op;
  op.schedules = [plain](const OperatorCase& c, const Target& target) {
    return Schedules(plain, c, target, false);
  };
  op.build = [plain](const OperatorCase& c, const Target& target) -> absl::StatusOr<ir::Function> {
    if (target.machine == nullptr) return plain.build(c, target);
    const std::optional<TunedSchedule> tuned = TunedFor(c, *target.machine);
    ASSIGN_OR_RETURN(const std::vector<RankedSchedule> ranked, Schedules(plain, c, target, !tuned));
    if (ranked.empty()) return plain.build(WithoutClusters(c), target);  // a shape without elements
    OperatorCase chosen = c;
    chosen.schedule = Choose(ranked, tuned).choice;
    const isa::Machine machine =
        WithClusters(*target.machine, chosen.schedule.find(kClusters)->second);
    Target fewer = target;
    fewer.machine = &machine;
    return plain.build(WithoutClusters(chosen), fewer);
  };
}

}  // namespace polynao::kernels
