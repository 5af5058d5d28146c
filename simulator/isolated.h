// Runs a function in a child process of its own.
#ifndef SIMULATOR_ISOLATED_H_
#define SIMULATOR_ISOLATED_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace polynao::simulator {

// The result of `function`, run in a fork of this process. SystemC elaborates once in a process, so
// each simulation gets one; several may run at once, from several threads. The child shares no
// memory with the caller except what was mapped as shared. Costs about half a millisecond. Errors:
// that of `function`; Internal if the child ended otherwise (a failed check, a signal).
absl::StatusOr<std::string> RunIsolated(
    const std::function<absl::StatusOr<std::string>()>& function);

}  // namespace polynao::simulator

#endif  // SIMULATOR_ISOLATED_H_
