// Runs an image pipeline on random pixels or an image, and compares it with plain loops.
#ifndef CASES_RUN_PIPELINE_H_
#define CASES_RUN_PIPELINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "cases/run_nest.h"
#include "kernels/pipelines/pipelines.h"

namespace polynao::cases {

struct PipelineSettings {
  // "1024x768" of the nominal image; empty: the image's size, or the pipeline's default.
  std::string shape;
  std::string image;  // a PNG file, instead of random pixels
  std::string out;    // the output, as a PNG file; written unless values differ
  NestSettings nest;  // without arguments and values
};

// Values that differ are no error but !ok(). Errors: a size that is none or that the pipeline does not take, a file
// that cannot be read or written or is no PNG, those of RunNest.
absl::StatusOr<NestReport> RunPipeline(const kernels::Pipeline& pipeline,
                                       const PipelineSettings& settings);

}  // namespace polynao::cases

#endif  // CASES_RUN_PIPELINE_H_
