// Maps virtual registers to registers of the machine.
#ifndef COMPILER_CODEGEN_DIANNAO_ALLOCATE_H_
#define COMPILER_CODEGEN_DIANNAO_ALLOCATE_H_

#include "absl/status/status.h"
#include "compiler/codegen/diannao/code.h"

namespace polynao::diannao {

// Gives each virtual register one of `registers` real registers, in the fields of all instructions:
// linear scan (Poletto and Sarkar, "Linear Scan Register Allocation", 1999). A register is occupied
// from the instruction that writes it to the last instruction that reads it; if a loop reads a
// register written before the loop, to the end of the loop.
//
// Where too many registers are live at once, values that float (code.h) are computed again before
// their next use (Briggs, Cooper, Torczon, "Rematerialization", 1992). The cheapest values go
// first: constants, values whose next use is far away, values that can be computed outside of loops
// or above a sync. A core has no memory for spilled registers.
//
// Error: too many registers are live, and none of them can be computed again.
absl::Status AllocateRegisters(Code& code, int registers = isa::kRegisterCount);

}  // namespace polynao::diannao

#endif  // COMPILER_CODEGEN_DIANNAO_ALLOCATE_H_
