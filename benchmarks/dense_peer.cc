#include "benchmarks/dense_peer.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "benchmarks/dense_sources.h"
#include "compiler/codegen/c/c_compiler.h"

namespace polynao::benchmarks {
namespace {

std::string_view Source(std::string_view name) {
  for (const auto& [path, text] : DenseSources()) {
    if (path.ends_with(StrCat("/", name))) return text;
  }
  POLYNAO_CHECK(false) << "no source " << std::string(name);
  return "";
}

// The line of a compiler's messages that says what is wrong.
std::string FirstError(std::string_view messages) {
  const std::vector<std::string> lines = absl::StrSplit(ToAbsl(messages), '\n');
  for (const std::string& line : lines) {
    const size_t error = line.find("error: ");
    if (error != std::string::npos) return line.substr(error + 7);
    const size_t missing = line.find("cannot find");
    if (missing != std::string::npos) return line.substr(missing);
  }
  return lines[0];
}

// gcc's OpenMP is the one that these libraries use: threads are set for both.
absl::StatusOr<std::shared_ptr<codegen::LoadedCode>> Load(std::string_view source,
                                                          std::vector<std::string> flags) {
  std::optional<std::string> path = FindOnPath("gcc");
  if (!path) path = FindOnPath("gcc-12");
  if (!path) return absl::NotFoundError("gcc is not installed");
  ASSIGN_OR_RETURN(
      std::unique_ptr<codegen::LoadedCode> code,
      codegen::LoadedCode::Create(StrCat(Source("peer.h"), Source(source)),
                                  {.compiler = {.path = *path},
                                   .flags = std::move(flags),
                                   // The threads of OpenMP outlive the code that they ran.
                                   .stays = true}));
  return std::shared_ptr<codegen::LoadedCode>(std::move(code));
}

template <typename F>
absl::Status Find(const codegen::LoadedCode& code, const char* name, F*& function) {
  ASSIGN_OR_RETURN(void* address, code.Find(name));
  function = reinterpret_cast<F*>(address);
  return absl::OkStatus();
}

struct Library {
  const char *name, *package;
  std::vector<std::string> flags;
};

const std::vector<Library>& Libraries() {
  static const auto* libraries = new std::vector<Library>{
      {"onednn", "libdnnl-dev", {"-O2", "-fopenmp", "-Wl,--no-as-needed", "-ldnnl"}},
      {"openblas", "libopenblas-dev", {"-O2", "-Wl,--no-as-needed", "-lopenblas"}},
  };
  return *libraries;
}

// OpenBLAS knows processors by their numbers, and takes kernels of SSE3 on newer ones. So it is told the widest kernels
// that the host has instructions for, unless the environment names others. It reads this while it is loaded.
void NameKernelsOfOpenBlas() {
#if defined(__x86_64__)
  const bool is_wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const char* kernels = is_wide ? "SkylakeX"
                        : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
                            ? "Haswell"
                            : nullptr;
  if (kernels != nullptr) setenv("OPENBLAS_CORETYPE", kernels, /*overwrite=*/0);
#endif
}

}  // namespace

struct DensePeer::Code {
  std::string name;
  std::shared_ptr<codegen::LoadedCode> loaded;
  decltype(peer_version)* version = nullptr;
  decltype(peer_open)* open = nullptr;
  decltype(peer_reorder)* reorder = nullptr;
  decltype(peer_run)* run = nullptr;
  decltype(peer_close)* close = nullptr;
};

const std::vector<std::string>& DensePeer::Names() {
  static const auto* names = [] {
    auto* list = new std::vector<std::string>;
    for (const Library& library : Libraries()) list->push_back(library.name);
    return list;
  }();
  return *names;
}

absl::StatusOr<DensePeer> DensePeer::Find(const std::string& name) {
  const auto library = std::find_if(Libraries().begin(), Libraries().end(),
                                    [&](const Library& one) { return one.name == name; });
  POLYNAO_CHECK(library != Libraries().end()) << name;
  auto code = std::make_shared<Code>();
  code->name = name;
  NameKernelsOfOpenBlas();
  auto loaded = Load(name + ".c", library->flags);
  if (!loaded.ok()) {
    return absl::NotFoundError(
        StrCat("expected Debian's packages ", library->package,
               " and gcc, found: ", FirstError(ToStd(loaded.status().message()))));
  }
  code->loaded = *std::move(loaded);
  RETURN_IF_ERROR(benchmarks::Find(*code->loaded, "peer_version", code->version));
  RETURN_IF_ERROR(benchmarks::Find(*code->loaded, "peer_open", code->open));
  RETURN_IF_ERROR(benchmarks::Find(*code->loaded, "peer_reorder", code->reorder));
  RETURN_IF_ERROR(benchmarks::Find(*code->loaded, "peer_run", code->run));
  RETURN_IF_ERROR(benchmarks::Find(*code->loaded, "peer_close", code->close));
  DensePeer peer;
  peer.version_ = code->version();
  peer.code_ = std::move(code);
  return peer;
}

absl::StatusOr<std::unique_ptr<DenseLayer>> DensePeer::Open(const PeerLayer& layer,
                                                            absl::Span<void* const> buffers) const {
  class Layer : public DenseLayer {
   public:
    Layer(std::shared_ptr<const Code> code, void* layer) : code_(std::move(code)), layer_(layer) {}
    ~Layer() override { code_->close(layer_); }
    absl::Status Reorder() override { return Status(code_->reorder(layer_)); }
    absl::Status Run() override { return Status(code_->run(layer_)); }

   private:
    absl::Status Status(int code) const {
      if (code == 0) return absl::OkStatus();
      return absl::InternalError(StrCat(code_->name, " failed"));
    }
    std::shared_ptr<const Code> code_;
    void* layer_;
  };
  const char* why = "";
  void* opened = code_->open(&layer, buffers.data(), &why);
  if (opened == nullptr) return absl::NotFoundError(why);
  return std::make_unique<Layer>(code_, opened);
}

DenseRoof RoofOn(int threads) {
  static auto& known = *new std::map<int, DenseRoof>;
  const auto place = known.find(threads);
  if (place != known.end()) return place->second;
  DenseRoof& roof = known[threads];
  const auto code = Load("roof.c", {"-O3", "-march=native", "-ffast-math", "-fopenmp"});
  if (!code.ok()) return roof;
  const auto measure = [&](const char* name, auto... arguments) {
    double (*function)(decltype(arguments)...) = nullptr;
    return Find(**code, name, function).ok() ? function(arguments...) : 0;
  };
  // Each core has units of its own; memory is everybody's.
  roof = {.f32 = threads * measure("roof_f32"),
          .i8 = threads * measure("roof_i8"),
          .bf16 = threads * measure("roof_bf16"),
          .bytes = measure("roof_bytes", threads)};
  return roof;
}

}  // namespace polynao::benchmarks
