// Which rows of a suite --filter chooses.
#ifndef BENCHMARKS_NAME_FILTER_H_
#define BENCHMARKS_NAME_FILTER_H_

#include <regex>
#include <string>

#include "absl/status/statusor.h"

namespace polynao::benchmarks {

class NameFilter {
 public:
  // Error: a regular expression (ECMAScript) that is malformed.
  static absl::StatusOr<NameFilter> Create(const std::string& text);

  // Returns true if `name` contains the text, or a match of it as a regular expression.
  bool Passes(const std::string& name) const;

 private:
  NameFilter() = default;
  std::string text_;
  std::regex pattern_;
};

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_NAME_FILTER_H_
