// Method: integers that may become indices, bounds or conditions carry a range [low, high] that
// holds in every run, so that nothing in those places wraps and an index is in bounds because of
// its range, because of `%` or clamping, or because of a guard. Values are free to wrap and
// overflow.
//
// The iterations of a parallel loop over p are independent because inside it a buffer from outside
// is either only read, or accessed only at p in one dimension that is "pinned" to it.
#include "compiler/ir/random_program.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/random_externs.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"

namespace polynao::ir {
namespace {

// Ranged integers stay within this, so that sums and products of two of them fit in an i32.
constexpr int64_t kMaxRange = 1 << 14;
// Values that fit the type from a `start` on, and the most that an extent of an allocation with `edges` is.
constexpr int64_t kRoom = 16;
constexpr int64_t kMaxLocalExtent = 14;
constexpr std::string_view kCount = "count", kStart = "start", kAny = "any";

constexpr Type kAllTypes[] = {Type::kI1,   Type::kI8,  Type::kI16, Type::kI32, Type::kI64,
                              Type::kU8,   Type::kU16, Type::kU32, Type::kU64, Type::kF16,
                              Type::kBF16, Type::kF32, Type::kF64};
constexpr Type kLoopTypes[] = {Type::kI8, Type::kI16, Type::kI32, Type::kI64,
                               Type::kU8, Type::kU16, Type::kU32};
constexpr Type kFewTypes[] = {Type::kI1, Type::kI32, Type::kI64, Type::kF32};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed * 2 + 1) {}
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Percent(int chance) { return Between(1, 100) <= chance; }
  template <typename List>
  auto& Pick(List& list) {
    return list[Between(0, static_cast<int64_t>(std::size(list)) - 1)];
  }
  template <typename T>
  T OneOf(std::initializer_list<T> list) {
    return list.begin()[Between(0, static_cast<int64_t>(list.size()) - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

int64_t EdgeInt(Random& random, Type type) {
  const int64_t low = LeastInt(type);
  const int64_t high = GreatestInt(type);
  return random.OneOf<int64_t>({low, low + 1, high, high - 1, 0, 1, -1});
}

double EdgeFloat(Random& random, Type type) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double denormal = type == Type::kF16    ? 0x1p-24
                          : type == Type::kBF16 ? 0x1p-133
                          : type == Type::kF32  ? 0x1p-149
                                                : 0x1p-1074;
  return random.OneOf<double>({infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), -0.0,
                               0.0, denormal, -3 * denormal, 65504, 1e30, -1e-30, 1.0 / 3});
}

class Generator {
 public:
  Generator(uint64_t seed, const RandomProgramOptions& options)
      : options_(options), random_(seed), context_(std::make_shared<Context>()), c_(*context_) {}

  Function Make() {
    Function f;
    f.name = "random";
    f.context = context_;
    const int sizes = random_.Between(0, 2);
    for (int i = 0; i < sizes; ++i) {
      const Var n = c_.NewVar(StrCat("n", i), random_.Percent(80) ? Type::kI32 : Type::kI64);
      ints_.push_back({.var = n, .low = 0, .high = kMaxRandomSize, .below = {}});
      sizes_.push_back(n);
      f.params.emplace_back().var = n;
    }
    if (random_.Percent(50)) {
      const Var x = c_.NewVar("x", random_.OneOf({Type::kF32, Type::kF64, Type::kF16}));
      const Var& kept = options_.all_types ? x : c_.NewVar("x", Type::kF32);
      values_.push_back(kept);
      f.params.emplace_back().var = kept;
    }
    if (options_.edges) AddEdgeScalars(f);
    const int buffers = random_.Between(1, 4);
    for (int i = 0; i < buffers; ++i) {
      const Buffer buffer = RandomBuffer(std::string(1, static_cast<char>('A' + i)), 3, "gmem");
      const Access access = i == buffers - 1 ? random_.OneOf({Access::kOut, Access::kInOut})
                                             : random_.OneOf({Access::kIn, Access::kInOut});
      buffers_.push_back({.buffer = buffer,
                          .readable = access != Access::kOut,
                          .writable = access != Access::kIn});
      Param& param = f.params.emplace_back();
      param.buffer = buffer;
      param.access = access;
    }
    std::vector<Stmt> statements;
    stores_left_ = options_.stores;
    while (stores_left_ > 0) statements.push_back(Statement(options_.depth));
    f.body = c_.Seq(statements);
    return f;
  }

 private:
  struct Ranged {
    Expr e;
    int64_t low = 0;
    int64_t high = 0;
  };
  struct IntVar {
    Var var;
    int64_t low;
    int64_t high;
    Expr below;  // the variable is below this expression, if given
  };
  // first <= var < first + count, where no sum of var surely fits its type but var - first.
  struct EdgeVar {
    Var var;
    Expr first;
    int64_t count;
  };
  struct BufferState {
    Buffer buffer;
    bool readable = true;
    bool writable = true;
    std::vector<Var> pins = std::vector<Var>(buffer->extents.size());
  };

  Type RandomType() {
    if (!options_.all_types) return random_.Pick(kFewTypes);
    Type type = random_.Pick(kAllTypes);
    while (!options_.wide_unsigned &&
           (type == Type::kU16 || type == Type::kU32 || type == Type::kU64)) {
      type = random_.Pick(kAllTypes);
    }
    return type;
  }

  bool IsWanted(Type type) const {
    if (!options_.all_types) return type == Type::kI32 || type == Type::kI64;
    return options_.wide_unsigned || (type != Type::kU16 && type != Type::kU32);
  }

  // Of a loop's variable: any integer type that the options leave.
  Type AnyLoopType() {
    Type type = random_.Pick(kLoopTypes);
    while (!IsWanted(type)) type = random_.Pick(kLoopTypes);
    return type;
  }

  Type LoopType() {
    if (options_.edges && random_.Percent(30)) return AnyLoopType();
    return random_.Percent(85) ? Type::kI32 : Type::kI64;
  }

  // ---- ends of types

  void AddEdgeScalars(Function& f) {
    for (auto& [stem, list] :
         {std::pair(kCount, &counts_), std::pair(kStart, &starts_), std::pair(kAny, &anys_)}) {
      const int64_t number = random_.Between(0, 2);
      for (int64_t i = 0; i < number; ++i) {
        list->push_back(c_.NewVar(StrCat(stem, i), AnyLoopType()));
        f.params.emplace_back().var = list->back();
      }
    }
  }

  // A scalar parameter between small numbers, as an integer of `type`; nothing if there is none.
  std::optional<Ranged> ClampedScalar(Type type) {
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

  // A number of `type`, i32 or i64, divided by -1 and cut to low .. high. The quotient that wraps is cut like others.
  Ranged ClampedQuotient(Type type, int64_t low, int64_t high) {
    const Expr quotient = RandomLeaf(type) / c_.Int(type, -1);
    return {Max(Min(quotient, c_.Int(type, high)), c_.Int(type, low)), low, high};
  }

  // A comparison of what may be at the ends of its type, without arithmetic but quotients by -1.
  Expr EdgeComparison() {
    std::vector<Expr> all;
    for (const EdgeVar& v : edge_vars_) all.insert(all.end(), 3, v.var);
    for (const auto* list : {&counts_, &starts_, &anys_}) {
      all.insert(all.end(), list->begin(), list->end());
    }
    for (const IntVar& v : ints_) all.push_back(v.var);
    const Expr x = all.empty() ? RandomLeaf(Type::kI32) : random_.Pick(all);
    return EdgeComparison(x, all);
  }

  Expr EdgeComparison(Expr x, const std::vector<Expr>& others) {
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

  // A loop at an end of its variable's type, or with a scalar parameter in its bounds.
  Stmt EdgeLoop(int depth) {
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
        small = IntVar{
            .var = {}, .low = LeastInt(type), .high = LeastInt(type) + count - 1, .below = {}};
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

  // An extent of an allocation that depends on what stands around it, or null.
  Expr LocalExtent() {
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
    if (extent) local_extents_.push_back(extent);
    return extent;
  }

  std::string Name(std::string_view stem) { return StrCat(stem, next_name_++); }

  Buffer RandomBuffer(std::string name, int max_dimensions, std::string_view scope,
                      bool is_local = false) {
    std::vector<Expr> extents;
    const int dimensions = random_.Between(0, max_dimensions);
    for (int d = 0; d < dimensions; ++d) {
      if (options_.edges && is_local && random_.Percent(35)) {
        if (const Expr extent = LocalExtent()) {
          extents.push_back(extent);
          continue;
        }
      }
      if (!sizes_.empty() && random_.Percent(25)) {
        const Var n = random_.Pick(sizes_);
        extents.push_back(random_.Percent(70) ? n : n + random_.Between(1, 3));
        continue;
      }
      const int64_t extent =
          random_.Percent(4) ? 0 : random_.OneOf<int64_t>({1, 2, 3, 4, 5, 7, 8, 13});
      extents.push_back(random_.Percent(90) ? c_.I32(extent) : c_.I64(extent));
    }
    return c_.NewBuffer(name, RandomType(), std::move(extents), scope);
  }

  // ---- integers of known range
  // -------------------------------------------------------------------

  Expr CastTo(Type type, Expr e) { return c_.Cast(type, e); }

  // ---- expressions once more
  // ------------------------------------------------------------------------

  // What was made so far, of which every variable and buffer is in scope.
  struct Made {
    std::vector<Ranged> ranged;
    struct Value {
      Expr e;
      bool must_not_wrap;
    };
    std::vector<Value> values;
  };

  // Forgets at its end what was made during its life. In a loop of independent iterations nothing
  // from outside is repeated, as it may load what other iterations store.
  class MadeScope {
   public:
    explicit MadeScope(Generator& generator, bool independent = false)
        : made_(generator.made_), outer_(made_) {
      if (independent) made_ = {};
    }
    ~MadeScope() { made_ = std::move(outer_); }
    MadeScope(const MadeScope&) = delete;
    MadeScope& operator=(const MadeScope&) = delete;

   private:
    Made& made_;
    Made outer_;
  };

  // One of `made` for which `fits`, or null.
  template <typename T, typename Fits>
  const T* Repeated(const std::vector<T>& made, const Fits& fits) {
    if (options_.repetition == 0 || !random_.Percent(options_.repetition)) return nullptr;
    std::vector<const T*> fitting;
    for (const T& one : made) {
      if (fits(one)) fitting.push_back(&one);
    }
    return fitting.empty() ? nullptr : random_.Pick(fitting);
  }

  // An integer of `type` (i32 or i64) that never wraps.
  Ranged RandomRanged(Type type, int depth) {
    if (const Ranged* again =
            Repeated(made_.ranged, [&](const Ranged& r) { return r.e.type() == type; })) {
      return *again;
    }
    const Ranged ranged = NewRanged(type, depth);
    if (options_.repetition > 0 && !ranged.e.operands().empty()) made_.ranged.push_back(ranged);
    return ranged;
  }

  Ranged NewRanged(Type type, int depth) {
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
  static Ranged Checked(Ranged result, Ranged otherwise) {
    return result.low < -kMaxRange || result.high > kMaxRange ? otherwise : result;
  }

  // An index that lies within `extent` whenever `guard`, if there is one, holds.
  struct Index {
    Expr e;
    Expr guard;
  };
  Index RandomIndex(Expr extent) {
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
          if (std::optional<Expr> load = RandomLoad(type, 0))
            return {*load % c_.Int(type, size), {}};
          break;
        default:
          break;
      }
    }
    const Expr limit = extent.type() == type ? extent : CastTo(type, extent);
    return {r.e, And(c_.Int(type, 0) <= r.e, r.e < limit)};
  }

  // Indices of an element of `buffer`, and what must hold for them to be in bounds (or null).
  std::pair<std::vector<Expr>, Expr> RandomIndices(const BufferState& state) {
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

  // ---- values
  // ------------------------------------------------------------------------------------

  Expr RandomConstant(Type type) {
    if (IsFloat(type)) {
      if (random_.Percent(15)) return c_.Float(type, EdgeFloat(random_, type));
      return c_.Float(type, static_cast<double>(random_.Between(-40, 40)) / 8);
    }
    if (random_.Percent(15)) return c_.Int(type, EdgeInt(random_, type));
    return c_.Int(type, random_.Between(-5, 9));
  }

  // A load of `type`, guarded where its index may be out of bounds.
  std::optional<Expr> RandomLoad(Type type, int depth) {
    std::vector<const BufferState*> fitting;
    for (const BufferState& state : buffers_) {
      if (state.readable && state.buffer->type == type) fitting.push_back(&state);
    }
    if (fitting.empty() || nested_loads_ >= 2) return std::nullopt;
    const BufferState& state = *random_.Pick(fitting);
    ++nested_loads_;
    const auto [indices, guard] = RandomIndices(state);
    --nested_loads_;
    const Expr load = c_.Load(state.buffer, indices);
    if (!guard) return load;
    return c_.Select(guard, load, depth > 0 ? RandomValue(type, depth - 1) : RandomConstant(type));
  }

  Expr RandomLeaf(Type type) {
    std::vector<Expr> choices;
    for (Expr value : values_) {
      if (value.type() == type) choices.push_back(value);
    }
    for (const IntVar& v : ints_) {
      if (v.var.type() == type) choices.push_back(v.var);
    }
    for (const EdgeVar& v : edge_vars_) {
      if (v.var.type() == type) choices.push_back(v.var);
    }
    for (const auto* list : {&counts_, &starts_, &anys_}) {
      for (Var v : *list) {
        if (v.type() == type) choices.push_back(v);
      }
    }
    if (!choices.empty() && random_.Percent(30)) return random_.Pick(choices);
    if (random_.Percent(75)) {
      if (std::optional<Expr> load = RandomLoad(type, 0)) return *load;
    }
    if (IsInt(type) && type != Type::kI1 && !ints_.empty() && random_.Percent(60)) {
      const Var var = random_.Pick(ints_).var;
      return var.type() == type ? var : CastTo(type, var);
    }
    return RandomConstant(type);
  }

  // A condition whose i32 and i64 arithmetic does not wrap.
  Expr RandomCondition(int depth) {
    if (const Made::Value* again = Repeated(made_.values, [](const Made::Value& value) {
          return value.e.type() == Type::kI1 && value.must_not_wrap;
        })) {
      return again->e;
    }
    const bool outer = std::exchange(must_not_wrap_, true);
    const Expr condition = RandomBool(depth);
    must_not_wrap_ = outer;
    if (options_.repetition > 0 && !condition.operands().empty()) {
      made_.values.push_back({condition, true});
    }
    return condition;
  }

  Expr RandomBool(int depth) {
    if (depth > 0) {
      switch (random_.Between(0, 9)) {
        case 0:
        case 1: {
          const Expr a = RandomBool(depth - 1);
          return And(a, RandomBool(depth - 1));
        }
        case 2: {
          const Expr a = RandomBool(depth - 1);
          return Or(a, RandomBool(depth - 1));
        }
        case 3:
          return Not(RandomBool(depth - 1));
        case 4: {
          const Expr condition = RandomBool(depth - 1);
          const Expr a = RandomBool(depth - 1);
          return c_.Select(condition, a, RandomBool(depth - 1));
        }
        case 5:
          if (random_.Percent(50)) return RandomLeaf(Type::kI1);
          return CastTo(Type::kI1, RandomValue(RandomType(), depth - 1));
        default:
          break;
      }
    }
    if (options_.edges && random_.Percent(25)) return EdgeComparison();
    const ExprKind kind =
        random_.OneOf({ExprKind::kEq, ExprKind::kNe, ExprKind::kLt, ExprKind::kLt, ExprKind::kLe});
    if (random_.Percent(65)) {
      const Type type = random_.Percent(80) ? Type::kI32 : Type::kI64;
      const Expr a = RandomRanged(type, depth).e;
      return c_.Binary(kind, a, RandomRanged(type, depth - 1).e);
    }
    const Type type = RandomType();
    const Expr a = RandomValue(type, depth - 1);
    const Expr b = RandomValue(type, depth - 1);
    // Conditions have no order.
    return c_.Binary(type == Type::kI1 ? ExprKind::kNe : kind, a, b);
  }

  Expr RandomValue(Type type, int depth) {
    if (const Made::Value* again = Repeated(made_.values, [&](const Made::Value& value) {
          return value.e.type() == type && (value.must_not_wrap || !must_not_wrap_);
        })) {
      return again->e;
    }
    const Expr value = NewValue(type, depth);
    if (options_.repetition > 0 && !value.IsConst() && !value.Is(ExprKind::kVar)) {
      made_.values.push_back({value, must_not_wrap_});
    }
    return value;
  }

  Expr NewValue(Type type, int depth) {
    if (type == Type::kI1) return depth > 0 ? RandomCondition(depth) : RandomLeaf(type);
    if (options_.edges && IsInt(type) && random_.Percent(5)) {
      const Expr minus_one = c_.Int(type, -1);
      const Expr a = RandomLeaf(type);
      return random_.Percent(75) ? a / minus_one : a % minus_one;
    }
    if (must_not_wrap_ && (type == Type::kI32 || type == Type::kI64)) {
      return random_.Percent(50) ? RandomRanged(type, depth).e : RandomLeaf(type);
    }
    if (depth <= 0 || random_.Percent(15)) return RandomLeaf(type);
    if (options_.extern_calls && random_.Percent(20)) {
      if (std::optional<Expr> call = ExternValue(type, depth)) return *call;
    }
    auto operand = [&] { return RandomValue(type, depth - 1); };
    const int64_t choice = random_.Between(0, 15);
    switch (choice) {
      case 0:
      case 1:
      case 2: {
        const Expr a = operand();
        return a + operand();
      }
      case 3: {
        const Expr a = operand();
        return a - operand();
      }
      case 4:
      case 5:
      case 6: {
        const Expr a = operand();
        return a * operand();
      }
      case 7:
        return IsFloat(type) ? FloatDivision(type, depth) : IntDivision(type, depth);
      case 8: {
        const Expr a = operand();
        return Min(a, operand());
      }
      case 9: {
        const Expr a = operand();
        return Max(a, operand());
      }
      case 10:
      case 11: {
        const Expr condition = RandomCondition(depth - 1);
        const Expr a = operand();
        return c_.Select(condition, a, operand());
      }
      case 12: {
        const Expr value = RandomValue(RandomType(), depth - 1);
        const Var var = c_.NewVar(Name("l"), value.type());
        const MadeScope scope(*this);
        values_.push_back(var);
        const Expr body = operand();
        values_.pop_back();
        return c_.Let(var, value, body);
      }
      case 13:
      case 14:
        if (IsFloat(type)) return Intrinsic(type, depth);
        if (random_.Percent(75)) return BitOperation(type, depth);
        [[fallthrough]];
      default:
        return CastTo(type, RandomValue(RandomType(), depth - 1));
    }
  }

  Expr BitOperation(Type type, int depth) {
    const ExprKind kind = random_.OneOf({ExprKind::kBitAnd, ExprKind::kBitOr, ExprKind::kBitXor,
                                         ExprKind::kShiftLeft, ExprKind::kShiftRight});
    const Expr a = RandomValue(type, depth - 1);
    const bool shifts = kind == ExprKind::kShiftLeft || kind == ExprKind::kShiftRight;
    // Most counts within the width, some around it.
    if (shifts && !options_.variable_shifts) {
      return c_.Binary(kind, a, c_.Int(type, random_.Between(0, BitWidth(type) - 1)));
    }
    if (shifts && random_.Percent(60)) {
      return c_.Binary(kind, a, c_.Int(type, random_.Between(-1, BitWidth(type))));
    }
    return c_.Binary(kind, a, RandomValue(type, depth - 1));
  }

  Expr FloatDivision(Type type, int depth) {
    const Expr a = RandomValue(type, depth - 1);
    return a / RandomValue(type, depth - 1);
  }

  Expr IntDivision(Type type, int depth) {
    const ExprKind kind = random_.OneOf({ExprKind::kDiv, ExprKind::kMod});
    const Expr a = RandomValue(type, depth - 1);
    // It may stand in a condition below.
    const bool outer = std::exchange(must_not_wrap_, true);
    const Expr b = RandomValue(type, depth - 1);
    must_not_wrap_ = outer;
    const Expr zero = c_.Int(type, 0);
    const Expr one = c_.Int(type, 1);
    if (options_.may_stop && random_.Percent(20)) return c_.Binary(kind, a, b);
    switch (random_.Between(0, 3)) {
      case 0:
        return c_.Select(Ne(b, zero), c_.Binary(kind, a, b), a);
      case 1:
        return c_.Binary(kind, a, Max(b, one));
      case 2:
        return c_.Binary(kind, a, c_.Select(Eq(b, zero), one, b));
      default: {
        const Expr constant = RandomConstant(type);
        return c_.Binary(kind, a, constant.IsInt(0) ? c_.Int(type, -1) : constant);
      }
    }
  }

  Expr Intrinsic(Type type, int depth) {
    const bool exact = !options_.inexact_intrinsics || random_.Percent(50);
    std::vector<const PureIntrinsic*> fitting;
    for (const PureIntrinsic& intrinsic : PureIntrinsics()) {
      if ((intrinsic.accuracy == Accuracy::kExact) == exact) fitting.push_back(&intrinsic);
    }
    const PureIntrinsic& intrinsic = *random_.Pick(fitting);
    std::vector<Expr> arguments;
    for (int i = 0; i < intrinsic.arity; ++i) arguments.push_back(RandomValue(type, depth - 1));
    return c_.Call(type, intrinsic.name, arguments);
  }

  // ---- calls of extern functions

  const ExternNode* PickExtern(std::optional<Type> result) {
    if (externs_.empty()) externs_ = RandomExterns(context_);
    std::vector<const ExternNode*> fitting;
    for (const ExternNode* callee : externs_) {
      if (callee->result == result) fitting.push_back(callee);
    }
    return fitting.empty() ? nullptr : random_.Pick(fitting);
  }

  struct ExternCall {
    Expr call;
    Expr guard;  // what must hold for the addresses to exist, or null
  };

  // A call of `callee` with values and addresses of elements; none if there is no fitting buffer.
  std::optional<ExternCall> RandomCall(const ExternNode* callee, int depth) {
    ExternCall made;
    std::vector<Expr> arguments;
    absl::flat_hash_set<Buffer> used;
    for (const Param& param : callee->params) {
      if (param.var) {
        const bool outer = std::exchange(must_not_wrap_, true);
        arguments.push_back(RandomValue(param.var.type(), depth - 1));
        must_not_wrap_ = outer;
        continue;
      }
      std::vector<BufferState> fitting;
      for (const BufferState& state : buffers_) {
        // What is written overlaps nothing else in the call.
        if (state.buffer->type == param.buffer->type && state.readable &&
            !used.contains(state.buffer) && (param.access == Access::kIn || state.writable)) {
          fitting.push_back(state);
        }
      }
      if (fitting.empty() || nested_loads_ >= 2) return std::nullopt;
      const BufferState state = random_.Pick(fitting);
      used.insert(state.buffer);
      ++nested_loads_;
      const auto [indices, guard] = RandomIndices(state);
      --nested_loads_;
      arguments.push_back(c_.Address(state.buffer, indices));
      if (guard) made.guard = made.guard ? And(made.guard, guard) : guard;
    }
    made.call = c_.Call(callee, arguments);
    return made;
  }

  std::optional<Expr> ExternValue(Type type, int depth) {
    const ExternNode* callee = PickExtern(type);
    if (callee == nullptr) return std::nullopt;
    const std::optional<ExternCall> made = RandomCall(callee, depth);
    if (!made) return std::nullopt;
    return made->guard ? c_.Select(made->guard, made->call, RandomConstant(type)) : made->call;
  }

  std::optional<Stmt> ExternStatement() {
    const std::optional<ExternCall> made =
        RandomCall(PickExtern(std::nullopt), options_.expression_depth);
    if (!made) return std::nullopt;
    const Stmt call = c_.Evaluate(made->call);
    return made->guard ? c_.If(made->guard, call) : call;
  }

  // ---- statements
  // --------------------------------------------------------------------------------

  Stmt Statement(int depth) {
    if (depth <= 0) return Store();
    switch (random_.Between(0, 12)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return Loop(depth);
      case 5:
      case 6: {
        const Expr condition = RandomCondition(options_.expression_depth - 1);
        const Stmt then_case = Statement(depth - 1);
        return c_.If(condition, then_case, random_.Percent(40) ? Statement(depth - 1) : Stmt());
      }
      case 7:
        return LetStatement(depth);
      case 8:
        return Allocation(depth);
      case 9:
        if (random_.Percent(40)) {
          const Expr argument = c_.I32(random_.Between(0, 3));
          return c_.Pragma(pragma::kRagged, {argument}, Statement(depth - 1));
        }
        [[fallthrough]];
      case 10: {
        const Stmt first = Statement(depth - 1);
        return c_.Seq({first, Statement(depth - 1)});
      }
      default:
        return Store();
    }
  }

  Stmt Store() {
    --stores_left_;
    if (options_.extern_calls && random_.Percent(15)) {
      if (std::optional<Stmt> call = ExternStatement()) return *call;
    }
    std::vector<BufferState> fitting;
    for (const BufferState& state : buffers_) {
      if (state.writable) fitting.push_back(state);
    }
    if (fitting.empty()) return c_.Nop();
    const BufferState state = random_.Pick(fitting);
    const auto [indices, guard] = RandomIndices(state);
    const Expr value = RandomValue(state.buffer->type, options_.expression_depth);
    const Stmt store = c_.Store(state.buffer, indices, value);
    return guard ? c_.If(guard, store) : store;
  }

  Stmt LetStatement(int depth) {
    if (random_.Percent(60)) {
      const Type type = random_.Percent(80) ? Type::kI32 : Type::kI64;
      const Ranged value = RandomRanged(type, 2);
      const Var var = c_.NewVar(Name("t"), type);
      const MadeScope scope(*this);
      ints_.push_back({.var = var, .low = value.low, .high = value.high, .below = {}});
      const Stmt body = Statement(depth - 1);
      ints_.pop_back();
      return c_.LetStmt(var, value.e, body);
    }
    const Expr value = RandomValue(RandomType(), options_.expression_depth - 1);
    const Var var = c_.NewVar(Name("t"), value.type());
    const MadeScope scope(*this);
    values_.push_back(var);
    const Stmt body = Statement(depth - 1);
    values_.pop_back();
    return c_.LetStmt(var, value, body);
  }

  // A buffer of known contents, used in a statement.
  Stmt Allocation(int depth) {
    const Buffer buffer =
        RandomBuffer(Name("T"), 2, random_.OneOf<std::string_view>({"gmem", "nmem", "local"}),
                     /*is_local=*/true);
    const Expr value = RandomValue(buffer->type, 1);
    std::vector<Expr> indices;
    for (Expr extent : buffer->extents) indices.push_back(c_.NewVar(Name("z"), extent.type()));
    Stmt init = c_.Store(buffer, indices, value);
    for (size_t d = indices.size(); d-- > 0;) {
      const Expr extent = buffer->extents[d];
      init = c_.For(indices[d], c_.Int(extent.type(), 0), extent, init);
    }
    const MadeScope scope(*this);
    buffers_.push_back({.buffer = buffer});
    const Stmt body = Statement(depth - 1);
    // What went into the buffer comes out again, if something of its type can hold it.
    const Stmt more = Statement(depth - 1);
    buffers_.pop_back();
    const bool stored = !(options_.may_stop && random_.Percent(30));
    return c_.Allocate(buffer, stored ? c_.Seq({init, body, more}) : c_.Seq({body, more}));
  }

  Stmt Loop(int depth) {
    if (options_.edges && random_.Percent(35)) return EdgeLoop(depth);
    const Type type = LoopType();
    const bool is_usual = type == Type::kI32 || type == Type::kI64;
    Ranged min{c_.Int(type, 0), 0, 0};
    if (random_.Percent(25)) {
      if (is_usual) {
        min = RandomRanged(type, 1);
      } else {
        const int64_t first = random_.Between(IsUnsigned(type) ? 0 : -4, 9);
        min = {c_.Int(type, first), first, first};
      }
    }
    Ranged extent;
    const BufferState& target = random_.Pick(buffers_);
    if (!target.buffer->extents.empty() && random_.Percent(45)) {
      extent = RangeOfExtent(type, random_.Pick(target.buffer->extents));
    } else if (!sizes_.empty() && random_.Percent(25)) {
      const Var n = random_.Pick(sizes_);
      extent = {n.type() == type ? n : CastTo(type, n), 0, kMaxRandomSize};
    } else if (is_usual && random_.Percent(15)) {
      extent = options_.edges && random_.Percent(20) ? ClampedQuotient(type, -1, 5)
                                                     : RandomRanged(type, 2);
    } else {
      int64_t size = random_.OneOf<int64_t>({-1, 0, 1, 1, 2, 3, 3, 4, 4, 5, 5, 7, 8, 13, 16, 33});
      if (IsUnsigned(type)) size = std::max<int64_t>(size, 0);
      extent = {c_.Int(type, size), size, size};
    }
    const int64_t longest = std::max<int64_t>(extent.high, 1);
    if (iterations_ * longest > options_.max_iterations) return Statement(depth - 1);

    ForKind kind = ForKind::kSerial;
    std::string axis;
    if (options_.loop_kinds) {
      kind =
          random_.OneOf({ForKind::kSerial, ForKind::kSerial, ForKind::kSerial, ForKind::kParallel,
                         ForKind::kUnroll, ForKind::kVectorize, ForKind::kThread});
    }
    const Var var = c_.NewVar(Name("i"), type);
    const bool from_zero = min.low == 0 && min.high == 0;
    const IntVar info{.var = var,
                      .low = min.low,
                      .high = min.high + longest - 1,
                      .below = from_zero ? extent.e : Expr()};
    const std::vector<BufferState> outer = buffers_;
    if (kind == ForKind::kThread) {
      static constexpr std::string_view kAxes[] = {"cid", "tid", "blockIdx.x", "threadIdx.x"};
      if (threads_ < std::size(kAxes)) {
        axis = std::string(kAxes[threads_]);
      } else {
        kind = ForKind::kSerial;
      }
    }
    const bool independent = kind == ForKind::kParallel || kind == ForKind::kThread;
    if (independent && !Pin(info)) {
      kind = ForKind::kSerial;
      axis.clear();
      buffers_ = outer;
    }
    threads_ += kind == ForKind::kThread;
    iterations_ *= longest;
    const MadeScope scope(*this, independent);
    ints_.push_back(info);
    std::vector<Stmt> body = {Statement(depth - 1)};
    if (random_.Percent(30)) body.push_back(Statement(depth - 1));
    ints_.pop_back();
    iterations_ /= longest;
    threads_ -= kind == ForKind::kThread;
    buffers_ = outer;
    return c_.For(var, min.e, extent.e, c_.Seq(body), kind, axis);
  }

  // The extent of a buffer as an extent of a loop over `type`.
  Ranged RangeOfExtent(Type type, Expr extent) {
    const Expr e = extent.type() == type          ? extent
                   : extent.Is(ExprKind::kIntImm) ? c_.Int(type, extent.int_value())
                                                  : CastTo(type, extent);
    if (extent.Is(ExprKind::kIntImm)) return {e, extent.int_value(), extent.int_value()};
    const bool is_local =
        std::find(local_extents_.begin(), local_extents_.end(), extent) != local_extents_.end();
    return {e, 0, is_local ? kMaxLocalExtent : kMaxRandomSize + 3};  // RandomBuffer adds at most 3
  }

  // Makes each buffer from outside a parallel loop either readable or writable at the loop's own
  // elements only.
  // False if nothing stays writable.
  bool Pin(const IntVar& loop) {
    bool any = false;
    for (BufferState& state : buffers_) {
      if (!state.writable) continue;
      std::vector<size_t> fitting;
      for (size_t d = 0; d < state.pins.size(); ++d) {
        const Expr extent = state.buffer->extents[d];
        const bool in_constant = extent.Is(ExprKind::kIntImm) && loop.high < extent.int_value();
        const bool in_bounds =
            loop.low >= 0 && (in_constant || (loop.below && loop.below == extent));
        if (in_bounds && !state.pins[d]) fitting.push_back(d);
      }
      if (!fitting.empty() && random_.Percent(85)) {
        state.pins[random_.Pick(fitting)] = loop.var;
        any = true;
      } else {
        state.writable = false;
      }
    }
    return any;
  }

  const RandomProgramOptions& options_;
  Random random_;
  std::shared_ptr<Context> context_;
  Context& c_;
  std::vector<IntVar> ints_;
  std::vector<EdgeVar> edge_vars_;
  std::vector<Var> sizes_;
  std::vector<Var> counts_, starts_, anys_;  // EdgeScalars
  std::vector<Expr> local_extents_;          // of allocations, if they are not those of parameters
  std::vector<Expr> values_;
  std::vector<BufferState> buffers_;
  std::vector<const ExternNode*> externs_;
  Made made_;
  bool must_not_wrap_ = false;
  int nested_loads_ = 0;
  int stores_left_ = 0;
  int64_t iterations_ = 1;
  size_t threads_ = 0;
  int next_name_ = 0;
};

// ---- shrinking ----------------------------------------------------------------------------------

// Makes the change number `target`, in order of a walk over the statements, to a function body.
class Shrinker {
 public:
  explicit Shrinker(int target) : left_(target) {}

  Stmt Change(Stmt s) {
    Context& c = s.context();
    if (!s.IsEmpty() && Here()) return c.Nop();
    switch (s.kind()) {
      case StmtKind::kFor:
        if (Here()) return c.LetStmt(s.var(), s.min(), s.body());
        if (s.for_kind() != ForKind::kSerial && Here()) {
          return c.For(s.var(), s.min(), s.extent(), s.body());
        }
        break;
      case StmtKind::kIf:
        if (Here()) return s.then_case();
        if (!s.else_case().IsEmpty() && Here()) return s.else_case();
        break;
      case StmtKind::kLet:
        if (!UsesVar(s.body(), s.var()) && Here()) return s.body();
        break;
      case StmtKind::kAllocate:
        // Well-formed only if the body does not use the buffer.
        if (Here()) return s.body();
        break;
      case StmtKind::kPragma:
        if (Here()) return s.body();
        break;
      default:
        break;
    }
    std::vector<Expr> operands;
    for (Expr e : s.operands()) operands.push_back(Change(e));
    std::vector<Stmt> children;
    for (Stmt child : s.children()) children.push_back(Change(child));
    return left_ < 0 ? c.Rebuild(s, operands, children) : s;
  }

  // Whether the walk found the change.
  bool Changed() const { return left_ < 0; }

 private:
  // Whether the next possible change is the one to make.
  bool Here() { return left_-- == 0; }

  Expr Change(Expr e) {
    if (left_ < 0 || e.IsConst()) return e;
    Context& c = e.context();
    if (Here()) return c.Const(e.type(), 0);
    if (Here()) return c.Const(e.type(), 1);
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) {
      if (operand.type() == e.type() && Here()) return operand;
    }
    for (Expr operand : e.operands()) operands.push_back(Change(operand));
    return left_ < 0 ? c.Rebuild(e, operands) : e;
  }

  int left_;
};

}  // namespace

Function RandomProgram(uint64_t seed, const RandomProgramOptions& options) {
  return Generator(seed, options).Make();
}

std::map<std::string, Argument> EdgeScalars(const Function& function, uint64_t seed) {
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

Function ShrinkProgram(const Function& function, const std::function<bool(const Function&)>& fails,
                       int max_calls) {
  Function smallest = function;
  int calls = 0;
  bool progress = true;
  while (progress) {
    progress = false;
    for (int target = 0;; ++target) {
      Shrinker shrinker(target);
      Function candidate = smallest;
      candidate.body = shrinker.Change(smallest.body);
      if (!shrinker.Changed()) break;
      if (candidate.body == smallest.body || !Verify(candidate).ok()) continue;
      if (calls++ >= max_calls) return smallest;
      if (!fails(candidate)) continue;
      smallest = candidate;
      progress = true;
      --target;  // what stands here now may shrink further
    }
  }
  return smallest;
}

}  // namespace polynao::ir
