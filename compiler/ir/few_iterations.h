// A hint to code generators.
#ifndef COMPILER_IR_FEW_ITERATIONS_H_
#define COMPILER_IR_FEW_ITERATIONS_H_

#include <string_view>

namespace polynao::ir {

// The key of a pragma around loops that mostly have few iterations: they need no vectors and no second copy of their
// body.
inline constexpr std::string_view kFewIterationsPragma = "few_iterations";

}  // namespace polynao::ir

#endif  // COMPILER_IR_FEW_ITERATIONS_H_
