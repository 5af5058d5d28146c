// Moves code to where it is cheapest to compute.
#ifndef COMPILER_CODEGEN_DIANNAO_MOTION_H_
#define COMPILER_CODEGEN_DIANNAO_MOTION_H_

#include "compiler/codegen/diannao/code.h"

namespace polynao::diannao {

// Moves each instruction that floats (code.h) up to the best place at which its operands are
// computed (Places::Best): out of loops, out of branches and above the nearest syncs. Instructions
// that access memory, queues or other cores stay in place and in order. Moved code may run where
// the source would not have run it. It cannot stop the program, so this costs only time, and mostly
// time in which the core would wait. AllocateRegisters deals with a shortage of registers.
void MoveCode(Code& code);

}  // namespace polynao::diannao

#endif  // COMPILER_CODEGEN_DIANNAO_MOTION_H_
