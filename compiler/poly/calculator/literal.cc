#include "compiler/poly/calculator/literal.h"

#include <isl/local_space.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "compiler/poly/calculator/lexer.h"

namespace polynao::poly::calculator {
namespace {

// Builds the parts of one literal. A part is first a set { [x0, x1, ...] } with a dimension for each
// element of its tuples, in order; a quantifier adds dimensions behind them for its variables. In
// the end the set gets the tuples' structure.
class LiteralBuilder {
 public:
  LiteralBuilder(isl_ctx* context, const Literal& literal, std::string_view file)
      : context_(context), literal_(literal), file_(file) {}

  absl::StatusOr<LiteralValue> Build();

 private:
  // The variables in sight, each with its dimension; the last of a name counts.
  using Scope = std::vector<std::pair<std::string, int>>;

  absl::Status Error(Place place, std::string_view expected, std::string_view found) const {
    return ErrorAt(file_, place, expected, found);
  }
  // Most often isl's operations are spent; then the caller says so.
  absl::Status Failed(Place place) const {
    return Error(place, "a set that isl can represent", "one that it can not");
  }
  static std::optional<int> Find(const Scope& scope, const std::string& name);
  std::optional<int> FindParameter(const std::string& name) const;

  // Names that are no variables become parameters, or are an error if the literal declares its own.
  absl::Status CollectParameters(const Node& node, Scope& scope);
  absl::Status DefineElements(const Tuple& tuple, Scope& scope, int& dimensions);

  isl_space* Space(int dimensions) const;
  isl_local_space* LocalSpace(int dimensions) const {
    return isl_local_space_from_space(Space(dimensions));
  }
  isl_space* TupleSpace(const Tuple& tuple, int& dimension) const;

  // The value of a node without names; null if it has one, or if isl fails.
  IslVal Constant(const Node& node) const;
  absl::StatusOr<IslPwAff> Value(const Node& node, const Scope& scope, int dimensions);
  absl::StatusOr<IslPwAff> ComputeValue(const Node& node, const Scope& scope, int dimensions);
  IslPwAff Variable(int dimension, int dimensions) const;
  absl::StatusOr<IslSet> Truth(const Node& node, const Scope& scope, int dimensions);
  absl::StatusOr<IslSet> Quantified(const Node& node, Scope scope, int dimensions);
  absl::StatusOr<IslSet> Compare(const Node& node, const Scope& scope, int dimensions);
  absl::StatusOr<IslSet> CompareLists(const std::string& mark, const Node& a, const Node& b,
                                      const Scope& scope, int dimensions);
  absl::Status ConstrainElements(const Tuple& tuple, const Scope& scope, int dimensions,
                                 int& dimension, IslSet& set);
  absl::StatusOr<IslSet> BuildPart(const Part& part, const Scope& scope, int dimensions);

  isl_ctx* const context_;
  const Literal& literal_;
  const std::string file_;
  std::vector<std::string> parameters_;
  // The dimensions that got a variable's name, in the part at hand.
  std::vector<std::string> dimension_names_;
};

std::optional<int> LiteralBuilder::Find(const Scope& scope, const std::string& name) {
  for (size_t i = scope.size(); i-- > 0;) {
    if (scope[i].first == name) return scope[i].second;
  }
  return std::nullopt;
}

std::optional<int> LiteralBuilder::FindParameter(const std::string& name) const {
  const auto it = std::find(parameters_.begin(), parameters_.end(), name);
  if (it == parameters_.end()) return std::nullopt;
  return static_cast<int>(it - parameters_.begin());
}

absl::Status LiteralBuilder::CollectParameters(const Node& node, Scope& scope) {
  if (node.kind == "name" || node.kind == "constant") {
    const bool is_variable = Find(scope, node.name).has_value();
    if (is_variable && node.kind == "constant") {
      return Error(node.place, "a symbolic constant before '()'",
                   StrCat("the variable '", node.name, "'"));
    }
    if (is_variable || FindParameter(node.name)) return absl::OkStatus();
    if (literal_.declares_parameters) {
      return Error(node.place, "a variable of the tuple or a declared parameter",
                   StrCat("'", node.name, "'"));
    }
    parameters_.push_back(node.name);
    return absl::OkStatus();
  }
  const size_t outer = scope.size();
  for (const Node& operand : node.operands) {
    RETURN_IF_ERROR(CollectParameters(operand, scope));
    if (operand.kind == "binder") scope.emplace_back(operand.name, 0);
  }
  scope.resize(outer);
  return absl::OkStatus();
}

// Gives each element a dimension, and the names that stand alone their meaning.
absl::Status LiteralBuilder::DefineElements(const Tuple& tuple, Scope& scope, int& dimensions) {
  for (const Tuple& nested : tuple.nested) {
    RETURN_IF_ERROR(DefineElements(nested, scope, dimensions));
  }
  for (const Node& element : tuple.elements) {
    const bool is_name = element.kind == "name" || element.kind == "define";
    const bool is_new = is_name && !Find(scope, element.name) && !FindParameter(element.name);
    if (element.kind == "define" && !is_new) {
      return Error(element.place, "a new variable",
                   StrCat("'", element.name, "', which has a meaning already"));
    }
    if (is_new) scope.emplace_back(element.name, dimensions);
    dimension_names_.push_back(is_new ? element.name : "");
    ++dimensions;
  }
  return absl::OkStatus();
}

isl_space* LiteralBuilder::Space(int dimensions) const {
  isl_space* space = isl_space_set_alloc(context_, parameters_.size(), dimensions);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    space = isl_space_set_dim_name(space, isl_dim_param, i, parameters_[i].c_str());
  }
  return space;
}

// The tuple's space, without parameters. `dimension`: of its first element.
isl_space* LiteralBuilder::TupleSpace(const Tuple& tuple, int& dimension) const {
  isl_space* space;
  if (tuple.is_wrapped) {
    isl_space* domain = TupleSpace(tuple.nested[0], dimension);
    isl_space* range = TupleSpace(tuple.nested[1], dimension);
    space = isl_space_wrap(isl_space_map_from_domain_and_range(domain, range));
  } else {
    space = isl_space_set_alloc(context_, 0, tuple.elements.size());
    for (size_t i = 0; i < tuple.elements.size(); ++i, ++dimension) {
      const std::string& name = dimension_names_[dimension];
      if (name.empty()) continue;
      space = isl_space_set_dim_name(space, isl_dim_set, i, name.c_str());
    }
  }
  if (!tuple.name.empty()) {
    space = isl_space_set_tuple_name(space, isl_dim_set, tuple.name.c_str());
  }
  return space;
}

IslVal LiteralBuilder::Constant(const Node& node) const {
  if (node.kind == "number") return IslVal(isl_val_read_from_str(context_, node.name.c_str()));
  if (node.operands.empty()) return IslVal();
  std::vector<IslVal> values;
  for (const Node& operand : node.operands) {
    values.push_back(Constant(operand));
    if (!values.back()) return IslVal();
  }
  isl_val* a = values[0].take();
  if (node.kind == "negate") return IslVal(isl_val_neg(a));
  if (node.kind == "floor") return IslVal(isl_val_floor(a));
  if (node.kind == "ceil") return IslVal(isl_val_ceil(a));
  isl_val* b = values[1].take();
  if (node.kind == "+") return IslVal(isl_val_add(a, b));
  if (node.kind == "-") return IslVal(isl_val_sub(a, b));
  if (node.kind == "*") return IslVal(isl_val_mul(a, b));
  if (node.kind == "min") return IslVal(isl_val_min(a, b));
  if (node.kind == "max") return IslVal(isl_val_max(a, b));
  const IslVal divisor(b);
  IslVal dividend(a);
  if (isl_val_is_pos(divisor.get()) != isl_bool_true) return IslVal();
  if (node.kind == "/") return IslVal(isl_val_div(dividend.take(), divisor.copy()));
  // mod: a - b * floor(a / b).
  isl_val* quotient = isl_val_floor(isl_val_div(dividend.copy(), divisor.copy()));
  return IslVal(isl_val_sub(dividend.take(), isl_val_mul(divisor.copy(), quotient)));
}

IslPwAff LiteralBuilder::Variable(int dimension, int dimensions) const {
  return IslPwAff(
      isl_pw_aff_from_aff(isl_aff_var_on_domain(LocalSpace(dimensions), isl_dim_set, dimension)));
}

absl::StatusOr<IslPwAff> LiteralBuilder::Value(const Node& node, const Scope& scope,
                                               int dimensions) {
  ASSIGN_OR_RETURN(IslPwAff value, ComputeValue(node, scope, dimensions));
  if (!value) return Failed(node.place);
  return value;
}

absl::StatusOr<IslPwAff> LiteralBuilder::ComputeValue(const Node& node, const Scope& scope,
                                                      int dimensions) {
  if (IslVal constant = Constant(node)) {
    return IslPwAff(
        isl_pw_aff_from_aff(isl_aff_val_on_domain(LocalSpace(dimensions), constant.take())));
  }
  if (node.kind == "number") return Failed(node.place);
  if (node.kind == "name" || node.kind == "constant") {
    if (const auto dimension = Find(scope, node.name)) return Variable(*dimension, dimensions);
    const auto parameter = FindParameter(node.name);
    POLYNAO_CHECK(parameter.has_value()) << node.name;
    return IslPwAff(isl_pw_aff_from_aff(
        isl_aff_var_on_domain(LocalSpace(dimensions), isl_dim_param, *parameter)));
  }
  ASSIGN_OR_RETURN(IslPwAff a, Value(node.operands[0], scope, dimensions));
  if (node.kind == "negate") return IslPwAff(isl_pw_aff_neg(a.take()));
  if (node.kind == "floor") return IslPwAff(isl_pw_aff_floor(a.take()));
  if (node.kind == "ceil") return IslPwAff(isl_pw_aff_ceil(a.take()));
  if (node.kind == "/" || node.kind == "mod") {
    IslVal divisor = Constant(node.operands[1]);
    if (!divisor || isl_val_is_pos(divisor.get()) != isl_bool_true) {
      return Error(node.operands[1].place, "a positive constant as the divisor",
                   divisor ? TakeIslText(isl_val_to_str(divisor.get())) : "another expression");
    }
    return IslPwAff(node.kind == "/" ? isl_pw_aff_scale_down_val(a.take(), divisor.take())
                                     : isl_pw_aff_mod_val(a.take(), divisor.take()));
  }
  ASSIGN_OR_RETURN(IslPwAff b, Value(node.operands[1], scope, dimensions));
  if (node.kind == "+") return IslPwAff(isl_pw_aff_add(a.take(), b.take()));
  if (node.kind == "-") return IslPwAff(isl_pw_aff_sub(a.take(), b.take()));
  if (node.kind == "min") return IslPwAff(isl_pw_aff_min(a.take(), b.take()));
  if (node.kind == "max") return IslPwAff(isl_pw_aff_max(a.take(), b.take()));
  POLYNAO_CHECK(node.kind == "*") << node.kind;
  if (isl_pw_aff_is_cst(a.get()) == isl_bool_false &&
      isl_pw_aff_is_cst(b.get()) == isl_bool_false) {
    return Error(node.place, "an affine expression", "a product of two variable expressions");
  }
  return IslPwAff(isl_pw_aff_mul(a.take(), b.take()));
}

absl::StatusOr<IslSet> LiteralBuilder::Truth(const Node& node, const Scope& scope, int dimensions) {
  if (node.kind == "true") return IslSet(isl_set_universe(Space(dimensions)));
  if (node.kind == "false") return IslSet(isl_set_empty(Space(dimensions)));
  if (node.kind == "compare") return Compare(node, scope, dimensions);
  if (node.kind == "exists" || node.kind == "forall") return Quantified(node, scope, dimensions);
  ASSIGN_OR_RETURN(IslSet result, Truth(node.operands[0], scope, dimensions));
  if (node.kind == "not") return IslSet(isl_set_complement(result.take()));
  if (node.kind == "implies") result = IslSet(isl_set_complement(result.take()));
  if (node.kind == "iff") {
    // Both or neither.
    ASSIGN_OR_RETURN(IslSet other, Truth(node.operands[1], scope, dimensions));
    const IslSet both(isl_set_intersect(result.copy(), other.copy()));
    const IslSet one(isl_set_union(result.take(), other.take()));
    return IslSet(isl_set_union(both.copy(), isl_set_complement(one.copy())));
  }
  for (size_t i = 1; i < node.operands.size(); ++i) {
    ASSIGN_OR_RETURN(IslSet next, Truth(node.operands[i], scope, dimensions));
    result = IslSet(node.kind == "and" ? isl_set_intersect(result.take(), next.take())
                                       : isl_set_union(result.take(), next.take()));
  }
  if (!result) return Failed(node.place);
  return result;
}

// exists v: F projects v out of { [x, v] : F }; forall v: F is not exists v: not F.
absl::StatusOr<IslSet> LiteralBuilder::Quantified(const Node& node, Scope scope, int dimensions) {
  const int variables = static_cast<int>(node.operands.size()) - 1;
  const int inner = dimensions + variables;
  IslSet definitions(isl_set_universe(Space(inner)));
  for (int i = 0; i < variables; ++i) {
    const Node& binder = node.operands[i];
    if (!binder.operands.empty()) {
      ASSIGN_OR_RETURN(IslPwAff value, Value(binder.operands[0], scope, inner));
      definitions = IslSet(isl_set_intersect(
          definitions.take(),
          isl_pw_aff_eq_set(Variable(dimensions + i, inner).take(), value.take())));
    }
    scope.emplace_back(binder.name, dimensions + i);
  }
  ASSIGN_OR_RETURN(IslSet holds, Truth(node.operands.back(), scope, inner));
  const bool is_exists = node.kind == "exists";
  if (!is_exists) holds = IslSet(isl_set_complement(holds.take()));
  holds = IslSet(isl_set_intersect(holds.take(), definitions.take()));
  holds = IslSet(isl_set_project_out(holds.take(), isl_dim_set, dimensions, variables));
  if (!is_exists) holds = IslSet(isl_set_complement(holds.take()));
  if (!holds) return Failed(node.place);
  return holds;
}

absl::StatusOr<IslSet> LiteralBuilder::Compare(const Node& node, const Scope& scope,
                                               int dimensions) {
  IslSet result(isl_set_universe(Space(dimensions)));
  size_t at = 0;
  for (size_t i = 1; i < node.operands.size(); ++i) {
    const size_t end = std::min(node.name.find(' ', at), node.name.size());
    const std::string mark = node.name.substr(at, end - at);
    at = end + 1;
    ASSIGN_OR_RETURN(IslSet holds,
                     CompareLists(mark, node.operands[i - 1], node.operands[i], scope, dimensions));
    result = IslSet(isl_set_intersect(result.take(), holds.take()));
  }
  if (!result) return Failed(node.place);
  return result;
}

absl::StatusOr<IslSet> LiteralBuilder::CompareLists(const std::string& mark, const Node& a,
                                                    const Node& b, const Scope& scope,
                                                    int dimensions) {
  auto values = [&](const Node& list) -> absl::StatusOr<std::vector<IslPwAff>> {
    std::vector<IslPwAff> result;
    for (const Node& element : list.operands) {
      ASSIGN_OR_RETURN(IslPwAff value, Value(element, scope, dimensions));
      result.push_back(std::move(value));
    }
    return result;
  };
  auto compare = [](const std::string& by, const IslPwAff& x, const IslPwAff& y) {
    if (by == "<=") return isl_pw_aff_le_set(x.copy(), y.copy());
    if (by == "<") return isl_pw_aff_lt_set(x.copy(), y.copy());
    if (by == ">=") return isl_pw_aff_ge_set(x.copy(), y.copy());
    if (by == ">") return isl_pw_aff_gt_set(x.copy(), y.copy());
    if (by == "=") return isl_pw_aff_eq_set(x.copy(), y.copy());
    return isl_pw_aff_ne_set(x.copy(), y.copy());
  };
  ASSIGN_OR_RETURN(const std::vector<IslPwAff> x, values(a));
  ASSIGN_OR_RETURN(const std::vector<IslPwAff> y, values(b));
  if (mark.substr(0, 2) != "<<" && mark.substr(0, 2) != ">>") {
    isl_set* all = isl_set_universe(Space(dimensions));
    for (const IslPwAff& p : x) {
      for (const IslPwAff& q : y) all = isl_set_intersect(all, compare(mark, p, q));
    }
    return IslSet(all);
  }
  // (a, b) << (c, d): a < c, or a = c and b < d.
  if (x.size() != y.size()) {
    return Error(b.place, StrCat("a list of ", x.size(), ", as on the other side"),
                 StrCat("one of ", y.size()));
  }
  const std::string less = mark.substr(0, 1);
  isl_set* result = isl_set_empty(Space(dimensions));
  isl_set* equal = isl_set_universe(Space(dimensions));
  for (size_t i = 0; i < x.size(); ++i) {
    result =
        isl_set_union(result, isl_set_intersect(isl_set_copy(equal), compare(less, x[i], y[i])));
    equal = isl_set_intersect(equal, compare("=", x[i], y[i]));
  }
  if (mark.size() == 3) return IslSet(isl_set_union(result, equal));
  isl_set_free(equal);
  return IslSet(result);
}

// The elements that are values: { [.., x, ..] : x = value }.
absl::Status LiteralBuilder::ConstrainElements(const Tuple& tuple, const Scope& scope,
                                               int dimensions, int& dimension, IslSet& set) {
  for (const Tuple& nested : tuple.nested) {
    RETURN_IF_ERROR(ConstrainElements(nested, scope, dimensions, dimension, set));
  }
  for (const Node& element : tuple.elements) {
    const int own = dimension++;
    const bool is_definition = element.kind == "define";
    if (!is_definition && !dimension_names_[own].empty()) continue;
    ASSIGN_OR_RETURN(IslPwAff value,
                     Value(is_definition ? element.operands[0] : element, scope, dimensions));
    set = IslSet(isl_set_intersect(
        set.take(), isl_pw_aff_eq_set(Variable(own, dimensions).take(), value.take())));
  }
  return absl::OkStatus();
}

absl::StatusOr<IslSet> LiteralBuilder::BuildPart(const Part& part, const Scope& scope,
                                                 int dimensions) {
  IslSet set(isl_set_universe(Space(dimensions)));
  int dimension = 0;
  for (const Tuple& tuple : part.tuples) {
    RETURN_IF_ERROR(ConstrainElements(tuple, scope, dimensions, dimension, set));
  }
  for (const Node& condition : part.conditions) {
    ASSIGN_OR_RETURN(IslSet holds, Truth(condition, scope, dimensions));
    set = IslSet(isl_set_intersect(set.take(), holds.take()));
  }
  if (part.tuples.empty()) {
    set = IslSet(isl_set_params(set.take()));
  } else {
    int first = 0;
    isl_space* space = TupleSpace(part.tuples[0], first);
    if (part.tuples.size() == 2) {
      isl_space* range = TupleSpace(part.tuples[1], first);
      space = isl_space_wrap(isl_space_map_from_domain_and_range(space, range));
    }
    space = isl_space_align_params(space, Space(0));
    set = IslSet(isl_set_reset_space(set.take(), space));
  }
  set = IslSet(isl_set_coalesce(set.take()));
  if (!set) return Failed(part.place);
  return set;
}

absl::StatusOr<LiteralValue> LiteralBuilder::Build() {
  for (const Token& parameter : literal_.parameters) {
    if (FindParameter(parameter.text)) {
      return Error(parameter.place, "another parameter",
                   StrCat("'", parameter.text, "' a second time"));
    }
    parameters_.push_back(parameter.text);
  }
  const std::vector<std::string> declared = parameters_;
  // A name can be a variable in one part and a parameter in another; the parameters of all parts come
  // first.
  std::vector<Scope> scopes;
  std::vector<int> dimensions;
  std::vector<std::vector<std::string>> names;
  std::vector<std::string> all = declared;
  for (const Part& part : literal_.parts) {
    parameters_ = declared;
    dimension_names_.clear();
    Scope scope;
    int count = 0;
    for (const Tuple& tuple : part.tuples) RETURN_IF_ERROR(DefineElements(tuple, scope, count));
    std::vector<const Tuple*> stack;
    for (const Tuple& tuple : part.tuples) stack.push_back(&tuple);
    std::reverse(stack.begin(), stack.end());
    while (!stack.empty()) {
      const Tuple& tuple = *stack.back();
      stack.pop_back();
      for (size_t i = tuple.nested.size(); i-- > 0;) stack.push_back(&tuple.nested[i]);
      for (const Node& element : tuple.elements) {
        RETURN_IF_ERROR(CollectParameters(element, scope));
      }
    }
    for (const Node& condition : part.conditions) {
      RETURN_IF_ERROR(CollectParameters(condition, scope));
    }
    for (const std::string& parameter : parameters_) {
      if (std::find(all.begin(), all.end(), parameter) == all.end()) all.push_back(parameter);
    }
    scopes.push_back(std::move(scope));
    dimensions.push_back(count);
    names.push_back(dimension_names_);
  }
  parameters_ = all;
  LiteralValue value;
  const bool is_map = !literal_.parts.empty() && literal_.parts[0].tuples.size() == 2;
  if (is_map) {
    value.map = IslUnionMap(isl_union_map_empty(isl_space_params(Space(0))));
  } else {
    value.set = IslUnionSet(isl_union_set_empty(isl_space_params(Space(0))));
  }
  for (size_t i = 0; i < literal_.parts.size(); ++i) {
    const Part& part = literal_.parts[i];
    if ((part.tuples.size() == 2) != is_map ||
        part.tuples.empty() != literal_.parts[0].tuples.empty()) {
      auto kind = [](const Part& p) {
        return p.tuples.empty()       ? "a condition on parameters"
               : p.tuples.size() == 1 ? "a set"
                                      : "a map";
      };
      return Error(part.place, StrCat(kind(literal_.parts[0]), ", as the first part is"),
                   kind(part));
    }
    dimension_names_ = names[i];
    ASSIGN_OR_RETURN(IslSet set, BuildPart(part, scopes[i], dimensions[i]));
    if (is_map) {
      value.map = IslUnionMap(isl_union_map_union(
          value.map.take(), isl_union_map_from_map(isl_set_unwrap(set.take()))));
    } else {
      value.set =
          IslUnionSet(isl_union_set_union(value.set.take(), isl_union_set_from_set(set.take())));
    }
  }
  if (!value.set && !value.map) return Failed(literal_.place);
  return value;
}

}  // namespace

absl::StatusOr<LiteralValue> BuildLiteral(isl_ctx* context, const Literal& literal,
                                          std::string_view file) {
  return LiteralBuilder(context, literal, file).Build();
}

}  // namespace polynao::poly::calculator
