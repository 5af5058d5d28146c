// Hand-written kernels: what a vendor's library has, written with nothing but the tensor ISA. The
// compiler's programs are compared with them.
#ifndef KERNELS_LIBRARY_LIBRARY_H_
#define KERNELS_LIBRARY_LIBRARY_H_

#include "kernels/library/kernel.h"

namespace polynao::kernels {

// The library's kernel for a case. It serves any shape: what depends on it are the scalar
// parameters. NotFound: the library has none. Other errors: the card lacks an instruction for that
// type.
absl::StatusOr<HandWrittenKernel> FindLibraryKernel(const OperatorCase& c, const Target& target);

}  // namespace polynao::kernels

#endif  // KERNELS_LIBRARY_LIBRARY_H_
