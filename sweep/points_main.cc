// sweep_points: simulates some points of a sweep and writes their rows. nao_sweep runs it, in an action for a few dozen
// points.
//
//   sweep_points --config=mlu270 --axis=core.nmem_kib=256,512 --out=rows.json --run=conv1:0:conv1_0.json --run=conv1:1:conv1_1.json
//
// --run names a program, an index in the sweep's points, and NAME.json, beside which NAME.bin stands. @FILE reads
// arguments, one a line.
#include <algorithm>
#include <iostream>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "sweep/arguments.h"
#include "sweep/candidate_file.h"
#include "sweep/measure.h"

namespace polynao::sweep {
namespace {

absl::Status Main(Setting setting, const std::vector<std::string>& tables,
                  const std::vector<std::string>& axis_texts, const std::vector<std::string>& runs,
                  const std::string& out) {
  RETURN_IF_ERROR(LoadTables(tables, setting));
  std::vector<Axis> axes;
  for (const std::string& text : axis_texts) {
    ASSIGN_OR_RETURN(Axis axis, ParseAxis(text));
    axes.push_back(std::move(axis));
  }
  ASSIGN_OR_RETURN(Table table, EmptyTable(setting, axes, {}));
  const std::vector<Point> points = table.points();
  for (const std::string& run : runs) {
    const std::vector<std::string> parts = absl::StrSplit(run, absl::MaxSplits(':', 2));
    int64_t index = 0;
    if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &index) || index < 0 ||
        index >= static_cast<int64_t>(points.size())) {
      return InvalidInput("--run: expected PROGRAM:INDEX:FILE.json with an index below ",
                          points.size(), ", found '", run, "'");
    }
    if (std::find(table.programs.begin(), table.programs.end(), parts[0]) == table.programs.end()) {
      table.programs.push_back(parts[0]);
    }
    ASSIGN_OR_RETURN(const Candidate candidate, ReadCandidate(parts[2]));
    Row row = Measure(setting, table, points[static_cast<size_t>(index)], candidate);
    row.point = index;
    row.program = parts[0];
    table.rows.push_back(std::move(row));
  }
  return WriteFile(out, TableJson(table));
}

}  // namespace
}  // namespace polynao::sweep

int main(int argc, char** argv) {
  using namespace polynao;
  CLI::App app("Simulates points of a sweep.", "sweep_points");
  sweep::Setting setting;
  std::vector<std::string> axes, runs, tables;
  std::string out;
  app.add_option("--config", setting.config, "the machine");
  app.add_option("--set", setting.base, "machine parameters of all points");
  app.add_option("--energy", setting.energy, "an energy table");
  app.add_option("--instructions", tables, "tables of instructions, the last axis")->delimiter(',');
  app.add_option("--axis", axes, "NAME=VALUE,VALUE,..")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--run", runs, "PROGRAM:INDEX:FILE.json")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--out", out, "the file to write")->required();
  return sweep::RunTool(app, argc, argv,
                        [&] { return sweep::Main(setting, tables, axes, runs, out); });
}
