#include "compiler/codegen/c/c_compiler.h"

#include <dlfcn.h>

#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "base/process.h"
#include "base/status.h"
#include "base/text.h"

namespace polynao::codegen {
namespace {

// Compiles `source` to `output`. Returns what the compiler printed; an error if it failed.
absl::StatusOr<std::string> Compile(const CCompiler& compiler,
                                    const std::vector<std::string>& flags,
                                    const std::string& source, const std::string& output) {
  // -Bsymbolic: else a call of a function `write` of the text would go to this process' own.
  std::vector<std::string> command = {compiler.path, "-fPIC", "-shared", "-Wl,-Bsymbolic"};
  command.insert(command.end(), flags.begin(), flags.end());
  // Clang 19 warns of its own -march=native on processors with AVX10, which is no word about the text. Older ones and
  // GCC do not know that warning.
  command.push_back("-Wno-unknown-warning-option");
  command.push_back("-Wno-invalid-feature-combination");
  for (const char* argument : {"-o", output.c_str(), source.c_str(), "-lm"}) {
    command.push_back(argument);
  }
  return RunProgram(std::move(command));
}

bool Works(const CCompiler& compiler, bool openmp) {
  absl::StatusOr<TemporaryDirectory> directory = TemporaryDirectory::Create("polynao-c");
  if (!directory.ok()) return false;
  const std::string source = directory->File("probe.c");
  // Needs the header and the library.
  std::ofstream(source)
      << (openmp ? "#include <omp.h>\nint f(void) { return omp_get_max_threads(); }\n"
                 : "#include <math.h>\nint f(void) { return 0; }\n");
  std::vector<std::string> flags;
  if (openmp) flags.push_back("-fopenmp");
  return Compile(compiler, flags, source, directory->File("probe.so")).ok();
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
  ASSIGN_OR_RETURN(const TemporaryDirectory directory, TemporaryDirectory::Create("polynao-c"));
  const std::string source = directory.File(StrCat("polynao", options.suffix));
  std::ofstream file(source);
  file << text;
  file.close();
  if (!file) return absl::InternalError(StrCat("cannot write ", source));
  const std::string library = directory.File("polynao.so");
  auto result = std::unique_ptr<LoadedCode>(new LoadedCode());
  ASSIGN_OR_RETURN(result->messages_, Compile(options.compiler, options.flags, source, library));
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
