#include "base/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/status.h"
#include "base/text.h"

extern char** environ;

namespace polynao {

absl::StatusOr<TemporaryDirectory> TemporaryDirectory::Create(std::string_view prefix) {
  const char* parent = std::getenv("TMPDIR");
  std::string pattern =
      StrCat(parent != nullptr && *parent != '\0' ? parent : "/tmp", "/", prefix, "-XXXXXX");
  if (mkdtemp(pattern.data()) == nullptr) {
    return absl::InternalError(
        StrCat("no temporary directory ", pattern, ": ", std::strerror(errno)));
  }
  return TemporaryDirectory(pattern);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::File(std::string_view name) const {
  return StrCat(path_, "/", name);
}

std::optional<std::string> FindOnPath(std::string_view program) {
  const char* path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string file = StrCat(directory.empty() ? "." : directory, "/", program);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

absl::StatusOr<std::string> RunProgram(std::vector<std::string> command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return absl::InternalError(StrCat("no pipe: ", std::strerror(errno)));
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  pid_t child = 0;
  const int spawned = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (spawned != 0) {
    close(ends[0]);
    return absl::InternalError(StrCat("cannot start ", command[0], ": ", std::strerror(spawned)));
  }
  std::string output;
  char buffer[4096];
  while (true) {
    const ssize_t count = read(ends[0], buffer, sizeof buffer);
    if (count > 0) {
      output.append(buffer, static_cast<size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      break;
    }
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return absl::InternalError(StrCat("waiting for ", command[0], ": ", std::strerror(errno)));
    }
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError(StrCat(command[0], " failed:\n", output));
  }
  return output;
}

}  // namespace polynao
