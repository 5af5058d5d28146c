#include "compiler/ir/ir.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/ir/externs.h"
#include "compiler/ir/intrinsics.h"

namespace polynao::ir {

std::string_view ExprKindName(ExprKind kind) {
  static constexpr std::string_view kNames[] = {
#define V(name) #name,
      POLYNAO_EXPR_KINDS(V)
#undef V
  };
  return kNames[static_cast<int>(kind)];
}

std::string_view StmtKindName(StmtKind kind) {
  static constexpr std::string_view kNames[] = {
#define V(name) #name,
      POLYNAO_STMT_KINDS(V)
#undef V
  };
  return kNames[static_cast<int>(kind)];
}

bool IsPureIntrinsic(std::string_view name) { return FindPureIntrinsic(name) != nullptr; }

int PureIntrinsicArity(std::string_view name) {
  const PureIntrinsic* info = FindPureIntrinsic(name);
  POLYNAO_CHECK(info != nullptr) << name;
  return info->arity;
}

std::optional<int64_t> EvaluateInt(ExprKind kind, Type type, int64_t a, int64_t b) {
  const uint64_t x = static_cast<uint64_t>(a);
  const uint64_t y = static_cast<uint64_t>(b);
  switch (kind) {
    case ExprKind::kAdd:
      return WrapInt(type, static_cast<int64_t>(x + y));
    case ExprKind::kSub:
      return WrapInt(type, static_cast<int64_t>(x - y));
    case ExprKind::kMul:
      return WrapInt(type, static_cast<int64_t>(x * y));
    case ExprKind::kDiv:
      if (b == 0) return std::nullopt;
      return DivInt(type, a, b);
    case ExprKind::kMod:
      if (b == 0) return std::nullopt;
      return ModInt(type, a, b);
    case ExprKind::kMin:
      return IntLess(type, b, a) ? b : a;
    case ExprKind::kMax:
      return IntLess(type, a, b) ? b : a;
    case ExprKind::kBitAnd:
      return a & b;
    case ExprKind::kBitOr:
      return a | b;
    case ExprKind::kBitXor:
      return a ^ b;
    case ExprKind::kShiftLeft:
      return ShiftLeft(type, a, b);
    case ExprKind::kShiftRight:
      return ShiftRight(type, a, b);
    case ExprKind::kEq:
      return a == b;
    case ExprKind::kNe:
      return a != b;
    case ExprKind::kLt:
      return IntLess(type, a, b);
    case ExprKind::kLe:
      return !IntLess(type, b, a);
    default:
      POLYNAO_UNREACHABLE(ExprKindName(kind));
  }
}

const Attribute* Function::FindAttribute(std::string_view key) const {
  for (const Attribute& attribute : attributes) {
    if (attribute.key == key) return &attribute;
  }
  return nullptr;
}

// ---- Context ------------------------------------------------------------------------------------

Context::Context() = default;
Context::~Context() = default;

namespace {

// Nodes keep their hash, so that growing the table does not look at them again.
size_t HashOf(const ExprNode& node) {
  uint64_t hash = static_cast<uint64_t>(node.kind) << 8 | static_cast<uint64_t>(node.type);
  const auto mix = [&](uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
    hash ^= hash >> 32;
  };
  mix(static_cast<uint64_t>(node.int_value));
  if (!node.name.empty()) mix(std::bit_cast<uintptr_t>(node.name.data()));
  if (node.buffer != nullptr) mix(std::bit_cast<uintptr_t>(node.buffer));
  if (node.var != nullptr) mix(node.var->id);
  for (Expr operand : node.operands) mix(operand.id());
  return hash;
}

}  // namespace

bool Context::Equal::operator()(const ExprNode* a, const ExprNode* b) const {
  // Floats are compared by their bits, so that 0.0 and -0.0 differ and the NaN equals itself.
  return a->hash == b->hash && a->kind == b->kind && a->type == b->type &&
         a->int_value == b->int_value && a->name.data() == b->name.data() &&
         a->buffer == b->buffer && a->var == b->var && a->operands == b->operands;
}

void* Context::Allocate(size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  if (block_used_ + bytes > block_size_) {
    block_size_ = std::max<size_t>(bytes, size_t{64} << 10);
    blocks_.push_back(std::make_unique<char[]>(block_size_));
    block_used_ = 0;
  }
  void* result = blocks_.back().get() + block_used_;
  block_used_ += bytes;
  return result;
}

template <typename T>
absl::Span<const T> Context::Copy(absl::Span<const T> span) {
  if (span.empty()) return {};
  T* copy = static_cast<T*>(Allocate(span.size() * sizeof(T)));
  std::uninitialized_copy(span.begin(), span.end(), copy);
  return absl::Span<const T>(copy, span.size());
}

std::string_view Context::InternName(std::string_view name) { return *names_.emplace(name).first; }

Expr Context::Intern(ExprNode node, absl::Span<const Expr> operands) {
  node.context = this;
  node.operands = operands;
  node.hash = HashOf(node);
  if (node.kind != ExprKind::kVar) {
    auto it = exprs_.find(&node);
    if (it != exprs_.end()) return Expr(*it);
  }
  for (Expr operand : operands) {
    POLYNAO_CHECK(&operand.context() == this) << "operand of another context";
  }
  node.operands = Copy(operands);
  node.id = next_expr_id_++;
  auto* stored = new (Allocate(sizeof(ExprNode))) ExprNode(node);
  if (node.kind != ExprKind::kVar) exprs_.insert(stored);
  return Expr(stored);
}

namespace {

ExprNode Node(ExprKind kind, Type type) {
  ExprNode node{};
  node.kind = kind;
  node.type = type;
  return node;
}

}  // namespace

Expr Context::Int(Type type, int64_t value) {
  ExprNode node = Node(ExprKind::kIntImm, type);
  node.int_value = WrapInt(type, value);
  return Intern(node, {});
}

Expr Context::Float(Type type, double value) {
  // One NaN, so that all constants that are NaN are equal, whichever operation made them.
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  ExprNode node = Node(ExprKind::kFloatImm, type);
  node.float_value = RoundFloat(type, value);
  return Intern(node, {});
}

Var Context::NewVar(std::string_view name, Type type) {
  ExprNode node = Node(ExprKind::kVar, type);
  node.name = InternName(name);
  return Intern(node, {});
}

Expr Context::Cast(Type type, Expr value) {
  if (value.type() == type) return value;
  return Intern(Node(ExprKind::kCast, type), {value});
}

Expr Context::Binary(ExprKind kind, Expr a, Expr b) {
  POLYNAO_CHECK(IsBinary(kind)) << ExprKindName(kind);
  POLYNAO_CHECK(a.type() == b.type())
      << ExprKindName(kind) << " of " << TypeName(a.type()) << " and " << TypeName(b.type());
  const bool logic = kind == ExprKind::kAnd || kind == ExprKind::kOr;
  POLYNAO_CHECK(!logic || a.type() == Type::kI1)
      << ExprKindName(kind) << " of " << TypeName(a.type());
  POLYNAO_CHECK(kind != ExprKind::kMod || ir::IsInt(a.type())) << "Mod of floats";
  POLYNAO_CHECK(!IsBitOperation(kind) || (ir::IsInt(a.type()) && a.type() != Type::kI1))
      << ExprKindName(kind) << " of " << TypeName(a.type());
  const Type type = IsComparison(kind) ? Type::kI1 : a.type();
  return Intern(Node(kind, type), {a, b});
}

Expr Context::Not(Expr a) {
  POLYNAO_CHECK(a.type() == Type::kI1) << TypeName(a.type());
  return Intern(Node(ExprKind::kNot, Type::kI1), {a});
}

Expr Context::Select(Expr condition, Expr then_value, Expr else_value) {
  POLYNAO_CHECK(condition.type() == Type::kI1) << TypeName(condition.type());
  POLYNAO_CHECK(then_value.type() == else_value.type())
      << TypeName(then_value.type()) << " and " << TypeName(else_value.type());
  return Intern(Node(ExprKind::kSelect, then_value.type()), {condition, then_value, else_value});
}

Expr Context::Let(Var var, Expr value, Expr body) {
  POLYNAO_CHECK(var.Is(ExprKind::kVar) && var.type() == value.type()) << var.name();
  ExprNode node = Node(ExprKind::kLet, body.type());
  node.var = var.node();
  return Intern(node, {value, body});
}

Expr Context::Load(Buffer buffer, absl::Span<const Expr> indices) {
  POLYNAO_CHECK(buffer->extents.size() == indices.size())
      << buffer->name << " has " << buffer->extents.size() << " dimensions, " << indices.size()
      << " indices given";
  ExprNode node = Node(ExprKind::kLoad, buffer->type);
  node.buffer = buffer.node();
  return Intern(node, indices);
}

Expr Context::Address(Buffer buffer, absl::Span<const Expr> indices) {
  POLYNAO_CHECK(buffer->extents.size() == indices.size()) << buffer->name;
  ExprNode node = Node(ExprKind::kAddress, Type::kI64);
  node.buffer = buffer.node();
  return Intern(node, indices);
}

Expr Context::Call(Type type, std::string_view name, absl::Span<const Expr> arguments) {
  ExprNode node = Node(ExprKind::kCall, type);
  node.name = InternName(name);
  return Intern(node, arguments);
}

Expr Context::Call(const ExternNode* callee, absl::Span<const Expr> arguments) {
  POLYNAO_CHECK(callee->context == this) << callee->name << " belongs to another context";
  ExprNode node = Node(ExprKind::kCall, callee->result.value_or(Type::kI32));
  node.name = InternName(callee->name);
  node.callee = callee;
  return Intern(node, arguments);
}

const ExternNode* Context::AddExtern(std::shared_ptr<const ExternNode> declared) {
  for (const std::shared_ptr<const ExternNode>& known : externs_) {
    if (known->text == declared->text) return known.get();
  }
  externs_.push_back(std::move(declared));
  return externs_.back().get();
}

Expr Context::Rebuild(Expr e, absl::Span<const Expr> operands) {
  if (e.operands() == operands) return e;
  POLYNAO_CHECK(e.operands().size() == operands.size()) << ExprKindName(e.kind());
  switch (e.kind()) {
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kVar:
      return e;
    case ExprKind::kCast:
      return Cast(e.type(), operands[0]);
    case ExprKind::kNot:
      return Not(operands[0]);
    case ExprKind::kSelect:
      return Select(operands[0], operands[1], operands[2]);
    case ExprKind::kLet:
      return Let(e.var(), operands[0], operands[1]);
    case ExprKind::kLoad:
      return Load(Buffer(e.buffer()), operands);
    case ExprKind::kAddress:
      return Address(Buffer(e.buffer()), operands);
    case ExprKind::kCall:
      if (e.callee() != nullptr) return Call(e.callee(), operands);
      return Call(e.type(), e.name(), operands);
    default:
      return Binary(e.kind(), operands[0], operands[1]);
  }
}

Buffer Context::NewBuffer(std::string_view name, Type type, std::vector<Expr> extents,
                          std::string_view scope) {
  const uint32_t id = static_cast<uint32_t>(buffers_.size());
  buffers_.push_back(
      BufferNode{std::string(name), type, std::move(extents), std::string(scope), id, this});
  return Buffer(&buffers_.back());
}

StmtNode* Context::NewStmt(StmtKind kind, absl::Span<const Expr> operands,
                           absl::Span<const Stmt> children) {
  auto* node = new (Allocate(sizeof(StmtNode))) StmtNode{};
  node->kind = kind;
  node->context = this;
  node->operands = Copy(operands);
  node->children = Copy(children);
  return node;
}

Stmt Context::For(Var var, Expr min, Expr extent, Stmt body, ForKind kind,
                  std::string_view thread_axis) {
  POLYNAO_CHECK(var.Is(ExprKind::kVar) && IsIndexable(var.type()))
      << "a loop over " << TypeName(var.type());
  POLYNAO_CHECK(min.type() == var.type() && extent.type() == var.type())
      << "loop " << var.name() << " of " << TypeName(var.type()) << " has bounds of "
      << TypeName(min.type()) << " and " << TypeName(extent.type());
  POLYNAO_CHECK((kind == ForKind::kThread) == !thread_axis.empty()) << var.name();
  StmtNode* node = NewStmt(StmtKind::kFor, {min, extent}, {body});
  node->var = var.node();
  node->for_kind = kind;
  node->name = InternName(thread_axis);
  return Stmt(node);
}

Stmt Context::If(Expr cond, Stmt then_case, Stmt else_case) {
  POLYNAO_CHECK(cond.type() == Type::kI1) << TypeName(cond.type());
  if (!else_case) else_case = Nop();
  return Stmt(NewStmt(StmtKind::kIf, {cond}, {then_case, else_case}));
}

Stmt Context::LetStmt(Var var, Expr value, Stmt body) {
  POLYNAO_CHECK(var.Is(ExprKind::kVar) && var.type() == value.type()) << var.name();
  StmtNode* node = NewStmt(StmtKind::kLet, {value}, {body});
  node->var = var.node();
  return Stmt(node);
}

Stmt Context::Allocate(Buffer buffer, Stmt body) {
  StmtNode* node = NewStmt(StmtKind::kAllocate, {}, {body});
  node->buffer = buffer.node();
  return Stmt(node);
}

Stmt Context::Store(Buffer buffer, absl::Span<const Expr> indices, Expr value) {
  POLYNAO_CHECK(buffer->extents.size() == indices.size())
      << buffer->name << " has " << buffer->extents.size() << " dimensions, " << indices.size()
      << " indices given";
  POLYNAO_CHECK(buffer->type == value.type()) << "store of " << TypeName(value.type()) << " to "
                                              << buffer->name << " of " << TypeName(buffer->type);
  std::vector<Expr> operands(indices.begin(), indices.end());
  operands.push_back(value);
  StmtNode* node = NewStmt(StmtKind::kStore, operands, {});
  node->buffer = buffer.node();
  return Stmt(node);
}

Stmt Context::Pragma(std::string_view key, absl::Span<const Expr> arguments, Stmt body) {
  StmtNode* node = NewStmt(StmtKind::kPragma, arguments, {body});
  node->name = InternName(key);
  return Stmt(node);
}

Stmt Context::Evaluate(Expr call) { return Stmt(NewStmt(StmtKind::kEvaluate, {call}, {})); }

Stmt Context::Seq(absl::Span<const Stmt> stmts) {
  std::vector<Stmt> flat;
  flat.reserve(stmts.size());
  for (Stmt stmt : stmts) {
    if (stmt.Is(StmtKind::kSeq)) {
      flat.insert(flat.end(), stmt.children().begin(), stmt.children().end());
    } else {
      flat.push_back(stmt);
    }
  }
  if (flat.size() == 1) return flat[0];
  return Stmt(NewStmt(StmtKind::kSeq, {}, flat));
}

Stmt Context::Rebuild(Stmt s, absl::Span<const Expr> operands, absl::Span<const Stmt> children) {
  if (s.operands() == operands && s.children() == children) return s;
  switch (s.kind()) {
    case StmtKind::kFor:
      return For(s.var(), operands[0], operands[1], children[0], s.for_kind(), s.name());
    case StmtKind::kIf:
      return If(operands[0], children[0], children[1]);
    case StmtKind::kLet:
      return LetStmt(s.var(), operands[0], children[0]);
    case StmtKind::kAllocate:
      return Allocate(s.buffer(), children[0]);
    case StmtKind::kStore:
      return Store(s.buffer(), operands.subspan(0, operands.size() - 1), operands.back());
    case StmtKind::kPragma:
      return Pragma(s.name(), operands, children[0]);
    case StmtKind::kEvaluate:
      return Evaluate(operands[0]);
    case StmtKind::kSeq:
      return Seq(children);
  }
  POLYNAO_UNREACHABLE(static_cast<int>(s.kind()));
}

// ---- operators ----------------------------------------------------------------------------------

#define POLYNAO_BINARY_OPERATOR(op, kind) \
  Expr op(Expr a, Expr b) { return a.context().Binary(ExprKind::kind, a, b); }
POLYNAO_BINARY_OPERATOR(operator+, kAdd)
POLYNAO_BINARY_OPERATOR(operator-, kSub)
POLYNAO_BINARY_OPERATOR(operator*, kMul)
POLYNAO_BINARY_OPERATOR(operator/, kDiv)
POLYNAO_BINARY_OPERATOR(operator%, kMod)
POLYNAO_BINARY_OPERATOR(operator&, kBitAnd)
POLYNAO_BINARY_OPERATOR(operator|, kBitOr)
POLYNAO_BINARY_OPERATOR(operator^, kBitXor)
POLYNAO_BINARY_OPERATOR(operator<<, kShiftLeft)
POLYNAO_BINARY_OPERATOR(operator>>, kShiftRight)
POLYNAO_BINARY_OPERATOR(operator<, kLt)
POLYNAO_BINARY_OPERATOR(operator<=, kLe)
POLYNAO_BINARY_OPERATOR(And, kAnd)
POLYNAO_BINARY_OPERATOR(Or, kOr)
POLYNAO_BINARY_OPERATOR(Min, kMin)
POLYNAO_BINARY_OPERATOR(Max, kMax)
POLYNAO_BINARY_OPERATOR(Eq, kEq)
POLYNAO_BINARY_OPERATOR(Ne, kNe)
#undef POLYNAO_BINARY_OPERATOR

Expr operator>(Expr a, Expr b) { return b < a; }
Expr operator>=(Expr a, Expr b) { return b <= a; }
Expr Not(Expr a) { return a.context().Not(a); }

}  // namespace polynao::ir
