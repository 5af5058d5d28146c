// Compiles emitted C with the machine's C compiler and runs it.
#ifndef COMPILER_CODEGEN_C_RUN_C_H_
#define COMPILER_CODEGEN_C_RUN_C_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/codegen/arguments.h"
#include "compiler/codegen/c/c_compiler.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/float_rules.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

struct COptions {
  int optimization_level = 2;
  // Run parallel loops by OpenMP, if a compiler has it. (OMP_NUM_THREADS is the user's.)
  bool openmp = true;
  // Float operations may do this in all functions, in addition to each function's own attributes. C knows contraction
  // only, and only for all functions of a file or none.
  ir::FloatRules float_rules = {};
  // Further options of the compiler, such as -Wall.
  std::vector<std::string> flags = {};
};

// Functions compiled by a C compiler and loaded into this process.
class CompiledC {
 public:
  // Emits `functions` as one C file, compiles it in a temporary directory, which is gone when this
  // returns, and loads it. Errors: those of EmitC, no C compiler, or the compiler's own messages.
  static absl::StatusOr<std::unique_ptr<CompiledC>> Create(absl::Span<const ir::Function> functions,
                                                           const COptions& options = {});

  // Runs function number `index`. Errors: arguments that do not fit (LayOutArguments).
  absl::Status Run(size_t index, absl::Span<const ir::Argument> arguments) const;
  // The function itself, for timing; no checks. It returns 0.
  RawEntry entry(size_t index) const { return entries_[index]; }
  // Returns the messages that the compiler printed (warnings).
  const std::string& messages() const { return code_->messages(); }
  const CCompiler& compiler() const { return compiler_; }

 private:
  CompiledC() = default;
  std::vector<ir::Function> functions_;
  std::vector<RawEntry> entries_;
  CCompiler compiler_;
  std::unique_ptr<LoadedCode> code_;
};

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_C_RUN_C_H_
