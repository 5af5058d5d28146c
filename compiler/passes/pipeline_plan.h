// When the stages of a pipelined loop run, and how many copies of its buffers they need.
#ifndef COMPILER_PASSES_PIPELINE_PLAN_H_
#define COMPILER_PASSES_PIPELINE_PLAN_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/pipeline_body.h"

namespace polynao::pipelining {

struct PipelinePlan {
  std::array<bool, kStageCount> has = {};
  std::array<int64_t, kStageCount> offset = {};  // iteration i runs in step i + offset
  std::vector<Stage> order;                      // within a step
  int64_t first = 0;                             // the smallest offset
  int64_t last = 0;                              // the largest
  absl::flat_hash_map<ir::Buffer, int64_t> copies;
  // Every buffer with more than one copy has so many: the largest number that one needs. After so many
  // steps the same copies are used again.
  int64_t period = 1;
  // Buffers of the computation alone that are allocated with it, not around the loop: so they may share bytes with one
  // another. Empty where all buffers fit side by side, since what shares bytes has to wait.
  absl::flat_hash_set<ir::Buffer> inside;

  int64_t Rank(Stage stage) const {
    return std::find(order.begin(), order.end(), stage) - order.begin();
  }
};

// Sliding windows: no iteration stores bytes that it or an earlier one uses. The value is the number
// of iterations from the store to the first use.
using Windows = absl::flat_hash_map<ir::Buffer, int64_t>;

// Absent if the stages cannot run side by side with `most_copies` copies of each buffer; `reason` then
// says why.
std::optional<PipelinePlan> MakePlan(const Body& body, const Windows& windows, int most_copies,
                                     std::string& reason);

}  // namespace polynao::pipelining

#endif  // COMPILER_PASSES_PIPELINE_PLAN_H_
