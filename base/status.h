// Wrong input is reported as an absl::Status whose message names the place, what was expected and
// what was found. These helpers pass it up, adding context on the way.
#ifndef BASE_STATUS_H_
#define BASE_STATUS_H_

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/text.h"

namespace polynao {

// An InvalidArgument status from the pieces of a message.
template <typename... Args>
absl::Status InvalidInput(const Args&... args) {
  return absl::InvalidArgumentError(StrCat(args...));
}

// The same status with "context: " in front of its message.
inline absl::Status WithContext(std::string_view context, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), StrCat(context, ": ", status.message()));
}

}  // namespace polynao

#define RETURN_IF_ERROR(expression)                              \
  do {                                                           \
    absl::Status status_of_expression = (expression);            \
    if (!status_of_expression.ok()) return status_of_expression; \
  } while (false)

#define POLYNAO_CONCAT_INNER(a, b) a##b
#define POLYNAO_CONCAT(a, b) POLYNAO_CONCAT_INNER(a, b)
#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_IMPL(POLYNAO_CONCAT(status_or_, __LINE__), target, expression)
#define ASSIGN_OR_RETURN_IMPL(temporary, target, expression) \
  auto temporary = (expression);                             \
  if (!temporary.ok()) return std::move(temporary).status(); \
  target = std::move(temporary).value()

#endif  // BASE_STATUS_H_
