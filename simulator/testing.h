// Helpers of the simulator's tests.
#ifndef SIMULATOR_TESTING_H_
#define SIMULATOR_TESTING_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/machine.h"
#include "isa/program.h"
#include "simulator/simulator.h"
#include "testing/machine.h"

namespace polynao::simulator {

// Assembles with the built-in instruction set; the text must be right.
isa::Program TestProgram(std::string_view text);

// Runs a program of the built-in instruction set.
absl::StatusOr<RunResult> RunProgram(const isa::Machine& machine, const isa::Program& program,
                                     const std::vector<Argument>& arguments,
                                     RunOptions options = {});

// A program of which core 0 of cluster 0 executes `body`, and all other cores halt at once. In
// `body`, r0 is 0 and r1 is 1. Directives (.tensor, .scalar) stand in `params`.
isa::Program OnCore0(std::string_view params, std::string_view body);

// The same with `body` for cores 0 to count - 1 of each of the first `clusters` clusters; r2 holds
// the core's number in its cluster, r3 the cluster's.
isa::Program OnCores(int clusters, int count, std::string_view params, std::string_view body);

// The report of a core.
const CoreReport& CoreOf(const RunResult& result, int cluster, int core);
// Busy cycles of a unit of that core; with one instruction, how long it took.
int64_t Busy(const RunResult& result, isa::Unit unit, int cluster = 0, int core = 0);
const PortReport& PortOf(const RunResult& result, std::string_view name);

// A program for any number n of f16 elements, `out = x + y` with tiles of at most `tile` elements
// (a multiple of 64), double-buffered: while one tile is computed, the next is loaded and the one
// before is stored. Core i of the c cores of the card takes tiles i, i + c, i + 2 c, ... Parameters: x, y, out, n.
isa::Program StreamingAdd(int64_t tile);

}  // namespace polynao::simulator

#endif  // SIMULATOR_TESTING_H_
