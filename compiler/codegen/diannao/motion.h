// Where code is computed.
#ifndef COMPILER_CODEGEN_DIANNAO_MOTION_H_
#define COMPILER_CODEGEN_DIANNAO_MOTION_H_

#include "compiler/codegen/diannao/code.h"

namespace polynao::diannao {

// Moves each instruction that floats (code.h) up to the best place where its operands are there
// (Places::Best): out of loops, out of branches and above the nearest syncs. What touches memory,
// queues or other cores stays, and keeps its order. Moved code may run where the source would not
// have run it: as it can not stop the program, that costs only time in which the core waits.
// Registers may get short; AllocateRegisters sees to it.
void MoveCode(Code& code);

}  // namespace polynao::diannao

#endif  // COMPILER_CODEGEN_DIANNAO_MOTION_H_
