#include "sweep/table.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"
#include "nlohmann/json.hpp"

namespace polynao::sweep {
namespace {

using Json = nlohmann::json;  // of sorted keys

// A field of RFC 4180: quoted if it has a comma, a quote or an end of line.
std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// Whole numbers as such, so that 1e6 cycles are not "1000000.0".
Json Number(double value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (std::floor(value) == value && std::abs(value) < kExact) return static_cast<int64_t>(value);
  return value;
}

Json RowJson(const Row& row) {
  Json json;
  json["point"] = row.point;
  json["program"] = row.program;
  if (!row.error.empty()) {
    json["error"] = row.error;
    return json;
  }
  for (const auto& [name, value] : row.metrics) json["metrics"][name] = Number(value);
  return json;
}

// Reads members of objects; the first error stays.
class Members {
 public:
  Members(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  absl::Status Text(const char* name, std::string& value) const {
    const auto member = json_.find(name);
    if (member == json_.end() || !member->is_string()) return Expected(name, "a text");
    value = member->get<std::string>();
    return absl::OkStatus();
  }
  absl::Status Texts(const char* name, std::vector<std::string>& values) const {
    const auto member = json_.find(name);
    if (member == json_.end() || !member->is_array()) return Expected(name, "a list of texts");
    for (const Json& item : *member) {
      if (!item.is_string()) return Expected(name, "a list of texts");
      values.push_back(item.get<std::string>());
    }
    return absl::OkStatus();
  }
  absl::StatusOr<const Json*> List(const char* name) const {
    const auto member = json_.find(name);
    if (member == json_.end() || !member->is_array()) return Expected(name, "a list");
    return &*member;
  }
  absl::Status Expected(const char* name, const char* what) const {
    const auto member = json_.find(name);
    const std::string found = member == json_.end() ? "none" : member->dump();
    return InvalidInput(place_, ": '", name, "': expected ", what, ", found ", found.substr(0, 60),
                        found.size() > 60 ? ".." : "");
  }

 private:
  const Json& json_;
  const std::string place_;
};

absl::StatusOr<Row> ParseRow(const Json& json, const std::string& place, const Table& table,
                             size_t points) {
  if (!json.is_object()) return InvalidInput(place, ": expected an object, found ", json.dump());
  const Members members(json, place);
  Row row;
  const auto point = json.find("point");
  if (point == json.end() || !point->is_number_integer() ||
      (point->is_number_unsigned() ? point->get<uint64_t>() >= points : true)) {
    return members.Expected("point", StrCat("a number below ", points).c_str());
  }
  row.point = point->get<int64_t>();
  RETURN_IF_ERROR(members.Text("program", row.program));
  if (std::find(table.programs.begin(), table.programs.end(), row.program) ==
      table.programs.end()) {
    return members.Expected("program", "one of 'programs'");
  }
  if (json.contains("error")) {
    RETURN_IF_ERROR(members.Text("error", row.error));
    if (row.error.empty()) return members.Expected("error", "a reason");
    if (json.contains("metrics")) return members.Expected("metrics", "none beside an error");
    return row;
  }
  const auto metrics = json.find("metrics");
  if (metrics == json.end() || !metrics->is_object()) {
    return members.Expected("metrics", "an object of numbers");
  }
  for (const auto& [name, value] : metrics->items()) {
    if (FindMetric(name) == nullptr || !value.is_number()) {
      return InvalidInput(place, ": 'metrics': expected numbers that a sweep knows, found ", name,
                          " = ", value.dump());
    }
    row.metrics[name] = value.get<double>();
  }
  return row;
}

auto HeadOf(const Table& table) {
  return std::tie(table.config, table.base, table.energy, table.axes, table.programs);
}

}  // namespace

const std::vector<Metric>& Metrics() {
  static const auto* metrics = new std::vector<Metric>{
      {"cycles", "cycles", "from the first instruction to the last byte written"},
      {"time_ns", "ns", "cycles at the machine's clock"},
      {"launched_ns", "ns", "the same after a launch of card.launch cycles"},
      {"bound_cycles", "cycles", "the least that bandwidth and units allow"},
      {"dram_bound_cycles", "cycles", "the least that DRAM allows"},
      {"instructions", "", "executed on all cores"},
      {"gmem_bytes", "B", "that GMEM's channels moved"},
      {"energy_pj", "pJ", "of chip and DRAM"},
      {"area_mm2", "mm2", "of the chip", true},
      {"average_power_mw", "mW", "energy over time"},
      {"energy_delay_pj_s", "pJ s", "energy times time"},
  };
  return *metrics;
}

const Metric* FindMetric(std::string_view name) {
  for (const Metric& metric : Metrics()) {
    if (name == metric.name) return &metric;
  }
  return nullptr;
}

std::string TableJson(const Table& table) {
  Json head;
  head["config"] = table.config;
  head["set"] = table.base;
  head["energy"] = table.energy;
  head["programs"] = table.programs;
  head["axes"] = Json::array();
  for (const Axis& axis : table.axes) {
    head["axes"].push_back({{"name", axis.name}, {"values", axis.values}});
  }
  // Rows one a line, so that files can be compared by eye.
  std::string text = head.dump();
  text.pop_back();
  StrAppend(&text, ",\"rows\":[");
  for (size_t i = 0; i < table.rows.size(); ++i) {
    StrAppend(&text, i == 0 ? "\n" : ",\n", RowJson(table.rows[i]).dump());
  }
  return StrCat(text, "\n]}\n");
}

absl::StatusOr<Table> ParseTable(std::string_view text, std::string_view place) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return InvalidInput(place, ": expected the JSON object of a sweep");
  const Members members(json, std::string(place));
  Table table;
  RETURN_IF_ERROR(members.Text("config", table.config));
  RETURN_IF_ERROR(members.Texts("set", table.base));
  RETURN_IF_ERROR(members.Text("energy", table.energy));
  RETURN_IF_ERROR(members.Texts("programs", table.programs));
  ASSIGN_OR_RETURN(const Json* axes, members.List("axes"));
  constexpr size_t kMaxPoints = size_t{1} << 24;
  size_t points = 1;
  for (const Json& item : *axes) {
    if (!item.is_object()) return members.Expected("axes", "a list of objects");
    const Members of_axis(item, StrCat(place, ": 'axes'"));
    Axis axis;
    RETURN_IF_ERROR(of_axis.Text("name", axis.name));
    RETURN_IF_ERROR(of_axis.Texts("values", axis.values));
    if (axis.values.empty()) return of_axis.Expected("values", "at least one value");
    if (axis.values.size() > kMaxPoints / points) {
      return InvalidInput(place, ": 'axes': expected at most ", kMaxPoints, " points");
    }
    points *= axis.values.size();
    table.axes.push_back(std::move(axis));
  }
  ASSIGN_OR_RETURN(const Json* rows, members.List("rows"));
  for (size_t i = 0; i < rows->size(); ++i) {
    ASSIGN_OR_RETURN(Row row, ParseRow((*rows)[i], StrCat(place, ": row ", i), table, points));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string TableCsv(const Table& table) {
  std::string text;
  for (const Axis& axis : table.axes) StrAppend(&text, CsvField(axis.name), ",");
  StrAppend(&text, "program");
  std::vector<const Metric*> shown;
  for (const Metric& metric : Metrics()) {
    const bool is_there = std::any_of(table.rows.begin(), table.rows.end(), [&](const Row& row) {
      return row.metrics.contains(metric.name);
    });
    if (!is_there) continue;
    shown.push_back(&metric);
    StrAppend(&text, ",", metric.name);
  }
  StrAppend(&text, ",error\r\n");
  const std::vector<Point> points = table.points();
  for (const Row& row : table.rows) {
    for (const std::string& value : points[static_cast<size_t>(row.point)]) {
      StrAppend(&text, CsvField(value), ",");
    }
    StrAppend(&text, CsvField(row.program));
    for (const Metric* metric : shown) {
      const auto value = row.metrics.find(metric->name);
      StrAppend(&text, ",", value == row.metrics.end() ? "" : Number(value->second).dump());
    }
    StrAppend(&text, ",", CsvField(row.error), "\r\n");
  }
  return text;
}

absl::StatusOr<Table> MergeTables(const std::vector<Table>& parts) {
  if (parts.empty()) return InvalidInput("expected at least one table of a sweep");
  Table merged = parts[0];
  merged.rows.clear();
  // Programs are those of all parts, in the order of the parts.
  merged.programs.clear();
  for (const Table& part : parts) {
    Table head = part;
    head.programs = parts[0].programs;
    if (HeadOf(head) != HeadOf(parts[0])) {
      return InvalidInput(
          "the tables are of different sweeps: expected one config, set, energy and axes");
    }
    for (const std::string& program : part.programs) {
      if (std::find(merged.programs.begin(), merged.programs.end(), program) ==
          merged.programs.end()) {
        merged.programs.push_back(program);
      }
    }
    merged.rows.insert(merged.rows.end(), part.rows.begin(), part.rows.end());
  }
  const auto place_of = [&](const Row& row) {
    const auto program = std::find(merged.programs.begin(), merged.programs.end(), row.program);
    return row.point * static_cast<int64_t>(merged.programs.size()) +
           (program - merged.programs.begin());
  };
  std::sort(merged.rows.begin(), merged.rows.end(),
            [&](const Row& a, const Row& b) { return place_of(a) < place_of(b); });
  const std::vector<Point> points = merged.points();
  int64_t next = 0;
  for (const Row& row : merged.rows) {
    if (place_of(row) < next) {
      return InvalidInput("point ", row.point, " of ", row.program, " comes twice");
    }
    if (place_of(row) > next) break;
    ++next;
  }
  const int64_t wanted = static_cast<int64_t>(points.size() * merged.programs.size());
  if (next < wanted) {
    return InvalidInput("point ", next / static_cast<int64_t>(merged.programs.size()), " of ",
                        merged.programs[static_cast<size_t>(next) % merged.programs.size()],
                        " is missing");
  }
  return merged;
}

absl::Status KeepMetrics(Table& table, std::string_view names) {
  if (names.empty()) return absl::OkStatus();
  std::set<std::string, std::less<>> kept;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(names), ',')) {
    const std::string name(part);
    if (FindMetric(name) == nullptr) {
      std::string known;
      for (const Metric& metric : Metrics())
        StrAppend(&known, known.empty() ? "" : ", ", metric.name);
      return InvalidInput("metric '", name, "': expected one of ", known);
    }
    kept.insert(name);
  }
  for (Row& row : table.rows) {
    std::erase_if(row.metrics, [&](const auto& item) { return !kept.contains(item.first); });
  }
  return absl::OkStatus();
}

absl::Status CheckFeasible(const Table& table) {
  for (const Row& row : table.rows) {
    if (row.error.empty()) return absl::OkStatus();
  }
  return InvalidInput("no point of the sweep is feasible",
                      table.rows.empty() ? "" : StrCat("; point 0: ", table.rows[0].error));
}

}  // namespace polynao::sweep
