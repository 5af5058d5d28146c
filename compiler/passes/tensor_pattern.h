// The patterns of tensor instructions, and the loop nests of a program in the same form: what
// tensorize compares.
#ifndef COMPILER_PASSES_TENSOR_PATTERN_H_
#define COMPILER_PASSES_TENSOR_PATTERN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/affine.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/visit.h"
#include "isa/instruction_set.h"

namespace polynao {

// Loops around one store, or around a store of a constant (the initialisation) followed by further
// loops around the store that updates the same element:
//
//   for (y) { for (x) { D[..] = 0  for (r) { for (s) { D[..] = D[..] + ... } } } }
//   |- outer loops --|             |- inner loops --|

// The meaning of an instruction in that form: loops from 0, indices linear in them without a
// constant. Multi-dimensional buffers count as their elements in row-major order.
struct TensorPattern {
  const isa::Instruction* instruction = nullptr;
  ir::Function meaning = {};       // in the context of the program
  std::vector<ir::Var> vars = {};  // outermost first
  std::vector<ir::Expr> extents = {};
  size_t outer_loops = 0;  // around the initialisation; all if there is none
  ir::Stmt init = {};      // null if there is none
  ir::Stmt store = {};
  bool accumulates = false;  // whether the store's value loads the stored element
  // Of the store and of each load (by node), over `vars`.
  ir::Affine store_index = {};
  absl::flat_hash_map<ir::Expr, ir::Affine> load_index = {};
};

// None if the meaning has another form (a scalar instruction, a barrier).
std::optional<TensorPattern> MakeTensorPattern(const isa::Instruction& instruction,
                                               std::shared_ptr<ir::Context> context);

// The innermost store of a meaning or nest of that form, and whether an initialisation stands
// before it; a null store for other forms. Looks at statements only: cheap.
struct NestShape {
  ir::Stmt store;
  bool initialises = false;
};
NestShape ShapeOf(ir::Stmt root);
// The same for `first` followed by `second`.
NestShape ShapeOf(ir::Stmt first, ir::Stmt second);

// One loop of the program.
struct NestLoop {
  ir::Stmt loop;
  ir::Expr extent;         // i64, not negative
  bool backwards = false;  // runs from its last value to its first (InStoredOrder)
};

struct NestAccess {
  ir::Buffer buffer;
  ir::Expr index;                           // as in the program
  std::vector<ir::Expr> coefficients = {};  // i64, one per loop of the nest, never null
};

// A nest of the program. Loops of one iteration are left out.
struct TensorNest {
  ir::Stmt root = {};
  std::vector<NestLoop> loops = {};
  size_t outer_loops = 0;  // as in TensorPattern
  size_t max_around = 0;   // how many of the first loops contain all the others
  ir::Stmt init = {};
  ir::Stmt store = {};
  NestAccess target = {};
  absl::flat_hash_map<ir::Expr, NestAccess> loads = {};
  // The variables of the loops left out, and the only values they have.
  ir::VarMap single = {};
  // Element k says whether loop k and loop k + 1 run through all buffers without a gap, so that
  // they count as one loop.
  std::vector<bool> joinable = {};

  // Returns true if the store adds to what it overwrites (D[i] = D[i] + ..., max(D[i], ...)).
  bool accumulates() const;
};

// The nest whose outermost statement is `root`, or why it is none. The initialisation may stand in
// loops of its own before the loops of the update; the loops of the update that run over stored
// elements then count as outer ones, in which order they may stand. `analyzer` knows the facts
// around `root`; buffers must be one-dimensional.
std::optional<TensorNest> MakeTensorNest(ir::Stmt root, arith::Analyzer& analyzer,
                                         std::string& reason);

// The nest with loops from number `around` on sorted: first those that run over stored elements,
// then the others. An update of each element keeps its order. For nests that accumulate into
// distinct elements.
TensorNest SortLoops(const TensorNest& nest, size_t around, arith::Analyzer& analyzer);

// The nest with the loops from number `around` on in the order in which the stored elements lie in
// memory, the widest stride first, and loops with negative strides backwards. That changes nothing if
// each iteration stores an element of its own, and loads of that buffer are of this element alone. None
// if that is not so, or the strides are not constant, or the loops have this order already.
std::optional<TensorNest> InStoredOrder(const TensorNest& nest, size_t around,
                                        arith::Analyzer& analyzer);

}  // namespace polynao

#endif  // COMPILER_PASSES_TENSOR_PATTERN_H_
