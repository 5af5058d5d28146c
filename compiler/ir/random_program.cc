// Statements and buffers.
#include "compiler/ir/random_program.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/random_program_generator.h"

namespace polynao::ir {
namespace random_program {
namespace {

constexpr Type kAllTypes[] = {Type::kI1,   Type::kI8,  Type::kI16, Type::kI32, Type::kI64,
                              Type::kU8,   Type::kU16, Type::kU32, Type::kU64, Type::kF16,
                              Type::kBF16, Type::kF32, Type::kF64};
constexpr Type kFewTypes[] = {Type::kI1, Type::kI32, Type::kI64, Type::kF32};

}  // namespace

Function Generator::Make() {
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
    buffers_.push_back(
        {.buffer = buffer, .readable = access != Access::kOut, .writable = access != Access::kIn});
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

Type Generator::RandomType() {
  if (!options_.all_types) return random_.Pick(kFewTypes);
  Type type = random_.Pick(kAllTypes);
  while (!options_.wide_unsigned &&
         (type == Type::kU16 || type == Type::kU32 || type == Type::kU64)) {
    type = random_.Pick(kAllTypes);
  }
  return type;
}

bool Generator::IsWanted(Type type) const {
  if (!options_.all_types) return type == Type::kI32 || type == Type::kI64;
  return options_.wide_unsigned || (type != Type::kU16 && type != Type::kU32);
}

Type Generator::LoopType() {
  if (options_.edges && random_.Percent(30)) return AnyLoopType();
  return random_.Percent(85) ? Type::kI32 : Type::kI64;
}

Buffer Generator::RandomBuffer(std::string name, int max_dimensions, std::string_view scope,
                               bool is_local) {
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

std::optional<Stmt> Generator::ExternStatement() {
  const std::optional<ExternCall> made =
      RandomCall(PickExtern(std::nullopt), options_.expression_depth);
  if (!made) return std::nullopt;
  const Stmt call = c_.Evaluate(made->call);
  return made->guard ? c_.If(made->guard, call) : call;
}

Stmt Generator::Statement(int depth) {
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

Stmt Generator::Store() {
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

Stmt Generator::LetStatement(int depth) {
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

Stmt Generator::Allocation(int depth) {
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

Stmt Generator::Loop(int depth) {
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
    kind = random_.OneOf({ForKind::kSerial, ForKind::kSerial, ForKind::kSerial, ForKind::kParallel,
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

Generator::Ranged Generator::RangeOfExtent(Type type, Expr extent) {
  const Expr e = extent.type() == type          ? extent
                 : extent.Is(ExprKind::kIntImm) ? c_.Int(type, extent.int_value())
                                                : CastTo(type, extent);
  if (extent.Is(ExprKind::kIntImm)) return {e, extent.int_value(), extent.int_value()};
  const bool is_local =
      std::find(local_extents_.begin(), local_extents_.end(), extent) != local_extents_.end();
  return {e, 0, is_local ? kMaxLocalExtent : kMaxRandomSize + 3};  // RandomBuffer adds at most 3
}

bool Generator::Pin(const IntVar& loop) {
  bool any = false;
  for (BufferState& state : buffers_) {
    if (!state.writable) continue;
    std::vector<size_t> fitting;
    for (size_t d = 0; d < state.pins.size(); ++d) {
      const Expr extent = state.buffer->extents[d];
      const bool in_constant = extent.Is(ExprKind::kIntImm) && loop.high < extent.int_value();
      const bool in_bounds = loop.low >= 0 && (in_constant || (loop.below && loop.below == extent));
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

}  // namespace random_program

Function RandomProgram(uint64_t seed, const RandomProgramOptions& options) {
  return random_program::Generator(seed, options).Make();
}

}  // namespace polynao::ir
