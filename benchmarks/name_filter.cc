#include "benchmarks/name_filter.h"

#include "base/status.h"

namespace polynao::benchmarks {

absl::StatusOr<NameFilter> NameFilter::Create(const std::string& text) {
  NameFilter filter;
  filter.text_ = text;
  try {
    filter.pattern_ = std::regex(text);
  } catch (const std::regex_error& error) {
    return InvalidInput("--filter='", text,
                        "': expected a text or a regular expression, found one that is malformed (",
                        error.what(), ")");
  }
  return filter;
}

bool NameFilter::Passes(const std::string& name) const {
  return name.find(text_) != std::string::npos || std::regex_search(name, pattern_);
}

}  // namespace polynao::benchmarks
