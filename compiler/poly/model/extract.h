// Finds the static control parts of a function.
#ifndef COMPILER_POLY_MODEL_EXTRACT_H_
#define COMPILER_POLY_MODEL_EXTRACT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

struct ExtractOptions {
  // isl's count of its own steps for one part. 0: no limit.
  unsigned long max_operations = 20'000'000;
};

// Something that is not affine: which statement or loop, the term, and what that costs.
struct Remark {
  std::string place;  // "for (j, 0, len[i]) {", the first line
  std::string term;   // "len[i]"
  std::string effect;
  std::string ToString() const;
};

struct Extraction {
  std::vector<Scop> scops;
  // The function's body, where each part stands in a pragma of its own (Scop::place).
  ir::Stmt skeleton;
  std::vector<Remark> remarks;
};

// The maximal parts of `function` that are runs of sibling statements with at least one loop.
//
//   * A loop with bounds, or an if with a condition, that is not affine becomes an opaque statement, with
//     all that it may access. An if whose condition reads nothing that its branches store is an if around
//     each of their statements instead, so that the loops inside stay loops.
//   * The value of a let is affine, or takes the place of the variable where nothing in the let's body
//     stores what it reads; otherwise the let is an opaque statement, or, around loops, a store to a
//     new cell, which the variable's uses load.
//   * An allocation in a part gets the part as its scope, if its extents do not depend on the loops.
//
// Not in a part: loops bound to threads, calls of instructions, pragmas (they mark code for other
// passes), allocations and lets that come first (they stay around it). The iterations of `parallel`,
// `vectorize` and `unroll` loops are taken in order, as the others.
//
// Errors: ResourceExhausted if isl exceeds its operations; Internal for a mistake of ours.
absl::StatusOr<Extraction> Extract(const ir::Function& function,
                                   const ExtractOptions& options = {});

// The skeleton with `replacements[i]` for the part i; a part without one (a null Stmt) stays as it was.
ir::Stmt Replace(const Extraction& extraction, const std::vector<ir::Stmt>& replacements);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_MODEL_EXTRACT_H_
