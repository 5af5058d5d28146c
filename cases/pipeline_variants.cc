#include "cases/pipeline_variants.h"

#include "base/text.h"

namespace polynao::cases {

std::vector<NestVariant> PipelineVariants(const kernels::Pipeline& pipeline,
                                          const std::string& schedule) {
  return {{"baseline/", "min"},
          {"optimised/", schedule},
          {"published/", StrCat("fuse:", std::string(pipeline.published_gpu_tile))}};
}

}  // namespace polynao::cases
