#include "base/stop_message.h"

#include <unistd.h>

#include <cstring>
#include <iterator>

namespace polynao {
namespace {

char text[900];
size_t text_size = 0;
// An endless recursion has no stack of its own left. (SIGSTKSZ is no constant any more.)
alignas(16) char stack[size_t{64} << 10];

std::string_view Meaning(int signal) {
  switch (signal) {
    case SIGSEGV:
      return ": stopped by SIGSEGV (an access to memory that is not its own)\n";
    case SIGBUS:
      return ": stopped by SIGBUS (an access to memory that is not there)\n";
    case SIGFPE:
      return ": stopped by SIGFPE (an integer division by zero)\n";
    case SIGILL:
      return ": stopped by SIGILL (an instruction that this processor lacks)\n";
    default:
      return ": stopped by SIGABRT (most likely no memory)\n";
  }
}

// Calls only what a signal's handler may call.
void Stop(int signal) {
  const std::string_view meaning = Meaning(signal);
  // Nobody is left to tell about an error of write.
  if (write(STDERR_FILENO, text, text_size) < 0 ||
      write(STDERR_FILENO, meaning.data(), meaning.size()) < 0) {
    _exit(1);
  }
  _exit(1);
}

}  // namespace

StopMessage::StopMessage(std::string_view message) {
  constexpr std::string_view kPrefix = "nao: ";
  message = message.substr(0, 800);
  std::memcpy(text, kPrefix.data(), kPrefix.size());
  std::memcpy(text + kPrefix.size(), message.data(), message.size());
  text_size = kPrefix.size() + message.size();
  stack_t own = {};
  own.ss_sp = stack;
  own.ss_size = sizeof(stack);
  sigaltstack(&own, &stack_before_);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction action = {};
    action.sa_handler = Stop;
    action.sa_flags = SA_ONSTACK;
    sigaction(kSignals[i], &action, &before_[i]);
  }
}

StopMessage::~StopMessage() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  sigaltstack(&stack_before_, nullptr);
}

}  // namespace polynao
