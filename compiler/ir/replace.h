// Expressions with other ones in the place of some of theirs, and the question which buffers they use.
#ifndef COMPILER_IR_REPLACE_H_
#define COMPILER_IR_REPLACE_H_

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

// `e` with by[x] in place of each x; what stands in place of one is left as it is. Each part is rebuilt once. (For
// variables, also those that statements bind: Substitute of visit.h.)
Expr Replace(Expr e, const absl::flat_hash_map<Expr, Expr>& by);

// Returns true if an element of `buffer` is read, or its address is named, anywhere in `e`; in `s`, or stored.
bool UsesBuffer(Expr e, Buffer buffer);
bool UsesBuffer(Stmt s, Buffer buffer);

}  // namespace polynao::ir

#endif  // COMPILER_IR_REPLACE_H_
