// A line and exit code 1 for a process that code of a user's stops: compiled functions may do anything.
#ifndef BASE_STOP_MESSAGE_H_
#define BASE_STOP_MESSAGE_H_

#include <signal.h>

#include <string_view>

namespace polynao {

// While it lives, SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT on any thread print
//   nao: MESSAGE: stopped by SIGSEGV (an access to memory that is not its own)
// to stderr and end the process with exit code 1. One at a time in a process.
class StopMessage {
 public:
  // Of more than 800 bytes of `message` the rest is left out.
  explicit StopMessage(std::string_view message);
  ~StopMessage();
  StopMessage(const StopMessage&) = delete;
  StopMessage& operator=(const StopMessage&) = delete;

 private:
  static constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  struct sigaction before_[sizeof(kSignals) / sizeof(kSignals[0])];
  stack_t stack_before_;
};

}  // namespace polynao

#endif  // BASE_STOP_MESSAGE_H_
