// Hand-written kernels tuned for one case on one machine: what a person would write who cares about that case
// only. The numbers of a kernel's plan (tiles, who computes what) are constants of its program.
#ifndef KERNELS_LIBRARY_EXPERT_H_
#define KERNELS_LIBRARY_EXPERT_H_

#include <cstdint>
#include <functional>

#include "kernels/library/kernel.h"

namespace polynao::kernels {

// Cycles of a kernel on the card, for the case's tensors.
using MeasureKernel = std::function<absl::StatusOr<int64_t>(const HandWrittenKernel& kernel)>;

// The fastest kernel for a case, by `measure`, of the plans in expert.cc or expert_conv2d.cc. Where measuring
// gains nothing or takes seconds, the first plan, which is good for most cases. NotFound: there is no kernel for
// the operator. Other errors: the card lacks an instruction for the type; a memory is too small; errors of
// `measure`.
absl::StatusOr<HandWrittenKernel> FindExpertKernel(const OperatorCase& c, const Target& target,
                                                   const MeasureKernel& measure);

}  // namespace polynao::kernels

#endif  // KERNELS_LIBRARY_EXPERT_H_
