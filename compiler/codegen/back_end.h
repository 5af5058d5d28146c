// The code generator of a target, as those who compile for any target see it. Each target implements it in its folder
// (back_end.cc); back_ends.h finds it.
#ifndef COMPILER_CODEGEN_BACK_END_H_
#define COMPILER_CODEGEN_BACK_END_H_

#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/codegen/arguments.h"
#include "compiler/codegen/cuda/nvcc.h"
#include "compiler/codegen/output_file.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/float_rules.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"
#include "isa/machine.h"

namespace polynao::codegen {

struct WriteOptions {
  // Of a card: has seen what was read of the machine to make the function.
  const isa::ParameterReads* reads = nullptr;
  // Of a GPU.
  NvccOptions nvcc = {};
};

struct LoadOptions {
  // Of parallel loops by LLVM; 0: as many as the machine runs at once. C follows OMP_NUM_THREADS.
  int threads = 0;
  // In addition to what the function's attributes allow.
  ir::FloatRules float_rules = {};
  // LLVM: test each index and divisor (LlvmOptions::checks).
  bool checks = false;
  // LLVM: vectors as wide as the machine has them (LlvmOptions::wide_vectors).
  bool wide_vectors = false;
};

// A function ready to run on this machine.
struct Executable {
  // Checks its arguments and runs.
  std::function<absl::Status(absl::Span<const ir::Argument>)> run;
  // The code itself, without checks, and what its result means. Null if it is not code of this machine.
  RawEntry entry = nullptr;
  std::function<absl::Status(int32_t)> to_status = {};
};

// Functions given to a back end have been through the pipeline of its target.
class BackEnd {
 public:
  virtual ~BackEnd() = default;

  // The name of the target.
  virtual std::string_view name() const = 0;

  // The files that TargetFacts::writes lists, "NAME.ll" of a function NAME. Errors: those of the code generator.
  virtual absl::StatusOr<std::vector<OutputFile>> Write(const ir::Function& function,
                                                        const Target& target,
                                                        const WriteOptions& options) const = 0;

  // The function in memory. Errors: those of the code generator; a target whose programs do not run on this machine.
  virtual absl::StatusOr<Executable> Load(const ir::Function& function,
                                          const LoadOptions& options) const = 0;
};

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_BACK_END_H_
