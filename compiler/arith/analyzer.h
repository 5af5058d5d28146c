// Keeps what is known about integer expressions at one place of a program, and the simplifications
// it allows.
#ifndef COMPILER_ARITH_ANALYZER_H_
#define COMPILER_ARITH_ANALYZER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/linear_form.h"
#include "compiler/ir/ir.h"

namespace polynao::arith {

// Where an expression stands. In an index, a loop bound or a condition, i32 and i64 results do not
// wrap (the program would stop, see ir.h), so they are mathematical integers. Everywhere else, and
// for the narrower types always, `+ - *` wrap, and a rule that cancels terms across a comparison,
// min, max or division needs a proof by ranges that nothing wraps.
enum class Mode : uint8_t { kIndex, kData };

// The mode in which operand `i` of `e` stands, given that of `e`.
Mode OperandMode(ir::Expr e, size_t i, Mode mode);

struct AnalyzerOptions {
  // Steps that one question may take; beyond them parts stay as they are.
  int64_t max_steps = 100000;
  // How many conditions of selects and of && and || around an expression are used as facts in it.
  // Each level may visit shared sub-expressions again.
  int max_nested_conditions = 4;
};

// Facts are added as a walk enters loops, lets and branches, and leave with the innermost Scope:
//
//   Analyzer analyzer(context);
//   Analyzer::Scope scope(analyzer);
//   analyzer.BindLoop(i, context.I32(0), context.I32(4));
//   analyzer.Assume(i < n);
//   analyzer.CanProve(i * 4 + 3 < n * 4);   // true
//   analyzer.Simplify((i + 8) / 4);         // 2
//
// The order in which facts come does not matter. Answers are remembered per expression until the
// facts change, so simplifying all expressions of a function takes time linear in its size.
//
// A simplified expression has the value of the original wherever the facts hold, and traps (divides
// by zero, loads out of bounds) exactly where the original does. It does not evaluate a load that
// the original does not evaluate.
class Analyzer {
 public:
  explicit Analyzer(ir::Context& context, const AnalyzerOptions& options = {});
  ~Analyzer();
  Analyzer(const Analyzer&) = delete;
  Analyzer& operator=(const Analyzer&) = delete;

  // Facts added during the life of a Scope are forgotten when it ends. Scopes nest.
  class Scope {
   public:
    explicit Scope(Analyzer& analyzer);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Analyzer& analyzer_;
    size_t facts_, nonzero_, ranges_, known_, lets_;
  };

  // min <= var < min + extent.
  void BindLoop(ir::Var var, ir::Expr min, ir::Expr extent);
  void BindRange(ir::Var var, ConstRange range);
  // var == value. The value of a let statement is data.
  void BindLet(ir::Var var, ir::Expr value, Mode mode = Mode::kData);
  // `condition` is `truth`. What depends on memory is ignored, since a store may change it.
  void Assume(ir::Expr condition, bool truth = true);

  // The simplest expression known of the same type and value. Deterministic; simplifying the result
  // again changes nothing, unless a limit was hit.
  ir::Expr Simplify(ir::Expr e, Mode mode = Mode::kIndex);
  // An interval that holds all values of the integer expression `e`.
  ConstRange Range(ir::Expr e, Mode mode = Mode::kIndex);
  // Returns true if `condition` is always true, as far as this analysis sees.
  bool CanProve(ir::Expr condition, Mode mode = Mode::kIndex);
  // a - b, if that is a constant.
  std::optional<int64_t> ConstantDifference(ir::Expr a, ir::Expr b, Mode mode = Mode::kIndex);
  // `e` as a canonical sum of mathematical integers: in kData what may wrap is an atom. An atom is
  // never a `%` by a positive constant, which is written as x - c * (x / c).
  LinearForm Form(ir::Expr e, Mode mode = Mode::kIndex);
  // An interval that holds all values of `form`.
  ConstRange Range(const LinearForm& form);
  // Returns true if evaluating `e` may stop the program other than by wrapping around: a load, an
  // impure call, a division by what may be 0.
  bool CanTrap(ir::Expr e);

  // Returns true if i32 or i64 arithmetic in `e` may leave its type: wrap as data, stop the program
  // in an index.
  bool CanOverflow(ir::Expr e);

  ir::Context& context() const { return context_; }

 private:
  using Key = std::pair<const ir::ExprNode*, Mode>;
  using FormPtr = std::shared_ptr<const LinearForm>;
  // Answers that hold as long as the facts do.
  struct Memo {
    absl::flat_hash_map<Key, ir::Expr> simplified;
    absl::flat_hash_map<Key, FormPtr> forms;
    absl::flat_hash_map<Key, ConstRange> ranges;
    absl::flat_hash_map<const ir::ExprNode*, bool> traps;
    void Clear();
  };

  Memo& memo() { return *memos_.back(); }
  // Calls between expressions, forms and ranges nest no deeper.
  static constexpr int kMaxRecursion = 2000;
  bool OutOfSteps() { return ++steps_ > options_.max_steps; }

  // Facts.
  void AssumeInScope(ir::Expr condition, bool truth, Mode mode);
  // A sum that is >= 0, of atoms with the values that they have in `mode`.
  struct Fact {
    LinearForm sum;
    Mode mode;
  };
  void AddFact(LinearForm non_negative, Mode mode);
  void Tighten(const Fact& fact);
  void SetRange(ir::Expr atom, ConstRange range);

  // Forms.
  FormPtr MathForm(ir::Expr e, Mode mode);
  LinearForm ComputeMathForm(ir::Expr e, Mode mode);
  LinearForm RingForm(ir::Expr e, Mode mode, int depth);
  std::optional<LinearForm> ProductForm(const LinearForm& a, const LinearForm& b, ir::Type type,
                                        Mode mode);
  // A form's value is known to be the value of an expression of the program, and so
  // fits the type; or nothing.
  enum class Value : uint8_t { kOfProgram, kAny };
  std::optional<LinearForm> DivForm(const LinearForm& numerator, Value value, int64_t divisor,
                                    ir::Type type, Mode mode);
  LinearForm JoinQuotients(LinearForm form, Mode mode);
  LinearForm OpaqueForm(ir::Expr simplified, ir::Expr original, Mode mode);
  LinearForm Recombine(const LinearForm& form, Mode mode);
  bool NoWrap(ir::Expr e, Mode mode);
  ConstRange StructuralRange(ir::Expr e, Mode mode);
  ConstRange RangeOf(ir::Expr e, Mode mode);
  ConstRange IntervalOf(const LinearForm& form, Mode mode);
  ConstRange Bound(const LinearForm& form, Mode mode, int fact_depth);
  int64_t LowerBound(const LinearForm& form, Mode mode, int fact_depth);
  bool IsNonZero(const LinearForm& form, Mode mode);

  // Printing forms.
  struct PrintContext {
    ir::Type type;
    Mode mode;
    // This is true if the form's value is that of an expression of the program, hence fits its
    // type.
    bool fits;
    // This is true if the sum may wrap on the way and at the end (data).
    bool wraps;
    // Sums that the program computes anyway.
    absl::Span<const LinearForm> computed;
  };
  std::optional<ir::Expr> Print(const LinearForm& form, const PrintContext& how);
  bool CanPrint(absl::Span<const LinearForm::Term> terms, int64_t constant,
                const PrintContext& how);
  bool AllNonNegative(const LinearForm& form, Mode mode);
  void CollectSums(ir::Expr e, Mode mode, std::vector<LinearForm>& sums);

  // Simplification.
  ir::Expr SimplifyIn(ir::Expr e, Mode mode);
  ir::Expr SimplifyNew(ir::Expr e, Mode mode);
  ir::Expr SimplifyOperands(ir::Expr e, Mode mode);
  ir::Expr SimplifyOpaque(ir::Expr e, Mode mode);
  ir::Expr SimplifySum(ir::Expr e, Mode mode);
  ir::Expr SimplifyCompare(ir::Expr e, Mode mode);
  std::optional<ir::Expr> CompareNarrow(ir::Expr e, Mode mode);
  std::optional<bool> DecideComparison(ir::ExprKind kind, const LinearForm& difference, Mode mode);
  bool ReduceComparison(bool is_order, LinearForm& sum, Mode mode);
  std::optional<ir::Expr> ShowComparison(ir::Expr plain, bool is_order, LinearForm sum, Mode mode);
  ir::Expr SimplifyMinMax(ir::Expr e, Mode mode);
  ir::Expr SimplifyLogic(ir::Expr e, Mode mode);
  void DropImplied(bool is_and, Mode mode, std::vector<ir::Expr>& kept);
  ir::Expr SimplifySelect(ir::Expr e, Mode mode);
  ir::Expr SimplifyLet(ir::Expr e, Mode mode);
  ir::Expr SimplifyCast(ir::Expr e, Mode mode);
  ir::Expr FoldFloats(ir::Expr e);
  std::optional<ir::Expr> FoldSelect(ir::Expr e, Mode mode, int depth);
  ir::Expr ApplyRules(ir::Expr e, Mode mode);
  bool KeepsTraps(ir::Expr before, ir::Expr after);

  // Properties of expressions that no fact changes.
  int Cost(ir::Expr e);
  uint64_t Rank(ir::Expr e);
  bool ReadsMemory(ir::Expr e);
  int Depth(ir::Expr e);

  ir::Context& context_;
  const AnalyzerOptions options_;
  std::vector<std::unique_ptr<Memo>> memos_;
  // Sums of several atoms that are >= 0. (A deque: questions asked while one is read may add
  // others.)
  std::deque<Fact> facts_;
  // Sums that are not 0.
  std::vector<LinearForm> nonzero_;
  // Ranges of atoms that facts give, and what they replaced, for Scope.
  absl::flat_hash_map<ir::Expr, ConstRange> ranges_;
  std::vector<std::pair<ir::Expr, std::optional<ConstRange>>> replaced_ranges_;
  // Truth of conditions, and in the order of entry.
  absl::flat_hash_map<ir::Expr, bool> known_;
  std::vector<ir::Expr> known_order_;
  // Sums that let variables stand for.
  absl::flat_hash_map<ir::Expr, LinearForm> lets_;
  std::vector<ir::Expr> let_order_;

  absl::flat_hash_map<ir::Expr, int> costs_;
  absl::flat_hash_map<ir::Expr, uint64_t> ranks_;
  absl::flat_hash_map<ir::Expr, bool> reads_memory_;
  absl::flat_hash_map<ir::Expr, int> depths_;
  int64_t steps_ = 0;
  int recursion_ = 0;
  // Expressions with scopes of their own that are being simplified.
  absl::flat_hash_set<ir::Expr> active_;
  int nested_conditions_ = 0;
  int questions_ = 0;  // nesting of public calls
};

}  // namespace polynao::arith

#endif  // COMPILER_ARITH_ANALYZER_H_
