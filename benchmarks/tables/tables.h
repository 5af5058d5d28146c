// The tables that documents make of benchmarks/results. A document has a table between two comments,
//
//   <!-- table resnet50/sums -->
//   | machine | fused | ...
//   <!-- end of table -->
//
// and `bazel run //tools:result_tables` writes what stands between them. A test compares them with the files.
#ifndef BENCHMARKS_TABLES_TABLES_H_
#define BENCHMARKS_TABLES_TABLES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "benchmarks/tables/result_files.h"
#include "benchmarks/tables/table.h"

namespace polynao::benchmarks {

struct ResultTable {
  std::string_view name;  // "resnet50/sums"
  std::string_view
      command;  // makes the files that it reads: "./nao bench resnet50 --json=benchmarks/results/resnet50.json"
  // Errors: kNotFound if a file is missing; a file that lacks a field.
  absl::StatusOr<Table> (*make)(ResultFolder& results);
};

// Of the card, by simulated cycles; of CPUs, by time, those of layers apart; of code motion.
absl::Span<const ResultTable> CardTables();
absl::Span<const ResultTable> CpuTables();
absl::Span<const ResultTable> DenseTables();
absl::Span<const ResultTable> LicmTables();
// Of layers on the card that nobody tuned.
absl::Span<const ResultTable> LayerTables();
// Of programs for the card that nobody scheduled.
absl::Span<const ResultTable> NestTables();
// All of them.
std::vector<ResultTable> ResultTables();

// `page` with each table made anew from the folder `results`, and below it the files that it was made of, by links that
// begin with `link`. A table without its file says by which command the file is made. Errors: a name that is no table;
// a beginning without an end; a file that cannot be read.
absl::StatusOr<std::string> FillTables(std::string_view page, const std::string& results,
                                       std::string_view link = "../benchmarks/results/");

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_TABLES_TABLES_H_
