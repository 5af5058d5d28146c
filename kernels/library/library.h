// Hand-written kernels: what a vendor's library has, written with nothing but the tensor ISA. The
// compiler's programs are compared with them.
#ifndef KERNELS_LIBRARY_LIBRARY_H_
#define KERNELS_LIBRARY_LIBRARY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "isa/program.h"
#include "kernels/te/operators.h"

namespace polynao::kernels {

struct LibraryKernel {
  // Serves any shape: what depends on it are the scalar parameters.
  isa::Program program;
  // One per parameter of the program; 0 for tensors.
  std::vector<int64_t> scalars;
};

// The library's kernel for a case. NotFound: the library has none. Other errors: the card lacks an
// instruction for that type.
absl::StatusOr<LibraryKernel> FindLibraryKernel(const OperatorCase& c, const Target& target);

}  // namespace polynao::kernels

#endif  // KERNELS_LIBRARY_LIBRARY_H_
