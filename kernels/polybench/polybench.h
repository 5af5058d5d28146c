// The 30 kernels of PolyBench/C 4.2 (Pouchet and Yuki) as loop IR, with the sizes of its data sets, inputs, and
// references.
#ifndef KERNELS_POLYBENCH_POLYBENCH_H_
#define KERNELS_POLYBENCH_POLYBENCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"

namespace polynao::kernels {

// The data sets, smallest first. Benchmarks are run with LARGE.
inline constexpr std::array<std::string_view, 5> kPolyBenchSizes = {"MINI", "SMALL", "MEDIUM",
                                                                    "LARGE", "EXTRALARGE"};

struct PolyBenchKernel {
  std::string_view name;  // PolyBench's: "jacobi-2d". The text is kernels/polybench/NAME.nir.
  std::string_view text = {};
  // The integer parameters of the function, in the order of the sizes below.
  std::vector<std::string_view> parameters;
  std::array<std::vector<int64_t>, 5> sizes;  // of kPolyBenchSizes
  // Its float parameters.
  std::vector<std::pair<std::string_view, double>> scalars = {};
  // Computes what the function stores, by plain loops; takes the function's arguments.
  std::function<void(absl::Span<const ir::Argument>)> reference = {};
  // Makes random inputs ones for which the kernel is defined and well conditioned; may be empty.
  std::function<void(absl::Span<const ir::Argument>)> prepare = {};
  // Within which results agree that were computed in another order (compiler/ir/agreement.h); 0 where no order
  // changes them.
  double tolerance = 1e-12;
};

// All kernels, by name.
absl::Span<const PolyBenchKernel> PolyBenchKernels();

// Errors: NotFound, with the names that there are.
absl::StatusOr<const PolyBenchKernel*> FindPolyBenchKernel(std::string_view name);

// The place of a data set in kPolyBenchSizes. Errors: NotFound, with the names that there are.
absl::StatusOr<size_t> FindPolyBenchSize(std::string_view name);

// The kernel's function, parsed.
absl::StatusOr<ir::Function> PolyBenchFunction(const PolyBenchKernel& kernel);

// Arguments for the kernel's `function` with the values `sizes` of its integer parameters: random ones, the same for
// the same seed, prepared as the kernel needs them. Buffers that the function only writes are random too.
// Errors: tensors that are too large.
absl::StatusOr<ir::RandomArguments> PolyBenchArguments(const PolyBenchKernel& kernel,
                                                       const ir::Function& function,
                                                       absl::Span<const int64_t> sizes,
                                                       uint64_t seed);

}  // namespace polynao::kernels

#endif  // KERNELS_POLYBENCH_POLYBENCH_H_
