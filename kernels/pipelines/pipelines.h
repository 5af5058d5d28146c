// Six image pipelines as loop IR without a schedule, the ones of PolyMage's benchmarks (Mullapudi, Vasista, Bondhugula,
// ASPLOS 2015) that later work on fusion measures with: a nest for each stage, with inputs and references.
// docs/pipelines.md has their definitions.
#ifndef KERNELS_PIPELINES_PIPELINES_H_
#define KERNELS_PIPELINES_PIPELINES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"

namespace polynao::kernels {

// The kind of an image says what its planes are. A mosaic has one, with a colour for each pixel: green and red in even
// rows, blue and green in odd ones.
enum class ImageKind : uint8_t { kGray, kRgb, kRgba, kMosaic };

// The function's parameters are the input image, tables of constants (or none), and the output, in this order; all are
// buffers with fixed extents.
struct Pipeline {
  std::string_view name;  // "harris", of the function too
  std::string_view doc;
  // Sizes are those of the nominal image, as the definition counts them: the input may have a margin around it.
  int64_t default_rows = 0;
  int64_t default_cols = 0;
  int64_t least_rows = 1;
  int64_t least_cols = 1;
  // The function's .nir text, for sizes that it takes.
  std::string (*text)(int64_t rows, int64_t cols) = nullptr;
  // Elements of an integer image are 0 .. image_levels - 1; those of a float image are in [0, 1).
  int64_t image_levels = 0;
  ImageKind image_kind = ImageKind::kGray;
  // Pixels that the input has before the nominal image's first one, in each dimension.
  int64_t margin = 0;
  // This is true if the output is a measure of no fixed range, and not pixels like those of the
  // input.
  bool is_measure = false;
  // The tile of the output for which Zhao and Di (MICRO 2020, table I) publish times on a GPU: "16x32".
  std::string_view published_gpu_tile = {};
  // Stores the tables of constants; empty if there are none. Takes the function's arguments.
  std::function<void(absl::Span<const ir::Argument>)> fill_tables = {};
  // Stores the output, by plain loops, from image and tables. Takes the function's arguments.
  std::function<void(absl::Span<const ir::Argument>)> reference = {};
  // Within which results agree with the reference (ir::FindDisagreement); 0: all bits are equal.
  double tolerance = 0;
};

// All pipelines, by name.
absl::Span<const Pipeline> Pipelines();

// Null if no pipeline has that name.
const Pipeline* FindPipeline(std::string_view name);

struct PipelineSize {
  int64_t rows;
  int64_t cols;
};

// The size in `text`, "1024x768"; the pipeline's default one where the text is empty.
absl::StatusOr<PipelineSize> ParsePipelineSize(const Pipeline& pipeline, std::string_view text);

// Errors: a size below the least one, or an image of more than 2^27 pixels.
absl::StatusOr<ir::Function> PipelineFunction(const Pipeline& pipeline, int64_t rows, int64_t cols);

// Arguments for `function`, which PipelineFunction made: a random image, the same for the same seed, and the tables.
// The output has one value everywhere. Errors: an extent that is no number.
absl::StatusOr<ir::RandomArguments> PipelineArguments(const Pipeline& pipeline,
                                                      const ir::Function& function, uint64_t seed);

}  // namespace polynao::kernels

#endif  // KERNELS_PIPELINES_PIPELINES_H_
