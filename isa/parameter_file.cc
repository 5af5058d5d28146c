#include "isa/parameter_file.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#define TOML_EXCEPTIONS 0
// toml++ 3.3 asserts that the key of a table header begins with a letter before it looks: "[&&x]" would abort.
// Without assertions its next branch returns the error.
#define TOML_ASSERT(condition) static_cast<void>(0)
#include "toml++/toml.h"

namespace polynao::isa {
namespace {

// What stands where a value should: "nan", "1.5", "a table".
std::string FoundText(const toml::node* value) {
  if (value == nullptr) return "no value";
  if (value->is_table()) return "a table";
  if (value->is_array()) return "an array";
  std::ostringstream text;
  value->visit([&](const auto& node) { text << node; });
  return text.str();
}

absl::Status ReadParameter(std::string_view file, const std::string& name, const toml::node& node,
                           absl::Span<const ParameterRow> rows, ParameterFile& result) {
  const std::string place = absl::StrCat(std::string(file), ":", node.source().begin.line);
  const ParameterRow* row = FindParameter(rows, name);
  if (row == nullptr) return InvalidInput(place, ": there is no parameter ", name);
  const toml::table* table = node.as_table();
  const toml::node* value = table != nullptr ? table->get("value") : nullptr;
  const toml::node* source = table != nullptr ? table->get("source") : nullptr;
  const bool has_value =
      value != nullptr && (row->is_text ? value->is_string() : value->is_integer());
  if (!has_value || source == nullptr || table->size() != 2 || !source->is_string()) {
    return InvalidInput(place, ": ", name,
                        " must be { value = ", row->is_text ? "\"TEXT\"" : "INTEGER",
                        ", source = \"KIND: REFERENCE\" }, found ",
                        table == nullptr    ? FoundText(&node)
                        : !has_value        ? FoundText(value)
                        : source == nullptr ? "no source"
                                            : "more, or a source that is no text");
  }
  MachineParameter parameter{.name = name,
                             .unit = row->unit,
                             .meaning = row->meaning,
                             .text = "",
                             .source = source->as_string()->get()};
  if (row->is_text) {
    parameter.text = value->as_string()->get();
  } else {
    parameter.value = value->as_integer()->get();
    RETURN_IF_ERROR(CheckRange(*row, place, parameter.value));
  }
  bool tagged = false;
  for (std::string_view kind : {"sourced: ", "derived: ", "assumed: "}) {
    tagged |= parameter.source.size() > kind.size() && parameter.source.starts_with(kind);
  }
  if (!tagged) {
    return InvalidInput(place, ": the source of ", name,
                        " must be \"sourced: ...\", \"derived: ...\" or \"assumed: ...\", not \"",
                        parameter.source, "\"");
  }
  result.parameters.push_back(std::move(parameter));
  return absl::OkStatus();
}

}  // namespace

const ParameterRow* FindParameter(absl::Span<const ParameterRow> rows, std::string_view name) {
  for (const ParameterRow& row : rows) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

absl::Status CheckRange(const ParameterRow& row, std::string_view place, int64_t value) {
  if (value >= row.min && value <= row.max) return absl::OkStatus();
  return InvalidInput(std::string(place), ": ", row.name, " is ", value, "; allowed are ", row.min,
                      " to ", row.max, row.unit[0] ? absl::StrCat(" ", row.unit) : "", " (",
                      row.meaning, ")");
}

absl::StatusOr<ParameterFile> ReadParameterFile(std::string_view text, std::string_view file,
                                                absl::Span<const ParameterRow> rows) {
  toml::parse_result parsed = toml::parse(text, file);
  if (!parsed) {
    return InvalidInput(std::string(file), ":", parsed.error().source().begin.line, ": ",
                        std::string(parsed.error().description()));
  }
  const toml::table& root = parsed.table();
  ParameterFile result;
  struct Located {
    int64_t line;
    std::string name;
    const toml::node* node;
  };
  std::vector<Located> nodes;
  for (const auto& [key, node] : root) {
    const std::string group(key.str());
    if (group == "name" && node.is_string()) {
      result.name = node.as_string()->get();
      continue;
    }
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      return InvalidInput(std::string(file), ":", node.source().begin.line, ": ", group,
                          " is neither the name nor a group of parameters");
    }
    for (const auto& [inner, parameter] : *table) {
      nodes.push_back({static_cast<int64_t>(parameter.source().begin.line),
                       absl::StrCat(group, ".", std::string(inner.str())), &parameter});
    }
  }
  if (result.name.empty()) {
    return InvalidInput(std::string(file), ": expected a line: name = \"...\"");
  }
  std::sort(nodes.begin(), nodes.end(), [](const Located& a, const Located& b) {
    return std::tie(a.line, a.name) < std::tie(b.line, b.name);
  });
  for (const Located& located : nodes) {
    RETURN_IF_ERROR(ReadParameter(file, located.name, *located.node, rows, result));
  }
  for (const ParameterRow& row : rows) {
    if (row.is_optional) continue;
    const auto stated = std::find_if(result.parameters.begin(), result.parameters.end(),
                                     [&](const auto& p) { return p.name == row.name; });
    if (stated == result.parameters.end()) {
      return InvalidInput(std::string(file), ": ", row.name, " is missing (", row.meaning, ")");
    }
  }
  return result;
}

}  // namespace polynao::isa
