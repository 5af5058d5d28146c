// For tests: code from its text.
#ifndef COMPILER_CODEGEN_DIANNAO_PARSE_CODE_H_
#define COMPILER_CODEGEN_DIANNAO_PARSE_CODE_H_

#include <string_view>

#include "compiler/codegen/diannao/code.h"

namespace polynao::diannao {

// The code that Print (code.h) shows as `text`, over the built-in instruction set; a failed check
// if `text` is no such code. A constant is an immediate, `v1` a register, `b1` a block.
Code ParseCode(std::string_view text);

}  // namespace polynao::diannao

#endif  // COMPILER_CODEGEN_DIANNAO_PARSE_CODE_H_
