#include "isa/native_plan.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "compiler/ir/affine.h"
#include "compiler/ir/flat_index.h"
#include "compiler/ir/intrinsics.h"

namespace polynao::isa::native {
namespace {

using ir::Affine;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

struct Builder {
  const Instruction& instruction;
  const IntExpression::Resolver& resolver;
  NestPlan& plan;
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
        node.loop = static_cast<int>(plan.loops.size());
        Loop loop;
        // The resolver knows operands only, so bounds that depend on outer loops fail here.
        if (!Compile(s.min(), &loop.min) || !Compile(s.extent(), &loop.extent)) return false;
        plan.loops.push_back(std::move(loop));
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
        node.leaf = static_cast<int>(plan.leaves.size());
        Leaf leaf;
        if (!AddLeaf(s, leaf)) return false;
        plan.leaves.push_back(std::move(leaf));
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
    plan.accesses.push_back(std::move(access));
    return static_cast<int>(plan.accesses.size()) - 1;
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
    if (value.Is(ExprKind::kAdd) && rest.Is(ExprKind::kMul)) FindProduct(rest, leaf);
    return true;
  }

  // Sets leaf.factor if what is added, `rest`, is the product of two loads, widened to the sum's type.
  static void FindProduct(Expr rest, Leaf& leaf) {
    const auto type_of = [&](Expr e) -> std::optional<Type> {
      const Expr load = e.Is(ExprKind::kCast) ? e.operand(0) : e;
      if (!load.Is(ExprKind::kLoad)) return std::nullopt;
      const Type type = load.type();
      const bool fits = leaf.type == Type::kI32
                            ? type == Type::kI8 || type == Type::kI16
                            : leaf.type == Type::kF32 && (type == Type::kF16 || type == Type::kF32);
      return fits ? std::optional(type) : std::nullopt;
    };
    const std::optional<Type> type = type_of(rest.operand(0));
    if (!type || type_of(rest.operand(1)) != type) return;
    const auto access_of = [&](int slot) {
      while (leaf.steps[slot].op != BlockOp::kLoad) slot = leaf.steps[slot].a;
      return leaf.steps[slot].a;
    };
    if (leaf.type == Type::kI32) leaf.kind = Leaf::Kind::kDot;
    leaf.factor = type;
    leaf.a = access_of(leaf.steps[leaf.result].a);
    leaf.b = access_of(leaf.steps[leaf.result].b);
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
void FindChains(Node& node, std::vector<Chain>& chains) {
  std::vector<int> loops;
  const Node* at = &node;
  while (at->loop >= 0 && at->children.size() == 1) {
    loops.push_back(at->loop);
    at = &at->children[0];
  }
  if (at->leaf >= 0) {
    node.is_chain = true;
    node.chain = static_cast<int>(chains.size());
    chains.push_back({node.chain, std::move(loops), at->leaf});
    return;
  }
  for (Node& child : node.children) FindChains(child, chains);
}

}  // namespace

std::optional<NestPlan> PlanNest(const Instruction& instruction,
                                 const IntExpression::Resolver& resolver) {
  NestPlan plan;
  Builder builder{.instruction = instruction, .resolver = resolver, .plan = plan};
  if (!builder.Add(instruction.meaning.body, plan.roots)) return std::nullopt;
  if (plan.loops.size() > kMaxLoops || plan.accesses.size() > kMaxAccesses) return std::nullopt;
  for (Node& node : plan.roots) FindChains(node, plan.chains);
  if (plan.chains.size() > kMaxLoops) return std::nullopt;
  return plan;
}

}  // namespace polynao::isa::native
