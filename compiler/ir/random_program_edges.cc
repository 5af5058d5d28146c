// What is at the ends of types, or depends on scalar parameters: RandomProgramOptions::edges.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/random_program_generator.h"
#include "compiler/ir/visit.h"

namespace polynao::ir {
namespace random_program {
namespace {

// Values that fit the type from a `start` on.
constexpr int64_t kRoom = 16;
constexpr std::string_view kCount = "count", kStart = "start", kAny = "any";

constexpr Type kLoopTypes[] = {Type::kI8, Type::kI16, Type::kI32, Type::kI64,
                               Type::kU8, Type::kU16, Type::kU32};

}  // namespace

int64_t EdgeInt(Random& random, Type type) {
  const int64_t low = LeastInt(type);
  const int64_t high = GreatestInt(type);
  return random.OneOf<int64_t>({low, low + 1, high, high - 1, 0, 1, -1});
}

Type Generator::AnyLoopType() {
  Type type = random_.Pick(kLoopTypes);
  while (!IsWanted(type)) type = random_.Pick(kLoopTypes);
  return type;
}

void Generator::AddEdgeScalars(Function& f) {
  for (auto& [stem, list] :
       {std::pair(kCount, &counts_), std::pair(kStart, &starts_), std::pair(kAny, &anys_)}) {
    const int64_t number = random_.Between(0, 2);
    for (int64_t i = 0; i < number; ++i) {
      list->push_back(c_.NewVar(StrCat(stem, i), AnyLoopType()));
      f.params.emplace_back().var = list->back();
    }
  }
}

std::optional<Generator::Ranged> Generator::ClampedScalar(Type type) {
  std::vector<Var> all = counts_;
  all.insert(all.end(), anys_.begin(), anys_.end());
  if (all.empty()) return std::nullopt;
  const Var v = random_.Pick(all);
  const int64_t low = IsUnsigned(v.type()) ? 0 : random_.Between(-4, 0);
  const bool is_count = std::find(counts_.begin(), counts_.end(), v) != counts_.end();
  const int64_t high = is_count ? kMaxRandomSize : random_.Between(1, 9);
  Expr e = v;
  if (!is_count) e = Min(e, c_.Int(v.type(), high));
  if (!IsUnsigned(v.type())) e = Max(e, c_.Int(v.type(), low));
  return Ranged{v.type() == type ? e : CastTo(type, e), low, high};
}

Generator::Ranged Generator::ClampedQuotient(Type type, int64_t low, int64_t high) {
  const Expr quotient = RandomLeaf(type) / c_.Int(type, -1);
  return {Max(Min(quotient, c_.Int(type, high)), c_.Int(type, low)), low, high};
}

Expr Generator::EdgeComparison() {
  std::vector<Expr> all;
  for (const EdgeVar& v : edge_vars_) all.insert(all.end(), 3, v.var);
  for (const auto* list : {&counts_, &starts_, &anys_}) {
    all.insert(all.end(), list->begin(), list->end());
  }
  for (const IntVar& v : ints_) all.push_back(v.var);
  const Expr x = all.empty() ? RandomLeaf(Type::kI32) : random_.Pick(all);
  return EdgeComparison(x, all);
}

Expr Generator::EdgeComparison(Expr x, const std::vector<Expr>& others) {
  const Type type = x.type();
  Expr y;
  switch (random_.Between(0, 4)) {
    case 0: {
      std::vector<Expr> same;
      for (Expr other : others) {
        if (other.type() == type && other != x) same.push_back(other);
      }
      if (!same.empty()) y = random_.Pick(same);
      break;
    }
    case 1:
      y = RandomLeaf(type) / c_.Int(type, -1);
      break;
    case 2:
      y = c_.Int(type, EdgeInt(random_, type));
      break;
    default:
      for (const EdgeVar& v : edge_vars_) {
        if (v.var != x || !v.first.Is(ExprKind::kIntImm)) continue;
        const int64_t least = v.first.int_value() == LeastInt(type) ? 0 : -1;
        const int64_t most =
            GreatestInt(type) - v.first.int_value() <= v.count ? v.count - 1 : v.count + 1;
        y = c_.Int(type, v.first.int_value() + random_.Between(least, most));
      }
      break;
  }
  if (!y) y = c_.Int(type, random_.Between(0, 8));
  const ExprKind kind =
      random_.OneOf({ExprKind::kEq, ExprKind::kNe, ExprKind::kLt, ExprKind::kLt, ExprKind::kLe});
  return random_.Percent(50) ? c_.Binary(kind, x, y) : c_.Binary(kind, y, x);
}

Generator::EdgeBounds Generator::AnyEdgeBounds() {
  EdgeBounds b = {.type = AnyLoopType(), .count = random_.Between(1, 6)};
  switch (random_.Between(0, 6)) {
    case 0:
      b.min = c_.Int(b.type, LeastInt(b.type));
      break;
    case 1:
      if (counts_.empty()) break;
      b.extent = random_.Pick(counts_);
      b.type = b.extent.type();
      b.count = kMaxRandomSize;
      b.min =
          c_.Int(b.type, random_.Percent(60) ? 0 : random_.Between(IsUnsigned(b.type) ? 0 : -3, 3));
      b.small = IntVar{.var = {},
                       .low = b.min.int_value(),
                       .high = b.min.int_value() + b.count - 1,
                       .below = b.min.IsInt(0) ? b.extent : Expr()};
      break;
    case 2:
      if (starts_.empty()) break;
      b.min = random_.Pick(starts_);
      b.type = b.min.type();
      for (Var v : counts_) {
        if (v.type() != b.type || random_.Percent(50)) continue;
        b.extent = v;
        b.count = kMaxRandomSize;
      }
      break;
    case 3:
      if (anys_.empty()) break;
      b.min = random_.Pick(anys_);
      b.type = b.min.type();
      b.min = Min(b.min, c_.Int(b.type, GreatestInt(b.type) - b.count + 1));
      break;
    case 4:
      if (anys_.empty()) break;
      b.extent = random_.Pick(anys_);
      b.type = b.extent.type();
      b.extent = Min(b.extent, c_.Int(b.type, b.count));
      b.min = c_.Int(b.type, 0);
      b.small = IntVar{.var = {}, .low = 0, .high = b.count - 1, .below = b.extent};
      break;
    case 5:
      if (b.type != Type::kI8 && b.type != Type::kU8) break;
      b.count = GreatestInt(b.type);
      b.min = c_.Int(b.type, LeastInt(b.type));
      b.small = IntVar{
          .var = {}, .low = LeastInt(b.type), .high = LeastInt(b.type) + b.count - 1, .below = {}};
      break;
    default:
      break;
  }
  // Up to the greatest value.
  if (!b.min) b.min = c_.Int(b.type, GreatestInt(b.type) - b.count + 1);
  if (!b.extent) b.extent = c_.Int(b.type, b.count);
  return b;
}

Stmt Generator::EdgeLoopBody(Var var, int depth) {
  std::vector<Expr> others;
  for (const auto* list : {&counts_, &starts_, &anys_}) {
    others.insert(others.end(), list->begin(), list->end());
  }
  std::vector<Stmt> body;
  if (random_.Percent(60)) {
    const Expr condition = EdgeComparison(var, others);
    const Stmt then_case = Statement(depth - 1);
    body.push_back(
        c_.If(condition, then_case, random_.Percent(60) ? Statement(depth - 1) : Stmt()));
  }
  if (body.empty() || random_.Percent(30)) body.push_back(Statement(depth - 1));
  return c_.Seq(body);
}

Stmt Generator::EdgeLoop(int depth) {
  EdgeBounds bounds = AnyEdgeBounds();
  if (iterations_ * bounds.count > options_.max_iterations) return Statement(depth - 1);
  const ForKind kind = options_.loop_kinds
                           ? random_.OneOf({ForKind::kSerial, ForKind::kSerial, ForKind::kSerial,
                                            ForKind::kUnroll, ForKind::kVectorize})
                           : ForKind::kSerial;
  const Var var = c_.NewVar(Name("i"), bounds.type);
  iterations_ *= bounds.count;
  const MadeScope scope(*this);
  if (bounds.small) {
    bounds.small->var = var;
    ints_.push_back(*bounds.small);
  } else {
    edge_vars_.push_back({var, bounds.min, bounds.count});
  }
  const Stmt body = EdgeLoopBody(var, depth);
  if (bounds.small) {
    ints_.pop_back();
  } else {
    edge_vars_.pop_back();
  }
  iterations_ /= bounds.count;
  return c_.For(var, bounds.min, bounds.extent, body, kind);
}

Expr Generator::LocalExtent() {
  std::vector<const IntVar*> fitting;
  for (const IntVar& v : ints_) {
    if (v.low >= 0 && v.high <= kMaxLocalExtent - 2) fitting.push_back(&v);
  }
  Expr extent;
  if (!fitting.empty() && random_.Percent(70)) {
    const Var v = random_.Pick(fitting)->var;
    extent = v + random_.Between(0, 2);
  } else if (random_.Percent(30)) {
    extent = ClampedQuotient(random_.OneOf({Type::kI32, Type::kI64}), 0, 5).e;
  } else if (const auto scalar = ClampedScalar(Type::kI32)) {
    extent = Max(scalar->e, c_.I32(0));
  }
  if (!extent) return Expr();
  // Indices are guarded by the extent's text, which must not mean another value once the body has stored.
  bool loads = false;
  ForEachExpr(extent, [&](Expr e) { loads |= e.Is(ExprKind::kLoad) || e.Is(ExprKind::kCall); });
  if (loads) return Expr();
  local_extents_.push_back(extent);
  return extent;
}

}  // namespace random_program

std::map<std::string, Argument> EdgeScalars(const Function& function, uint64_t seed) {
  using namespace random_program;  // NOLINT(google-build-using-namespace)
  Random random(seed);
  std::map<std::string, Argument> scalars;
  for (const Param& param : function.params) {
    if (!param.var || !IsIndexable(param.var.type())) continue;
    const Type type = param.var.type();
    const int64_t low = LeastInt(type);
    int64_t high = GreatestInt(type);
    const std::string_view name = param.name();
    const bool is_count = name.starts_with(kCount);
    if (is_count) high = kMaxRandomSize;
    if (name.starts_with(kStart)) high -= kRoom;
    if (!is_count && !name.starts_with(kStart) && !name.starts_with(kAny)) continue;
    int64_t value = random.Between(0, kMaxRandomSize);
    if (random.Percent(60)) {
      value = random.OneOf<int64_t>({low, low + 1, low + random.Between(2, 20), high, high - 1,
                                     high - random.Between(2, 20), int64_t{-1},
                                     random.Between(-20, 20)});
    }
    scalars[std::string(name)] = Argument::Int(std::clamp(value, low, high));
  }
  return scalars;
}

}  // namespace polynao::ir
