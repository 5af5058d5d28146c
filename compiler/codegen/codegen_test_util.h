// The tests of code generators share these helpers.
#ifndef COMPILER_CODEGEN_CODEGEN_TEST_UTIL_H_
#define COMPILER_CODEGEN_CODEGEN_TEST_UTIL_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/codegen/differential.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

// The function that `text` says; the test stops if it says none.
ir::Function Parse(std::string_view text);

// Expects `text` to be the file `golden`, a path from the repository's root. With the environment
// variable POLYNAO_UPDATE_GOLDENS, under `bazel run`, writes the file first.
void ExpectGolden(const std::string& text, const std::string& golden);

// The functions of `cases`.
std::vector<ir::Function> FunctionsOf(absl::Span<const SemanticsCase> cases);

// Expects `run(i, arguments)` to do what the interpreter does for case i.
using RunOne = std::function<absl::Status(size_t i, absl::Span<const ir::Argument> arguments)>;
void ExpectSemantics(absl::Span<const SemanticsCase> cases, const RunOne& run);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CODEGEN_TEST_UTIL_H_
