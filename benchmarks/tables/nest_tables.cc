// Tables of programs that nobody scheduled for the card: the 511 cases of the TOPI table, and the suite `nests`.
#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/tables/tables.h"

namespace polynao::benchmarks {
namespace {

using nlohmann::ordered_json;

constexpr char kTopiFile[] = "topi511-mlu370.json";

struct Counts {
  int cases = 0, agree = 0, timed = 0, clean = 0;
  std::vector<double> efficiencies;

  void Add(const ordered_json& row, ResultFile& file) {
    ++cases;
    agree += file.Text(row, {"values"}) == "agree";
    if (row.contains("failure")) return;
    ++timed;
    clean += !row.contains("scalar_stores");
    efficiencies.push_back(file.Number(row, {"bound"}) /
                           std::max(1.0, file.Number(row, {"cycles"})));
  }
  std::vector<std::string> Cells(const std::string& name) {
    std::sort(efficiencies.begin(), efficiencies.end());
    return {
        name,          StrCat(cases),
        StrCat(agree), StrCat(timed),
        StrCat(clean), efficiencies.empty() ? "" : Fixed(efficiencies[efficiencies.size() / 2], 3)};
  }
};

absl::StatusOr<Table> TopiOperators(ResultFolder& results) {
  ASSIGN_OR_RETURN(ResultFile file, results.Read(kTopiFile));
  Table table = {
      {"operator", "cases", "right values", "cycles", "without scalar stores", "median efficiency"},
      {}};
  std::vector<std::pair<std::string, Counts>> operators;
  Counts all;
  for (const ordered_json& row : file.Rows()) {
    const std::string name = file.Text(row, {"case"});
    const std::string op = name.substr(0, name.find('/'));
    if (operators.empty() || operators.back().first != op) operators.emplace_back(op, Counts());
    operators.back().second.Add(row, file);
    all.Add(row, file);
  }
  for (auto& [name, counts] : operators) table.rows.push_back(counts.Cells(name));
  table.rows.push_back(all.Cells("all"));
  RETURN_IF_ERROR(file.Status());
  return table;
}

// Why cases have no cycles or other values: the reason without its numbers, and how many cases have it.
absl::StatusOr<Table> TopiRefused(ResultFolder& results) {
  ASSIGN_OR_RETURN(ResultFile file, results.Read(kTopiFile));
  Table table = {{"operator", "cases", "reason"}, {}};
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const ordered_json& row : file.Rows()) {
    const std::string values = file.Text(row, {"values"});
    std::string reason = row.contains("failure") ? file.Text(row, {"failure"}) : std::string();
    if (reason.empty() && values != "agree") reason = StrCat("values: ", values);
    if (reason.empty()) continue;
    constexpr std::string_view kMany = "not simulated: the scalar unit stores";
    if (reason.starts_with(kMany)) reason = StrCat(kMany, " more than three million elements");
    const std::string name = file.Text(row, {"case"});
    ++counts[{name.substr(0, name.find('/')), reason}];
  }
  for (const auto& [key, count] : counts) {
    table.rows.push_back({key.first, StrCat(count), key.second});
  }
  RETURN_IF_ERROR(file.Status());
  return table;
}

// Cycles and efficiency of each program on both machines.
absl::StatusOr<Table> NestCycles(ResultFolder& results) {
  ASSIGN_OR_RETURN(ResultFile first, results.Read("nests-mlu270.json"));
  ASSIGN_OR_RETURN(ResultFile second, results.Read("nests-mlu370.json"));
  Table table = {{"program", "mlu270: cycles", "efficiency", "mlu370: cycles", "efficiency"}, {}};
  for (const ordered_json& row : first.Rows()) {
    const std::string name = first.Text(row, {"case"});
    std::vector<std::string> cells = {name};
    for (ResultFile* file : {&first, &second}) {
      const ordered_json* of = ResultFile::Find(file->Rows(), {{"case", name}});
      if (of == nullptr || of->contains("failure")) {
        cells.insert(cells.end(), {"none", ""});
        continue;
      }
      const double cycles = file->Number(*of, {"cycles"});
      cells.push_back(
          StrCat(Fixed(cycles, 0), of->contains("scalar_stores") ? ", scalar stores" : ""));
      cells.push_back(Fixed(file->Number(*of, {"bound"}) / std::max(1.0, cycles), 3));
    }
    table.rows.push_back(std::move(cells));
  }
  RETURN_IF_ERROR(first.Status());
  RETURN_IF_ERROR(second.Status());
  return table;
}

constexpr char kNestCommand[] =
    "./nao cycles nests --untuned --config=mlu270 --json=benchmarks/results/nests-mlu270.json; "
    "./nao cycles nests --untuned --config=mlu370 --json=benchmarks/results/nests-mlu370.json";
constexpr char kTopiCommand[] =
    "./nao cycles topi511 --values --config=mlu370 "
    "--json=benchmarks/results/topi511-mlu370.json";

constexpr ResultTable kTables[] = {{"topi511/operators", kTopiCommand, TopiOperators},
                                   {"topi511/refused", kTopiCommand, TopiRefused},
                                   {"nests/cycles", kNestCommand, NestCycles}};

}  // namespace

absl::Span<const ResultTable> NestTables() { return kTables; }

}  // namespace polynao::benchmarks
