// Schedule trees as HTML.
#ifndef COMPILER_POLY_TOOLS_TREE_PAGE_H_
#define COMPILER_POLY_TOOLS_TREE_PAGE_H_

#include <string>

#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly {

// A schedule tree as nested elements that open and close.
std::string TreeHtml(const isl::schedule& schedule);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_TOOLS_TREE_PAGE_H_
