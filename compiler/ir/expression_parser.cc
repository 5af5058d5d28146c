// Tokens, scopes, operators and what they join. Literals without a type are in literal_types.cc, calls in
// call_parser.cc.
#include "compiler/ir/expression_parser.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "compiler/ir/reserved.h"

namespace polynao::ir {

// ---- tokens -------------------------------------------------------------------------------------

absl::Status ExpressionParser::ErrorAt(const Token& token, std::string_view message) const {
  return InvalidInput(file_, ":", token.line, ":", token.column, ": ", message);
}

absl::Status ExpressionParser::Error(std::string_view expected) const {
  const Token& token = Peek();
  return ErrorAt(token, StrCat("expected ", expected, ", found ",
                               token.kind == TokenKind::kEnd ? "the end of the text"
                                                             : StrCat("'", token.text, "'")));
}

absl::Status ExpressionParser::Expect(std::string_view text) {
  return Accept(text) ? absl::OkStatus() : Error(StrCat("'", text, "'"));
}

absl::StatusOr<std::string_view> ExpressionParser::Word(std::string_view what) {
  if (Peek().kind != TokenKind::kWord) return Error(what);
  return tokens_[at_++].text;
}

absl::StatusOr<std::string_view> ExpressionParser::NewName(std::string_view what) {
  if (Peek().kind == TokenKind::kWord && IsReserved(Peek().text)) {
    return Error(StrCat(what, " (this word is reserved)"));
  }
  return Word(what);
}

absl::StatusOr<Type> ExpressionParser::TypeWord() {
  // The listings of TVM write Pointer(int32) for the type of a buffer's elements.
  if (Is("Pointer")) {
    DepthGuard guard(depth_);
    if (depth_ > kMaxDepth) return ErrorAt(Peek(), "types are nested too deeply");
    ++at_;
    RETURN_IF_ERROR(Expect("("));
    ASSIGN_OR_RETURN(Type type, TypeWord());
    RETURN_IF_ERROR(Expect(")"));
    return type;
  }
  const Token& token = Peek();
  if (token.kind == TokenKind::kWord) {
    if (std::optional<Type> type = ir::ParseType(token.text)) {
      ++at_;
      return *type;
    }
  }
  std::vector<std::string> names;
  for (int i = 0; i < kTypeCount; ++i) names.emplace_back(TypeName(static_cast<Type>(i)));
  const std::string last = names.back();
  names.pop_back();
  return Error(StrCat("a type (", absl::StrJoin(names, ", "), " or ", last, ")"));
}

std::string ExpressionParser::Unquote(std::string_view quoted) {
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

// ---- scopes -------------------------------------------------------------------------------------

void ExpressionParser::Close(size_t mark) {
  while (scope_.size() > mark) {
    auto& [name, previous] = scope_.back();
    bindings_[name] = previous;
    scope_.pop_back();
  }
}

void ExpressionParser::BindName(std::string_view name, Binding binding) {
  Binding& slot = bindings_[name];
  scope_.emplace_back(name, slot);
  slot = binding;
}

ExpressionParser::Binding ExpressionParser::Lookup(std::string_view name) const {
  auto it = bindings_.find(name);
  return it == bindings_.end() ? Binding() : it->second;
}

// ---- operators ----------------------------------------------------------------------------------

namespace {

// Binding strength, weakest first. Operators on bits bind tighter than comparisons.
enum Level {
  kOrLevel,
  kAndLevel,
  kEqualLevel,
  kOrderLevel,
  kBitOrLevel,
  kBitXorLevel,
  kBitAndLevel,
  kShiftLevel,
  kSumLevel,
  kProductLevel
};

struct BinaryOperator {
  std::string_view text;
  ExprKind kind;
  Level level;
  bool swapped = false;
};

constexpr BinaryOperator kOperators[] = {
    {"||", ExprKind::kOr, kOrLevel},
    {"&&", ExprKind::kAnd, kAndLevel},
    {"==", ExprKind::kEq, kEqualLevel},
    {"!=", ExprKind::kNe, kEqualLevel},
    {"<", ExprKind::kLt, kOrderLevel},
    {"<=", ExprKind::kLe, kOrderLevel},
    {">", ExprKind::kLt, kOrderLevel, true},
    {">=", ExprKind::kLe, kOrderLevel, true},
    {"|", ExprKind::kBitOr, kBitOrLevel},
    {"^", ExprKind::kBitXor, kBitXorLevel},
    {"&", ExprKind::kBitAnd, kBitAndLevel},
    {"<<", ExprKind::kShiftLeft, kShiftLevel},
    {">>", ExprKind::kShiftRight, kShiftLevel},
    {"+", ExprKind::kAdd, kSumLevel},
    {"-", ExprKind::kSub, kSumLevel},
    {"*", ExprKind::kMul, kProductLevel},
    {"/", ExprKind::kDiv, kProductLevel},
    {"%", ExprKind::kMod, kProductLevel},
};

const BinaryOperator* FindOperator(const Token& token) {
  if (token.kind != TokenKind::kSymbol) return nullptr;
  for (const BinaryOperator& op : kOperators) {
    if (op.text == token.text) return &op;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<Parsed> ExpressionParser::ParseExpr() {
  DepthGuard guard(depth_);
  if (depth_ > kMaxDepth) return ErrorAt(Peek(), "expressions are nested too deeply");
  const Token& place = Peek();
  ASSIGN_OR_RETURN(Parsed e, ParseBinary(0));
  if (!Accept("?")) return e;
  if (e.e.type() != Type::kI1) {
    return ErrorAt(place, StrCat("expected a condition, found ", TypeName(e.e.type())));
  }
  Argument a{{}, &Peek()};
  ASSIGN_OR_RETURN(a.value, ParseExpr());
  RETURN_IF_ERROR(Expect(":"));
  Argument b{{}, &Peek()};
  ASSIGN_OR_RETURN(b.value, ParseExpr());
  if (a.value.flexible && b.value.flexible) {
    a.value = Settle(a.value);
    b.value = Settle(b.value);
  }
  RETURN_IF_ERROR(Unify(place, "?:", a, b));
  return Parsed{c_.Select(e.e, a.value.e, b.value.e)};
}

int ExpressionParser::Height(Expr e) {
  if (e.operands().empty()) return 0;
  if (auto it = heights_.find(e); it != heights_.end()) return it->second;
  int height = 0;
  for (Expr operand : e.operands()) height = std::max(height, Height(operand));
  return heights_[e] = height + 1;
}

// Precedence climbing.
absl::StatusOr<Parsed> ExpressionParser::ParseBinary(int level) {
  Argument a{{}, &Peek()};
  ASSIGN_OR_RETURN(a.value, ParseUnary());
  while (true) {
    const Token& place = Peek();
    const BinaryOperator* op = FindOperator(place);
    if (op == nullptr || op->level < level) return a.value;
    ++at_;
    Argument b{{}, &Peek()};
    ASSIGN_OR_RETURN(b.value, ParseBinary(op->level + 1));
    const bool keeps_type = op->level > kOrderLevel;
    if (!keeps_type && a.value.flexible && b.value.flexible) {
      a.value = Settle(a.value);
      b.value = Settle(b.value);
    }
    RETURN_IF_ERROR(Unify(place, op->text, a, b));
    const Type type = a.value.e.type();
    const bool logic = op->level <= kAndLevel;
    if (logic && type != Type::kI1) {
      return ErrorAt(place, StrCat("'", op->text, "' joins conditions, found ", TypeName(type)));
    }
    if (type == Type::kI1 && !logic && op->level != kEqualLevel) {
      return ErrorAt(place, StrCat("'", op->text, "' of conditions"));
    }
    if (IsFloat(type) && !TakesFloats(op->kind)) {
      return ErrorAt(place, StrCat("'", op->text, "' of floats"));
    }
    const bool flexible = a.value.flexible && b.value.flexible && keeps_type;
    a.value = {op->swapped ? c_.Binary(op->kind, b.value.e, a.value.e)
                           : c_.Binary(op->kind, a.value.e, b.value.e),
               flexible};
    if (Height(a.value.e) > kMaxHeight) {
      return ErrorAt(place, StrCat("an expression of more than ", kMaxHeight, " levels"));
    }
  }
}

absl::StatusOr<Parsed> ExpressionParser::ParseUnary() {
  const Token& place = Peek();
  // A level of its own only with an operator: ParseExpr has counted the expression.
  const bool has_operator = Is("!") || Is("-") || Is("~");
  DepthGuard guard(depth_, has_operator ? 1 : 0);
  if (depth_ > kMaxDepth) return ErrorAt(place, "expressions are nested too deeply");
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
  if (Accept("~")) {
    ASSIGN_OR_RETURN(Parsed e, ParseUnary());
    if (!IsInt(e.e.type()) || e.e.type() == Type::kI1) {
      return ErrorAt(place, StrCat("'~' of ", TypeName(e.e.type())));
    }
    return Parsed{e.e ^ c_.Int(e.e.type(), -1), e.flexible};
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

// ---- primaries ----------------------------------------------------------------------------------

absl::StatusOr<Parsed> ExpressionParser::ParseNumber(bool negative) {
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
  if (error != std::errc() || (negative && magnitude > limit)) {
    return ErrorAt(token, StrCat("no integer type holds ", negative ? "-" : "", token.text));
  }
  const int64_t value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  if (!negative && magnitude >= limit) return Parsed{c_.Int(Type::kU64, value), true};
  return Parsed{FitsInt(Type::kI32, value) ? c_.I32(value) : c_.I64(value), true};
}

absl::StatusOr<Parsed> ExpressionParser::ParsePrimary() {
  const Token& place = Peek();
  if (place.kind == TokenKind::kInt || place.kind == TokenKind::kFloat) return ParseNumber(false);
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

absl::Status ExpressionParser::ParseIndices(std::vector<Expr>& indices) {
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
    const Type type = index.e.type();
    if (!IsInt(type)) {
      return ErrorAt(place, StrCat("an index is an integer, not ", TypeName(type)));
    }
    if (!IsIndexable(type)) {
      return ErrorAt(place, StrCat("an index has a type that fits in i64, not ", TypeName(type)));
    }
    indices.push_back(index.e);
  }
}

absl::Status ExpressionParser::ParseBufferIndices(Buffer buffer, std::vector<Expr>& indices) {
  const Token& place = Peek();
  RETURN_IF_ERROR(ParseIndices(indices));
  if (indices.size() != buffer->extents.size()) {
    return ErrorAt(place, StrCat(buffer->name, " has ", buffer->extents.size(),
                                 " dimensions, found ", indices.size(), " indices"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExpressionParser::LetHead> ExpressionParser::ParseLetHead() {
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

}  // namespace polynao::ir
