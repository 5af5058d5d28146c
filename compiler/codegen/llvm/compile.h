// The CPU back end: loop IR compiled by LLVM, in memory (JIT) or to text or an object file.
//
// Means what the interpreter means for programs that do not stop: floor division, wrapping integers, each float
// operation rounded once, conditional evaluation, no fast-math and no contraction unless the function or the options
// allow it (compiler/ir/float_rules.h). What differs: log, sin, cos, pow and rsqrt may differ in the last bits, as exp,
// tanh and sigmoid of f64 may (those of narrower types do not: elementary.h); and where the interpreter stops (an index
// out of bounds, a zero divisor) compiled code does something undefined unless `checks` is set. Reading memory that was
// never stored is never found.
//
// Loops: parallel loops run on a pool of threads (nested ones, and those with little work, serially);
// vectorize and unroll are hints to LLVM's passes; loops bound to thread axes run serially.
#ifndef COMPILER_CODEGEN_LLVM_COMPILE_H_
#define COMPILER_CODEGEN_LLVM_COMPILE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/codegen/arguments.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/float_rules.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

struct LlvmOptions {
  // 0 to 3, as clang's -O; from 2 on loops are vectorised.
  int optimization_level = 3;
  // Test indices and divisors; a failed test ends the run with an error. Costs most of the
  // vectorisation.
  bool checks = false;
  // Threads of a parallel loop; 0: as many as the machine runs at once.
  int threads = 0;
  // Threads that compile a function for this process, if it is long; 0: as many as the machine runs at once.
  int compile_threads = 0;
  // A CPU's name as LLVM knows it ("x86-64-v3", "sapphirerapids"); empty: this machine's.
  std::string cpu = {};
  // Vectors as wide as the machine has them. LLVM by itself keeps to 256 bits on processors with AVX-512, since early
  // ones lower their clock for wider ones; this is obeyed on later ones (from Ice Lake and Zen 4 on). Loops of few
  // iterations may lose by it.
  bool wide_vectors = false;
  // Arguments of at least so many bytes that the function stores and never loads go to memory past the caches (x86-64),
  // where whole vectors are stored: a cache would first read the line. 0: none do. The default is twice the largest
  // second-level cache of today's cores; smaller arrays may still be in a cache when the next function reads them.
  int64_t stream_bytes = int64_t{4} << 20;
  // Float operations may do this in all functions, in addition to each function's own attributes.
  ir::FloatRules float_rules = {};
};

// A function in memory, ready to run; any number of threads may run it at once.
class CompiledFunction {
 public:
  ~CompiledFunction();

  // Checks `arguments` against the parameters (LayOutArguments) and runs. An error if they do not
  // fit, if a check of LlvmOptions::checks failed, or if memory ran out.
  absl::Status Run(absl::Span<const ir::Argument> arguments) const;

  // The function itself, without any check of its arguments; for timing. What it returns goes to
  // ToStatus.
  RawEntry entry() const;
  absl::Status ToStatus(int32_t code) const;

 private:
  friend absl::StatusOr<std::vector<std::unique_ptr<CompiledFunction>>> CompileAll(
      absl::Span<const ir::Function>, const LlvmOptions&);
  struct Code;
  explicit CompiledFunction(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

// Errors: a function that is not well-formed, one that calls tensor instructions, an unknown CPU.
absl::StatusOr<std::unique_ptr<CompiledFunction>> Compile(const ir::Function& function,
                                                          const LlvmOptions& options = {});

// The same for several functions of different names, in one module: a function costs less so.
absl::StatusOr<std::vector<std::unique_ptr<CompiledFunction>>> CompileAll(
    absl::Span<const ir::Function> functions, const LlvmOptions& options = {});

enum class LlvmOutput {
  kIr,           // LLVM IR as it leaves this compiler
  kOptimizedIr,  // and after LLVM's passes
  kAssembly,
  kObject,  // an object file; with parallel loops it needs the library :thread_pool
};

// The functions of `module` for a CPU. Each becomes the C function
//   int32_t name(void* buffer, ..., T scalar, ...);  // parameters in their order
// (f16 scalars are _Float16, bf16 scalars are float), which returns 0, or another number if it ran
// out of memory or failed a check; and the RawEntry `name_entry`.
absl::StatusOr<std::string> EmitLlvm(const ir::Module& module, LlvmOutput output,
                                     const LlvmOptions& options = {});
// Several of these, for which LLVM's passes run once.
absl::StatusOr<std::vector<std::string>> EmitLlvm(const ir::Module& module,
                                                  absl::Span<const LlvmOutput> outputs,
                                                  const LlvmOptions& options = {});

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_COMPILE_H_
