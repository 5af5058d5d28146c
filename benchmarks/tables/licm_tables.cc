// Tables of the suite licm511.
#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/licm_result.h"
#include "benchmarks/tables/tables.h"

namespace polynao::benchmarks {
namespace {

using Cells = std::map<std::string, std::string>;

double Number(const Cells& row, const std::string& name) {
  const auto cell = row.find(name);
  double value = 0;
  if (cell != row.end()) (void)absl::SimpleAtod(cell->second, &value);
  return value;
}

bool IsTrue(const Cells& row, const std::string& name) {
  const auto cell = row.find(name);
  return cell != row.end() && (cell->second == "True" || cell->second == "1");
}

// A row of the CSV files: what LicmRow says, without kinds of operations, whose sums stand in int_add.
LicmRow RowOf(const Cells& cells) {
  LicmRow row;
  const std::vector<std::string> name = absl::StrSplit(cells.at("case"), '/');
  row.op = name.at(0);
  row.id = static_cast<int>(std::stol(name.at(1)));
  row.values_agree = IsTrue(cells, "ok");
  row.same_code = IsTrue(cells, "same_code");
  row.baseline_ns = Number(cells, "baseline_ns");
  row.optimized_ns = Number(cells, "optimized_ns");
  row.speedup = Number(cells, "speedup");
  row.samples = static_cast<int>(Number(cells, "samples"));
  row.output_elements = static_cast<int64_t>(Number(cells, "output_elements"));
  row.baseline_counts.int_add = static_cast<int64_t>(Number(cells, "int_ops_baseline"));
  row.optimized_counts.int_add = static_cast<int64_t>(Number(cells, "int_ops_optimized"));
  row.baseline_counts.branches = static_cast<int64_t>(Number(cells, "branches_baseline"));
  row.optimized_counts.branches = static_cast<int64_t>(Number(cells, "branches_optimized"));
  row.exact_counts = IsTrue(cells, "exact_counts");
  row.pass_ms = {{"all", Number(cells, "passes_ms")}};
  return row;
}

// licm511-cpu.json, or what is left of such a run in licm511-cpu.csv.
absl::StatusOr<LicmSummary> CpuSummary(ResultFolder& results) {
  std::vector<LicmRow> rows;
  if (results.Has("licm511-cpu.json")) {
    ASSIGN_OR_RETURN(ResultFile file, results.Read("licm511-cpu.json"));
    for (const nlohmann::ordered_json& json : file.Rows()) {
      ASSIGN_OR_RETURN(LicmRow row, RowFromJson(json));
      rows.push_back(std::move(row));
    }
    RETURN_IF_ERROR(file.Status());
  } else {
    ASSIGN_OR_RETURN(const auto lines, results.ReadCells("licm511-cpu.csv"));
    for (const Cells& line : lines) rows.push_back(RowOf(line));
  }
  return SummarizeLicm(rows);
}

absl::StatusOr<Table> CpuSums(ResultFolder& results) {
  ASSIGN_OR_RETURN(const LicmSummary s, CpuSummary(results));
  return Table{{"cases", "agree", "effective", "improved", "unchanged", "worse", "mean speed-up",
                "of the total time", "passes at most, ms"},
               {{StrCat(s.measured), StrCat(s.measured - s.differ), StrCat(s.effective),
                 StrCat(s.improved_cases), StrCat(s.unchanged_cases), StrCat(s.worse_cases),
                 Fixed(s.average, 4), Fixed(s.total, 4),
                 StrCat(Fixed(s.most_passes_ms, 1), " (", s.most_passes_case, ")")}}};
}

absl::StatusOr<Table> CpuOperators(ResultFolder& results) {
  ASSIGN_OR_RETURN(const LicmSummary s, CpuSummary(results));
  Table table = {{"operator", "cases", "effective", "average", "total", "best", "worst (case)",
                  "integer operations left", "branches left", ""},
                 {}};
  for (const LicmOperator& op : s.operators) {
    std::vector<std::string> cells = {op.op, StrCat(op.cases), StrCat(op.effective)};
    if (op.effective > 0) {
      cells.insert(cells.end(), {Fixed(op.average, 3), Fixed(op.total, 3), Fixed(op.best, 3),
                                 StrCat(Fixed(op.worst, 3), " (", op.worst_id, ")")});
    } else {
      cells.insert(cells.end(), {"", "", "", ""});
    }
    cells.insert(cells.end(), {Fixed(op.int_ops, 3), Fixed(op.branches, 3),
                               op.effective > 0 ? std::string(VerdictName(VerdictOf(op.average)))
                                                : "no effective case"});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// The effective cases that were worse, run again for longer.
absl::StatusOr<Table> CpuAgain(ResultFolder& results) {
  ASSIGN_OR_RETURN(const auto lines, results.ReadCells("licm511-cpu-again.csv"));
  Table table = {{"case", "first run", "pairs of runs", "3 s", "pairs", "12 s", "pairs"}, {}};
  for (const Cells& line : lines) {
    std::vector<std::string> cells;
    for (const char* name :
         {"case", "first", "first_pairs", "3s", "3s_pairs", "12s", "12s_pairs"}) {
      const auto cell = line.find(name);
      cells.push_back(cell == line.end() ? "" : cell->second);
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// PTX instructions that the kernels execute, after by before; and each case that changes by a hundredth or more.
absl::StatusOr<Table> Cuda(ResultFolder& results) {
  ASSIGN_OR_RETURN(const auto lines, results.ReadCells("licm511-cuda.csv"));
  Table table = {{"case", "executed before", "after", "after / before", "machine code",
                  "registers before", "after"},
                 {}};
  std::vector<double> executed, code;
  int same = 0;
  for (const Cells& line : lines) {
    const double ratio = Number(line, "executed_after") / Number(line, "executed_before");
    if (!(ratio > 0)) continue;  // no counts
    const double bytes = Number(line, "machine_bytes_after") / Number(line, "machine_bytes_before");
    executed.push_back(ratio);
    code.push_back(bytes);
    if (std::abs(ratio - 1) < kBand) {
      ++same;
      continue;
    }
    table.rows.push_back({line.at("case"), line.at("executed_before"), line.at("executed_after"),
                          Fixed(ratio, 3), Fixed(bytes, 3), line.at("registers_before"),
                          line.at("registers_after")});
  }
  table.rows.push_back({StrCat("geometric mean of ", executed.size(), ", of which ", same,
                               " execute as many within 1 %"),
                        "", "", Fixed(GeometricMean(executed), 3), Fixed(GeometricMean(code), 3)});
  return table;
}

constexpr ResultTable kTables[] = {
    {"licm511/sums",
     "./nao bench licm511 --seconds=0.3 --jobs=1 --json=benchmarks/results/licm511-cpu.json",
     CpuSums},
    {"licm511/operators",
     "./nao bench licm511 --seconds=0.3 --jobs=1 --json=benchmarks/results/licm511-cpu.json",
     CpuOperators},
    {"licm511/again", "./nao bench licm511 --filter=CASES --seconds=3 --jobs=1", CpuAgain},
    {"licm511/cuda", "./nao bench licm511 --target=cuda --filter='/[17]$' --jobs=2", Cuda},
};

}  // namespace

absl::Span<const ResultTable> LicmTables() { return kTables; }

}  // namespace polynao::benchmarks
