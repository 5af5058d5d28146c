// Extern functions of every kind, with meanings, for random programs.
#ifndef COMPILER_IR_RANDOM_EXTERNS_H_
#define COMPILER_IR_RANDOM_EXTERNS_H_

#include <memory>
#include <vector>

#include "compiler/ir/externs.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

// They belong to `context`. Buffers among their parameters have one element. None ever stops a program.
std::vector<const ExternNode*> RandomExterns(const std::shared_ptr<Context>& context);

}  // namespace polynao::ir

#endif  // COMPILER_IR_RANDOM_EXTERNS_H_
