// A marked loop nest with guards around its stores, taken apart: the analysed facts that preprocess
// plans with. Nothing here changes the program.
#ifndef COMPILER_PASSES_GUARDED_NEST_H_
#define COMPILER_PASSES_GUARDED_NEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear_form.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/instruction_layout.h"

namespace polynao {

// A condition around a store.
struct Guard {
  ir::Expr condition;
  // The condition holds if and only if all forms are >= 0. Empty: the condition is not affine.
  std::vector<arith::LinearForm> forms;
  std::vector<ir::Var> vars;  // the nest's loops that occur in the condition
  bool on_all = true;         // stands around every store of the nest
  bool is_inside = false;     // a condition of the select under "pad", not an if
};

struct GuardedLoop {
  ir::Stmt loop;
  ir::Expr min;
  ir::Expr extent;
};

// A store with the loops and ifs of its nest that stand around it.
struct GuardedStore {
  ir::Stmt store;
  std::vector<ir::Stmt> loops;
  std::vector<ir::Expr> conditions;
};

// An index that exceeds its buffer's extent in some iterations if no guard holds.
struct ExtentNeed {
  ir::Buffer buffer;
  size_t dimension;
  int64_t extent;  // that would be enough
};

// The guards give these bounds of the nest's loops, where the nest stands.
struct GuardBounds {
  // Of a copy or padding, whose guards become bounds.
  std::vector<bool> in_bounds;     // by guard: `loops` express it
  std::vector<ir::Expr> outside;   // by guard: it holds no loop and goes around the nest; or null
  std::vector<GuardedLoop> loops;  // with the guards in their bounds
  std::vector<bool>
      may_be_empty;       // by loop: it may have no iteration, though the original has some
  ir::Expr some_outside;  // padding: some element is not inside
  // Of a nest that reduces, by guard: the iterations of the outermost loop that the guard leaves,
  // if it bounds that loop alone and leaves at least one; or null.
  std::vector<ir::Expr> fewer;
};

struct GuardedNest {
  ir::Stmt pragma;
  const InstructionFamily* family = nullptr;  // null: "pad"
  // One store, or an initialisation and an update of the same element.
  std::vector<GuardedStore> stores;
  size_t shared_loops = 0;  // the loops around all stores
  // The shared loops, then the last store's own; narrowed by guards that bound one loop by
  // constants.
  std::vector<GuardedLoop> loops;
  std::vector<Guard> guards;  // without those that `loops` express and those that always hold
  std::vector<ExtentNeed> needs;
  bool stays_inside =
      true;          // without the guards, all indices are inside their buffers or in `needs`
  int64_t used = 0;  // one more than the largest innermost index stored to
  // Under "pad".
  ir::Expr inside_value;     // null: nothing is inside
  ir::Expr fill_value;       // null: there is no select
  bool is_diagonal = false;  // a loop is gone, whose values are those of another one inside
  GuardBounds bounds;

  bool IsPad() const { return family == nullptr; }
  bool IsCopy() const { return family != nullptr && family->copies; }
  bool IsComputing() const { return !IsPad() && !IsCopy(); }
};

struct NestContext {
  arith::Analyzer& analyzer;        // knows the facts around the nest
  const InstructionFamily* family;  // of the pragma's key; null: "pad"
  const InstructionFamily*
      fill_family;  // "fill", which padding without an inside becomes; may be null
  absl::FunctionRef<bool(ir::Buffer)> is_allocated;  // on chip, around the nest
};

// The nest under `pragma`; none, with the reason in `why`, if it is not a perfect nest over one
// store or over an initialisation and an update. Binds the nest's loops in the analyzer's open
// scope.
std::optional<GuardedNest> ParseGuardedNest(ir::Stmt pragma, const NestContext& context,
                                            std::string& why);

// Binds the loops of `nest` in the analyzer's open scope.
void BindLoops(const GuardedNest& nest, arith::Analyzer& analyzer);

// The loop over `var`; null if it is none of the nest's.
const GuardedLoop* LoopOf(const GuardedNest& nest, ir::Var var);

// An index that is one loop of the nest plus a value that does not change in the nest: var + base.
struct ChannelIndex {
  ir::Var var;  // null: base alone
  ir::Expr base;
};
// `index` in that form; none if it has another.
std::optional<ChannelIndex> FindChannel(const GuardedNest& nest, ir::Expr index,
                                        arith::Analyzer& analyzer);

// Returns true if `var` occurs in an atom of `form`.
bool UsesVar(const arith::LinearForm& form, ir::Var var);

}  // namespace polynao

#endif  // COMPILER_PASSES_GUARDED_NEST_H_
