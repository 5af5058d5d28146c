// Expressions and statements.
//
//   script     := [statement ";" ...]          statement := [name ":="] expression | "print" expression
//   expression := implication "iff" ...        implication := or ["implies" implication]
//   or         := and "or" ...                 and := comparison "and" ...
//   comparison := sum [mark sum]               sum := product ("+" | "-" | "\") ...
//   product    := prefix ("*" | "%" | "." | "->" | "×" | "cross" | "before" | "after") ...
//   prefix     := function prefix | "-" prefix | "not" prefix | postfix
//   postfix    := primary ("^" ("-1" | "+" | number) | "(" expression ")") ...
//   primary    := literal | number | name | function "(" arguments ")" | "(" expression, ... ")" | "∅"
#include "compiler/poly/calculator/parser.h"

#include <array>
#include <utility>

#include "base/status.h"

namespace polynao::poly::calculator {

const Token& TokenStream::Peek(int ahead) const {
  const size_t last = tokens_.size() - 1;
  return tokens_[position_ + ahead < last ? position_ + ahead : last];
}

Token TokenStream::Next() {
  const Token token = Peek();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool TokenStream::Accept(std::string_view mark) {
  if (!Peek().Is(mark)) return false;
  Next();
  return true;
}

absl::Status TokenStream::Expect(std::string_view mark, std::string_view expected) {
  return Accept(mark) ? absl::OkStatus() : Expected(expected);
}

absl::Status TokenStream::Expected(std::string_view expected) {
  if (furthest_error_.ok() || position_ > furthest_) {
    furthest_ = position_;
    furthest_error_ = ErrorAt(Peek().place, expected, Describe(Peek()));
  }
  return furthest_error_;
}

absl::Status TokenStream::ErrorAt(Place place, std::string_view expected,
                                  std::string_view found) const {
  return calculator::ErrorAt(file_, place, expected, found);
}

absl::Status TokenStream::Enter() {
  constexpr int kMaxDepth = 150;
  if (depth_ >= kMaxDepth) {
    return ErrorAt(Peek().place, StrCat("at most ", kMaxDepth, " levels of nesting"), "more");
  }
  ++depth_;
  return absl::OkStatus();
}

absl::Status TokenStream::CheckLength(int operands) const {
  constexpr int kMaxLength = 1000;
  if (operands < kMaxLength) return absl::OkStatus();
  return ErrorAt(Peek().place, StrCat("at most ", kMaxLength, " operands in a row"), "more");
}

namespace {

class ScriptParser {
 public:
  explicit ScriptParser(TokenStream& tokens) : tokens_(tokens) {}

  absl::StatusOr<std::vector<Statement>> Parse();

 private:
  using ExpressionOr = absl::StatusOr<Expression>;

  ExpressionOr ParseExpression() { return ParseTruth(0); }
  ExpressionOr ParseTruth(size_t level);
  ExpressionOr ParseComparison();
  ExpressionOr ParseSum();
  ExpressionOr ParseProduct();
  ExpressionOr ParsePrefix();
  ExpressionOr TryPrefix();
  ExpressionOr ParsePostfix();
  ExpressionOr ParsePrimary();
  absl::Status ParseArguments(Expression& call);

  static Expression Make(Expression::Kind kind, Place place, std::string text,
                         std::vector<Expression> operands = {}) {
    Expression expression;
    expression.kind = kind;
    expression.place = place;
    expression.text = std::move(text);
    expression.operands = std::move(operands);
    return expression;
  }

  static Expression FromLiteral(Literal literal);

  TokenStream& tokens_;
};

template <typename... Expressions>
std::vector<Expression> Operands(Expressions&&... expressions) {
  std::vector<Expression> operands;
  operands.reserve(sizeof...(expressions));
  (operands.push_back(std::forward<Expressions>(expressions)), ...);
  return operands;
}

template <size_t N>
bool IsOneOf(const Token& token, const std::array<const char*, N>& marks) {
  for (const char* mark : marks) {
    if (token.Is(mark)) return true;
  }
  return false;
}

bool IsReserved(const Token& token) {
  return FindFunction(token.text) != nullptr ||
         IsOneOf(token,
                 std::array<const char*, 11>{"print", "cross", "before", "after", "not", "true",
                                             "false", "and", "or", "implies", "iff"});
}

// The set or map, or its cardinality.
Expression ScriptParser::FromLiteral(Literal literal) {
  const bool is_count = literal.is_count;
  Expression expression = Make(Expression::Kind::kLiteral, literal.place, "");
  expression.literal = std::make_shared<const Literal>(std::move(literal));
  if (!is_count) return expression;
  const Place place = expression.place;
  return Make(Expression::Kind::kCall, place, "card", Operands(std::move(expression)));
}

absl::StatusOr<std::vector<Statement>> ScriptParser::Parse() {
  std::vector<Statement> statements;
  while (tokens_.Peek().kind != TokenKind::kEnd) {
    if (tokens_.Accept(";")) continue;
    Statement statement;
    statement.place = tokens_.Peek().place;
    if (tokens_.Peek(1).Is(":=")) {
      const Token& name = tokens_.Peek();
      if (name.kind != TokenKind::kName) return tokens_.Expected("the name of a variable");
      if (IsReserved(name)) {
        return tokens_.ErrorAt(name.place, "the name of a variable",
                               StrCat("'", name.text, "', which is a word of the language"));
      }
      statement.variable = tokens_.Next().text;
      tokens_.Next();
    } else {
      tokens_.Accept("print");
    }
    ASSIGN_OR_RETURN(statement.expression, ParseExpression());
    statements.push_back(std::move(statement));
    if (tokens_.Peek().kind != TokenKind::kEnd) {
      RETURN_IF_ERROR(tokens_.Expect(";", "an operator or ';'"));
    }
  }
  return statements;
}

// Operators of truth values, from those that bind least. One after the other: to the left, "implies" to the right.
absl::StatusOr<Expression> ScriptParser::ParseTruth(size_t level) {
  constexpr std::array<const char*, 4> kMarks = {"iff", "implies", "or", "and"};
  if (level == kMarks.size()) return ParseComparison();
  ASSIGN_OR_RETURN(Expression a, ParseTruth(level + 1));
  for (int operands = 1; tokens_.Peek().Is(kMarks[level]); ++operands) {
    const Token mark = tokens_.Next();
    RETURN_IF_ERROR(tokens_.CheckLength(operands));
    const bool is_right = mark.Is("implies");
    if (is_right) RETURN_IF_ERROR(tokens_.Enter());
    ExpressionOr b = ParseTruth(is_right ? level : level + 1);
    if (is_right) tokens_.Leave();
    RETURN_IF_ERROR(b.status());
    a = Make(Expression::Kind::kBinary, mark.place, mark.text,
             Operands(std::move(a), *std::move(b)));
  }
  return a;
}

absl::StatusOr<Expression> ScriptParser::ParseComparison() {
  ASSIGN_OR_RETURN(Expression a, ParseSum());
  if (!IsOneOf(tokens_.Peek(), std::array<const char*, 10>{"=", "!=", "<=", ">=", "<", ">", "<<",
                                                           "<<=", ">>", ">>="})) {
    return a;
  }
  const Token mark = tokens_.Next();
  ASSIGN_OR_RETURN(Expression b, ParseSum());
  return Make(Expression::Kind::kBinary, mark.place, mark.text,
              Operands(std::move(a), std::move(b)));
}

absl::StatusOr<Expression> ScriptParser::ParseSum() {
  ASSIGN_OR_RETURN(Expression sum, ParseProduct());
  for (int terms = 1; IsOneOf(tokens_.Peek(), std::array<const char*, 3>{"+", "-", "\\"});
       ++terms) {
    const Token mark = tokens_.Next();
    RETURN_IF_ERROR(tokens_.CheckLength(terms));
    ASSIGN_OR_RETURN(Expression next, ParseProduct());
    sum = Make(Expression::Kind::kBinary, mark.place, mark.Is("\\") ? "-" : mark.text,
               Operands(std::move(sum), std::move(next)));
  }
  return sum;
}

absl::StatusOr<Expression> ScriptParser::ParseProduct() {
  ASSIGN_OR_RETURN(Expression product, ParsePrefix());
  constexpr std::array<const char*, 8> kMarks = {"*", "%",     ".",      "->",
                                                 "×", "cross", "before", "after"};
  for (int factors = 1; IsOneOf(tokens_.Peek(), kMarks); ++factors) {
    const Token mark = tokens_.Next();
    RETURN_IF_ERROR(tokens_.CheckLength(factors));
    ASSIGN_OR_RETURN(Expression next, ParsePrefix());
    std::string name = mark.text;
    if (mark.Is("×")) name = "cross";
    if (mark.Is("before")) name = ".";
    if (mark.Is("after")) {
      name = ".";
      std::swap(product, next);
    }
    product = Make(Expression::Kind::kBinary, mark.place, name,
                   Operands(std::move(product), std::move(next)));
  }
  return product;
}

absl::StatusOr<Expression> ScriptParser::ParsePrefix() {
  RETURN_IF_ERROR(tokens_.Enter());
  ExpressionOr expression = TryPrefix();
  tokens_.Leave();
  return expression;
}

absl::StatusOr<Expression> ScriptParser::TryPrefix() {
  const Token token = tokens_.Peek();
  const bool is_negation = token.Is("-"), is_not = token.Is("not");
  const bool is_call = token.kind == TokenKind::kName && FindFunction(token.text) != nullptr &&
                       !tokens_.Peek(1).Is("(");
  if (!is_negation && !is_not && !is_call) return ParsePostfix();
  tokens_.Next();
  ASSIGN_OR_RETURN(Expression operand, ParsePrefix());
  return Make(is_negation ? Expression::Kind::kNegate
              : is_not    ? Expression::Kind::kNot
                          : Expression::Kind::kCall,
              token.place, token.text, Operands(std::move(operand)));
}

absl::StatusOr<Expression> ScriptParser::ParsePostfix() {
  ASSIGN_OR_RETURN(Expression expression, ParsePrimary());
  for (int operators = 0;; ++operators) {
    RETURN_IF_ERROR(tokens_.CheckLength(operators));
    const Place place = tokens_.Peek().place;
    if (tokens_.Accept("^")) {
      std::string power = tokens_.Accept("-") ? "-" : tokens_.Accept("+") ? "+" : "";
      if (power != "+") {
        if (tokens_.Peek().kind != TokenKind::kNumber) {
          return tokens_.Expected("'+' or a number after '^'");
        }
        power += tokens_.Next().text;
      }
      expression = Make(Expression::Kind::kPower, place, power, Operands(std::move(expression)));
    } else if (tokens_.Accept("(")) {
      ASSIGN_OR_RETURN(Expression argument, ParseExpression());
      RETURN_IF_ERROR(tokens_.Expect(")", "an operator or ')'"));
      expression = Make(Expression::Kind::kApply, place, "",
                        Operands(std::move(expression), std::move(argument)));
    } else {
      return expression;
    }
  }
}

absl::StatusOr<Expression> ScriptParser::ParsePrimary() {
  const Token token = tokens_.Peek();
  if (token.Is("{") || token.Is("[")) {
    ASSIGN_OR_RETURN(Literal literal, ParseLiteral(tokens_));
    if (literal.pieces.empty()) return FromLiteral(std::move(literal));
    Expression tuple = FromLiteral(std::move(literal.pieces[0]));
    for (size_t i = 1; i < literal.pieces.size(); ++i) {
      RETURN_IF_ERROR(tokens_.CheckLength(static_cast<int>(i)));
      tuple = Make(Expression::Kind::kBinary, token.place, ",",
                   Operands(std::move(tuple), FromLiteral(std::move(literal.pieces[i]))));
    }
    return tuple;
  }
  if (token.kind == TokenKind::kNumber) {
    return Make(Expression::Kind::kNumber, token.place, tokens_.Next().text);
  }
  if (token.Is("∅")) return Make(Expression::Kind::kEmpty, token.place, tokens_.Next().text);
  if (token.Is("true") || token.Is("false")) {
    return Make(Expression::Kind::kBool, token.place, tokens_.Next().text);
  }
  if (tokens_.Accept("(")) {
    ASSIGN_OR_RETURN(Expression inner, ParseExpression());
    for (int pieces = 1; tokens_.Accept(","); ++pieces) {
      RETURN_IF_ERROR(tokens_.CheckLength(pieces));
      ASSIGN_OR_RETURN(Expression next, ParseExpression());
      inner = Make(Expression::Kind::kBinary, token.place, ",",
                   Operands(std::move(inner), std::move(next)));
    }
    RETURN_IF_ERROR(tokens_.Expect(")", "an operator or ')'"));
    return inner;
  }
  if (token.kind != TokenKind::kName || (IsReserved(token) && !FindFunction(token.text))) {
    return tokens_.Expected("a set, a map or a function");
  }
  tokens_.Next();
  if (FindFunction(token.text) == nullptr) {
    return Make(Expression::Kind::kVariable, token.place, token.text);
  }
  Expression call = Make(Expression::Kind::kCall, token.place, token.text);
  RETURN_IF_ERROR(ParseArguments(call));
  return call;
}

absl::Status ScriptParser::ParseArguments(Expression& call) {
  const Arguments kind = *FindFunction(call.text);
  RETURN_IF_ERROR(tokens_.Expect("(", "'('"));
  ASSIGN_OR_RETURN(Expression first, ParseExpression());
  call.operands.push_back(std::move(first));
  while (tokens_.Accept(",")) {
    if (kind == Arguments::kExpressions) {
      ASSIGN_OR_RETURN(Expression next, ParseExpression());
      call.operands.push_back(std::move(next));
      continue;
    }
    const bool is_binding = kind == Arguments::kBindings;
    const Token& name = tokens_.Peek();
    if (name.kind != TokenKind::kName && (is_binding || name.kind != TokenKind::kNumber)) {
      return tokens_.Expected(is_binding ? "a value as n = 10"
                                         : "the name or number of a dimension");
    }
    Expression::Argument argument{tokens_.Next(), ""};
    if (is_binding) {
      RETURN_IF_ERROR(tokens_.Expect("=", "'=' after the name of a parameter"));
      if (tokens_.Accept("-")) argument.value = "-";
      if (tokens_.Peek().kind != TokenKind::kNumber) return tokens_.Expected("a number");
      argument.value += tokens_.Next().text;
    }
    call.arguments.push_back(std::move(argument));
  }
  return tokens_.Expect(")", "an operator, ',' or ')'");
}

}  // namespace

absl::StatusOr<std::vector<Statement>> ParseScript(std::string_view text, std::string_view file) {
  ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(text, file));
  TokenStream stream(std::move(tokens), file);
  return ScriptParser(stream).Parse();
}

}  // namespace polynao::poly::calculator
