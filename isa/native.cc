#include "isa/native.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "compiler/ir/intrinsics.h"
#include "isa/affine.h"
#include "isa/simd.h"

namespace polynao::isa {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;

// ---- integer statements without loops -------------------------------------------------

class ScalarRoutine : public NativeRoutine {
 public:
  static std::unique_ptr<ScalarRoutine> Create(Stmt body, const IntExpression::Resolver& resolver) {
    auto routine = std::make_unique<ScalarRoutine>();
    if (!routine->Add(body, resolver, routine->steps_)) return nullptr;
    return routine;
  }

  bool Run(const IntInputs& inputs) const override {
    // A zero divisor is left to the interpreter, which names it; so no step may run twice.
    return RunSteps(steps_, inputs);
  }

 private:
  struct Step {
    IntExpression value;  // of a store, or the condition of an if
    bool is_store = false;
    int buffer = 0;
    Type type = Type::kI64;
    IntExpression index;
    std::vector<Step> then_steps, else_steps;
  };

  static bool Compile(Expr e, const IntExpression::Resolver& resolver, IntExpression* out) {
    absl::StatusOr<IntExpression> compiled = IntExpression::Compile(e, resolver);
    if (!compiled.ok()) return false;
    *out = *std::move(compiled);
    return true;
  }

  static bool Add(Stmt s, const IntExpression::Resolver& resolver, std::vector<Step>& steps) {
    Step step;
    switch (s.kind()) {
      case StmtKind::kSeq:
        // A division by zero must not leave half of the stores done.
        if (s.children().size() > 1) return false;
        return std::all_of(s.children().begin(), s.children().end(),
                           [&](Stmt child) { return Add(child, resolver, steps); });
      case StmtKind::kStore: {
        const absl::StatusOr<IntExpression::Source> buffer = resolver.load(s.buffer().node());
        if (!buffer.ok()) return false;
        step.is_store = true;
        step.buffer = buffer->index;
        step.type = s.buffer()->type;
        if (!Compile(s.value(), resolver, &step.value) ||
            !Compile(FlatIndex(s.buffer().node(), s.indices()), resolver, &step.index)) {
          return false;
        }
        break;
      }
      case StmtKind::kIf:
        if (!Compile(s.cond(), resolver, &step.value) ||
            !Add(s.then_case(), resolver, step.then_steps) ||
            !Add(s.else_case(), resolver, step.else_steps)) {
          return false;
        }
        break;
      default:
        return false;
    }
    steps.push_back(std::move(step));
    return true;
  }

  static bool RunSteps(const std::vector<Step>& steps, const IntInputs& inputs) {
    for (const Step& step : steps) {
      int64_t value = 0;
      if (!step.value.Evaluate(inputs, &value)) return false;
      if (step.is_store) {
        int64_t index = 0;
        if (!step.index.Evaluate(inputs, &index)) return false;
        ir::StoreInt(step.type, inputs.buffers[step.buffer] + index * ByteSize(step.type), value);
      } else if (!RunSteps(value != 0 ? step.then_steps : step.else_steps, inputs)) {
        return false;
      }
    }
    return true;
  }

  std::vector<Step> steps_;
};

// ---- loop nests -----------------------------------------------------------------------

// Elements that one pass over an expression handles; a slot of them stays in the first-level cache.
constexpr int kBlock = 256;
constexpr int kMaxSlots = 16;
constexpr int kMaxAccesses = 12;
constexpr int kMaxLoops = 8;

union Slot {
  float f[kBlock];
  int32_t i[kBlock];
};

// Types that blocks can hold: floats up to f32 as float, integers up to i32 as int32_t.
bool IsBlockType(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kF32:
    case Type::kI1:
    case Type::kI8:
    case Type::kU8:
    case Type::kI16:
    case Type::kI32:
      return true;
    case Type::kI64:
    case Type::kBF16:
    case Type::kF64:
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
      return false;
  }
  return false;
}

template <typename T>
T ReadAs(const uint8_t* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

template <typename T>
void WriteAs(uint8_t* address, T value) {
  std::memcpy(address, &value, sizeof(T));
}

template <typename T>
void LoadInts(const uint8_t* from, int64_t stride, int32_t* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = ReadAs<T>(from + i * stride);
}

template <typename T>
void StoreInts(const int32_t* from, uint8_t* to, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) WriteAs<T>(to + i * stride, static_cast<T>(from[i]));
}

void LoadBlock(Type type, const uint8_t* from, int64_t stride, Slot& to, int64_t n) {
  switch (type) {
    case Type::kF16:
      if (stride == 2) return HalfToFloat(from, to.f, n);
      for (int64_t i = 0; i < n; ++i)
        to.f[i] = ir::HalfToFloat(ReadAs<uint16_t>(from + i * stride));
      return;
    case Type::kF32:
      if (stride == 4) {
        std::memcpy(to.f, from, n * 4);
        return;
      }
      for (int64_t i = 0; i < n; ++i) to.f[i] = ReadAs<float>(from + i * stride);
      return;
    case Type::kI1:
      for (int64_t i = 0; i < n; ++i) to.i[i] = from[i * stride] != 0;
      return;
    case Type::kI8:
      return stride == 1 ? LoadInts<int8_t>(from, 1, to.i, n)
                         : LoadInts<int8_t>(from, stride, to.i, n);
    case Type::kU8:
      return LoadInts<uint8_t>(from, stride, to.i, n);
    case Type::kI16:
      return stride == 2 ? LoadInts<int16_t>(from, 2, to.i, n)
                         : LoadInts<int16_t>(from, stride, to.i, n);
    case Type::kI32:
      if (stride == 4) {
        std::memcpy(to.i, from, n * 4);
        return;
      }
      return LoadInts<int32_t>(from, stride, to.i, n);
    default:
      POLYNAO_UNREACHABLE(TypeName(type));
  }
}

void StoreBlock(Type type, const Slot& from, uint8_t* to, int64_t stride, int64_t n) {
  switch (type) {
    case Type::kF16:
      if (stride == 2) return FloatToHalf(from.f, to, n);
      for (int64_t i = 0; i < n; ++i) WriteAs(to + i * stride, ir::FloatToHalf(from.f[i]));
      return;
    case Type::kF32:
      for (int64_t i = 0; i < n; ++i) WriteAs(to + i * stride, from.f[i]);
      return;
    case Type::kI1:
    case Type::kI8:
    case Type::kU8:
      return StoreInts<uint8_t>(from.i, to, stride, n);
    case Type::kI16:
      return StoreInts<uint16_t>(from.i, to, stride, n);
    case Type::kI32:
      return StoreInts<uint32_t>(from.i, to, stride, n);
    default:
      POLYNAO_UNREACHABLE(TypeName(type));
  }
}

// Brings freshly computed values to their type: rounds f16, wraps narrow integers.
void Normalize(Type type, Slot& slot, int64_t n) {
  switch (type) {
    case Type::kF16:
      return RoundToHalf(slot.f, n);
    case Type::kI1:
      for (int64_t i = 0; i < n; ++i) slot.i[i] &= 1;
      return;
    case Type::kI8:
      for (int64_t i = 0; i < n; ++i) slot.i[i] = static_cast<int8_t>(slot.i[i]);
      return;
    case Type::kU8:
      for (int64_t i = 0; i < n; ++i) slot.i[i] = static_cast<uint8_t>(slot.i[i]);
      return;
    case Type::kI16:
      for (int64_t i = 0; i < n; ++i) slot.i[i] = static_cast<int16_t>(slot.i[i]);
      return;
    default:
      return;
  }
}

// Truncates towards zero and saturates; NaN gives 0 (ir.h, Cast).
int32_t Saturate(float value, float low, float high) {
  if (std::isnan(value)) return 0;
  if (value <= low) return static_cast<int32_t>(low);
  // 2^31 - 1 is no float: `high` is then 2^31, which must not be converted.
  if (value >= high) {
    return high >= 0x1p31f ? std::numeric_limits<int32_t>::max() : static_cast<int32_t>(high);
  }
  return static_cast<int32_t>(value);
}

void CastFloatToInt(Type type, const float* from, int32_t* to, int64_t n) {
  float low = -0x1p31f, high = 0x1p31f;
  if (type == Type::kI8) low = -128, high = 127;
  if (type == Type::kU8) low = 0, high = 255;
  if (type == Type::kI16) low = -32768, high = 32767;
  for (int64_t i = 0; i < n; ++i) {
    to[i] =
        type == Type::kI1 ? (from[i] != 0 && !std::isnan(from[i])) : Saturate(from[i], low, high);
  }
}

enum class BlockOp : uint8_t {
  kLoad,
  kBroadcastOperand,
  kBroadcastConst,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,
  kMax,
  kEq,
  kNe,
  kLt,
  kLe,
  kAnd,
  kOr,
  kNot,
  kSelect,
  kIntToFloat,
  kFloatToInt,
  kCopy,
  kCall,
};

// One operation of a block program; its result has the slot of its own position.
struct BlockStep {
  BlockOp op;
  Type type;                // of the result
  bool on_floats = false;   // of its operands
  int a = 0, b = 0, c = 0;  // slots; kLoad: access; kBroadcastOperand: operand
  double constant = 0;
  const ir::PureIntrinsic* intrinsic = nullptr;  // of kCall, with one argument
};

// Applies `f` to n pairs; small enough to be vectorised for each f.
template <typename T, typename R, typename F>
void Map2(const T* a, const T* b, R* out, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
}

int32_t WrapAdd(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
int32_t WrapSub(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}
int32_t WrapMul(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}

template <typename T>
void Compare(BlockOp op, const T* a, const T* b, int32_t* out, int64_t n) {
  switch (op) {
    case BlockOp::kEq:
      return Map2(a, b, out, n, [](T x, T y) { return x == y; });
    case BlockOp::kNe:
      return Map2(a, b, out, n, [](T x, T y) { return x != y; });
    case BlockOp::kLt:
      return Map2(a, b, out, n, [](T x, T y) { return x < y; });
    case BlockOp::kLe:
      return Map2(a, b, out, n, [](T x, T y) { return x <= y; });
    default:
      POLYNAO_UNREACHABLE(static_cast<int>(op));
  }
}

void FloatArithmetic(BlockOp op, const float* a, const float* b, float* out, int64_t n) {
  switch (op) {
    case BlockOp::kAdd:
      return Map2(a, b, out, n, [](float x, float y) { return x + y; });
    case BlockOp::kSub:
      return Map2(a, b, out, n, [](float x, float y) { return x - y; });
    case BlockOp::kMul:
      return Map2(a, b, out, n, [](float x, float y) { return x * y; });
    case BlockOp::kDiv:
      return Map2(a, b, out, n, [](float x, float y) { return x / y; });
    case BlockOp::kMin:
      return Map2(a, b, out, n, [](float x, float y) { return y < x ? y : x; });
    case BlockOp::kMax:
      return Map2(a, b, out, n, [](float x, float y) { return x < y ? y : x; });
    default:
      POLYNAO_UNREACHABLE(static_cast<int>(op));
  }
}

void IntArithmetic(BlockOp op, const int32_t* a, const int32_t* b, int32_t* out, int64_t n) {
  switch (op) {
    case BlockOp::kAdd:
      return Map2(a, b, out, n, WrapAdd);
    case BlockOp::kSub:
      return Map2(a, b, out, n, WrapSub);
    case BlockOp::kMul:
      return Map2(a, b, out, n, WrapMul);
    case BlockOp::kMin:
      return Map2(a, b, out, n, [](int32_t x, int32_t y) { return y < x ? y : x; });
    case BlockOp::kMax:
      return Map2(a, b, out, n, [](int32_t x, int32_t y) { return x < y ? y : x; });
    case BlockOp::kAnd:
      return Map2(a, b, out, n, [](int32_t x, int32_t y) { return x & y; });
    case BlockOp::kOr:
      return Map2(a, b, out, n, [](int32_t x, int32_t y) { return x | y; });
    default:
      POLYNAO_UNREACHABLE(static_cast<int>(op));
  }
}

// The value of an f16 function of one f16 argument, for all 65536 arguments.
struct HalfTable {
  std::once_flag once;
  std::vector<uint16_t> values;
};

// One store inside the loops, with its value as a block program over the innermost loop.
struct Leaf {
  enum class Kind : uint8_t {
    kCopy,   // dst = src, bytes
    kFill,   // dst = an operand or a constant
    kMap,    // dst = value
    kFold,   // dst = dst op value, and dst stays in place in the innermost loop
    kDot,    // dst += a * b in i32, and dst stays in place
    kTable,  // dst = table[src]
  };
  Kind kind = Kind::kMap;
  Type type = Type::kF32;  // of dst
  int dst = 0;             // access
  bool loads_dst = false;
  std::vector<BlockStep> steps;
  int result = 0;  // slot
  BlockOp fold = BlockOp::kAdd;
  bool dst_is_left = true;
  int a = 0, b = 0;         // kDot, kCopy, kTable: accesses
  Type factor = Type::kI8;  // kDot
  std::shared_ptr<HalfTable> table;
};

struct Access {
  int buffer = 0;  // of IntInputs
  int64_t bytes = 0;
  Type type = Type::kF32;
  IntExpression constant;
  std::vector<std::pair<int, IntExpression>> coefficients;  // (loop, elements per iteration)
};

struct Node {
  int loop = -1;  // -1: a leaf
  int leaf = -1;
  std::vector<Node> children;
  // A perfect nest down to one leaf: runs as one strided loop nest.
  bool is_chain = false;
  int chain = -1;
};

class NestRoutine : public NativeRoutine {
 public:
  static std::unique_ptr<NestRoutine> Create(const Instruction& instruction,
                                             const IntExpression::Resolver& resolver) {
    auto routine = std::make_unique<NestRoutine>();
    Builder builder{.instruction = instruction, .resolver = resolver, .r = *routine};
    if (!builder.Add(instruction.meaning.body, routine->roots_)) return nullptr;
    if (routine->loops_.size() > kMaxLoops || routine->accesses_.size() > kMaxAccesses) {
      return nullptr;
    }
    for (Node& node : routine->roots_) routine->FindChains(node);
    if (routine->chains_.size() > kMaxLoops) return nullptr;
    return routine;
  }

  bool Run(const IntInputs& inputs) const override {
    State state(inputs);
    for (size_t l = 0; l < loops_.size(); ++l) {
      if (!loops_[l].min.Evaluate(inputs, &state.min[l]) ||
          !loops_[l].extent.Evaluate(inputs, &state.extent[l])) {
        return false;
      }
    }
    for (size_t a = 0; a < accesses_.size(); ++a) {
      const Access& access = accesses_[a];
      int64_t first = 0;
      if (!access.constant.Evaluate(inputs, &first)) return false;
      for (const auto& [loop, coefficient] : access.coefficients) {
        int64_t stride = 0;
        if (!coefficient.Evaluate(inputs, &stride)) return false;
        state.stride[loop][a] = stride * access.bytes;
        first += state.min[loop] * stride;
      }
      state.at[a] = inputs.buffers[access.buffer] + first * access.bytes;
    }
    for (const Chain& chain : chains_) {
      if (!Flatten(chain, state)) return false;
    }
    for (const Node& node : roots_) {
      // Registers may ask for 2^62 rows of nothing.
      if (!IsEmpty(node, state)) Execute(node, state);
    }
    return true;
  }

 private:
  struct Loop {
    IntExpression min, extent;
  };
  struct Chain {
    int index;
    std::vector<int> loops;  // outermost first
    int leaf;
  };
  // A chain's loops with the operands of this run, merged where they are one.
  struct FlatChain {
    int depth = 0;
    int64_t count[kMaxLoops];
    int64_t stride[kMaxLoops][kMaxAccesses];
  };
  struct State {
    explicit State(const IntInputs& inputs) : inputs(inputs) {}
    const IntInputs& inputs;
    int64_t min[kMaxLoops];
    int64_t extent[kMaxLoops];
    int64_t stride[kMaxLoops][kMaxAccesses] = {};  // bytes
    uint8_t* at[kMaxAccesses];
    FlatChain chains[kMaxLoops];  // only their depths are set here: this is on the way of every run
  };

  struct Builder {
    const Instruction& instruction;
    const IntExpression::Resolver& resolver;
    NestRoutine& r;
    std::vector<ir::Var> vars = {};
    std::vector<int> loops = {};

    bool Compile(Expr e, IntExpression* out) {
      if (!e) e = instruction.meaning.context->I64(0);
      absl::StatusOr<IntExpression> compiled = IntExpression::Compile(e, resolver);
      if (!compiled.ok()) return false;
      *out = *std::move(compiled);
      return true;
    }

    bool Add(Stmt s, std::vector<Node>& nodes) {
      switch (s.kind()) {
        case StmtKind::kSeq:
          return std::all_of(s.children().begin(), s.children().end(),
                             [&](Stmt child) { return Add(child, nodes); });
        case StmtKind::kFor: {
          Node node;
          node.loop = static_cast<int>(r.loops_.size());
          Loop loop;
          // The resolver knows operands only, so bounds that depend on outer loops fail here.
          if (!Compile(s.min(), &loop.min) || !Compile(s.extent(), &loop.extent)) return false;
          r.loops_.push_back(std::move(loop));
          vars.push_back(s.var());
          loops.push_back(node.loop);
          const bool ok = Add(s.body(), node.children);
          vars.pop_back();
          loops.pop_back();
          nodes.push_back(std::move(node));
          return ok;
        }
        case StmtKind::kStore: {
          Node node;
          node.leaf = static_cast<int>(r.leaves_.size());
          Leaf leaf;
          if (!AddLeaf(s, leaf)) return false;
          r.leaves_.push_back(std::move(leaf));
          nodes.push_back(std::move(node));
          return true;
        }
        default:
          return false;
      }
    }

    // The access of an element, or -1.
    int AddAccess(const ir::BufferNode* buffer, Expr flat) {
      const absl::StatusOr<IntExpression::Source> source = resolver.load(buffer);
      const std::optional<Affine> affine = Linearize(flat, vars);
      if (!source.ok() || !affine) return -1;
      Access access;
      access.buffer = source->index;
      access.bytes = ByteSize(buffer->type);
      access.type = buffer->type;
      if (!Compile(affine->constant, &access.constant)) return -1;
      for (size_t k = 0; k < vars.size(); ++k) {
        if (!affine->coefficients[k]) continue;
        IntExpression coefficient;
        if (!Compile(affine->coefficients[k], &coefficient)) return -1;
        access.coefficients.push_back({loops[k], std::move(coefficient)});
      }
      r.accesses_.push_back(std::move(access));
      return static_cast<int>(r.accesses_.size()) - 1;
    }

    // The operand of a scalar parameter, or -1.
    int FindScalar(Expr var) {
      const absl::StatusOr<IntExpression::Source> source = resolver.variable(var);
      if (!source.ok() || source->kind != IntExpression::Source::Kind::kOperand) return -1;
      return source->index;
    }

    bool AddLeaf(Stmt store, Leaf& leaf) {
      const ir::BufferNode* buffer = store.buffer().node();
      const Expr index = FlatIndex(buffer, store.indices());
      leaf.type = buffer->type;
      leaf.dst = AddAccess(buffer, index);
      if (leaf.dst < 0) return false;
      const std::optional<Affine> affine = Linearize(index, vars);
      const bool stays = !vars.empty() && !affine->coefficients.back();
      const Expr value = store.value();

      if (stays) return AddFold(buffer, index, value, leaf);
      if (value.Is(ExprKind::kLoad) && value.buffer() != buffer) {
        leaf.kind = Leaf::Kind::kCopy;
        leaf.a = AddAccess(value.buffer(), FlatIndex(value.buffer(), value.operands()));
        return leaf.a >= 0;
      }
      if (value.IsConst() || (value.Is(ExprKind::kVar) && FindScalar(value) >= 0)) {
        leaf.kind = Leaf::Kind::kFill;
        BlockStep step{.op = BlockOp::kBroadcastConst, .type = value.type()};
        if (value.Is(ExprKind::kVar)) {
          step.op = BlockOp::kBroadcastOperand;
          step.a = FindScalar(value);
        } else {
          step.constant = value.Is(ExprKind::kIntImm) ? static_cast<double>(value.int_value())
                                                      : value.float_value();
          // i64 constants need not fit a double.
          if (value.Is(ExprKind::kIntImm) && std::abs(step.constant) > 0x1p52) return false;
        }
        leaf.steps.push_back(step);
        return true;
      }
      if (!IsBlockType(leaf.type)) return false;
      absl::flat_hash_map<Expr, int> done;
      leaf.result = AddValue(value, buffer, index, leaf, done);
      if (leaf.result < 0) return false;
      UseTable(leaf);
      return true;
    }

    // dst op= value, with dst in one place during the innermost loop.
    bool AddFold(const ir::BufferNode* buffer, Expr index, Expr value, Leaf& leaf) {
      const auto is_dst = [&](Expr e) {
        return e.Is(ExprKind::kLoad) && e.buffer() == buffer &&
               FlatIndex(buffer, e.operands()) == index;
      };
      if (value.kind() != ExprKind::kAdd && value.kind() != ExprKind::kMul &&
          value.kind() != ExprKind::kMin && value.kind() != ExprKind::kMax) {
        return false;
      }
      leaf.dst_is_left = is_dst(value.operand(0));
      if (!leaf.dst_is_left && !is_dst(value.operand(1))) return false;
      const Expr rest = value.operand(leaf.dst_is_left ? 1 : 0);
      if (!IsBlockType(leaf.type)) return false;
      leaf.kind = Leaf::Kind::kFold;
      leaf.fold = Operation(value.kind());
      absl::flat_hash_map<Expr, int> done;
      leaf.result = AddValue(rest, buffer, index, leaf, done);
      if (leaf.result < 0 || leaf.loads_dst) return false;
      if (leaf.type == Type::kI32 && value.Is(ExprKind::kAdd) && rest.Is(ExprKind::kMul)) {
        const auto factor = [](Expr e) -> Expr {
          const bool widens = e.Is(ExprKind::kCast) && e.operand(0).Is(ExprKind::kLoad);
          const Type type = widens ? e.operand(0).type() : e.type();
          return widens && (type == Type::kI8 || type == Type::kI16) ? e.operand(0) : Expr();
        };
        const Expr a = factor(rest.operand(0));
        const Expr b = factor(rest.operand(1));
        if (a && b && a.type() == b.type()) {
          leaf.kind = Leaf::Kind::kDot;
          leaf.factor = a.type();
          leaf.a = leaf.steps[leaf.steps[leaf.steps[leaf.result].a].a].a;
          leaf.b = leaf.steps[leaf.steps[leaf.steps[leaf.result].b].a].a;
        }
      }
      return true;
    }

    static BlockOp Operation(ExprKind kind) {
      switch (kind) {
        case ExprKind::kAdd:
          return BlockOp::kAdd;
        case ExprKind::kSub:
          return BlockOp::kSub;
        case ExprKind::kMul:
          return BlockOp::kMul;
        case ExprKind::kDiv:
          return BlockOp::kDiv;
        case ExprKind::kMin:
          return BlockOp::kMin;
        case ExprKind::kMax:
          return BlockOp::kMax;
        case ExprKind::kEq:
          return BlockOp::kEq;
        case ExprKind::kNe:
          return BlockOp::kNe;
        case ExprKind::kLt:
          return BlockOp::kLt;
        case ExprKind::kLe:
          return BlockOp::kLe;
        case ExprKind::kAnd:
          return BlockOp::kAnd;
        case ExprKind::kOr:
          return BlockOp::kOr;
        default:
          POLYNAO_UNREACHABLE(ExprKindName(kind));
      }
    }

    // The slot of `e`, or -1.
    int AddValue(Expr e, const ir::BufferNode* dst, Expr dst_index, Leaf& leaf,
                 absl::flat_hash_map<Expr, int>& done) {
      if (auto it = done.find(e); it != done.end()) return it->second;
      if (!IsBlockType(e.type())) return -1;
      BlockStep step{.op = BlockOp::kLoad, .type = e.type()};
      switch (e.kind()) {
        case ExprKind::kIntImm:
          step.op = BlockOp::kBroadcastConst;
          step.constant = static_cast<double>(e.int_value());
          break;
        case ExprKind::kFloatImm:
          step.op = BlockOp::kBroadcastConst;
          step.constant = e.float_value();
          break;
        case ExprKind::kVar:
          step.op = BlockOp::kBroadcastOperand;
          step.a = FindScalar(e);
          if (step.a < 0) return -1;
          break;
        case ExprKind::kLoad: {
          const Expr index = FlatIndex(e.buffer(), e.operands());
          if (e.buffer() == dst) {
            // Another element of dst could be one that this block changes.
            if (index != dst_index) return -1;
            leaf.loads_dst = true;
          }
          step.a = AddAccess(e.buffer(), index);
          if (step.a < 0) return -1;
          break;
        }
        case ExprKind::kCast: {
          const Type from = e.operand(0).type();
          step.a = AddValue(e.operand(0), dst, dst_index, leaf, done);
          if (step.a < 0) return -1;
          step.op = IsFloat(from) ? (IsFloat(e.type()) ? BlockOp::kCopy : BlockOp::kFloatToInt)
                                  : (IsFloat(e.type()) ? BlockOp::kIntToFloat : BlockOp::kCopy);
          step.on_floats = IsFloat(from);
          break;
        }
        case ExprKind::kCall:
          step.op = BlockOp::kCall;
          step.intrinsic = ir::FindPureIntrinsic(e.name());
          if (step.intrinsic == nullptr || step.intrinsic->arity != 1) return -1;
          step.a = AddValue(e.operand(0), dst, dst_index, leaf, done);
          if (step.a < 0) return -1;
          break;
        case ExprKind::kNot:
          step.op = BlockOp::kNot;
          step.a = AddValue(e.operand(0), dst, dst_index, leaf, done);
          if (step.a < 0) return -1;
          break;
        case ExprKind::kSelect:
          step.op = BlockOp::kSelect;
          step.a = AddValue(e.operand(0), dst, dst_index, leaf, done);
          // Blocks evaluate both sides. Footprints count conditional loads too, so that these are
          // in bounds.
          step.b = AddValue(e.operand(1), dst, dst_index, leaf, done);
          step.c = AddValue(e.operand(2), dst, dst_index, leaf, done);
          if (step.a < 0 || step.b < 0 || step.c < 0) return -1;
          step.on_floats = IsFloat(e.type());
          break;
        case ExprKind::kAddress:
        case ExprKind::kLet:
        case ExprKind::kMod:
        case ExprKind::kBitAnd:
        case ExprKind::kBitOr:
        case ExprKind::kBitXor:
        case ExprKind::kShiftLeft:
        case ExprKind::kShiftRight:
          return -1;
        default:
          step.op = Operation(e.kind());
          step.on_floats = IsFloat(e.operand(0).type());
          if (step.op == BlockOp::kDiv && !step.on_floats) return -1;
          if (!IsBlockType(e.operand(0).type())) return -1;
          step.a = AddValue(e.operand(0), dst, dst_index, leaf, done);
          step.b = AddValue(e.operand(1), dst, dst_index, leaf, done);
          if (step.a < 0 || step.b < 0) return -1;
      }
      if (leaf.steps.size() >= kMaxSlots) return -1;
      leaf.steps.push_back(step);
      const int slot = static_cast<int>(leaf.steps.size()) - 1;
      done[e] = slot;
      return slot;
    }

    // Transcendental functions of f16 are looked up: they have 65536 arguments.
    static void UseTable(Leaf& leaf) {
      const BlockStep* load = nullptr;
      bool has_call = false;
      for (const BlockStep& step : leaf.steps) {
        if (step.op == BlockOp::kBroadcastOperand) return;
        has_call |= step.op == BlockOp::kCall;
        if (step.op != BlockOp::kLoad) continue;
        if (load != nullptr || step.type != Type::kF16) return;
        load = &step;
      }
      if (load == nullptr || !has_call || leaf.type != Type::kF16) return;
      leaf.kind = Leaf::Kind::kTable;
      leaf.a = load->a;
      leaf.table = std::make_shared<HalfTable>();
    }
  };

  // Marks perfect nests and the leaves outside of any loop of their own.
  void FindChains(Node& node) {
    std::vector<int> loops;
    const Node* at = &node;
    while (at->loop >= 0 && at->children.size() == 1) {
      loops.push_back(at->loop);
      at = &at->children[0];
    }
    if (at->leaf >= 0) {
      node.is_chain = true;
      node.chain = static_cast<int>(chains_.size());
      chains_.push_back({node.chain, std::move(loops), at->leaf});
      return;
    }
    for (Node& child : node.children) FindChains(child);
  }

  // Adds to `flat` the loops of `chain`; false if its leaf can not run this way.
  bool Flatten(const Chain& chain, State& state) const {
    FlatChain& flat = state.chains[chain.index];
    const Leaf& leaf = leaves_[chain.leaf];
    const size_t accesses = accesses_.size();
    for (const int loop : chain.loops) {
      const int64_t count = std::max<int64_t>(state.extent[loop], 0);
      const int64_t* stride = state.stride[loop];
      // One iteration moves nothing, so its strides are no obstacle to merging.
      if (count == 1) continue;
      bool merges = flat.depth > 0;
      for (size_t a = 0; a < accesses && merges; ++a) {
        merges = flat.stride[flat.depth - 1][a] == count * stride[a];
      }
      if (!merges) flat.count[flat.depth++] = 1;
      flat.count[flat.depth - 1] *= count;
      std::copy(stride, stride + accesses, flat.stride[flat.depth - 1]);
    }
    if (flat.depth == 0) {
      flat.depth = 1;
      flat.count[0] = 1;
      std::fill(flat.stride[0], flat.stride[0] + accesses, 0);
    }
    // A block reads all of its elements before it writes the first.
    const int inner = flat.depth - 1;
    return leaf.kind == Leaf::Kind::kFold || leaf.kind == Leaf::Kind::kDot || !leaf.loads_dst ||
           flat.count[inner] <= 1 || flat.stride[inner][leaf.dst] != 0;
  }

  // Whether no leaf below runs.
  static bool IsEmpty(const Node& node, const State& state) {
    if (node.loop < 0) return false;
    return state.extent[node.loop] <= 0 ||
           std::all_of(node.children.begin(), node.children.end(),
                       [&](const Node& child) { return IsEmpty(child, state); });
  }

  void Execute(const Node& node, State& state) const {
    if (node.is_chain) {
      uint8_t* at[kMaxAccesses];
      std::copy(state.at, state.at + accesses_.size(), at);
      return ExecuteChain(leaves_[chains_[node.chain].leaf], state.chains[node.chain], 0, at,
                          state.inputs);
    }
    POLYNAO_CHECK(node.loop >= 0) << "a leaf is always a chain";
    const int64_t count = state.extent[node.loop];
    const size_t accesses = accesses_.size();
    uint8_t* before[kMaxAccesses];
    std::copy(state.at, state.at + accesses, before);
    for (int64_t i = 0; i < count; ++i) {
      for (const Node& child : node.children) Execute(child, state);
      for (size_t a = 0; a < accesses; ++a) state.at[a] += state.stride[node.loop][a];
    }
    std::copy(before, before + accesses, state.at);
  }

  void ExecuteChain(const Leaf& leaf, const FlatChain& flat, int depth, uint8_t** at,
                    const IntInputs& inputs) const {
    if (leaf.kind == Leaf::Kind::kDot && depth == flat.depth - 2 &&
        flat.stride[depth][leaf.dst] == 0 && IsDot(leaf, flat.stride[depth + 1])) {
      return Dot(leaf, at,
                 {.n = flat.count[depth + 1],
                  .rows = flat.count[depth],
                  .a_stride = flat.stride[depth][leaf.a],
                  .b_stride = flat.stride[depth][leaf.b]});
    }
    if (depth == flat.depth - 1) {
      return RunLeaf(leaf, at, flat.stride[depth], flat.count[depth], inputs);
    }
    const size_t accesses = accesses_.size();
    uint8_t* inner[kMaxAccesses];
    for (int64_t i = 0; i < flat.count[depth]; ++i) {
      for (size_t a = 0; a < accesses; ++a) inner[a] = at[a] + i * flat.stride[depth][a];
      ExecuteChain(leaf, flat, depth + 1, inner, inputs);
    }
  }

  // Whether the innermost loop goes along both factors and stays at one sum.
  static bool IsDot(const Leaf& leaf, const int64_t* stride) {
    const int64_t size = ByteSize(leaf.factor);
    return stride[leaf.a] == size && stride[leaf.b] == size && stride[leaf.dst] == 0;
  }

  static void Dot(const Leaf& leaf, uint8_t** at, const DotRows& shape) {
    const int32_t sum = leaf.factor == Type::kI8 ? DotI8(at[leaf.a], at[leaf.b], shape)
                                                 : DotI16(at[leaf.a], at[leaf.b], shape);
    WriteAs(at[leaf.dst], WrapAdd(ReadAs<int32_t>(at[leaf.dst]), sum));
  }

  void RunLeaf(const Leaf& leaf, uint8_t** at, const int64_t* stride, int64_t n,
               const IntInputs& inputs) const {
    if (n <= 0) return;
    uint8_t* dst = at[leaf.dst];
    const int64_t dst_stride = stride[leaf.dst];
    const int64_t bytes = ByteSize(leaf.type);
    switch (leaf.kind) {
      case Leaf::Kind::kCopy:
        return Copy(dst, dst_stride, at[leaf.a], stride[leaf.a], n, bytes);
      case Leaf::Kind::kFill: {
        uint8_t value[8] = {};
        const BlockStep& step = leaf.steps[0];
        if (step.op == BlockOp::kBroadcastOperand) {
          const int64_t bits =
              leaf.type == Type::kI1 ? inputs.operands[step.a] & 1 : inputs.operands[step.a];
          std::memcpy(value, &bits, sizeof(value));
        } else if (IsFloat(leaf.type)) {
          ir::StoreFloat(leaf.type, value, step.constant);
        } else {
          ir::StoreInt(leaf.type, value, static_cast<int64_t>(step.constant));
        }
        return Fill(dst, dst_stride, value, n, bytes);
      }
      case Leaf::Kind::kTable: {
        std::call_once(leaf.table->once, [&] { BuildTable(leaf, inputs); });
        const uint16_t* table = leaf.table->values.data();
        const uint8_t* src = at[leaf.a];
        for (int64_t i = 0; i < n; ++i) {
          WriteAs(dst + i * dst_stride, table[ReadAs<uint16_t>(src + i * stride[leaf.a])]);
        }
        return;
      }
      case Leaf::Kind::kDot:
        if (IsDot(leaf, stride)) return Dot(leaf, at, {.n = n});
        break;
      case Leaf::Kind::kMap:
      case Leaf::Kind::kFold:
        break;
    }
    Slot slots[kMaxSlots];
    Prepare(leaf, inputs, std::min<int64_t>(n, kBlock), slots);
    for (int64_t done = 0; done < n; done += kBlock) {
      const int64_t count = std::min<int64_t>(n - done, kBlock);
      Evaluate(leaf, at, stride, done, count, slots);
      if (leaf.kind == Leaf::Kind::kMap) {
        StoreBlock(leaf.type, slots[leaf.result], dst + done * dst_stride, dst_stride, count);
      } else {
        Fold(leaf, slots[leaf.result], dst + done * dst_stride, dst_stride, count);
      }
    }
  }

  static void Copy(uint8_t* dst, int64_t dst_stride, const uint8_t* src, int64_t src_stride,
                   int64_t n, int64_t bytes) {
    if (dst_stride == bytes && src_stride == bytes) {
      std::memmove(dst, src, n * bytes);
      return;
    }
    const auto copy = [&](auto zero) {
      for (int64_t i = 0; i < n; ++i) {
        WriteAs(dst + i * dst_stride, ReadAs<decltype(zero)>(src + i * src_stride));
      }
    };
    switch (bytes) {
      case 1:
        return copy(uint8_t{0});
      case 2:
        return copy(uint16_t{0});
      case 4:
        return copy(uint32_t{0});
      default:
        return copy(uint64_t{0});
    }
  }

  static void Fill(uint8_t* dst, int64_t stride, const uint8_t* value, int64_t n, int64_t bytes) {
    Copy(dst, stride, value, 0, n, bytes);
  }

  // Writes the steps that are the same for all blocks.
  static void Prepare(const Leaf& leaf, const IntInputs& inputs, int64_t n, Slot* slots) {
    for (size_t s = 0; s < leaf.steps.size(); ++s) {
      const BlockStep& step = leaf.steps[s];
      if (step.op == BlockOp::kBroadcastConst) {
        if (IsFloat(step.type)) {
          std::fill(slots[s].f, slots[s].f + n, static_cast<float>(step.constant));
        } else {
          std::fill(slots[s].i, slots[s].i + n, static_cast<int32_t>(step.constant));
        }
      } else if (step.op == BlockOp::kBroadcastOperand) {
        const int64_t bits = inputs.operands[step.a];
        const uint8_t* raw = reinterpret_cast<const uint8_t*>(&bits);
        LoadBlock(step.type, raw, 0, slots[s], n);
        if (step.type == Type::kI1) std::fill(slots[s].i, slots[s].i + n, bits & 1);
      }
    }
  }

  static void Evaluate(const Leaf& leaf, uint8_t* const* at, const int64_t* stride, int64_t done,
                       int64_t n, Slot* slots) {
    for (size_t s = 0; s < leaf.steps.size(); ++s) {
      const BlockStep& step = leaf.steps[s];
      Slot& out = slots[s];
      const Slot& a = slots[step.a < kMaxSlots ? step.a : 0];
      const Slot& b = slots[step.b];
      // A value that is stored at once is rounded by the store.
      const bool is_last = leaf.kind == Leaf::Kind::kMap && static_cast<int>(s) == leaf.result;
      switch (step.op) {
        case BlockOp::kBroadcastConst:
        case BlockOp::kBroadcastOperand:
          continue;
        case BlockOp::kLoad:
          LoadBlock(step.type, at[step.a] + done * stride[step.a], stride[step.a], out, n);
          continue;
        case BlockOp::kAdd:
        case BlockOp::kSub:
        case BlockOp::kMul:
        case BlockOp::kDiv:
        case BlockOp::kMin:
        case BlockOp::kMax:
        case BlockOp::kAnd:
        case BlockOp::kOr:
          if (step.on_floats) {
            FloatArithmetic(step.op, a.f, b.f, out.f, n);
          } else {
            IntArithmetic(step.op, a.i, b.i, out.i, n);
          }
          // The smaller or larger of two values needs no rounding.
          if (step.op == BlockOp::kMin || step.op == BlockOp::kMax) continue;
          break;
        case BlockOp::kEq:
        case BlockOp::kNe:
        case BlockOp::kLt:
        case BlockOp::kLe:
          if (step.on_floats) {
            Compare(step.op, a.f, b.f, out.i, n);
          } else {
            Compare(step.op, a.i, b.i, out.i, n);
          }
          continue;
        case BlockOp::kNot:
          for (int64_t i = 0; i < n; ++i) out.i[i] = a.i[i] ^ 1;
          continue;
        case BlockOp::kSelect: {
          // The bits of either kind of value.
          const Slot& c = slots[step.c];
          for (int64_t i = 0; i < n; ++i) out.i[i] = a.i[i] != 0 ? b.i[i] : c.i[i];
          continue;
        }
        case BlockOp::kIntToFloat:
          // 24 bits of an integer beyond 2^24 round here, but those are infinite in f16.
          for (int64_t i = 0; i < n; ++i) out.f[i] = static_cast<float>(a.i[i]);
          break;
        case BlockOp::kFloatToInt:
          CastFloatToInt(step.type, a.f, out.i, n);
          continue;
        case BlockOp::kCopy:
          std::memcpy(&out, &a, n * 4);
          break;
        case BlockOp::kCall:
          for (int64_t i = 0; i < n; ++i) {
            const double value = step.intrinsic->evaluate(a.f[i], 0);
            out.f[i] = static_cast<float>(
                step.type == Type::kF16 ? ir::RoundFloat(Type::kF16, value) : value);
          }
          continue;
      }
      if (!is_last) Normalize(step.type, out, n);
    }
  }

  static void Fold(const Leaf& leaf, const Slot& value, uint8_t* dst, int64_t stride, int64_t n) {
    if (stride != 0) {
      // Merged with an outer loop, of which dst is a coordinate: one element each.
      for (int64_t i = 0; i < n; ++i) {
        Slot one;
        one.i[0] = value.i[i];
        Fold(leaf, one, dst + i * stride, 0, 1);
      }
      return;
    }
    Slot acc;
    LoadBlock(leaf.type, dst, 0, acc, 1);
    if (leaf.type == Type::kF16 && leaf.fold == BlockOp::kAdd) {
      acc.f[0] = SumToHalf(acc.f[0], value.f, n);
    } else if (IsFloat(leaf.type)) {
      acc.f[0] = FoldValues(leaf, acc.f[0], value.f, n, [&](float a, float b) {
        float result;
        FloatArithmetic(leaf.fold, &a, &b, &result, 1);
        return leaf.type == Type::kF16 ? ir::HalfToFloat(ir::FloatToHalf(result)) : result;
      });
    } else {
      acc.i[0] = FoldValues(leaf, acc.i[0], value.i, n, [&](int32_t a, int32_t b) {
        Slot result;
        IntArithmetic(leaf.fold, &a, &b, result.i, 1);
        Normalize(leaf.type, result, 1);
        return result.i[0];
      });
    }
    StoreBlock(leaf.type, acc, dst, 0, 1);
  }

  template <typename T, typename F>
  static T FoldValues(const Leaf& leaf, T acc, const T* values, int64_t n, F f) {
    // The common folds have loops of their own, without a call and a switch for each element.
    constexpr bool kIsFloat = std::is_same_v<T, float>;
    const bool exact = !kIsFloat || leaf.type == Type::kF32;
    if (leaf.fold == BlockOp::kAdd && kIsFloat && exact) {
      for (int64_t i = 0; i < n; ++i) acc = leaf.dst_is_left ? acc + values[i] : values[i] + acc;
      return acc;
    }
    if (leaf.fold == BlockOp::kMax && leaf.dst_is_left) {
      for (int64_t i = 0; i < n; ++i) acc = acc < values[i] ? values[i] : acc;
      return acc;
    }
    if (leaf.fold == BlockOp::kMin && leaf.dst_is_left) {
      for (int64_t i = 0; i < n; ++i) acc = values[i] < acc ? values[i] : acc;
      return acc;
    }
    for (int64_t i = 0; i < n; ++i) {
      acc = leaf.dst_is_left ? f(acc, values[i]) : f(values[i], acc);
    }
    return acc;
  }

  // Evaluates the leaf's program on all 65536 halves.
  static void BuildTable(const Leaf& leaf, const IntInputs& inputs) {
    constexpr int64_t kHalves = 65536;
    std::vector<uint16_t> arguments(kHalves);
    for (int64_t i = 0; i < kHalves; ++i) arguments[i] = static_cast<uint16_t>(i);
    leaf.table->values.resize(kHalves);
    uint8_t* at[kMaxAccesses] = {};
    int64_t stride[kMaxAccesses] = {};
    at[leaf.a] = reinterpret_cast<uint8_t*>(arguments.data());
    stride[leaf.a] = 2;
    Leaf map = leaf;
    map.kind = Leaf::Kind::kMap;
    Slot slots[kMaxSlots];
    Prepare(map, inputs, kBlock, slots);
    for (int64_t done = 0; done < kHalves; done += kBlock) {
      Evaluate(map, at, stride, done, kBlock, slots);
      StoreBlock(Type::kF16, slots[map.result],
                 reinterpret_cast<uint8_t*>(leaf.table->values.data() + done), 2, kBlock);
    }
  }

  std::vector<Loop> loops_;
  std::vector<Access> accesses_;
  std::vector<Leaf> leaves_;
  std::vector<Node> roots_;
  std::vector<Chain> chains_;
};

}  // namespace

std::unique_ptr<NativeRoutine> NativeRoutine::Create(const Instruction& instruction,
                                                     const IntExpression::Resolver& resolver) {
  if (auto scalar = ScalarRoutine::Create(instruction.meaning.body, resolver)) return scalar;
  return NestRoutine::Create(instruction, resolver);
}

}  // namespace polynao::isa
