// Building text. Debian's Abseil has a string_view of its own, which its StrCat takes and
// std::string_view does not convert to; these take both.
#ifndef BASE_TEXT_H_
#define BASE_TEXT_H_

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace polynao {

template <typename T>
decltype(auto) ToAbsl(const T& value) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return absl::string_view(value.data(), value.size());
  } else {
    return (value);
  }
}

inline std::string_view ToStd(absl::string_view text) {
  return std::string_view(text.data(), text.size());
}

// The pieces (text and numbers) one after the other.
template <typename... Args>
std::string StrCat(const Args&... args) {
  return absl::StrCat(ToAbsl(args)...);
}

template <typename... Args>
void StrAppend(std::string* out, const Args&... args) {
  absl::StrAppend(out, ToAbsl(args)...);
}

}  // namespace polynao

#endif  // BASE_TEXT_H_
