// The bundles of an image pipeline that are compared on a GPU.
#ifndef CASES_PIPELINE_VARIANTS_H_
#define CASES_PIPELINE_VARIANTS_H_

#include <string>
#include <vector>

#include "cases/nest_bundles.h"
#include "kernels/pipelines/pipelines.h"

namespace polynao::cases {

// "baseline/" stage by stage, "optimised/" by `schedule`, and "published/" fused in the tiles that times are published
// for.
std::vector<NestVariant> PipelineVariants(const kernels::Pipeline& pipeline,
                                          const std::string& schedule);

}  // namespace polynao::cases

#endif  // CASES_PIPELINE_VARIANTS_H_
