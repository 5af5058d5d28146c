#include <cctype>
#include <charconv>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "base/status.h"
#include "compiler/ir/reserved.h"
#include "compiler/ir/text.h"

namespace polynao::ir {
namespace {

enum class TokenKind { kEnd, kWord, kInt, kFloat, kString, kSymbol };

struct Token {
  TokenKind kind;
  std::string_view text;  // of a string: with its quotes
  int line;
  int column;
};

// Splits the text; an error is a token of its own place.
absl::Status Tokenize(std::string_view text, std::string_view file, std::vector<Token>& tokens) {
  int line = 1;
  size_t line_start = 0;
  size_t i = 0;
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (true) {
    while (i < text.size()) {
      if (text[i] == '\n') {
        ++line;
        line_start = ++i;
      } else if (text[i] == ' ' || text[i] == '\t' || text[i] == '\r') {
        ++i;
      } else if (text[i] == '#' || text.substr(i, 2) == "//") {
        while (i < text.size() && text[i] != '\n') ++i;
      } else {
        break;
      }
    }
    const int column = static_cast<int>(i - line_start) + 1;
    auto add = [&](TokenKind kind, size_t end) {
      tokens.push_back({kind, text.substr(i, end - i), line, column});
      i = end;
    };
    if (i >= text.size()) {
      add(TokenKind::kEnd, i);
      return absl::OkStatus();
    }
    size_t end = i;
    if (is_digit(text[i])) {
      while (end < text.size() && is_digit(text[end])) ++end;
      bool is_float = false;
      if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) {
        is_float = true;
        ++end;
        while (end < text.size() && is_digit(text[end])) ++end;
      }
      if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
        size_t digits = end + 1;
        if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
        if (digits < text.size() && is_digit(text[digits])) {
          is_float = true;
          end = digits;
          while (end < text.size() && is_digit(text[end])) ++end;
        }
      }
      add(is_float ? TokenKind::kFloat : TokenKind::kInt, end);
    } else if (is_word(text[i])) {
      // A point inside a word belongs to it: i.outer, add.f16.
      while (end < text.size() &&
             (is_word(text[end]) ||
              (text[end] == '.' && end + 1 < text.size() && is_word(text[end + 1])))) {
        ++end;
      }
      add(TokenKind::kWord, end);
    } else if (text[i] == '"') {
      ++end;
      while (end < text.size() && text[end] != '"' && text[end] != '\n') {
        end += text[end] == '\\' ? 2 : 1;
      }
      if (end >= text.size() || text[end] != '"') {
        return InvalidInput(file, ":", line, ":", column, ": a string that no quote ends");
      }
      add(TokenKind::kString, end + 1);
    } else {
      for (std::string_view symbol : {"&&", "||", "==", "!=", "<=", ">="}) {
        if (text.substr(i, 2) == symbol) end = i + 2;
      }
      if (end == i) {
        if (std::string_view("()[]{},:;=<>+-*/%!?&@").find(text[i]) == std::string_view::npos) {
          const unsigned char c = static_cast<unsigned char>(text[i]);
          return InvalidInput(file, ":", line, ":", column, ": a character that means nothing: ",
                              std::isprint(c) ? StrCat("'", std::string(1, text[i]), "'")
                                              : StrCat("byte ", static_cast<int>(c)));
        }
        end = i + 1;
      }
      add(TokenKind::kSymbol, end);
    }
  }
}

// An expression; `flexible` if it is made of bare literals alone and so takes the type of its
// place.
struct Parsed {
  Expr e;
  bool flexible = false;
};

class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string_view file, std::shared_ptr<Context> context)
      : tokens_(std::move(tokens)), file_(file), context_(std::move(context)), c_(*context_) {}

  absl::StatusOr<Module> ParseAll() {
    Module module;
    module.context = context_;
    while (Peek().kind != TokenKind::kEnd) {
      ASSIGN_OR_RETURN(Function function, ParseFunc());
      for (const Function& other : module.functions) {
        if (other.name == function.name) {
          return InvalidInput(file_, ": two functions are named '", function.name, "'");
        }
      }
      module.functions.push_back(std::move(function));
    }
    return module;
  }

 private:
  // Deep nesting in a hostile file must end in an error, not in the end of the stack.
  static constexpr int kMaxDepth = 400;

  struct DepthGuard {
    explicit DepthGuard(int& depth) : depth(depth) { ++depth; }
    ~DepthGuard() { --depth; }
    int& depth;
  };

  struct Binding {
    Var var;
    Buffer buffer;
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
  absl::Status ErrorAt(const Token& token, std::string_view message) const {
    return InvalidInput(file_, ":", token.line, ":", token.column, ": ", message);
  }
  absl::Status Error(std::string_view expected) const {
    const Token& token = Peek();
    return ErrorAt(token, StrCat("expected ", expected, ", found ",
                                 token.kind == TokenKind::kEnd ? "the end of the text"
                                                               : StrCat("'", token.text, "'")));
  }
  absl::Status Expect(std::string_view text) {
    return Accept(text) ? absl::OkStatus() : Error(StrCat("'", text, "'"));
  }
  absl::StatusOr<std::string_view> Word(std::string_view what) {
    if (Peek().kind != TokenKind::kWord) return Error(what);
    return tokens_[at_++].text;
  }
  absl::StatusOr<std::string_view> NewName(std::string_view what) {
    if (Peek().kind == TokenKind::kWord && IsReserved(Peek().text)) {
      return Error(StrCat(what, " (this word is reserved)"));
    }
    return Word(what);
  }
  static std::string Unquote(std::string_view quoted) {
    std::string text;
    for (size_t i = 1; i + 1 < quoted.size(); ++i) {
      if (quoted[i] == '\\') {
        ++i;
        text += quoted[i] == 'n' ? '\n' : quoted[i];
      } else {
        text += quoted[i];
      }
    }
    return text;
  }
  absl::StatusOr<Type> TypeWord() {
    const Token& token = Peek();
    // The listings of TVM write Pointer(int32) for the type of a buffer's elements.
    if (Accept("Pointer")) {
      RETURN_IF_ERROR(Expect("("));
      ASSIGN_OR_RETURN(Type type, TypeWord());
      RETURN_IF_ERROR(Expect(")"));
      return type;
    }
    if (token.kind == TokenKind::kWord) {
      if (std::optional<Type> type = ir::ParseType(token.text)) {
        ++at_;
        return *type;
      }
    }
    return Error("a type (i1, i8, i16, i32, i64, u8, f16, bf16, f32 or f64)");
  }

  // ---- scopes

  size_t Mark() const { return scope_.size(); }
  void Close(size_t mark) {
    while (scope_.size() > mark) {
      auto& [name, previous] = scope_.back();
      bindings_[name] = previous;
      scope_.pop_back();
    }
  }
  void BindName(std::string_view name, Binding binding) {
    Binding& slot = bindings_[name];
    scope_.emplace_back(name, slot);
    slot = binding;
  }
  Binding Lookup(std::string_view name) const {
    auto it = bindings_.find(name);
    return it == bindings_.end() ? Binding() : it->second;
  }

  // ---- functions

  absl::StatusOr<Function> ParseFunc() {
    // Attributes may mention parameters, which are declared after them.
    const size_t attributes_at = at_;
    while (Is("@")) {
      at_ += 2;
      if (Accept("(")) {
        for (int open = 1; open > 0; ++at_) {
          if (Peek().kind == TokenKind::kEnd) return Error("')' after an attribute's values");
          if (Is("(")) ++open;
          if (Is(")")) --open;
        }
      }
    }
    Function f;
    f.context = context_;
    if (!Is("func")) return Error(attributes_at == at_ ? "'func' or '@'" : "'func'");
    ++at_;
    ASSIGN_OR_RETURN(std::string_view name, NewName("the function's name"));
    f.name = std::string(name);
    RETURN_IF_ERROR(Expect("("));
    const size_t mark = Mark();
    RETURN_IF_ERROR(ParseParams(f));
    const size_t body_at = at_;
    at_ = attributes_at;
    RETURN_IF_ERROR(ParseAttributes(f));
    at_ = body_at;
    // TVM's listings give the result type: -> ()
    if (Accept("-")) {
      RETURN_IF_ERROR(Expect(">"));
      RETURN_IF_ERROR(Expect("("));
      RETURN_IF_ERROR(Expect(")"));
    }
    ASSIGN_OR_RETURN(f.body, ParseBlock());
    Close(mark);
    return f;
  }

  // Two passes over the parameters: extents may use scalars declared after their buffer.
  absl::Status ParseParams(Function& f) {
    const size_t start = at_;
    for (const bool declare_scalars : {true, false}) {
      at_ = start;
      size_t index = 0;
      while (!Is(")")) {
        if (index > 0) RETURN_IF_ERROR(Expect(","));
        const Token& place = Peek();
        ASSIGN_OR_RETURN(std::string_view name, NewName("a parameter's name"));
        RETURN_IF_ERROR(Expect(":"));
        ASSIGN_OR_RETURN(Type type, TypeWord());
        if (declare_scalars) {
          Param param;
          const bool is_buffer = Is("[");
          if (is_buffer) {
            for (int open = 0;; ++at_) {
              if (Peek().kind == TokenKind::kEnd) return Error("']' after a buffer's extents");
              if (Is("[")) ++open;
              if (Is("]") && --open == 0) break;
            }
            ++at_;
          } else {
            param.var = c_.NewVar(name, type);
            if (Lookup(name).var || Lookup(name).buffer) {
              return ErrorAt(place, StrCat("two parameters are named '", name, "'"));
            }
            BindName(name, {param.var, Buffer()});
          }
          if (Accept("@")) {
            ASSIGN_OR_RETURN(std::string_view scope, Word("a memory scope"));
            param.scope = std::string(scope);
          }
          if (is_buffer && (Is("in") || Is("out"))) ++at_;
          f.params.push_back(std::move(param));
        } else if (!f.params[index].var) {
          Param& param = f.params[index];
          std::vector<Expr> extents;
          RETURN_IF_ERROR(ParseIndices(extents));
          if (Accept("@")) RETURN_IF_ERROR(Word("a memory scope").status());
          param.buffer = c_.NewBuffer(name, type, std::move(extents),
                                      param.scope.empty() ? "gmem" : param.scope);
          param.scope.clear();
          param.access = Accept("in") ? Access::kIn : Accept("out") ? Access::kOut : Access::kInOut;
          if (Lookup(name).var || Lookup(name).buffer) {
            return ErrorAt(place, StrCat("two parameters are named '", name, "'"));
          }
          BindName(name, {Var(), param.buffer});
        } else if (Accept("@")) {
          ++at_;
        }
        ++index;
      }
    }
    return Expect(")");
  }

  absl::Status ParseAttributes(Function& f) {
    while (Accept("@")) {
      Attribute attribute;
      ASSIGN_OR_RETURN(std::string_view key, Word("an attribute's name"));
      attribute.key = std::string(key);
      if (Accept("(")) {
        in_attribute_ = true;
        while (!Accept(")")) {
          if (!attribute.values.empty()) RETURN_IF_ERROR(Expect(","));
          if (Peek().kind == TokenKind::kString) {
            attribute.values.push_back(Unquote(tokens_[at_++].text));
          } else {
            ASSIGN_OR_RETURN(Parsed value, ParseExpr());
            const bool integer = value.flexible && CanRetype(value.e, Type::kI64);
            attribute.values.push_back(integer ? Retype(value.e, Type::kI64) : Settle(value).e);
          }
        }
        in_attribute_ = false;
        free_names_.clear();
      }
      f.attributes.push_back(std::move(attribute));
    }
    return absl::OkStatus();
  }

  // ---- statements

  // "{ ... }"
  absl::StatusOr<Stmt> ParseBlock() {
    RETURN_IF_ERROR(Expect("{"));
    const size_t mark = Mark();
    ASSIGN_OR_RETURN(Stmt body, ParseRest());
    Close(mark);
    RETURN_IF_ERROR(Expect("}"));
    return body;
  }

  // The statements up to the end of the block.
  absl::StatusOr<Stmt> ParseRest() {
    std::vector<Stmt> stmts;
    while (true) {
      while (Accept(";")) {
      }
      if (Is("}") || Peek().kind == TokenKind::kEnd) return c_.Seq(stmts);
      ASSIGN_OR_RETURN(Stmt s, ParseStmt());
      stmts.push_back(s);
    }
  }

  // What a head applies to: the next statement.
  absl::StatusOr<Stmt> ParseBody() {
    if (Is("{")) return ParseBlock();
    if (Is("}") || Peek().kind == TokenKind::kEnd) return Error("a statement");
    const size_t mark = Mark();
    ASSIGN_OR_RETURN(Stmt s, ParseStmt());
    Close(mark);
    return s;
  }

  absl::StatusOr<Stmt> ParseStmt() {
    DepthGuard guard(depth_);
    if (depth_ > kMaxDepth) return ErrorAt(Peek(), "statements are nested too deeply");
    if (Is("{")) return ParseBlock();
    if (Is("for") || Is("parallel") || Is("unroll") || Is("vectorize") || Is("thread")) {
      return ParseFor();
    }
    if (Accept("if")) {
      RETURN_IF_ERROR(Expect("("));
      ASSIGN_OR_RETURN(Expr cond, Condition());
      RETURN_IF_ERROR(Expect(")"));
      ASSIGN_OR_RETURN(Stmt then_case, ParseBody());
      Stmt else_case;
      if (Accept("else")) {
        ASSIGN_OR_RETURN(else_case, ParseBody());
      }
      return c_.If(cond, then_case, else_case);
    }
    if (Accept("let")) {
      ASSIGN_OR_RETURN(LetHead let, ParseLetHead());
      ASSIGN_OR_RETURN(Stmt body, ParseRest());
      return c_.LetStmt(let.var, let.value, body);
    }
    if (Accept("allocate")) return ParseAllocate();
    if (Accept("pragma")) return ParsePragma();
    return ParseStoreOrCall();
  }

  absl::StatusOr<Stmt> ParseFor() {
    const std::string_view keyword = tokens_[at_++].text;
    const ForKind kind = keyword == "for"         ? ForKind::kSerial
                         : keyword == "parallel"  ? ForKind::kParallel
                         : keyword == "unroll"    ? ForKind::kUnroll
                         : keyword == "vectorize" ? ForKind::kVectorize
                                                  : ForKind::kThread;
    RETURN_IF_ERROR(Expect("("));
    ASSIGN_OR_RETURN(std::string_view name, NewName("a loop variable"));
    Type type = Type::kI32;
    if (Accept(":")) {
      const Token& place = Peek();
      ASSIGN_OR_RETURN(type, TypeWord());
      if (!IsInt(type) || type == Type::kI1) {
        return ErrorAt(place, StrCat("a loop variable is an integer, not ", TypeName(type)));
      }
    }
    std::string axis;
    if (kind == ForKind::kThread) {
      axis = std::string(name);
      if (Accept("=")) {
        if (Peek().kind != TokenKind::kString) return Error("a thread axis in quotes");
        axis = Unquote(tokens_[at_++].text);
        if (axis.empty()) return ErrorAt(Peek(), "a thread axis has a name");
      }
    }
    RETURN_IF_ERROR(Expect(","));
    ASSIGN_OR_RETURN(Expr min, Typed(type, "a loop bound"));
    Expr extent = min;
    if (Accept(",")) {
      ASSIGN_OR_RETURN(extent, Typed(type, "a loop bound"));
    } else if (kind == ForKind::kThread) {
      min = c_.Int(type, 0);
    } else {
      return Error("',' and the number of iterations");
    }
    RETURN_IF_ERROR(Expect(")"));
    const Var var = c_.NewVar(name, type);
    const size_t mark = Mark();
    BindName(name, {var, Buffer()});
    // thread(tid, 4) without braces, as in the papers, covers the rest of the block.
    absl::StatusOr<Stmt> body = kind == ForKind::kThread && !Is("{") ? ParseRest() : ParseBody();
    if (!body.ok()) return body.status();
    Close(mark);
    return c_.For(var, min, extent, *body, kind, axis);
  }

  struct LetHead {
    Var var;
    Expr value;
  };

  // "x: i32 = value"; binds x.
  absl::StatusOr<LetHead> ParseLetHead() {
    ASSIGN_OR_RETURN(std::string_view name, NewName("a variable's name"));
    std::optional<Type> type;
    if (Accept(":")) {
      ASSIGN_OR_RETURN(type, TypeWord());
    }
    RETURN_IF_ERROR(Expect("="));
    Expr value;
    if (type) {
      ASSIGN_OR_RETURN(value, Typed(*type, "the value"));
    } else {
      ASSIGN_OR_RETURN(Parsed parsed, ParseExpr());
      value = Settle(parsed).e;
    }
    const Var var = c_.NewVar(name, value.type());
    BindName(name, {var, Buffer()});
    return LetHead{var, value};
  }

  // "allocate A: f16[4] @nmem", or as in the papers "allocate(A, 56)": f32 in local memory.
  absl::StatusOr<Stmt> ParseAllocate() {
    const bool parenthesised = Accept("(");
    ASSIGN_OR_RETURN(std::string_view name, NewName("a buffer's name"));
    Type type = Type::kF32;
    std::vector<Expr> extents;
    std::string scope = "gmem";
    if (parenthesised && Accept(",")) {
      scope = "local";
      ASSIGN_OR_RETURN(Parsed extent, ParseExpr());
      if (!IsInt(extent.e.type())) return Error("an extent");
      extents.push_back(extent.e);
    } else {
      RETURN_IF_ERROR(Expect(":"));
      ASSIGN_OR_RETURN(type, TypeWord());
      RETURN_IF_ERROR(ParseIndices(extents));
      if (Accept("@")) {
        ASSIGN_OR_RETURN(std::string_view word, Word("a memory scope"));
        scope = std::string(word);
      }
    }
    if (parenthesised) RETURN_IF_ERROR(Expect(")"));
    const Buffer buffer = c_.NewBuffer(name, type, std::move(extents), scope);
    BindName(name, {Var(), buffer});
    ASSIGN_OR_RETURN(Stmt body, ParseRest());
    return c_.Allocate(buffer, body);
  }

  // pragma "key" (args) statement, or as in the papers pragma="key".
  absl::StatusOr<Stmt> ParsePragma() {
    Accept("=");
    if (Peek().kind != TokenKind::kString) return Error("the pragma's key in quotes");
    const std::string key = Unquote(tokens_[at_++].text);
    std::vector<Expr> arguments;
    if (Accept("(")) {
      while (!Accept(")")) {
        if (!arguments.empty()) RETURN_IF_ERROR(Expect(","));
        ASSIGN_OR_RETURN(Parsed argument, ParseExpr());
        arguments.push_back(Settle(argument).e);
      }
    }
    ASSIGN_OR_RETURN(Stmt body, ParseBody());
    return c_.Pragma(key, arguments, body);
  }

  absl::StatusOr<Stmt> ParseStoreOrCall() {
    const Token& place = Peek();
    if (place.kind != TokenKind::kWord || IsReserved(place.text)) return Error("a statement");
    if (Is("(", 1)) {
      ++at_;
      ASSIGN_OR_RETURN(Parsed call, ParseCall(place));
      return c_.Evaluate(call.e);
    }
    const Buffer buffer = Lookup(place.text).buffer;
    if (!buffer) {
      if (Is("[", 1)) return ErrorAt(place, StrCat("no buffer is named '", place.text, "'"));
      return Error("a statement");
    }
    ++at_;
    // TVM's listings repeat the type: buffer: Pointer(int32)[i1] = ...
    if (Accept(":")) {
      const Token& type_place = Peek();
      ASSIGN_OR_RETURN(Type type, TypeWord());
      if (type != buffer->type) {
        return ErrorAt(type_place, StrCat(buffer->name, " holds ", TypeName(buffer->type), ", not ",
                                          TypeName(type)));
      }
    }
    std::vector<Expr> indices;
    RETURN_IF_ERROR(ParseBufferIndices(buffer, indices));
    RETURN_IF_ERROR(Expect("="));
    ASSIGN_OR_RETURN(Expr value, Typed(buffer->type, "the stored value"));
    return c_.Store(buffer, indices, value);
  }

  // ---- expressions

  // "[a, b]" or "[a][b]"
  absl::Status ParseIndices(std::vector<Expr>& indices) {
    RETURN_IF_ERROR(Expect("["));
    while (true) {
      if (Accept("]")) {
        if (!Accept("[")) return absl::OkStatus();
        continue;
      }
      // After "][" there is no comma.
      if (!indices.empty() && tokens_[at_ - 1].text != "[") RETURN_IF_ERROR(Expect(","));
      const Token& place = Peek();
      ASSIGN_OR_RETURN(Parsed index, ParseExpr());
      if (!IsInt(index.e.type())) {
        return ErrorAt(place, StrCat("an index is an integer, not ", TypeName(index.e.type())));
      }
      indices.push_back(index.e);
    }
  }

  absl::Status ParseBufferIndices(Buffer buffer, std::vector<Expr>& indices) {
    const Token& place = Peek();
    RETURN_IF_ERROR(ParseIndices(indices));
    if (indices.size() != buffer->extents.size()) {
      return ErrorAt(place, StrCat(buffer->name, " has ", buffer->extents.size(),
                                   " dimensions, found ", indices.size(), " indices"));
    }
    return absl::OkStatus();
  }

  // An expression that must have (or take) `type`.
  absl::StatusOr<Expr> Typed(Type type, std::string_view what) {
    const Token& place = Peek();
    ASSIGN_OR_RETURN(Parsed parsed, ParseExpr());
    if (parsed.e.type() == type) return parsed.e;
    if (parsed.flexible) {
      if (!CanRetype(parsed.e, type)) {
        return ErrorAt(place, StrCat(what, " does not fit ", TypeName(type)));
      }
      return Retype(parsed.e, type);
    }
    return ErrorAt(place, StrCat("expected ", what, " of ", TypeName(type), ", found ",
                                 TypeName(parsed.e.type())));
  }

  absl::StatusOr<Expr> Condition() { return Typed(Type::kI1, "a condition"); }

  static bool CanRetype(Expr e, Type type) {
    if (type == Type::kI1) return false;
    if (e.Is(ExprKind::kFloatImm)) return IsFloat(type);
    if (e.Is(ExprKind::kIntImm)) return IsFloat(type) || FitsInt(type, e.int_value());
    if (e.Is(ExprKind::kMod) && IsFloat(type)) return false;
    for (Expr operand : e.operands()) {
      if (!CanRetype(operand, type)) return false;
    }
    return true;
  }

  Expr Retype(Expr e, Type type) {
    if (e.Is(ExprKind::kIntImm)) {
      return IsFloat(type) ? c_.Float(type, static_cast<double>(e.int_value()))
                           : c_.Int(type, e.int_value());
    }
    if (e.Is(ExprKind::kFloatImm)) return c_.Float(type, e.float_value());
    return c_.Binary(e.kind(), Retype(e.operand(0), type), Retype(e.operand(1), type));
  }

  // Gives both operands one type, if literals allow it.
  absl::Status Unify(const Token& place, std::string_view op, Parsed& a, Parsed& b) {
    if (a.e.type() == b.e.type()) return absl::OkStatus();
    if (a.flexible && CanRetype(a.e, b.e.type())) {
      a.e = Retype(a.e, b.e.type());
      return absl::OkStatus();
    }
    if (b.flexible && CanRetype(b.e, a.e.type())) {
      b.e = Retype(b.e, a.e.type());
      return absl::OkStatus();
    }
    return ErrorAt(place,
                   StrCat("'", op, "' of ", TypeName(a.e.type()), " and ", TypeName(b.e.type())));
  }

  absl::StatusOr<Parsed> ParseExpr() {
    DepthGuard guard(depth_);
    if (depth_ > kMaxDepth) return ErrorAt(Peek(), "expressions are nested too deeply");
    const Token& place = Peek();
    ASSIGN_OR_RETURN(Parsed e, ParseBinary(0));
    if (!Accept("?")) return e;
    if (e.e.type() != Type::kI1) {
      return ErrorAt(place, StrCat("expected a condition, found ", TypeName(e.e.type())));
    }
    ASSIGN_OR_RETURN(Parsed a, ParseExpr());
    RETURN_IF_ERROR(Expect(":"));
    ASSIGN_OR_RETURN(Parsed b, ParseExpr());
    if (a.flexible && b.flexible) {
      a = Settle(a);
      b = Settle(b);
    }
    RETURN_IF_ERROR(Unify(place, "?:", a, b));
    return Parsed{c_.Select(e.e, a.e, b.e)};
  }

  struct BinaryOperator {
    std::string_view text;
    ExprKind kind;
    int level;
    bool swapped = false;
  };

  static const BinaryOperator* FindOperator(const Token& token) {
    static constexpr BinaryOperator kOperators[] = {
        {"||", ExprKind::kOr, 0},      {"&&", ExprKind::kAnd, 1},      {"==", ExprKind::kEq, 2},
        {"!=", ExprKind::kNe, 2},      {"<", ExprKind::kLt, 3},        {"<=", ExprKind::kLe, 3},
        {">", ExprKind::kLt, 3, true}, {">=", ExprKind::kLe, 3, true}, {"+", ExprKind::kAdd, 4},
        {"-", ExprKind::kSub, 4},      {"*", ExprKind::kMul, 5},       {"/", ExprKind::kDiv, 5},
        {"%", ExprKind::kMod, 5},
    };
    if (token.kind != TokenKind::kSymbol) return nullptr;
    for (const BinaryOperator& op : kOperators) {
      if (op.text == token.text) return &op;
    }
    return nullptr;
  }

  // Precedence climbing: operators of `level` and above.
  absl::StatusOr<Parsed> ParseBinary(int level) {
    ASSIGN_OR_RETURN(Parsed a, ParseUnary());
    while (true) {
      const Token& place = Peek();
      const BinaryOperator* op = FindOperator(place);
      if (op == nullptr || op->level < level) return a;
      ++at_;
      ASSIGN_OR_RETURN(Parsed b, ParseBinary(op->level + 1));
      if (op->level < 4 && a.flexible && b.flexible) {
        a = Settle(a);
        b = Settle(b);
      }
      RETURN_IF_ERROR(Unify(place, op->text, a, b));
      const bool logic = op->kind == ExprKind::kAnd || op->kind == ExprKind::kOr;
      const bool is_bool = a.e.type() == Type::kI1;
      if (logic && !is_bool) {
        return ErrorAt(place,
                       StrCat("'", op->text, "' joins conditions, found ", TypeName(a.e.type())));
      }
      if (is_bool && !logic && op->level != 2) {
        return ErrorAt(place, StrCat("'", op->text, "' of conditions"));
      }
      if (op->kind == ExprKind::kMod && IsFloat(a.e.type())) {
        return ErrorAt(place, "'%' of floats");
      }
      const bool flexible = a.flexible && b.flexible && op->level >= 4;
      a = {op->swapped ? c_.Binary(op->kind, b.e, a.e) : c_.Binary(op->kind, a.e, b.e), flexible};
    }
  }

  absl::StatusOr<Parsed> ParseUnary() {
    DepthGuard guard(depth_);
    if (depth_ > kMaxDepth) return ErrorAt(Peek(), "expressions are nested too deeply");
    const Token& place = Peek();
    if (Accept("!")) {
      ASSIGN_OR_RETURN(Parsed e, ParseUnary());
      if (e.e.type() != Type::kI1) {
        return ErrorAt(place, StrCat("'!' of ", TypeName(e.e.type())));
      }
      return Parsed{c_.Not(e.e)};
    }
    if (Accept("-")) {
      if (Peek().kind == TokenKind::kInt || Peek().kind == TokenKind::kFloat) {
        return ParseNumber(true);
      }
      if (Accept("inf")) return Parsed{c_.Float(Type::kF32, -HUGE_VAL), true};
      ASSIGN_OR_RETURN(Parsed e, ParseUnary());
      if (e.e.type() == Type::kI1) return ErrorAt(place, "'-' of a condition");
      return Parsed{c_.Binary(ExprKind::kSub, c_.Const(e.e.type(), 0), e.e), e.flexible};
    }
    if (Accept("&")) {
      const Token& name = Peek();
      ASSIGN_OR_RETURN(std::string_view word, Word("a buffer's name"));
      const Buffer buffer = Lookup(word).buffer;
      if (!buffer) return ErrorAt(name, StrCat("no buffer is named '", word, "'"));
      std::vector<Expr> indices;
      RETURN_IF_ERROR(ParseBufferIndices(buffer, indices));
      return Parsed{c_.Address(buffer, indices)};
    }
    return ParsePrimary();
  }

  absl::StatusOr<Parsed> ParseNumber(bool negative) {
    const Token& token = tokens_[at_++];
    if (token.kind == TokenKind::kFloat) {
      double value = 0;
      if (!absl::SimpleAtod(ToAbsl(token.text), &value))
        return ErrorAt(token, "a number out of range");
      // Kept in f64 so that a place of that type gets all digits; Retype rounds.
      return Parsed{c_.Float(Type::kF64, negative ? -value : value), true};
    }
    uint64_t magnitude = 0;
    const auto [end, error] =
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), magnitude);
    const uint64_t limit = uint64_t{1} << 63;
    if (error != std::errc() || magnitude > limit || (magnitude == limit && !negative)) {
      return ErrorAt(token, StrCat("the integer ", token.text, " does not fit i64"));
    }
    const int64_t value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
    return Parsed{FitsInt(Type::kI32, value) ? c_.I32(value) : c_.I64(value), true};
  }

  absl::StatusOr<Parsed> ParsePrimary() {
    const Token& place = Peek();
    if (place.kind == TokenKind::kInt || place.kind == TokenKind::kFloat) {
      ASSIGN_OR_RETURN(Parsed e, ParseNumber(false));
      return e;
    }
    if (Accept("(")) {
      if (Accept("let")) {
        const size_t mark = Mark();
        ASSIGN_OR_RETURN(LetHead let, ParseLetHead());
        RETURN_IF_ERROR(Expect("in"));
        ASSIGN_OR_RETURN(Parsed body, ParseExpr());
        RETURN_IF_ERROR(Expect(")"));
        Close(mark);
        return Parsed{c_.Let(let.var, let.value, Settle(body).e)};
      }
      ASSIGN_OR_RETURN(Parsed e, ParseExpr());
      RETURN_IF_ERROR(Expect(")"));
      return e;
    }
    if (place.kind != TokenKind::kWord) return Error("an expression");
    ++at_;
    if (place.text == "true") return Parsed{c_.Bool(true)};
    if (place.text == "false") return Parsed{c_.Bool(false)};
    if (place.text == "inf") return Parsed{c_.Float(Type::kF64, HUGE_VAL), true};
    if (place.text == "nan") return Parsed{c_.Float(Type::kF64, std::nan("")), true};
    if (Is("(")) return ParseCall(place);
    const Binding binding = Lookup(place.text);
    if (binding.var) return Parsed{binding.var};
    if (binding.buffer) {
      std::vector<Expr> indices;
      RETURN_IF_ERROR(ParseBufferIndices(binding.buffer, indices));
      return Parsed{c_.Load(binding.buffer, indices)};
    }
    if (in_attribute_) {
      // A machine parameter or another word of the attribute's own language.
      Var& var = free_names_[place.text];
      if (!var) var = c_.NewVar(place.text, Type::kI64);
      return Parsed{var};
    }
    return ErrorAt(place, StrCat("nothing here is named '", place.text, "'"));
  }

  // A literal whose place gave it no type gets the default one.
  Parsed Settle(Parsed e) {
    if (!e.flexible) return e;
    if (e.e.type() == Type::kF64) return {Retype(e.e, Type::kF32)};
    return {e.e};
  }

  // The arguments of `name`, whose '(' is next.
  absl::StatusOr<Parsed> ParseCall(const Token& name) {
    RETURN_IF_ERROR(Expect("("));
    if (name.text == "cast" || name.text == "sizeof") {
      const Token& place = Peek();
      ASSIGN_OR_RETURN(Type type, TypeWord());
      if (name.text == "sizeof") {
        RETURN_IF_ERROR(Expect(")"));
        return Parsed{c_.I64(ByteSize(type))};
      }
      RETURN_IF_ERROR(Expect(","));
      ASSIGN_OR_RETURN(Parsed value, ParseExpr());
      RETURN_IF_ERROR(Expect(")"));
      value = Settle(value);
      if (value.e.type() == type) {
        return ErrorAt(place, StrCat("cast of ", TypeName(type), " to itself"));
      }
      return Parsed{c_.Cast(type, value.e)};
    }
    std::vector<Parsed> arguments;
    std::vector<const Token*> places;
    while (!Accept(")")) {
      if (!arguments.empty()) RETURN_IF_ERROR(Expect(","));
      places.push_back(&Peek());
      ASSIGN_OR_RETURN(Parsed argument, ParseExpr());
      arguments.push_back(argument);
    }
    auto expect_count = [&](size_t count) -> absl::Status {
      if (arguments.size() == count) return absl::OkStatus();
      return ErrorAt(name,
                     StrCat(name.text, " takes ", count, " arguments, found ", arguments.size()));
    };
    if (std::optional<Type> type = ir::ParseType(name.text)) {
      // f16(1.5): a literal of that type; of anything else, a cast.
      RETURN_IF_ERROR(expect_count(1));
      const Parsed value = arguments[0];
      if (value.e.type() == *type && !value.flexible) return value;
      if (value.flexible) {
        if (!CanRetype(value.e, *type)) {
          return ErrorAt(*places[0], StrCat("a literal that does not fit ", name.text));
        }
        return Parsed{Retype(value.e, *type)};
      }
      return Parsed{c_.Cast(*type, value.e)};
    }
    if (name.text == "select") {
      RETURN_IF_ERROR(expect_count(3));
      if (arguments[0].e.type() != Type::kI1) {
        return ErrorAt(*places[0],
                       StrCat("expected a condition, found ", TypeName(arguments[0].e.type())));
      }
      if (arguments[1].flexible && arguments[2].flexible) {
        arguments[1] = Settle(arguments[1]);
        arguments[2] = Settle(arguments[2]);
      }
      RETURN_IF_ERROR(Unify(*places[1], "select", arguments[1], arguments[2]));
      return Parsed{c_.Select(arguments[0].e, arguments[1].e, arguments[2].e)};
    }
    if (name.text == "min" || name.text == "max") {
      RETURN_IF_ERROR(expect_count(2));
      RETURN_IF_ERROR(Unify(name, name.text, arguments[0], arguments[1]));
      if (arguments[0].e.type() == Type::kI1) {
        return ErrorAt(name, StrCat(name.text, " of conditions"));
      }
      return Parsed{c_.Binary(name.text == "min" ? ExprKind::kMin : ExprKind::kMax, arguments[0].e,
                              arguments[1].e),
                    arguments[0].flexible && arguments[1].flexible};
    }
    std::vector<Expr> operands;
    if (IsPureIntrinsic(name.text)) {
      RETURN_IF_ERROR(expect_count(PureIntrinsicArity(name.text)));
      if (arguments.size() == 2) {
        RETURN_IF_ERROR(Unify(name, name.text, arguments[0], arguments[1]));
      }
      for (Parsed argument : arguments) operands.push_back(Settle(argument).e);
      if (!IsFloat(operands[0].type())) {
        return ErrorAt(*places[0],
                       StrCat(name.text, " takes floats, found ", TypeName(operands[0].type())));
      }
      return Parsed{c_.Call(operands[0].type(), name.text, operands)};
    }
    for (Parsed argument : arguments) {
      if (argument.flexible && IsInt(argument.e.type())) {
        operands.push_back(Retype(argument.e, Type::kI64));
      } else {
        operands.push_back(Settle(argument).e);
      }
    }
    return Parsed{c_.Call(Type::kI32, name.text, operands)};
  }

  const std::vector<Token> tokens_;
  const std::string_view file_;
  const std::shared_ptr<Context> context_;
  Context& c_;
  size_t at_ = 0;
  int depth_ = 0;
  bool in_attribute_ = false;
  absl::flat_hash_map<std::string_view, Binding> bindings_;
  std::vector<std::pair<std::string_view, Binding>> scope_;
  absl::flat_hash_map<std::string_view, Var> free_names_;
};

}  // namespace

absl::StatusOr<Module> ParseModule(std::string_view text, std::string_view file,
                                   std::shared_ptr<Context> context) {
  if (!context) context = std::make_shared<Context>();
  std::vector<Token> tokens;
  RETURN_IF_ERROR(Tokenize(text, file, tokens));
  return Parser(std::move(tokens), file, std::move(context)).ParseAll();
}

absl::StatusOr<Function> ParseFunction(std::string_view text, std::string_view file,
                                       std::shared_ptr<Context> context) {
  ASSIGN_OR_RETURN(Module module, ParseModule(text, file, std::move(context)));
  if (module.functions.size() != 1) {
    return InvalidInput(file, ": expected one function, found ", module.functions.size());
  }
  return std::move(module.functions[0]);
}

}  // namespace polynao::ir
