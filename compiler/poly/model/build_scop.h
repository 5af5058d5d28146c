// Builds one static control part from statements (extract.h has the rules).
#ifndef COMPILER_POLY_MODEL_BUILD_SCOP_H_
#define COMPILER_POLY_MODEL_BUILD_SCOP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/model/affine.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// One part. `outer` are the variables bound around it.
class ScopBuilder {
 public:
  ScopBuilder(const ir::Function& function, const absl::flat_hash_set<ir::Var>& outer,
              const ir::Aliases& aliases, unsigned long max_operations,
              std::vector<Remark>* remarks);

  const IslContext& isl() const { return *isl_; }

  // Nothing if there is no statement. `asserts`: conditions on outer variables that hold. Throws isl::exception.
  std::optional<Scop> Build(const std::vector<ir::Stmt>& roots,
                            const std::vector<ir::Expr>& asserts);

 private:
  using Tree = std::optional<isl::schedule>;  // nothing: no statement below

  Tree Process(ir::Stmt s);
  Tree ProcessSeq(ir::Stmt s);
  Tree ProcessFor(ir::Stmt s);
  Tree ProcessIf(ir::Stmt s);
  Tree ProcessLet(ir::Stmt s);
  Tree ProcessAllocate(ir::Stmt s);
  // The greatest value of `value` at the place, over outer variables; 0 if the place is never reached. Nothing if it
  // has many cases.
  std::optional<ir::Expr> Greatest(const isl::pw_aff& value, ir::Context& context);
  Tree Branch(const isl::set& holds, ir::Stmt s);
  Tree Guarded(ir::Expr condition, ir::Stmt s);
  Tree Opaque(ir::Stmt s, std::string_view effect);
  Tree Leaf(ir::Stmt code, bool is_opaque);
  Tree Sequence(Tree first, Tree second);

  // `e` with what the lets around give.
  ir::Expr Resolve(ir::Expr e) const { return ir::Substitute(e, lets_); }
  void AddAccesses(ir::Stmt s, bool certain, Statement* statement);
  void AddLoads(ir::Expr e, bool certain, Statement* statement);
  void AddAccess(ir::Buffer buffer, absl::Span<const ir::Expr> indices, bool is_write, bool certain,
                 Statement* statement);
  isl::map IndexMap(ir::Expr index, ir::Expr extent, bool* is_exact);
  // Affine functions that an integer is never below, and never above, whatever memory holds: max(col[k], i + 1) is at
  // least i + 1.
  struct Bounds {
    std::vector<isl::pw_aff> least, greatest;
  };
  Bounds BoundsOf(ir::Expr e);
  // Returns true if no + - * in the value of a let wraps, so that it has these bounds where the variable stands.
  bool IsExactLet(ir::Expr value);
  std::string ArrayName(ir::Buffer buffer);
  std::optional<Reduction> FindReduction(ir::Stmt store, const Statement& statement) const;
  // Returns true if a store in `s` may change what `e` loads.
  bool Stores(ir::Stmt s, ir::Expr e) const;
  void Say(ir::Stmt place, std::string_view effect);

  const ir::Function& function_;
  const ir::Aliases& aliases_;
  std::vector<Remark>* const remarks_;
  const unsigned long max_operations_;
  const std::shared_ptr<IslContext> isl_;  // outlives the objects below
  Scop scop_;
  AffineBuilder affine_;
  isl::set domain_;  // { [i, j] : ... }: the loops around
  ir::VarMap lets_;
  std::vector<ir::Expr> guards_;  // conditions around that are not affine
  std::vector<std::pair<ir::Buffer, std::string>> array_names_;
  absl::flat_hash_set<ir::Buffer> inside_;  // allocated inside of an opaque statement: its own
  ir::VarMap inside_lets_;                  // of the opaque statement: what BoundsOf knows of them
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_MODEL_BUILD_SCOP_H_
