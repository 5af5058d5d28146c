#include "simulator/isolated.h"

#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>

#include "absl/strings/str_cat.h"

namespace polynao::simulator {
namespace {

bool WriteAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

// Everything up to the end of the stream.
std::string ReadAll(int fd) {
  std::string result;
  char buffer[65536];
  while (true) {
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return result;
    result.append(buffer, static_cast<size_t>(count));
  }
}

// A status code, then the message or the result. A child that dies early writes less than a code.
std::string Encode(const absl::StatusOr<std::string>& result) {
  const int32_t code = static_cast<int32_t>(result.status().code());
  std::string text(reinterpret_cast<const char*>(&code), sizeof(code));
  text += result.ok() ? *result : std::string(result.status().message());
  return text;
}

absl::StatusOr<std::string> Decode(std::string text) {
  int32_t code = 0;
  std::memcpy(&code, text.data(), sizeof(code));
  text.erase(0, sizeof(code));
  if (code == 0) return text;
  return absl::Status(static_cast<absl::StatusCode>(code), text);
}

[[noreturn]] void RunChild(int fd, const std::function<absl::StatusOr<std::string>()>& function) {
  absl::StatusOr<std::string> result = absl::InternalError("not run");
  try {
    result = function();
  } catch (const std::exception& error) {
    result = absl::InternalError(error.what());  // SystemC reports its errors as exceptions.
  }
  const std::string text = Encode(result);
  const bool written = WriteAll(fd, text.data(), text.size());
  // Not exit(), which would flush the caller's buffers and run its handlers a second time.
  _exit(written ? 0 : 1);
}

}  // namespace

absl::StatusOr<std::string> RunIsolated(
    const std::function<absl::StatusOr<std::string>()>& function) {
  int fds[2];
  // O_CLOEXEC does not close the pipe in other forks. A sibling that holds our write end only delays us.
  if (pipe(fds) != 0) return absl::InternalError(absl::StrCat("pipe: ", std::strerror(errno)));
  const pid_t child = fork();
  if (child < 0) {
    const std::string error = std::strerror(errno);
    close(fds[0]);
    close(fds[1]);
    return absl::InternalError(absl::StrCat("fork: ", error));
  }
  if (child == 0) {
    close(fds[0]);
    RunChild(fds[1], function);
  }
  close(fds[1]);
  std::string text = ReadAll(fds[0]);
  close(fds[0]);
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(state)) {
    return absl::InternalError(absl::StrCat("the simulation died of signal ", WTERMSIG(state), " (",
                                            strsignal(WTERMSIG(state)),
                                            "); its message is on standard error"));
  }
  if (!WIFEXITED(state) || WEXITSTATUS(state) != 0 || text.size() < sizeof(int32_t)) {
    return absl::InternalError("the simulation ended without a result");
  }
  return Decode(std::move(text));
}

}  // namespace polynao::simulator
