// The schedules that `nao run FILE.nir` and `nao bench polybench` know by name.
#ifndef CASES_SCHEDULE_H_
#define CASES_SCHEDULE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"

namespace polynao::cases {

struct Scheduled {
  ir::Function function;
  double milliseconds = 0;         // that it took, without what only the notes and figures need
  std::vector<std::string> notes;  // what was done, for people
  std::vector<std::pair<std::string, double>> figures = {};  // poly::ScheduleReport::Figures
};

// "none, original, .., fuse:8x64": what a schedule may be, besides a text or a file.
std::string ScheduleNames();

// `function` with its loops in the order of `schedule`: the name of a strategy (compiler/poly/order/strategies.h), of
// which "none" leaves it as it is; a text that begins with { or [ is a
// schedule (poly::ParseSchedule), anything else a file with one, or with "fuse:8x64". "fuse:8x64" and "overlap:8x64"
// give the tiles of the groups' last arrays, outermost dimension first (0: all); arrays of fewer dimensions take the
// last sizes. Sums of floats change their order only if the function is marked @reassociate. "auto" is for this machine
// and so many threads (0: as many as it runs at once), `has_tiles` as in poly::HostMachine. Errors: there is no such
// strategy or file; a text that is malformed or illegal.
absl::StatusOr<Scheduled> ScheduleFunction(const ir::Function& function,
                                           const std::string& schedule, int threads = 0,
                                           bool has_tiles = true);

// The same for CUDA: loops become blocks and threads (compiler/poly/gpu/gpu.h), with `copies` in shared memory and
// registers. There is no "overlap". In "fuse:3x8x64" a block has a thread for each element of a tile, or, where these
// are more than 1024, of its last dimensions.
absl::StatusOr<Scheduled> ScheduleForCuda(const ir::Function& function, const std::string& schedule,
                                          bool copies = true);

}  // namespace polynao::cases

#endif  // CASES_SCHEDULE_H_
