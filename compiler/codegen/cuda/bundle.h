// Bundles: all that a GPU machine needs to run, check and time generated kernels, in a few small
// files that tools/gpu_runner reads. The format is described in docs/cuda.md.
#ifndef COMPILER_CODEGEN_CUDA_BUNDLE_H_
#define COMPILER_CODEGEN_CUDA_BUNDLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/codegen/cuda/emit_cuda.h"
#include "compiler/codegen/cuda/nvcc.h"
#include "compiler/ir/tensor.h"
#include "nlohmann/json.hpp"

namespace polynao::codegen {

// What a run is to be checked against. Nothing: the runner only times.
struct BundleReference {
  std::vector<ir::Tensor> inputs;   // of the parameters that are read, in their order
  std::vector<ir::Tensor> outputs;  // as they must be afterwards
  // Input i is RandomTensor(type, shape, seed + i) or has the uniform values of that seed
  // (random_value.h); otherwise its bytes go into the bundle.
  uint64_t seed = 1;
  // How far an element may be off, as a part of the largest magnitude among all; integers agree
  // exactly.
  double tolerance = 1e-5;
};

struct BundleFacts {
  // Of the operator's case, as the runner's results repeat it; an object.
  nlohmann::ordered_json operator_case;
  double flops = 0;  // that the operator asks for, additions and multiplications; 0: not known
  double bytes = 0;  // of inputs and outputs, which must cross global memory once
  std::optional<BundleReference> reference;
  std::optional<CudaBinary> binary;
  std::string arch;  // of the binary
};

struct BundleFile {
  std::string name;
  std::string contents;
};

// The files of a bundle: bundle.json, kernel.cu and, with a binary, kernel.ptx and kernel.cubin; an
// input that no seed makes is input<i>.bin. Errors: several functions, scalar
// parameters, extents that are not constant.
absl::StatusOr<std::vector<BundleFile>> MakeBundle(const CudaModule& module,
                                                   const BundleFacts& facts);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_BUNDLE_H_
