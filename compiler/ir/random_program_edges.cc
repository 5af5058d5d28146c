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

Stmt Generator::EdgeLoop(int depth) {
  Type type = AnyLoopType();
  int64_t count = random_.Between(1, 6);
  Expr min, extent;
  std::optional<IntVar> small;
  switch (random_.Between(0, 6)) {
    case 0:
      min = c_.Int(type, LeastInt(type));
      break;
    case 1:
      if (counts_.empty()) break;
      extent = random_.Pick(counts_);
      type = extent.type();
      count = kMaxRandomSize;
      min = c_.Int(type, random_.Percent(60) ? 0 : random_.Between(IsUnsigned(type) ? 0 : -3, 3));
      small = IntVar{.var = {},
                     .low = min.int_value(),
                     .high = min.int_value() + count - 1,
                     .below = min.IsInt(0) ? extent : Expr()};
      break;
    case 2: {
      if (starts_.empty()) break;
      min = random_.Pick(starts_);
      type = min.type();
      for (Var v : counts_) {
        if (v.type() != type || random_.Percent(50)) continue;
        extent = v;
        count = kMaxRandomSize;
      }
      break;
    }
    case 3:
      if (anys_.empty()) break;
      min = random_.Pick(anys_);
      type = min.type();
      min = Min(min, c_.Int(type, GreatestInt(type) - count + 1));
      break;
    case 4:
      if (anys_.empty()) break;
      extent = random_.Pick(anys_);
      type = extent.type();
      extent = Min(extent, c_.Int(type, count));
      min = c_.Int(type, 0);
      small = IntVar{.var = {}, .low = 0, .high = count - 1, .below = extent};
      break;
    case 5:
      if (type != Type::kI8 && type != Type::kU8) break;
      count = GreatestInt(type);
      min = c_.Int(type, LeastInt(type));
      small =
          IntVar{.var = {}, .low = LeastInt(type), .high = LeastInt(type) + count - 1, .below = {}};
      break;
    default:
      break;
  }
  if (!min) min = c_.Int(type, GreatestInt(type) - count + 1);  // up to the greatest value
  if (!extent) extent = c_.Int(type, count);
  if (iterations_ * count > options_.max_iterations) return Statement(depth - 1);
  const ForKind kind = options_.loop_kinds
                           ? random_.OneOf({ForKind::kSerial, ForKind::kSerial, ForKind::kSerial,
                                            ForKind::kUnroll, ForKind::kVectorize})
                           : ForKind::kSerial;
  const Var var = c_.NewVar(Name("i"), type);
  iterations_ *= count;
  const MadeScope scope(*this);
  if (small) {
    small->var = var;
    ints_.push_back(*small);
  } else {
    edge_vars_.push_back({var, min, count});
  }
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
  if (small) {
    ints_.pop_back();
  } else {
    edge_vars_.pop_back();
  }
  iterations_ /= count;
  return c_.For(var, min, extent, c_.Seq(body), kind);
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
