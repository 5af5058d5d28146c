// The target "interp" (compiler/codegen/back_end.h).
#ifndef COMPILER_CODEGEN_INTERP_BACK_END_H_
#define COMPILER_CODEGEN_INTERP_BACK_END_H_

#include "compiler/codegen/back_end.h"

namespace polynao::codegen {

const BackEnd& InterpreterBackEnd();

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_INTERP_BACK_END_H_
