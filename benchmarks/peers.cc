#include "benchmarks/peers.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"

namespace polynao::benchmarks {
namespace {

// Enough of a loop for Polly to look at.
constexpr char kProbe[] =
    "#include <stdint.h>\n"
    "int32_t probe_entry(void *const *buffers, const int64_t *scalars) {\n"
    "  double *a = buffers[0];\n"
    "#pragma omp parallel for\n"
    "  for (int64_t i = 0; i < scalars[0]; ++i) a[i] = 2 * a[i];\n"
    "  return 0;\n"
    "}\n";

Peer MakePeer(const std::string& name, const std::string& compiler, int threads,
              std::vector<std::string> more) {
  Peer peer;
  peer.name = name;
  peer.threads = threads;
  std::vector<std::string> flags = {"-O3", "-march=native", "-ffast-math"};
  flags.insert(flags.end(), more.begin(), more.end());
  peer.command = StrCat(compiler, " ", absl::StrJoin(flags, " "));
  const std::optional<std::string> path = FindOnPath(compiler);
  if (!path) {
    peer.missing = StrCat(compiler, " is not installed");
    return peer;
  }
  peer.options = {.compiler = {.path = *path}, .flags = std::move(flags)};
  // The threads of OpenMP outlive the code that they ran.
  peer.options.stays = threads > 1;
  const absl::Status works = MakePeerExecutable(peer, kProbe, "probe").status();
  if (!works.ok()) {
    const std::string message(works.message());
    peer.missing = StrCat(compiler, " does not compile a small loop with ",
                          absl::StrJoin(more, " "), ": ", message.substr(0, message.find('\n')));
  }
  return peer;
}

}  // namespace

const std::vector<std::string>& PeerNames() {
  static const auto* names =
      new std::vector<std::string>{"gcc", "clang", "polly", "polly-parallel"};
  return *names;
}

absl::StatusOr<std::vector<Peer>> FindPeers(const std::vector<std::string>& names, int threads) {
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const std::string& name : names) {
    if (has(PeerNames(), name)) continue;
    return absl::NotFoundError(StrCat("no compiler to compare with is named '", name,
                                      "': expected ", absl::StrJoin(PeerNames(), ", ")));
  }
  std::vector<Peer> peers;
  if (has(names, "gcc")) peers.push_back(MakePeer("gcc", "gcc", 1, {}));
  if (has(names, "clang")) peers.push_back(MakePeer("clang", "clang-19", 1, {}));
  if (has(names, "polly")) peers.push_back(MakePeer("polly", "clang-19", 1, {"-mllvm", "-polly"}));
  if (has(names, "polly-parallel")) {
    peers.push_back(MakePeer("polly-parallel", "clang-19", threads,
                             {"-mllvm", "-polly", "-mllvm", "-polly-parallel", "-mllvm",
                              StrCat("-polly-num-threads=", threads), "-lgomp"}));
  }
  return peers;
}

absl::StatusOr<Peer> FindPeerWithThreads(const std::string& name, int threads) {
  if (name != "gcc" && name != "clang") {
    return absl::NotFoundError(StrCat("expected gcc or clang, found '", name, "'"));
  }
  const bool gcc = name == "gcc";
  const std::string compiler = gcc ? "gcc" : "clang-19";
  if (threads == 1) return MakePeer(name, compiler, 1, {});
  Peer peer = MakePeer(name, compiler, threads, {"-fopenmp"});
  if (gcc || peer.missing.empty()) return peer;
  // Without clang's package for OpenMP: its runtime library alone will do.
  Peer other = MakePeer(name, compiler, threads, {"-Xclang", "-fopenmp", "-l:libomp.so.5"});
  return other.missing.empty() ? other : peer;
}

absl::StatusOr<cases::Executable> MakePeerExecutable(const Peer& peer, const std::string& text,
                                                     const std::string& name) {
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(std::unique_ptr<codegen::LoadedCode> loaded,
                   codegen::LoadedCode::Create(text, peer.options));
  const std::shared_ptr<codegen::LoadedCode> code = std::move(loaded);
  ASSIGN_OR_RETURN(void* entry, code->Find(name + "_entry"));
  cases::Executable executable;
  executable.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  executable.entry = reinterpret_cast<codegen::RawEntry>(entry);
  executable.to_status = [code](int32_t) { return absl::OkStatus(); };
  return executable;
}

}  // namespace polynao::benchmarks
