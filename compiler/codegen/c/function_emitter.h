// Statements and expressions of loop IR as C text, for the back ends that emit C or CUDA.
//
// Method: a statement becomes a statement and an expression becomes an expression, with two exceptions:
//
//   * An expression that one statement uses several times and that is not tiny gets a variable of its
//     own (`const int32_t v1 = ...;`) where it is first evaluated; so does a let. If that happens
//     inside an operand that is evaluated conditionally, `?:` and `&&` become an if.
//   * Indices, bounds and conditions, where the IR's integers are mathematical (ir.h), use C's
//     operators, whose overflow is undefined. Elsewhere sums and products of i32 and i64 call helpers
//     that wrap (prelude.h), unless the ranges of loop variables prove that they do not wrap. With C's
//     operators, compilers see which addresses computed from a let differ by constants.
#ifndef COMPILER_CODEGEN_C_FUNCTION_EMITTER_H_
#define COMPILER_CODEGEN_C_FUNCTION_EMITTER_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/analyzer.h"
#include "compiler/codegen/c/c_text.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {

// The part that back ends share; each one overrides loops and allocations.
class FunctionEmitter {
 public:
  // `target` is named in messages; `has_externs` says whether its functions may call others.
  FunctionEmitter(const ir::Function& function, std::string_view target, bool has_externs)
      : function_(function),
        target_(target),
        has_externs_(has_externs),
        aliases_(function),
        analyzer_(*function.context) {}
  virtual ~FunctionEmitter() = default;

 protected:
  using Buffer = ir::Buffer;
  using Expr = ir::Expr;
  using Stmt = ir::Stmt;

  struct CodeLine {
    int indent;
    std::string text;
  };
  void Line(std::string text) { lines_.push_back({indent_, std::move(text)}); }
  // All lines, indented.
  std::string Lines() const;
  // Returns true if the function calls one that may reach every buffer by a way of its own, so that
  // nothing can be said of who overlaps.
  bool CallsOpaque() const;
  // Declares the parameters and binds their names. A buffer that is never stored to is const. The text
  // between its type and its name is `restricted` if it overlaps no other buffer, else `pointer`.
  std::vector<std::string> Parameters(std::string_view pointer, std::string_view restricted);

  // ---- statements
  virtual absl::Status EmitFor(Stmt s) = 0;
  virtual absl::Status EmitAllocate(Stmt s) = 0;
  virtual absl::Status EmitStmt(Stmt s);
  absl::Status EmitBlock(Stmt s);
  absl::Status EmitStore(Stmt s);
  // The value that a store writes, as memory holds it. The uses of its operands must have been counted.
  absl::StatusOr<std::string> StoredValue(Stmt store);
  // A loop in C, `pragmas` in front of it and `comment` behind its head.
  absl::Status EmitLoop(Stmt s, absl::Span<const std::string> pragmas, std::string_view comment);
  // Gives each extent that stands in addresses a name or a constant.
  absl::Status EmitExtents(Buffer buffer);

  // ---- names
  // A C name for a variable or buffer, unlike those in scope.
  std::string Bind(const void* node, std::string_view name);
  std::string NewName(std::string_view name);
  void Unbind(const std::string& name);
  // Notes which parameters and variables the body uses, and which allocations it reads. Unused lets are
  // not emitted, nor are variables that only they use.
  void CollectUses();
  void CollectUses(Expr root);
  void CollectUses(Stmt s);
  // The address of an element needs all extents but the first.
  void CollectUsesOfExtents(Buffer buffer);

  // ---- expressions

  // An expression, and whether its value is wanted where integers do not wrap: an index, a bound or
  // a condition.
  using Key = std::pair<Expr, bool>;

  // Forgets, when it is destroyed, the variables made since its construction: they may be declared
  // inside a branch, or hold loads that a store makes stale.
  class ScopedNames {
   public:
    explicit ScopedNames(FunctionEmitter* emitter)
        : emitter_(*emitter), size_(emitter->made_.size()) {}
    ~ScopedNames() {
      while (emitter_.made_.size() > size_) {
        emitter_.variables_.erase(emitter_.made_.back());
        emitter_.made_.pop_back();
      }
    }

   private:
    FunctionEmitter& emitter_;
    size_t size_;
  };

  // An operand of a statement, by itself.
  absl::StatusOr<Text> Operand(Expr e, bool math);
  void CountUses(absl::Span<const Expr> roots);
  absl::StatusOr<Text> EmitExpr(Expr e, bool math);
  // The element of a buffer: A[(i * 4 + j) * n + k].
  absl::StatusOr<std::string> Element(Buffer buffer, absl::Span<const Expr> indices);
  // `element`, as memory holds it, as a value.
  static std::string LoadedValue(ir::Type type, const std::string& element);
  // How many of a buffer's first dimensions its addresses leave out.
  size_t DroppedDimensions(Buffer buffer) const;
  // Returns true if two buffers may share memory (compiler/ir/aliases.h).
  bool MayOverlap(Buffer a, Buffer b) const;
  Text NewVariable(const Key& key, const std::string& value);
  // A f16 or bf16 value that is about to be stored, without rounding its last operation: the store
  // rounds it.
  absl::StatusOr<Text> EmitUnrounded(Expr e);
  // Types whose arithmetic in indices, bounds and conditions never wraps.
  static bool IsMathematical(ir::Type type) {
    return type == ir::Type::kI32 || type == ir::Type::kI64;
  }

  const ir::Function& function_;
  const std::string target_;
  const bool has_externs_;
  const ir::Aliases aliases_;
  // Facts that hold at the current statement.
  arith::Analyzer analyzer_;
  // The values of lets that do not wrap.
  ir::VarMap exact_lets_;
  std::vector<CodeLine> lines_;
  int indent_ = 0;

  absl::flat_hash_map<const void*, std::string> names_;  // of variables and buffers
  absl::flat_hash_set<std::string> in_scope_;
  absl::flat_hash_set<const void*> used_;
  absl::flat_hash_set<const void*> read_;
  absl::flat_hash_set<const void*> stored_;
  absl::flat_hash_map<const void*, std::vector<std::string>> extents_;
  // How many of a buffer's first dimensions its addresses leave out, if any.
  absl::flat_hash_map<const void*, size_t> dropped_dimensions_;

  absl::flat_hash_map<Key, std::string> variables_;
  std::vector<Key> made_;

 private:
  // The analyzer is not asked about larger expressions, in nodes: as trees they may be exponentially large.
  static constexpr int kProvableExpression = 64;

  // `const T name = value;`. Returns the name.
  absl::StatusOr<std::string> EmitLet(Expr var, Expr value);
  // How many nodes `e` has as a tree, up to a limit.
  int TreeSize(Expr e);
  // Returns true if `e` is an i32 or i64 that is known not to wrap.
  bool IsExact(Expr e);
  // Returns true if terms of an index, added to an offset one by one, may leave what the sum as a whole does not: 8 + i
  // - 2147483647. `in_64_bits`: the offset has 64.
  bool HasLargeTerms(Expr index, bool in_64_bits);
  // Returns true if all offsets into the buffer surely fit in an i32, and so does one with a term of an index.
  static bool FitsI32(Buffer buffer);
  absl::StatusOr<Text> EmitUnshared(Expr e, bool math);
  static bool BodyUses(Expr let);
  // Returns true if `e` is arithmetic on f16 or bf16: computed in float, then rounded.
  static bool IsNarrowArithmetic(Expr e);
  // The value of a binary operation; that of narrow arithmetic is not rounded yet.
  absl::StatusOr<Text> EmitBinary(Expr e, bool math);
  // Returns true if an i64 expression has 64 bits in C too: constants are plain `5`, an int.
  static bool Has64Bits(Expr e);
  Text Binary(Expr e, Text a, const Text& b, bool math);
  static Text Cast(const Text& value, Expr from_expr, ir::Type to);
  absl::StatusOr<Text> EmitCall(Expr e, bool math);
  // A call of an extern function. Its arguments do not wrap.
  absl::StatusOr<Text> EmitExternCall(Expr e);
  absl::StatusOr<Text> EmitAndOr(Expr e, bool math);
  // A select: `condition ? a : b`, or an if where evaluating a side takes statements.
  absl::StatusOr<Text> EmitSelect(Expr e, const Text& condition, bool math);

  absl::flat_hash_map<Expr, int> use_counts_;  // in the statement at hand
  absl::flat_hash_map<Expr, int> tree_sizes_;
  int variable_count_ = 0;
};

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_C_FUNCTION_EMITTER_H_
