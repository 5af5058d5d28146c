// The C compilers that `nao bench polybench` and `nao bench fusion` compare with, as far as this machine has them.
#ifndef BENCHMARKS_PEERS_H_
#define BENCHMARKS_PEERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cases/executable.h"
#include "compiler/codegen/c/c_compiler.h"

namespace polynao::benchmarks {

struct Peer {
  std::string name;     // "polly-parallel"
  std::string command;  // "clang-19 -O3 ...", for readers
  int threads = 1;
  std::string missing;  // why it cannot be used here; "" if it can
  codegen::LoadedCode::Options options;
};

// gcc and clang at -O3 -march=native -ffast-math, and clang with Polly, on one thread and, as polly-parallel, on
// several.
const std::vector<std::string>& PeerNames();  // "gcc", "clang", ...

// These peers in the order of PeerNames, also those that are missing. Each compiles and loads a small loop first.
// polly-parallel runs on `threads`. Errors: NotFound, a name that is none of PeerNames.
absl::StatusOr<std::vector<Peer>> FindPeers(const std::vector<std::string>& names, int threads);

// "gcc" or "clang" with those flags, for C whose loops run on `threads` threads (PlainCOptions).
absl::StatusOr<Peer> FindPeerWithThreads(const std::string& name, int threads);

// Compiles `text`, a file of plain_c.h, and loads its function `name`.
absl::StatusOr<cases::Executable> MakePeerExecutable(const Peer& peer, const std::string& text,
                                                     const std::string& name);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_PEERS_H_
