// A statement of a scop at new iterators.
#ifndef COMPILER_POLY_GENERATE_INSTANCE_H_
#define COMPILER_POLY_GENERATE_INSTANCE_H_

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/generate/generate.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// The code of `statement` with `values`, i64 expressions, for iterators and outer variables. Indices become i64 sums
// of the new loops' variables, so that back ends see their strides; elsewhere an iterator has its own type. `handler`
// (may be null) writes accesses first.
ir::Stmt InstanceCode(const Statement& statement,
                      const absl::flat_hash_map<ir::Var, ir::Expr>& values, MarkHandler* handler);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_GENERATE_INSTANCE_H_
