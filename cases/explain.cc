#include "cases/explain.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/mapping/clusters.h"
#include "nlohmann/json.hpp"

namespace polynao::cases {
namespace {

using kernels::OperatorCase;
using kernels::RankedSchedule;
using kernels::ScheduleChoice;
using mapping::CostParts;

// Sizes vary within a kind of schedules; all other choices say how cores share the work and by which way tensors go.
bool IsSize(const std::string& name) {
  static const auto* sizes = new std::set<std::string>{"block", "channels", "columns", "copies",
                                                       "depth", "rotate",   "rows",    "tile"};
  return sizes->contains(name);
}

// What is listed once: all numbers of turns but one are one kind.
std::pair<std::string, int64_t> KindOf(const std::string& name, int64_t value) {
  return {name, name == "turns" ? std::min<int64_t>(value, 2) : value};
}

std::set<std::string> NamesOf(const ScheduleChoice& choice) {
  std::set<std::string> names;
  for (const auto& [name, value] : choice) names.insert(name);
  return names;
}

OperatorCase With(OperatorCase c, ScheduleChoice choice) {
  c.schedule = std::move(choice);
  return c;
}

// Where `other` takes longer than `taken`: of the resources that decide, those that decide most more.
std::string WhyLonger(const CostParts& other, const CostParts& taken) {
  std::map<std::string_view, double> more;
  for (const CostParts::Share& share : other.Shares()) more[share.resource] += share.decides;
  for (const CostParts::Share& share : taken.Shares()) more[share.resource] -= share.decides;
  std::vector<std::pair<double, std::string_view>> order;
  for (const auto& [resource, cycles] : more) order.emplace_back(-cycles, resource);
  std::sort(order.begin(), order.end());
  const double all = other.cycles() - taken.cycles();
  std::string why;
  for (const auto& [less, resource] : order) {
    if (-less < std::max(0.5, 0.1 * all)) break;
    StrAppend(&why, why.empty() ? "" : ", ", absl::StrFormat("+%.0f ", -less), resource);
  }
  return why;
}

// Adds what differs from the taken schedule in one choice or in its kind.
absl::Status AddOthers(const kernels::Operator& op, const std::vector<RankedSchedule>& all,
                       const Target& target, Explanation& e) {
  const ScheduleChoice& taken = e.taken.operator_case.schedule;
  const std::set<std::string> names = NamesOf(taken);
  // By what they are, in the order of `all`, which is the compiler's.
  std::map<ScheduleChoice, std::pair<std::set<std::string>, double>> found;
  std::set<std::set<std::string>> kinds = {names};
  std::set<std::pair<std::string, int64_t>> seen;
  for (const auto& [name, value] : taken) seen.insert(KindOf(name, value));
  for (const RankedSchedule& schedule : all) {
    if (schedule.choice == taken) continue;
    const std::set<std::string> own = NamesOf(schedule.choice);
    if (kinds.insert(own).second) found[schedule.choice] = {{""}, schedule.cycles};
    if (own != names) continue;
    for (const auto& [name, value] : schedule.choice) {
      if (IsSize(name) || !seen.insert(KindOf(name, value)).second) continue;
      auto& [what, cycles] = found[schedule.choice];
      what.insert(StrCat(name, "=", value));
      cycles = schedule.cycles;
    }
  }
  if (!all.empty() && all[0].choice != taken) {
    found[all[0].choice].first.insert("the cost model's first");
    found[all[0].choice].second = all[0].cycles;
  }
  for (const auto& [choice, entry] : found) {
    ASSIGN_OR_RETURN(const mapping::Estimate estimate,
                     op.estimate(With(e.taken.operator_case, choice), target));
    Explanation::Other other = {.what = "", .choice = choice, .cycles = entry.second, .why = ""};
    for (const std::string& word : entry.first) {
      StrAppend(&other.what, other.what.empty() ? "" : " ",
                word.empty() ? estimate.kind : std::string_view(word));
    }
    if (other.cycles > e.estimate.cost.cycles()) {
      other.why = WhyLonger(estimate.cost, e.estimate.cost);
    } else if (other.cycles < e.estimate.cost.cycles()) {
      other.why = "fewer by the model";
    } else {
      other.why = "as many, and a later text";
    }
    e.others.push_back(std::move(other));
  }
  std::sort(e.others.begin(), e.others.end(), [](const auto& a, const auto& b) {
    return std::pair(a.cycles, a.what) < std::pair(b.cycles, b.what);
  });
  return absl::OkStatus();
}

// Adds the kinds and numbers that are not among `all`, and why.
void AddMisfits(const kernels::Operator& op, const std::vector<RankedSchedule>& all,
                const Target& target, Explanation& e) {
  std::map<std::string, std::set<int64_t>> values;
  for (const RankedSchedule& schedule : all) {
    for (const auto& [name, value] : schedule.choice) values[name].insert(value);
  }
  const isa::Machine& m = *target.machine;
  const auto divisors = [](int64_t n) {
    std::vector<int64_t> numbers;
    for (int64_t d = 1; d <= n; ++d) {
      if (n % d == 0) numbers.push_back(d);
    }
    return numbers;
  };
  std::vector<std::pair<std::string, std::vector<int64_t>>> wanted;
  for (const auto& [name, numbers] : values) {
    if (name == "clusters") {
      wanted.emplace_back(name, mapping::ClusterCounts(m));
    } else if (name == "channel_clusters") {
      wanted.emplace_back(name, divisors(m.clusters()));
    } else if (name == "across") {
      wanted.emplace_back(name, divisors(m.cores_per_cluster()));
    } else if (name.ends_with("_by_smem") || name == "pipelined" || name == "shared" ||
               name == "cut" || name == "ahead") {
      wanted.emplace_back(name, std::vector<int64_t>{0, 1});
    }
  }
  const bool is_contraction = values.contains("weights_by_smem");
  if (is_contraction && !values.contains("stream")) {
    wanted.emplace_back("stream", std::vector<int64_t>{1});
  }
  if (is_contraction && !values.contains("rows")) {
    wanted.emplace_back("pipelined", std::vector<int64_t>{0});
  }
  const OperatorCase& c = e.taken.operator_case;
  for (const auto& [name, numbers] : wanted) {
    for (const int64_t number : numbers) {
      const auto known = values.find(name);
      if (known != values.end() && known->second.contains(number)) continue;
      const absl::Status status = op.schedules(With(c, {{name, number}}), target).status();
      if (!absl::IsResourceExhausted(status))
        continue;  // No candidate has it, whatever the memories.
      std::string why(status.message());
      const std::string before = StrCat("no schedule that fits has ", name, "=", number, ": ");
      const size_t at = why.find(before);
      if (at != std::string::npos) why = why.substr(at + before.size());
      e.misfits.push_back({StrCat(name, "=", number), why});
    }
  }
}

std::string ByText(const Explanation& e) {
  using enum kernels::ChosenSchedule::By;
  switch (e.taken.by) {
    case kModel:
      return StrCat("the cost model's first of ", e.schedules, " schedules");
    case kTuned:
      return StrCat("that of tuned.txt, of ", e.schedules, " schedules");
    case kCase:
      return "the first with the choices that were given";
    case kSearch:
      return StrCat("the fastest of a search among ", e.schedules, " schedules");
  }
  POLYNAO_UNREACHABLE(static_cast<int>(e.taken.by));
}

// "sums 7122 tensor unit, relu 20 vector unit": a resource is named once for neighbours of the same one.
std::string LaneText(const CostParts::LaneOf& lane) {
  std::string text;
  for (size_t i = 0; i < lane.parts.size(); ++i) {
    const CostParts::Part& part = lane.parts[i];
    const bool same = i > 0 && lane.parts[i - 1].what == part.what;
    StrAppend(&text,
              i == 0 ? ""
              : same ? " + "
                     : ", ",
              same ? "" : StrCat(part.what, " "), absl::StrFormat("%.0f ", part.cycles),
              part.resource);
  }
  return text;
}

// Text in lines of at most `width`, broken behind commas; all but the first are indented.
std::string Wrapped(const std::string& text, size_t indent, size_t width) {
  std::string all;
  size_t column = indent;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find(", ", begin);
    end = end == std::string::npos ? text.size() : end + 2;
    const size_t length = end - begin;
    if (column + length > width && column > indent) {
      while (!all.empty() && all.back() == ' ') all.pop_back();
      StrAppend(&all, "\n", std::string(indent, ' '));
      column = indent;
    }
    StrAppend(&all, text.substr(begin, length));
    column += length;
    begin = end;
  }
  return all;
}

constexpr size_t kWidth = 118;
constexpr int kLabel = 24;

}  // namespace

absl::StatusOr<Explanation> Explain(const TakenSchedule& taken, const Target& target) {
  const OperatorCase& c = taken.operator_case;
  ASSIGN_OR_RETURN(const kernels::Operator* op, kernels::FindOperator(c));
  if (target.machine == nullptr) {
    return InvalidInput("--explain is of schedules on the card: expected --target=diannao, found ",
                        "--target=", target.name);
  }
  if (!op->estimate || c.schedule.empty()) {
    return InvalidInput("--explain: operator ", c.op, " ", kernels::ShapesText(c),
                        " has no schedule to choose");
  }
  const isa::Machine& m = *target.machine;
  Explanation e;
  e.taken = taken;
  e.machine = m.name;
  ASSIGN_OR_RETURN(e.estimate, op->estimate(c, target));
  ASSIGN_OR_RETURN(e.bound, isa::BoundOf(m, op->work(c)));
  e.has = {.nmem = m.nmem_bytes(), .wmem = m.wmem_bytes(), .smem = m.smem_bytes()};
  ASSIGN_OR_RETURN(const std::vector<RankedSchedule> all, op->schedules(With(c, {}), target));
  e.schedules = all.size();
  RETURN_IF_ERROR(AddOthers(*op, all, target, e));
  AddMisfits(*op, all, target, e);
  return e;
}

std::string Explanation::ToText() const {
  const OperatorCase& c = taken.operator_case;
  const double cycles = estimate.cost.cycles();
  std::string text;
  StrAppend(&text, "schedule of ", c.op, " ", kernels::ShapesText(c), " ", ir::TypeName(c.dtype),
            " on ", machine, ": ", ByText(*this), "\n  ", kernels::ChoiceText(c.schedule), "\n");
  if (!taken.refused.empty()) {
    StrAppend(&text,
              "  in place of one that leaves scalar code: ", kernels::ChoiceText(taken.refused),
              "\n");
  }
  StrAppend(&text, "  ", estimate.kind, "; cycles by the model ", absl::StrFormat("%.0f", cycles));
  if (simulated) StrAppend(&text, ", simulated ", *simulated);
  StrAppend(&text, ", bound ", bound.cycles);
  if (!bound.by.empty()) StrAppend(&text, " (", bound.by, ")");
  StrAppend(&text, "; ", estimate.cost.Binds(), " binds\n\n");
  StrAppend(&text, absl::StrFormat("  %-24s %7s %10s %10s  %s\n", "phase", "times", "each", "all",
                                   "made of"));
  for (const CostParts::PhaseOf& phase : estimate.cost.Phases()) {
    const std::string line =
        absl::StrFormat("  %-24s %7.6g %10.0f %10.0f  ", std::string(phase.name), phase.times,
                        phase.lanes[0].cycles, phase.cycles());
    for (size_t i = 0; i < phase.lanes.size(); ++i) {
      const std::string begin =
          i == 0 ? line : StrCat(std::string(line.size() - 10, ' '), "meanwhile ");
      StrAppend(&text, begin, Wrapped(LaneText(phase.lanes[i]), line.size(), kWidth), "\n");
    }
  }
  StrAppend(&text, absl::StrFormat("\n  %-24s %7s %10s %10s\n", "resource", "", "busy", "decides"));
  for (const CostParts::Share& share : estimate.cost.Shares()) {
    StrAppend(&text, absl::StrFormat("  %-24s %7s %10.0f %10.0f\n", std::string(share.resource), "",
                                     share.busy, share.decides));
  }
  StrAppend(&text,
            absl::StrFormat("\n  %-24s %7s %10s %10s\n", "memory, bytes", "", "needs", "has"));
  const std::tuple<const char*, int64_t, int64_t> memories[] = {
      {"nmem", estimate.needs.nmem, has.nmem},
      {"wmem", estimate.needs.wmem, has.wmem},
      {"smem", estimate.needs.smem, has.smem}};
  for (const auto& [name, needs, there_is] : memories) {
    StrAppend(&text, absl::StrFormat("  %-24s %7s %10d %10d\n", name, "", needs, there_is));
  }
  if (!others.empty()) {
    StrAppend(&text, absl::StrFormat("\n  %-*s %10s %8s  %s\n", kLabel, "the best with", "cycles",
                                     "", "what takes longer"));
  }
  for (const Other& other : others) {
    std::string differs;
    const bool is_alike = NamesOf(other.choice) == NamesOf(c.schedule);
    for (const auto& [name, value] : other.choice) {
      const auto own = c.schedule.find(name);
      const std::string word = StrCat(name, "=", value);
      if (is_alike && own->second == value) continue;
      if (StrCat(" ", other.what, " ").find(StrCat(" ", word, " ")) != std::string::npos) continue;
      StrAppend(&differs, differs.empty() ? "" : " ", word);
    }
    const bool is_long = other.what.size() > size_t{kLabel};
    if (is_long) StrAppend(&text, "  ", other.what, "\n");
    const std::string line =
        absl::StrFormat("  %-*s %10.0f %+7.1f%%  ", kLabel, is_long ? "" : other.what, other.cycles,
                        100 * (other.cycles / cycles - 1));
    StrAppend(&text, line, Wrapped(other.why, line.size(), kWidth), "\n");
    if (!differs.empty()) StrAppend(&text, "      ", is_alike ? "with " : "", differs, "\n");
  }
  if (!misfits.empty()) StrAppend(&text, "\n  does not fit\n");
  for (const Misfit& misfit : misfits) {
    StrAppend(&text, absl::StrFormat("  %-20s %s\n", misfit.what, misfit.why));
  }
  return text;
}

nlohmann::ordered_json Explanation::ToJson() const {
  using enum kernels::ChosenSchedule::By;
  const OperatorCase& c = taken.operator_case;
  nlohmann::ordered_json json;
  json["schedule"] = c.schedule;
  json["schedule_text"] = kernels::ChoiceText(c.schedule);
  json["by"] = taken.by == kModel   ? "cost model"
               : taken.by == kTuned ? "tuned.txt"
               : taken.by == kCase  ? "case"
                                    : "search";
  if (!taken.refused.empty()) json["refused"] = taken.refused;
  json["kind"] = std::string(estimate.kind);
  json["schedules"] = schedules;
  json["modelled_cycles"] = estimate.cost.cycles();
  json["cycles"] = nullptr;
  if (simulated) json["cycles"] = *simulated;
  json["bound_cycles"] = bound.cycles;
  json["bound_by"] = std::string(bound.by);
  json["binds"] = std::string(estimate.cost.Binds());
  json["phases"] = nlohmann::ordered_json::array();
  for (const CostParts::PhaseOf& phase : estimate.cost.Phases()) {
    nlohmann::ordered_json lanes = nlohmann::ordered_json::array();
    for (const CostParts::LaneOf& lane : phase.lanes) {
      nlohmann::ordered_json parts = nlohmann::ordered_json::array();
      for (const CostParts::Part& part : lane.parts) {
        parts.push_back({{"what", std::string(part.what)},
                         {"resource", std::string(part.resource)},
                         {"cycles", part.cycles}});
      }
      lanes.push_back({{"cycles", lane.cycles}, {"parts", parts}});
    }
    json["phases"].push_back({{"name", std::string(phase.name)},
                              {"times", phase.times},
                              {"cycles", phase.cycles()},
                              {"lanes", lanes}});
  }
  json["resources"] = nlohmann::ordered_json::array();
  for (const CostParts::Share& share : estimate.cost.Shares()) {
    json["resources"].push_back({{"resource", std::string(share.resource)},
                                 {"busy", share.busy},
                                 {"decides", share.decides}});
  }
  const auto memory = [](int64_t needs, int64_t there_is) {
    return nlohmann::ordered_json{{"needs", needs}, {"has", there_is}};
  };
  json["memory"] = {{"nmem", memory(estimate.needs.nmem, has.nmem)},
                    {"wmem", memory(estimate.needs.wmem, has.wmem)},
                    {"smem", memory(estimate.needs.smem, has.smem)}};
  json["others"] = nlohmann::ordered_json::array();
  for (const Other& other : others) {
    json["others"].push_back({{"what", other.what},
                              {"schedule", other.choice},
                              {"modelled_cycles", other.cycles},
                              {"why", other.why}});
  }
  json["misfits"] = nlohmann::ordered_json::array();
  for (const Misfit& misfit : misfits) {
    json["misfits"].push_back({{"what", misfit.what}, {"why", misfit.why}});
  }
  return json;
}

}  // namespace polynao::cases
