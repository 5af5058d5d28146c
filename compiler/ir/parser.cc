// Functions and statements of the text form. Expressions: expression_parser.h.
#include <algorithm>
#include <optional>

#include "absl/types/span.h"
#include "base/status.h"
#include "compiler/ir/buffer_names.h"
#include "compiler/ir/expression_parser.h"
#include "compiler/ir/externs.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/reserved.h"
#include "compiler/ir/text.h"

namespace polynao::ir {
namespace {

// Limits how deep lets and allocations without braces nest in one another: the parser does not recurse
// for them, but printers and passes do.
constexpr int kMaxOpen = 5000;

class Parser : ExpressionParser {
 public:
  Parser(std::vector<Token> tokens, std::string_view file, std::shared_ptr<Context> context)
      : ExpressionParser(std::move(tokens), file, std::move(context)) {}

  absl::StatusOr<Module> ParseAll() {
    Module module;
    module.context = context_;
    while (Peek().kind != TokenKind::kEnd) {
      if (Is("extern")) {
        RETURN_IF_ERROR(ParseExtern(module));
        continue;
      }
      const Token& place = Peek();
      ASSIGN_OR_RETURN(Function function, ParseFunc());
      if (FindExtern(function.name) != nullptr) {
        return ErrorAt(place, StrCat("'", function.name, "' is an extern function already"));
      }
      for (const Function& other : module.functions) {
        if (other.name == function.name) {
          return ErrorAt(place, StrCat("two functions are named '", function.name, "'"));
        }
      }
      module.functions.push_back(std::move(function));
    }
    return module;
  }

 private:
  // ---- functions

  // extern pure func g(x: f32) -> f32 [= value], extern writes func h(A: f32[4]) [{ .. }]
  absl::Status ParseExtern(const Module& module) {
    RETURN_IF_ERROR(Expect("extern"));
    const Token& kind_place = Peek();
    ASSIGN_OR_RETURN(const std::string_view kind, Word("pure, reads, writes or opaque"));
    const std::optional<Effect> effect = ParseEffect(kind);
    if (!effect) {
      return ErrorAt(kind_place,
                     StrCat("expected pure, reads, writes or opaque, found '", kind, "'"));
    }
    RETURN_IF_ERROR(Expect("func"));
    const Token& place = Peek();
    ASSIGN_OR_RETURN(const std::string_view name, NewName("the function's name"));
    if (FindPureIntrinsic(name) != nullptr || ir::ParseType(name)) {
      return ErrorAt(place,
                     StrCat("'", name, "' is ", ir::ParseType(name) ? "a type" : "an intrinsic"));
    }
    if (name.find('.') != std::string_view::npos) {
      return ErrorAt(place, StrCat("an extern function's name is one of C, found '", name, "'"));
    }
    for (const Function& other : module.functions) {
      if (other.name == name) return ErrorAt(place, StrCat("'", name, "' is a function already"));
    }
    auto node = std::make_shared<ExternNode>();
    node->name = std::string(name);
    node->effect = *effect;
    node->context = &c_;
    RETURN_IF_ERROR(Expect("("));
    const size_t mark = Mark();
    Function f;
    RETURN_IF_ERROR(ParseParams(f));
    node->params = std::move(f.params);
    const Token& result_place = Peek();
    if (Accept("-")) {
      RETURN_IF_ERROR(Expect(">"));
      if (Accept("(")) {
        RETURN_IF_ERROR(Expect(")"));
      } else {
        ASSIGN_OR_RETURN(node->result, TypeWord());
      }
    }
    if (const std::string fault = SignatureFault(*node); !fault.empty()) {
      return ErrorAt(node->result ? place : result_place, fault);
    }
    if (node->result && Accept("=")) {
      ASSIGN_OR_RETURN(node->value, Typed(*node->result, "the result"));
    } else if (!node->result && Is("{")) {
      ASSIGN_OR_RETURN(node->body, ParseBlock());
    }
    Close(mark);
    node->text = PrintExtern(*node);
    const ExternNode* known = FindExtern(name);
    if (known != nullptr && known->text != node->text) {
      return ErrorAt(place, StrCat("'", name, "' is declared in two ways"));
    }
    const ExternNode* kept = c_.AddExtern(std::move(node));
    externs_[kept->name] = kept;
    return absl::OkStatus();
  }

  absl::StatusOr<Function> ParseFunc() {
    // Attributes may mention parameters, which are declared after them.
    if (Is("@") && Is("=", 2) && Is("primfn", 3)) return ParsePrimFunc();
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
    if (!Is("func")) return Error(attributes_at == at_ ? "'func', 'extern' or '@'" : "'func'");
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
    const auto buffers = BufferNames(f);
    for (const Token* place : aliased_) {
      const std::string buffer = Unquote(place->text);
      if (!buffers.contains(buffer)) {
        return ErrorAt(*place, StrCat("@may_alias: no buffer is named '", buffer, "'"));
      }
    }
    aliased_.clear();
    return f;
  }

  // TVM's listings: "@main = primfn(i1: int32) -> () { .. }". A buffer that the body stores to under its
  // type and that nothing declares becomes a parameter, of as many elements as another one says.
  absl::StatusOr<Function> ParsePrimFunc() {
    RETURN_IF_ERROR(Expect("@"));
    Function f;
    f.context = context_;
    ASSIGN_OR_RETURN(std::string_view name, NewName("the function's name"));
    f.name = std::string(name);
    at_ += 2;  // = primfn
    RETURN_IF_ERROR(Expect("("));
    const size_t mark = Mark();
    RETURN_IF_ERROR(ParseParams(f));
    for (const std::string_view token : {"-", ">", "(", ")"}) RETURN_IF_ERROR(Expect(token));
    in_listing_ = true;
    ASSIGN_OR_RETURN(f.body, ParseBlock());
    in_listing_ = false;
    Close(mark);
    for (Param& param : implied_) {
      if (param.buffer) BindEverywhere(param.buffer->name, {});
      f.params.push_back(std::move(param));
    }
    implied_.clear();
    return f;
  }

  // "buffer: Pointer(int32)[i1] = value" in a listing, where nothing declares the buffer.
  absl::StatusOr<Stmt> ParseFirstStore() {
    const std::string_view name = tokens_[at_].text;
    at_ += 2;
    ASSIGN_OR_RETURN(const Type type, TypeWord());
    std::vector<Expr> indices, extents;
    RETURN_IF_ERROR(ParseIndices(indices));
    for (size_t d = 0; d < indices.size(); ++d) {
      const std::string extent = StrCat(name, "_size", indices.size() == 1 ? "" : StrCat("_", d));
      implied_.push_back({.var = c_.NewVar(extent, Type::kI64), .buffer = {}, .scope = ""});
      extents.push_back(implied_.back().var);
    }
    const Buffer buffer = c_.NewBuffer(name, type, extents);
    implied_.push_back({.var = {}, .buffer = buffer, .access = Access::kInOut, .scope = ""});
    BindEverywhere(name, {Var(), buffer});
    RETURN_IF_ERROR(Expect("="));
    ASSIGN_OR_RETURN(Expr value, Typed(type, "the stored value"));
    return c_.Store(buffer, indices, value);
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
      const Token& place = Peek();
      ASSIGN_OR_RETURN(std::string_view key, Word("an attribute's name"));
      attribute.key = std::string(key);
      if (Accept("(")) {
        in_attribute_ = true;
        while (!Accept(")")) {
          if (!attribute.values.empty()) RETURN_IF_ERROR(Expect(","));
          if (Peek().kind == TokenKind::kString) {
            const Token& text = tokens_[at_++];
            attribute.values.push_back(Unquote(text.text));
            if (key == "may_alias") aliased_.push_back(&text);
          } else {
            ASSIGN_OR_RETURN(Parsed value, ParseExpr());
            const bool integer = value.flexible && CanRetype(value.e, Type::kI64);
            attribute.values.push_back(integer ? Retype(value.e, Type::kI64) : Settle(value).e);
          }
        }
        in_attribute_ = false;
        if (key == "assert" && !free_names_.empty()) {
          std::string_view first = free_names_.begin()->first;
          for (const auto& [free_name, var] : free_names_) first = std::min(first, free_name);
          return ErrorAt(place, StrCat("@assert: no scalar parameter is named '", first, "'"));
        }
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
    // A let or an allocation reaches to the end of the block. Passes print long runs of them, so
    // they nest without recursion here.
    struct Open {
      size_t first;  // statement of its body
      LetHead let;
      Buffer buffer;  // of an allocation
    };
    std::vector<Open> open;
    std::vector<Stmt> stmts;
    while (!Is("}") && Peek().kind != TokenKind::kEnd) {
      if (Accept(";")) continue;
      const Token& place = Peek();
      const bool is_let = Is("let");
      if (!is_let && !Is("allocate")) {
        ASSIGN_OR_RETURN(Stmt s, ParseStmt());
        stmts.push_back(s);
        continue;
      }
      if (++open_count_ > kMaxOpen) {
        return ErrorAt(place,
                       StrCat("more than ", kMaxOpen, " lets and allocations in one another"));
      }
      ++at_;
      Open head{.first = stmts.size(), .let = {}, .buffer = {}};
      if (is_let) {
        ASSIGN_OR_RETURN(head.let, ParseLetHead());
      } else {
        ASSIGN_OR_RETURN(head.buffer, ParseAllocation());
      }
      open.push_back(head);
    }
    for (; !open.empty(); open.pop_back()) {
      const auto& [first, let, buffer] = open.back();
      const Stmt body = c_.Seq(absl::MakeConstSpan(stmts).subspan(first));
      stmts.resize(first);
      stmts.push_back(buffer ? c_.Allocate(buffer, body) : c_.LetStmt(let.var, let.value, body));
      --open_count_;
    }
    return c_.Seq(stmts);
  }

  // The body of a loop, branch or pragma: a block or a single statement.
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
    // As the body of an `if` without braces: its scope is the rest of the enclosing block.
    if (Is("let") || Is("allocate")) return ParseRest();
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
      if (!IsIndexable(type)) {
        return ErrorAt(place, StrCat("a loop variable has an integer type that fits in i64, not ",
                                     TypeName(type)));
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

  // "A: f16[4] @nmem", or as in the papers "(A, 56)": f32 in local memory. Binds A.
  absl::StatusOr<Buffer> ParseAllocation() {
    const bool parenthesised = Accept("(");
    ASSIGN_OR_RETURN(std::string_view name, NewName("a buffer's name"));
    Type type = Type::kF32;
    std::vector<Expr> extents;
    std::string scope = "gmem";
    if (parenthesised && Accept(",")) {
      scope = "local";
      const Token& place = Peek();
      ASSIGN_OR_RETURN(Parsed extent, ParseExpr());
      if (!IsIndexable(extent.e.type())) {
        return ErrorAt(place, StrCat("an extent has an integer type that fits in i64, not ",
                                     TypeName(extent.e.type())));
      }
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
    return buffer;
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
      if (const ExternNode* callee = FindExtern(place.text); callee != nullptr) {
        if (callee->result) {
          return ErrorAt(place, StrCat(callee->name,
                                       " only gives a result: it is called inside an "
                                       "expression"));
        }
        ASSIGN_OR_RETURN(const Expr call, ParseExternCall(place, callee));
        return c_.Evaluate(call);
      }
      ASSIGN_OR_RETURN(const Expr call, ParseInstruction(place));
      return c_.Evaluate(call);
    }
    const Buffer buffer = Lookup(place.text).buffer;
    if (!buffer) {
      if (in_listing_ && Is(":", 1)) return ParseFirstStore();
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

  int open_count_ = 0;
  bool in_listing_ = false;
  std::vector<Param> implied_;         // by the listing's body
  std::vector<const Token*> aliased_;  // names in @may_alias of the function
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
