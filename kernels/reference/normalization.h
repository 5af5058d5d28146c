// Normalisations by plain loops, for comparison: all in f64, rounded once at the end; no code shared with compiler or
// simulator but the types' rounding.
#ifndef KERNELS_REFERENCE_NORMALIZATION_H_
#define KERNELS_REFERENCE_NORMALIZATION_H_

#include <cstdint>

#include "compiler/ir/tensor.h"

namespace polynao::kernels {

// y[o, r, i] = exp(x[o, r, i]) / (the sum over r of exp(x[o, r, i])); floats.
void ReferenceSoftmax(int64_t outer, int64_t count, int64_t inner, const ir::Tensor& x,
                      ir::Tensor& y);

// Each row of gamma's length: (x - mean) / sqrt(mean of (x - mean)^2 + epsilon) * gamma + beta; floats.
void ReferenceLayerNorm(double epsilon, const ir::Tensor& x, const ir::Tensor& gamma,
                        const ir::Tensor& beta, ir::Tensor& y);

// Each row of gamma's length: x / sqrt(mean of x^2 + epsilon) * gamma; floats.
void ReferenceRmsNorm(double epsilon, const ir::Tensor& x, const ir::Tensor& gamma, ir::Tensor& y);

// Images of `pixels` pixels, whose channels, as many as gamma has, are in `groups` groups: (x - mean) / sqrt(mean of
// (x - mean)^2 + epsilon) * gamma + beta, the means over all pixels and channels of a group in one image; floats.
void ReferenceGroupNorm(int64_t pixels, int64_t groups, double epsilon, const ir::Tensor& x,
                        const ir::Tensor& gamma, const ir::Tensor& beta, ir::Tensor& y);

}  // namespace polynao::kernels

#endif  // KERNELS_REFERENCE_NORMALIZATION_H_
