// Schedule trees as text.
#ifndef COMPILER_POLY_TREE_TEXT_H_
#define COMPILER_POLY_TREE_TEXT_H_

#include <string>

#include "compiler/poly/isl_tools.h"

namespace polynao::poly {

// isl's text, one node a line.
std::string TreeText(const isl::schedule& schedule);

// The text without marks on leaves. isl writes these, but does not read them.
std::string WithoutLeafMarks(const std::string& text);

// The tree of such a text, without marks on leaves, in `context`. Throws isl::exception.
isl::schedule ReadTree(const isl::ctx& context, const std::string& text);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_TREE_TEXT_H_
