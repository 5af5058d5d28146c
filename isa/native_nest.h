// Native execution of meanings that are nests of loops around stores.
#ifndef ISA_NATIVE_NEST_H_
#define ISA_NATIVE_NEST_H_

#include <memory>

#include "compiler/ir/int_expression.h"
#include "isa/instruction_set.h"
#include "isa/native.h"

namespace polynao::isa::native {

// NativeRoutine::Create for these; null if the meaning is none of them.
std::unique_ptr<NativeRoutine> CreateNestRoutine(const Instruction& instruction,
                                                 const IntExpression::Resolver& resolver);

}  // namespace polynao::isa::native

#endif  // ISA_NATIVE_NEST_H_
