// The part of the parser of the text form that reads expressions: tokens, names in scope, types of
// literals, operators. parser.cc reads functions and statements with it.
#ifndef COMPILER_IR_EXPRESSION_PARSER_H_
#define COMPILER_IR_EXPRESSION_PARSER_H_

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/lexer.h"

namespace polynao::ir {

// An expression; `flexible` if it is made of bare literals alone, so that it takes the type of its
// place.
struct Parsed {
  Expr e;
  bool flexible = false;
};

class ExpressionParser {
 protected:
  // Deep nesting in a hostile file must end in an error, not in the end of the stack: each level of
  // statements, parentheses and unary operators counts.
  static constexpr int kMaxDepth = 400;
  // The same for what nests without recursion of the parser: chains like a + b + c + ....
  static constexpr int kMaxHeight = 5000;

  ExpressionParser(std::vector<Token> tokens, std::string_view file,
                   std::shared_ptr<Context> context)
      : tokens_(std::move(tokens)), file_(file), context_(std::move(context)), c_(*context_) {}

  struct DepthGuard {
    explicit DepthGuard(int& depth, int levels = 1) : depth(depth), levels(levels) {
      depth += levels;
    }
    ~DepthGuard() { depth -= levels; }
    int& depth;
    const int levels;
  };

  // ---- tokens

  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool Is(std::string_view text, size_t ahead = 0) const {
    const Token& token = Peek(ahead);
    return (token.kind == TokenKind::kSymbol || token.kind == TokenKind::kWord) &&
           token.text == text;
  }
  bool Accept(std::string_view text) {
    if (!Is(text)) return false;
    ++at_;
    return true;
  }
  absl::Status ErrorAt(const Token& token, std::string_view message) const;
  // "expected ..., found ..." at the next token.
  absl::Status Error(std::string_view expected) const;
  absl::Status Expect(std::string_view text);
  absl::StatusOr<std::string_view> Word(std::string_view what);
  // A word that is not reserved.
  absl::StatusOr<std::string_view> NewName(std::string_view what);
  absl::StatusOr<Type> TypeWord();
  static std::string Unquote(std::string_view quoted);

  // ---- scopes

  struct Binding {
    Var var;
    Buffer buffer;
  };

  size_t Mark() const { return scope_.size(); }
  // Forgets the names bound since Mark returned `mark`.
  void Close(size_t mark);
  void BindName(std::string_view name, Binding binding);
  // Binds a name in all scopes, or, with an empty binding, in none.
  void BindEverywhere(std::string_view name, Binding binding) { bindings_[name] = binding; }
  Binding Lookup(std::string_view name) const;

  // ---- expressions

  absl::StatusOr<Parsed> ParseExpr();
  // An expression that must have `type`, or takes it; `what` names it in errors: "a loop bound".
  absl::StatusOr<Expr> Typed(Type type, std::string_view what);
  absl::StatusOr<Expr> Condition() { return Typed(Type::kI1, "a condition"); }
  // "[a, b]" or "[a][b]".
  absl::Status ParseIndices(std::vector<Expr>& indices);
  absl::Status ParseBufferIndices(Buffer buffer, std::vector<Expr>& indices);
  struct LetHead {
    Var var;
    Expr value;
  };
  // "x: i32 = value"; binds x.
  absl::StatusOr<LetHead> ParseLetHead();
  // The arguments of an instruction `name`, whose '(' is next.
  absl::StatusOr<Expr> ParseInstruction(const Token& name);
  // The extern function declared under that name, or null.
  const ExternNode* FindExtern(std::string_view name) const;
  // A call of it, whose '(' is next.
  absl::StatusOr<Expr> ParseExternCall(const Token& name, const ExternNode* callee);
  // A literal whose place gave it no type gets the default one.
  Parsed Settle(Parsed e);
  // `e`, which is flexible, with `type`, which holds it (CanRetype).
  Expr Retype(Expr e, Type type);
  static bool CanRetype(Expr e, Type type);
  // Returns true if the operator `kind` takes floats.
  static bool TakesFloats(ExprKind kind) { return kind != ExprKind::kMod && !IsBitOperation(kind); }

  const std::vector<Token> tokens_;
  const std::string_view file_;
  const std::shared_ptr<Context> context_;
  Context& c_;
  size_t at_ = 0;
  int depth_ = 0;
  // Within an attribute, words that name nothing are free i64 variables.
  bool in_attribute_ = false;
  absl::flat_hash_map<std::string_view, Var> free_names_;
  absl::flat_hash_map<std::string_view, const ExternNode*> externs_;  // by their own names

 private:
  struct Argument {
    Parsed value;
    const Token* place;
  };

  // Operators of `level` and above.
  absl::StatusOr<Parsed> ParseBinary(int level);
  absl::StatusOr<Parsed> ParseUnary();
  absl::StatusOr<Parsed> ParsePrimary();
  absl::StatusOr<Parsed> ParseNumber(bool negative);
  // A call of `name`, whose '(' is next.
  absl::StatusOr<Parsed> ParseCall(const Token& name);
  absl::StatusOr<Parsed> ParseCastOrSize(const Token& name);
  absl::StatusOr<std::vector<Argument>> ParseArguments();
  // Gives both operands of `op` one type, if literals allow it.
  absl::Status Unify(const Token& op_place, std::string_view op, Argument& a, Argument& b);
  // Why `literals` can not take `type`, the type of `whose`.
  static std::string Misfit(Expr literals, Type type, std::string_view whose);
  int Height(Expr e);

  absl::flat_hash_map<std::string_view, Binding> bindings_;
  std::vector<std::pair<std::string_view, Binding>> scope_;
  absl::flat_hash_map<Expr, int> heights_;
};

}  // namespace polynao::ir

#endif  // COMPILER_IR_EXPRESSION_PARSER_H_
