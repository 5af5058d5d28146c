// The result of a suite: a row for each case and implementation, and a summary.
#ifndef BENCHMARKS_RESULT_H_
#define BENCHMARKS_RESULT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/lines.h"
#include "benchmarks/suites.h"
#include "isa/machine.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {

// The implementation that all others are compared with.
inline constexpr char kCompiled[] = "compiled";

struct Row {
  enum class State {
    kAgrees,   // ran, and all values agree with the reference
    kDiffers,  // ran, and some value differs
    kFailed,   // did not compile, or the simulator stopped it: `reason`
    kSkipped,  // operator or implementation does not exist: `reason`
  };
  SuiteCase suite_case;
  std::string impl;
  State state = State::kSkipped;
  std::string reason;
  // Only for rows that ran. The host's times depend on its other work.
  int64_t cycles = 0;
  int64_t bound_cycles = 0;
  int64_t dram_bound_cycles = 0;                                    // 0: GMEM is no DRAM
  int64_t traffic_bytes = 0;                                        // that must cross GMEM
  nlohmann::ordered_json bytes = nlohmann::ordered_json::object();  // by path, as `nao run`
  int64_t instructions = 0;
  double compile_ms = 0;
  double simulate_ms = 0;

  bool ran() const { return state == State::kAgrees || state == State::kDiffers; }
  double efficiency() const;  // the larger bound / cycles; 0 without cycles
  // "binary/add/255x27x27/library": what --filter looks at.
  std::string Name() const { return suite_case.Name() + "/" + impl; }
};

// Over the cases of a class; only rows whose values agree count.
struct Statistic {
  int cases = 0;  // 0: nothing else is meant
  double geomean = 0;
  double min = 0;
  double max = 0;
  std::string min_shape;  // of the first case with the minimum
};

struct ClassSummary {
  ClassFigures figures;
  int cases = 0;
  // cycles of the other / cycles of the compiled program, by the other's name, in order of the
  // rows.
  std::vector<std::pair<std::string, Statistic>> speedup;
  // By implementation.
  std::vector<std::pair<std::string, Statistic>> efficiency;

  const Statistic* Speedup(const std::string& against) const;  // null if there is none
};

// How many compiled elementwise cases reach the efficiency of their TrafficGoal.
struct TrafficSummary {
  TrafficGoal goal;
  int reached = 0;
  std::vector<std::string> missed;  // "binary/add/255x27x27 0.871"
};

struct Summary {
  int agrees = 0;
  int differs = 0;
  int failed = 0;
  int skipped = 0;
  std::map<std::string, int> skip_reasons;  // reason -> rows
  std::vector<ClassSummary> classes;        // in the order of the suite
  std::vector<TrafficSummary> traffic;
  LineCounts lines;
};

struct SuiteResult {
  Suite suite;
  isa::Machine machine;
  std::string date, commit;  // provenance.h
  uint64_t seed = 1;
  std::string filter;
  int jobs = 1;
  double wall_seconds = 0;
  // By case in the order of the suite, then by implementation.
  std::vector<Row> rows;
  Summary summary;

  // True if something ran and everything that ran or should have run agrees.
  bool ok() const { return summary.agrees > 0 && summary.differs == 0 && summary.failed == 0; }
};

Summary Summarize(const Suite& suite, const std::vector<Row>& rows, const LineCounts& lines);

// {suite, date, commit, config, machine, seed, filter, jobs, wall_seconds, rows, summary}: docs/benchmarks.md.
nlohmann::ordered_json ToJson(const SuiteResult& result);

// The rows and the summary as text for a terminal.
std::string RowsText(const SuiteResult& result);
std::string SummaryText(const SuiteResult& result);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_RESULT_H_
