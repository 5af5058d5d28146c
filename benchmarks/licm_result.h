// Results of the suite licm511: for each case of the TOPI table, the program without and with
// normalize, licm, hoist_if and cse, and a summary.
#ifndef BENCHMARKS_LICM_RESULT_H_
#define BENCHMARKS_LICM_RESULT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/counts.h"
#include "nlohmann/json_fwd.hpp"

namespace polynao::benchmarks {

// The passes that the suite measures, in the order of the pipeline.
inline constexpr const char* kLicmPasses[] = {"normalize", "licm", "hoist_if", "cse"};

// After "Loop invariant code motion" (the experiments): a case is effective if the two programs
// differ as machine code and the baseline takes at least this long.
inline constexpr double kEffectiveNs = 50e3;
// A speed-up within 1 +- this counts as unchanged.
inline constexpr double kBand = 0.01;

// Code that the CUDA Toolkit makes of a program's kernels. `executed` counts what threads execute. The
// other counts are static: a loop's body counts once, or as often as it was unrolled.
struct LicmCode {
  // Instructions of PTX that all threads execute (compiler/codegen/cuda/execute_ptx.h).
  double executed = 0;
  double executed_integer = 0;  // of them, arithmetic, logic and comparisons of integers
  bool exact_execution = true;  // no branch depends on values in memory
  int64_t ptx = 0;              // instructions
  int64_t ptx_integer = 0;      // of them, arithmetic, logic and comparisons of integers
  int64_t ptx_branches = 0;     // of them, branches
  int64_t machine_bytes = 0;
  int64_t registers = 0;  // of a thread, in the kernel that has most
  int64_t spill_bytes = 0;
};

struct LicmRow {
  std::string op;
  int id = 0;
  std::string shape;          // of the case's first function
  int functions = 1;          // programs of the case; times and counts are their sums
  std::string error;          // if not empty, nothing below is set
  bool values_agree = false;  // outputs of both programs, bit for bit; on cuda nothing is run
  bool same_code = false;     // both are the same machine code; on cuda: the same CUDA C

  // Medians of several runs, taken in turn, and the median of the quotients of neighbours.
  double baseline_ns = 0;
  double optimized_ns = 0;
  double speedup = 1;
  int samples = 0;

  // Operations that the interpreter would count (compiler/ir/static_counts.h).
  ir::Counts baseline_counts;
  ir::Counts optimized_counts;
  bool exact_counts = true;
  int64_t output_elements = 0;

  // On cuda; absent, with the reason, where there is no CUDA Toolkit.
  std::optional<LicmCode> baseline_code;
  std::optional<LicmCode> optimized_code;
  std::string no_code;

  int64_t nodes = 0;                                    // of the function that the four passes get
  std::vector<std::pair<std::string, double>> pass_ms;  // of the four passes

  std::string Name() const;  // "conv2d_nchw/12": what --filter looks at
  bool effective() const { return error.empty() && !same_code && baseline_ns >= kEffectiveNs; }
  double passes_ms() const;  // all four together
};

enum class Verdict { kImproved, kUnchanged, kWorse };
Verdict VerdictOf(double speedup);
std::string_view VerdictName(Verdict verdict);

// Effective cases of one operator; counts are those of all its cases.
struct LicmOperator {
  std::string op;
  int cases = 0;
  int effective = 0;
  double average = 1;  // the mean of the speed-ups
  double total = 1;    // all baselines' time / all optimized ones'
  double best = 1;
  double worst = 1;
  int worst_id = 0;
  // After / before: counts per output element, summed over the cases.
  double int_ops = 1;
  double branches = 1;
  // After / before. Executed instructions: geometric means over the cases with counts. Other counts of
  // LicmCode: quotients of sums.
  double executed = 1;
  double executed_integer = 1;
  double ptx = 1;
  double ptx_integer = 1;
  double ptx_branches = 1;
  double machine_bytes = 1;
};

struct LicmSummary {
  int cases = 0;
  int measured = 0;
  int failed = 0;
  int differ = 0;  // values
  int same_code = 0;
  int too_short = 0;  // of those with other code
  int effective = 0;
  std::vector<LicmOperator> operators;  // in the order of the table
  int effective_operators = 0;
  int improved = 0, unchanged = 0, worse = 0;                    // operators, by average
  int improved_cases = 0, unchanged_cases = 0, worse_cases = 0;  // effective ones
  double average = 1;  // the mean of all effective cases' speed-ups
  double total = 1;    // of all effective cases
  double worst = 1;    // the slowest-down case
  std::string worst_case;
  // Cases with counts of PTX by the instructions that they execute: fewer by at least kBand, as many,
  // more by at least kBand; the geometric mean of the quotients, and the largest.
  int fewer_executed = 0, same_executed = 0, more_executed = 0;
  double executed = 1;
  double most_executed = 1;
  std::string most_executed_case;
  double most_passes_ms = 0;  // the longest compile time of the four passes
  std::string most_passes_case;
};

struct LicmResult {
  std::string target = "cpu";  // or "cuda": counts alone
  std::string machine;         // "Intel(R) Xeon(R) Processor, LLVM 19, 1 thread"
  std::string date;            // ISO 8601
  std::string commit;          // of the repository, if it is known
  std::string filter;
  double wall_seconds = 0;
  std::vector<LicmRow> rows;
  LicmSummary summary;

  bool ok() const { return summary.measured > 0 && summary.failed == 0 && summary.differ == 0; }
};

LicmSummary SummarizeLicm(const std::vector<LicmRow>& rows);

// A row as in ToJson, and back; `target` says which fields it has. Errors: a missing field, a field of
// another type.
nlohmann::ordered_json RowToJson(const LicmRow& row, std::string_view target);
absl::StatusOr<LicmRow> RowFromJson(const nlohmann::ordered_json& json);

// {suite, target, machine, date, commit, filter, wall_seconds, ok, rows, summary}: docs/benchmarks.md.
nlohmann::ordered_json ToJson(const LicmResult& result);
// Rows and summary as text for a terminal.
std::string RowsText(const LicmResult& result);
std::string SummaryText(const LicmResult& result);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_LICM_RESULT_H_
