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

// A tensor without values, for runs that read none.
ir::Tensor ShapeOnly(ir::Type type, std::vector<int64_t> shape);

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
  TraceOptions trace = {};
  // Computes no values: same cycles and counters, bit for bit, and all checks, but what instructions store to memories
  // is never computed, and tensors keep what they hold. They may have a type and a shape alone. Refused where the
  // program loads registers from memory (LoadsRegisters), since cycles may then depend on values.
  bool timing_only = false;
  // Fill in CoreReport::classes and RunResult::activity.
  bool profile = false;
  // Runs in this process instead of a child; for debuggers and profilers. It is then the last run
  // of this process and of its children.
  bool in_this_process = false;
};

// The first pc at which `program` writes a register with what it reads from a memory; -1 if there is none.
int64_t LoadsRegisters(const isa::InstructionSet& set, const isa::Program& program);

// Runs `program` with `arguments`, one for each of its parameters that is no temporary, on all cores of the card.
// Tensors that the program writes hold the result; on an error no tensor changes. The same program,
// machine and arguments give the same result, every time. May be called from several threads.
//
// Errors: arguments that do not fit the parameters; a program compiled for another machine. Everything that goes wrong
// in the program, with cluster, core, pc, instruction and cycle: a word that is no instruction, a pc outside of the
// program, a constraint of an instruction, an address outside of its memory or tensor, a unit or memory that the core
// does not have, a hazard, a read of memory never written, a deadlock. DeadlineExceeded: the program runs for more than
// max_cycles.
absl::StatusOr<RunResult> Run(const isa::InstructionSet& set, const isa::Program& program,
                              const std::vector<Argument>& arguments, const RunOptions& options);

// Cycles and counters for tensors of which only types and shapes are read: timing alone, or, where the program loads
// registers, a run on zeros.
absl::StatusOr<RunResult> RunForTiming(const isa::InstructionSet& set, const isa::Program& program,
                                       std::vector<Argument> arguments, RunOptions options);

}  // namespace polynao::simulator

#endif  // SIMULATOR_SIMULATOR_H_
