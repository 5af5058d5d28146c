#include "cases/case_json.h"

#include <optional>
#include <tuple>
#include <type_traits>

#include "base/status.h"
#include "nlohmann/json.hpp"

namespace polynao::cases {
namespace {

using Json = nlohmann::ordered_json;
using kernels::OperatorCase;

// A reader of the members of an object.
class Members {
 public:
  Members(const Json& json, std::string_view place) : json_(json), place_(place) {}

  // The member as a T; `value` stays as it is where there is none and `required` is false.
  template <typename T>
  absl::Status Read(const char* name, const char* expected, bool required, T& value) const {
    const auto member = json_.find(name);
    if (member == json_.end() && !required) return absl::OkStatus();
    if (member != json_.end()) {
      // nlohmann reads numbers as other numbers and true as 1.
      if (IsA<T>(*member)) {
        value = member->template get<T>();
        return absl::OkStatus();
      }
    }
    return InvalidInput(place_, ": '", name, "': expected ", expected, ", found ",
                        member == json_.end() ? "none" : member->dump());
  }

 private:
  template <typename T>
  static bool IsA(const Json& json) {
    if constexpr (std::is_same_v<T, std::string>) {
      return json.is_string();
    } else if constexpr (std::is_same_v<T, bool>) {
      return json.is_boolean();
    } else if constexpr (std::is_same_v<T, double>) {
      return json.is_number();
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return json.is_number_integer() &&
             (!json.is_number_unsigned() || json.get<uint64_t>() <= INT64_MAX);
    } else if constexpr (requires { typename T::mapped_type; }) {
      if (!json.is_object()) return false;
      for (const auto& item : json) {
        if (!IsA<typename T::mapped_type>(item)) return false;
      }
      return true;
    } else {
      if (!json.is_array()) return false;
      for (const auto& item : json) {
        if (!IsA<typename T::value_type>(item)) return false;
      }
      return true;
    }
  }

  const Json& json_;
  std::string_view place_;
};

}  // namespace

Json CaseJson(const OperatorCase& c) {
  Json json;
  json["op"] = c.op;
  json["shape"] = c.shape;
  json["operand_shapes"] = c.operands;
  json["dtype"] = std::string(ir::TypeName(c.dtype));
  json["attributes"] = c.attributes;
  if (c.scalar) json["scalar"] = *c.scalar;
  if (!c.schedule.empty()) json["schedule"] = c.schedule;
  if (!c.use_tuned) json["untuned"] = true;
  return json;
}

absl::StatusOr<OperatorCase> ParseCaseJson(const Json& json, std::string_view place) {
  if (!json.is_object()) {
    return InvalidInput(place, ": expected an operator's case, found ", json.dump());
  }
  const Members members(json, place);
  OperatorCase c;
  std::string dtype;
  bool untuned = false;
  std::map<std::string, std::string> attributes;
  std::map<std::string, int64_t> schedule;
  RETURN_IF_ERROR(members.Read("op", "an operator's name", true, c.op));
  RETURN_IF_ERROR(members.Read("shape", "a list of extents", true, c.shape));
  RETURN_IF_ERROR(members.Read("operand_shapes", "a list of shapes", false, c.operands));
  RETURN_IF_ERROR(members.Read("dtype", "a type's name", true, dtype));
  RETURN_IF_ERROR(members.Read("attributes", "an object of texts", false, attributes));
  RETURN_IF_ERROR(members.Read("schedule", "an object of integers", false, schedule));
  RETURN_IF_ERROR(members.Read("untuned", "true or false", false, untuned));
  if (json.contains("scalar")) {
    double scalar = 0;
    RETURN_IF_ERROR(members.Read("scalar", "a number", true, scalar));
    c.scalar = scalar;
  }
  const std::optional<ir::Type> type = ir::ParseType(dtype);
  if (!type) return InvalidInput(place, ": 'dtype': expected a type's name, found \"", dtype, "\"");
  c.dtype = *type;
  c.attributes.insert(attributes.begin(), attributes.end());
  c.schedule.insert(schedule.begin(), schedule.end());
  c.use_tuned = !untuned;
  return c;
}

bool SameComputation(const OperatorCase& a, const OperatorCase& b) {
  return std::tie(a.op, a.shape, a.operands, a.dtype, a.scalar, a.attributes) ==
         std::tie(b.op, b.shape, b.operands, b.dtype, b.scalar, b.attributes);
}

}  // namespace polynao::cases
