#include "kernels/topi_cases/cases.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "kernels/operators.h"
#include "nlohmann/json.hpp"

namespace polynao::kernels {
namespace {

using Json = nlohmann::json;

// A member of an object; an error names it.
absl::StatusOr<const Json*> Member(const Json& object, const std::string& key,
                                   bool (Json::*is_type)() const noexcept, const char* type) {
  if (!object.contains(key) || !(object[key].*is_type)()) {
    return InvalidInput("'", key, "': expected ", type, ", found ",
                        object.contains(key) ? object[key].dump() : "none");
  }
  return &object[key];
}

absl::StatusOr<std::vector<int64_t>> Shape(const Json& shapes, const std::string& key) {
  ASSIGN_OR_RETURN(const Json* list, Member(shapes, key, &Json::is_array, "a list of numbers"));
  std::vector<int64_t> shape;
  for (const Json& extent : *list) {
    if (!extent.is_number_integer()) {
      return InvalidInput("shape '", key, "': expected whole numbers, found ", extent.dump());
    }
    shape.push_back(extent.get<int64_t>());
  }
  return shape;
}

// A value of params in the words of --attr: numbers and words as they are, truths as 1 and 0, lists
// and lists of lists with colons.
std::string AttributeText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& item : value) StrAppend(&text, text.empty() ? "" : ":", AttributeText(item));
  return text;
}

absl::StatusOr<TopiCase> ParseLine(std::string_view line) {
  const Json row = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!row.is_object())
    return InvalidInput("expected a JSON object, found '", line.substr(0, 40), "'");
  TopiCase result;
  ASSIGN_OR_RETURN(const Json* name, Member(row, "op", &Json::is_string, "an operator's name"));
  ASSIGN_OR_RETURN(const Json* id, Member(row, "id", &Json::is_number_integer, "a whole number"));
  ASSIGN_OR_RETURN(const Json* params, Member(row, "params", &Json::is_object, "an object"));
  ASSIGN_OR_RETURN(const Json* shapes, Member(row, "shapes", &Json::is_object, "an object"));
  result.op = name->get<std::string>();
  result.id = id->get<int>();
  const Operator* op = nullptr;
  for (const Operator& other : Operators()) {
    if (other.name == result.op) op = &other;
  }
  if (op == nullptr) return InvalidInput("no operator is named '", result.op, "'");

  OperatorCase c;
  c.op = result.op;
  const auto type = params->find("dtype");
  const std::optional<ir::Type> dtype = type != params->end() && type->is_string()
                                            ? ir::ParseType(type->get<std::string>())
                                            : std::nullopt;
  if (!dtype) return InvalidInput("'dtype': expected a type's name");
  c.dtype = *dtype;
  for (size_t i = 0; i < op->shapes.size(); ++i) {
    // "weight (OIHW)"; an operator of any shape has one input, data.
    const std::string input = op->shapes[i].substr(0, op->shapes[i].find(' '));
    ASSIGN_OR_RETURN(std::vector<int64_t> shape, Shape(*shapes, input == "any" ? "data" : input));
    if (i == 0) {
      c.shape = std::move(shape);
    } else {
      c.operands.push_back(std::move(shape));
    }
  }
  bool has_epilogue = false;
  for (const OperatorAttribute& attribute : op->attributes) {
    has_epilogue = has_epilogue || attribute.name == "epilogue";
    const auto value = params->find(attribute.name);
    if (value != params->end() && !value->is_null()) {
      c.attributes[attribute.name] = AttributeText(*value);
    }
  }
  if (const auto limit = params->find("a_max"); op->scalar && limit != params->end()) {
    if (!limit->is_number())
      return InvalidInput("'a_max': expected a number, found ", limit->dump());
    c.scalar = limit->get<double>();
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> out, Shape(*shapes, "out"));
  const auto add = [&]() -> absl::Status {
    RETURN_IF_ERROR(FindOperator(c).status());
    const std::vector<int64_t> shape = op->tensors(c).back().shape;
    if (shape != out) {
      return InvalidInput("shape 'out': expected ", ShapeText(shape), ", found ", ShapeText(out));
    }
    result.functions.push_back(c);
    return absl::OkStatus();
  };
  if (!has_epilogue) {
    RETURN_IF_ERROR(add());
    return result;
  }
  ASSIGN_OR_RETURN(const Json* tails,
                   Member(*params, "epilogues", &Json::is_array, "a list of words"));
  for (const Json& tail : *tails) {
    c.attributes["epilogue"] = AttributeText(tail);
    RETURN_IF_ERROR(add());
  }
  if (result.functions.empty()) return InvalidInput("'epilogues': expected a word or more");
  return result;
}

}  // namespace

absl::StatusOr<std::vector<TopiCase>> ParseTopiCases(std::string_view text, std::string_view name) {
  std::vector<TopiCase> cases;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    ++number;
    if (line.empty()) continue;
    absl::StatusOr<TopiCase> c = ParseLine(std::string_view(line.data(), line.size()));
    if (!c.ok()) return WithContext(StrCat(name, ":", number), c.status());
    cases.push_back(*std::move(c));
  }
  return cases;
}

absl::Span<const TopiCase> TopiCases() {
  static const auto* cases = [] {
    absl::StatusOr<std::vector<TopiCase>> parsed = ParseTopiCases(TopiText(), "topi.jsonl");
    POLYNAO_CHECK(parsed.ok()) << std::string(parsed.status().message());
    return new std::vector<TopiCase>(*std::move(parsed));
  }();
  return *cases;
}

absl::StatusOr<const TopiCase*> FindTopiCase(std::string_view op, int id) {
  int count = 0;
  std::string operators;
  for (const TopiCase& c : TopiCases()) {
    if (c.op == op && c.id == id) return &c;
    if (c.op == op) ++count;
    if (c.id == 1) StrAppend(&operators, operators.empty() ? "" : ", ", c.op);
  }
  if (count > 0) {
    return absl::NotFoundError(
        StrCat("operator ", op, " has no case ", id, ": expected one from 1 to ", count));
  }
  return absl::NotFoundError(
      StrCat("operator '", op, "' has no cases; these have some: ", operators));
}

}  // namespace polynao::kernels
