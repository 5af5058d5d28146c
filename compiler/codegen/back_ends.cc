#include "compiler/codegen/back_ends.h"

#include "base/check.h"
#include "compiler/codegen/c/back_end.h"
#include "compiler/codegen/cuda/back_end.h"
#include "compiler/codegen/diannao/back_end.h"
#include "compiler/codegen/interp/back_end.h"
#include "compiler/codegen/llvm/back_end.h"

namespace polynao::codegen {

const BackEnd& FindBackEnd(std::string_view name) {
  for (const BackEnd* back_end :
       {&DianNaoBackEnd(), &LlvmBackEnd(), &CBackEnd(), &CudaBackEnd(), &InterpreterBackEnd()}) {
    if (back_end->name() == name) return *back_end;
  }
  POLYNAO_UNREACHABLE(std::string(name));
}

}  // namespace polynao::codegen
