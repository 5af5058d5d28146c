// Which expressions cse binds, and where: the half of the pass that only reads the program.
#ifndef COMPILER_PASSES_CSE_PLAN_H_
#define COMPILER_PASSES_CSE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "compiler/ir/expr_map.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/cse.h"

namespace polynao::cse {

// A place where expressions are evaluated, or a group of such places.
struct Node {
  enum Kind : uint8_t {
    kBlock,   // items in order
    kItem,    // one statement, before its inner blocks; a variable can be bound in front of it
    kSide,    // an expression that is evaluated only sometimes; can be wrapped into a let
    kMaybe,   // one child, evaluated or not: a loop's body, the right side of && and ||
    kChoice,  // two children, of which exactly one is evaluated: branches, sides of a select
    kOnce,    // one child, evaluated: the body of a let inside an expression, a side by itself
  };
  Kind kind;
  int parent = -1;
  int depth = 0;
  int item = -1;     // the item that this is in, or is
  int64_t time = 0;  // of the walk
  // kMaybe, kChoice, kOnce: how many times the expression that it belongs to stands at the parent.
  int64_t times = 1;
  // This is true if `times` of this or of a node around it is more than one.
  bool is_multiplied = false;
  ir::Expr var = {};  // kOnce: what the let binds
};

// A statement in a block. A let or an allocation is an item of its own if all that follows in the
// block is its body.
struct Item {
  ir::Stmt stmt;
  int node;
  bool is_header;
  std::vector<int> blocks;  // numbers of inner blocks: body; then and else
};

struct Block {
  ir::Stmt stmt;
  int node;
  std::vector<Item> items;
};

// Expression e is evaluated at `node`.
struct Use {
  int node;
  int64_t count;  // how many times it stands there
  bool strict;    // whether an element never stored in it would stop the program
  int binding = -1;
  ir::Expr result = {};
};
using Uses = absl::InlinedVector<Use, 2>;

struct ExprInfo {
  int64_t size = 1;     // operators and operands
  bool is_left = true;  // all of its operations are left to the compiler behind this one
  bool loads_allocation = false;
  bool is_candidate = false;  // it may be bound
  // Variables of lets inside expressions that it is to be evaluated in the bodies of.
  absl::InlinedVector<ir::Expr, 1> let_vars = {};
};

struct Binding {
  int expr;          // number of the bound expression
  int node;          // kItem: before it. kSide: around it
  int64_t uses;      // occurrences that it replaces
  bool is_existing;  // the item is `let var = expr`
  ir::Expr var = {};
  ir::Expr value = {};
};

// Names of new variables are this and a number.
inline constexpr std::string_view kNameStem = "cse_var_";

// Blocks, expressions and bindings refer to one another by their numbers in these lists.
struct CsePlan {
  std::vector<Node> nodes;
  std::vector<Block> blocks;  // the first one is the function's body
  absl::flat_hash_map<int, ir::Stmt> let_of_item;
  // The sides of expression e at a node: the first; the second has the next number.
  absl::flat_hash_map<std::pair<int, int>, int> sides;

  // Expressions, operands before users, and where they are evaluated.
  std::vector<ir::Expr> exprs;
  ir::ExprMap<int> numbers;
  std::vector<ExprInfo> infos;
  std::vector<Uses> uses;
  // Lets inside expressions, by number of their values.
  absl::flat_hash_map<int, std::vector<int>> lets_of_value;

  std::vector<Binding> bindings;
  absl::flat_hash_map<int, std::vector<int>> bindings_of;  // by expression
  absl::flat_hash_map<int, std::vector<int>> bindings_at;  // by node
  // Variables in extents of allocations, bounds of thread loops and operands of pragmas.
  absl::flat_hash_set<ir::Expr> kept_vars;
  absl::flat_hash_set<int> refused;  // expressions that may not be evaluated at some place
  int64_t last_name = 0;             // the highest number after kNameStem in the function

  // The place of operand `i` of expression e, where e is evaluated at `node`.
  int OperandNode(int e, size_t i, int node) const;
  // The numbers of the bindings of expression e.
  absl::Span<const int> BindingsOf(int e) const;
};

CsePlan MakePlan(const ir::Function& function, const CseOptions& options);

}  // namespace polynao::cse

#endif  // COMPILER_PASSES_CSE_PLAN_H_
