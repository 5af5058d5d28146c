// Our own mistakes stop the program and print the values that show them; wrong input is an
// absl::Status instead (base/status.h).
//
//   POLYNAO_CHECK(extent >= 0) << "loop " << name << " has extent " << extent;
#ifndef BASE_CHECK_H_
#define BASE_CHECK_H_

#include <cstdlib>
#include <iostream>
#include <sstream>

namespace polynao {

// Collects the message of a failed check and aborts when the statement ends.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition) {
    stream_ << file << ":" << line << ": check failed: " << condition << " ";
  }
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  [[noreturn]] ~CheckFailure() {
    std::cerr << stream_.str() << std::endl;
    std::abort();
  }
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

}  // namespace polynao

#define POLYNAO_CHECK(condition)                             \
  switch (0)                                                 \
  case 0:                                                    \
  default:                                                   \
    if (__builtin_expect(static_cast<bool>(condition), 1)) { \
    } else                                                   \
      ::polynao::CheckFailure(__FILE__, __LINE__, #condition).stream()

// Marks a place that no execution reaches; prints why when one does.
#define POLYNAO_UNREACHABLE(why)                                                \
  do {                                                                          \
    ::polynao::CheckFailure(__FILE__, __LINE__, "unreachable").stream() << why; \
    __builtin_unreachable();                                                    \
  } while (false)

#endif  // BASE_CHECK_H_
