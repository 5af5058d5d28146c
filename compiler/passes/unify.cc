#include "compiler/passes/unify.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear_form.h"
#include "compiler/ir/visit.h"

namespace polynao {
namespace {

using arith::Analyzer;
using arith::ConstRange;
using arith::LinearForm;
using arith::Mode;
using arith::OperandMode;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

// A longer sum is an atom of the sums around it.
constexpr size_t kMaxTerms = 16;
constexpr int64_t kMaxSize = int64_t{1} << 30;

bool IsInteger(Expr e) { return ir::IsInt(e.type()) && e.type() != ir::Type::kI1; }

bool IsArithmetic(Expr e) {
  return IsInteger(e) && (e.Is(ExprKind::kAdd) || e.Is(ExprKind::kSub) || e.Is(ExprKind::kMul));
}

// Whether the operator is commutative.
bool IsCommutative(Expr e) {
  switch (e.kind()) {
    case ExprKind::kAdd:
    case ExprKind::kMul:
    case ExprKind::kMin:
    case ExprKind::kMax:
    case ExprKind::kEq:
    case ExprKind::kNe:
      return ir::IsInt(e.operand(0).type());
    default:
      return false;
  }
}

// Expressions known to be equal.
struct EqualExprs {
  Expr first;     // stands for the class in the keys of other classes
  Expr shortest;  // the first of the shortest members
  int64_t size = 0;
  bool is_sum = false;  // found by its form, not by its operator and operands
};

class Unifier {
 public:
  explicit Unifier(ir::Context& context) : context_(context), ranges_(context) {}

  // Visits the expressions of each statement with the mode in which they are evaluated.
  template <typename Visit>
  static std::vector<Expr> MapOperands(Stmt s, const Visit& visit) {
    std::vector<Expr> operands(s.operands().begin(), s.operands().end());
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool is_data =
          (s.Is(StmtKind::kStore) && i + 1 == operands.size()) || s.Is(StmtKind::kLet);
      operands[i] = visit(operands[i], is_data ? Mode::kData : Mode::kIndex);
    }
    return operands;
  }

  static bool IsRewritten(Stmt s) {
    // Bounds of thread loops belong to the launch, and operands of pragmas are hints: both stay.
    return !s.Is(StmtKind::kPragma) &&
           !(s.Is(StmtKind::kFor) && s.for_kind() == ir::ForKind::kThread);
  }

  void Collect(Stmt root) {
    ir::ForEachStmt(root, [&](Stmt s) {
      if (s.Is(StmtKind::kFor) && s.min().Is(ExprKind::kIntImm) &&
          s.extent().Is(ExprKind::kIntImm) && s.extent().int_value() > 0) {
        ranges_.BindRange(s.var(), ConstRange::Point(s.min().int_value()) +
                                       ConstRange{0, s.extent().int_value() - 1});
      }
      if (IsRewritten(s)) {
        MapOperands(s, [&](Expr e, Mode) {
          Classify(e);
          return e;
        });
      }
      return true;
    });
  }

  Stmt Rewrite(Stmt s) {
    std::vector<Expr> operands(s.operands().begin(), s.operands().end());
    if (IsRewritten(s)) {
      operands = MapOperands(s, [&](Expr e, Mode mode) { return Unified(e, mode); });
    }
    std::vector<Stmt> children;
    children.reserve(s.children().size());
    for (Stmt child : s.children()) children.push_back(Rewrite(child));
    return context_.Rebuild(s, operands, children);
  }

 private:
  using SumMap = absl::flat_hash_map<std::pair<ir::Type, LinearForm>, int>;

  struct Info {
    int equal_to;  // number of the class
    int64_t size;
    bool has_index = false;          // whether an index or a condition stands in it
    std::optional<LinearForm> form;  // for integers: the sum over the first members of classes
  };

  // ---- classes ----------------------------------------------------------------------------------

  void Classify(Expr root) {
    std::vector<std::pair<Expr, size_t>> stack = {{root, 0}};
    while (!stack.empty()) {
      auto& [e, next] = stack.back();
      if (next == 0 && infos_.contains(e)) {
        stack.pop_back();
      } else if (next < e.operands().size()) {
        const Expr operand = e.operand(next++);
        stack.emplace_back(operand, 0);
      } else {
        AddToClass(e);
        stack.pop_back();
      }
    }
  }

  void AddToClass(Expr e) {
    if (infos_.contains(e)) return;
    Info info{.equal_to = -1, .size = 1, .form = {}};
    for (Expr operand : e.operands()) {
      info.size = std::min(kMaxSize, info.size + infos_.at(operand).size);
      info.has_index = info.has_index || infos_.at(operand).has_index;
    }
    info.has_index =
        info.has_index || e.Is(ExprKind::kLoad) || e.Is(ExprKind::kSelect) || e.callee() != nullptr;
    if (IsArithmetic(e)) info.form = SumForm(e);
    if (e.Is(ExprKind::kIntImm)) info.form = LinearForm::Constant(e.int_value());
    if (info.form) {
      info.equal_to = ClassOf(by_form_, std::pair(e.type(), *info.form), e, info.size);
    } else {
      std::vector<Expr> operands;
      for (Expr operand : e.operands()) {
        operands.push_back(classes_[infos_.at(operand).equal_to].first);
      }
      if (IsCommutative(e) && operands[1].id() < operands[0].id()) {
        std::swap(operands[0], operands[1]);
      }
      info.equal_to = ClassOf(by_parts_, context_.Rebuild(e, operands), e, info.size);
      if (IsInteger(e)) info.form = LinearForm::Atom(classes_[info.equal_to].first);
    }
    infos_.emplace(e, std::move(info));
  }

  template <typename Map, typename Key>
  int ClassOf(Map& map, const Key& key, Expr e, int64_t size) {
    const auto [it, added] = map.try_emplace(key, static_cast<int>(classes_.size()));
    if (added) {
      classes_.push_back({.first = e, .shortest = e, .size = size});
      classes_.back().is_sum = std::is_same_v<Map, SumMap>;
    } else if (size < classes_[it->second].size) {
      classes_[it->second].shortest = e;
      classes_[it->second].size = size;
    }
    return it->second;
  }

  // `e` as a sum. Nothing if the sum is too long, or if terms of the operands cancel in it.
  std::optional<LinearForm> SumForm(Expr e) {
    const std::optional<LinearForm>& a = infos_.at(e.operand(0)).form;
    const std::optional<LinearForm>& b = infos_.at(e.operand(1)).form;
    if (!a || !b) return std::nullopt;
    LinearForm sum;
    size_t terms = 0;
    if (e.Is(ExprKind::kMul)) {
      if (!AddProduct(*a, *b, e.type(), sum, terms)) return std::nullopt;
    } else {
      sum = *a;
      if (!sum.Add(*b, e.Is(ExprKind::kAdd) ? 1 : -1)) return std::nullopt;
      terms = a->terms().size();
      for (const LinearForm::Term& term : b->terms()) terms += a->CoefficientOf(term.atom) == 0;
    }
    sum = sum.WrappedTo(e.type());
    if (sum.terms().size() != terms || terms == 0 || terms > kMaxTerms) return std::nullopt;
    return sum;
  }

  // sum = a * b. `terms` counts the different products of atoms. False if a coefficient overflows.
  bool AddProduct(const LinearForm& a, const LinearForm& b, ir::Type type, LinearForm& sum,
                  size_t& terms) {
    std::vector<Expr> products;
    const auto add = [&](Expr atom, int64_t x, int64_t y) {
      int64_t coefficient;
      if (__builtin_mul_overflow(x, y, &coefficient)) return false;
      if (x == 0 || y == 0) return true;
      products.push_back(atom);
      return sum.AddTerm(atom, coefficient);
    };
    if (a.terms().size() * b.terms().size() > kMaxTerms) return false;
    for (const LinearForm::Term& s : a.terms()) {
      if (!add(s.atom, s.coefficient, b.constant())) return false;
      for (const LinearForm::Term& t : b.terms()) {
        if (!add(ProductOf(s.atom, t.atom, type), s.coefficient, t.coefficient)) return false;
      }
    }
    for (const LinearForm::Term& t : b.terms()) {
      if (!add(t.atom, t.coefficient, a.constant())) return false;
    }
    // A factor of zero cancels the terms of the other factor.
    if ((a.IsConstant() && a.constant() == 0) || (b.IsConstant() && b.constant() == 0))
      return false;
    std::sort(products.begin(), products.end(), [](Expr x, Expr y) { return x.id() < y.id(); });
    terms = static_cast<size_t>(std::unique(products.begin(), products.end()) - products.begin());
    int64_t constant;
    return !__builtin_mul_overflow(a.constant(), b.constant(), &constant) &&
           sum.AddConstant(constant);
  }

  // The expression for a product of atoms: their product in the order of their ids.
  Expr ProductOf(Expr a, Expr b, ir::Type type) {
    std::vector<Expr> factors;
    for (Expr e : {a, b}) {
      while (e.Is(ExprKind::kMul) && e.type() == type) {
        factors.push_back(e.operand(1));
        e = e.operand(0);
      }
      factors.push_back(e);
    }
    std::sort(factors.begin(), factors.end(), [](Expr x, Expr y) { return x.id() < y.id(); });
    Expr product = factors[0];
    for (size_t i = 1; i < factors.size(); ++i) product = product * factors[i];
    return product;
  }

  // ---- rewriting --------------------------------------------------------------------------------

  Expr Unified(Expr e, Mode mode) {
    if (e.operands().empty()) return e;
    const std::pair<Expr, Mode> key(e, mode);
    if (const auto it = unified_.find(key); it != unified_.end()) return it->second;
    Expr result = Over(e, mode);
    const EqualExprs& equal = classes_[infos_.at(e).equal_to];
    if (equal.is_sum && equal.shortest != e) {
      // The operands of the shortest member are shorter than it, so this ends.
      const Expr other = Over(equal.shortest, mode);
      const bool may_wrap = mode == Mode::kData && !infos_.at(equal.shortest).has_index;
      if (may_wrap || !ranges_.CanOverflow(other)) result = other;
    }
    unified_.emplace(key, result);
    return result;
  }

  // `e` over unified operands, in the order in which the walk met them first.
  Expr Over(Expr e, Mode mode) {
    std::vector<Expr> operands;
    operands.reserve(e.operands().size());
    for (size_t i = 0; i < e.operands().size(); ++i) {
      operands.push_back(Unified(e.operand(i), OperandMode(e, i, mode)));
    }
    const Expr over = context_.Rebuild(e, operands);
    if (!IsCommutative(e)) return over;
    std::swap(operands[0], operands[1]);
    const Expr swapped = context_.Rebuild(e, operands);
    const Expr first = first_order_.try_emplace(swapped, over).first->second;
    first_order_.try_emplace(over, first);
    return first;
  }

  ir::Context& context_;
  Analyzer ranges_;
  absl::flat_hash_map<Expr, Info> infos_;
  std::vector<EqualExprs> classes_;
  SumMap by_form_;
  absl::flat_hash_map<Expr, int> by_parts_;
  absl::flat_hash_map<std::pair<Expr, Mode>, Expr> unified_;
  absl::flat_hash_map<Expr, Expr> first_order_;
};

}  // namespace

bool UnifyEqualIntegers(ir::Function& function) {
  Unifier unifier(*function.context);
  unifier.Collect(function.body);
  const Stmt body = unifier.Rewrite(function.body);
  const bool changed = body != function.body;
  function.body = body;
  return changed;
}

}  // namespace polynao
