#include "benchmarks/tables/tables.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/text.h"

namespace polynao::benchmarks {
namespace {

constexpr absl::string_view kBegin = "<!-- table ";
constexpr absl::string_view kClose = " -->";
constexpr absl::string_view kEnd = "<!-- end of table -->";

absl::StatusOr<std::string> Fill(absl::string_view name, const std::string& results,
                                 std::string_view link) {
  const std::vector<ResultTable> tables = ResultTables();
  const auto table = std::find_if(tables.begin(), tables.end(),
                                  [&](const ResultTable& t) { return ToAbsl(t.name) == name; });
  if (table == tables.end()) {
    return InvalidInput("no table is named '", std::string(name), "'; there are: ",
                        absl::StrJoin(tables, ", ", [](std::string* out, const ResultTable& t) {
                          StrAppend(out, t.name);
                        }));
  }
  ResultFolder folder(results);
  const absl::StatusOr<Table> made = table->make(folder);
  if (absl::IsNotFound(made.status())) {
    return StrCat("No result is stored yet. This makes it:\n\n    ", table->command, "\n");
  }
  RETURN_IF_ERROR(made.status());
  std::vector<std::string> sources;
  for (const auto& [file, origin] : folder.TakeRead()) {
    sources.push_back(
        StrCat("[", file, "](", link, file, ")", origin.empty() ? "" : StrCat("\n(", origin, ")")));
  }
  return StrCat(made->Markdown(), "\nFrom ", absl::StrJoin(sources, ",\n"), ".\n");
}

}  // namespace

std::vector<ResultTable> ResultTables() {
  std::vector<ResultTable> tables;
  for (const auto list :
       {CardTables(), CpuTables(), DenseTables(), LayerTables(), LicmTables(), NestTables()}) {
    tables.insert(tables.end(), list.begin(), list.end());
  }
  return tables;
}

absl::StatusOr<std::string> FillTables(std::string_view page, const std::string& results,
                                       std::string_view link) {
  std::string text;
  int number = 0, begin = 0;  // lines; 0: outside of tables
  for (absl::string_view line : absl::StrSplit(ToAbsl(page), '\n')) {
    ++number;
    if (line == kEnd) {
      if (begin == 0) return InvalidInput(number, ": expected a table that ends here, found none");
      begin = 0;
    }
    if (begin != 0) continue;
    StrAppend(&text, number == 1 ? "" : "\n", ToStd(line));
    if (absl::ConsumePrefix(&line, kBegin) && absl::ConsumeSuffix(&line, kClose)) {
      begin = number;
      const absl::StatusOr<std::string> table = Fill(line, results, link);
      if (!table.ok()) return InvalidInput(number, ": ", std::string(table.status().message()));
      StrAppend(&text, "\n\n", *table);
    }
  }
  if (begin != 0) return InvalidInput(begin, ": expected '", std::string(kEnd), "', found none");
  return text;
}

}  // namespace polynao::benchmarks
