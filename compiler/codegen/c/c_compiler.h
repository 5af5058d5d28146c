// Finds the machine's C compiler, and loads code that it compiled into this process.
#ifndef COMPILER_CODEGEN_C_C_COMPILER_H_
#define COMPILER_CODEGEN_C_C_COMPILER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace polynao::codegen {

// A C compiler found on PATH.
struct CCompiler {
  std::string path;
  bool has_openmp = false;  // builds shared libraries with -fopenmp
};

// The first of clang-19, clang, gcc, gcc-12 and cc on PATH that builds a shared library; with
// `want_openmp`, the first one that does so with -fopenmp, if there is any. (Debian's clang-19
// needs libomp-19-dev for that; gcc brings its own.) Looked for once per process. NotFound if there
// is no working compiler.
absl::StatusOr<CCompiler> FindCCompiler(bool want_openmp);

// A shared library made from the text of one source file. Unloaded when this is destroyed.
class LoadedCode {
 public:
  struct Options {
    CCompiler compiler;
    std::vector<std::string> flags = {};  // besides -fPIC -shared
    std::string suffix = ".c";            // of the source, by which the compiler knows its language
    bool stays = false;  // threads of a library that this one uses may outlive it: never unload
  };
  // Compiles in a temporary directory, which is gone when this returns. Errors: the compiler's own
  // messages, a file that cannot be written, a library that cannot be loaded.
  static absl::StatusOr<std::unique_ptr<LoadedCode>> Create(const std::string& text,
                                                            const Options& options);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  absl::StatusOr<void*> Find(const std::string& symbol) const;
  // Returns the messages that the compiler printed (warnings).
  const std::string& messages() const { return messages_; }

 private:
  LoadedCode() = default;
  std::string messages_;
  void* library_ = nullptr;
};

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_C_C_COMPILER_H_
