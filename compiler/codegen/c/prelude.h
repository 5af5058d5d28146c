// The helper functions that emitted C may need, as C text.
#ifndef COMPILER_CODEGEN_C_PRELUDE_H_
#define COMPILER_CODEGEN_C_PRELUDE_H_

#include <string>

namespace polynao::codegen {

// The beginning of a C file whose functions are `body`: includes, and those helpers (functions
// named nao_...) that `body` or another needed helper mentions.
std::string CPrelude(const std::string& body);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_C_PRELUDE_H_
