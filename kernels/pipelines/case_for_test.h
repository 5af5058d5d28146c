// A pipeline at one size, with inputs and what its reference stores, for tests.
#ifndef KERNELS_PIPELINES_CASE_FOR_TEST_H_
#define KERNELS_PIPELINES_CASE_FOR_TEST_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/agreement.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"
#include "gtest/gtest.h"
#include "kernels/pipelines/pipelines.h"

namespace polynao::kernels {

struct PipelineCase {
  const Pipeline* pipeline;
  ir::Function function;
  ir::RandomArguments arguments;
  ir::RandomArguments expected;

  // "" if `actual` is what the reference stores.
  std::string Disagreement(const ir::RandomArguments& actual) const {
    return ir::FindDisagreement(function, actual, expected, pipeline->tolerance);
  }
};

// With so many rows and columns more than the pipeline's least size.
inline PipelineCase MakePipelineCase(const Pipeline& pipeline, int64_t more_rows,
                                     int64_t more_cols) {
  auto function =
      PipelineFunction(pipeline, pipeline.least_rows + more_rows, pipeline.least_cols + more_cols);
  EXPECT_TRUE(function.ok()) << function.status();
  auto arguments = PipelineArguments(pipeline, *function, /*seed=*/1);
  EXPECT_TRUE(arguments.ok()) << arguments.status();
  const ir::RandomArguments expected(*arguments);
  pipeline.reference(expected.arguments());
  return {&pipeline, *std::move(function), *std::move(arguments), expected};
}

inline std::vector<std::string> PipelineNames() {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) names.emplace_back(pipeline.name);
  return names;
}

}  // namespace polynao::kernels

#endif  // KERNELS_PIPELINES_CASE_FOR_TEST_H_
