// Tables of layers that nobody tuned: the suites layers95 and layers95_f16, and how well the cost model ranks.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/tables/tables.h"

namespace polynao::benchmarks {
namespace {

using nlohmann::ordered_json;

// Efficiencies of the layers of a network, those of groups apart.
struct Class {
  std::string name;
  struct OnMachine {
    std::vector<double> efficiencies;
    std::vector<double> in_reach;  // of efficiency
    std::string least;             // the layer
  };
  OnMachine on[2];
};

std::string ClassOf(const std::string& layer) {
  const std::string network = layer.substr(0, layer.find('/'));
  return absl::StrContains(layer, "groups=") && network != "grouped"
             ? StrCat(network, ", depthwise")
             : network;
}

void Add(Class::OnMachine& on, double efficiency, const std::string& layer) {
  if (on.efficiencies.empty() ||
      efficiency < *std::min_element(on.efficiencies.begin(), on.efficiencies.end())) {
    on.least = layer;
  }
  on.efficiencies.push_back(efficiency);
}

std::string Mean(const std::vector<double>& values) {
  double logarithms = 0;
  for (double value : values) logarithms += std::log(value);
  return values.empty() ? "" : Fixed(std::exp(logarithms / static_cast<double>(values.size())), 3);
}

// "0.14 conv2d/7x7x960,960x3x3x1/groups=960".
std::string Least(const Class::OnMachine& on) {
  if (on.efficiencies.empty()) return "";
  const double least = *std::min_element(on.efficiencies.begin(), on.efficiencies.end());
  return StrCat(Fixed(least, 2), " ", on.least.substr(on.least.find('/') + 1));
}

absl::StatusOr<Table> LayerNetworks(ResultFolder& results) {
  ASSIGN_OR_RETURN(ResultFile first, results.Read("cycles/mlu270.json"));
  ASSIGN_OR_RETURN(ResultFile second, results.Read("cycles/mlu370.json"));
  std::vector<Class> classes = {{.name = "all", .on = {}}};
  int machine = 0;
  for (ResultFile* file : {&first, &second}) {
    for (const ordered_json& row : file->Rows()) {
      if (!absl::StartsWith(file->Text(row, {"suite"}), "layers95")) continue;
      const std::string layer = file->Text(row, {"case"});
      const double efficiency =
          file->Number(row, {"bound"}) / std::max(1.0, file->Number(row, {"cycles"}));
      const std::string name = ClassOf(layer);
      auto it = std::find_if(classes.begin(), classes.end(),
                             [&](const Class& c) { return c.name == name; });
      if (it == classes.end()) it = classes.insert(classes.end() - 1, {.name = name, .on = {}});
      const double in_reach =
          file->Number(row, {"bound"}) / std::max(1.0, file->Number(row, {"reach"}));
      for (Class::OnMachine* on : {&it->on[machine], &classes.back().on[machine]}) {
        Add(*on, efficiency, layer);
        on->in_reach.push_back(in_reach);
      }
    }
    ++machine;
  }
  Table table = {{"network", "layers", "i8 on mlu270", "in reach", "least", "f16 on mlu370",
                  "in reach", "least"},
                 {}};
  for (const Class& c : classes) {
    std::vector<std::string> cells = {c.name, StrCat(c.on[0].efficiencies.size())};
    for (const Class::OnMachine& on : c.on) {
      cells.push_back(Mean(on.efficiencies));
      cells.push_back(Mean(on.in_reach));
      cells.push_back(Least(on));
    }
    table.rows.push_back(std::move(cells));
  }
  RETURN_IF_ERROR(first.Status());
  RETURN_IF_ERROR(second.Status());
  return table;
}

// The last line of each file has the means.
absl::StatusOr<Table> LayerModel(ResultFolder& results) {
  Table table = {{"schedules", "layers", "simulated", "mean rank correlation", "mean regret",
                  "largest regret"},
                 {}};
  for (const auto& [name, what] :
       {std::pair("cycles/model-mlu270.json", "all, i8 on mlu270"),
        std::pair("cycles/model-mlu370.json", "weights stream, f16 on mlu370")}) {
    ASSIGN_OR_RETURN(ResultFile file, results.Read(name));
    if (file.Rows().empty()) return InvalidInput(name, ": expected rows, found none");
    const ordered_json& means = file.Rows().back();
    table.rows.push_back(
        {what, Fixed(file.Number(means, {"cases"}), 0), Fixed(file.Number(means, {"simulated"}), 0),
         Fixed(file.Number(means, {"mean_rank"}), 3), Fixed(file.Number(means, {"mean_regret"}), 3),
         Fixed(file.Number(means, {"largest_regret"}), 3)});
    RETURN_IF_ERROR(file.Status());
  }
  return table;
}

// Machines whose sizes and rates were drawn from those of sweeps, to see that nothing fits the named ones alone.
struct Drawn {
  const char *file, *machine, *changes;
};
constexpr Drawn kDrawn[] = {
    {"cycles/drawn-1.json", "i8, mlu270",
     "card.clusters=3 cluster.cores=8 core.nmem_kib=1024 cluster.smem_kib=1024 tensor.macs_i8=2048 "
     "vector.bytes=256"},
    {"cycles/drawn-2.json", "f16, mlu370",
     "card.clusters=6 cluster.cores=8 core.nmem_kib=1024 core.wmem_kib=512 vector.bytes=64"},
    {"cycles/drawn-3.json", "i8, mlu270",
     "card.clusters=6 cluster.cores=2 core.nmem_kib=256 core.wmem_kib=512 cluster.smem_kib=1024 "
     "tensor.macs_i8=8192 "
     "vector.bytes=64"}};

absl::StatusOr<Table> LayersOnDrawnMachines(ResultFolder& results) {
  Table table = {{"machine", "with", "layers", "efficiency", "least"}, {}};
  for (const Drawn& drawn : kDrawn) {
    ASSIGN_OR_RETURN(ResultFile file, results.Read(drawn.file));
    Class::OnMachine on;
    for (const ordered_json& row : file.Rows()) {
      Add(on, file.Number(row, {"bound"}) / std::max(1.0, file.Number(row, {"cycles"})),
          file.Text(row, {"case"}));
    }
    table.rows.push_back({drawn.machine, drawn.changes, StrCat(on.efficiencies.size()),
                          Mean(on.efficiencies), Least(on)});
    RETURN_IF_ERROR(file.Status());
  }
  return table;
}

constexpr char kDrawnCommand[] =
    "./nao cycles layers95 --config=mlu270 --set .. --untuned "
    "--json=benchmarks/results/cycles/drawn-1.json, with the changes of each line of the table";
constexpr char kCyclesCommand[] =
    "./nao cycles tensorize48 resnet50 resnet50_train layers95 --untuned "
    "--json=benchmarks/results/cycles/mlu270.json; ./nao cycles layers95_f16 --config=mlu370 "
    "--untuned --json=benchmarks/results/cycles/mlu370.json";
constexpr char kModelCommand[] =
    "./nao cycles layers95 --untuned --model=30 "
    "--json=benchmarks/results/cycles/model-mlu270.json; ./nao cycles layers95_f16 "
    "--config=mlu370 --schedule stream=1 --untuned --model=30 "
    "--json=benchmarks/results/cycles/model-mlu370.json";

constexpr ResultTable kTables[] = {{"layers95/networks", kCyclesCommand, LayerNetworks},
                                   {"layers95/drawn", kDrawnCommand, LayersOnDrawnMachines},
                                   {"layers95/model", kModelCommand, LayerModel}};

}  // namespace

absl::Span<const ResultTable> LayerTables() { return kTables; }

}  // namespace polynao::benchmarks
