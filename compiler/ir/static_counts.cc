#include "compiler/ir/static_counts.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/ir/visit.h"

namespace polynao::ir {

void Add(Counts& sum, const Counts& more, int64_t times) {
  sum.loads += more.loads * times;
  sum.stores += more.stores * times;
  sum.int_add += more.int_add * times;
  sum.int_mul += more.int_mul * times;
  sum.int_div += more.int_div * times;
  sum.int_compare += more.int_compare * times;
  sum.logic += more.logic * times;
  sum.float_ops += more.float_ops * times;
  sum.casts += more.casts * times;
  sum.branches += more.branches * times;
  sum.iterations += more.iterations * times;
  sum.instructions += more.instructions * times;
}

namespace {

// What evaluating `e` counts by itself, apart from its operands.
Counts OwnCounts(Expr e) {
  Counts counts;
  const bool is_float = !e.operands().empty() && IsFloat(e.operand(0).type());
  switch (e.kind()) {
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kVar:
    case ExprKind::kLet:
    case ExprKind::kAddress:
      break;
    case ExprKind::kCast:
      counts.casts = 1;
      break;
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kBitAnd:
    case ExprKind::kBitOr:
    case ExprKind::kBitXor:
    case ExprKind::kShiftLeft:
    case ExprKind::kShiftRight:
      (is_float ? counts.float_ops : counts.int_add) = 1;
      break;
    case ExprKind::kMul:
      (is_float ? counts.float_ops : counts.int_mul) = 1;
      break;
    case ExprKind::kDiv:
    case ExprKind::kMod:
      (is_float ? counts.float_ops : counts.int_div) = 1;
      break;
    case ExprKind::kMin:
    case ExprKind::kMax:
    case ExprKind::kEq:
    case ExprKind::kNe:
    case ExprKind::kLt:
    case ExprKind::kLe:
      (is_float ? counts.float_ops : counts.int_compare) = 1;
      break;
    case ExprKind::kAnd:
    case ExprKind::kOr:
    case ExprKind::kNot:
      counts.logic = 1;
      break;
    case ExprKind::kSelect:
      counts.branches = 1;
      break;
    case ExprKind::kLoad:
      counts.loads = 1;
      break;
    case ExprKind::kCall:
      (IsPureIntrinsic(e.name()) ? counts.float_ops : counts.instructions) = 1;
      break;
  }
  return counts;
}

bool IsAxisLoop(Stmt s, std::string_view axis) {
  return s.Is(StmtKind::kFor) && s.for_kind() == ForKind::kThread && s.name().starts_with(axis);
}
bool IsBlockLoop(Stmt s) { return IsAxisLoop(s, "blockIdx."); }
bool IsThreadLoop(Stmt s) { return IsAxisLoop(s, "threadIdx."); }

// Numbers of variables, ascending.
using Slots = std::vector<int>;

Slots Union(const Slots& a, const Slots& b) {
  Slots both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

class Counter {
 public:
  Counter(const Function& function, int64_t max_steps)
      : function_(function), max_steps_(max_steps) {}

  absl::StatusOr<StaticCounts> Count(const IntValues& scalars) {
    for (const Param& param : function_.params) {
      if (!param.var) continue;
      const int slot = NewSlot(param.var);
      if (IsFloat(param.var.type())) continue;
      const auto it = scalars.find(param.var);
      if (it != scalars.end()) {
        values_[slot] = it->second;
      } else {
        return InvalidInput("counting '", function_.name, "': expected a value of '", param.name(),
                            "', found none");
      }
    }
    Look(function_.body);
    StaticCounts result;
    result.counts = CountOf(function_.body);
    if (steps_ > max_steps_) {
      return InvalidInput("counting '", function_.name, "': more than ", max_steps_, " steps");
    }
    result.exact = exact_;
    return result;
  }

 private:
  struct ExprInfo {
    Counts counts;  // if nothing in it is conditional
    bool has_control = false;
    Slots control;       // the variables that conditions in it depend on
    Slots variables;     // all that its value depends on; those of lets are replaced by theirs
    bool reads = false;  // memory
  };
  struct StmtInfo {
    Slots control;
    // Whether there is a loop over a GPU's blocks or threads in it, or it is one.
    bool has_blocks = false;
    bool has_threads = false;
    // The last values of these, and what was counted for them.
    std::vector<std::optional<int64_t>> last_values;
    std::optional<Counts> last;
  };

  int NewSlot(Var var) {
    const int slot = static_cast<int>(values_.size());
    slots_[var] = slot;
    values_.emplace_back();
    variables_of_.push_back({slot});
    return slot;
  }

  // ---- what depends on what ---------------------------------------------------------------------

  const ExprInfo& Look(Expr root) {
    ForEachLetFirst(root);
    return exprs_.at(root);
  }

  // Operands before users; the value of a let before its body.
  void ForEachLetFirst(Expr e) {
    if (exprs_.contains(e)) return;
    for (size_t i = 0; i < e.operands().size(); ++i) {
      if (e.Is(ExprKind::kLet) && i == 1) BindLet(e.var(), e.operand(0));
      ForEachLetFirst(e.operand(i));
    }
    ExprInfo info;
    info.counts = OwnCounts(e);
    if (e.Is(ExprKind::kVar)) info.variables = variables_of_[slots_.at(e)];
    info.reads = e.Is(ExprKind::kLoad) || e.callee() != nullptr;
    for (Expr operand : e.operands()) {
      const ExprInfo& inner = exprs_.at(operand);
      Add(info.counts, inner.counts);
      info.has_control = info.has_control || inner.has_control;
      info.control = Union(info.control, inner.control);
      info.variables = Union(info.variables, inner.variables);
      info.reads = info.reads || inner.reads;
    }
    if (e.Is(ExprKind::kAnd) || e.Is(ExprKind::kOr) || e.Is(ExprKind::kSelect)) {
      info.has_control = true;
      info.control = Union(info.control, exprs_.at(e.operand(0)).variables);
    }
    exprs_.emplace(e, std::move(info));
  }

  void BindLet(Var var, Expr value) {
    const int slot = slots_.contains(var) ? slots_.at(var) : NewSlot(var);
    variables_of_[slot] = exprs_.at(value).variables;
  }

  const Slots& Look(Stmt s) {
    Slots control;
    for (Expr e : s.operands()) {
      const ExprInfo& info = Look(e);
      control = Union(control, info.control);
      if (s.Is(StmtKind::kFor) || s.Is(StmtKind::kIf)) control = Union(control, info.variables);
    }
    if (s.Is(StmtKind::kAllocate)) {
      for (Expr e : s.buffer()->extents) control = Union(control, Look(e).control);
    }
    if (s.Is(StmtKind::kFor)) NewSlot(s.var());
    if (s.Is(StmtKind::kLet)) {
      NewSlot(s.var());
      BindLet(s.var(), s.value());
    }
    bool has_blocks = IsBlockLoop(s), has_threads = IsThreadLoop(s);
    for (Stmt child : s.children()) {
      control = Union(control, Look(child));
      has_blocks = has_blocks || stmts_.at(child).has_blocks;
      has_threads = has_threads || stmts_.at(child).has_threads;
    }
    StmtInfo& info = stmts_[s];
    info.has_blocks = has_blocks;
    info.has_threads = has_threads;
    info.control = std::move(control);
    info.last_values.resize(info.control.size());
    return info.control;
  }

  // ---- counting ---------------------------------------------------------------------------------

  // The value of `e`, if it is an integer that does not depend on memory.
  std::optional<int64_t> ValueOf(Expr e) {
    const auto operand = [&](size_t i) { return ValueOf(e.operand(i)); };
    switch (e.kind()) {
      case ExprKind::kIntImm:
        return e.int_value();
      case ExprKind::kVar:
        return values_[slots_.at(e)];
      case ExprKind::kFloatImm:
      case ExprKind::kLoad:
      case ExprKind::kAddress:
      case ExprKind::kCall:
        return std::nullopt;
      case ExprKind::kCast: {
        const std::optional<int64_t> a = operand(0);
        if (!a || IsFloat(e.type())) return std::nullopt;
        return e.type() == Type::kI1 ? *a != 0 : WrapInt(e.type(), *a);
      }
      case ExprKind::kNot: {
        const std::optional<int64_t> a = operand(0);
        return a ? std::optional<int64_t>(*a == 0) : std::nullopt;
      }
      case ExprKind::kAnd:
      case ExprKind::kOr: {
        const std::optional<int64_t> a = operand(0);
        if (!a) return std::nullopt;
        return (*a != 0) == e.Is(ExprKind::kAnd) ? operand(1) : a;
      }
      case ExprKind::kSelect: {
        const std::optional<int64_t> condition = operand(0);
        if (!condition) return std::nullopt;
        return operand(*condition != 0 ? 1 : 2);
      }
      case ExprKind::kLet:
        values_[slots_.at(e.var())] = operand(0);
        return operand(1);
      default: {
        if (IsFloat(e.operand(0).type())) return std::nullopt;
        const std::optional<int64_t> a = operand(0);
        const std::optional<int64_t> b = a ? operand(1) : std::nullopt;
        return b ? EvaluateInt(e.kind(), e.operand(0).type(), *a, *b) : std::nullopt;
      }
    }
  }

  // Whether the condition holds; if that is not known, it is taken to.
  bool Holds(Expr condition) {
    const std::optional<int64_t> value = ValueOf(condition);
    exact_ = exact_ && value.has_value();
    return !value || *value != 0;
  }

  Counts CountOf(Expr e) {
    const ExprInfo& info = exprs_.at(e);
    if (!info.has_control) return info.counts;
    ++steps_;
    Counts counts = OwnCounts(e);
    switch (e.kind()) {
      case ExprKind::kAnd:
      case ExprKind::kOr:
        Add(counts, CountOf(e.operand(0)));
        if (Holds(e.operand(0)) == e.Is(ExprKind::kAnd)) Add(counts, CountOf(e.operand(1)));
        break;
      case ExprKind::kSelect:
        Add(counts, CountOf(e.operand(0)));
        Add(counts, CountOf(e.operand(Holds(e.operand(0)) ? 1 : 2)));
        break;
      case ExprKind::kLet:
        Add(counts, CountOf(e.operand(0)));
        values_[slots_.at(e.var())] = ValueOf(e.operand(0));
        Add(counts, CountOf(e.operand(1)));
        break;
      default:
        for (Expr operand : e.operands()) Add(counts, CountOf(operand));
    }
    return counts;
  }

  Counts CountOf(Stmt s) {
    StmtInfo& info = stmts_.at(s);
    bool same = info.last.has_value();
    for (size_t i = 0; i < info.control.size(); ++i) {
      const std::optional<int64_t> value = values_[info.control[i]];
      same = same && info.last_values[i] == value;
      info.last_values[i] = value;
    }
    if (same) return *info.last;
    if (++steps_ > max_steps_) return {};
    const bool starts_kernel =
        !in_kernel_ && info.has_threads && (IsBlockLoop(s) || !info.has_blocks);
    if (starts_kernel) EnterKernel(s);
    const Counts counts = CountAnew(s);
    if (starts_kernel) {
      in_kernel_ = false;
      threads_ = 1;
    }
    stmts_.at(s).last = counts;
    return counts;
  }

  void EnterKernel(Stmt kernel) {
    in_kernel_ = true;
    block_.clear();
    ForEachStmt(kernel, [&](Stmt s) {
      if (!IsThreadLoop(s)) return true;
      const std::optional<int64_t> extent = ValueOf(s.extent());
      exact_ = exact_ && extent.has_value();
      int64_t& threads = block_.try_emplace(s.name(), 1).first->second;
      threads = std::max(threads, extent.value_or(1));
      return true;
    });
    threads_ = 1;
    for (const auto& [axis, threads] : block_) threads_ *= threads;
  }

  Counts CountAnew(Stmt s) {
    if (IsThreadLoop(s) || IsBlockLoop(s)) return CountAxis(s);
    Counts counts;
    for (Expr e : s.operands()) {
      if (!s.Is(StmtKind::kPragma)) Add(counts, CountOf(e));
    }
    switch (s.kind()) {
      case StmtKind::kFor:
        CountLoop(s, counts);
        break;
      case StmtKind::kIf:
        counts.branches += 1;
        ForThreadsAround(s, counts);
        Add(counts, CountOf(Holds(s.cond()) ? s.then_case() : s.else_case()));
        break;
      case StmtKind::kLet:
        values_[slots_.at(s.var())] = ValueOf(s.value());
        ForThreadsAround(s, counts);
        Add(counts, CountOf(s.body()));
        break;
      case StmtKind::kAllocate:
        for (Expr extent : s.buffer()->extents) Add(counts, CountOf(extent));
        ForThreadsAround(s, counts);
        Add(counts, CountOf(s.body()));
        break;
      case StmtKind::kStore:
        counts.stores += 1;
        break;
      case StmtKind::kEvaluate:
        break;
      case StmtKind::kPragma:
      case StmtKind::kSeq:
        for (Stmt child : s.children()) Add(counts, CountOf(child));
        break;
    }
    return counts;
  }

  // `counts`: of `s` itself. Around loops over threads each thread of the others executes it.
  void ForThreadsAround(Stmt s, Counts& counts) const {
    if (!stmts_.at(s).has_threads || threads_ == 1) return;
    const Counts once = std::exchange(counts, {});
    Add(counts, once, threads_);
  }

  // A loop over blocks or threads: these exist already.
  Counts CountAxis(Stmt s) {
    const int64_t threads = threads_;
    int64_t extent_of_axis = 1;
    if (IsThreadLoop(s)) std::swap(block_.at(s.name()), extent_of_axis);  // in itself it is one
    threads_ /= extent_of_axis;
    Counts counts;
    CountIterations(s, counts);
    threads_ = threads;
    if (IsThreadLoop(s)) std::swap(block_.at(s.name()), extent_of_axis);
    return counts;
  }

  void CountLoop(Stmt s, Counts& counts) {
    const int64_t extent = std::max<int64_t>(ValueOf(s.extent()).value_or(1), 0);
    counts.branches += extent + 1;
    counts.iterations += extent;
    ForThreadsAround(s, counts);
    CountIterations(s, counts);
  }

  void CountIterations(Stmt s, Counts& counts) {
    const std::optional<int64_t> known_extent = ValueOf(s.extent());
    exact_ = exact_ && known_extent.has_value();
    const int64_t extent = std::max<int64_t>(known_extent.value_or(1), 0);
    const int slot = slots_.at(s.var());
    const Slots& control = stmts_.at(s.body()).control;
    const std::optional<int64_t> min = ValueOf(s.min());
    if (!min || !std::binary_search(control.begin(), control.end(), slot)) {
      values_[slot] = std::nullopt;
      if (extent > 0) Add(counts, CountOf(s.body()), extent);
      return;
    }
    for (int64_t i = 0; i < extent && steps_ <= max_steps_; ++i) {
      values_[slot] = *min + i;
      Add(counts, CountOf(s.body()));
    }
  }

  const Function& function_;
  const int64_t max_steps_;
  int64_t steps_ = 0;
  bool exact_ = true;
  // In a kernel: the threads of each axis that no loop around is over, and how many that makes.
  bool in_kernel_ = false;
  absl::flat_hash_map<std::string_view, int64_t> block_;
  int64_t threads_ = 1;
  absl::flat_hash_map<Var, int> slots_;
  std::vector<std::optional<int64_t>> values_;
  std::vector<Slots> variables_of_;
  absl::flat_hash_map<Expr, ExprInfo> exprs_;
  absl::flat_hash_map<Stmt, StmtInfo> stmts_;
};

}  // namespace

absl::StatusOr<StaticCounts> CountStatically(const Function& function, const IntValues& scalars,
                                             int64_t max_steps) {
  return Counter(function, max_steps).Count(scalars);
}

}  // namespace polynao::ir
