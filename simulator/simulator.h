// Runs a tensor-ISA program on a simulated card: values, cycles, counters, errors.
#ifndef SIMULATOR_SIMULATOR_H_
#define SIMULATOR_SIMULATOR_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/tensor.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"
#include "isa/program.h"
#include "simulator/report.h"

namespace polynao::simulator {

// The argument of one program parameter: a tensor of its type and shape, kept by the caller, or a
// scalar (a float's bit pattern).
struct Argument {
  ir::Tensor* tensor = nullptr;
  int64_t value = 0;
  static Argument Of(ir::Tensor* tensor) { return {.tensor = tensor}; }
  static Argument Scalar(int64_t value) { return {.value = value}; }
};

struct TraceOptions {
  bool enabled = false;
  // Only what lies in these cycles, at most `limit` slices.
  int64_t begin = 0;
  int64_t end = std::numeric_limits<int64_t>::max();
  int64_t limit = 200'000;
  // GMEM bytes are counted in buckets of so many cycles.
  int64_t gmem_bucket = 256;
};

struct RunOptions {
  const isa::Machine* machine = nullptr;  // must be set
  // Runs programs that were compiled for another machine (isa::Program::machine) as well.
  bool any_machine = false;
  // Hazards that no sync orders, and reads of memory never written, are errors (access_checker.h).
  bool check_hazards = true;
  int64_t max_cycles = int64_t{10'000'000'000};
  TraceOptions trace;
  // Fill in CoreReport::classes and RunResult::activity.
  bool profile = false;
  // Runs in this process instead of a child; for debuggers and profilers. It is then the last run
  // of this process and of its children.
  bool in_this_process = false;
};

// Runs `program` with `arguments`, one for each of its parameters that is no temporary, on all cores of the card.
// Tensors that the program writes hold the result; on an error no tensor changes. The same program,
// machine and arguments give the same result, every time. May be called from several threads.
//
// Errors: arguments that do not fit the parameters; a program compiled for another machine. Everything that goes wrong in the program, with
// cluster, core, pc, instruction and cycle: a word that is no instruction, a pc outside of the
// program, a constraint of an instruction, an address outside of its memory or tensor, a unit or
// memory that the core does not have, a hazard, a read of memory never written, a deadlock.
// DeadlineExceeded: the program runs for more than max_cycles.
absl::StatusOr<RunResult> Run(const isa::InstructionSet& set, const isa::Program& program,
                              const std::vector<Argument>& arguments, const RunOptions& options);

}  // namespace polynao::simulator

#endif  // SIMULATOR_SIMULATOR_H_
