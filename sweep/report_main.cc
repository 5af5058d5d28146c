// sweep_report: puts the rows of a sweep together: .csv, .json and a page. nao_sweep runs it.
//
//   sweep_report --out-csv=s.csv --out-json=s.json --out-html=s.html rows1.json rows2.json
#include <algorithm>

#include "CLI/CLI.hpp"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status.h"
#include "sweep/arguments.h"
#include "sweep/page.h"
#include "sweep/table.h"

namespace polynao::sweep {
namespace {

absl::Status Main(const std::vector<std::string>& files, const std::string& metrics,
                  const std::string& csv, const std::string& json, const std::string& html) {
  std::vector<Table> parts;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
    ASSIGN_OR_RETURN(Table part, ParseTable(text, file));
    parts.push_back(std::move(part));
  }
  ASSIGN_OR_RETURN(Table table, MergeTables(parts));
  RETURN_IF_ERROR(KeepMetrics(table, metrics));
  RETURN_IF_ERROR(CheckFeasible(table));
  RETURN_IF_ERROR(WriteFile(csv, TableCsv(table)));
  RETURN_IF_ERROR(WriteFile(json, TableJson(table)));
  return WriteFile(html, SweepPage(table));
}

}  // namespace
}  // namespace polynao::sweep

int main(int argc, char** argv) {
  using namespace polynao;
  CLI::App app("Puts the rows of a sweep together.", "sweep_report");
  std::vector<std::string> files;
  std::string metrics, csv, json, html;
  app.add_option("ROWS", files, "files of sweep_points")->required();
  app.add_option("--metrics", metrics, "columns to keep, with commas between (default: all)");
  app.add_option("--out-csv", csv, "the table")->required();
  app.add_option("--out-json", json, "the same as JSON")->required();
  app.add_option("--out-html", html, "a page")->required();
  return sweep::RunTool(app, argc, argv,
                        [&] { return sweep::Main(files, metrics, csv, json, html); });
}
