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

namespace polynao::simulator {

// The machine of simulator/configs/NAME.toml, with overrides.
isa::Machine TestMachine(std::string_view name, const std::vector<std::string>& overrides = {});

// Assembles with the built-in instruction set; the text must be right.
isa::Program TestProgram(std::string_view text);

// Runs a program of the built-in instruction set.
absl::StatusOr<RunResult> RunProgram(const isa::Machine& machine, const isa::Program& program,
                                     const std::vector<Argument>& arguments,
                                     RunOptions options = {});

// A program for any number n of f16 elements, `out = x + y` with tiles of at most `tile` elements (a
// multiple of 64), double-buffered: while one tile is computed, the next is loaded and the one before is
// stored. Every core of the card takes every so-manieth tile. Parameters: x, y, out, n.
isa::Program StreamingAdd(int64_t tile);

}  // namespace polynao::simulator

#endif  // SIMULATOR_TESTING_H_
