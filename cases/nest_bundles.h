// Functions of loop IR as bundles for a GPU machine.
#ifndef CASES_NEST_BUNDLES_H_
#define CASES_NEST_BUNDLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/cuda/bundle.h"
#include "compiler/codegen/cuda/nvcc.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"

namespace polynao::cases {

// One of several bundles of a function.
struct NestVariant {
  std::string folder;  // "optimised/"
  std::string schedule;
  bool copies = true;  // as of ScheduleForCuda
};

struct NestBundleSettings {
  std::string schedule = "auto";  // ScheduleForCuda (schedule.h)
  codegen::NvccOptions nvcc = {.arch = "none"};
  // Two bundles: baseline/, the same grids of blocks and threads without shared memory and registers, and optimised/.
  bool pair = false;
  // Instead of `schedule` and `pair`.
  std::vector<NestVariant> variants = {};
  // Tensor number i among the arguments has the uniform values of seed * 1000 + i, or values of its own, which go into
  // the bundle.
  uint64_t seed = 1;
  // The levels of an image of random pixels of that seed, which the first argument is (random_pixel.h); 0 for one of
  // floats.
  std::optional<int64_t> pixel_levels = {};
  // For a function that nothing has run yet: what stops the interpreter is an error.
  bool checks = false;
};

// `function` with the scalars of `arguments` as constants, so that all sizes are constant. Its parameters are the
// buffers. Errors: an @assert that these scalars break, an extent of a parameter that cannot be evaluated.
absl::StatusOr<ir::Function> WithScalars(const ir::Function& function,
                                         const ir::RandomArguments& arguments);

// Bundles of `function` on `arguments`, which `title` describes. The values to check against are those that code for
// this CPU computes without a schedule. Errors: those of WithScalars, of ScheduleForCuda, of the back ends and of
// MakeBundle.
absl::StatusOr<std::vector<codegen::OutputFile>> BuildNestBundles(
    const ir::Function& function, const ir::RandomArguments& arguments, const std::string& title,
    const NestBundleSettings& settings);

}  // namespace polynao::cases

#endif  // CASES_NEST_BUNDLES_H_
