// Loop IR to LLVM IR. This header names LLVM's types, but includes nothing of LLVM.
#ifndef COMPILER_CODEGEN_LLVM_EMIT_MODULE_H_
#define COMPILER_CODEGEN_LLVM_EMIT_MODULE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/float_rules.h"
#include "compiler/ir/ir.h"
#include "isa/processor/processor.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace polynao::codegen {

struct EmitOptions {
  // Test each index against its extent and each divisor against zero.
  bool checks = false;
  // Threads of a parallel loop; 0 leaves it to the machine that runs it.
  int threads = 0;
  // This is true if the target converts between f16 and f32 by itself. If not, the conversions are
  // spelled out in integer operations, so that compiled code needs no support library.
  bool native_half = false;
  // This is true if the target rounds a * b + c once by one instruction.
  bool native_fma = false;
  // Of the registers that vector loops fill.
  int64_t vector_bytes = 16;
  // This is true if the target gathers the elements of all lanes by an instruction that takes less time than a load for
  // each lane.
  bool has_gathers = false;
  // Instructions that the target has, of those that loops may be (dot_loop.h).
  std::vector<const isa::ProcessorInstruction*> instructions = {};
  // As in LlvmOptions.
  int64_t stream_bytes = 0;
  // These liberties are allowed in addition to the function's own attributes.
  ir::FloatRules float_rules = {};
  // True lets the function itself be called from outside, false its raw entry only.
  bool is_exported = true;
  // This is true if the function is the meaning of an extern function: it can be called by MeaningName alone, and its
  // buffers may overlap.
  bool is_meaning = false;
};

// The name in a module of the meaning (ir::MeaningOf) of the extern function `name`.
std::string MeaningName(std::string_view name);

// The name of the raw entry (RawEntry in arguments.h) of the function `name`.
std::string RawEntryName(std::string_view name);

// Adds `function` to `module` under its own name, as
//   i32 name(buffers and scalars in the order of the parameters),
// where buffers are addresses, integers of less than 32 bits are extended by the target's C rules,
// f16 is `half` and bf16 is a float; and its raw entry. Both return 0, or k if the check that
// (*failures)[k - 1] describes failed. `function` must be well-formed (ir::Verify). Errors: a call
// of a tensor instruction, or the address of an element.
absl::Status EmitFunction(const ir::Function& function, const EmitOptions& options,
                          llvm::Module* module, std::vector<std::string>* failures);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_EMIT_MODULE_H_
