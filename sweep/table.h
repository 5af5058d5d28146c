// The table of a sweep has a row for each program at each point. Written and read as JSON, written as CSV.
#ifndef SWEEP_TABLE_H_
#define SWEEP_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sweep/axis.h"

namespace polynao::sweep {

// A number of a row. Sums over programs mean something for all of them but those of the machine (area_mm2).
struct Metric {
  const char* name;
  const char* unit;
  const char* meaning;
  bool of_machine = false;  // the same for all programs of a point
};
// cycles, time_ns, launched_ns, bound_cycles, dram_bound_cycles, instructions, gmem_bytes, energy_pj, area_mm2,
// average_power_mw, energy_delay_pj_s: in this order everywhere. The last four are there only if an energy table was
// given.
const std::vector<Metric>& Metrics();
// Null if there is none of that name.
const Metric* FindMetric(std::string_view name);

struct Row {
  int64_t point = 0;    // index in Points
  std::string program;  // "conv1"
  // Why the program cannot run at this point; then there are no metrics.
  std::string error = {};
  std::map<std::string, double, std::less<>> metrics = {};
  bool operator==(const Row&) const = default;
};

struct Table {
  std::string config;             // the machine's name
  std::vector<std::string> base;  // overrides that hold for all points, sorted
  std::string energy;             // the energy table that was asked for, or empty
  std::vector<Axis> axes;
  std::vector<std::string> programs;  // in the order in which they were given
  // For each point in order, for each program in order; while a table is merged some may be missing.
  std::vector<Row> rows = {};

  std::vector<Point> points() const { return Points(axes); }
  bool operator==(const Table&) const = default;
};

// Canonical JSON: one row a line, sorted keys, shortest numbers that read back. No times of this machine, no paths.
std::string TableJson(const Table& table);
// Errors: "rows.json: 'axes': expected ..., found ...".
absl::StatusOr<Table> ParseTable(std::string_view text, std::string_view place);
// RFC 4180: a column for each axis, then program, metrics, error.
std::string TableCsv(const Table& table);

// One table of the rows of all, in canonical order. Errors: heads that differ; a row that two of them have; rows that
// are missing.
absl::StatusOr<Table> MergeTables(const std::vector<Table>& parts);

// Leaves out all metrics but those of the list ("cycles,energy_pj"; "" leaves out none). Errors: a name that is none.
absl::Status KeepMetrics(Table& table, std::string_view names);

// Error: no row has metrics; with the first reason.
absl::Status CheckFeasible(const Table& table);

}  // namespace polynao::sweep

#endif  // SWEEP_TABLE_H_
