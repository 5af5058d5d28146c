#include "compiler/passes/tensor_pattern.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <utility>

#include "base/text.h"
#include "compiler/ir/flat_index.h"
#include "compiler/ir/text.h"

namespace polynao {
namespace {

using arith::Analyzer;
using ir::Buffer;
using ir::Context;
using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;
using ir::Type;
using ir::Var;

// No stride, extent or distance that InStoredOrder adds up is larger.
constexpr int64_t kMaxStride = int64_t{1} << 31;

std::optional<ir::Affine> PatternIndex(Buffer buffer, absl::Span<const Expr> indices,
                                       absl::Span<const Var> vars) {
  std::optional<ir::Affine> index = ir::Linearize(ir::FlatIndex(buffer.node(), indices), vars);
  if (index && index->constant) return std::nullopt;
  return index;
}

// The first statement below loops and pragmas.
Stmt Leaf(Stmt s) {
  while (s.Is(StmtKind::kFor) || s.Is(StmtKind::kPragma)) s = s.body();
  return s;
}

bool LoadsStored(Stmt store) {
  bool loads = false;
  ir::ForEachExpr(store.value(), [&](Expr e) {
    loads = loads || (e.Is(ExprKind::kLoad) && Buffer(e.buffer()) == store.buffer() &&
                      std::equal(e.operands().begin(), e.operands().end(), store.indices().begin(),
                                 store.indices().end()));
  });
  return loads;
}

// The reason why `leaf` cannot be the body of a nest.
std::string WhyNoNest(Stmt leaf) {
  Stmt guard;
  std::string thread;
  ir::ForEachStmt(leaf, [&](Stmt s) {
    if (!guard && s.Is(StmtKind::kIf)) guard = s;
    if (s.Is(StmtKind::kFor) && s.for_kind() == ir::ForKind::kThread) thread = s.var().name();
    return true;
  });
  if (!thread.empty()) return StrCat("the thread loop '", thread, "' stands inside");
  if (guard) return StrCat("a guard stands inside: ", ir::PrintFirstLine(guard));
  return "the body is neither one store nor a constant stored and then updated";
}

// Turns a nest of the program into a TensorNest.
class NestMaker {
 public:
  NestMaker(Analyzer& analyzer, std::string& reason)
      : analyzer_(analyzer), c_(analyzer.context()), reason_(reason) {}

  std::optional<TensorNest> Make(Stmt root) {
    TensorNest nest{.root = root};
    Analyzer::Scope scope(analyzer_);
    std::vector<Stmt> common;
    const Stmt leaf = Descend(root, common);
    std::vector<Stmt> init_loops;
    std::vector<Stmt> update_loops;
    const NestShape shape = ShapeOf(leaf);
    nest.store = shape.store;
    if (!shape.store) {
      reason_ = WhyNoNest(leaf);
      return std::nullopt;
    }
    if (shape.initialises) {
      nest.init = Descend(leaf.children()[0], init_loops);
      Descend(leaf.children()[1], update_loops);
    }
    std::vector<Stmt> all = common;
    all.insert(all.end(), init_loops.begin(), init_loops.end());
    all.insert(all.end(), update_loops.begin(), update_loops.end());
    for (Stmt loop : all) {
      if (loop.for_kind() == ir::ForKind::kThread) {
        reason_ = StrCat("the thread loop '", loop.var().name(), "' stands inside");
        return std::nullopt;
      }
      if (loop.extent().Is(ExprKind::kIntImm) && loop.extent().int_value() <= 0) {
        reason_ = StrCat("the loop '", loop.var().name(), "' has no iteration");
        return std::nullopt;
      }
      if (loop.min().Is(ExprKind::kIntImm) && loop.extent().Is(ExprKind::kIntImm)) continue;
      for (Stmt other : all) {
        if (ir::UsesVar(loop.min(), other.var()) || ir::UsesVar(loop.extent(), other.var())) {
          reason_ = StrCat("the bounds of '", loop.var().name(), "' depend on '",
                           other.var().name(), "'");
          return std::nullopt;
        }
      }
    }
    for (Stmt loop : common) AddLoop(nest, loop);
    nest.max_around = nest.outer_loops = nest.loops.size();
    for (Stmt loop : update_loops) AddLoop(nest, loop);
    if (!nest.init) nest.outer_loops = nest.loops.size();

    if (!AddAccesses(nest)) return std::nullopt;
    if (nest.init && !MatchInit(nest, init_loops)) return std::nullopt;
    FindJoinable(nest);
    return nest;
  }

  void FindJoinable(TensorNest& nest) {
    nest.joinable.assign(nest.loops.size(), false);
    for (size_t k = 0; k + 1 < nest.loops.size(); ++k) {
      const Expr inner = nest.loops[k + 1].extent;
      bool joinable = k + 1 != nest.outer_loops;
      const auto check = [&](const NestAccess& a) {
        joinable = joinable && Equal(a.coefficients[k], Times(a.coefficients[k + 1], inner));
      };
      check(nest.target);
      for (const auto& [load, access] : nest.loads) check(access);
      nest.joinable[k] = joinable;
    }
  }

 private:
  // Collects the loops above the leaf of `s` and makes their ranges known.
  Stmt Descend(Stmt s, std::vector<Stmt>& loops) {
    for (; s.Is(StmtKind::kFor) || s.Is(StmtKind::kPragma); s = s.body()) {
      if (!s.Is(StmtKind::kFor)) continue;
      loops.push_back(s);
      // A negative extent means no iteration, but a count must not be negative. This is proved
      // before the loop is bound, because inside it the extent is known to be positive.
      const Expr zero = c_.Int(s.extent().type(), 0);
      const bool not_negative = s.extent().Is(ExprKind::kIntImm)
                                    ? s.extent().int_value() >= 0
                                    : analyzer_.CanProve(zero <= s.extent());
      extent_[s] = Wide(not_negative ? s.extent() : ir::Max(s.extent(), zero));
      analyzer_.BindLoop(s.var(), s.min(), s.extent());
    }
    return s;
  }

  Expr Wide(Expr e) {
    if (e.Is(ExprKind::kIntImm)) return c_.I64(e.int_value());
    return analyzer_.Simplify(c_.Cast(Type::kI64, e));
  }

  Expr Times(Expr a, Expr b) {
    if (a.Is(ExprKind::kIntImm) && b.Is(ExprKind::kIntImm)) {
      return c_.I64(a.int_value() * b.int_value());
    }
    return a * b;
  }

  bool Equal(Expr a, Expr b) {
    if (a.Is(ExprKind::kIntImm) && b.Is(ExprKind::kIntImm)) return a == b;
    return a == b || analyzer_.CanProve(ir::Eq(a, b));
  }

  void AddLoop(TensorNest& nest, Stmt loop) {
    const Expr extent = extent_.at(loop);
    if (extent.IsInt(1)) {
      nest.single[loop.var()] = loop.min();
    } else {
      nest.loops.push_back({loop, extent});
    }
  }

  std::optional<NestAccess> MakeAccess(Buffer buffer, absl::Span<const Expr> indices,
                                       absl::Span<const Var> vars) {
    if (indices.size() != 1) {
      reason_ = "the buffers are not flattened";
      return std::nullopt;
    }
    const std::optional<ir::Affine> affine = ir::Linearize(indices[0], vars);
    if (!affine) {
      reason_ = StrCat("an index is not linear in the loop variables: ", buffer->name, "[",
                       ir::Print(indices[0]), "]");
      return std::nullopt;
    }
    NestAccess access{.buffer = buffer, .index = indices[0]};
    for (Expr coefficient : affine->coefficients) {
      access.coefficients.push_back(coefficient ? Wide(coefficient) : c_.I64(0));
    }
    return access;
  }

  bool AddAccesses(TensorNest& nest) {
    std::vector<Var> vars;
    for (const NestLoop& loop : nest.loops) vars.push_back(loop.loop.var());
    std::optional<NestAccess> target = MakeAccess(nest.store.buffer(), nest.store.indices(), vars);
    bool ok = target.has_value();
    if (ok) nest.target = *std::move(target);
    ir::ForEachExpr(nest.store.value(), [&](Expr e) {
      if (!ok || !e.Is(ExprKind::kLoad)) return;
      std::optional<NestAccess> access = MakeAccess(Buffer(e.buffer()), e.operands(), vars);
      ok = access.has_value();
      if (ok) nest.loads[e] = *std::move(access);
    });
    return ok;
  }

  // For each loop around the initialisation alone, finds the loop of the update that runs over the
  // same elements and moves it out. Both then touch the same elements in each iteration of the
  // outer loops.
  bool MatchInit(TensorNest& nest, absl::Span<const Stmt> init_loops) {
    reason_ =
        StrCat("'", nest.init.buffer()->name, "' is initialised and updated at different places");
    TensorNest init{.root = nest.root};
    for (size_t k = 0; k < nest.max_around; ++k) init.loops.push_back(nest.loops[k]);
    init.single = nest.single;
    for (Stmt loop : init_loops) AddLoop(init, loop);
    std::vector<Var> vars;
    for (const NestLoop& loop : init.loops) vars.push_back(loop.loop.var());
    const std::optional<NestAccess> access =
        MakeAccess(nest.init.buffer(), nest.init.indices(), vars);
    if (!access) return false;

    std::vector<size_t> order;  // of the update's loops, outer ones first
    for (size_t k = 0; k < nest.max_around; ++k) order.push_back(k);
    for (size_t i = nest.max_around; i < init.loops.size(); ++i) {
      bool found = false;
      for (size_t k = nest.max_around; k < nest.loops.size() && !found; ++k) {
        found = std::find(order.begin(), order.end(), k) == order.end() &&
                Equal(nest.loops[k].extent, init.loops[i].extent) &&
                Equal(nest.target.coefficients[k], access->coefficients[i]);
        if (found) order.push_back(k);
      }
      if (!found) return false;
    }
    const size_t outer_loops = order.size();
    for (size_t k = nest.max_around; k < nest.loops.size(); ++k) {
      if (std::find(order.begin(), order.end(), k) != order.end()) continue;
      if (!nest.target.coefficients[k].IsInt(0)) return false;
      order.push_back(k);
    }
    // In the first iterations of their own loops both access the same element.
    ir::VarMap begin = init.single;
    begin.insert(nest.single.begin(), nest.single.end());
    for (size_t i = nest.max_around; i < init.loops.size(); ++i) {
      begin[init.loops[i].loop.var()] = init.loops[i].loop.min();
    }
    for (size_t k = nest.max_around; k < nest.loops.size(); ++k) {
      begin[nest.loops[k].loop.var()] = nest.loops[k].loop.min();
    }
    if (!Equal(Wide(ir::Substitute(access->index, begin)),
               Wide(ir::Substitute(nest.target.index, begin)))) {
      return false;
    }
    Reorder(nest, order);
    nest.outer_loops = outer_loops;
    // Loops that stay around the instruction must contain both nests.
    reason_.clear();
    return true;
  }

 public:
  static void Reorder(TensorNest& nest, absl::Span<const size_t> order) {
    std::vector<NestLoop> loops;
    for (size_t k : order) loops.push_back(nest.loops[k]);
    nest.loops = std::move(loops);
    const auto reorder = [&](NestAccess& access) {
      std::vector<Expr> coefficients;
      for (size_t k : order) coefficients.push_back(access.coefficients[k]);
      access.coefficients = std::move(coefficients);
    };
    reorder(nest.target);
    for (auto& [load, access] : nest.loads) reorder(access);
  }

 private:
  Analyzer& analyzer_;
  Context& c_;
  std::string& reason_;
  absl::flat_hash_map<Stmt, Expr> extent_;  // i64, of each loop
};

}  // namespace

NestShape ShapeOf(Stmt root) {
  const Stmt leaf = Leaf(root);
  if (leaf.Is(StmtKind::kStore)) return {.store = leaf};
  if (!leaf.Is(StmtKind::kSeq) || leaf.children().size() != 2) return {};
  return ShapeOf(leaf.children()[0], leaf.children()[1]);
}

NestShape ShapeOf(Stmt first, Stmt second) {
  const Stmt init = Leaf(first);
  const Stmt store = Leaf(second);
  if (!init.Is(StmtKind::kStore) || !store.Is(StmtKind::kStore)) return {};
  if (init.buffer() != store.buffer() || !init.value().IsConst() || !LoadsStored(store)) return {};
  return {.store = store, .initialises = true};
}

std::optional<TensorPattern> MakeTensorPattern(const isa::Instruction& instruction,
                                               std::shared_ptr<Context> context) {
  TensorPattern pattern{.instruction = &instruction,
                        .meaning = ir::CloneInto(instruction.meaning, std::move(context))};
  Stmt s = pattern.meaning.body;
  const auto descend = [&] {
    for (; s.Is(StmtKind::kFor); s = s.body()) {
      if (!s.min().IsInt(0)) return false;
      pattern.vars.push_back(s.var());
      pattern.extents.push_back(s.extent());
    }
    return true;
  };
  const NestShape shape = ShapeOf(s);
  if (!shape.store || !descend()) return std::nullopt;
  pattern.outer_loops = pattern.vars.size();
  if (shape.initialises) {
    pattern.init = s.children()[0];
    s = s.children()[1];
    if (!pattern.init.Is(StmtKind::kStore) || !descend()) return std::nullopt;
    if (!std::equal(pattern.init.indices().begin(), pattern.init.indices().end(),
                    shape.store.indices().begin(), shape.store.indices().end())) {
      return std::nullopt;
    }
  }
  if (pattern.vars.empty()) return std::nullopt;
  pattern.store = shape.store;
  pattern.accumulates = LoadsStored(shape.store);
  const std::optional<ir::Affine> store =
      PatternIndex(shape.store.buffer(), shape.store.indices(), pattern.vars);
  if (!store) return std::nullopt;
  pattern.store_index = *store;
  bool linear = true;
  ir::ForEachExpr(shape.store.value(), [&](Expr e) {
    if (!e.Is(ExprKind::kLoad)) return;
    const std::optional<ir::Affine> index =
        PatternIndex(Buffer(e.buffer()), e.operands(), pattern.vars);
    linear = linear && index.has_value();
    if (index) pattern.load_index[e] = *index;
  });
  return linear ? std::optional(std::move(pattern)) : std::nullopt;
}

bool TensorNest::accumulates() const { return LoadsStored(store); }

std::optional<TensorNest> MakeTensorNest(Stmt root, Analyzer& analyzer, std::string& reason) {
  return NestMaker(analyzer, reason).Make(root);
}

TensorNest SortLoops(const TensorNest& nest, size_t around, Analyzer& analyzer) {
  std::vector<size_t> order(around);
  for (size_t k = 0; k < around; ++k) order[k] = k;
  for (const bool stored : {true, false}) {
    for (size_t k = around; k < nest.loops.size(); ++k) {
      if (nest.target.coefficients[k].IsInt(0) != stored) order.push_back(k);
    }
  }
  TensorNest sorted = nest;
  if (std::is_sorted(order.begin(), order.end())) return sorted;
  NestMaker::Reorder(sorted, order);
  std::string reason;
  NestMaker(analyzer, reason).FindJoinable(sorted);
  return sorted;
}

std::optional<TensorNest> InStoredOrder(const TensorNest& nest, size_t around, Analyzer& analyzer) {
  if (nest.init) return std::nullopt;
  for (const auto& [load, access] : nest.loads) {
    if (access.buffer == nest.target.buffer && access.index != nest.target.index) {
      return std::nullopt;
    }
  }
  // By stride, the number of the loop.
  std::vector<std::pair<int64_t, size_t>> strides;
  for (size_t k = around; k < nest.loops.size(); ++k) {
    const Expr stride = nest.target.coefficients[k];
    if (!stride.Is(ExprKind::kIntImm) || !nest.loops[k].extent.Is(ExprKind::kIntImm)) {
      return std::nullopt;
    }
    if (stride.int_value() == 0 || std::abs(stride.int_value()) >= kMaxStride ||
        nest.loops[k].extent.int_value() >= kMaxStride) {
      return std::nullopt;
    }
    strides.emplace_back(std::abs(stride.int_value()), k);
  }
  std::sort(strides.begin(), strides.end(), std::greater<>());
  // Each stride exceeds what the loops inside reach, so no two iterations store one element.
  int64_t reach = 0;
  for (size_t i = strides.size(); i-- > 0;) {
    const auto [stride, k] = strides[i];
    if (stride <= reach) return std::nullopt;
    reach += stride * (nest.loops[k].extent.int_value() - 1);
    if (reach >= kMaxStride) return std::nullopt;
  }
  std::vector<size_t> order(around);
  for (size_t k = 0; k < around; ++k) order[k] = k;
  for (const auto& [stride, k] : strides) order.push_back(k);
  TensorNest ordered = nest;
  bool changed = !std::is_sorted(order.begin(), order.end());
  for (size_t k = around; k < nest.loops.size(); ++k) {
    if (nest.target.coefficients[k].int_value() > 0) continue;
    const auto negate = [&](NestAccess& access) {
      Expr& coefficient = access.coefficients[k];
      coefficient = analyzer.Simplify(coefficient * -1);
    };
    ordered.loops[k].backwards = true;
    negate(ordered.target);
    for (auto& [load, access] : ordered.loads) negate(access);
    changed = true;
  }
  if (!changed) return std::nullopt;
  NestMaker::Reorder(ordered, order);
  std::string reason;
  NestMaker(analyzer, reason).FindJoinable(ordered);
  return ordered;
}

}  // namespace polynao
