// Follows the scalar code of one core: what its instructions access, in which order, and its barriers.
#ifndef ISA_CHECK_WALK_H_
#define ISA_CHECK_WALK_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "isa/check/access_list.h"
#include "isa/check/check.h"
#include "isa/check/code.h"
#include "isa/check/findings.h"
#include "isa/check/tensors.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"
#include "isa/program.h"

namespace polynao::isa {

// What one core does, cut at its barriers.
struct CoreTrace {
  struct Barrier {
    Instruction::Barrier kind;
    int64_t pc;
  };
  // Between two barriers, what others can see of its accesses.
  struct Phase {
    AccessList smem;
    AccessList gmem;  // without tensors that the program only reads
  };
  CheckedCore core;
  std::vector<Phase> phases;  // one more than barriers
  std::vector<Barrier> barriers;
  int64_t end_pc = 0;       // where it halts
  bool is_complete = true;  // false: the walk had to stop before the end
};

// All that the walks of a program's cores share.
struct CheckedProgram {
  const InstructionSet& set;
  const Machine& machine;
  const CheckedCode& code;
  const CheckedTensors& tensors;
  Findings& findings;
  int64_t steps_left;
};

// Walks the program on `core`. Hazards between its own queues become findings.
CoreTrace WalkCore(CheckedProgram& program, const CheckedCore& core);

}  // namespace polynao::isa

#endif  // ISA_CHECK_WALK_H_
