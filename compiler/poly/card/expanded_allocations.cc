#include "compiler/poly/card/expanded_allocations.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

class Expander : public ir::Mutator {
 public:
  using ir::Mutator::Mutate;
  std::optional<Stmt> Run(Stmt s) {
    Stmt body = Mutate(s);
    if (expanded_.empty()) return std::nullopt;
    for (ir::Buffer buffer : expanded_) body = body.context().Allocate(buffer, body);
    return body;
  }

  Stmt Mutate(Stmt s) override {
    if (s.Is(StmtKind::kFor)) {
      loops_.push_back(s);
      const Stmt loop = MutateChildren(s);
      loops_.pop_back();
      return loop;
    }
    if (s.Is(StmtKind::kAllocate) && !loops_.empty() && Expand(s.buffer())) return Mutate(s.body());
    s = MutateChildren(s);
    if (!s.Is(StmtKind::kStore)) return s;
    const auto it = by_.find(s.buffer());
    if (it == by_.end()) return s;
    return s.context().Store(it->second.first, At(it->second.second, s.indices()), s.value());
  }
  Expr Mutate(Expr e) override {
    e = MutateOperands(e);
    if (!e.Is(ExprKind::kLoad)) return e;
    const auto it = by_.find(ir::Buffer(e.buffer()));
    if (it == by_.end()) return e;
    return e.context().Load(it->second.first, At(it->second.second, e.operands()));
  }

 private:
  static constexpr double kMostElements = 1 << 26;

  // Whether the buffer got a part for each iteration of the loops around it.
  bool Expand(ir::Buffer buffer) {
    ir::Context& c = *buffer->context;
    std::vector<Expr> extents, at;
    double elements = 1;
    for (const Stmt& loop : loops_) {
      const absl::StatusOr<int64_t> min = ir::EvaluateInt(loop.min(), {});
      const absl::StatusOr<int64_t> extent = ir::EvaluateInt(loop.extent(), {});
      if (!min.ok() || !extent.ok() || *extent < 1 || loop.for_kind() == ir::ForKind::kThread) {
        return false;
      }
      elements *= static_cast<double>(*extent);
      extents.push_back(c.Int(loop.var().type(), *extent));
      at.push_back(*min == 0 ? Expr(loop.var()) : loop.var() - *min);
    }
    for (Expr extent : buffer->extents) {
      const absl::StatusOr<int64_t> number = ir::EvaluateInt(extent, {});
      if (!number.ok()) return false;
      elements *= static_cast<double>(*number);
      extents.push_back(extent);
    }
    if (elements > kMostElements) return false;
    expanded_.push_back(c.NewBuffer(buffer->name, buffer->type, extents));
    by_[buffer] = {expanded_.back(), at};
    return true;
  }

  static std::vector<Expr> At(std::vector<Expr> at, absl::Span<const Expr> indices) {
    at.insert(at.end(), indices.begin(), indices.end());
    return at;
  }

  std::vector<Stmt> loops_;
  std::vector<ir::Buffer> expanded_;
  absl::flat_hash_map<ir::Buffer, std::pair<ir::Buffer, std::vector<Expr>>> by_;
};

}  // namespace

std::optional<Stmt> WithExpandedAllocations(Stmt s) { return Expander().Run(s); }

}  // namespace polynao::poly
