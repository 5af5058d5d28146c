// Hand-written kernels as a vendor's library has them, written with nothing but the tensor ISA. The compiler's
// programs are compared with them.
#ifndef KERNELS_LIBRARY_LIBRARY_H_
#define KERNELS_LIBRARY_LIBRARY_H_

#include "kernels/library/kernel.h"

namespace polynao::kernels {

// The library's kernel for a case. The program is the same for all shapes; only the scalar parameters depend on
// the shape. NotFound: the library has no kernel for the operator. Other errors: the card lacks an instruction
// for the type; a memory is too small.
absl::StatusOr<HandWrittenKernel> FindLibraryKernel(const OperatorCase& c, const Target& target);

}  // namespace polynao::kernels

#endif  // KERNELS_LIBRARY_LIBRARY_H_
