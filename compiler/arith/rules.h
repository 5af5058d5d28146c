// The rewrite rules of simplification, as a table of text: pattern, replacement, condition. What
// sums and intervals decide (linear_form.h, analyzer.h) has no rule here.
//
// Patterns are expressions in the IR's own syntax over meta-variables:
//   x y z w   any expression of the rule's domain
//   p q r     any condition (type i1)
//   c0 c1     integer constants
// Operands of min, max, ==, != and of integer + and * also match in the other order.
#ifndef COMPILER_ARITH_RULES_H_
#define COMPILER_ARITH_RULES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/ir.h"

namespace polynao::arith {

// For which values a rule holds.
enum class Domain : uint8_t {
  kBool,   // conditions
  kInt,    // integers of any type, with arithmetic that wraps
  kIndex,  // mathematical integers: only where no operation wraps
  kFloat,  // floats, bit for bit, NaN and -0.0 included
  kAny,    // integers and floats
};

struct Rule {
  Domain domain;
  std::string_view pattern;
  std::string_view replacement;
  // Must be proven of the operands before the rule applies; "" for always.
  std::string_view condition = "";
  // Meta-variables whose expressions must not be able to trap, because the replacement evaluates
  // them less often than the pattern: "xy".
  std::string_view total = "";
};

absl::Span<const Rule> Rules();

// A parsed pattern.
struct Pattern {
  enum class Kind : uint8_t { kMeta, kLiteral, kOperation };
  Kind kind = Kind::kLiteral;
  std::string meta;                             // kMeta
  int64_t literal = 0;                          // kLiteral: an integer, or
  bool is_bool = false;                         //   true and false
  ir::ExprKind operation = ir::ExprKind::kAdd;  // kOperation
  std::vector<Pattern> operands;
  bool operator==(const Pattern&) const = default;
};

// Parses the IR's expression syntax, limited to what patterns use: operators, min, max, select,
// meta-variables, integer literals, true and false.
absl::StatusOr<Pattern> ParsePattern(std::string_view text);

// Maps the meta-variables of a match to the expressions that they stand for.
class Bindings {
 public:
  // The expression bound to `meta`, or null.
  ir::Expr Find(std::string_view meta) const;
  void Bind(std::string_view meta, ir::Expr e) { bound_.emplace_back(meta, e); }

 private:
  std::vector<std::pair<std::string_view, ir::Expr>> bound_;
};

struct CompiledRule {
  const Rule* rule;
  Pattern pattern;  // one of the orders of its commutative operations
  Pattern replacement;
  Pattern condition;  // `true` if there is none
};

// The compiled rules whose pattern has `root` at its root, in the order of the table.
absl::Span<const CompiledRule> RulesFor(ir::ExprKind root);

// Returns true if `e` is an instance of the pattern; adds to `bindings` (meta-variables' names
// point into `pattern`). Says nothing about the rule's domain and condition.
bool Match(const Pattern& pattern, ir::Expr e, Bindings& bindings);

// The pattern with its meta-variables replaced; literals at the root get type `type`.
ir::Expr Instantiate(const Pattern& pattern, const Bindings& bindings, ir::Type type,
                     ir::Context& context);

}  // namespace polynao::arith

#endif  // COMPILER_ARITH_RULES_H_
