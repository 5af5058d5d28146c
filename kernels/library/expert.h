// Hand-written kernels tuned for one case on one machine: what a person would write for whom only that
// case counts. The numbers of a kernel's plan (tiles, who does what) are constants of its program.
#ifndef KERNELS_LIBRARY_EXPERT_H_
#define KERNELS_LIBRARY_EXPERT_H_

#include <cstdint>
#include <functional>

#include "kernels/library/kernel.h"

namespace polynao::kernels {

// Cycles of a kernel on the card, for the case's tensors.
using MeasureKernel = std::function<absl::StatusOr<int64_t>(const HandWrittenKernel& kernel)>;

// The kernel for a case: of a few plans, which stand in expert.cc with their reasons, the fastest by
// `measure`; the first one, which is good for most cases, where nothing is to be gained by measuring.
// NotFound: there is none for the operator. Other errors: the card lacks an instruction for that
// type; a memory is too small; those of `measure`.
absl::StatusOr<HandWrittenKernel> FindExpertKernel(const OperatorCase& c, const Target& target,
                                                   const MeasureKernel& measure);

}  // namespace polynao::kernels

#endif  // KERNELS_LIBRARY_EXPERT_H_
