// Tables of the suites that run on the simulated card: tensorize48, resnet50, resnet50_train, ladder.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/suites.h"
#include "benchmarks/tables/tables.h"

namespace polynao::benchmarks {
namespace {

using nlohmann::ordered_json;

using Machines = std::vector<std::pair<std::string, ResultFile>>;

std::string MachineName(const std::string& difference) {
  return difference.empty() ? "as configured" : difference;
}

// Speed-ups and efficiencies of each class, on each machine.
absl::StatusOr<Table> TensorizeClasses(ResultFolder& results) {
  ASSIGN_OR_RETURN(Machines machines, results.Machines("tensorize48"));
  Table table = {{"class", "machine", "cases", "efficiency: compiled", "library", "expert",
                  "over library", "least", "over expert", "least"},
                 {}};
  const ordered_json classes = machines[0]
                                   .second.json()
                                   .value("summary", ordered_json::object())
                                   .value("classes", ordered_json::object());
  for (const auto& [name, unused] : classes.items()) {
    for (auto& [difference, file] : machines) {
      const auto number = [&, &file = file, name = name](std::vector<std::string> path) {
        path.insert(path.begin(), {"summary", "classes", name});
        return file.Number(file.json(), path);
      };
      if (number({"cases"}) == 0) continue;  // a filter left them out
      std::vector<std::string> row = {name, MachineName(difference), Fixed(number({"cases"}), 0)};
      for (const char* impl : {"compiled", "library", "expert"}) {
        row.push_back(Fixed(number({"efficiency", impl, "geomean"}), 3));
      }
      for (const char* other : {"library", "expert"}) {
        row.push_back(Fixed(number({"speedup", other, "geomean"}), 3));
        row.push_back(Fixed(number({"speedup", other, "min"}), 3));
      }
      table.rows.push_back(std::move(row));
    }
  }
  for (const auto& [difference, file] : machines) RETURN_IF_ERROR(file.Status());
  return table;
}

// Cycles without a pass, of those with it, and the efficiency that is left.
absl::StatusOr<Table> TensorizeWithout(ResultFolder& results) {
  ASSIGN_OR_RETURN(ResultFile file, results.Read("tensorize48-without.json"));
  Table table = {{"without"}, {}};
  const ordered_json classes =
      file.json().value("summary", ordered_json::object()).value("classes", ordered_json::object());
  for (const char* what : {"cycles", "efficiency"}) {
    for (const auto& [name, unused] : classes.items()) {
      table.header.push_back(StrCat(name, ": ", what));
    }
  }
  if (classes.empty()) return InvalidInput(file.name(), ": expected classes in its summary");
  const ordered_json speedups = classes.front().value("speedup", ordered_json::object());
  for (const auto& [impl, unused] : speedups.items()) {
    if (!absl::StartsWith(impl, "without-")) continue;
    std::vector<std::string> row = {impl.substr(std::string("without-").size())};
    for (const auto& [name, of_class] : classes.items()) {
      row.push_back(Fixed(file.Number(of_class, {"speedup", impl, "geomean"}), 3));
    }
    for (const auto& [name, of_class] : classes.items()) {
      row.push_back(Fixed(file.Number(of_class, {"efficiency", impl, "geomean"}), 3));
    }
    table.rows.push_back(std::move(row));
  }
  RETURN_IF_ERROR(file.Status());
  return table;
}

absl::StatusOr<Table> TensorizeLines(ResultFolder& results) {
  ASSIGN_OR_RETURN(ResultFile file, results.Read("tensorize48.json"));
  Table table = {
      {"class", "tensor program", "library", "expert", "paper: tensor program", "paper: library"},
      {}};
  const ordered_json lines =
      file.json().value("summary", ordered_json::object()).value("lines", ordered_json::object());
  for (const auto& [name, of_class] : lines.items()) {
    table.rows.push_back({name, file.Text(of_class, {"tensor-program"}),
                          file.Text(of_class, {"library"}), file.Text(of_class, {"expert"}),
                          file.Text(of_class, {"paper", "tensor-program"}),
                          file.Text(of_class, {"paper", "library"})});
  }
  RETURN_IF_ERROR(file.Status());
  return table;
}

// A row of a suite's result: cycles, the larger bound, bytes that GMEM moves.
struct Figures {
  std::string impl;
  double cycles = 0, bound = 0, gmem_bytes = 0;

  void Add(const Figures& other, int count) {
    cycles += count * other.cycles;
    bound += count * other.bound;
    gmem_bytes += count * other.gmem_bytes;
  }
};

// The fastest of these implementations of a case; none if it has none of them.
std::optional<Figures> Fastest(ResultFile& file, const std::string& name,
                               const std::vector<std::string>& impls) {
  std::optional<Figures> fastest;
  for (const std::string& impl : impls) {
    const ordered_json* row = ResultFile::Find(file.Rows(), {{"case", name}, {"impl", impl}});
    if (row == nullptr || !row->contains("ok") || (*row)["ok"] != true) continue;
    Figures figures = {
        impl, file.Number(*row, {"cycles"}),
        std::max(file.Number(*row, {"bound_cycles"}), file.Number(*row, {"dram_bound_cycles"})),
        file.Number(*row, {"bytes", "gmem_moved"})};
    if (!fastest || figures.cycles < fastest->cycles) fastest = std::move(figures);
  }
  return fastest;
}

std::string Megabytes(double bytes) { return Fixed(bytes / 1e6, 2); }

// "56x56x64, 64x1x1x64; residual=1".
std::string LayerName(const SuiteCase& c) {
  return StrCat(absl::StrJoin(absl::StrSplit(c.shape, ','), ", "), c.attributes.empty() ? "" : "; ",
                absl::StrJoin(c.attributes, ", "));
}

// What stands beside the compiled program of a layer: a name, and the implementations of which the fastest counts.
struct Side {
  std::string name;
  std::vector<std::string> impls;
};

const Side kUnfused = {"unfused", {"unfused", "unfused_conv2d"}};
const Side kHand = {"hand", {"library", "expert"}};

absl::StatusOr<Table> ResNetLayers(ResultFolder& results) {
  ASSIGN_OR_RETURN(ResultFile file, results.Read("resnet50.json"));
  ASSIGN_OR_RETURN(const Suite* suite, FindSuite("resnet50"));
  Table table = {{"layer", "times", "bound unfused", "bound fused", "unfused", "hand", "fused",
                  "speed-up", "bounds' ratio", "efficiency", "MB unfused", "MB fused"},
                 {}};
  for (const SuiteCase& c : suite->cases) {
    const auto fused = Fastest(file, c.Name(), {"compiled"});
    const auto unfused = Fastest(file, c.Name(), kUnfused.impls);
    const auto hand = Fastest(file, c.Name(), kHand.impls);
    if (!fused || !unfused) continue;
    table.rows.push_back(
        {LayerName(c), StrCat(c.count), Fixed(unfused->bound, 0), Fixed(fused->bound, 0),
         Fixed(unfused->cycles, 0), hand ? Fixed(hand->cycles, 0) : "", Fixed(fused->cycles, 0),
         Fixed(unfused->cycles / fused->cycles, 2), Fixed(unfused->bound / fused->bound, 2),
         Fixed(fused->bound / fused->cycles, 3), Megabytes(unfused->gmem_bytes),
         Megabytes(fused->gmem_bytes)});
  }
  RETURN_IF_ERROR(file.Status());
  return table;
}

// Sums over the network's layers (pairs left out): of the compiled programs, and of each side that has all layers.
absl::StatusOr<Table> Sums(ResultFolder& results, const std::string& suite_name,
                           const std::string& compiled, const std::vector<Side>& sides) {
  ASSIGN_OR_RETURN(Machines machines, results.Machines(suite_name));
  ASSIGN_OR_RETURN(const Suite* suite, FindSuite(suite_name));
  Table table = {{"machine", "programs", "cycles", StrCat("of ", compiled), "bound", "MB"}, {}};
  for (auto& [difference, file] : machines) {
    std::vector<Side> all = sides;
    all.insert(all.begin(), {compiled, {"compiled"}});
    double base = 0;
    for (const Side& side : all) {
      Figures sum;
      bool complete = true;
      for (const SuiteCase& c : suite->cases) {
        if (c.op_class == "pairs") continue;
        const auto figures = Fastest(file, c.Name(), side.impls);
        complete = complete && figures.has_value();
        if (figures) sum.Add(*figures, c.count);
      }
      if (!complete) continue;
      if (base == 0) base = sum.cycles;
      table.rows.push_back({MachineName(difference), side.name, Fixed(sum.cycles, 0),
                            Fixed(sum.cycles / base, 3), Fixed(sum.bound, 0),
                            Fixed(sum.gmem_bytes / 1e6, 1)});
    }
    RETURN_IF_ERROR(file.Status());
  }
  return table;
}

absl::StatusOr<Table> ResNetSums(ResultFolder& results) {
  return Sums(results, "resnet50", "fused", {kUnfused, kHand, {"one by one", {"one_by_one"}}});
}

absl::StatusOr<Table> TrainingSums(ResultFolder& results) {
  return Sums(results, "resnet50_train", "compiled",
              {{"apart", {"apart"}}, {"inference", {"inference"}}});
}

absl::StatusOr<Table> TrainingLayers(ResultFolder& results) {
  ASSIGN_OR_RETURN(ResultFile file, results.Read("resnet50_train.json"));
  ASSIGN_OR_RETURN(const Suite* suite, FindSuite("resnet50_train"));
  Table table = {{"layer", "times", "apart", "compiled", "speed-up", "inference", "MB apart",
                  "MB compiled", "MB inference"},
                 {}};
  for (const SuiteCase& c : suite->cases) {
    const auto compiled = Fastest(file, c.Name(), {"compiled"});
    const auto apart = Fastest(file, c.Name(), {"apart"});
    const auto inference = Fastest(file, c.Name(), {"inference"});
    if (!compiled || !apart || !inference) continue;
    table.rows.push_back({LayerName(c), StrCat(c.count), Fixed(apart->cycles, 0),
                          Fixed(compiled->cycles, 0), Fixed(apart->cycles / compiled->cycles, 2),
                          Fixed(inference->cycles, 0), Megabytes(apart->gmem_bytes),
                          Megabytes(compiled->gmem_bytes), Megabytes(inference->gmem_bytes)});
  }
  RETURN_IF_ERROR(file.Status());
  return table;
}

absl::StatusOr<Table> LadderSteps(ResultFolder& results) {
  ASSIGN_OR_RETURN(ResultFile file, results.Read("ladder.json"));
  Table table = {{"step", "plan", "published ms", "simulated ms", "ratio"}, {}};
  for (const ordered_json& row : file.Rows()) {
    table.rows.push_back({file.Text(row, {"step"}), file.Text(row, {"plan"}),
                          Fixed(file.Number(row, {"published_ms"}), 2),
                          Fixed(file.Number(row, {"simulated_ms"}), 2),
                          Fixed(file.Number(row, {"ratio"}), 3)});
  }
  RETURN_IF_ERROR(file.Status());
  return table;
}

// Simulated times of all steps: of the machine as it is, of others, and of one with a parameter halved or doubled,
// where a step's time changes by a hundredth or more.
absl::StatusOr<Table> LadderChanges(ResultFolder& results) {
  ASSIGN_OR_RETURN(Machines machines, results.Machines("ladder"));
  ResultFile& base = machines[0].second;
  Table table = {{"change, ms of the steps"}, {}};
  std::vector<double> base_ms;
  for (const ordered_json& row : base.Rows()) {
    table.header.push_back(base.Text(row, {"step"}));
    base_ms.push_back(base.Number(row, {"simulated_ms"}));
  }
  for (auto& [difference, file] : machines) {
    std::vector<std::string> cells = {difference.empty() ? "none" : difference};
    for (const ordered_json& row : file.Rows()) {
      cells.push_back(Fixed(file.Number(row, {"simulated_ms"}), 2));
    }
    table.rows.push_back(std::move(cells));
    RETURN_IF_ERROR(file.Status());
  }
  std::vector<std::string> changes;
  std::map<std::string, std::map<std::string, double>> by_change;
  for (const ordered_json& row : base.json().value("sensitivity", ordered_json::array())) {
    if (!row.contains("simulated_ms")) continue;  // it did not run
    const std::string change = base.Text(row, {"change"});
    if (!by_change.contains(change)) changes.push_back(change);
    by_change[change][base.Text(row, {"step"})] = base.Number(row, {"simulated_ms"});
  }
  // With as many columns as the changes that follow.
  if (const auto& unchanged = by_change[""]; !unchanged.empty()) {
    for (size_t i = 0; i < base_ms.size(); ++i) {
      const auto ms = unchanged.find(table.header[i + 1]);
      if (ms != unchanged.end()) base_ms[i] = ms->second;
    }
  }
  for (const std::string& change : changes) {
    std::vector<std::string> cells = {change.empty() ? "none, of fewer columns" : change};
    bool matters = change.empty();
    for (size_t i = 0; i < base_ms.size(); ++i) {
      const auto ms = by_change[change].find(table.header[i + 1]);
      cells.push_back(ms == by_change[change].end() ? "" : Fixed(ms->second, 2));
      matters = matters || (ms != by_change[change].end() &&
                            std::abs(ms->second - base_ms[i]) >= 0.01 * base_ms[i]);
    }
    if (matters) table.rows.push_back(std::move(cells));
  }
  RETURN_IF_ERROR(base.Status());
  return table;
}

constexpr ResultTable kTables[] = {
    {"tensorize48/classes", "./nao bench tensorize48 --json=benchmarks/results/tensorize48.json",
     TensorizeClasses},
    {"tensorize48/without",
     "./nao bench tensorize48 --without=double_buffering --without=smem --without=tuning "
     "--json=benchmarks/results/tensorize48-without.json",
     TensorizeWithout},
    {"tensorize48/lines", "./nao bench tensorize48 --json=benchmarks/results/tensorize48.json",
     TensorizeLines},
    {"resnet50/layers", "./nao bench resnet50 --json=benchmarks/results/resnet50.json",
     ResNetLayers},
    {"resnet50/sums", "./nao bench resnet50 --json=benchmarks/results/resnet50.json", ResNetSums},
    {"resnet50_train/layers",
     "./nao bench resnet50_train --json=benchmarks/results/resnet50_train.json", TrainingLayers},
    {"resnet50_train/sums",
     "./nao bench resnet50_train --json=benchmarks/results/resnet50_train.json", TrainingSums},
    {"ladder/steps", "./nao bench ladder --sensitivity --json=benchmarks/results/ladder.json",
     LadderSteps},
    {"ladder/changes", "./nao bench ladder --sensitivity --json=benchmarks/results/ladder.json",
     LadderChanges},
};

}  // namespace

absl::Span<const ResultTable> CardTables() { return kTables; }

}  // namespace polynao::benchmarks
