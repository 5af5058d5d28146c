// Operator cases as bundles for a GPU machine.
#ifndef CASES_BUNDLES_H_
#define CASES_BUNDLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/cuda/bundle.h"
#include "kernels/operators.h"

namespace polynao::cases {

// A way to compile a case for CUDA: the passes left out, by name.
struct BundleVariant {
  std::string name;  // of the folder; empty: none
  std::vector<std::string> without;
};

// Bundles of a case for a GPU machine (compiler/codegen/cuda/bundle.h), one for each variant, whose
// name stands in front of the files'. With values to check against and, where there is an nvcc, machine code.
absl::StatusOr<std::vector<codegen::OutputFile>> BuildBundles(
    const kernels::OperatorCase& c, const codegen::NvccOptions& nvcc, uint64_t seed,
    const std::vector<BundleVariant>& variants);

}  // namespace polynao::cases

#endif  // CASES_BUNDLES_H_
