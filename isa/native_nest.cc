#include "isa/native_nest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "isa/native_blocks.h"
#include "isa/native_grid.h"
#include "isa/native_plan.h"
#include "isa/simd.h"

namespace polynao::isa::native {
namespace {

class NestRoutine : public NativeRoutine {
 public:
  explicit NestRoutine(NestPlan plan) : plan_(std::move(plan)) {}

  bool Run(const IntInputs& inputs) const override {
    State state(inputs);
    for (size_t l = 0; l < plan_.loops.size(); ++l) {
      if (!plan_.loops[l].min.Evaluate(inputs, &state.min[l]) ||
          !plan_.loops[l].extent.Evaluate(inputs, &state.extent[l])) {
        return false;
      }
    }
    for (size_t a = 0; a < plan_.accesses.size(); ++a) {
      const Access& access = plan_.accesses[a];
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
    for (const Chain& chain : plan_.chains) {
      if (!Flatten(chain, state)) return false;
    }
    for (const Node& node : plan_.roots) {
      // Registers may ask for 2^62 rows of nothing.
      if (!IsEmpty(node, state) && !RunAsGrid(node, state)) Execute(node, state);
    }
    return true;
  }

 private:
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
    FlatChain chains[kMaxLoops];  // only their depths are initialised: every run pays for it
  };

  // Adds to `flat` the loops of `chain`; false if its leaf can not run this way.
  bool Flatten(const Chain& chain, State& state) const {
    FlatChain& flat = state.chains[chain.index];
    const Leaf& leaf = plan_.leaves[chain.leaf];
    const size_t accesses = plan_.accesses.size();
    for (const int loop : chain.loops) {
      const int64_t count = std::max<int64_t>(state.extent[loop], 0);
      const int64_t* stride = state.stride[loop];
      // The strides of a loop of one iteration do not matter, so it merges with any loop.
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

  // Runs loops around a sum of products at once, where they have that form: all in one chain, or with a store of 0
  // before the chain of the sum.
  bool RunAsGrid(const Node& root, const State& state) const {
    std::vector<int> loops;
    const Node* at = &root;
    while (!at->is_chain && at->loop >= 0 && at->children.size() == 1) {
      loops.push_back(at->loop);
      at = &at->children[0];
    }
    const Node* sum = at;
    const Leaf* zero = nullptr;
    if (!at->is_chain && at->loop >= 0 && at->children.size() == 2 && at->children[0].is_chain) {
      loops.push_back(at->loop);
      zero = &plan_.leaves[plan_.chains[at->children[0].chain].leaf];
      if (!plan_.chains[at->children[0].chain].loops.empty() || !IsZero(*zero)) return false;
      sum = &at->children[1];
    }
    if (!sum->is_chain) return false;
    const Chain& chain = plan_.chains[sum->chain];
    const Leaf& leaf = plan_.leaves[chain.leaf];
    if (!leaf.factor) return false;
    if (zero != nullptr && (zero->type != leaf.type || state.at[zero->dst] != state.at[leaf.dst])) {
      return false;
    }
    std::vector<GridLoop> grid_loops;
    for (const std::vector<int>* list : {&std::as_const(loops), &chain.loops}) {
      for (const int loop : *list) {
        const int64_t* stride = state.stride[loop];
        const bool stores_zero = zero != nullptr && list == &loops;
        if (stores_zero && stride[zero->dst] != stride[leaf.dst]) return false;
        // What is stored before the sum must be all that the sum adds to.
        if (zero != nullptr && !stores_zero && stride[leaf.dst] != 0) return false;
        grid_loops.push_back(
            {state.extent[loop], stride[leaf.a], stride[leaf.b], stride[leaf.dst]});
      }
    }
    const std::optional<Grid> grid = FindGrid(grid_loops, *leaf.factor, /*adds=*/zero == nullptr);
    if (!grid) return false;
    return RunDotGrid(grid->grid, state.at[grid->is_swapped ? leaf.b : leaf.a],
                      state.at[grid->is_swapped ? leaf.a : leaf.b], state.at[leaf.dst]);
  }

  static bool IsZero(const Leaf& leaf) {
    return leaf.kind == Leaf::Kind::kFill && leaf.steps[0].op == BlockOp::kBroadcastConst &&
           leaf.steps[0].constant == 0 && !std::signbit(leaf.steps[0].constant);
  }

  void Execute(const Node& node, State& state) const {
    if (node.is_chain) {
      uint8_t* at[kMaxAccesses];
      std::copy(state.at, state.at + plan_.accesses.size(), at);
      return ExecuteChain(plan_.leaves[plan_.chains[node.chain].leaf], state.chains[node.chain], 0,
                          at, state.inputs);
    }
    POLYNAO_CHECK(node.loop >= 0) << "a leaf is always a chain";
    const int64_t count = state.extent[node.loop];
    const size_t accesses = plan_.accesses.size();
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
    const size_t accesses = plan_.accesses.size();
    uint8_t* inner[kMaxAccesses];
    for (int64_t i = 0; i < flat.count[depth]; ++i) {
      for (size_t a = 0; a < accesses; ++a) inner[a] = at[a] + i * flat.stride[depth][a];
      ExecuteChain(leaf, flat, depth + 1, inner, inputs);
    }
  }

  // Whether the innermost loop steps through consecutive elements of both factors and adds to one sum.
  static bool IsDot(const Leaf& leaf, const int64_t* stride) {
    const int64_t size = ByteSize(*leaf.factor);
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
          // Copies bits, which serves floats and integers.
          const Slot& c = slots[step.c];
          for (int64_t i = 0; i < n; ++i) out.i[i] = a.i[i] != 0 ? b.i[i] : c.i[i];
          continue;
        }
        case BlockOp::kIntToFloat:
          // An integer beyond 2^24 is rounded here and, in f16, again below; there it is infinite anyway.
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
            const double value = step.intrinsic->evaluate(step.type, a.f[i], 0, 0);
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
      // The innermost loop was merged with one that moves dst: each iteration folds into an element of its own.
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

  const NestPlan plan_;
};

}  // namespace

std::unique_ptr<NativeRoutine> CreateNestRoutine(const Instruction& instruction,
                                                 const IntExpression::Resolver& resolver) {
  std::optional<NestPlan> plan = PlanNest(instruction, resolver);
  return plan ? std::make_unique<NestRoutine>(*std::move(plan)) : nullptr;
}

}  // namespace polynao::isa::native
