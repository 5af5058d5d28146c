#include "compiler/poly/card/scalar_stage.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/math.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "isa/levels.h"

namespace polynao::poly {

using ir::Expr;
using ir::Stmt;

namespace {

// Indices of one type, by which elements' numbers are computed.
class IndexCaster : public ir::Mutator {
 public:
  using ir::Mutator::Mutate;
  explicit IndexCaster(ir::Type type) : type_(type) {}
  Expr Mutate(Expr e) override {
    e = MutateOperands(e);
    return e.Is(ir::ExprKind::kLoad) ? e.context().Load(ir::Buffer(e.buffer()), Cast(e.operands()))
                                     : e;
  }
  Stmt Mutate(Stmt s) override {
    s = MutateChildren(s);
    if (!s.Is(ir::StmtKind::kStore)) return s;
    return s.context().Store(s.buffer(), Cast(s.indices()), s.value());
  }

 private:
  std::vector<Expr> Cast(absl::Span<const Expr> indices) const {
    std::vector<Expr> result;
    for (Expr e : indices) {
      result.push_back(e.type() == type_ ? e : e.context().Cast(type_, e));
    }
    return result;
  }
  const ir::Type type_;
};

}  // namespace

ScalarLoops ScalarLoopsOf(const NestStage& stage, ir::Type index_type, const isa::Machine& machine,
                          ir::Context& c) {
  std::vector<Expr> at;
  for (size_t d = 0; d < stage.axes.size(); ++d) {
    at.push_back(stage.low[d] == 0 ? Expr(stage.axes[d]) : stage.axes[d] + stage.low[d]);
  }
  const ir::Type type = stage.target->type;
  Stmt body = c.Store(stage.target, at, stage.value ? stage.value : c.Const(type, 0));
  double count = 1;
  if (stage.reduction) {
    const Expr own = c.Load(stage.target, at);
    Stmt update = c.Store(stage.target, at, c.Binary(*stage.reduction, own, stage.element));
    for (size_t r = stage.ranges.size(); r-- > 0;) {
      const NestStage::ReduceRange& range = stage.ranges[r];
      const ir::Type index = range.var.type();
      update = c.For(range.var, c.Int(index, range.min), c.Int(index, range.extent), update);
      count *= static_cast<double>(range.extent);
    }
    body = c.Seq({body, update});
  }
  body = IndexCaster(index_type).Mutate(body);
  const auto longest = std::max_element(stage.extents.begin(), stage.extents.end());
  const int64_t clusters = machine.clusters(), cores = machine.cores_per_cluster();
  const ir::Var cluster = c.NewVar("cid", index_type), core = c.NewVar("tid", index_type);
  for (size_t d = stage.axes.size(); d-- > 0;) {
    const ir::Var& axis = stage.axes[d];
    const Expr zero = c.Int(axis.type(), 0);
    if (stage.extents.begin() + static_cast<ptrdiff_t>(d) != longest) {
      body = c.For(axis, zero, c.Int(axis.type(), stage.extents[d]), body);
      count *= static_cast<double>(stage.extents[d]);
      continue;
    }
    const int64_t part = CeilDiv(*longest, clusters * cores);
    const Expr number = cluster * cores + core;
    const Expr first = (axis.type() == index_type ? number : c.Cast(axis.type(), number)) * part;
    const ir::Var own = c.NewVar(axis.name(), axis.type());
    body = ir::Substitute(body, {{axis, first + own}});
    const Expr rest = c.Int(axis.type(), *longest) - first;
    body = c.For(own, zero, ir::Min(c.Int(axis.type(), part), rest), body);
    count *= static_cast<double>(part);
  }
  // An array without dimensions has one element, which one core stores.
  const bool is_shared = longest != stage.extents.end() && *longest > 1;
  const auto thread = [&](ir::Var var, int64_t extent, Stmt s, std::string_view axis) {
    return c.For(var, c.Int(index_type, 0), c.Int(index_type, is_shared ? extent : 1), s,
                 ir::ForKind::kThread, axis);
  };
  int accesses = 1;
  for (Expr e : {stage.value, stage.element}) {
    if (!e) continue;
    ir::ForEachExpr(e, [&](Expr part) { accesses += part.Is(ir::ExprKind::kLoad); });
  }
  constexpr double kAccess = 300;
  return {.body = thread(cluster, clusters, thread(core, cores, body, isa::kCoreAxis),
                         isa::kClusterAxis),
          .cycles = kAccess * accesses * count};
}

}  // namespace polynao::poly
