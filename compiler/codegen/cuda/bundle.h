// Bundles: a few small files with which tools/gpu_runner runs, checks and times generated kernels on a
// GPU machine. docs/cuda.md describes the format.
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
#include "compiler/codegen/output_file.h"
#include "compiler/ir/tensor.h"
#include "nlohmann/json.hpp"

namespace polynao::codegen {

// The values to check a run against. Without tensors the runner only measures time.
struct BundleReference {
  std::vector<ir::Tensor> inputs;   // of the parameters that are read, in their order
  std::vector<ir::Tensor> outputs;  // the expected values
  // Input i is RandomTensor(type, shape, seed + i, Values::kExact) or has the uniform values of that seed
  // (random_value.h); otherwise its bytes go into the bundle.
  uint64_t seed = 1;
  // If not empty, input i has the seed number i of these instead of seed + i.
  std::vector<uint64_t> seeds = {};
  // The image of random pixels (random_pixel.h) that the first input may be, instead.
  struct Pixels {
    uint64_t seed = 1;
    int64_t levels = 0;
  };
  std::optional<Pixels> pixels = {};
  // The largest error of an element, relative to the largest magnitude among all elements; of integers. These must
  // agree exactly, unless they are rounded floats.
  double tolerance = 1e-5;
  double integer_tolerance = 0;
};

struct BundleFacts {
  // Describes the operator's case; the runner's results repeat it. An object.
  nlohmann::ordered_json operator_case;
  double flops = 0;  // additions and multiplications of the operator; 0: not known
  double bytes = 0;  // of inputs and outputs, each moved through global memory once
  std::optional<BundleReference> reference;
  std::optional<CudaBinary> binary;
  std::string arch;  // of the binary
};

// The files of a bundle: bundle.json, kernel.cu and, with a binary, kernel.ptx and kernel.cubin. An
// input that no seed generates is in input<i>.bin. Errors: several functions, scalar parameters, extents
// that are not constant, more than a million launches.
absl::StatusOr<std::vector<OutputFile>> MakeBundle(const CudaModule& module,
                                                   const BundleFacts& facts);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_BUNDLE_H_
