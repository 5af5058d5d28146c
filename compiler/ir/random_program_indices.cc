// Integers of known range, and the indices that are made of them.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/random_program_generator.h"

namespace polynao::ir::random_program {
namespace {

// Ranged integers stay within this, so that sums and products of two of them fit in an i32.
constexpr int64_t kMaxRange = 1 << 14;

}  // namespace

Generator::Ranged Generator::RandomRanged(Type type, int depth) {
  if (const Ranged* again =
          Repeated(made_.ranged, [&](const Ranged& r) { return r.e.type() == type; })) {
    return *again;
  }
  const Ranged ranged = NewRanged(type, depth);
  if (options_.repetition > 0 && !ranged.e.operands().empty()) made_.ranged.push_back(ranged);
  return ranged;
}

Generator::Ranged Generator::NewRanged(Type type, int depth) {
  if (depth <= 0 || random_.Percent(30)) {
    if (!edge_vars_.empty() && random_.Percent(30)) {
      const EdgeVar& v = random_.Pick(edge_vars_);
      const Expr e = v.var - v.first;
      return {e.type() == type ? e : CastTo(type, e), 0, v.count - 1};
    }
    if (options_.edges && random_.Percent(15)) {
      if (const auto scalar = ClampedScalar(type)) return *scalar;
    }
    if (!ints_.empty() && random_.Percent(75)) {
      const IntVar& v = random_.Pick(ints_);
      const Expr e = v.var.type() == type ? v.var : CastTo(type, v.var);
      return {e, v.low, v.high};
    }
    const int64_t value = random_.Between(-4, 9);
    return {c_.Int(type, value), value, value};
  }
  const Ranged a = RandomRanged(type, depth - 1);
  const int64_t k = random_.Between(1, 8);
  const Expr k_expr = c_.Int(type, k);
  switch (random_.Between(0, 9)) {
    case 0:
    case 1:
    case 2: {
      const Ranged b = RandomRanged(type, depth - 1);
      if (random_.Percent(60)) return Checked({a.e + b.e, a.low + b.low, a.high + b.high}, a);
      return Checked({a.e - b.e, a.low - b.high, a.high - b.low}, a);
    }
    case 3:
    case 4:
      return Checked({a.e * k_expr, a.low * k, a.high * k}, a);
    case 5:
      return {a.e / k_expr, FloorDiv(a.low, k), FloorDiv(a.high, k)};
    case 6:
      if (random_.Percent(15)) return {a.e & k_expr, 0, k};
      if (random_.Percent(10)) {
        const int64_t places = random_.Between(0, 9);
        return {a.e >> c_.Int(type, places), a.low >> places, a.high >> places};
      }
      if (random_.Percent(20)) return {a.e % c_.Int(type, -k), 1 - k, 0};
      return {a.e % k_expr, 0, k - 1};
    case 7: {
      const Ranged b = RandomRanged(type, depth - 1);
      return {Min(a.e, b.e), std::min(a.low, b.low), std::min(a.high, b.high)};
    }
    case 8: {
      const Ranged b = RandomRanged(type, depth - 1);
      return {Max(a.e, b.e), std::max(a.low, b.low), std::max(a.high, b.high)};
    }
    default: {
      const Ranged b = RandomRanged(type, depth - 1);
      const Expr condition = RandomCondition(depth - 1);
      return {c_.Select(condition, a.e, b.e), std::min(a.low, b.low), std::max(a.high, b.high)};
    }
  }
}

Generator::Ranged Generator::Checked(Ranged result, Ranged otherwise) {
  return result.low < -kMaxRange || result.high > kMaxRange ? otherwise : result;
}

Generator::Index Generator::RandomIndex(Expr extent) {
  // A loop variable that runs over just this extent.
  if (random_.Percent(60)) {
    std::vector<Expr> fitting;
    for (const IntVar& v : ints_) {
      const bool in_constant = extent.Is(ExprKind::kIntImm) && v.high < extent.int_value();
      if (v.low >= 0 && (in_constant || (v.below && v.below == extent))) fitting.push_back(v.var);
    }
    if (!fitting.empty()) return {random_.Pick(fitting), {}};
  }
  const Type type = random_.Percent(80) ? Type::kI32 : Type::kI64;
  const Ranged r = RandomRanged(type, 2);
  if (options_.may_stop && random_.Percent(15)) return {r.e, {}};
  if (extent.Is(ExprKind::kIntImm) && extent.int_value() > 0) {
    const int64_t size = extent.int_value();
    if (r.low >= 0 && r.high < size) return {r.e, {}};
    switch (random_.Between(0, 4)) {
      case 0:
        return {r.e % c_.Int(type, size), {}};
      case 1:
        if (options_.edges && random_.Percent(30)) {
          return {ClampedQuotient(type, 0, size - 1).e, {}};
        }
        return {Max(Min(r.e, c_.Int(type, size - 1)), c_.Int(type, 0)), {}};
      case 2:
        return {c_.Int(type, random_.Between(0, size - 1)), {}};
      case 3:
        if (std::optional<Expr> load = RandomLoad(type, 0)) return {*load % c_.Int(type, size), {}};
        break;
      default:
        break;
    }
  }
  const Expr limit = extent.type() == type ? extent : CastTo(type, extent);
  return {r.e, And(c_.Int(type, 0) <= r.e, r.e < limit)};
}

std::pair<std::vector<Expr>, Expr> Generator::RandomIndices(const BufferState& state) {
  std::vector<Expr> indices;
  Expr guard;
  // By value: making an index may not add buffers, but keeps this robust against it.
  const std::vector<Expr> extents = state.buffer->extents;
  const std::vector<Var> pins = state.pins;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (pins[d]) {
      indices.push_back(pins[d]);
      continue;
    }
    const Index index = RandomIndex(extents[d]);
    indices.push_back(index.e);
    if (index.guard) guard = guard ? And(guard, index.guard) : index.guard;
  }
  return {indices, guard};
}

}  // namespace polynao::ir::random_program
