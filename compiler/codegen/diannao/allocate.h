// Virtual registers to those of the machine.
#ifndef COMPILER_CODEGEN_DIANNAO_ALLOCATE_H_
#define COMPILER_CODEGEN_DIANNAO_ALLOCATE_H_

#include "absl/status/status.h"
#include "compiler/codegen/diannao/code.h"

namespace polynao::diannao {

// Gives each virtual register one of `registers` real ones, in the fields of all instructions:
// linear scan (Poletto and Sarkar, "Linear Scan Register Allocation", 1999). A register is taken
// from the instruction that writes it to the last that reads it, or to the end of the loop that
// reads what was written before it.
//
// Where more are live at once than there are, some code that floats (code.h) is computed again
// where it is needed next (Briggs, Cooper, Torczon, "Rematerialization", 1992), first what costs
// least: constants, far from their next use, for which there is a place outside of loops or above a
// sync. There is no memory to which a core could spill.
//
// Error: more are live than there are, and none of them can be computed again.
absl::Status AllocateRegisters(Code& code, int registers = isa::kRegisterCount);

}  // namespace polynao::diannao

#endif  // COMPILER_CODEGEN_DIANNAO_ALLOCATE_H_
