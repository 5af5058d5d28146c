// Tests of passes share a target on a machine of simulator/configs, and running one pass on
// text with a check of its meaning.
#ifndef COMPILER_PASSES_PASS_TEST_UTIL_H_
#define COMPILER_PASSES_PASS_TEST_UTIL_H_

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace polynao {

// The DianNao target on the machine "mlu270" or "unit"; kept until the process ends.
const Target& TestTarget(const std::string& machine = "unit");

ir::Function ParseOrDie(std::string_view text);

using PassFunction = std::function<absl::StatusOr<bool>(ir::Function&)>;

// The text after the pass. Checks that the result verifies, that "changed" says whether the body is
// another node, that running the pass's result through the interpreter gives what the input gives
// (`same_meaning`: off for functions that the interpreter can not run), and that printing and
// parsing keep it.
std::string RunPass(std::string_view text, const PassFunction& pass, const Target& target,
                    bool same_meaning = true);

// The message of the error that the pass must end with.
std::string PassError(std::string_view text, const PassFunction& pass);

// Returns the text that `print` writes to stdout. Checks that two new processes write the same, whatever addresses they
// get. They run the current test up to this call, which `print` is then called by instead of by this process.
std::string TextOfEveryProcess(void (*print)());

}  // namespace polynao

#endif  // COMPILER_PASSES_PASS_TEST_UTIL_H_
