// Runs a benchmark suite: every case with every implementation, in parallel.
#ifndef BENCHMARKS_BENCH_SUITE_H_
#define BENCHMARKS_BENCH_SUITE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/result.h"
#include "benchmarks/suites.h"

namespace polynao::benchmarks {

struct BenchSettings {
  std::string config = "mlu270";
  std::vector<std::string> overrides;
  uint64_t seed = 1;
  // Threads; each needs the memory of one case (the largest of tensorize48: 250 MB).
  int jobs = 1;
  // Rows whose "class/op/shape/impl" contains this text, or a match of it as a regular expression
  // (ECMAScript); "" is all.
  std::string filter;
  // Ablations: each is a list of passes ("loop_partition,tensorize"; "partition" is short for
  // loop_partition) and adds the implementation "without-LIST", compiled without these passes.
  std::vector<std::string> without;
  // Called after each row, from one thread at a time: rows that are done, rows in all, the row.
  std::function<void(int done, int total, const Row& row)> on_row = {};
};

// Runs compiled, library, expert and the ablations on the suite's cases. Operators and implementations that do not
// exist give skipped rows, with the reason. A case that does not compile, that the simulator stops, or whose values
// differ from the reference gives a row that is not ok. Errors: a wrong config, filter, number of jobs or pass; a
// filter that no row passes.
absl::StatusOr<SuiteResult> RunSuite(const Suite& suite, const BenchSettings& settings);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_BENCH_SUITE_H_
