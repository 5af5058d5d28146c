#include "compiler/passes/affine_program_for_test.h"

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/check.h"
#include "compiler/ir/random_program.h"
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
  options.arguments.scalars = ir::EdgeScalars(before, seed);
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
    if (options_.several_buffers) {
      const Expr side = context_->I32(kSide);
      square_ = context_->NewBuffer("P", Type::kI32, {side, side});
      parameter_ = square_;
      if (options_.workspace) square_ = context_->NewBuffer("W", Type::kI32, {side, side});
      row_ = context_->NewBuffer("S", Type::kF32, {side});
      function.params.resize(5);
      function.params[3].buffer = parameter_;
      function.params[3].access = ir::Access::kInOut;
      function.params[4].buffer = row_;
      function.params[4].access = ir::Access::kInOut;
    }
    function.params[0].buffer = in_;
    function.params[1].buffer = out_;
    function.params[1].access = ir::Access::kInOut;
    function.params[2].var = n;
    function.body = Statement(0);
    if (options_.several_buffers) {
      std::vector<Stmt> nests = {function.body};
      for (int more = Pick(2) + 1; more > 0; --more) nests.push_back(Loop(0));
      function.body = context_->Seq(nests);
      if (options_.workspace) {
        function.body = context_->Allocate(
            square_, context_->Seq({CopyMiddle(parameter_, square_), function.body,
                                    CopyMiddle(square_, parameter_)}));
      }
    }
    return function;
  }

 private:
  static constexpr int kSize = 64;
  static constexpr int kSide = 48;

  static constexpr int kBorder = 3;  // of the workspace

  Stmt CopyMiddle(ir::Buffer from, ir::Buffer to) {
    const ir::Var i = context_->NewVar("i"), j = context_->NewVar("j");
    const Stmt copy = context_->Store(to, {i, j}, from(i, j));
    const Expr extent = Int(kSide - 2 * kBorder);
    return context_->For(i, Int(kBorder), extent, context_->For(j, Int(kBorder), extent, copy));
  }

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

  // Of the square or the row: most often a loop variable, moved by a constant.
  Expr NearIndex() {
    if (bounds_.empty() || Pick(6) == 0) return Affine() % Int(kSide);
    const Expr var = bounds_[Pick(bounds_.size())];
    return Pick(8) == 0 ? Int(30) - var : var + Int(Pick(5) + 4);
  }

  Expr SquareValue() {
    Expr value = square_(NearIndex(), NearIndex());
    if (Pick(3) == 0) value = value * in_(Index());
    if (Pick(4) == 0) value = value + Affine();
    if (!cells_.empty() && Pick(2) == 0) value = value + cells_[Pick(cells_.size())]();
    return value;
  }

  // A store to the square, the row, or a cell.
  Stmt StoreNear() {
    const std::vector<Expr> at = {NearIndex(), NearIndex()};
    switch (Pick(6)) {
      case 0:
        return context_->Store(square_, at, SquareValue());
      case 1:
        return context_->Store(square_, at, square_(at[0], at[1]) + in_(Index()));
      case 2:
        return context_->Store(row_, {at[0]},
                               row_(at[0]) + row_(at[1]) * context_->Float(Type::kF32, 0.5));
      case 3: {
        const Expr kept = row_(at[0]);
        const Expr sum = kept + context_->Cast(Type::kF32, SquareValue());
        return context_->Store(row_, {at[0]}, sum);
      }
      case 4:
        if (cells_.empty()) return context_->Store(square_, at, Affine());
        return context_->Store(cells_[Pick(cells_.size())], {}, SquareValue());
      default:
        return context_->Store(square_, at, SquareValue());
    }
  }

  Stmt Near(int depth) {
    switch (Pick(6)) {
      case 0: {
        const ir::Buffer cell = context_->NewBuffer("t", Type::kI32, {}, "local");
        const Stmt first = context_->Store(cell, {}, SquareValue());
        cells_.push_back(cell);
        const Stmt body = context_->Seq({first, Statement(depth + 1), StoreNear()});
        cells_.pop_back();
        return context_->Allocate(cell, body);
      }
      case 1: {
        // Not among vars_: what is computed from it has any value.
        const ir::Var var = context_->NewVar("x");
        const Expr value = square_(NearIndex(), NearIndex());
        const Stmt use = context_->Store(square_, {NearIndex(), NearIndex()}, var + Int(1));
        return context_->LetStmt(var, value, context_->Seq({Statement(depth + 1), use}));
      }
      default:
        return StoreNear();
    }
  }

  Stmt Statement(int depth) {
    if (options_.several_buffers && (depth >= options_.max_depth || Pick(3) == 0)) {
      return depth >= options_.max_depth ? StoreNear() : Near(depth);
    }
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
        if (!options_.pragmas) return Loop(depth);
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
  ir::Buffer in_, out_, square_, row_;
  ir::Buffer parameter_;           // P
  std::vector<ir::Buffer> cells_;  // in scope
  std::vector<Expr> vars_;         // in scope
  std::vector<Expr> bounds_;       // of these, loop variables and n: small values
  int threads_ = 0;
};

}  // namespace

ir::Function RandomAffineProgram(uint64_t seed, const RandomAffineProgramOptions& options) {
  return Generator(seed, options).Make();
}

}  // namespace polynao
