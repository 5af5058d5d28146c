// Loop IR to instructions over virtual registers.
#ifndef COMPILER_CODEGEN_DIANNAO_GENERATE_H_
#define COMPILER_CODEGEN_DIANNAO_GENERATE_H_

#include "absl/status/statusor.h"
#include "compiler/codegen/diannao/code.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "isa/program.h"

namespace polynao::diannao {

// The code of `function`, for which diannao.h has the contract. Operands are computed right before
// the instruction that needs them, in the order of the source; a pure expression once in each block
// of statements and those inside it. `program` receives name and parameters.
absl::StatusOr<Code> Generate(const ir::Function& function, const Target& target,
                              isa::Program& program);

}  // namespace polynao::diannao

#endif  // COMPILER_CODEGEN_DIANNAO_GENERATE_H_
