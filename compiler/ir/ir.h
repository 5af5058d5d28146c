// Loop IR: statements (loops, branches, stores, scoped allocations) over interned expressions.
// docs/ir.md has the text form and the full meaning; in short:
//
// Values     See type.h. Buffers are dense, row-major, and never alias one another.
// Integers   `+ - *` wrap around. `/` and `%` are floor division and its remainder (the sign of the
//            divisor); a zero divisor stops the program. In an index, a loop bound or a condition
//            (of an if or a select) an i32 or i64 result that wraps stops the program too, so passes
//            may treat those places as mathematical integers. Other values wrap.
// Bits       `& | ^` work on the bits of integers but i1. `a << n` drops what leaves the type, in
//            every place; `a >> n` copies the sign of a signed type. Counts are read as unsigned
//            numbers: from the type's width on everything is shifted out (0, or -1 for a negative a
//            and >>). None of them stops the program.
// Floats     Each operation rounds once. Nothing is reassociated, and `x * 0` stays.
// min, max   `min(a, b)` is `b < a ? b : a`, `max(a, b)` is `a < b ? b : a`: a NaN in `a` stays.
// Order      Operands are evaluated left to right. `&&`, `||` and `select` evaluate only the side
//            they need. Statements run in order.
// Loops      `for (v, min, extent)`: v = min, ..., min + extent - 1; none if extent <= 0. Bounds
//            are evaluated once. `parallel` promises independent iterations; `vectorize`, `unroll`
//            and thread loops mean the same as a serial loop, thread by thread.
// Memory     An index out of its extent stops the program. An allocation's contents are unknown
//            until stored; what is computed from them is unknown again if it is stored to an
//            allocation, and any other use of it stops the interpreter.
// Calls      Pure intrinsics (exp, tanh, ...) are functions of their arguments. A declared extern
//            function does what its effect allows (externs.h). Any other call is a tensor
//            instruction: a statement whose meaning is a Function (interpreter.h).
#ifndef COMPILER_IR_IR_H_
#define COMPILER_IR_IR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "compiler/ir/type.h"

namespace polynao::ir {

class Context;
struct ExprNode;
struct StmtNode;
struct BufferNode;
struct ExternNode;  // externs.h

// Kinds of expression. One list feeds the enum, the printer's and the interpreter's switches.
#define POLYNAO_EXPR_KINDS(V)                                                 \
  V(IntImm)   /* an integer constant */                                       \
  V(FloatImm) /* a float constant */                                          \
  V(Var)      /* a loop variable, let variable or scalar parameter */         \
  V(Cast)     /* [x]: float to int truncates and saturates (NaN gives 0) */   \
  V(Add)                                                                      \
  V(Sub)                                                                      \
  V(Mul)                                                                      \
  V(Div) /* floor for integers */                                             \
  V(Mod) /* floor; integers only */                                           \
  V(Min)                                                                      \
  V(Max)                                                                      \
  V(BitAnd) /* operations on bits: integers, but not i1 */                    \
  V(BitOr)                                                                    \
  V(BitXor)                                                                   \
  V(ShiftLeft)  /* a negative count is a large one (type.h) */                \
  V(ShiftRight) /* of a signed type: copies the sign */                       \
  V(Eq)         /* comparisons and logic have type i1 */                      \
  V(Ne)                                                                       \
  V(Lt)                                                                       \
  V(Le)                                                                       \
  V(And)                                                                      \
  V(Or)                                                                       \
  V(Not)                                                                      \
  V(Select)  /* [condition, then, else] */                                    \
  V(Let)     /* [value, body], variable in var() */                           \
  V(Load)    /* [indices...] of buffer() */                                   \
  V(Address) /* [indices...] of buffer(): i64, an argument of instructions */ \
  V(Call)    /* [arguments...] of name() */

enum class ExprKind : uint8_t {
#define V(name) k##name,
  POLYNAO_EXPR_KINDS(V)
#undef V
};

std::string_view ExprKindName(ExprKind kind);
inline bool IsComparison(ExprKind kind) { return kind >= ExprKind::kEq && kind <= ExprKind::kLe; }
inline bool IsBitOperation(ExprKind kind) {
  return kind >= ExprKind::kBitAnd && kind <= ExprKind::kShiftRight;
}
inline bool IsBinary(ExprKind kind) { return kind >= ExprKind::kAdd && kind <= ExprKind::kOr; }

// A handle on an immutable, interned expression: within one Context two expressions are
// structurally equal exactly if their handles are (`==`). Cheap to copy; lives as long as its
// Context.
class Expr {
 public:
  Expr() = default;
  explicit Expr(const ExprNode* node) : node_(node) {}

  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(Expr a, Expr b) { return a.node_ == b.node_; }
  friend bool operator!=(Expr a, Expr b) { return a.node_ != b.node_; }
  const ExprNode* node() const { return node_; }

  inline ExprKind kind() const;
  inline Type type() const;
  // Dense number in order of creation; operands have smaller ids than their users.
  inline uint32_t id() const;
  inline Context& context() const;
  inline absl::Span<const Expr> operands() const;
  inline Expr operand(size_t i) const;
  bool Is(ExprKind k) const { return kind() == k; }

  // IntImm and FloatImm.
  inline int64_t int_value() const;
  inline double float_value() const;
  bool IsInt(int64_t value) const { return Is(ExprKind::kIntImm) && int_value() == value; }
  // Returns true if this is a constant of either kind.
  bool IsConst() const { return Is(ExprKind::kIntImm) || Is(ExprKind::kFloatImm); }
  // Var and Call.
  inline std::string_view name() const;
  // Load and Address.
  inline const BufferNode* buffer() const;
  // Call: the extern function that it calls; null for an intrinsic or an instruction.
  inline const ExternNode* callee() const;
  // Let.
  inline Expr var() const;

  template <typename H>
  friend H AbslHashValue(H h, Expr e) {
    return H::combine(std::move(h), e.node_);
  }

 private:
  const ExprNode* node_ = nullptr;
};

// A variable is an expression of kind Var; two variables are the same only if they are one node.
using Var = Expr;

struct ExprNode {
  ExprKind kind;
  Type type;
  uint32_t id;
  Context* context;
  absl::Span<const Expr> operands;
  union {
    int64_t int_value;         // IntImm
    double float_value;        // FloatImm
    const ExternNode* callee;  // Call
  };
  std::string_view name;     // Var, Call
  const BufferNode* buffer;  // Load, Address
  const ExprNode* var;       // Let
  size_t hash;               // of all above but id and context
};

// A multi-dimensional array. Scopes are open names; the ones in use are "gmem" (the default: memory
// off chip, or the host's), "smem", "nmem", "wmem" (DianNao), "shared", "local" (GPU) and, in the
// meanings of instructions, "reg", "pc" and "arg".
struct BufferNode {
  std::string name;
  Type type;
  std::vector<Expr> extents;  // empty: a scalar cell, indexed by nothing
  std::string scope;
  uint32_t id;
  Context* context;
};

// A handle on a buffer; buffers are the same only if they are one node.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(const BufferNode* node) : node_(node) {}
  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(Buffer a, Buffer b) { return a.node_ == b.node_; }
  friend bool operator!=(Buffer a, Buffer b) { return a.node_ != b.node_; }
  const BufferNode* node() const { return node_; }
  const BufferNode* operator->() const { return node_; }
  // A load of the element at `indices`: A(i, j).
  template <typename... Args>
  Expr operator()(Args... indices) const;

  template <typename H>
  friend H AbslHashValue(H h, Buffer b) {
    return H::combine(std::move(h), b.node_);
  }

 private:
  const BufferNode* node_ = nullptr;
};

#define POLYNAO_STMT_KINDS(V)                                                       \
  V(For)      /* var() from min() for extent() iterations of body() */              \
  V(If)       /* cond(), then_case(), else_case() (may be empty) */                 \
  V(Let)      /* var() = value() in body() */                                       \
  V(Allocate) /* buffer() lives during body() */                                    \
  V(Store)    /* buffer()[indices()] = value() */                                   \
  V(Pragma)   /* name() and operands(): a hint on body() that changes no meaning */ \
  V(Evaluate) /* value(): a call for its effect */                                  \
  V(Seq)      /* children() in order; none: does nothing */

enum class StmtKind : uint8_t {
#define V(name) k##name,
  POLYNAO_STMT_KINDS(V)
#undef V
};

std::string_view StmtKindName(StmtKind kind);

// How a loop's iterations run. All mean the same as kSerial.
enum class ForKind : uint8_t {
  kSerial,
  kParallel,
  kUnroll,
  kVectorize,
  kThread,  // bound to the thread axis name() ("cid", "tid", "blockIdx.x", ...)
};

// A handle on an immutable statement. Not interned: `==` says "the same node", which a pass that
// changed nothing preserves.
class Stmt {
 public:
  Stmt() = default;
  explicit Stmt(const StmtNode* node) : node_(node) {}
  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(Stmt a, Stmt b) { return a.node_ == b.node_; }
  friend bool operator!=(Stmt a, Stmt b) { return a.node_ != b.node_; }
  const StmtNode* node() const { return node_; }

  inline StmtKind kind() const;
  bool Is(StmtKind k) const { return kind() == k; }
  inline Context& context() const;
  // Expressions and statements below this one, in the order of evaluation.
  inline absl::Span<const Expr> operands() const;
  inline absl::Span<const Stmt> children() const;

  inline Expr var() const;          // For, Let
  inline ForKind for_kind() const;  // For
  Expr min() const { return Operand(StmtKind::kFor, 0); }
  Expr extent() const { return Operand(StmtKind::kFor, 1); }
  Expr cond() const { return Operand(StmtKind::kIf, 0); }
  Stmt then_case() const { return Child(StmtKind::kIf, 0); }
  // An If always has two children; a missing else is an empty Seq.
  Stmt else_case() const { return Child(StmtKind::kIf, 1); }
  // For, Let, Allocate, Pragma.
  Stmt body() const { return children()[0]; }
  inline Expr value() const;                      // Let, Store, Evaluate
  inline absl::Span<const Expr> indices() const;  // Store
  inline Buffer buffer() const;                   // Allocate, Store
  inline std::string_view name() const;           // Pragma key, thread axis
  bool IsEmpty() const { return Is(StmtKind::kSeq) && children().empty(); }

  template <typename H>
  friend H AbslHashValue(H h, Stmt s) {
    return H::combine(std::move(h), s.node_);
  }

 private:
  Expr Operand(StmtKind expected, size_t i) const {
    POLYNAO_CHECK(kind() == expected)
        << StmtKindName(kind()) << " is no " << StmtKindName(expected);
    return operands()[i];
  }
  Stmt Child(StmtKind expected, size_t i) const {
    POLYNAO_CHECK(kind() == expected)
        << StmtKindName(kind()) << " is no " << StmtKindName(expected);
    return children()[i];
  }

  const StmtNode* node_ = nullptr;
};

struct StmtNode {
  StmtKind kind;
  ForKind for_kind;
  Context* context;
  const ExprNode* var;
  const BufferNode* buffer;
  std::string_view name;
  absl::Span<const Expr> operands;  // Store: indices, then value
  absl::Span<const Stmt> children;
};

// Owns expressions, statements and buffers, and interns expressions. Everything made by one Context
// must be combined only with its own, and is used by one thread at a time.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Expr Int(Type type, int64_t value);  // wraps `value` to `type`
  Expr I32(int64_t value) { return Int(Type::kI32, value); }
  Expr I64(int64_t value) { return Int(Type::kI64, value); }
  Expr Bool(bool value) { return Int(Type::kI1, value ? 1 : 0); }
  Expr Float(Type type, double value);  // rounds `value` to `type`
  // `value` as a constant of `type`, integer or float.
  Expr Const(Type type, int64_t value) {
    return IsFloat(type) ? Float(type, static_cast<double>(value)) : Int(type, value);
  }
  Var NewVar(std::string_view name, Type type = Type::kI32);
  Expr Cast(Type type, Expr value);
  // kAdd to kOr; operands of one type. Comparisons and logic give i1.
  Expr Binary(ExprKind kind, Expr a, Expr b);
  Expr Not(Expr a);
  Expr Select(Expr condition, Expr then_value, Expr else_value);
  Expr Let(Var var, Expr value, Expr body);
  Expr Load(Buffer buffer, absl::Span<const Expr> indices);
  Expr Address(Buffer buffer, absl::Span<const Expr> indices);
  Expr Call(Type type, std::string_view name, absl::Span<const Expr> arguments);
  // A call of an extern function of this context. Its type is that of the result, i32 if there is none.
  Expr Call(const ExternNode* callee, absl::Span<const Expr> arguments);
  // The expression like `e` (same kind, type, name, buffer, variable) over other operands.
  Expr Rebuild(Expr e, absl::Span<const Expr> operands);

  Buffer NewBuffer(std::string_view name, Type type, std::vector<Expr> extents,
                   std::string_view scope = "gmem");

  // Keeps `declared`, which belongs to this context, and returns it, or the one of the same text that
  // is already here.
  const ExternNode* AddExtern(std::shared_ptr<const ExternNode> declared);

  Stmt For(Var var, Expr min, Expr extent, Stmt body, ForKind kind = ForKind::kSerial,
           std::string_view thread_axis = "");
  Stmt If(Expr cond, Stmt then_case, Stmt else_case = Stmt());
  Stmt LetStmt(Var var, Expr value, Stmt body);
  Stmt Allocate(Buffer buffer, Stmt body);
  Stmt Store(Buffer buffer, absl::Span<const Expr> indices, Expr value);
  Stmt Pragma(std::string_view key, absl::Span<const Expr> arguments, Stmt body);
  Stmt Evaluate(Expr call);
  // Flattens nested sequences; one statement alone is returned as it is.
  Stmt Seq(absl::Span<const Stmt> stmts);
  Stmt Nop() { return Seq({}); }
  // The statement like `s` over other operands and children.
  Stmt Rebuild(Stmt s, absl::Span<const Expr> operands, absl::Span<const Stmt> children);

 private:
  struct Hash {
    size_t operator()(const ExprNode* node) const { return node->hash; }
  };
  struct Equal {
    bool operator()(const ExprNode* a, const ExprNode* b) const;
  };

  Expr Intern(ExprNode node, absl::Span<const Expr> operands);
  std::string_view InternName(std::string_view name);
  void* Allocate(size_t bytes);
  template <typename T>
  absl::Span<const T> Copy(absl::Span<const T> span);
  StmtNode* NewStmt(StmtKind kind, absl::Span<const Expr> operands,
                    absl::Span<const Stmt> children);

  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_used_ = 0;
  size_t block_size_ = 0;
  absl::flat_hash_set<const ExprNode*, Hash, Equal> exprs_;
  std::unordered_set<std::string> names_;
  std::deque<BufferNode> buffers_;
  std::vector<std::shared_ptr<const ExternNode>> externs_;
  uint32_t next_expr_id_ = 0;
};

// The access says what the caller of a function may expect of a buffer parameter.
enum class Access : uint8_t { kIn, kOut, kInOut };

struct Param {
  // Exactly one is set: a scalar or a buffer.
  Var var;
  Buffer buffer;
  Access access = Access::kIn;  // buffers
  // Memory space or operand class of a scalar ("" unless the function is an instruction's meaning).
  std::string scope;
  std::string_view name() const { return buffer ? std::string_view(buffer->name) : var.name(); }
};

// An attribute's argument: a string, or an expression over the function's scalar parameters.
using AttributeValue = std::variant<std::string, Expr>;

struct Attribute {
  std::string key;
  std::vector<AttributeValue> values;
};

// A function: parameters, body, attributes. Copying is cheap; the body is shared.
struct Function {
  std::string name;
  std::vector<Param> params;
  std::vector<Attribute> attributes;
  Stmt body;
  std::shared_ptr<Context> context;

  // The attribute of that key, or null.
  const Attribute* FindAttribute(std::string_view key) const;
};

// The functions of one .nir file. All share one context.
struct Module {
  std::shared_ptr<Context> context;
  std::vector<Function> functions;
};

// Returns true if the call of `name` is a pure intrinsic: its value depends on its arguments alone
// and it can not trap. List: intrinsics.h.
bool IsPureIntrinsic(std::string_view name);
// How many arguments a pure intrinsic takes (all of one float type, which is its result's too).
int PureIntrinsicArity(std::string_view name);

// The value of an operation on integers (kAdd to kLe of operands of `type`), in the representation
// of type.h. + - * wrap, as in a stored value. Nothing if it divides by zero.
std::optional<int64_t> EvaluateInt(ExprKind kind, Type type, int64_t a, int64_t b);

// ---- operators ----------------------------------------------------------------------------------

Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator%(Expr a, Expr b);
Expr operator&(Expr a, Expr b);
Expr operator|(Expr a, Expr b);
Expr operator^(Expr a, Expr b);
Expr operator<<(Expr a, Expr b);
Expr operator>>(Expr a, Expr b);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
// Functions, not operators: `!e` asks a handle whether it is null.
Expr And(Expr a, Expr b);
Expr Or(Expr a, Expr b);
Expr Not(Expr a);
Expr Min(Expr a, Expr b);
Expr Max(Expr a, Expr b);
Expr Eq(Expr a, Expr b);
Expr Ne(Expr a, Expr b);

// ---- inline definitions -------------------------------------------------------------------------

inline ExprKind Expr::kind() const { return node_->kind; }
inline Type Expr::type() const { return node_->type; }
inline uint32_t Expr::id() const { return node_->id; }
inline Context& Expr::context() const { return *node_->context; }
inline absl::Span<const Expr> Expr::operands() const { return node_->operands; }
inline Expr Expr::operand(size_t i) const { return node_->operands[i]; }
inline int64_t Expr::int_value() const {
  POLYNAO_CHECK(Is(ExprKind::kIntImm)) << ExprKindName(kind());
  return node_->int_value;
}
inline double Expr::float_value() const {
  POLYNAO_CHECK(Is(ExprKind::kFloatImm)) << ExprKindName(kind());
  return node_->float_value;
}
inline std::string_view Expr::name() const { return node_->name; }
inline const BufferNode* Expr::buffer() const { return node_->buffer; }
inline const ExternNode* Expr::callee() const {
  return Is(ExprKind::kCall) ? node_->callee : nullptr;
}
inline Expr Expr::var() const { return Expr(node_->var); }

inline StmtKind Stmt::kind() const { return node_->kind; }
inline Context& Stmt::context() const { return *node_->context; }
inline absl::Span<const Expr> Stmt::operands() const { return node_->operands; }
inline absl::Span<const Stmt> Stmt::children() const { return node_->children; }
inline Expr Stmt::var() const { return Expr(node_->var); }
inline ForKind Stmt::for_kind() const { return node_->for_kind; }
inline Expr Stmt::value() const { return node_->operands.back(); }
inline absl::Span<const Expr> Stmt::indices() const {
  return node_->operands.subspan(0, node_->operands.size() - 1);
}
inline Buffer Stmt::buffer() const { return Buffer(node_->buffer); }
inline std::string_view Stmt::name() const { return node_->name; }

// A number on one side takes the other side's type: i + 1, x * 0.5.
template <typename T>
  requires std::is_arithmetic_v<T>
Expr ConstantLike(Expr e, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    POLYNAO_CHECK(IsFloat(e.type())) << value << " beside " << TypeName(e.type());
    return e.context().Float(e.type(), value);
  } else {
    return e.context().Const(e.type(), value);
  }
}
#define POLYNAO_CONSTANT_OPERAND(op) \
  template <typename T>              \
    requires std::is_arithmetic_v<T> \
  Expr operator op(Expr a, T b) {    \
    return a op ConstantLike(a, b);  \
  }                                  \
  template <typename T>              \
    requires std::is_arithmetic_v<T> \
  Expr operator op(T a, Expr b) {    \
    return ConstantLike(b, a) op b;  \
  }
POLYNAO_CONSTANT_OPERAND(+)
POLYNAO_CONSTANT_OPERAND(-)
POLYNAO_CONSTANT_OPERAND(*)
POLYNAO_CONSTANT_OPERAND(/)
POLYNAO_CONSTANT_OPERAND(%)
POLYNAO_CONSTANT_OPERAND(&)
POLYNAO_CONSTANT_OPERAND(|)
POLYNAO_CONSTANT_OPERAND(^)
POLYNAO_CONSTANT_OPERAND(<<)
POLYNAO_CONSTANT_OPERAND(>>)
POLYNAO_CONSTANT_OPERAND(<)
POLYNAO_CONSTANT_OPERAND(<=)
POLYNAO_CONSTANT_OPERAND(>)
POLYNAO_CONSTANT_OPERAND(>=)
#undef POLYNAO_CONSTANT_OPERAND

template <typename... Args>
Expr Buffer::operator()(Args... indices) const {
  return node_->context->Load(*this, std::vector<Expr>{indices...});
}

}  // namespace polynao::ir

#endif  // COMPILER_IR_IR_H_
