#include "kernels/pipelines/pipelines.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/random_pixel.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/type.h"
#include "kernels/pipelines/reference.h"
#include "kernels/pipelines/tables.h"
#include "kernels/pipelines/texts.h"
#include "kernels/polybench/view.h"

namespace polynao::kernels {
namespace {

using ir::Argument;

// The bytes of an output before the run, so that an element that is not stored shows.
constexpr uint8_t kNotStored = 0xcd;
constexpr int64_t kMostPixels = int64_t{1} << 27;

// `function` called with the views of all arguments.
template <typename... Views, size_t... kIndices>
void CallWithViews(void (*function)(Views...), absl::Span<const Argument> arguments,
                   std::index_sequence<kIndices...>) {
  POLYNAO_CHECK(arguments.size() == sizeof...(Views)) << arguments.size();
  function(Views(*arguments[kIndices].tensor)...);
}
template <typename... Views>
std::function<void(absl::Span<const Argument>)> Call(void (*function)(Views...)) {
  return [function](absl::Span<const Argument> arguments) {
    CallWithViews(function, arguments, std::index_sequence_for<Views...>());
  };
}

std::vector<Pipeline> MakePipelines() {
  return {
      {.name = "bilateral_grid",
       .doc = "bilateral grid: smooths and keeps edges, by a blurred histogram of position and "
              "brightness",
       .default_rows = 2560,
       .default_cols = 1536,
       .text = BilateralGridText,
       .margin = 24,
       .published_gpu_tile = "8x64",
       .reference = Call(BilateralGridReference)},
      {.name = "camera_pipe",
       .doc = "camera pipeline: from a Bayer mosaic of 10 bits to a picture of 8 bits",
       .default_rows = 1968,
       .default_cols = 2592,
       .least_rows = 49,
       .least_cols = 65,
       .text = CameraPipeText,
       .image_levels = 1024,
       .image_kind = ImageKind::kMosaic,
       .published_gpu_tile = "3x16x32",
       .fill_tables =
           [](absl::Span<const Argument> arguments) {
             FillCameraTables(View<int32_t, 2>(*arguments[1].tensor),
                              View<uint8_t, 1>(*arguments[2].tensor));
           },
       .reference = Call(CameraPipeReference)},
      {.name = "harris",
       .doc = "Harris corners: gradients, their products summed over 3x3, det - 0.04 trace^2",
       .default_rows = 6400,
       .default_cols = 6400,
       .least_rows = 5,
       .least_cols = 5,
       .text = HarrisText,
       .is_measure = true,
       .published_gpu_tile = "16x32",
       .reference = Call(HarrisReference)},
      {.name = "local_laplacian",
       .doc = "local Laplacian filter: more local contrast, by pyramids for 8 brightnesses",
       .default_rows = 2560,
       .default_cols = 1536,
       .text = LocalLaplacianText,
       .image_levels = 65536,
       .image_kind = ImageKind::kRgb,
       .margin = 2,
       .published_gpu_tile = "3x8x64",
       .fill_tables =
           [](absl::Span<const Argument> arguments) {
             FillRemap(View<float, 1>(*arguments[1].tensor));
           },
       .reference = Call(LocalLaplacianReference)},
      {.name = "multiscale_interp",
       .doc = "multiscale interpolation: fills transparent pixels from a pyramid of 10 levels",
       .default_rows = 2560,
       .default_cols = 1536,
       .text = MultiscaleInterpText,
       .image_kind = ImageKind::kRgba,
       .margin = 1,
       .published_gpu_tile = "3x32x16",
       .reference = Call(MultiscaleInterpReference)},
      {.name = "unsharp",
       .doc = "unsharp mask: blurred along rows and columns, sharpened where that differs",
       .default_rows = 2048,
       .default_cols = 2048,
       .text = UnsharpText,
       .image_kind = ImageKind::kRgb,
       .margin = 2,
       .published_gpu_tile = "3x8x32",
       .reference = Call(UnsharpReference)},
  };
}

template <typename T, typename Value>
void FillElements(const Value& value, ir::Tensor& image) {
  T* const elements = reinterpret_cast<T*>(image.bytes.data());
  const int64_t count = image.element_count();
  for (int64_t i = 0; i < count; ++i) {
    elements[i] = static_cast<T>(value(static_cast<uint64_t>(i)));
  }
}

void FillImage(const Pipeline& pipeline, uint64_t seed, ir::Tensor& image) {
  const auto integer = [&](uint64_t i) { return ir::PixelInt(pipeline.image_levels, seed, i); };
  switch (image.type) {
    case ir::Type::kF32:
      return FillElements<float>([&](uint64_t i) { return ir::PixelFloat(seed, i); }, image);
    case ir::Type::kI16:
      return FillElements<int16_t>(integer, image);
    case ir::Type::kU16:
      return FillElements<uint16_t>(integer, image);
    default:
      POLYNAO_UNREACHABLE("an image of " << ir::TypeName(image.type));
  }
}

}  // namespace

absl::Span<const Pipeline> Pipelines() {
  static const auto& pipelines = *new std::vector<Pipeline>(MakePipelines());
  return pipelines;
}

const Pipeline* FindPipeline(std::string_view name) {
  for (const Pipeline& pipeline : Pipelines()) {
    if (pipeline.name == name) return &pipeline;
  }
  return nullptr;
}

absl::StatusOr<PipelineSize> ParsePipelineSize(const Pipeline& pipeline, std::string_view text) {
  if (text.empty()) return PipelineSize{pipeline.default_rows, pipeline.default_cols};
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(ToAbsl(text), absl::MaxSplits('x', 1));
  PipelineSize size;
  if (!absl::SimpleAtoi(parts.first, &size.rows) || !absl::SimpleAtoi(parts.second, &size.cols)) {
    return InvalidInput(pipeline.name, ": --shape: expected ROWSxCOLS, found '", text, "'");
  }
  return size;
}

absl::StatusOr<ir::Function> PipelineFunction(const Pipeline& pipeline, int64_t rows,
                                              int64_t cols) {
  if (rows < pipeline.least_rows || cols < pipeline.least_cols) {
    return InvalidInput(pipeline.name, ": expected at least ", pipeline.least_rows, "x",
                        pipeline.least_cols, " pixels, found ", rows, "x", cols);
  }
  if (rows > kMostPixels / cols) {
    return InvalidInput(pipeline.name, ": expected at most ", kMostPixels, " pixels, found ", rows,
                        "x", cols);
  }
  return ir::ParseFunction(pipeline.text(rows, cols), pipeline.name);
}

absl::StatusOr<ir::RandomArguments> PipelineArguments(const Pipeline& pipeline,
                                                      const ir::Function& function, uint64_t seed) {
  ASSIGN_OR_RETURN(const auto shapes, ir::ParameterShapes(function, {}));
  POLYNAO_CHECK(shapes.size() == function.params.size()) << pipeline.name;
  std::deque<ir::Tensor> tensors;
  for (size_t i = 0; i < shapes.size(); ++i) {
    tensors.emplace_back(function.params[i].buffer->type, shapes[i]);
  }
  std::fill(tensors.back().bytes.begin(), tensors.back().bytes.end(), kNotStored);
  ir::RandomArguments result(std::move(tensors));
  FillImage(pipeline, seed, *result.arguments()[0].tensor);
  if (pipeline.fill_tables) pipeline.fill_tables(result.arguments());
  return result;
}

}  // namespace polynao::kernels
