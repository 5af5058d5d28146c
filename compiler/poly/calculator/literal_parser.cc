// Literals: "[n] -> { S[i, j] : 0 <= i < n and ...; T(i) -> (i + 1) }".
//
//   literal := ["[" name, ... "]" "->"] (union | "[" union, ... "]")
//   union   := "{" [part ";" ...] "}" | "[" [part ";" ...] "]"
//   part    := [tuple ["->" tuple]] [":" formula]          "#" before the last tuple: how many there are
//   tuple   := [name] "[" [element, ...] "]"         "(" and ")" will do
//            | [name] "[" tuple "->" tuple "]"
//   element := [name "="] sum
//   formula := implication "iff" ...         implication := or ["implies" implication]
//   or      := and "or" and ...              and := unary "and" ...
//   unary   := "not" unary | ("exists" | "forall") binders [":"] formula | "(" formula ")"
//            | list comparison list ... | "true" | "false"
//   list    := sum, ... | "(" sum, ... ")"
//   sum     := term ("+" | "-") ...          term := factor ("*" | "/" | "%" | "mod") ...
//   factor  := "-" factor | number ["()"] [factor] | name ["()"] | "(" sum ")" | "[" sum "]" | "⌊" sum "⌋"
//            | floor(e) | ceil(e) | floord(e, d) | ceild(e, d) | min(a, b) | max(a, b)
#include <array>
#include <utility>

#include "base/status.h"
#include "compiler/poly/calculator/parser.h"

namespace polynao::poly::calculator {
namespace {

bool IsVariable(const Token& token) {
  return token.kind == TokenKind::kName && !IsKeyword(token.text);
}
bool OpensTuple(const Token& token) { return token.Is("(") || token.Is("["); }

bool IsComparison(const Token& token) {
  if (token.kind != TokenKind::kMark) return false;
  for (const char* mark : {"<=", "<", ">=", ">", "=", "!=", "<<", "<<=", ">>", ">>="}) {
    if (token.text == mark) return true;
  }
  return false;
}

Node MakeNode(std::string kind, Place place, std::vector<Node> operands = {},
              std::string name = "") {
  return Node{std::move(kind), std::move(name), std::move(operands), place};
}

template <typename... Nodes>
std::vector<Node> Operands(Nodes&&... nodes) {
  std::vector<Node> operands;
  operands.reserve(sizeof...(nodes));
  (operands.push_back(std::forward<Nodes>(nodes)), ...);
  return operands;
}

class LiteralParser {
 public:
  explicit LiteralParser(TokenStream& tokens) : tokens_(tokens) {}

  absl::StatusOr<Literal> Parse();

 private:
  using NodeOr = absl::StatusOr<Node>;

  bool BeginsParameters() const;
  absl::Status ParseParts(Literal& literal);
  absl::StatusOr<Part> ParsePart(Literal& literal);
  absl::StatusOr<Tuple> ParseCounted();
  absl::StatusOr<Tuple> ParseTuple();
  absl::StatusOr<Tuple> TryTuple();
  NodeOr ParseElement();
  NodeOr ParseFormula();
  NodeOr ParseImplication();
  NodeOr ParseOr();
  NodeOr ParseAnd();
  NodeOr ParseUnary();
  NodeOr TryUnary();
  NodeOr ParseQuantified();
  NodeOr ParseChain();
  NodeOr ParseList();
  NodeOr ParseSum();
  NodeOr ParseTerm();
  NodeOr ParseFactor();
  NodeOr TryFactor();
  NodeOr ParseOperand(bool is_rounded);
  // "()": the name or number before is a function without arguments, that is, a constant.
  bool AcceptNoArguments() {
    if (!tokens_.Peek().Is("(") || !tokens_.Peek(1).Is(")")) return false;
    tokens_.Next();
    tokens_.Next();
    return true;
  }

  TokenStream& tokens_;
  // Inside of a floor or ceil a quotient is exact: floor(i/2 + j/3).
  int rounded_ = 0;
  bool has_floor_division_ = false;
};

// "[n, m] ->", not the map "[S(i) -> (i)]", of which the first tuple follows, and no list "[{ .. }, { .. }]".
bool LiteralParser::BeginsParameters() const {
  const Token& next = tokens_.Peek(1);
  return tokens_.Peek().Is("[") && !OpensTuple(next) && !next.Is("{") && !next.Is("#") &&
         !(IsVariable(next) && OpensTuple(tokens_.Peek(2)));
}

absl::StatusOr<Literal> LiteralParser::Parse() {
  Literal literal;
  literal.place = tokens_.Peek().place;
  if (BeginsParameters()) {
    tokens_.Next();
    literal.declares_parameters = true;
    while (!tokens_.Peek().Is("]")) {
      if (!IsVariable(tokens_.Peek())) return tokens_.Expected("a parameter");
      literal.parameters.push_back(tokens_.Next());
      if (!tokens_.Accept(",") && !tokens_.Peek().Is("]")) return tokens_.Expected("',' or ']'");
    }
    tokens_.Next();
    RETURN_IF_ERROR(tokens_.Expect("->", "'->' after the parameters"));
  }
  if (!tokens_.Peek().Is("[") || !tokens_.Peek(1).Is("{")) {
    RETURN_IF_ERROR(ParseParts(literal));
    return literal;
  }
  tokens_.Next();
  std::vector<Literal> pieces;
  do {
    pieces.push_back(literal);
    pieces.back().place = tokens_.Peek().place;
    RETURN_IF_ERROR(ParseParts(pieces.back()));
  } while (tokens_.Accept(","));
  RETURN_IF_ERROR(tokens_.Expect("]", "',' or ']'"));
  literal.pieces = std::move(pieces);
  return literal;
}

absl::Status LiteralParser::ParseParts(Literal& literal) {
  const std::string_view close = tokens_.Peek().Is("[") ? "]" : "}";
  if (!tokens_.Accept("[")) RETURN_IF_ERROR(tokens_.Expect("{", "'{'"));
  has_floor_division_ = false;
  while (!tokens_.Peek().Is(close)) {
    ASSIGN_OR_RETURN(Part part, ParsePart(literal));
    literal.parts.push_back(std::move(part));
    if (!tokens_.Accept(";") && !tokens_.Peek().Is(close)) {
      return tokens_.Expected(
          StrCat(literal.parts.back().conditions.empty() ? "'->', ':'" : "'and', 'or'",
                 ", ';' or '", close, "'"));
    }
  }
  tokens_.Next();
  literal.has_floor_division = has_floor_division_;
  return absl::OkStatus();
}

absl::StatusOr<Part> LiteralParser::ParsePart(Literal& literal) {
  Part part;
  part.place = tokens_.Peek().place;
  bool is_count = false;
  if (!tokens_.Peek().Is(":")) {
    do {
      is_count = tokens_.Accept("#");
      ASSIGN_OR_RETURN(Tuple tuple, is_count ? ParseCounted() : ParseTuple());
      part.tuples.push_back(std::move(tuple));
    } while (!is_count && part.tuples.size() < 2 && tokens_.Accept("->"));
  }
  if (literal.parts.empty()) literal.is_count = is_count;
  if (literal.is_count != is_count) {
    return tokens_.ErrorAt(
        part.place, StrCat("a part ", is_count ? "without" : "with", " '#', as the first one is"),
        StrCat("one ", is_count ? "with" : "without"));
  }
  if (tokens_.Accept(":") && !tokens_.Peek().Is(";") && !tokens_.Peek().Is("}") &&
      !tokens_.Peek().Is("]")) {
    ASSIGN_OR_RETURN(Node formula, ParseFormula());
    part.conditions.push_back(std::move(formula));
  }
  return part;
}

// What '#' counts: a tuple, or variables without parentheses: "# i, j".
absl::StatusOr<Tuple> LiteralParser::ParseCounted() {
  if (!IsVariable(tokens_.Peek()) || OpensTuple(tokens_.Peek(1))) return ParseTuple();
  Tuple tuple;
  tuple.place = tokens_.Peek().place;
  do {
    if (!IsVariable(tokens_.Peek())) return tokens_.Expected("a variable");
    const Token name = tokens_.Next();
    tuple.elements.push_back(MakeNode("name", name.place, {}, name.text));
  } while (tokens_.Accept(","));
  return tuple;
}

absl::StatusOr<Tuple> LiteralParser::ParseTuple() {
  RETURN_IF_ERROR(tokens_.Enter());
  absl::StatusOr<Tuple> tuple = TryTuple();
  tokens_.Leave();
  return tuple;
}

absl::StatusOr<Tuple> LiteralParser::TryTuple() {
  Tuple tuple;
  tuple.place = tokens_.Peek().place;
  if (IsVariable(tokens_.Peek())) tuple.name = tokens_.Next().text;
  const bool is_round = tokens_.Peek().Is("(");
  if (!is_round && !tokens_.Peek().Is("[")) {
    return tokens_.Expected(tuple.name.empty() ? "a tuple, as S[i, j] or S(i, j)"
                                               : "'[' or '(' after the name of a tuple");
  }
  tokens_.Next();
  const std::string_view close = is_round ? ")" : "]";
  // A wrapped map, if a tuple and an arrow come next.
  const size_t start = tokens_.position();
  if (absl::StatusOr<Tuple> domain = ParseTuple(); domain.ok() && tokens_.Accept("->")) {
    ASSIGN_OR_RETURN(Tuple range, ParseTuple());
    RETURN_IF_ERROR(tokens_.Expect(close, StrCat("'", close, "'")));
    tuple.is_wrapped = true;
    tuple.nested = {*std::move(domain), std::move(range)};
    return tuple;
  }
  tokens_.set_position(start);
  if (tokens_.Accept(close)) return tuple;
  while (true) {
    ASSIGN_OR_RETURN(Node element, ParseElement());
    tuple.elements.push_back(std::move(element));
    if (tokens_.Accept(",")) continue;
    RETURN_IF_ERROR(tokens_.Expect(close, StrCat("',' or '", close, "'")));
    return tuple;
  }
}

absl::StatusOr<Node> LiteralParser::ParseElement() {
  if (IsVariable(tokens_.Peek()) && tokens_.Peek(1).Is("=")) {
    const Token name = tokens_.Next();
    tokens_.Next();
    ASSIGN_OR_RETURN(Node value, ParseSum());
    return MakeNode("define", name.place, Operands(std::move(value)), name.text);
  }
  return ParseSum();
}

absl::StatusOr<Node> LiteralParser::ParseFormula() {
  ASSIGN_OR_RETURN(Node formula, ParseImplication());
  for (int operands = 1; tokens_.Peek().Is("iff"); ++operands) {
    const Place place = tokens_.Next().place;
    RETURN_IF_ERROR(tokens_.CheckLength(operands));
    ASSIGN_OR_RETURN(Node next, ParseImplication());
    formula = MakeNode("iff", place, Operands(std::move(formula), std::move(next)));
  }
  return formula;
}

absl::StatusOr<Node> LiteralParser::ParseImplication() {
  ASSIGN_OR_RETURN(Node a, ParseOr());
  if (!tokens_.Peek().Is("implies")) return a;
  const Place place = tokens_.Next().place;
  RETURN_IF_ERROR(tokens_.Enter());
  absl::StatusOr<Node> b = ParseImplication();
  tokens_.Leave();
  RETURN_IF_ERROR(b.status());
  return MakeNode("implies", place, Operands(std::move(a), *std::move(b)));
}

absl::StatusOr<Node> LiteralParser::ParseOr() {
  ASSIGN_OR_RETURN(Node first, ParseAnd());
  if (!tokens_.Peek().Is("or")) return first;
  Node node = MakeNode("or", first.place, Operands(std::move(first)));
  while (tokens_.Accept("or")) {
    ASSIGN_OR_RETURN(Node next, ParseAnd());
    node.operands.push_back(std::move(next));
  }
  return node;
}

absl::StatusOr<Node> LiteralParser::ParseAnd() {
  ASSIGN_OR_RETURN(Node first, ParseUnary());
  if (!tokens_.Peek().Is("and")) return first;
  Node node = MakeNode("and", first.place, Operands(std::move(first)));
  while (tokens_.Accept("and")) {
    ASSIGN_OR_RETURN(Node next, ParseUnary());
    node.operands.push_back(std::move(next));
  }
  return node;
}

absl::StatusOr<Node> LiteralParser::ParseUnary() {
  RETURN_IF_ERROR(tokens_.Enter());
  NodeOr node = TryUnary();
  tokens_.Leave();
  return node;
}

absl::StatusOr<Node> LiteralParser::TryUnary() {
  const Place place = tokens_.Peek().place;
  if (tokens_.Accept("true")) return MakeNode("true", place);
  if (tokens_.Accept("false")) return MakeNode("false", place);
  if (tokens_.Accept("not")) {
    ASSIGN_OR_RETURN(Node operand, ParseUnary());
    return MakeNode("not", place, Operands(std::move(operand)));
  }
  if (tokens_.Peek().Is("exists") || tokens_.Peek().Is("forall")) return ParseQuantified();
  if (!tokens_.Peek().Is("(")) return ParseChain();
  // "(" begins an integer, a list or a formula.
  const size_t start = tokens_.position();
  if (NodeOr chain = ParseChain(); chain.ok()) return chain;
  tokens_.set_position(start);
  tokens_.Next();
  ASSIGN_OR_RETURN(Node formula, ParseFormula());
  RETURN_IF_ERROR(tokens_.Expect(")", "'and', 'or' or ')'"));
  return formula;
}

absl::StatusOr<Node> LiteralParser::ParseQuantified() {
  const Token quantifier = tokens_.Next();
  const bool is_closed = tokens_.Accept("(");
  Node node = MakeNode(quantifier.text, quantifier.place);
  do {
    if (!IsVariable(tokens_.Peek())) return tokens_.Expected("a variable");
    const Token name = tokens_.Next();
    Node binder = MakeNode("binder", name.place, {}, name.text);
    if (tokens_.Accept("=")) {
      ASSIGN_OR_RETURN(Node value, ParseSum());
      binder.operands.push_back(std::move(value));
    }
    node.operands.push_back(std::move(binder));
  } while (tokens_.Accept(","));
  // "∀ v: F" or "∀ v F".
  const Token& next = tokens_.Peek();
  const bool begins_formula = next.kind == TokenKind::kName || next.kind == TokenKind::kNumber ||
                              next.Is("(") || next.Is("-") || next.Is("not");
  if (!tokens_.Accept(":") && !begins_formula) {
    return tokens_.Expected("',' or ':' after a variable");
  }
  ASSIGN_OR_RETURN(Node formula, ParseFormula());
  node.operands.push_back(std::move(formula));
  if (is_closed) RETURN_IF_ERROR(tokens_.Expect(")", "'and', 'or' or ')'"));
  return node;
}

absl::StatusOr<Node> LiteralParser::ParseChain() {
  ASSIGN_OR_RETURN(Node first, ParseList());
  Node node = MakeNode("compare", first.place, Operands(std::move(first)));
  if (!IsComparison(tokens_.Peek())) return tokens_.Expected("a comparison");
  while (IsComparison(tokens_.Peek())) {
    StrAppend(&node.name, node.name.empty() ? "" : " ", tokens_.Next().text);
    ASSIGN_OR_RETURN(Node next, ParseList());
    node.operands.push_back(std::move(next));
  }
  return node;
}

absl::StatusOr<Node> LiteralParser::ParseList() {
  const size_t start = tokens_.position();
  Node list = MakeNode("list", tokens_.Peek().place);
  if (tokens_.Accept("(")) {
    // A list in parentheses, if a comma is in them and no operator after them.
    bool is_list = true;
    do {
      NodeOr element = ParseSum();
      is_list = element.ok();
      if (is_list) list.operands.push_back(*std::move(element));
    } while (is_list && tokens_.Accept(","));
    if (is_list && list.operands.size() > 1 && tokens_.Accept(")")) return list;
    tokens_.set_position(start);
    list.operands.clear();
  }
  do {
    ASSIGN_OR_RETURN(Node element, ParseSum());
    list.operands.push_back(std::move(element));
  } while (tokens_.Accept(","));
  return list;
}

absl::StatusOr<Node> LiteralParser::ParseSum() {
  ASSIGN_OR_RETURN(Node sum, ParseTerm());
  for (int terms = 1; tokens_.Peek().Is("+") || tokens_.Peek().Is("-"); ++terms) {
    const Token mark = tokens_.Next();
    RETURN_IF_ERROR(tokens_.CheckLength(terms));
    ASSIGN_OR_RETURN(Node term, ParseTerm());
    sum = MakeNode(mark.text, mark.place, Operands(std::move(sum), std::move(term)));
  }
  return sum;
}

absl::StatusOr<Node> LiteralParser::ParseTerm() {
  ASSIGN_OR_RETURN(Node term, ParseFactor());
  for (int factors = 1;; ++factors) {
    const Token& mark = tokens_.Peek();
    std::string kind;
    if (mark.Is("*") || mark.Is("×")) kind = "*";
    if (mark.Is("/")) kind = "/";
    if (mark.Is("%") || mark.Is("mod")) kind = "mod";
    if (kind.empty()) return term;
    const Place place = tokens_.Next().place;
    RETURN_IF_ERROR(tokens_.CheckLength(factors));
    ASSIGN_OR_RETURN(Node factor, ParseFactor());
    term = MakeNode(kind, place, Operands(std::move(term), std::move(factor)));
    if (kind == "/" && rounded_ == 0) {
      has_floor_division_ = true;
      term = MakeNode("floor", place, Operands(std::move(term)));
    }
  }
}

absl::StatusOr<Node> LiteralParser::ParseFactor() {
  RETURN_IF_ERROR(tokens_.Enter());
  NodeOr node = TryFactor();
  tokens_.Leave();
  return node;
}

absl::StatusOr<Node> LiteralParser::TryFactor() {
  const Token token = tokens_.Peek();
  if (tokens_.Accept("-")) {
    ASSIGN_OR_RETURN(Node operand, ParseFactor());
    return MakeNode("negate", token.place, Operands(std::move(operand)));
  }
  if (token.kind == TokenKind::kNumber) {
    tokens_.Next();
    Node number = MakeNode("number", token.place, {}, token.text);
    AcceptNoArguments();
    // "2i" and "2(i + j)" are products.
    const Token& next = tokens_.Peek();
    const bool begins_call = next.Is("floor") || next.Is("ceil");
    if (!IsVariable(next) && !next.Is("(") && !next.Is("⌊") && !begins_call) return number;
    ASSIGN_OR_RETURN(Node factor, ParseFactor());
    return MakeNode("*", token.place, Operands(std::move(number), std::move(factor)));
  }
  if (IsVariable(token)) {
    tokens_.Next();
    return MakeNode(AcceptNoArguments() ? "constant" : "name", token.place, {}, token.text);
  }
  for (const auto& [open, close, kind] :
       {std::array<const char*, 3>{"(", ")", ""}, {"[", "]", "floor"}, {"⌊", "⌋", "floor"}}) {
    if (!tokens_.Accept(open)) continue;
    const bool is_floor = *kind != '\0';
    ASSIGN_OR_RETURN(Node inner, ParseOperand(is_floor));
    RETURN_IF_ERROR(tokens_.Expect(close, StrCat("an operator or '", close, "'")));
    if (!is_floor) return inner;
    return MakeNode(kind, token.place, Operands(std::move(inner)));
  }
  for (const auto& [name, operands] : {std::pair<const char*, int>{"floor", 1},
                                       {"ceil", 1},
                                       {"floord", 2},
                                       {"ceild", 2},
                                       {"min", 2},
                                       {"max", 2}}) {
    if (!tokens_.Accept(name)) continue;
    RETURN_IF_ERROR(tokens_.Expect("(", "'('"));
    Node call = MakeNode(name, token.place);
    const bool is_rounded = call.kind != "min" && call.kind != "max";
    for (int i = 0; i < operands; ++i) {
      if (i > 0) RETURN_IF_ERROR(tokens_.Expect(",", "','"));
      ASSIGN_OR_RETURN(Node operand, ParseOperand(is_rounded));
      call.operands.push_back(std::move(operand));
    }
    // min and max may have more.
    while (!is_rounded && tokens_.Accept(",")) {
      ASSIGN_OR_RETURN(Node operand, ParseSum());
      Node inner = MakeNode(name, token.place, std::move(call.operands));
      call = MakeNode(name, token.place, Operands(std::move(inner), std::move(operand)));
    }
    RETURN_IF_ERROR(tokens_.Expect(")", operands == 1 ? "an operator or ')'" : "')'"));
    if (call.kind == "floord" || call.kind == "ceild") {
      Node quotient = MakeNode("/", token.place, std::move(call.operands));
      return MakeNode(call.kind == "floord" ? "floor" : "ceil", token.place, {std::move(quotient)});
    }
    return call;
  }
  return tokens_.Expected("an integer expression");
}

absl::StatusOr<Node> LiteralParser::ParseOperand(bool is_rounded) {
  rounded_ += is_rounded;
  NodeOr operand = ParseSum();
  rounded_ -= is_rounded;
  return operand;
}

}  // namespace

absl::StatusOr<Literal> ParseLiteral(TokenStream& tokens) { return LiteralParser(tokens).Parse(); }

}  // namespace polynao::poly::calculator
