#include "compiler/poly/card/shared_loops.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/math.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/isl/isl_tools.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/model/scop.h"
#include "isa/levels.h"

namespace polynao::poly {
namespace {

using ir::Expr;
using ir::Stmt;
using ir::StmtKind;

class Sharer {
 public:
  Sharer(const isa::Machine& machine, const Scop& scop) : machine_(machine) {
    for (const Statement& statement : scop.statements) statements_[statement.name] = &statement;
    const Dependences dependences = ComputeDependences(scop);
    // Updates of one element may swap, but not run at the same time; and all cores share what is private.
    dependences_ = MapsOf(dependences.All().unite(dependences.reduction));
  }

  bool has_shared() const { return has_shared_; }

  Stmt Share(Stmt s) {
    ir::Context& c = s.context();
    const bool is_loop = s.Is(StmtKind::kFor) && s.for_kind() != ir::ForKind::kThread;
    const absl::StatusOr<int64_t> min =
        is_loop ? ir::EvaluateInt(s.min(), {}) : absl::InvalidArgumentError("no loop");
    const absl::StatusOr<int64_t> extent =
        is_loop ? ir::EvaluateInt(s.extent(), {}) : absl::InvalidArgumentError("no loop");
    if (!min.ok() || !extent.ok() || *extent < 2 || !IsParallel(s.var())) {
      return OnCores(s, c, 1, 1, c.NewVar("cid", ir::Type::kI32), c.NewVar("tid", ir::Type::kI32));
    }
    has_shared_ = true;
    const ir::Type type = s.var().type();
    const ir::Var cluster = c.NewVar("cid", type), core = c.NewVar("tid", type);
    const int64_t clusters = machine_.clusters(), cores = machine_.cores_per_cluster();
    const int64_t part = CeilDiv(*extent, clusters * cores);
    const Expr first = (cluster * cores + core) * part;
    const ir::Var own = c.NewVar(s.var().name(), type);
    const Stmt body = ir::Substitute(s.body(), {{s.var(), first + own + *min}});
    const Expr rest = c.Int(type, *extent) - first;
    const Expr count = c.Binary(ir::ExprKind::kMin, c.Int(type, part), rest);
    return OnCores(c.For(own, c.Int(type, 0), count, body), c, clusters, cores, cluster, core);
  }

 private:
  static Stmt OnCores(Stmt s, ir::Context& c, int64_t clusters, int64_t cores, ir::Var cluster,
                      ir::Var core) {
    const ir::Type type = cluster.type();
    const auto thread = [&](ir::Var var, int64_t extent, Stmt body, std::string_view axis) {
      return c.For(var, c.Int(type, 0), c.Int(type, extent), body, ir::ForKind::kThread, axis);
    };
    return thread(cluster, clusters, thread(core, cores, s, isa::kCoreAxis), isa::kClusterAxis);
  }

  // Whether no dependence leads from one iteration of this outermost loop to another one.
  bool IsParallel(const ir::Var& var) const {
    const auto is_inside = [&](const std::string& name) {
      const std::vector<ir::Var>& iterators = statements_.at(name)->iterators;
      return !iterators.empty() && iterators[0] == var;
    };
    bool has_statements = false;
    for (const auto& [name, statement] : statements_) has_statements |= is_inside(name);
    if (!has_statements) return false;
    for (const isl::map& pairs : dependences_) {
      if (!is_inside(DomainName(pairs)) || !is_inside(RangeName(pairs))) continue;
      const isl::map same =
          isl::manage(isl_map_equate(pairs.copy(), isl_dim_in, 0, isl_dim_out, 0));
      if (!pairs.is_subset(same)) return false;
    }
    return true;
  }

  const isa::Machine& machine_;
  std::map<std::string, const Statement*> statements_;
  std::vector<isl::map> dependences_;
  bool has_shared_ = false;
};

}  // namespace

ir::Function ShareLoops(const ir::Function& function, const isa::Machine& machine) {
  const absl::StatusOr<Extraction> extraction = Extract(function);
  if (!extraction.ok()) return function;
  const auto peel = [](Stmt body, std::vector<ir::Buffer>* allocations) {
    for (; body.Is(StmtKind::kAllocate); body = body.body()) {
      if (allocations != nullptr) allocations->push_back(body.buffer());
    }
    return body;
  };
  std::vector<ir::Buffer> allocations;
  const Stmt body = peel(function.body, &allocations);
  if (extraction->scops.size() != 1 ||
      peel(extraction->skeleton, nullptr) != extraction->scops[0].place) {
    return function;
  }
  const Scop& scop = extraction->scops[0];
  const absl::StatusOr<Stmt> shared = Guarded(*scop.isl, [&]() -> absl::StatusOr<Stmt> {
    if (!scop.context.is_subset(scop.assumed)) return body;
    Sharer sharer(machine, scop);
    std::vector<Stmt> stmts;
    if (body.Is(StmtKind::kSeq)) {
      for (Stmt child : body.children()) stmts.push_back(sharer.Share(child));
    } else {
      stmts.push_back(sharer.Share(body));
    }
    return sharer.has_shared() ? body.context().Seq(stmts) : body;
  });
  if (!shared.ok()) return function;
  ir::Function result = function;
  result.body = *shared;
  for (auto it = allocations.rbegin(); it != allocations.rend(); ++it) {
    result.body = body.context().Allocate(*it, result.body);
  }
  return result;
}

}  // namespace polynao::poly
