// Simplification in types so narrow that all values can be tried: whatever rewrite the analyzer
// makes, the value, the traps and what it claims of both stay right at every point.
//
// POLYNAO_RANDOM_CASES=1000000 makes it that many random trees, and tries all chains of operators.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/evaluate_for_test.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/random_expr_for_test.h"
#include "compiler/arith/rules.h"
#include "compiler/ir/text.h"
#include "gtest/gtest.h"

namespace polynao::arith {
namespace {

using ir::Context;
using ir::Expr;
using ir::ExprKind;
using ir::Type;

// 0 in the test run.
int64_t MoreCases() {
  const char* more = std::getenv("POLYNAO_RANDOM_CASES");
  return more == nullptr ? 0 : std::atoll(more);
}

// Variables and all combinations of their values.
class Points {
 public:
  void Add(ir::Var var, const std::vector<int64_t>& values) {
    std::vector<std::pair<ir::Var, std::vector<int64_t>>> columns;
    for (const auto& [old, column] : columns_) {
      std::vector<int64_t> repeated;
      repeated.reserve(count_ * values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        repeated.insert(repeated.end(), column.begin(), column.end());
      }
      columns.emplace_back(old, std::move(repeated));
    }
    std::vector<int64_t> slow;
    slow.reserve(count_ * values.size());
    for (int64_t value : values) slow.insert(slow.end(), count_, value);
    columns.emplace_back(var, std::move(slow));
    columns_ = std::move(columns);
    count_ *= values.size();
  }
  // One value for each point there is.
  void AddColumn(ir::Var var, std::vector<int64_t> values) {
    columns_.emplace_back(var, std::move(values));
  }
  size_t count() const { return count_; }
  Evaluator MakeEvaluator() const {
    Evaluator evaluator(count_);
    for (const auto& [var, values] : columns_) evaluator.Bind(var, values);
    return evaluator;
  }
  std::string At(size_t point) const {
    std::string text;
    for (const auto& [var, values] : columns_) {
      absl::StrAppend(&text, " ", std::string(var.name()), "=", values[point]);
    }
    return text;
  }

 private:
  size_t count_ = 1;
  std::vector<std::pair<ir::Var, std::vector<int64_t>>> columns_;
};

std::vector<int64_t> AllValues(Type type) {
  const ConstRange range = ConstRange::OfType(type);
  std::vector<int64_t> values;
  for (int64_t value = range.min; value <= range.max; ++value) values.push_back(value);
  return values;
}

std::vector<int64_t> Edges(Type type) {
  std::vector<int64_t> values;
  for (int64_t value : {-128, -127, -65, -3,  -2,  -1,  0,   1,   2,   3,   5,
                        8,    63,   64,  100, 126, 127, 128, 129, 200, 254, 255}) {
    if (ir::FitsInt(type, value)) values.push_back(value);
  }
  return values;
}

// Asks one analyzer about expressions, and compares what it says with their values at `points`, of
// which those count where all facts hold.
class Checker {
 public:
  Checker(Context& context, const Points& points)
      : points_(points),
        evaluator_(points.MakeEvaluator()),
        analyzer_(context),
        holds_(points.count(), true) {}

  Analyzer& analyzer() { return analyzer_; }
  // Facts, which the analyzer is told and points must keep.
  void Assume(Expr condition) {
    analyzer_.Assume(condition);
    Keep(condition);
    absl::StrAppend(&facts_, "; ", ir::Print(condition));
  }
  void BindLoop(ir::Var var, Expr min, Expr extent) {
    analyzer_.BindLoop(var, min, extent);
    const Outcomes v = evaluator_.Of(var, Mode::kIndex), a = evaluator_.Of(min, Mode::kIndex),
                   n = evaluator_.Of(extent, Mode::kIndex);
    for (size_t p = 0; p < points_.count(); ++p) {
      holds_[p] = holds_[p] && a[p].kind == Outcome::kValue && n[p].kind == Outcome::kValue &&
                  a[p].value <= v[p].value && v[p].value < a[p].value + n[p].value &&
                  ir::FitsInt(var.type(), a[p].value + n[p].value - 1);
    }
    absl::StrAppend(&facts_, "; loop (", std::string(var.name()), ", ", ir::Print(min), ", ",
                    ir::Print(extent), ")");
  }
  void BindRange(ir::Var var, ConstRange range) {
    analyzer_.BindRange(var, range);
    const Outcomes& v = evaluator_.Of(var, Mode::kIndex);
    for (size_t p = 0; p < points_.count(); ++p) {
      holds_[p] = holds_[p] && range.Contains(v[p].value);
    }
    absl::StrAppend(&facts_, "; ", std::string(var.name()), " in ", range.ToString());
  }

  // The first thing that is wrong with the answers about `e`, or "". Counts rewrites.
  std::string Check(Expr e, Mode mode) {
    const Expr after = analyzer_.Simplify(e, mode);
    changed_ += after != e;
    if (after.type() != e.type()) return "another type";
    // Two forms of an expression may bind a variable to values that differ where the program stops.
    evaluator_.Forget();
    const Outcomes expected = evaluator_.Of(e, mode);
    evaluator_.Forget();
    const Outcomes& found = evaluator_.Of(after, mode);
    const auto error = [&](size_t p, const std::string& what) {
      return absl::StrCat(ir::Print(e), mode == Mode::kIndex ? " (index)" : " (data)", "\n--> ",
                          ir::Print(after), "\nwith", facts_, "\nat", points_.At(p), ": ", what);
    };
    const auto text = [](const Outcome& outcome) { return testing::PrintToString(outcome); };
    for (size_t p = 0; p < points_.count(); ++p) {
      if (!holds_[p] || expected[p].kind == Outcome::kOverflow || expected[p] == found[p]) continue;
      // Of two things that stop the program the other may have come first.
      if (expected[p].kind == Outcome::kTrap && found[p].kind == Outcome::kOverflow) continue;
      return error(p, absl::StrCat(text(expected[p]), " became ", text(found[p])));
    }
    const bool can_trap = analyzer_.CanTrap(e);
    const bool can_overflow = analyzer_.CanOverflow(e);
    for (size_t p = 0; p < points_.count(); ++p) {
      if (!holds_[p]) continue;
      if (!can_trap && expected[p].kind == Outcome::kTrap) return error(p, "CanTrap is false");
      if (!can_overflow && mode == Mode::kIndex && expected[p].kind == Outcome::kOverflow) {
        return error(p, "CanOverflow is false");
      }
    }
    if (e.type() == Type::kI1) return "";
    const ConstRange range = analyzer_.Range(e, mode);
    const LinearForm form = analyzer_.Form(e, mode);
    std::vector<const Outcomes*> atoms;
    for (const LinearForm::Term& term : form.terms()) {
      atoms.push_back(&evaluator_.Of(term.atom, mode));
    }
    for (size_t p = 0; p < points_.count(); ++p) {
      if (!holds_[p] || expected[p].kind != Outcome::kValue) continue;
      if (!range.Contains(expected[p].value)) {
        return error(p, absl::StrCat(expected[p].value, " is not in ", range.ToString()));
      }
      __int128 sum = form.constant();
      for (size_t i = 0; i < atoms.size(); ++i) {
        const LinearForm::Term& term = form.terms()[i];
        if ((*atoms[i])[p].kind != Outcome::kValue) {
          return error(p, absl::StrCat("atom ", ir::Print(term.atom), " stops"));
        }
        sum += static_cast<__int128>((*atoms[i])[p].value) * term.coefficient;
      }
      if (sum != expected[p].value) {
        return error(p, absl::StrCat("the form's value is ", static_cast<int64_t>(sum)));
      }
    }
    return "";
  }

  // Whether any point is left.
  bool any() const { return std::find(holds_.begin(), holds_.end(), true) != holds_.end(); }
  int changed() const { return changed_; }

 private:
  void Keep(Expr condition) {
    const Outcomes& truth = evaluator_.Of(condition, Mode::kIndex);
    for (size_t p = 0; p < points_.count(); ++p) {
      holds_[p] = holds_[p] && truth[p] == Outcome{Outcome::kValue, 1};
    }
  }

  const Points& points_;
  Evaluator evaluator_;
  Analyzer analyzer_;
  std::vector<bool> holds_;
  std::string facts_;
  int changed_ = 0;
};

constexpr Type kNarrow[] = {Type::kI8, Type::kU8};
constexpr Mode kModes[] = {Mode::kData, Mode::kIndex};

// The sums that the recursion of a quotient made did wrap.
TEST(NarrowTest, QuotientsOfQuotients) {
  for (Type type : kNarrow) {
    Context context;
    const ir::Var x = context.NewVar("x", type);
    Points points;
    points.Add(x, AllValues(type));
    Checker checker(context, points);
    for (Mode mode : kModes) {
      EXPECT_EQ(checker.Check((x / 2 + 1) / 2, mode), "");
      EXPECT_EQ(checker.Check((x / 2 + 4) / 5, mode), "");
      EXPECT_EQ(checker.Check((x / 4 + 3) / 2 < 7, mode), "");
    }
  }
}

// A trap must not go because another part of the condition, which holds where the trap is not, says so.
TEST(NarrowTest, TrapsInConditions) {
  Context context;
  const ir::Var x = context.NewVar("x", Type::kU8);
  Points points;
  points.Add(x, AllValues(Type::kU8));
  Checker checker(context, points);
  for (Mode mode : kModes) {
    EXPECT_EQ(checker.Check(ir::And(ir::Eq(x, 1 / x), x - 8 <= x + x), mode), "");
  }
}

// ---- the table ----------------------------------------------------------------------------------

void CollectMetas(const Pattern& pattern, std::vector<std::string>& metas) {
  if (pattern.kind == Pattern::Kind::kMeta &&
      std::find(metas.begin(), metas.end(), pattern.meta) == metas.end()) {
    metas.push_back(pattern.meta);
  }
  for (const Pattern& operand : pattern.operands) CollectMetas(operand, metas);
}

// An instance of each rule in each order, its constants being edges of the type.
TEST(NarrowTest, EveryRuleOfTheTable) {
  for (Type type : kNarrow) {
    int checked = 0, changed = 0;
    for (int kind = 0; kind <= static_cast<int>(ExprKind::kCall); ++kind) {
      for (const CompiledRule& rule : RulesFor(static_cast<ExprKind>(kind))) {
        if (rule.rule->domain == Domain::kFloat) continue;
        std::vector<std::string> metas;
        CollectMetas(rule.pattern, metas);
        const auto has = [&](const char* meta) {
          return std::find(metas.begin(), metas.end(), meta) != metas.end();
        };
        const std::vector<int64_t> none = {0}, edges = Edges(type);
        // Of two variables beside x, the second has fewer values.
        const std::vector<int64_t> few = {edges[0], edges[edges.size() / 2], 1, edges.back()};
        for (int64_t c0 : has("c0") ? edges : none) {
          for (int64_t c1 : has("c1") ? edges : none) {
            for (int64_t added : {0, 1}) {  // to x: a sum that may wrap
              if (added != 0 && !has("x")) continue;
              Context context;
              Bindings bindings;
              Points points;
              for (const std::string& meta : metas) {
                if (meta[0] == 'c') {
                  bindings.Bind(meta, context.Int(type, meta == "c0" ? c0 : c1));
                } else if (meta[0] <= 'r') {
                  const ir::Var var = context.NewVar(meta, Type::kI1);
                  points.Add(var, {0, 1});
                  bindings.Bind(meta, var);
                } else {
                  const ir::Var var = context.NewVar(meta, type);
                  points.Add(var, meta == "x" ? AllValues(type) : meta == "y" ? edges : few);
                  bindings.Bind(meta, meta == "x" && added != 0 ? var + added : var);
                }
              }
              Checker checker(context, points);
              if (!rule.rule->condition.empty()) {
                checker.Assume(Instantiate(rule.condition, bindings, Type::kI1, context));
              }
              if (!checker.any()) continue;
              const bool is_bool =
                  ir::IsComparison(rule.pattern.operation) || rule.rule->domain == Domain::kBool;
              const Expr e =
                  Instantiate(rule.pattern, bindings, is_bool ? Type::kI1 : type, context);
              for (Mode mode : kModes) ASSERT_EQ(checker.Check(e, mode), "");
              ++checked;
              changed += checker.changed();
            }
          }
        }
      }
    }
    EXPECT_GT(checked, 2000);
    EXPECT_GT(changed, checked);  // of two modes
  }
}

// ---- sums, quotients, comparisons: what no table has -------------------------------------------

struct Step {
  ExprKind kind;
  int64_t constant;
  bool constant_first;
};

std::vector<Step> Steps(Type type) {
  std::vector<Step> steps;
  for (int64_t c : {-128, -127, -3, -2, -1, 0, 1, 2, 3, 4, 64, 100, 127, 128, 254, 255}) {
    if (!ir::FitsInt(type, c)) continue;
    for (ExprKind kind : {ExprKind::kAdd, ExprKind::kSub, ExprKind::kMul, ExprKind::kDiv,
                          ExprKind::kMod, ExprKind::kMin, ExprKind::kMax}) {
      if (c == 0 && kind != ExprKind::kSub && kind != ExprKind::kMax) continue;
      steps.push_back({kind, c, false});
    }
    for (ExprKind kind : {ExprKind::kSub, ExprKind::kDiv, ExprKind::kMod}) {
      steps.push_back({kind, c, true});
    }
  }
  return steps;
}

Expr Apply(const Step& step, Expr e) {
  const Expr c = e.context().Int(e.type(), step.constant);
  return step.constant_first ? e.context().Binary(step.kind, c, e)
                             : e.context().Binary(step.kind, e, c);
}

constexpr ExprKind kComparisons[] = {ExprKind::kLt, ExprKind::kLe, ExprKind::kEq, ExprKind::kNe};

// All chains of two operators with constants, and some or all of three; each compared with a
// constant and with another chain.
TEST(NarrowTest, ChainsOfOperators) {
  const bool all = MoreCases() > 0;
  for (Type type : kNarrow) {
    const std::vector<Step> steps = Steps(type);
    uint64_t sample = 0;
    int changed = 0;
    for (const Step& first : steps) {
      Context context;
      const ir::Var x = context.NewVar("x", type);
      Points points;
      points.Add(x, AllValues(type));
      Checker checker(context, points);
      const Expr inner = Apply(first, x);
      for (const Step& second : steps) {
        const Expr e = Apply(second, inner);
        for (Mode mode : kModes) ASSERT_EQ(checker.Check(e, mode), "");
        for (const Step& third : steps) {
          if (!all && ++sample % 149 != 0) continue;
          const Mode mode = kModes[++sample % 2];
          ASSERT_EQ(checker.Check(Apply(third, e), mode), "");
          const Expr c = context.Int(type, third.constant);
          const ExprKind kind = kComparisons[sample % 4];
          ASSERT_EQ(checker.Check(context.Binary(kind, e, c), mode), "");
          ASSERT_EQ(checker.Check(context.Binary(kind, c, e), mode), "");
          ASSERT_EQ(checker.Check(context.Binary(kind, e, Apply(third, x)), mode), "");
        }
      }
      changed += checker.changed();
    }
    EXPECT_GT(changed, 10000);
  }
}

// Sums and comparisons of two quotients, remainders or products, at all pairs of values.
TEST(NarrowTest, PairsOfTwoVariables) {
  for (Type type : kNarrow) {
    Context context;
    const ir::Var x = context.NewVar("x", type), y = context.NewVar("y", type);
    Points points;
    points.Add(x, AllValues(type));
    points.Add(y, AllValues(type));
    const std::vector<Step> steps = Steps(type);
    RandomExpr random(context, 7, {type});
    const int cases = MoreCases() > 0 ? 3000 : 25;
    for (int i = 0; i < cases; ++i) {
      Checker checker(context, points);  // forgets what it evaluated
      const auto step = [&] { return steps[static_cast<size_t>(random.Pick(steps.size()))]; };
      const Step first = step(), second = step(), third = step();
      const Mode mode = kModes[i % 2];
      const Expr a = Apply(first, x), b = Apply(second, y);
      const Expr sum = random.Pick(2) == 0 ? a + b : a - b;
      ASSERT_EQ(checker.Check(Apply(third, sum), mode), "");
      ASSERT_EQ(checker.Check(context.Binary(kComparisons[i / 2 % 4], a, b), mode), "");
      ASSERT_EQ(checker.Check(sum < context.Int(type, third.constant), mode), "");
    }
  }
}

// ---- random trees -------------------------------------------------------------------------------

// Trees to depth 5 with loads, lets, selects and casts, under random facts.
TEST(NarrowTest, RandomTrees) {
  const std::vector<std::vector<Type>> kTypes = {
      {Type::kI8}, {Type::kU8}, {Type::kI8, Type::kI32}, {Type::kU8, Type::kI16, Type::kI8}};
  const char* seed_text = std::getenv("POLYNAO_SEED");
  const uint64_t first = seed_text == nullptr ? 1 : std::strtoull(seed_text, nullptr, 10);
  const uint64_t cases = MoreCases() > 0 ? static_cast<uint64_t>(MoreCases()) : 3000;
  uint64_t changed = 0;
  for (uint64_t seed = first; seed < first + cases; ++seed) {
    SCOPED_TRACE(absl::StrCat("POLYNAO_SEED=", seed));
    Context context;
    RandomExpr random(context, seed, kTypes[seed % kTypes.size()]);
    // All values of the first variable, each with a few of the others, many of which are edges.
    Points points;
    const std::vector<ir::Var>& vars = random.free_vars();
    points.Add(vars[0], AllValues(vars[0].type()));
    points.Add(context.NewVar("again"), {0, 1, 2});
    for (size_t v = 1; v < vars.size(); ++v) {
      const ConstRange range = ConstRange::OfType(vars[v].type());
      std::vector<int64_t> values;
      for (size_t p = 0; p < points.count(); ++p) {
        const int64_t near = random.Pick(3);
        switch (random.Pick(4)) {
          case 0:
            values.push_back(range.min + near);
            break;
          case 1:
            values.push_back(range.max - near);
            break;
          case 2:
            values.push_back(ir::WrapInt(vars[v].type(), random.Pick(12) - 3));
            break;
          default:
            values.push_back(ir::WrapInt(vars[v].type(), random.Pick(1 << 16)));
        }
      }
      points.AddColumn(vars[v], std::move(values));
    }
    Checker checker(context, points);
    for (ir::Var var : vars) {
      if (random.Pick(3) != 0) continue;
      const ConstRange type = ConstRange::OfType(var.type());
      const int64_t min = random.Pick(2) == 0 ? type.min : random.Pick(12) - 3;
      const ConstRange range = Intersect(type, {min, min + random.Pick(200)});
      if (!range.IsEmpty()) checker.BindRange(var, range);
    }
    if (random.Pick(2) == 0) checker.Assume(random.Bool(1));
    if (random.Pick(4) == 0) checker.Assume(random.Bool(2));
    if (random.Pick(4) == 0) {
      const Expr min = context.Cast(vars[1].type(), random.Int(1));
      checker.BindLoop(vars[1], min, context.Cast(vars[1].type(), random.Int(1)));
    }
    const Expr e = random.Pick(2) == 0 ? random.Int(5) : random.Bool(5);
    const Mode mode = kModes[random.Pick(2)];
    ASSERT_EQ(checker.Check(e, mode), "");
    // Again, as one that the answers remembered must not change; and in the other mode.
    ASSERT_EQ(checker.Check(e, mode), "");
    ASSERT_EQ(checker.Check(e, mode == Mode::kIndex ? Mode::kData : Mode::kIndex), "");
    changed += static_cast<uint64_t>(checker.changed());
  }
  EXPECT_GT(changed, cases);
  std::printf("%llu random trees\n", static_cast<unsigned long long>(cases));
}

}  // namespace
}  // namespace polynao::arith
