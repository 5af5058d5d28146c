// A static control part (SCoP): statements under loops and conditions that are affine in the loop
// variables and parameters, with what each statement reads and writes. Made by extract.h.
//
//   for (i, 0, n) {                          parameters  n
//     x[i] = 0.0                             S0  { S0[i] : 0 <= i < n }           writes { S0[i] -> x[i] }
//     for (j, 0, i) {                        S1  { S1[i, j] : 0 <= j < i < n }    writes { S1[i, j] -> x[i] }
//       x[i] = x[i] + A[i, j] * y[j]                          reads { S1[i, j] -> x[i]; .. A[i, j]; .. y[j] }
//     }                                      schedule  [i] then S0 before [j] S1
//   }
#ifndef COMPILER_POLY_MODEL_SCOP_H_
#define COMPILER_POLY_MODEL_SCOP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly {

struct Access {
  ir::Buffer buffer;
  bool is_write;
  // Happens in every instance of the statement, and at the one element that `map` gives. Others may
  // happen: a load under a select, any access of an opaque statement, an index that is not affine.
  bool is_must;
  // { S0[i, j] -> A[i + 1, j] }. A dimension with an index that is not affine has all its elements.
  isl::map map;
  // Of an affine access that is a load or store by itself: its indices over the statement's iterators.
  std::vector<ir::Expr> indices;
};

// x[f] = x[f] op e, where e reads no element of x that the same instance updates: instances that update one element may
// run in any order, as far as `op` is associative and commutative in x's type.
struct Reduction {
  ir::Buffer buffer;
  ir::ExprKind op;
  // For integers. The order of floats decides how they round, and which NaN or zero is the largest.
  bool is_exact;
};

struct Statement {
  std::string name;                // "S0"
  std::vector<ir::Var> iterators;  // the loops around it, outermost first
  isl::set domain;                 // { S0[i, j] : ... }
  ir::Stmt code;                   // over the iterators
  // More than one store, or one under a condition that is not affine. Runs as a whole.
  bool is_opaque;
  std::vector<Access> accesses;
  std::optional<Reduction> reduction;
};

// An integer that does not change in the SCoP.
struct Parameter {
  std::string name;
  ir::Expr value;  // i64, over variables outside of the SCoP
};

struct Scop {
  std::shared_ptr<IslContext> isl;  // first: outlives the objects below
  std::string name;                 // "f, for (i, 0, n) {": the function and where the part begins
  // The place of the part in Extraction::skeleton: a pragma around it.
  ir::Stmt place;
  std::vector<Parameter> parameters;
  // [n] -> { : ... }: what is known of the parameters by @assert. (The ranges of their types are not in it:
  // numbers like 2^31 in dependences make the scheduler's linear programs explode.)
  isl::set context;
  // The extraction takes this for granted besides. Code made from the SCoP must test it, and run the original code if
  // it does not hold.
  isl::set assumed;
  std::vector<Statement> statements;
  isl::schedule schedule;  // the original order
  // Allocations inside of the part. Generated code has to allocate them.
  std::vector<ir::Buffer> locals;
  // Buffers that nothing outside of the part uses: the locals, and allocations around it. What they
  // hold is lost at the end, so that a loop may give each iteration its own copy.
  std::vector<ir::Buffer> private_buffers;

  isl::union_set Domain() const;
  isl::union_map Reads() const;       // { S0[i] -> A[i] }
  isl::union_map MustWrites() const;  // exactly these elements
  isl::union_map MayWrites() const;   // at most these; includes the must-writes
  const Statement* Find(const std::string& name) const;
  bool IsPrivate(ir::Buffer buffer) const;
};

// The statements of `scop` for which `is_here` holds, one at least, as a part of its own, in the order of the whole.
// Buffers that only they use stay private, and are its locals if they were locals. Nothing is left of what the part
// assumes: the caller tests that. Throws isl::exception.
Scop PartOf(const Scop& scop, absl::FunctionRef<bool(const Statement&)> is_here);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_MODEL_SCOP_H_
