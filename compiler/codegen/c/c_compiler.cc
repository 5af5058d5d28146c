#include "compiler/codegen/c/c_compiler.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "base/text.h"

extern char** environ;

namespace polynao::codegen {
namespace {

// A new directory that is removed with what it holds.
class TemporaryDirectory {
 public:
  static absl::StatusOr<TemporaryDirectory> Create() {
    const char* parent = std::getenv("TMPDIR");
    std::string pattern =
        StrCat(parent != nullptr && *parent != '\0' ? parent : "/tmp", "/polynao-c-XXXXXX");
    if (mkdtemp(pattern.data()) == nullptr) {
      return absl::InternalError(
          StrCat("no temporary directory ", pattern, ": ", std::strerror(errno)));
    }
    return TemporaryDirectory(pattern);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(TemporaryDirectory&& other) : path_(std::exchange(other.path_, "")) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;

  std::string File(std::string_view name) const { return StrCat(path_, "/", name); }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

std::optional<std::string> FindOnPath(std::string_view program) {
  const char* path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string file = StrCat(directory.empty() ? "." : directory, "/", program);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Compiles `source` to `output`. Returns what the compiler printed; an error if it failed.
absl::StatusOr<std::string> Compile(const CCompiler& compiler,
                                    const std::vector<std::string>& flags,
                                    const std::string& source, const std::string& output,
                                    const std::string& messages_file) {
  std::vector<std::string> command = {compiler.path, "-fPIC", "-shared"};
  command.insert(command.end(), flags.begin(), flags.end());
  for (const char* argument : {"-o", output.c_str(), source.c_str(), "-lm"}) {
    command.push_back(argument);
  }
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages_file.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int spawned = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) {
    return absl::InternalError(
        StrCat("cannot start ", compiler.path, ": ", std::strerror(spawned)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return absl::InternalError(StrCat("waiting for ", compiler.path, ": ", std::strerror(errno)));
    }
  }
  const std::string messages = ReadFile(messages_file);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError(StrCat(compiler.path, " failed:\n", messages));
  }
  return messages;
}

bool Works(const CCompiler& compiler, bool openmp) {
  absl::StatusOr<TemporaryDirectory> directory = TemporaryDirectory::Create();
  if (!directory.ok()) return false;
  const std::string source = directory->File("probe.c");
  // Needs the header and the library.
  std::ofstream(source)
      << (openmp ? "#include <omp.h>\nint f(void) { return omp_get_max_threads(); }\n"
                 : "#include <math.h>\nint f(void) { return 0; }\n");
  std::vector<std::string> flags;
  if (openmp) flags.push_back("-fopenmp");
  return Compile(compiler, flags, source, directory->File("probe.so"), directory->File("probe.txt"))
      .ok();
}

std::vector<CCompiler> ProbeCompilers() {
  std::vector<CCompiler> compilers;
  for (std::string_view name : {"clang-19", "clang", "gcc", "gcc-12", "cc"}) {
    const std::optional<std::string> path = FindOnPath(name);
    if (!path) continue;
    CCompiler compiler{.path = *path};
    if (!Works(compiler, false)) continue;
    compiler.has_openmp = Works(compiler, true);
    compilers.push_back(compiler);
    // Later ones could only add OpenMP.
    if (compiler.has_openmp) break;
  }
  return compilers;
}

}  // namespace

absl::StatusOr<CCompiler> FindCCompiler(bool want_openmp) {
  static const std::vector<CCompiler>& compilers = *new std::vector<CCompiler>(ProbeCompilers());
  if (compilers.empty()) {
    return absl::NotFoundError(
        "no C compiler: none of clang-19, clang, gcc, gcc-12 and cc on PATH builds a shared "
        "library; install the Debian package clang-19 or g++-12");
  }
  if (want_openmp && compilers.back().has_openmp) return compilers.back();
  return compilers.front();
}

absl::StatusOr<std::unique_ptr<LoadedCode>> LoadedCode::Create(const std::string& text,
                                                               const Options& options) {
  ASSIGN_OR_RETURN(const TemporaryDirectory directory, TemporaryDirectory::Create());
  const std::string source = directory.File(StrCat("polynao", options.suffix));
  std::ofstream file(source);
  file << text;
  file.close();
  if (!file) return absl::InternalError(StrCat("cannot write ", source));
  const std::string library = directory.File("polynao.so");
  auto result = std::unique_ptr<LoadedCode>(new LoadedCode());
  ASSIGN_OR_RETURN(result->messages_, Compile(options.compiler, options.flags, source, library,
                                              directory.File("messages.txt")));
  result->library_ =
      dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | (options.stays ? RTLD_NODELETE : 0));
  if (result->library_ == nullptr) return absl::InternalError(StrCat("cannot load: ", dlerror()));
  return result;
}

LoadedCode::~LoadedCode() {
  if (library_ != nullptr) dlclose(library_);
}

absl::StatusOr<void*> LoadedCode::Find(const std::string& symbol) const {
  void* address = dlsym(library_, symbol.c_str());
  if (address == nullptr) return absl::InternalError(StrCat("no symbol ", symbol));
  return address;
}

}  // namespace polynao::codegen
