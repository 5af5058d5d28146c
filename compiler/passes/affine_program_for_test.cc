#include "compiler/passes/affine_program_for_test.h"

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/check.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"

namespace polynao {

using ir::Expr;
using ir::ForKind;
using ir::Stmt;
using ir::Type;

ir::Function ParseProgram(std::string_view text) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text, "test.nir");
  POLYNAO_CHECK(function.ok()) << function.status();
  const absl::Status verified = ir::Verify(*function);
  POLYNAO_CHECK(verified.ok()) << verified;
  return *std::move(function);
}

std::string CompareMeaning(const ir::Function& before, const ir::Function& after, int64_t scalar,
                           bool may_stop) {
  ir::MeaningOptions options;
  options.may_stop = may_stop;
  for (const ir::Param& param : before.params) {
    if (param.var) {
      options.arguments.scalars[std::string(param.var.name())] = {
          .int_value = scalar, .float_value = static_cast<double>(scalar)};
    }
  }
  return ir::CompareMeaning(before, after, 1, options);
}

std::string CompareMeaningOnRandomArguments(const ir::Function& before, const ir::Function& after,
                                            uint64_t seed, bool* stops) {
  ir::MeaningOptions options{.draws = 1, .runs = 1, .may_stop = stops != nullptr, .stopped = stops};
  options.arguments.small_integers = true;  // random programs run on these
  return ir::CompareMeaning(before, after, seed, options);
}

namespace {

class Generator {
 public:
  Generator(uint64_t seed, const RandomAffineProgramOptions& options)
      : random_(seed), options_(options), context_(std::make_shared<ir::Context>()) {}

  ir::Function Make() {
    ir::Function function;
    function.name = "random";
    function.context = context_;
    const Expr size = context_->I32(kSize);
    in_ = context_->NewBuffer("A", Type::kI32, {size});
    out_ = context_->NewBuffer("B", Type::kI32, {size});
    const ir::Var n = context_->NewVar("n");
    if (options_.symbolic) {
      vars_.push_back(n);
      bounds_.push_back(n);
    }
    function.params.resize(3);
    function.params[0].buffer = in_;
    function.params[1].buffer = out_;
    function.params[1].access = ir::Access::kInOut;
    function.params[2].var = n;
    function.body = Statement(0);
    return function;
  }

 private:
  static constexpr int kSize = 64;

  int Pick(int n) { return static_cast<int>(random_() % n); }
  Expr Int(int64_t value) { return context_->I32(value); }
  Expr Variable() { return vars_.empty() ? Int(Pick(4)) : vars_[Pick(vars_.size())]; }

  Expr Affine() {
    static constexpr int kFactors[] = {1, 1, 2, 3, 4, 5, -1, -2};
    Expr sum = Variable() * Int(kFactors[Pick(8)]);
    for (int terms = Pick(3); terms > 0; --terms) sum = sum + Variable() * Int(kFactors[Pick(8)]);
    sum = sum + Int(Pick(9) - 3);
    switch (Pick(10)) {
      case 0:
        return sum / Int(Pick(4) + 1);
      case 1:
        return sum % Int(Pick(5) + 1);
      case 2:
        return ir::Min(sum, Int(Pick(12)));
      case 3:
        return ir::Max(sum, Variable());
      default:
        return sum;
    }
  }

  // An index that is in bounds whatever the variables are.
  Expr Index() { return Affine() % Int(kSize); }

  Expr Condition(int depth) {
    if (depth > 0) {
      switch (Pick(5)) {
        case 0:
          return ir::And(Condition(depth - 1), Condition(depth - 1));
        case 1:
          return ir::Or(Condition(depth - 1), Condition(depth - 1));
        case 2:
          return ir::Not(Condition(depth - 1));
        default:
          break;
      }
    }
    const Expr a = Affine();
    const Expr b = Pick(3) == 0 ? Affine() : Int(Pick(20) - 4);
    switch (Pick(8)) {
      case 0:
        return ir::Eq(a, b);
      case 1:
        return ir::Ne(a, b);
      case 2:
        return b < in_(Index());  // not affine
      case 3:
        return b <= a;
      default:
        return a < b;
    }
  }

  Expr Value() {
    Expr value = in_(Index());
    if (Pick(2) == 0) value = value + Affine();
    if (Pick(2) == 0) value = context_->Select(Condition(1), value, Int(0));
    if (Pick(4) == 0) value = value + out_(Index());
    return value;
  }

  Stmt Statement(int depth) {
    if (depth >= options_.max_depth) return context_->Store(out_, {Index()}, Value());
    switch (Pick(9)) {
      case 0:
      case 1:
        if (options_.symbolic_bounds && Pick(2) == 0) return NestedIfs(depth);
        return context_->If(Condition(2), Statement(depth + 1),
                            Pick(3) == 0 ? Statement(depth + 1) : Stmt());
      case 2:
        return context_->Seq({Statement(depth + 1), Statement(depth + 1)});
      case 3: {
        const ir::Var var = context_->NewVar("t");
        const Expr value = Affine();
        vars_.push_back(var);
        const Stmt body = Statement(depth + 1);
        vars_.pop_back();
        return context_->LetStmt(var, value, body);
      }
      case 4:
        return context_->Pragma("mark", {Int(Pick(3))}, Statement(depth + 1));
      case 5:
        return context_->Store(out_, {Index()}, Value());
      default:
        return Loop(depth);
    }
  }

  // if (sum < a) { if (sum < b) { .. } .. } else { if (sum < c) { .. } }
  Stmt NestedIfs(int depth) {
    const Expr sum = Affine();
    auto inner = [&] {
      const Stmt guarded = context_->If(sum < Int(Pick(20) - 4), Statement(depth + 1));
      return Pick(2) == 0 ? guarded : context_->Seq({guarded, Statement(depth + 1)});
    };
    const Stmt then_case = inner();
    return context_->If(sum < Int(Pick(20) - 4), then_case, Pick(2) == 0 ? inner() : Stmt());
  }

  Expr SymbolicExtent() {
    const Expr bound = bounds_[Pick(bounds_.size())];
    switch (Pick(5)) {
      case 0:
        return ir::Min(bound + Int(Pick(4)), Int(Pick(7)));
      case 1:
        return ir::Max(bound - Int(Pick(3)), Int(Pick(4)));
      case 2:
        return (bound + Int(3)) / Int(2);
      case 3:
        return Int(5) - bound;
      default:
        return bound;
    }
  }

  Stmt Loop(int depth) {
    static constexpr const char* kNames[] = {"i", "j", "k", "l", "m", "o", "p", "q"};
    const ir::Var var = context_->NewVar(kNames[depth % 8]);
    Expr min = Int(Pick(4) == 0 ? Pick(5) - 2 : 0);
    Expr extent = Int(Pick(options_.max_extent + 1));
    if (!bounds_.empty() && Pick(5) == 0) extent = bounds_[Pick(bounds_.size())] + Int(Pick(3));
    if (!bounds_.empty() && Pick(10) == 0) min = bounds_[Pick(bounds_.size())];
    if (options_.symbolic_bounds && Pick(4) != 0) extent = SymbolicExtent();
    ForKind kind = ForKind::kSerial;
    std::string axis;
    switch (Pick(8)) {
      case 0:
        kind = ForKind::kUnroll;
        break;
      case 1:
        kind = ForKind::kVectorize;
        break;
      case 2:
      case 3:
        if (options_.thread_loops && depth == threads_ && threads_ < 2) {
          kind = ForKind::kThread;
          axis = threads_ == 0 ? "cid" : "tid";
          ++threads_;
        }
        break;
      default:
        break;
    }
    vars_.push_back(var);
    bounds_.push_back(var);
    const Stmt body = Statement(depth + 1);
    vars_.pop_back();
    bounds_.pop_back();
    return context_->For(var, min, extent, body, kind, axis);
  }

  std::mt19937_64 random_;
  const RandomAffineProgramOptions options_;
  std::shared_ptr<ir::Context> context_;
  ir::Buffer in_, out_;
  std::vector<Expr> vars_;    // in scope
  std::vector<Expr> bounds_;  // of these, loop variables and n: small values
  int threads_ = 0;
};

}  // namespace

ir::Function RandomAffineProgram(uint64_t seed, const RandomAffineProgramOptions& options) {
  return Generator(seed, options).Make();
}

}  // namespace polynao
