// Why a case has its schedule on a card: what the cost model says of it, and of those that it was chosen from.
#ifndef CASES_EXPLAIN_H_
#define CASES_EXPLAIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cases/build.h"
#include "compiler/mapping/estimate.h"
#include "compiler/target/target.h"
#include "isa/bound.h"
#include "kernels/operators.h"
#include "nlohmann/json_fwd.hpp"

namespace polynao::cases {

struct Explanation {
  TakenSchedule taken;
  std::string machine;
  mapping::Estimate estimate;
  mapping::Needs has;  // bytes of the machine's memories
  isa::Bound bound;
  size_t schedules = 0;  // that fit

  // The first schedule of another kind, or with another number at one choice or several.
  struct Other {
    std::string what;  // "across=1 image_by_smem=0", "weights stream"
    kernels::ScheduleChoice choice;
    double cycles = 0;
    std::string why;  // "+5760 GMEM, +120 tensor unit"
  };
  std::vector<Other> others;  // the cheapest first
  // Kinds and numbers that no schedule that fits has.
  struct Misfit {
    std::string what;
    std::string why;  // the closest candidate, the memory, what it needs and what there is
  };
  std::vector<Misfit> misfits;
  std::optional<int64_t> simulated;  // cycles, after a run

  // Lines of at most 120 characters but for schedules.
  std::string ToText() const;
  nlohmann::ordered_json ToJson() const;
};

// `taken` is TakeSchedule's. Errors: a target that is no card, an operator that has nothing to choose.
absl::StatusOr<Explanation> Explain(const TakenSchedule& taken, const Target& target);

}  // namespace polynao::cases

#endif  // CASES_EXPLAIN_H_
