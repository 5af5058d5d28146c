// Tables of the suite dense: layers of networks on a CPU, against libraries.
#include <algorithm>
#include <optional>

#include "base/status.h"
#include "base/text.h"
#include "benchmarks/dense_result.h"
#include "benchmarks/fusion_result.h"
#include "benchmarks/tables/tables.h"

namespace polynao::benchmarks {
namespace {

constexpr const char* kFile = "dense.json";
constexpr const char* kCommand =
    "./nao bench dense --peers=onednn,openblas --json=benchmarks/results/dense.json --resume";
// A processor with dot products of bytes in vectors of 512 bits, but without tiles (AMX).
constexpr const char* kVectorsFile = "dense-vnni.json";
constexpr const char* kVectorsCommand =
    "./nao bench dense --json=benchmarks/results/dense-vnni.json --resume";

// A processor with vectors of 256 bits, and no dot products of bytes.
constexpr const char* kNarrowFile = "dense-avx2.json";
constexpr const char* kNarrowCommand =
    "./nao bench dense --json=benchmarks/results/dense-avx2.json --resume";

absl::StatusOr<Comparison> ReadDense(ResultFolder& results, const char* name) {
  ASSIGN_OR_RETURN(const ResultFile file, results.Read(name));
  absl::StatusOr<Comparison> result = DenseFromJson(file.json());
  if (!result.ok()) return WithContext(name, result.status());
  return result;
}

// A line for each class and number of threads, with the geometric mean and the least of each pair's speed-ups.
absl::StatusOr<Table> ClassesOf(ResultFolder& results, const char* name) {
  ASSIGN_OR_RETURN(const Comparison result, ReadDense(results, name));
  Table table = {{"class", "threads", "layers"}, {}};
  std::vector<std::pair<std::string, std::string>> pairs;
  const std::vector<ClassSpeedup> all = ClassSpeedups(result);
  for (const ClassSpeedup& one : all) {
    const std::pair<std::string, std::string> pair = {one.implementation, one.over};
    if (std::find(pairs.begin(), pairs.end(), pair) != pairs.end()) continue;
    pairs.push_back(pair);
    table.header.push_back(StrCat(one.implementation, " over ", one.over));
  }
  for (const ClassSpeedup& one : all) {
    const std::string threads = StrCat(one.threads);
    const auto has_place = [&](const std::vector<std::string>& row) {
      return row[0] == one.name && row[1] == threads;
    };
    auto row = std::find_if(table.rows.begin(), table.rows.end(), has_place);
    if (row == table.rows.end()) {
      table.rows.push_back({one.name, threads, StrCat(one.layers)});
      table.rows.back().resize(table.header.size());
      row = table.rows.end() - 1;
    }
    const auto pair = std::find(pairs.begin(), pairs.end(),
                                std::pair<std::string, std::string>{one.implementation, one.over});
    (*row)[3 + (pair - pairs.begin())] = StrCat(Fixed(one.mean, 2), " (", Fixed(one.least, 2), ")");
  }
  return table;
}

// A line for each layer and number of threads: the times, and what bounds them.
absl::StatusOr<Table> LayersOf(ResultFolder& results, const char* name) {
  ASSIGN_OR_RETURN(const Comparison result, ReadDense(results, name));
  Table table = {{"layer", "threads", "bound by", "bound ms"}, {}};
  std::vector<std::string> names;
  for (const ComparisonImplementation& one : result.implementations) {
    const std::string name = SplitThreads(one.name).first;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  for (const std::string& name : names) table.header.push_back(StrCat(name, " ms"));
  table.header.push_back("compile ms");
  for (const ComparisonRow& row : result.rows) {
    std::vector<int> thread_counts;
    for (const ComparisonEntry& entry : row.entries) {
      const int threads = SplitThreads(entry.implementation).second;
      if (std::find(thread_counts.begin(), thread_counts.end(), threads) == thread_counts.end()) {
        thread_counts.push_back(threads);
      }
    }
    for (const int threads : thread_counts) {
      const ComparisonEntry* ours = row.Find(WithThreads("nao-auto", threads));
      if (ours == nullptr || !ours->ran()) continue;
      const double arithmetic = FigureOf(*ours, "mac_ms"), memory = FigureOf(*ours, "memory_ms");
      std::vector<std::string> cells = {row.kernel, StrCat(threads),
                                        arithmetic >= memory ? "arithmetic" : "memory",
                                        Fixed(std::max(arithmetic, memory), 3)};
      for (const std::string& name : names) {
        const ComparisonEntry* entry = row.Find(WithThreads(name, threads));
        const bool ran = entry != nullptr && entry->ran();
        cells.push_back(ran ? Fixed(entry->time_ns / 1e6, 3) : "");
      }
      cells.push_back(Fixed(ours->compile_ms, 0));
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

absl::StatusOr<Table> Classes(ResultFolder& results) { return ClassesOf(results, kFile); }
absl::StatusOr<Table> Layers(ResultFolder& results) { return LayersOf(results, kFile); }
absl::StatusOr<Table> VectorClasses(ResultFolder& results) {
  return ClassesOf(results, kVectorsFile);
}
absl::StatusOr<Table> NarrowClasses(ResultFolder& results) {
  return ClassesOf(results, kNarrowFile);
}

constexpr ResultTable kTables[] = {
    {"dense/classes", kCommand, Classes},
    {"dense/layers", kCommand, Layers},
    {"dense-vnni/classes", kVectorsCommand, VectorClasses},
    {"dense-avx2/classes", kNarrowCommand, NarrowClasses},
};

}  // namespace

absl::Span<const ResultTable> DenseTables() { return kTables; }

}  // namespace polynao::benchmarks
