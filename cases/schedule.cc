#include "cases/schedule.h"

#include "base/status.h"

namespace polynao::cases {

absl::StatusOr<Scheduled> ScheduleFunction(const ir::Function& function,
                                           const std::string& schedule) {
  if (schedule == "none") return Scheduled{.function = function, .notes = {}};
  return InvalidInput("--schedule: expected none, found '", schedule, "'");
}

}  // namespace polynao::cases
