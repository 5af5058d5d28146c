// The back ends of all targets.
#ifndef COMPILER_CODEGEN_BACK_ENDS_H_
#define COMPILER_CODEGEN_BACK_ENDS_H_

#include <string_view>

#include "compiler/codegen/back_end.h"

namespace polynao::codegen {

// The back end of the target `name`, which must be one of Targets().
const BackEnd& FindBackEnd(std::string_view name);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_BACK_ENDS_H_
