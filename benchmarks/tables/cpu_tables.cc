// Tables of the suites that take times on a CPU: polybench, fusion, equake; and the kernels that the pipelines become
// on a GPU.
#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/fusion_result.h"
#include "benchmarks/tables/tables.h"

namespace polynao::benchmarks {
namespace {

using nlohmann::ordered_json;

bool Agrees(const ordered_json& entry) { return entry.value("state", "") == "agrees"; }

// The names of a result's implementations that ran at least once, in order.
std::vector<std::string> Implementations(ResultFile& file) {
  std::vector<std::string> names;
  for (const ordered_json& one : file.List(file.json(), {"implementations"})) {
    if (!one.contains("missing")) names.push_back(file.Text(one, {"name"}));
  }
  return names;
}

// A line for each kernel: the baseline's time, then how many times as fast the others are; at the end what this
// compiler's last schedule took. The last line has geometric means of the kernels whose values agree.
absl::StatusOr<Table> Speedups(ResultFolder& results, const std::string& name) {
  ASSIGN_OR_RETURN(ResultFile file, results.Read(name));
  const std::string baseline = file.Text(file.json(), {"baseline"});
  const std::vector<std::string> names = Implementations(file);
  Table table = {{"kernel", StrCat(baseline, " ms")}, {}};
  for (const std::string& one : names) {
    if (one != baseline) table.header.push_back(one);
  }
  table.header.insert(table.header.end(), {"schedule ms", "compile ms"});
  std::map<std::string, std::vector<double>> speedups;
  for (const ordered_json& row : file.Rows()) {
    const ordered_json& entries = file.List(row, {"entries"});
    const ordered_json* base = ResultFile::Find(entries, {{"implementation", baseline}});
    if (base == nullptr) continue;
    std::vector<std::string> cells = {file.Text(row, {"kernel"}),
                                      Fixed(file.Number(*base, {"time_ns"}) / 1e6, 3)};
    const ordered_json* last = nullptr;
    for (const std::string& one : names) {
      if (one == baseline) continue;
      const ordered_json* entry = ResultFile::Find(entries, {{"implementation", one}});
      if (entry == nullptr || !Agrees(*entry)) {
        cells.push_back(entry == nullptr ? "" : entry->value("state", ""));
        continue;
      }
      speedups[one].push_back(file.Number(*entry, {"speedup"}));
      cells.push_back(Fixed(speedups[one].back(), 2));
      if (absl::StartsWith(one, "nao-")) last = entry;
    }
    if (last != nullptr) {
      cells.push_back(Fixed(file.Number(*last, {"schedule_ms"}), 0));
      cells.push_back(Fixed(file.Number(*last, {"compile_ms"}), 0));
    }
    table.rows.push_back(std::move(cells));
  }
  if (table.rows.size() > 1) {
    std::vector<std::string> means = {"geometric mean", ""};
    for (const std::string& one : names) {
      if (one != baseline) means.push_back(Fixed(GeometricMean(speedups[one]), 2));
    }
    table.rows.push_back(std::move(means));
  }
  RETURN_IF_ERROR(file.Status());
  return table;
}

absl::StatusOr<Table> PolyBenchLarge(ResultFolder& results) {
  return Speedups(results, "polybench-large.json");
}
absl::StatusOr<Table> PolyBenchMedium(ResultFolder& results) {
  return Speedups(results, "polybench-medium.json");
}

// Speed-ups over the strategy smart, on one thread and on two.
absl::StatusOr<Table> PolyBenchSmart(ResultFolder& results) {
  ASSIGN_OR_RETURN(const Table one, Speedups(results, "polybench-medium-smart-1.json"));
  ASSIGN_OR_RETURN(const Table two, Speedups(results, "polybench-medium-smart-2.json"));
  Table table = {{"kernel"}, {}};
  for (const auto& [threads, part] : {std::pair{"1 thread", &one}, {"2 threads", &two}}) {
    for (size_t i = 1; i + 2 < part->header.size(); ++i) {
      table.header.push_back(StrCat(part->header[i], ", ", threads));
    }
  }
  for (size_t row = 0; row < std::min(one.rows.size(), two.rows.size()); ++row) {
    std::vector<std::string> cells = {one.rows[row][0]};
    for (const Table* part : {&one, &two}) {
      for (size_t i = 1; i + 2 < part->header.size(); ++i) {
        cells.push_back(i < part->rows[row].size() ? part->rows[row][i] : "");
      }
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// Pipelines and numbers of threads in the order of the rows.
std::vector<std::pair<std::string, std::string>> PipelinesAndThreads(ResultFile& file) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const ordered_json& row : file.Rows()) {
    const std::pair<std::string, std::string> one = {file.Text(row, {"pipeline"}),
                                                     file.Text(row, {"threads"})};
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Implementations without their threads, in the order of the rows.
std::vector<std::string> PipelineImplementations(ResultFile& file) {
  std::vector<std::string> names;
  for (const ordered_json& row : file.Rows()) {
    const std::string name = file.Text(row, {"implementation"});
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

// A row's time if its values agree.
std::optional<double> PipelineMs(ResultFile& file, const std::string& pipeline,
                                 const std::string& threads, const std::string& implementation) {
  const ordered_json* row = ResultFile::Find(
      file.Rows(),
      {{"pipeline", pipeline}, {"threads", threads}, {"implementation", implementation}});
  if (row == nullptr || !Agrees(*row)) return std::nullopt;
  return file.Number(*row, {"time_ms"});
}

absl::StatusOr<Table> FusionTimes(ResultFolder& results) {
  ASSIGN_OR_RETURN(ResultFile file, results.Read("fusion.json"));
  const std::vector<std::string> names = PipelineImplementations(file);
  Table table = {{"pipeline, ms", "threads"}, {}};
  table.header.insert(table.header.end(), names.begin(), names.end());
  std::map<std::pair<std::string, std::string>, std::vector<double>> over_fuse;
  std::set<std::string> thread_counts;
  for (const auto& [pipeline, threads] : PipelinesAndThreads(file)) {
    std::vector<std::string> cells = {pipeline, threads};
    const std::optional<double> fuse = PipelineMs(file, pipeline, threads, "nao-fuse");
    thread_counts.insert(threads);
    for (const std::string& name : names) {
      const std::optional<double> ms = PipelineMs(file, pipeline, threads, name);
      cells.push_back(ms ? Fixed(*ms, 1) : "");
      if (ms && fuse) over_fuse[{name, threads}].push_back(*ms / *fuse);
    }
    table.rows.push_back(std::move(cells));
  }
  for (const std::string& threads : thread_counts) {
    std::vector<std::string> cells = {"geometric mean of time / nao-fuse's", threads};
    for (const std::string& name : names) {
      cells.push_back(Fixed(GeometricMean(over_fuse[{name, threads}]), 2));
    }
    table.rows.push_back(std::move(cells));
  }
  RETURN_IF_ERROR(file.Status());
  return table;
}

// Halide's schedules by hand against `fuse`: each ran alone.
absl::StatusOr<Table> FusionHand(ResultFolder& results) {
  ASSIGN_OR_RETURN(ResultFile file, results.Read("fusion-hand.json"));
  Table table = {{"pipeline", "threads", "halide-hand ms", "nao-fuse ms", "hand / fuse",
                  "Halide compiles, ms", "fuse compiles, ms"},
                 {}};
  std::map<std::string, std::vector<double>> ratios;
  for (const auto& [pipeline, threads] : PipelinesAndThreads(file)) {
    const auto hand = PipelineMs(file, pipeline, threads, "halide-hand");
    const auto fuse = PipelineMs(file, pipeline, threads, "nao-fuse");
    if (!hand || !fuse) continue;
    std::vector<std::string> cells = {pipeline, threads, Fixed(*hand, 1), Fixed(*fuse, 1),
                                      Fixed(*hand / *fuse, 2)};
    ratios[threads].push_back(*hand / *fuse);
    for (const char* name : {"halide-hand", "nao-fuse"}) {
      const ordered_json* row = ResultFile::Find(
          file.Rows(), {{"pipeline", pipeline}, {"threads", threads}, {"implementation", name}});
      cells.push_back(Fixed(file.Number(*row, {"compile_ms"}), 0));
    }
    table.rows.push_back(std::move(cells));
  }
  for (const auto& [threads, values] : ratios) {
    table.rows.push_back({"geometric mean", threads, "", "", Fixed(GeometricMean(values), 2)});
  }
  RETURN_IF_ERROR(file.Status());
  return table;
}

// What the schedules by `fuse` do: docs/polyhedral.md says what is counted.
absl::StatusOr<Table> FusionSchedules(ResultFolder& results) {
  ASSIGN_OR_RETURN(ResultFile file, results.Read("fusion.json"));
  Table table = {{"pipeline", "stages", "groups", "instances, counted", "by the model",
                  "MiB stage by stage", "MiB in groups", "KiB of a tile"},
                 {}};
  for (const ordered_json& row : file.Rows()) {
    if (file.Text(row, {"implementation"}) != "nao-fuse" || file.Text(row, {"threads"}) != "1") {
      continue;
    }
    const auto figure = [&](const char* name) { return file.Number(row, {"figures", name}); };
    table.rows.push_back(
        {file.Text(row, {"pipeline"}), Fixed(figure("stages"), 0), Fixed(figure("groups"), 0),
         Fixed(figure("redundancy"), 4), Fixed(figure("redundancy_model"), 4),
         Fixed(figure("bytes_before") / (1 << 20), 1), Fixed(figure("bytes_after") / (1 << 20), 1),
         Fixed(figure("tile_bytes") / (1 << 10), 1)});
  }
  RETURN_IF_ERROR(file.Status());
  return table;
}

// Medians of speed-ups over nao-min on as many threads; in parentheses the quotient of the shortest runs.
absl::StatusOr<Table> EquakeTimes(ResultFolder& results) {
  std::vector<std::string> strategies;
  std::vector<std::vector<std::string>> lines;
  std::vector<std::map<std::string, std::string>> cells;
  for (const char* name : {"equake-train.json", "equake-ref.json"}) {
    ASSIGN_OR_RETURN(ResultFile file, results.Read(name));
    for (const ordered_json& row : file.Rows()) {
      const ordered_json& entries = file.List(row, {"entries"});
      std::set<int> threads;
      for (const ordered_json& entry : entries) {
        threads.insert(SplitThreads(file.Text(entry, {"implementation"})).second);
      }
      for (int count : threads) {
        const ordered_json* base =
            ResultFile::Find(entries, {{"implementation", WithThreads("nao-min", count)}});
        if (base == nullptr || !Agrees(*base)) continue;
        lines.push_back({file.Text(row, {"kernel"}), StrCat(count),
                         Fixed(file.Number(*base, {"time_ns"}) / 1e6, 1)});
        cells.emplace_back();
        for (const ordered_json& entry : entries) {
          const auto [strategy, of] = SplitThreads(file.Text(entry, {"implementation"}));
          if (of != count || &entry == base || strategy == "nao-min" || !Agrees(entry)) continue;
          if (std::find(strategies.begin(), strategies.end(), strategy) == strategies.end()) {
            strategies.push_back(strategy);
          }
          cells.back()[strategy] = StrCat(
              Fixed(file.Number(entry, {"speedup"}), 2), " (",
              Fixed(file.Number(*base, {"least_ns"}) / file.Number(entry, {"least_ns"}), 2), ")");
        }
      }
    }
    RETURN_IF_ERROR(file.Status());
  }
  Table table = {{"form and size", "threads", "nao-min ms"}, {}};
  table.header.insert(table.header.end(), strategies.begin(), strategies.end());
  for (size_t i = 0; i < lines.size(); ++i) {
    for (const std::string& strategy : strategies) lines[i].push_back(cells[i][strategy]);
    table.rows.push_back(lines[i]);
  }
  return table;
}

// Launches and memory of the pipelines' kernels on a GPU. Nothing is run.
absl::StatusOr<Table> GpuPipelines(ResultFolder& results) {
  ASSIGN_OR_RETURN(const auto rows, results.ReadCells("gpu-pipelines.txt"));
  Table table = {{"pipeline", "schedule", "launches", "blocks", "threads", "shared KiB", "MiB"},
                 {}};
  const std::map<std::string, std::string> schedules = {{"baseline", "stage by stage"},
                                                        {"optimised", "fused"},
                                                        {"published", "fused, published tile"}};
  for (const auto& row : rows) {
    const auto cell = [&row = row](const char* name) {
      const auto found = row.find(name);
      return found == row.end() ? std::string() : found->second;
    };
    const std::vector<std::string> path = absl::StrSplit(cell("bundle"), '/');
    const auto schedule = schedules.find(path.back());
    double shared = 0;
    if (path.size() < 2 || schedule == schedules.end() ||
        !absl::SimpleAtod(cell("shared"), &shared)) {
      return InvalidInput("gpu-pipelines.txt: expected a bundle PIPELINE/SCHEDULE, found '",
                          cell("bundle"), "'");
    }
    table.rows.push_back({path[path.size() - 2], schedule->second, cell("launches"), cell("blocks"),
                          cell("threads"), Fixed(shared / 1024, 1), cell("MiB")});
  }
  return table;
}

constexpr ResultTable kTables[] = {
    {"polybench/large",
     "./nao bench polybench --json=benchmarks/results/polybench-large.json --resume",
     PolyBenchLarge},
    {"polybench/medium",
     "./nao bench polybench --size=MEDIUM --peers=gcc,clang "
     "--json=benchmarks/results/polybench-medium.json",
     PolyBenchMedium},
    {"polybench/smart",
     "for n in 1 2; do ./nao bench polybench --size=MEDIUM --peers=none --threads=$n "
     "--schedule=smart --schedule=fuse --schedule=auto "
     "--json=benchmarks/results/polybench-medium-smart-$n.json; done",
     PolyBenchSmart},
    {"fusion/times", "./nao bench fusion --json=benchmarks/results/fusion.json", FusionTimes},
    {"fusion/hand",
     "./nao bench fusion --strategies=fuse --peers=halide-hand "
     "--json=benchmarks/results/fusion-hand.json",
     FusionHand},
    {"fusion/schedules", "./nao bench fusion --json=benchmarks/results/fusion.json",
     FusionSchedules},
    {"equake/times",
     "for s in train ref; do ./nao bench equake --size=$s --peers=none "
     "--json=benchmarks/results/equake-$s.json; done",
     EquakeTimes},
    {"gpu/pipelines",
     "tools/gpu_check build --suite=pipelines -o gpu-pipes && (cd gpu-pipes && ./gpu_runner "
     "--list bundles) >benchmarks/results/gpu-pipelines.txt",
     GpuPipelines},
};

}  // namespace

absl::Span<const ResultTable> CpuTables() { return kTables; }

}  // namespace polynao::benchmarks
