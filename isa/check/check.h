// Says before a program runs what will go wrong with its waits and barriers.
#ifndef ISA_CHECK_CHECK_H_
#define ISA_CHECK_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"
#include "isa/program.h"

namespace polynao::isa {

struct ProgramFinding {
  enum class Kind : uint8_t {
    kHazard,   // two accesses to a byte, one of them a write, that no wait and no barrier orders
    kBarrier,  // a core waits at a barrier that another one never reaches: a deadlock
    kStop,  // the run stops: an address outside of its memory, a constraint of an instruction, an unknown word
    kUndecided,  // it depends on values in memory, or on a scalar that has no value
  };
  Kind kind = Kind::kHazard;
  int64_t pc = 0;
  int64_t other_pc = -1;  // the other access; -1 if there is none
  std::string text;       // one line, which names the cores, the instructions and the memory
};

// What is known of the program's arguments.
struct CheckedArguments {
  // Values of its scalars, one for each parameter, those of tensors unused; none: any value.
  std::vector<std::optional<int64_t>> scalars = {};
  // Bytes of its tensors, one for each parameter. None: as the program declares; a tensor of any shape has no end then.
  std::vector<std::optional<int64_t>> tensor_bytes = {};
};

struct ProgramCheck {
  std::vector<ProgramFinding> findings;  // each pair of instructions once
  int64_t steps = 0;                     // instructions that the check followed, on all cores
  // True if nothing can go wrong. With findings of kUndecided alone nothing is known to go wrong.
  bool holds() const { return findings.empty(); }
  // The first finding that is not of kUndecided, as an error "program NAME: ..."; OK if there is none.
  absl::Status ToStatus(const Program& program) const;
};

// Follows what the scalar unit of each core of the machine does, without any instruction of another unit, without time
// and without values in memory, and proves of all that is left open - the values in tensors, where tensors are, how
// long things take -:
//
//  - Two accesses that share a byte, one of them a write, are ordered: in a core by a wait for the queue of the first
//    one, between cores by a barrier. The rule is the simulator's (simulator/access_checker.h).
//  - Every barrier opens: the cores and the memory core of a cluster come to the same ones, all clusters to the same
//    ones of the card. A wait for queues always ends.
//
// What a register gets from memory is unknown. A branch on it is followed both ways up to where they meet; accesses at
// unknown addresses may touch all of a memory, or all of the tensor whose address they are computed from. Where that
// leaves a question open, a finding of kUndecided names the instructions.
//
// The level. Loop IR has bounds and cores as symbols, but the hand-written kernels have no loop IR, it has not seen
// the back end, and their buffers take turns by the order of moves. In the program all of these are numbers:
// registers hold constants, arguments and what is computed from them, so that following the scalar code decides a
// branch as a rule, with no false alarm from a bound that is too wide. Accesses in loops are kept as strided sets
// (access_list.h) and compared as such. Time: linear in the scalar instructions that the cores execute; `max_steps` of
// them, then a finding of kUndecided says so.
//
// The machine is that of the program, or any for one that fits all.
ProgramCheck CheckProgram(const InstructionSet& set, const Program& program, const Machine& machine,
                          const CheckedArguments& arguments = {},
                          int64_t max_steps = int64_t{100'000'000});

// What a compiler asks of its own program: an error if something is known to go wrong. It follows at most so many
// instructions that it takes some milliseconds; behind these, and where the check cannot decide, nothing is said.
absl::Status CheckQuickly(const InstructionSet& set, const Program& program, const Machine& machine,
                          const CheckedArguments& arguments = {});

}  // namespace polynao::isa

#endif  // ISA_CHECK_CHECK_H_
