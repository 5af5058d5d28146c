// Reads results back that a benchmark has written.
#ifndef BENCHMARKS_JSON_READER_H_
#define BENCHMARKS_JSON_READER_H_

#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {

// The members of an object. The first one that is missing or of another kind becomes `status`, and `value` stays as it
// is.
class JsonReader {
 public:
  JsonReader(const nlohmann::ordered_json& json, absl::Status& status)
      : json_(json), status_(status) {}

  bool Has(const std::string& key) const { return json_.contains(key); }

  // The number, text or truth value `key`.
  template <typename T>
  void Read(const std::string& key, T& value) {
    const auto member = json_.find(key);
    const bool fits = member != json_.end() && (std::is_same_v<T, std::string> ? member->is_string()
                                                : std::is_same_v<T, bool> ? member->is_boolean()
                                                                          : member->is_number());
    if (fits) {
      value = member->get<T>();
    } else if (status_.ok()) {
      status_ = InvalidInput("'", key, "': expected ",
                             std::is_same_v<T, std::string> ? "a text"
                             : std::is_same_v<T, bool>      ? "true or false"
                                                            : "a number",
                             ", found ", member == json_.end() ? "none" : member->dump());
    }
  }

  // The list `key`, or an empty one.
  nlohmann::ordered_json List(const std::string& key) {
    const auto member = json_.find(key);
    if (member != json_.end() && member->is_array()) return *member;
    if (status_.ok()) status_ = InvalidInput("'", key, "': expected a list");
    return nlohmann::ordered_json::array();
  }

  // The object `key`, or an empty one.
  nlohmann::ordered_json Object(const std::string& key) {
    const auto member = json_.find(key);
    if (member != json_.end() && member->is_object()) return *member;
    if (status_.ok()) status_ = InvalidInput("'", key, "': expected an object");
    return nlohmann::ordered_json::object();
  }

 private:
  const nlohmann::ordered_json& json_;
  absl::Status& status_;
};

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_JSON_READER_H_
