#include "cases/run_pipeline.h"

#include <optional>

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "cases/pipeline_image.h"
#include "cases/png.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"

namespace polynao::cases {

absl::StatusOr<NestReport> RunPipeline(const kernels::Pipeline& pipeline,
                                       const PipelineSettings& settings) {
  std::optional<Picture> picture;
  if (!settings.image.empty()) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadFile(settings.image));
    ASSIGN_OR_RETURN(picture, DecodePng(bytes, settings.image));
  }
  ASSIGN_OR_RETURN(kernels::PipelineSize size,
                   kernels::ParsePipelineSize(pipeline, settings.shape));
  if (picture && settings.shape.empty()) size = {picture->rows, picture->cols};
  ASSIGN_OR_RETURN(const ir::Function function,
                   kernels::PipelineFunction(pipeline, size.rows, size.cols));
  ASSIGN_OR_RETURN(ir::RandomArguments arguments,
                   kernels::PipelineArguments(pipeline, function, settings.nest.seed));
  if (picture) StorePicture(pipeline, *picture, *arguments.arguments()[0].tensor);
  ASSIGN_OR_RETURN(NestReport report, RunNest(function,
                                              {.arguments = &arguments,
                                               .name = "plain loops",
                                               .run = pipeline.reference,
                                               .tolerance = pipeline.tolerance},
                                              settings.nest));
  report.arguments = {{"shape", StrCat(size.rows, "x", size.cols)}};
  if (!settings.out.empty() && report.ok()) {
    const int bits = picture ? picture->bits : 8;
    RETURN_IF_ERROR(WriteFile(
        settings.out, EncodePng(OutputPicture(pipeline, arguments.tensors().back(), bits))));
  }
  return report;
}

}  // namespace polynao::cases
