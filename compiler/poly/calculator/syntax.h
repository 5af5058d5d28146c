// Syntax trees of the calculator's language, and the parser.
#ifndef COMPILER_POLY_CALCULATOR_SYNTAX_H_
#define COMPILER_POLY_CALCULATOR_SYNTAX_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/poly/calculator/lexer.h"

namespace polynao::poly::calculator {

// What a node of a literal's conditions and elements is.
enum class NodeKind {
  // Integers. Names have `name`, numbers their digits.
  kNumber,
  kName,
  kConstant,  // a parameter for sure: "n()"
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,  // exact
  kMod,
  kMin,
  kMax,
  kNegate,
  kFloor,
  kCeil,
  kDefine,  // name = operand: an element of a tuple, a quantified variable
  // Conditions.
  kCompare,  // lists
  kList,     // name: the comparison with the list before
  kNot,
  kAnd,
  kOr,
  kImplies,
  kIff,
  kTrue,
  kFalse,
  kExists,  // variables (kName or kDefine), the formula last
  kForall,
};

struct Node {
  NodeKind kind;
  std::string name;
  std::vector<Node> operands;
  Place place;
};

// S[i, j], (i, j), N[S[i] -> T[j]].
struct Tuple {
  std::string name;
  bool is_wrapped = false;
  std::vector<Tuple> nested;  // domain and range of a wrapped one
  std::vector<Node> elements;
  Place place;
};

// One of the parts of a literal, which ';' separates.
struct Part {
  std::vector<Tuple> tuples;     // none: parameters only; one: a set; two: a map
  std::vector<Node> conditions;  // at most one
  Place place;
};

struct Literal {
  bool declares_parameters = false;
  std::vector<Token> parameters;
  std::vector<Part> parts;
  bool is_count = false;            // "{# i : ..}": the cardinality
  bool has_floor_division = false;  // a '/' outside of floor() and ceil()
  std::vector<Literal> pieces;      // instead of parts: "[{ .. }, { .. }]", a tuple of functions
  Place place;
};

// An expression over sets and maps.
struct Expression {
  enum class Kind {
    kLiteral,
    kNumber,    // text
    kVariable,  // text
    kCall,      // text(operands), with names and bindings
    kBinary,    // text: the operator; ",": two functions as a tuple
    kNegate,
    kNot,
    kPower,  // text: "+" or a number
    kApply,  // operands[0](operands[1])
    kBool,   // text: "true" or "false"
    kEmpty,  // ∅
  };
  Kind kind;
  std::string text;
  std::vector<Expression> operands;
  // project(A, i, 2): dimensions by name or number; at(A, n = 10): values of parameters.
  struct Argument {
    Token name;
    std::string value;  // digits, with a sign; of a binding
  };
  std::vector<Argument> arguments;
  std::shared_ptr<const Literal> literal;
  Place place;
};

struct Statement {
  std::string variable;  // of an assignment; otherwise the value is printed
  Expression expression;
  Place place;
};

// Says what follows the first argument of a function.
enum class Arguments { kExpressions, kDimensions, kBindings };
// The function's arguments, or null: no such function.
const Arguments* FindFunction(std::string_view name);

// Parses a script: statements separated by ';'. Errors name `file`, line and column.
absl::StatusOr<std::vector<Statement>> ParseScript(std::string_view text, std::string_view file);

}  // namespace polynao::poly::calculator

#endif  // COMPILER_POLY_CALCULATOR_SYNTAX_H_
