// Libraries that the suite dense compares with, as far as this machine has them.
#ifndef BENCHMARKS_DENSE_PEER_H_
#define BENCHMARKS_DENSE_PEER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "benchmarks/peers/dense/peer.h"

namespace polynao::benchmarks {

// A layer on given buffers (peer.h).
class DenseLayer {
 public:
  virtual ~DenseLayer() = default;
  // Puts the weights into the library's layout. Errors: the library fails.
  virtual absl::Status Reorder() = 0;
  virtual absl::Status Run() = 0;
};

class DensePeer {
 public:
  // "onednn", "openblas".
  static const std::vector<std::string>& Names();
  // Compiles the interface to the library `name`, one of Names(). Errors: NotFound with the Debian package to install
  // where the library or gcc is missing.
  static absl::StatusOr<DensePeer> Find(const std::string& name);

  // "oneDNN 2.6.3, instructions 0xe7".
  const std::string& version() const { return version_; }
  // The buffers must outlive the layer. Errors: NotFound, the library has no such layer.
  absl::StatusOr<std::unique_ptr<DenseLayer>> Open(const PeerLayer& layer,
                                                   absl::Span<void* const> buffers) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
  std::string version_;
};

// What the machine does at most in a second; 0: not measured.
struct DenseRoof {
  double f32 = 0, i8 = 0, bf16 = 0;  // multiply-adds
  double bytes = 0;                  // read from memory
};
// Measures it for so many threads on cores of their own, once per process. Zeros where there is no gcc.
DenseRoof RoofOn(int threads);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_DENSE_PEER_H_
