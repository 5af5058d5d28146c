// Programs with one wait less, for tests of what notices a missing wait.
#ifndef COMPILER_PASSES_WAIT_MUTATION_H_
#define COMPILER_PASSES_WAIT_MUTATION_H_

#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// The number of calls in `function` that wait for queues or at a barrier and do nothing else.
int CountWaits(const ir::Function& function, const Target& target);

// `function` without number `which` of them, counted in program order from 0.
ir::Function WithoutWait(const ir::Function& function, const Target& target, int which);

// The call that it leaves out: "sync.io".
std::string_view WaitName(const ir::Function& function, const Target& target, int which);

}  // namespace polynao

#endif  // COMPILER_PASSES_WAIT_MUTATION_H_
