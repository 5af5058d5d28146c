// The published GEMM ladder of MLU270 against the simulated card, and which assumed parameters its cycles depend on.
#ifndef BENCHMARKS_BENCH_LADDER_H_
#define BENCHMARKS_BENCH_LADDER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/machine.h"
#include "nlohmann/json_fwd.hpp"

namespace polynao::benchmarks {

inline constexpr char kLadderSuite[] = "ladder";
inline constexpr char kLadderSuiteDoc[] =
    "steps of MLU270's published GEMM tutorial: published against simulated time; --sensitivity";

struct LadderRow {
  std::string step;  // "4_1"
  std::string plan;
  std::string change;  // "gmem.latency=100" of a sensitivity run; "" of the machine as it is
  double published_ms = 0;
  int64_t cycles = 0;       // with the columns of the settings
  double simulated_ms = 0;  // of all columns, at the machine's clock
  std::string error;        // why it did not run; else ""
  // simulated / published
  double ratio() const { return published_ms > 0 ? simulated_ms / published_ms : 0; }
};

struct LadderSettings {
  std::string config = "mlu270";
  std::vector<std::string> overrides = {};
  // Columns of B. The times are those of 327,680: fewer columns are scaled up by whole rounds, the work before the
  // first round included. 0: all, and a twentieth of them for sensitivity runs.
  int64_t columns = 0;
  // Also halves and doubles each parameter whose source is assumed.
  bool sensitivity = false;
  std::function<void(const LadderRow& row)> on_row = {};
};

struct LadderResult {
  std::string date, commit;  // provenance.h
  isa::Machine machine;
  std::vector<LadderRow> rows;         // one for each step
  std::vector<LadderRow> sensitivity;  // by parameter, then half and double, then step
  bool ok() const;                     // everything ran
};

// Runs the steps. Errors: a wrong config or parameter; columns that are no whole rounds of all cores. A step for which
// the machine is too small gives a row with an error.
absl::StatusOr<LadderResult> RunLadder(const LadderSettings& settings);

// {suite, date, commit, machine, rows: [{step, plan, published_ms, simulated_ms, ratio, cycles}], order_agrees,
// sensitivity: [{parameter, value, step, simulated_ms, change}]}
nlohmann::ordered_json ToJson(const LadderResult& result);
std::string LadderText(const LadderResult& result);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_BENCH_LADDER_H_
