#include "compiler/ir/int_expression.h"

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "compiler/ir/flat_index.h"

namespace polynao::ir {

struct IntExpression::Compiler {
  const Resolver& resolver;
  std::vector<Node> nodes = {};
  absl::flat_hash_map<Expr, int> done = {};

  int Push(Node node) {
    nodes.push_back(node);
    return static_cast<int>(nodes.size()) - 1;
  }

  absl::StatusOr<int> Visit(Expr e) {
    if (auto it = done.find(e); it != done.end()) return it->second;
    ASSIGN_OR_RETURN(const int node, Build(e));
    done[e] = node;
    return node;
  }

  absl::StatusOr<int> Leaf(const Source& source) {
    POLYNAO_CHECK(source.kind != Source::Kind::kBuffer) << "a buffer is no scalar";
    return Push({.op = source.kind == Source::Kind::kOperand ? Op::kOperand : Op::kParameter,
                 .a = source.index});
  }

  absl::StatusOr<int> Build(Expr e) {
    if (IsFloat(e.type())) {
      return InvalidInput("expected an integer expression, found a ", TypeName(e.type()));
    }
    switch (e.kind()) {
      case ExprKind::kIntImm:
        return Push({.op = Op::kConst, .value = e.int_value()});
      case ExprKind::kVar: {
        ASSIGN_OR_RETURN(const Source source, resolver.variable(e));
        ASSIGN_OR_RETURN(const int leaf, Leaf(source));
        return Wrap(e.type(), leaf);
      }
      case ExprKind::kAddress: {
        ASSIGN_OR_RETURN(const Source source, resolver.address(e.buffer()));
        ASSIGN_OR_RETURN(const int base, Leaf(source));
        ASSIGN_OR_RETURN(const int index, Visit(FlatIndex(e.buffer(), e.operands())));
        const int size = Push({.op = Op::kConst, .value = ByteSize(e.buffer()->type)});
        const int offset = Push({.op = Op::kMul, .a = index, .b = size});
        return Push({.op = Op::kAdd, .a = base, .b = offset});
      }
      case ExprKind::kLoad: {
        if (!resolver.load)
          return InvalidInput("a load of ", e.buffer()->name, " has no place here");
        ASSIGN_OR_RETURN(const Source source, resolver.load(e.buffer()));
        ASSIGN_OR_RETURN(const int index, Visit(FlatIndex(e.buffer(), e.operands())));
        return Push({.op = Op::kLoad, .type = e.type(), .a = source.index, .b = index});
      }
      case ExprKind::kCast: {
        ASSIGN_OR_RETURN(const int value, Visit(e.operand(0)));
        if (e.type() != Type::kI1) return Wrap(e.type(), value);
        const int zero = Push({.op = Op::kConst});
        return Push({.op = Op::kNe, .a = value, .b = zero});
      }
      case ExprKind::kNot: {
        ASSIGN_OR_RETURN(const int value, Visit(e.operand(0)));
        return Push({.op = Op::kNot, .a = value});
      }
      case ExprKind::kSelect: {
        ASSIGN_OR_RETURN(const int condition, Visit(e.operand(0)));
        ASSIGN_OR_RETURN(const int then_value, Visit(e.operand(1)));
        ASSIGN_OR_RETURN(const int else_value, Visit(e.operand(2)));
        return Push({.op = Op::kSelect, .a = condition, .b = then_value, .c = else_value});
      }
      case ExprKind::kFloatImm:
      case ExprKind::kLet:
      case ExprKind::kCall:
        return InvalidInput("expected integer arithmetic, found ", ExprKindName(e.kind()));
      default: {
        ASSIGN_OR_RETURN(const int a, Visit(e.operand(0)));
        ASSIGN_OR_RETURN(const int b, Visit(e.operand(1)));
        const Type type = e.operand(0).type();
        return Wrap(e.type(), Push({.op = BinaryOp(e.kind()), .type = type, .a = a, .b = b}));
      }
    }
  }

  static Op BinaryOp(ExprKind kind) {
    switch (kind) {
      case ExprKind::kAdd:
        return Op::kAdd;
      case ExprKind::kSub:
        return Op::kSub;
      case ExprKind::kMul:
        return Op::kMul;
      case ExprKind::kDiv:
        return Op::kDiv;
      case ExprKind::kMod:
        return Op::kMod;
      case ExprKind::kMin:
        return Op::kMin;
      case ExprKind::kMax:
        return Op::kMax;
      case ExprKind::kEq:
        return Op::kEq;
      case ExprKind::kNe:
        return Op::kNe;
      case ExprKind::kLt:
        return Op::kLt;
      case ExprKind::kLe:
        return Op::kLe;
      case ExprKind::kAnd:
        return Op::kAnd;
      case ExprKind::kOr:
        return Op::kOr;
      case ExprKind::kBitAnd:
        return Op::kBitAnd;
      case ExprKind::kBitOr:
        return Op::kBitOr;
      case ExprKind::kBitXor:
        return Op::kBitXor;
      case ExprKind::kShiftLeft:
        return Op::kShiftLeft;
      case ExprKind::kShiftRight:
        return Op::kShiftRight;
      default:
        POLYNAO_UNREACHABLE(ExprKindName(kind));
    }
  }

  // Values are kept in 64 bits (compiler/ir/type.h); narrower results wrap to their type.
  int Wrap(Type type, int node) {
    if (type == Type::kI64 || type == Type::kU64) return node;
    return Push({.op = Op::kWrap, .type = type, .a = node});
  }
};

absl::StatusOr<IntExpression> IntExpression::Compile(Expr e, const Resolver& resolver) {
  Compiler compiler{.resolver = resolver};
  IntExpression result;
  ASSIGN_OR_RETURN(result.root_, compiler.Visit(e));
  result.nodes_ = std::move(compiler.nodes);
  return result;
}

bool IntExpression::IsConstant(int64_t value) const {
  return nodes_[root_].op == Op::kConst && nodes_[root_].value == value;
}

int64_t IntExpression::Eval(int index, const IntInputs& inputs, bool& ok) const {
  const Node& node = nodes_[index];
  const auto eval = [&](int operand) { return Eval(operand, inputs, ok); };
  const auto bits = [&](int operand) { return static_cast<uint64_t>(eval(operand)); };
  switch (node.op) {
    case Op::kConst:
      return node.value;
    case Op::kOperand:
      return inputs.operands[node.a];
    case Op::kParameter:
      return inputs.parameters[node.a];
    case Op::kLoad: {
      const int64_t at = eval(node.b);
      return ok ? LoadInt(node.type, inputs.buffers[node.a] + at * ByteSize(node.type)) : 0;
    }
    case Op::kAdd:
      return static_cast<int64_t>(bits(node.a) + bits(node.b));
    case Op::kSub:
      return static_cast<int64_t>(bits(node.a) - bits(node.b));
    case Op::kMul:
      return static_cast<int64_t>(bits(node.a) * bits(node.b));
    case Op::kDiv:
    case Op::kMod: {
      const int64_t a = eval(node.a);
      const int64_t b = eval(node.b);
      if (b == 0) {
        ok = false;
        return 0;
      }
      if (node.type == Type::kU64) {
        return node.op == Op::kDiv ? DivInt(node.type, a, b) : ModInt(node.type, a, b);
      }
      return node.op == Op::kDiv ? FloorDiv(a, b) : FloorMod(a, b);
    }
    case Op::kMin:
    case Op::kMax: {
      const int64_t a = eval(node.a);
      const int64_t b = eval(node.b);
      return IntLess(node.type, a, b) == (node.op == Op::kMin) ? a : b;
    }
    case Op::kEq:
      return eval(node.a) == eval(node.b);
    case Op::kNe:
      return eval(node.a) != eval(node.b);
    case Op::kLt:
      return IntLess(node.type, eval(node.a), eval(node.b));
    case Op::kLe:
      return !IntLess(node.type, eval(node.b), eval(node.a));
    case Op::kAnd:
      return eval(node.a) != 0 && eval(node.b) != 0;
    case Op::kOr:
      return eval(node.a) != 0 || eval(node.b) != 0;
    case Op::kNot:
      return eval(node.a) == 0;
    case Op::kBitAnd:
      return eval(node.a) & eval(node.b);
    case Op::kBitOr:
      return eval(node.a) | eval(node.b);
    case Op::kBitXor:
      return eval(node.a) ^ eval(node.b);
    case Op::kShiftLeft:
      return ShiftLeft(node.type, eval(node.a), eval(node.b));
    case Op::kShiftRight:
      return ShiftRight(node.type, eval(node.a), eval(node.b));
    case Op::kSelect:
      return eval(node.a) != 0 ? eval(node.b) : eval(node.c);
    case Op::kWrap:
      return WrapInt(node.type, eval(node.a));
  }
  POLYNAO_UNREACHABLE(static_cast<int>(node.op));
}

}  // namespace polynao::ir
