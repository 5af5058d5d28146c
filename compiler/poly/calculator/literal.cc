// Literals: written in isl's notation, and read by isl.

#include <gmpxx.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "compiler/poly/calculator/value.h"

namespace polynao::poly::calculator {
namespace {

// The value of a node without names; none if it has a name, or a divisor that is not positive.
std::optional<mpq_class> Constant(const Node& node) {
  if (node.kind == NodeKind::kNumber) return mpq_class(node.name, 10);
  if (node.operands.empty()) return std::nullopt;
  std::vector<mpq_class> values;
  for (const Node& operand : node.operands) {
    const std::optional<mpq_class> value = Constant(operand);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  auto floor = [](const mpq_class& value) -> mpq_class {
    mpz_class result;
    mpz_fdiv_q(result.get_mpz_t(), value.get_num_mpz_t(), value.get_den_mpz_t());
    return result;
  };
  const mpq_class &a = values[0], &b = values.back();
  const NodeKind kind = node.kind;
  if (kind == NodeKind::kAdd) return a + b;
  if (kind == NodeKind::kSubtract) return a - b;
  if (kind == NodeKind::kMultiply) return a * b;
  if (kind == NodeKind::kMin) return std::min(a, b);
  if (kind == NodeKind::kMax) return std::max(a, b);
  if (kind == NodeKind::kNegate) return -a;
  if (kind == NodeKind::kFloor) return floor(a);
  if (kind == NodeKind::kCeil) return -floor(-a);
  if (b <= 0) return std::nullopt;
  if (kind == NodeKind::kDivide) return a / b;
  if (kind == NodeKind::kMod) return a - b * floor(a / b);
  return std::nullopt;
}

// One part of a literal as a set in isl's notation (of a map, the wrapped one), which wants parameters declared,
// variables defined before their use and named once, constants as divisors, and knows neither 'forall' nor 'iff'.
//
//   { S(i + 1, i) : ∃i: i > n }   ->   { Sym = [n] S[i0, i] : i0 = (i + (1)) and (exists (i' : (i' > n))) }
class PartPrinter {
 public:
  PartPrinter(const Literal& literal, std::string_view file) : literal_(literal), file_(file) {
    for (const Token& parameter : literal.parameters) AddParameter(parameter.text);
  }

  absl::StatusOr<std::string> Print(const Part& part);

  // A variable or parameter in sight; the last of a name counts.
  struct Variable {
    std::string name;
    std::string text;  // in isl's notation
    bool is_parameter;
    bool is_defined = true;
  };
  const std::vector<Variable>& parameters() const { return parameters_; }

 private:
  absl::Status Error(Place place, std::string_view expected, std::string_view found) const {
    return ErrorAt(file_, place, expected, found);
  }
  Variable* Find(std::string_view name);
  // A name that isl reads and that nothing else has. isl drops primes from the names of dimensions.
  std::string Unique(const std::string& name, char mark);
  std::string AddParameter(const std::string& name);

  absl::Status DefineElements(const Tuple& tuple);
  absl::StatusOr<std::string> PrintTuple(const Tuple& tuple, char letter, int& position);
  absl::StatusOr<std::string> PrintName(const Node& node);
  absl::StatusOr<std::string> PrintProduct(const Node& node);
  absl::StatusOr<std::string> PrintQuantified(const Node& node);
  absl::StatusOr<std::string> PrintCompare(const Node& node);
  absl::StatusOr<std::string> PrintAll(std::string_view before, const std::vector<Node>& nodes,
                                       std::string_view between = "");
  // A name, a number, or text in parentheses.
  absl::StatusOr<std::string> Print(const Node& node);

  const Literal& literal_;
  std::string_view file_;
  std::vector<Variable> parameters_;
  std::vector<Variable> scope_;
  std::set<std::string> taken_;
  bool is_ahead_ = false;  // a variable was used that is not defined yet
  std::string conditions_;
};

PartPrinter::Variable* PartPrinter::Find(std::string_view name) {
  for (std::vector<Variable>* variables : {&scope_, &parameters_}) {
    for (size_t i = variables->size(); i-- > 0;) {
      if ((*variables)[i].name == name) return &(*variables)[i];
    }
  }
  return nullptr;
}

std::string PartPrinter::Unique(const std::string& name, char mark) {
  std::string text = name;
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  for (const char* word : {"infty", "infinity", "nan", "rat"}) {
    if (lower == word) text += '_';
  }
  if (IsKeyword(lower)) text += '_';
  while (!taken_.insert(text).second) text += mark;
  return text;
}

std::string PartPrinter::AddParameter(const std::string& name) {
  std::string text = name;
  std::replace(text.begin(), text.end(), '\'', '_');
  parameters_.push_back({name, Unique(text, '_'), true});
  return parameters_.back().text;
}

// Names that stand alone in a tuple are new variables, for what stands in front of them, too.
absl::Status PartPrinter::DefineElements(const Tuple& tuple) {
  for (const Tuple& nested : tuple.nested) RETURN_IF_ERROR(DefineElements(nested));
  for (const Node& element : tuple.elements) {
    const bool is_definition = element.kind == NodeKind::kDefine;
    if (element.kind != NodeKind::kName && !is_definition) continue;
    const bool is_known = Find(element.name) != nullptr;
    if (is_definition && is_known) {
      return Error(element.place, "a new variable",
                   StrCat("'", element.name, "', which has a meaning already"));
    }
    if (!is_known) scope_.push_back({element.name, Unique(element.name, '\''), false, false});
  }
  return absl::OkStatus();
}

// `letter` and `position`: isl's name for an element without one is "i3" or "o3".
absl::StatusOr<std::string> PartPrinter::PrintTuple(const Tuple& tuple, char letter,
                                                    int& position) {
  std::string text = StrCat(tuple.name, "[");
  for (const Tuple& nested : tuple.nested) {
    ASSIGN_OR_RETURN(const std::string inner, PrintTuple(nested, letter, position));
    StrAppend(&text, &nested == &tuple.nested[0] ? "" : " -> ", inner);
  }
  for (const Node& element : tuple.elements) {
    const bool is_definition = element.kind == NodeKind::kDefine;
    Variable* variable =
        is_definition || element.kind == NodeKind::kName ? Find(element.name) : nullptr;
    const bool is_new = variable != nullptr && !variable->is_defined;
    StrAppend(&text, &element == &tuple.elements[0] ? "" : ", ");
    if (is_new) StrAppend(&text, variable->text);
    if (!is_new || is_definition) {
      is_ahead_ = false;
      ASSIGN_OR_RETURN(const std::string value,
                       Print(is_definition ? element.operands[0] : element));
      if (is_ahead_) {
        const std::string own =
            is_new ? variable->text : Unique(StrCat(std::string(1, letter), position), '\'');
        if (!is_new) StrAppend(&text, own);
        StrAppend(&conditions_, conditions_.empty() ? "" : " and ", own, " = ", value);
      } else {
        StrAppend(&text, is_new ? " = " : "", value);
      }
    }
    if (is_new) variable->is_defined = true;
    ++position;
  }
  return StrCat(text, "]");
}

absl::StatusOr<std::string> PartPrinter::PrintName(const Node& node) {
  const Variable* variable = Find(node.name);
  if (variable == nullptr && literal_.declares_parameters) {
    return Error(node.place, "a variable of the tuple or a declared parameter",
                 StrCat("'", node.name, "'"));
  }
  if (variable == nullptr) return AddParameter(node.name);
  if (node.kind == NodeKind::kConstant && !variable->is_parameter) {
    return Error(node.place, "a symbolic constant before '()'",
                 StrCat("the variable '", node.name, "'"));
  }
  is_ahead_ |= !variable->is_defined;
  return variable->text;
}

// Products and quotients, one side of which is a number.
absl::StatusOr<std::string> PartPrinter::PrintProduct(const Node& node) {
  std::optional<mpq_class> factor = Constant(node.operands[1]);
  const Node* other = &node.operands[0];
  if (node.kind == NodeKind::kMultiply) {
    if (!factor) {
      factor = Constant(*other);
      other = &node.operands[1];
    }
    if (!factor) {
      return Error(node.place, "an affine expression", "a product of two variable expressions");
    }
  } else if (!factor || *factor <= 0 || (node.kind == NodeKind::kMod && factor->get_den() != 1)) {
    return Error(node.operands[1].place, "a positive constant as the divisor",
                 factor ? factor->get_str() : "another expression");
  }
  ASSIGN_OR_RETURN(const std::string text, Print(*other));
  if (node.kind == NodeKind::kMod) return StrCat("(", text, " mod ", factor->get_str(), ")");
  if (node.kind == NodeKind::kDivide) factor = 1 / *factor;
  const std::string product = StrCat("(", factor->get_num().get_str(), " * ", text, ")");
  if (factor->get_den() == 1) return product;
  return StrCat("(", product, "/", factor->get_den().get_str(), ")");
}

// "forall v: F" is "not exists v: not F".
absl::StatusOr<std::string> PartPrinter::PrintQuantified(const Node& node) {
  const size_t outer = scope_.size();
  std::string variables;
  for (size_t i = 0; i + 1 < node.operands.size(); ++i) {
    const Node& variable = node.operands[i];
    // With a prime at least: what becomes a parameter behind this has none.
    const std::string text = Unique(StrCat(variable.name, "'"), '\'');
    StrAppend(&variables, i == 0 ? "" : ", ", text);
    if (variable.kind == NodeKind::kDefine) {
      ASSIGN_OR_RETURN(const std::string value, Print(variable.operands[0]));
      StrAppend(&variables, " = ", value);
    }
    scope_.push_back({variable.name, text, false});
  }
  ASSIGN_OR_RETURN(const std::string formula, Print(node.operands.back()));
  scope_.resize(outer);
  return node.kind == NodeKind::kExists
             ? StrCat("(exists (", variables, " : ", formula, "))")
             : StrCat("(not (exists (", variables, " : not ", formula, ")))");
}

absl::StatusOr<std::string> PartPrinter::PrintCompare(const Node& node) {
  std::string text = "(";
  const Node* before = nullptr;
  for (const Node& list : node.operands) {
    const bool is_lexicographic = list.name.starts_with("<<") || list.name.starts_with(">>");
    if (is_lexicographic && list.operands.size() != before->operands.size()) {
      return Error(list.place,
                   StrCat("a list of ", before->operands.size(), ", as on the other side"),
                   StrCat("one of ", list.operands.size()));
    }
    StrAppend(&text, " ", list.name, " ");
    for (const Node& element : list.operands) {
      ASSIGN_OR_RETURN(const std::string value, Print(element));
      StrAppend(&text, &element == &list.operands[0] ? "" : ", ", value);
    }
    before = &list;
  }
  return text + ")";
}

absl::StatusOr<std::string> PartPrinter::PrintAll(std::string_view before,
                                                  const std::vector<Node>& nodes,
                                                  std::string_view between) {
  std::string text(before);
  for (const Node& node : nodes) {
    ASSIGN_OR_RETURN(const std::string next, Print(node));
    StrAppend(&text, &node == &nodes[0] ? "" : between, next);
  }
  return text + ")";
}

absl::StatusOr<std::string> PartPrinter::Print(const Node& node) {
  if (const std::optional<mpq_class> constant = Constant(node)) {
    const std::string numerator = StrCat("(", constant->get_num().get_str(), ")");
    if (constant->get_den() == 1) return numerator;
    return StrCat("(", numerator, "/", constant->get_den().get_str(), ")");
  }
  switch (node.kind) {
    case NodeKind::kName:
    case NodeKind::kConstant:
      return PrintName(node);
    case NodeKind::kMultiply:
    case NodeKind::kDivide:
    case NodeKind::kMod:
      return PrintProduct(node);
    case NodeKind::kExists:
    case NodeKind::kForall:
      return PrintQuantified(node);
    case NodeKind::kCompare:
      return PrintCompare(node);
    case NodeKind::kAdd:
      return PrintAll("(", node.operands, " + ");
    case NodeKind::kSubtract:
      return PrintAll("(", node.operands, " - ");
    case NodeKind::kNegate:
      return PrintAll("(-", node.operands);
    case NodeKind::kMin:
      return PrintAll("min(", node.operands, ", ");
    case NodeKind::kMax:
      return PrintAll("max(", node.operands, ", ");
    case NodeKind::kFloor:
      return PrintAll("floor(", node.operands);
    case NodeKind::kCeil:
      return PrintAll("ceil(", node.operands);
    case NodeKind::kTrue:
      return "(true)";
    case NodeKind::kFalse:
      return "(false)";
    case NodeKind::kNot:
      return PrintAll("(not ", node.operands);
    case NodeKind::kAnd:
      return PrintAll("(", node.operands, " and ");
    case NodeKind::kOr:
      return PrintAll("(", node.operands, " or ");
    case NodeKind::kImplies:
      return PrintAll("(", node.operands, " implies ");
    case NodeKind::kIff: {
      // Both or neither. Each side is written twice, so nested ones grow fast.
      ASSIGN_OR_RETURN(const std::string both, PrintAll("((", node.operands, " and "));
      ASSIGN_OR_RETURN(const std::string one, PrintAll("(", node.operands, " or "));
      constexpr size_t kMaxBytes = 100'000;
      if (both.size() <= kMaxBytes) return StrCat(both, " or not ", one, ")");
      return Error(node.place, "shorter formulas beside 'iff'", "longer ones");
    }
    case NodeKind::kNumber:
    case NodeKind::kDefine:
    case NodeKind::kList:
      break;
  }
  POLYNAO_UNREACHABLE("kind of node");
}

absl::StatusOr<std::string> PartPrinter::Print(const Part& part) {
  for (const Tuple& tuple : part.tuples) RETURN_IF_ERROR(DefineElements(tuple));
  std::string tuples;
  for (const Tuple& tuple : part.tuples) {
    const bool is_first = &tuple == &part.tuples[0];
    int position = 0;
    ASSIGN_OR_RETURN(const std::string text, PrintTuple(tuple, is_first ? 'i' : 'o', position));
    StrAppend(&tuples, is_first ? "" : " -> ", text);
  }
  for (const Node& condition : part.conditions) {
    ASSIGN_OR_RETURN(const std::string text, Print(condition));
    StrAppend(&conditions_, conditions_.empty() ? "" : " and ", text);
  }
  std::string parameters;
  for (const Variable& parameter : parameters_) {
    StrAppend(&parameters, parameters.empty() ? "" : ", ", parameter.text);
  }
  if (part.tuples.size() == 2) tuples = StrCat("[", tuples, "]");
  // "Sym" declares parameters, and a tuple may have that name, too.
  return StrCat("{ Sym = [", parameters, "] ", tuples, " : ",
                conditions_.empty() ? "true" : conditions_, " }");
}

}  // namespace

absl::StatusOr<Value> BuildLiteral(const Site& site, const Literal& literal) {
  std::set<std::string> declared;
  for (const Token& parameter : literal.parameters) {
    if (declared.insert(parameter.text).second) continue;
    return ErrorAt(site.file, parameter.place, "another parameter",
                   StrCat("'", parameter.text, "' a second time"));
  }
  constexpr const char* kKinds[] = {"a condition on parameters", "a set", "a map"};
  // A name can be a variable in one part and a parameter in another; the parameters of all parts come first.
  isl::space space = isl::manage(isl_space_params_alloc(site.isl.get(), 0));
  std::vector<isl::set> sets;
  for (const Part& part : literal.parts) {
    PartPrinter printer(literal, site.file);
    ASSIGN_OR_RETURN(const std::string text, printer.Print(part));
    if (part.tuples.size() != literal.parts[0].tuples.size()) {
      return ErrorAt(site.file, part.place,
                     StrCat(kKinds[literal.parts[0].tuples.size()], ", as the first part is"),
                     kKinds[part.tuples.size()]);
    }
    // isl's parser loses memory where the operations allowed end within it. Here it may do about a second's.
    constexpr unsigned long kOperations = 1'000'000;
    const unsigned long allowed = isl_ctx_get_max_operations(site.isl.get());
    isl_ctx_set_max_operations(site.isl.get(), allowed == 0 ? 0 : std::max(allowed, kOperations));
    isl_set* set = isl_set_read_from_str(site.isl.get(), text.c_str());
    isl_ctx_set_max_operations(site.isl.get(), allowed);
    for (size_t i = 0; i < printer.parameters().size(); ++i) {
      set = isl_set_set_dim_name(set, isl_dim_param, i, printer.parameters()[i].name.c_str());
    }
    sets.push_back(isl::manage(isl_set_coalesce(set)));
    isl_space* own = isl_space_params(isl_set_get_space(sets.back().get()));
    space = isl::manage(isl_space_align_params(own, space.release()));
  }
  isl::union_set all = isl::manage(isl_union_set_empty(space.copy()));
  for (isl::set& set : sets) {
    all = all.unite(isl::manage(isl_set_align_params(set.release(), space.copy())));
  }
  const bool is_map = !sets.empty() && literal.parts[0].tuples.size() == 2;
  Value value{all};
  if (is_map) value.data = all.unwrap();
  value.has_floor_division = literal.has_floor_division;
  return value;
}

}  // namespace polynao::poly::calculator
