#include "benchmarks/result.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "base/text.h"

namespace polynao::benchmarks {
namespace {

using nlohmann::ordered_json;

// Geometric mean, minimum and maximum of values that come one by one.
class Collector {
 public:
  void Add(double value, const std::string& shape) {
    if (statistic_.cases == 0 || value < statistic_.min) {
      statistic_.min = value;
      statistic_.min_shape = shape;
    }
    statistic_.max = statistic_.cases == 0 ? value : std::max(statistic_.max, value);
    ++statistic_.cases;
    log_sum_ += std::log(value);
  }
  Statistic Get() const {
    Statistic statistic = statistic_;
    if (statistic.cases > 0) statistic.geomean = std::exp(log_sum_ / statistic.cases);
    return statistic;
  }

 private:
  Statistic statistic_;
  double log_sum_ = 0;
};

// Collectors by implementation, in the order in which they were first asked for.
struct Collectors {
  std::vector<std::pair<std::string, Collector>> list;
  Collector& operator[](const std::string& impl) {
    for (auto& [name, collector] : list) {
      if (name == impl) return collector;
    }
    return list.emplace_back(impl, Collector()).second;
  }
  std::vector<std::pair<std::string, Statistic>> Get() const {
    std::vector<std::pair<std::string, Statistic>> result;
    for (const auto& [name, collector] : list) result.emplace_back(name, collector.Get());
    return result;
  }
};

ordered_json StatisticJson(const Statistic& s) {
  if (s.cases == 0) return {{"cases", 0}};
  return {{"cases", s.cases},
          {"geomean", s.geomean},
          {"min", s.min},
          {"min_shape", s.min_shape},
          {"max", s.max}};
}

ordered_json RowJson(const Row& row) {
  ordered_json json;
  json["case"] = row.suite_case.Name();
  json["class"] = row.suite_case.op_class;
  json["op"] = row.suite_case.op;
  json["shape"] = row.suite_case.shape;
  json["dtype"] = row.suite_case.dtype;
  if (!row.suite_case.attributes.empty()) json["attributes"] = row.suite_case.attributes;
  if (row.suite_case.count != 1) json["count"] = row.suite_case.count;
  json["impl"] = row.impl;
  const bool skipped = row.state == Row::State::kSkipped;
  json["ok"] = skipped ? ordered_json(nullptr) : ordered_json(row.state == Row::State::kAgrees);
  json["skipped"] = skipped ? ordered_json(row.reason) : ordered_json(nullptr);
  json["error"] =
      row.state == Row::State::kFailed ? ordered_json(row.reason) : ordered_json(nullptr);
  const bool ran = row.ran();
  const auto if_ran = [ran](auto value) {
    return ran ? ordered_json(value) : ordered_json(nullptr);
  };
  json["cycles"] = if_ran(row.cycles);
  json["bound_cycles"] = if_ran(row.bound_cycles);
  json["dram_bound_cycles"] = nullptr;
  if (row.dram_bound_cycles > 0) json["dram_bound_cycles"] = row.dram_bound_cycles;
  json["efficiency"] = if_ran(row.efficiency());
  json["traffic_bytes"] = if_ran(row.traffic_bytes);
  json["bytes"] = if_ran(row.bytes);
  json["instructions"] = if_ran(row.instructions);
  json["compile_ms"] = if_ran(row.compile_ms);
  json["simulate_ms"] = if_ran(row.simulate_ms);
  return json;
}

ordered_json SummaryJson(const Summary& summary) {
  ordered_json json;
  json["rows"] = {{"agree", summary.agrees},
                  {"differ", summary.differs},
                  {"failed", summary.failed},
                  {"skipped", summary.skipped}};
  json["skip_reasons"] = ordered_json::object();
  for (const auto& [reason, count] : summary.skip_reasons) json["skip_reasons"][reason] = count;
  json["classes"] = ordered_json::object();
  for (const ClassSummary& c : summary.classes) {
    ordered_json entry;
    entry["cases"] = c.cases;
    entry["speedup"] = ordered_json::object();
    for (const auto& [impl, s] : c.speedup) entry["speedup"][impl] = StatisticJson(s);
    entry["efficiency"] = ordered_json::object();
    for (const auto& [impl, s] : c.efficiency) entry["efficiency"][impl] = StatisticJson(s);
    const ClassFigures& f = c.figures;
    const auto figures = [](const SpeedupFigures& s) {
      return ordered_json{{"geomean", s.geomean}, {"min", s.min}};
    };
    entry["paper"] = {{"library", figures(f.paper)}};
    entry["goal"] = {{"library", figures(f.goal)}, {"expert", figures(f.goal_expert)}};
    if (f.efficiency) entry["goal"]["efficiency"] = *f.efficiency;
    json["classes"][f.op_class] = entry;
  }
  json["efficiency_by_traffic"] = ordered_json::object();
  for (const TrafficSummary& t : summary.traffic) {
    json["efficiency_by_traffic"][std::string(t.goal.name)] = {{"goal", t.goal.efficiency},
                                                               {"reached", t.reached},
                                                               {"missed", t.missed.size()},
                                                               {"missed_cases", t.missed}};
  }
  json["lines"] = ordered_json::object();
  for (const ClassSummary& c : summary.classes) {
    ordered_json entry;
    for (const char* kind : {"tensor-program", "library", "expert"}) {
      const auto found = summary.lines.find({kind, c.figures.op_class});
      entry[kind] = found == summary.lines.end() ? ordered_json() : ordered_json(found->second);
    }
    entry["paper"] = {{"tensor-program", c.figures.paper_tensor_program_lines},
                      {"library", c.figures.paper_hand_written_lines}};
    json["lines"][c.figures.op_class] = entry;
  }
  return json;
}

// Of a column with names of implementations and its heading.
int ImplementationWidth(const SuiteResult& result) {
  size_t width = std::string_view("implementation").size();
  for (const Row& row : result.rows) width = std::max(width, row.impl.size());
  return static_cast<int>(width);
}

}  // namespace

double Row::efficiency() const {
  if (cycles == 0) return 0;
  return static_cast<double>(std::max(bound_cycles, dram_bound_cycles)) /
         static_cast<double>(cycles);
}

const Statistic* ClassSummary::Speedup(const std::string& against) const {
  for (const auto& [impl, statistic] : speedup) {
    if (impl == against) return &statistic;
  }
  return nullptr;
}

Summary Summarize(const Suite& suite, const std::vector<Row>& rows, const LineCounts& lines) {
  Summary summary;
  summary.lines = lines;
  for (const TrafficGoal& goal : TrafficGoals()) {
    summary.traffic.emplace_back().goal = goal;
  }
  for (const Row& row : rows) {
    switch (row.state) {
      case Row::State::kAgrees:
        ++summary.agrees;
        break;
      case Row::State::kDiffers:
        ++summary.differs;
        break;
      case Row::State::kFailed:
        ++summary.failed;
        break;
      case Row::State::kSkipped:
        ++summary.skipped;
        ++summary.skip_reasons[row.reason];
        break;
    }
  }
  // Cycles of the compiled programs, by case.
  std::map<std::string, int64_t> compiled;
  for (const Row& row : rows) {
    if (row.state == Row::State::kAgrees && row.impl == kCompiled) {
      compiled[row.suite_case.Name()] = row.cycles;
    }
  }
  for (const ClassFigures& figures : suite.classes) {
    ClassSummary c;
    c.figures = figures;
    Collectors speedup;
    Collectors efficiency;
    std::string last_case;
    for (const Row& row : rows) {
      if (row.suite_case.op_class != figures.op_class) continue;
      const std::string name = row.suite_case.Name();
      if (name != last_case) ++c.cases;
      last_case = name;
      Collector& row_efficiency = efficiency[row.impl];
      Collector* row_speedup = row.impl == kCompiled ? nullptr : &speedup[row.impl];
      if (row.state != Row::State::kAgrees || row.cycles == 0) continue;
      const std::string shape = row.suite_case.op + " " + row.suite_case.shape;
      row_efficiency.Add(row.efficiency(), shape);
      const auto ours = compiled.find(name);
      if (row_speedup != nullptr && ours != compiled.end() && ours->second > 0) {
        row_speedup->Add(static_cast<double>(row.cycles) / static_cast<double>(ours->second),
                         shape);
      }
      if (row_speedup != nullptr || !figures.elementwise) continue;
      for (TrafficSummary& t : summary.traffic) {
        const auto bytes = static_cast<double>(row.traffic_bytes);
        if (bytes <= t.goal.above_bytes || bytes > t.goal.up_to_bytes) continue;
        if (row.efficiency() >= t.goal.efficiency) {
          ++t.reached;
        } else {
          t.missed.push_back(absl::StrFormat("%s %.3f", name, row.efficiency()));
        }
      }
    }
    c.speedup = speedup.Get();
    c.efficiency = efficiency.Get();
    summary.classes.push_back(std::move(c));
  }
  return summary;
}

ordered_json ToJson(const SuiteResult& result) {
  ordered_json json;
  json["suite"] = result.suite.name;
  json["date"] = result.date;
  json["commit"] = result.commit;
  json["config"] = result.machine.name;
  json["machine"] = result.machine.parameters();
  for (const auto& [name, text] : result.machine.texts()) json["machine"][name] = text;
  json["seed"] = result.seed;
  json["filter"] = result.filter;
  json["jobs"] = result.jobs;
  json["wall_seconds"] = result.wall_seconds;
  json["ok"] = result.ok();
  json["rows"] = ordered_json::array();
  for (const Row& row : result.rows) json["rows"].push_back(RowJson(row));
  json["summary"] = SummaryJson(result.summary);
  return json;
}

std::string RowsText(const SuiteResult& result) {
  const int impl_width = ImplementationWidth(result);
  std::string text =
      absl::StrFormat("%-44s %-*s %10s %10s %10s %6s %8s  %s\n", "case", impl_width, "impl",
                      "cycles", "bound", "DRAM's", "eff.", "instr.", "values");
  for (const Row& row : result.rows) {
    absl::StrAppendFormat(&text, "%-44s %-*s ", row.suite_case.Name(), impl_width, row.impl);
    if (row.ran()) {
      absl::StrAppendFormat(&text, "%10d %10d %10d %6.3f %8d  %s\n", row.cycles, row.bound_cycles,
                            row.dram_bound_cycles, row.efficiency(), row.instructions,
                            row.state == Row::State::kAgrees ? "agree" : "DIFFER");
    } else {
      absl::StrAppendFormat(&text, "%s: %s\n",
                            row.state == Row::State::kSkipped ? "skipped" : "FAILED", row.reason);
    }
  }
  return text;
}

std::string SummaryText(const SuiteResult& result) {
  const int impl_width = ImplementationWidth(result);
  const Summary& summary = result.summary;
  std::string text = absl::StrFormat(
      "%s on %s: %d rows agree, %d differ, %d failed, %d skipped; %.1f s with %d jobs\n",
      result.suite.name, result.machine.name, summary.agrees, summary.differs, summary.failed,
      summary.skipped, result.wall_seconds, result.jobs);
  for (const auto& [reason, count] : summary.skip_reasons) {
    absl::StrAppendFormat(&text, "  skipped %d: %s\n", count, reason);
  }
  absl::StrAppendFormat(&text, "\nSpeed-up of compiled programs (cycles of the other / cycles)\n");
  absl::StrAppendFormat(&text, "  %-7s %-*s %5s %8s %7s %7s  %-22s %-12s %s\n", "class", impl_width,
                        "against", "cases", "geomean", "min", "max", "min at", "goal", "paper");
  for (const ClassSummary& c : summary.classes) {
    for (const auto& [impl, s] : c.speedup) {
      absl::StrAppendFormat(&text, "  %-7s %-*s %5d ", c.figures.op_class, impl_width, impl,
                            s.cases);
      if (s.cases > 0) {
        absl::StrAppendFormat(&text, "%8.3f %7.3f %7.3f  %-22s ", s.geomean, s.min, s.max,
                              s.min_shape);
      } else {
        absl::StrAppendFormat(&text, "%8s %7s %7s  %-22s ", "-", "-", "-", "-");
      }
      const auto figures = [&](const SpeedupFigures& f) {
        absl::StrAppendFormat(&text, "%4.2f >=%4.2f  ", f.geomean, f.min);
      };
      if (impl == "library") {
        figures(c.figures.goal);
        figures(c.figures.paper);
      } else if (impl == "expert") {
        figures(c.figures.goal_expert);
      }
      while (text.back() == ' ') text.pop_back();
      text += '\n';
    }
  }
  absl::StrAppendFormat(&text, "\nEfficiency (bound / cycles)\n");
  absl::StrAppendFormat(&text, "  %-7s %-*s %5s %8s %7s %7s  %s\n", "class", impl_width,
                        "implementation", "cases", "geomean", "min", "max", "min at");
  for (const ClassSummary& c : summary.classes) {
    for (const auto& [impl, s] : c.efficiency) {
      absl::StrAppendFormat(&text, "  %-7s %-*s %5d ", c.figures.op_class, impl_width, impl,
                            s.cases);
      if (s.cases > 0) {
        absl::StrAppendFormat(&text, "%8.3f %7.3f %7.3f  %s\n", s.geomean, s.min, s.max,
                              s.min_shape);
      } else {
        absl::StrAppendFormat(&text, "%8s %7s %7s  -\n", "-", "-", "-");
      }
    }
  }
  absl::StrAppendFormat(&text, "\nCompiled elementwise cases at their goal, by GMEM traffic\n");
  for (const TrafficSummary& t : summary.traffic) {
    absl::StrAppendFormat(&text, "  %-15s efficiency >= %.2f: %d reach it, %d do not\n",
                          t.goal.name, t.goal.efficiency, t.reached, t.missed.size());
    for (const std::string& missed : t.missed) absl::StrAppendFormat(&text, "    %s\n", missed);
  }
  absl::StrAppendFormat(&text, "\nLines of code (neither blank nor comment; the paper's in ())\n");
  absl::StrAppendFormat(&text, "  %-7s %16s %16s %8s\n", "class", "tensor program", "library",
                        "expert");
  for (const ClassSummary& c : summary.classes) {
    const auto count = [&](const char* kind) -> std::string {
      const auto found = summary.lines.find({kind, c.figures.op_class});
      return found == summary.lines.end() ? "-" : StrCat(found->second);
    };
    absl::StrAppendFormat(
        &text, "  %-7s %16s %16s %8s\n", c.figures.op_class,
        StrCat(count("tensor-program"), " (", c.figures.paper_tensor_program_lines, ")"),
        StrCat(count("library"), " (", c.figures.paper_hand_written_lines, ")"), count("expert"));
  }
  return text;
}

}  // namespace polynao::benchmarks
