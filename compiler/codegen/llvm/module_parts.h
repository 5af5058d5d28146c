// A module as parts that LLVM can compile at the same time.
#ifndef COMPILER_CODEGEN_LLVM_MODULE_PARTS_H_
#define COMPILER_CODEGEN_LLVM_MODULE_PARTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "llvm/IR/Module.h"

namespace polynao::codegen {

// A module of fewer instructions is compiled sooner than it is taken apart.
inline constexpr int64_t kFewInstructions = 1500;

// At most so many modules, in the same context, that are `module` once they are linked: bodies of parallel loops,
// which nobody calls by name, go where least else is, all other functions with a name outside to the first one, and
// what any of these calls to each one. Empty if that would gain little. The bodies of `module` lose their local names.
std::vector<std::unique_ptr<llvm::Module>> ModuleParts(llvm::Module& module, size_t most,
                                                       int64_t few_instructions = kFewInstructions);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_MODULE_PARTS_H_
