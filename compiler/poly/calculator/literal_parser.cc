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
#include <tuple>
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

Node MakeNode(NodeKind kind, Place place, std::vector<Node> operands = {}, std::string name = "") {
  return Node{kind, std::move(name), std::move(operands), place};
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
  NodeOr ParseVariable();
  NodeOr ParseFormula(size_t level = 0);
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
    tuple.elements.push_back(MakeNode(NodeKind::kName, name.place, {}, name.text));
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
  return IsVariable(tokens_.Peek()) && tokens_.Peek(1).Is("=") ? ParseVariable() : ParseSum();
}

absl::StatusOr<Node> LiteralParser::ParseVariable() {
  const Token name = tokens_.Next();
  if (!tokens_.Accept("=")) return MakeNode(NodeKind::kName, name.place, {}, name.text);
  ASSIGN_OR_RETURN(Node value, ParseSum());
  return MakeNode(NodeKind::kDefine, name.place, Operands(std::move(value)), name.text);
}

// From what binds least. One after the other: to the left, "implies" to the right.
absl::StatusOr<Node> LiteralParser::ParseFormula(size_t level) {
  constexpr std::array<std::pair<const char*, NodeKind>, 4> kOperators = {
      {{"iff", NodeKind::kIff},
       {"implies", NodeKind::kImplies},
       {"or", NodeKind::kOr},
       {"and", NodeKind::kAnd}}};
  if (level == kOperators.size()) return ParseUnary();
  const auto [mark, kind] = kOperators[level];
  ASSIGN_OR_RETURN(Node a, ParseFormula(level + 1));
  for (int operands = 1; tokens_.Peek().Is(mark); ++operands) {
    const Place place = tokens_.Next().place;
    // What isl prints may have thousands of these.
    const bool is_list = kind == NodeKind::kAnd || kind == NodeKind::kOr;
    if (!is_list) RETURN_IF_ERROR(tokens_.CheckLength(operands));
    const bool is_right = kind == NodeKind::kImplies;
    if (is_right) RETURN_IF_ERROR(tokens_.Enter());
    NodeOr b = ParseFormula(is_right ? level : level + 1);
    if (is_right) tokens_.Leave();
    RETURN_IF_ERROR(b.status());
    if (is_list && operands > 1) {
      a.operands.push_back(*std::move(b));
    } else {
      a = MakeNode(kind, place, Operands(std::move(a), *std::move(b)));
    }
  }
  return a;
}

absl::StatusOr<Node> LiteralParser::ParseUnary() {
  RETURN_IF_ERROR(tokens_.Enter());
  NodeOr node = TryUnary();
  tokens_.Leave();
  return node;
}

absl::StatusOr<Node> LiteralParser::TryUnary() {
  const Place place = tokens_.Peek().place;
  if (tokens_.Accept("true")) return MakeNode(NodeKind::kTrue, place);
  if (tokens_.Accept("false")) return MakeNode(NodeKind::kFalse, place);
  if (tokens_.Accept("not")) {
    ASSIGN_OR_RETURN(Node operand, ParseUnary());
    return MakeNode(NodeKind::kNot, place, Operands(std::move(operand)));
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
  Node node =
      MakeNode(quantifier.Is("exists") ? NodeKind::kExists : NodeKind::kForall, quantifier.place);
  do {
    if (!IsVariable(tokens_.Peek())) return tokens_.Expected("a variable");
    ASSIGN_OR_RETURN(Node variable, ParseVariable());
    node.operands.push_back(std::move(variable));
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
  Node node = MakeNode(NodeKind::kCompare, first.place, Operands(std::move(first)));
  if (!IsComparison(tokens_.Peek())) return tokens_.Expected("a comparison");
  while (IsComparison(tokens_.Peek())) {
    std::string mark = tokens_.Next().text;
    ASSIGN_OR_RETURN(Node next, ParseList());
    next.name = std::move(mark);
    node.operands.push_back(std::move(next));
  }
  return node;
}

absl::StatusOr<Node> LiteralParser::ParseList() {
  const size_t start = tokens_.position();
  Node list = MakeNode(NodeKind::kList, tokens_.Peek().place);
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
    sum = MakeNode(mark.Is("+") ? NodeKind::kAdd : NodeKind::kSubtract, mark.place,
                   Operands(std::move(sum), std::move(term)));
  }
  return sum;
}

absl::StatusOr<Node> LiteralParser::ParseTerm() {
  ASSIGN_OR_RETURN(Node term, ParseFactor());
  for (int factors = 1;; ++factors) {
    const Token& mark = tokens_.Peek();
    NodeKind kind = NodeKind::kMultiply;
    if (mark.Is("/")) {
      kind = NodeKind::kDivide;
    } else if (mark.Is("%") || mark.Is("mod")) {
      kind = NodeKind::kMod;
    } else if (!mark.Is("*") && !mark.Is("×")) {
      return term;
    }
    const Place place = tokens_.Next().place;
    RETURN_IF_ERROR(tokens_.CheckLength(factors));
    ASSIGN_OR_RETURN(Node factor, ParseFactor());
    term = MakeNode(kind, place, Operands(std::move(term), std::move(factor)));
    if (kind == NodeKind::kDivide && rounded_ == 0) {
      has_floor_division_ = true;
      term = MakeNode(NodeKind::kFloor, place, Operands(std::move(term)));
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
    return MakeNode(NodeKind::kNegate, token.place, Operands(std::move(operand)));
  }
  if (token.kind == TokenKind::kNumber) {
    tokens_.Next();
    Node number = MakeNode(NodeKind::kNumber, token.place, {}, token.text);
    AcceptNoArguments();
    // "2i" and "2(i + j)" are products.
    const Token& next = tokens_.Peek();
    const bool begins_call = next.Is("floor") || next.Is("ceil");
    if (!IsVariable(next) && !next.Is("(") && !next.Is("⌊") && !begins_call) return number;
    ASSIGN_OR_RETURN(Node factor, ParseFactor());
    return MakeNode(NodeKind::kMultiply, token.place,
                    Operands(std::move(number), std::move(factor)));
  }
  if (IsVariable(token)) {
    tokens_.Next();
    return MakeNode(AcceptNoArguments() ? NodeKind::kConstant : NodeKind::kName, token.place, {},
                    token.text);
  }
  for (const auto& [open, close] :
       {std::pair<const char*, const char*>{"(", ")"}, {"[", "]"}, {"⌊", "⌋"}}) {
    if (!tokens_.Accept(open)) continue;
    const bool is_floor = !token.Is("(");
    ASSIGN_OR_RETURN(Node inner, ParseOperand(is_floor));
    RETURN_IF_ERROR(tokens_.Expect(close, StrCat("an operator or '", close, "'")));
    if (!is_floor) return inner;
    return MakeNode(NodeKind::kFloor, token.place, Operands(std::move(inner)));
  }
  for (const auto& [name, operands, kind] :
       {std::tuple<const char*, int, NodeKind>{"floor", 1, NodeKind::kFloor},
        {"ceil", 1, NodeKind::kCeil},
        {"floord", 2, NodeKind::kFloor},
        {"ceild", 2, NodeKind::kCeil},
        {"min", 2, NodeKind::kMin},
        {"max", 2, NodeKind::kMax}}) {
    if (!tokens_.Accept(name)) continue;
    RETURN_IF_ERROR(tokens_.Expect("(", "'('"));
    const bool is_rounded = kind == NodeKind::kFloor || kind == NodeKind::kCeil;
    ASSIGN_OR_RETURN(Node call, ParseOperand(is_rounded));
    // min and max may have more than two.
    for (int i = 1; i < operands || (!is_rounded && tokens_.Peek().Is(",")); ++i) {
      RETURN_IF_ERROR(tokens_.Expect(",", "','"));
      RETURN_IF_ERROR(tokens_.CheckLength(i));
      ASSIGN_OR_RETURN(Node operand, ParseOperand(is_rounded));
      call = MakeNode(is_rounded ? NodeKind::kDivide : kind, token.place,
                      Operands(std::move(call), std::move(operand)));
    }
    RETURN_IF_ERROR(tokens_.Expect(")", operands == 1 ? "an operator or ')'" : "')'"));
    return is_rounded ? MakeNode(kind, token.place, Operands(std::move(call))) : call;
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
