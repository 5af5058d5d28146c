#include "compiler/arith/rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"

namespace polynao::arith {
namespace {

using ir::Expr;
using ir::ExprKind;

constexpr Rule kRules[] = {
    // ---- conditions ----
    {Domain::kBool, "true && p", "p"},
    {Domain::kBool, "p && true", "p"},
    {Domain::kBool, "false && p", "false"},
    {Domain::kBool, "p && false", "false", "", "p"},
    {Domain::kBool, "true || p", "true"},
    {Domain::kBool, "p || true", "true", "", "p"},
    {Domain::kBool, "false || p", "p"},
    {Domain::kBool, "p || false", "p"},
    {Domain::kBool, "p && p", "p"},
    {Domain::kBool, "p || p", "p"},
    {Domain::kBool, "p && !p", "false", "", "p"},
    {Domain::kBool, "!p && p", "false", "", "p"},
    {Domain::kBool, "p || !p", "true", "", "p"},
    {Domain::kBool, "!p || p", "true", "", "p"},
    {Domain::kBool, "p && (p || q)", "p"},
    {Domain::kBool, "(p || q) && p", "p", "", "q"},
    {Domain::kBool, "p || (p && q)", "p"},
    {Domain::kBool, "(p && q) || p", "p", "", "q"},
    {Domain::kBool, "(p && q) && p", "p && q"},
    {Domain::kBool, "(p || q) || p", "p || q"},
    {Domain::kBool, "p && (p && q)", "p && q"},
    {Domain::kBool, "p || (p || q)", "p || q"},
    {Domain::kBool, "(p || q) && (p || r)", "p || (q && r)"},
    {Domain::kBool, "(p && q) || (p && r)", "p && (q || r)"},
    {Domain::kBool, "!(!p)", "p"},
    {Domain::kBool, "!true", "false"},
    {Domain::kBool, "!false", "true"},
    {Domain::kBool, "!(p && q)", "!p || !q"},
    {Domain::kBool, "!(p || q)", "!p && !q"},
    {Domain::kBool, "p == true", "p"},
    {Domain::kBool, "p == false", "!p"},
    {Domain::kBool, "p != true", "!p"},
    {Domain::kBool, "p != false", "p"},
    {Domain::kBool, "select(p, true, false)", "p"},
    {Domain::kBool, "select(p, false, true)", "!p"},
    {Domain::kBool, "select(p, q, false)", "p && q"},
    {Domain::kBool, "select(p, true, q)", "p || q"},
    // An order of floats has no complement (NaN), equality has.
    {Domain::kInt, "!(x < y)", "y <= x"},
    {Domain::kInt, "!(x <= y)", "y < x"},
    {Domain::kAny, "!(x == y)", "x != y"},
    {Domain::kAny, "!(x != y)", "x == y"},

    // ---- select ----
    {Domain::kAny, "select(true, x, y)", "x"},
    {Domain::kAny, "select(false, x, y)", "y"},
    {Domain::kAny, "select(p, x, x)", "x", "", "p"},
    {Domain::kAny, "select(!p, x, y)", "select(p, y, x)"},
    {Domain::kAny, "select(p, select(p, x, y), z)", "select(p, x, z)"},
    {Domain::kAny, "select(p, x, select(p, y, z))", "select(p, x, z)"},
    {Domain::kAny, "select(p, select(q, x, y), y)", "select(p && q, x, y)"},
    {Domain::kAny, "select(p, x, select(q, x, y))", "select(p || q, x, y)"},
    // min and max are defined as these selects; they say more to later passes.
    {Domain::kAny, "select(y < x, y, x)", "min(x, y)"},
    {Domain::kAny, "select(x < y, y, x)", "max(x, y)"},
    {Domain::kInt, "select(x <= y, x, y)", "min(x, y)"},
    {Domain::kInt, "select(y <= x, x, y)", "max(x, y)"},

    // ---- min, max ----
    {Domain::kAny, "min(x, x)", "x"},
    {Domain::kAny, "max(x, x)", "x"},
    {Domain::kAny, "min(min(x, y), y)", "min(x, y)"},
    {Domain::kAny, "max(max(x, y), y)", "max(x, y)"},
    {Domain::kAny, "min(min(x, y), x)", "min(x, y)"},
    {Domain::kAny, "max(max(x, y), x)", "max(x, y)"},
    {Domain::kInt, "min(x, max(x, y))", "x", "", "y"},
    {Domain::kInt, "max(x, min(x, y))", "x", "", "y"},
    {Domain::kInt, "max(min(x, c0), c1)", "c1", "c0 <= c1", "x"},
    {Domain::kInt, "min(max(x, c0), c1)", "c1", "c1 <= c0", "x"},
    {Domain::kInt, "min(min(x, c0), c1)", "min(x, c0)", "c0 <= c1"},
    {Domain::kInt, "min(min(x, c0), c1)", "min(x, c1)", "c1 < c0"},
    {Domain::kInt, "max(max(x, c0), c1)", "max(x, c0)", "c1 <= c0"},
    {Domain::kInt, "max(max(x, c0), c1)", "max(x, c1)", "c0 < c1"},
    {Domain::kInt, "min(min(x, c0), y)", "min(min(x, y), c0)"},
    {Domain::kInt, "max(max(x, c0), y)", "max(max(x, y), c0)"},
    {Domain::kInt, "min(max(x, y), max(x, z))", "max(x, min(y, z))"},
    {Domain::kInt, "max(min(x, y), min(x, z))", "min(x, max(y, z))"},
    {Domain::kIndex, "min(x + z, y + z)", "min(x, y) + z"},
    {Domain::kIndex, "max(x + z, y + z)", "max(x, y) + z"},
    {Domain::kIndex, "min(x * c0, y * c0)", "min(x, y) * c0", "0 < c0"},
    {Domain::kIndex, "max(x * c0, y * c0)", "max(x, y) * c0", "0 < c0"},

    // ---- comparisons ----
    {Domain::kAny, "x < x", "false", "", "x"},
    {Domain::kInt, "x <= x", "true", "", "x"},
    {Domain::kInt, "x == x", "true", "", "x"},
    {Domain::kInt, "x != x", "false", "", "x"},
    {Domain::kInt, "min(x, y) <= x", "true", "", "xy"},
    {Domain::kInt, "x <= max(x, y)", "true", "", "xy"},
    {Domain::kInt, "x < min(x, y)", "false", "", "xy"},
    {Domain::kInt, "max(x, y) < x", "false", "", "xy"},
    {Domain::kInt, "min(x, y) < x", "y < x"},
    {Domain::kInt, "x < max(x, y)", "x < y"},
    {Domain::kInt, "x <= min(x, y)", "x <= y"},
    {Domain::kInt, "max(x, y) <= x", "y <= x"},
    {Domain::kInt, "min(x, c0) < c1", "true", "c0 < c1", "x"},
    {Domain::kInt, "min(x, c0) < c1", "x < c1", "c1 <= c0"},
    {Domain::kInt, "max(x, c0) < c1", "false", "c1 <= c0", "x"},
    {Domain::kInt, "max(x, c0) < c1", "x < c1", "c0 < c1"},
    {Domain::kInt, "c1 < min(x, c0)", "false", "c0 <= c1", "x"},
    {Domain::kInt, "c1 < min(x, c0)", "c1 < x", "c1 < c0"},
    {Domain::kInt, "c1 < max(x, c0)", "true", "c1 < c0", "x"},
    {Domain::kInt, "c1 < max(x, c0)", "c1 < x", "c0 <= c1"},
    {Domain::kInt, "min(x, c0) <= c1", "true", "c0 <= c1", "x"},
    {Domain::kInt, "min(x, c0) <= c1", "x <= c1", "c1 < c0"},
    {Domain::kInt, "max(x, c0) <= c1", "false", "c1 < c0", "x"},
    {Domain::kInt, "max(x, c0) <= c1", "x <= c1", "c0 <= c1"},
    {Domain::kInt, "c1 <= min(x, c0)", "false", "c0 < c1", "x"},
    {Domain::kInt, "c1 <= min(x, c0)", "c1 <= x", "c1 <= c0"},
    {Domain::kInt, "c1 <= max(x, c0)", "true", "c1 <= c0", "x"},
    {Domain::kInt, "c1 <= max(x, c0)", "c1 <= x", "c0 < c1"},

    // ---- division by what is no constant ----
    // (x / y) / z is x / (y * z), but y * z may not fit.
    {Domain::kIndex, "x / x", "1", "x != 0", "x"},
    {Domain::kIndex, "x % x", "0", "x != 0", "x"},
    {Domain::kIndex, "(x * y) / y", "x", "y != 0", "y"},
    {Domain::kIndex, "(x * y) % y", "0", "y != 0", "xy"},
    {Domain::kIndex, "(x * y + z) / y", "x + z / y", "0 < y"},
    {Domain::kIndex, "(x * y + z) % y", "z % y", "0 < y", "x"},
    {Domain::kIndex, "x / y", "0", "0 <= x && x < y", "xy"},
    {Domain::kIndex, "x % y", "x", "0 <= x && x < y", "y"},

    // ---- floats ----
    {Domain::kFloat, "x * 1", "x"},
    {Domain::kFloat, "1 * x", "x"},
    {Domain::kFloat, "x / 1", "x"},
    {Domain::kFloat, "x - 0", "x"},
};

// A recursive-descent parser; precedence as in the IR's text: || && comparison +- */%, unary !.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<Pattern> Parse() {
    ASSIGN_OR_RETURN(Pattern pattern, Binary(0));
    SkipSpace();
    if (at_ != text_.size()) return Error("expected the end");
    return pattern;
  }

 private:
  struct Operator {
    std::string_view text;
    ExprKind kind;
    int precedence;
    bool swapped;  // the operands come in the other order
  };
  // Longer texts first.
  static constexpr Operator kOperators[] = {
      {"||", ExprKind::kOr, 0, false}, {"&&", ExprKind::kAnd, 1, false},
      {"<=", ExprKind::kLe, 2, false}, {">=", ExprKind::kLe, 2, true},
      {"==", ExprKind::kEq, 2, false}, {"!=", ExprKind::kNe, 2, false},
      {"<", ExprKind::kLt, 2, false},  {">", ExprKind::kLt, 2, true},
      {"+", ExprKind::kAdd, 3, false}, {"-", ExprKind::kSub, 3, false},
      {"*", ExprKind::kMul, 4, false}, {"/", ExprKind::kDiv, 4, false},
      {"%", ExprKind::kMod, 4, false},
  };
  static constexpr int kUnary = 5;

  void SkipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool Accept(std::string_view token) {
    SkipSpace();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  absl::Status Error(std::string_view expected) const {
    return InvalidInput("pattern '", std::string(text_), "', column ", at_ + 1, ": ",
                        std::string(expected));
  }
  static Pattern Operation(ExprKind kind, std::vector<Pattern> operands) {
    Pattern pattern;
    pattern.kind = Pattern::Kind::kOperation;
    pattern.operation = kind;
    pattern.operands = std::move(operands);
    return pattern;
  }

  absl::StatusOr<Pattern> Binary(int precedence) {
    if (precedence == kUnary) return Unary();
    ASSIGN_OR_RETURN(Pattern left, Binary(precedence + 1));
    while (true) {
      const Operator* found = nullptr;
      for (const Operator& op : kOperators) {
        if (op.precedence == precedence && Accept(op.text)) {
          found = &op;
          break;
        }
      }
      if (found == nullptr) return left;
      ASSIGN_OR_RETURN(Pattern right, Binary(precedence + 1));
      if (found->swapped) std::swap(left, right);
      left = Operation(found->kind, {std::move(left), std::move(right)});
    }
  }

  absl::StatusOr<Pattern> Unary() {
    if (Accept("!")) {
      ASSIGN_OR_RETURN(Pattern operand, Unary());
      return Operation(ExprKind::kNot, {std::move(operand)});
    }
    if (Accept("(")) {
      ASSIGN_OR_RETURN(Pattern inner, Binary(0));
      if (!Accept(")")) return Error("expected ')'");
      return inner;
    }
    SkipSpace();
    const size_t start = at_;
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_]))) ++at_;
    const std::string word(text_.substr(start, at_ - start));
    if (word.empty()) return Error("expected an operand");
    if (word == "min") return Call(ExprKind::kMin, 2);
    if (word == "max") return Call(ExprKind::kMax, 2);
    if (word == "select") return Call(ExprKind::kSelect, 3);
    Pattern pattern;
    if (word == "true" || word == "false") {
      pattern.is_bool = true;
      pattern.literal = word == "true";
    } else if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      for (char c : word) {
        if (!std::isdigit(static_cast<unsigned char>(c))) return Error("expected a number");
        pattern.literal = pattern.literal * 10 + (c - '0');
      }
    } else {
      pattern.kind = Pattern::Kind::kMeta;
      pattern.meta = word;
      static constexpr std::string_view kMetas[] = {"x", "y", "z", "w", "p", "q", "r", "c0", "c1"};
      if (std::find(std::begin(kMetas), std::end(kMetas), word) == std::end(kMetas)) {
        return Error(absl::StrCat("'", word, "' is no meta-variable"));
      }
    }
    return pattern;
  }

  absl::StatusOr<Pattern> Call(ExprKind kind, size_t arity) {
    std::vector<Pattern> operands;
    if (!Accept("(")) return Error("expected '('");
    while (operands.size() < arity) {
      if (!operands.empty() && !Accept(",")) return Error("expected ','");
      ASSIGN_OR_RETURN(Pattern operand, Binary(0));
      operands.push_back(std::move(operand));
    }
    if (!Accept(")")) return Error("expected ')'");
    return Operation(kind, std::move(operands));
  }

  std::string_view text_;
  size_t at_ = 0;
};

// The pattern in every order of its commutative operations.
std::vector<Pattern> Orders(const Pattern& pattern, Domain domain) {
  if (pattern.kind != Pattern::Kind::kOperation) return {pattern};
  std::vector<Pattern> orders = {pattern};
  for (size_t i = 0; i < pattern.operands.size(); ++i) {
    std::vector<Pattern> next;
    for (const Pattern& operand : Orders(pattern.operands[i], domain)) {
      for (Pattern order : orders) {
        order.operands[i] = operand;
        next.push_back(std::move(order));
      }
    }
    orders = std::move(next);
  }
  bool commutes = false;
  switch (pattern.operation) {
    case ExprKind::kAdd:
    case ExprKind::kMul:
    case ExprKind::kMin:
    case ExprKind::kMax:  // of floats: not with a NaN or a zero on one side
      commutes = domain == Domain::kInt || domain == Domain::kIndex;
      break;
    case ExprKind::kEq:
    case ExprKind::kNe:
      commutes = true;
      break;
    default:
      break;
  }
  if (!commutes) return orders;
  const size_t count = orders.size();
  for (size_t i = 0; i < count; ++i) {
    Pattern swapped = orders[i];
    std::swap(swapped.operands[0], swapped.operands[1]);
    if (std::find(orders.begin(), orders.end(), swapped) == orders.end()) {
      orders.push_back(std::move(swapped));
    }
  }
  return orders;
}

constexpr int kKinds = static_cast<int>(ExprKind::kCall) + 1;
using RuleIndex = std::array<std::vector<CompiledRule>, kKinds>;

Pattern MustParse(std::string_view text) {
  absl::StatusOr<Pattern> pattern = ParsePattern(text);
  POLYNAO_CHECK(pattern.ok()) << pattern.status();
  return *std::move(pattern);
}

RuleIndex* CompileAll() {
  auto* index = new RuleIndex;
  for (const Rule& rule : kRules) {
    const Pattern pattern = MustParse(rule.pattern);
    const Pattern replacement = MustParse(rule.replacement);
    const Pattern condition = MustParse(rule.condition.empty() ? "true" : rule.condition);
    POLYNAO_CHECK(pattern.kind == Pattern::Kind::kOperation) << rule.pattern;
    for (Pattern& order : Orders(pattern, rule.domain)) {
      (*index)[static_cast<int>(order.operation)].push_back(
          {&rule, std::move(order), replacement, condition});
    }
  }
  return index;
}

}  // namespace

absl::Span<const Rule> Rules() { return kRules; }

absl::StatusOr<Pattern> ParsePattern(std::string_view text) { return Parser(text).Parse(); }

Expr Bindings::Find(std::string_view meta) const {
  for (const auto& [name, e] : bound_) {
    if (name == meta) return e;
  }
  return Expr();
}

absl::Span<const CompiledRule> RulesFor(ExprKind root) {
  static const RuleIndex* const index = CompileAll();
  return (*index)[static_cast<int>(root)];
}

bool Match(const Pattern& pattern, Expr e, Bindings& bindings) {
  switch (pattern.kind) {
    case Pattern::Kind::kLiteral:
      if (pattern.is_bool && e.type() != ir::Type::kI1) return false;
      if (e.Is(ExprKind::kFloatImm)) {
        // Bit for bit: 0 is not -0.0.
        return e == e.context().Float(e.type(), static_cast<double>(pattern.literal));
      }
      return e.IsInt(pattern.literal);
    case Pattern::Kind::kMeta: {
      if (const Expr bound = bindings.Find(pattern.meta); bound) {
        return bound == e;
      }
      const char first = pattern.meta[0];
      if (first == 'c' && !e.Is(ExprKind::kIntImm)) return false;
      if (first >= 'p' && first <= 'r' && e.type() != ir::Type::kI1) return false;
      bindings.Bind(pattern.meta, e);
      return true;
    }
    case Pattern::Kind::kOperation:
      break;
  }
  if (e.kind() != pattern.operation) return false;
  for (size_t i = 0; i < pattern.operands.size(); ++i) {
    if (!Match(pattern.operands[i], e.operand(i), bindings)) return false;
  }
  return true;
}

namespace {

bool IsNumber(const Pattern& pattern) {
  return pattern.kind == Pattern::Kind::kLiteral && !pattern.is_bool;
}

}  // namespace

Expr Instantiate(const Pattern& pattern, const Bindings& bindings, ir::Type type,
                 ir::Context& context) {
  switch (pattern.kind) {
    case Pattern::Kind::kLiteral:
      return pattern.is_bool ? context.Bool(pattern.literal != 0)
                             : context.Const(type, pattern.literal);
    case Pattern::Kind::kMeta: {
      const Expr bound = bindings.Find(pattern.meta);
      POLYNAO_CHECK(static_cast<bool>(bound)) << "unbound " << pattern.meta;
      return bound;
    }
    case Pattern::Kind::kOperation:
      break;
  }
  if (pattern.operation == ExprKind::kNot) {
    return context.Not(Instantiate(pattern.operands[0], bindings, ir::Type::kI1, context));
  }
  if (pattern.operation == ExprKind::kSelect) {
    return context.Select(Instantiate(pattern.operands[0], bindings, ir::Type::kI1, context),
                          Instantiate(pattern.operands[1], bindings, type, context),
                          Instantiate(pattern.operands[2], bindings, type, context));
  }
  // A number has the type of the other operand.
  Expr a, b;
  if (IsNumber(pattern.operands[0])) {
    b = Instantiate(pattern.operands[1], bindings, type, context);
    a = Instantiate(pattern.operands[0], bindings, b.type(), context);
  } else {
    a = Instantiate(pattern.operands[0], bindings, type, context);
    b = Instantiate(pattern.operands[1], bindings, a.type(), context);
  }
  return context.Binary(pattern.operation, a, b);
}

}  // namespace polynao::arith
