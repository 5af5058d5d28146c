// Schedule trees as text.
#ifndef COMPILER_POLY_ISL_TREE_TEXT_H_
#define COMPILER_POLY_ISL_TREE_TEXT_H_

#include <string>

#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly {

// isl's text, one node a line.
std::string TreeText(const isl::schedule& schedule);

// The text without what isl does not read: marks on leaves, although isl writes them; and the line "part '...':" in
// front (describe.h).
std::string Readable(const std::string& text);

// The tree of such a text, in `context`. Throws isl::exception.
isl::schedule ReadTree(const isl::ctx& context, const std::string& text);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ISL_TREE_TEXT_H_
