// Compares a code generator with the interpreter.
#ifndef COMPILER_CODEGEN_DIFFERENTIAL_H_
#define COMPILER_CODEGEN_DIFFERENTIAL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/same_meaning.h"

namespace polynao::codegen {

using ir::Disagreement;
using ir::Runner;

// Compiles a function into something that runs it and keeps what it needs alive.
using Compiler = std::function<absl::StatusOr<Runner>(const ir::Function&)>;

// Arguments of a random program: small integers, and those of EdgeScalars.
ir::RandomArguments RandomProgramArguments(const ir::Function& program, uint64_t seed);

// Generates the program of `seed`, compiles and runs it, and compares. Empty if all is well;
// otherwise the report of Disagreement for the smallest program found that shows one.
std::string DisagreementOnRandomProgram(uint64_t seed, const ir::RandomProgramOptions& options,
                                        const Compiler& compile);

// A function and arguments that show one part of the language at its edges.
struct SemanticsCase {
  std::string name;
  ir::Function function;
  ir::RandomArguments arguments;
  int64_t max_ulps = 0;
};

// Lists the abilities that a back end may lack.
struct SemanticsOptions {
  bool wide_unsigned = true;    // u16, u32, u64
  bool variable_shifts = true;  // shifts by values, or by constants outside of 0 to the width
};

// For each type: all operators on all pairs of edge values, casts to all types, and intrinsics; for those that loops
// run over, loops to both ends, and quotients by -1 in conditions, indices and extents.
// Each function's name is its case's.
std::vector<SemanticsCase> SemanticsCases(const SemanticsOptions& options = {});

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_DIFFERENTIAL_H_
