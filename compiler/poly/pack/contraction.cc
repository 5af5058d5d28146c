#include "compiler/poly/pack/contraction.h"

#include <isl/map.h>
#include <isl/set.h>

#include <algorithm>

#include "compiler/ir/affine.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"

namespace polynao::poly {

namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;
using ir::StmtKind;

// The operands of a product that is added to `element`.
struct Product {
  Expr a, b;
};

std::optional<Product> ProductOf(Expr value, Expr element) {
  if (value.Is(ExprKind::kCall) && value.callee() == nullptr && value.name() == "fma") {
    if (value.operand(2) != element) return std::nullopt;
    return Product{value.operand(0), value.operand(1)};
  }
  if (!value.Is(ExprKind::kAdd) && !value.Is(ExprKind::kSub)) return std::nullopt;
  Expr product = value.operand(1);
  if (value.Is(ExprKind::kAdd) && product == element) {
    product = value.operand(0);
  } else if (value.operand(0) != element) {
    return std::nullopt;
  }
  if (!product.Is(ExprKind::kMul)) return std::nullopt;
  return Product{product.operand(0), product.operand(1)};
}

// What is added to `element`, or compared with it; null if `value` is no such thing.
Expr FoldedOf(Expr value, Expr element) {
  const bool is_symmetric =
      value.Is(ExprKind::kAdd) || value.Is(ExprKind::kMax) || value.Is(ExprKind::kMin);
  if (!is_symmetric && !value.Is(ExprKind::kSub)) return {};
  if (value.operand(0) == element) return value.operand(1);
  return is_symmetric && value.operand(1) == element ? value.operand(0) : Expr();
}

// Neighbouring iterations of `loop` load neighbours in memory, or the same element.
bool LoadsAlong(Expr e, ir::Var loop) {
  bool is_along = true;
  ir::ForEachExpr(e, [&](Expr part) {
    if (!part.Is(ExprKind::kLoad)) return;
    for (size_t d = 0; d < part.operands().size(); ++d) {
      if (!ir::UsesVar(part.operand(d), loop)) continue;
      const auto index = ir::Linearize(part.operand(d), {loop});
      is_along &= index && index->coefficients[0] && index->coefficients[0].IsInt(1) &&
                  d == ir::RowDimension(ir::Buffer(part.buffer()));
    }
  });
  return is_along;
}

// Windows: an index of a load moves with a loop of the element's and with one of the sums.
bool LoadsWindows(const Contraction& fold) {
  const std::vector<ir::Var>& iterators = fold.statement->iterators;
  bool has_windows = false;
  ir::ForEachExpr(fold.row_operand, [&](Expr part) {
    if (!part.Is(ExprKind::kLoad)) return;
    for (Expr index : part.operands()) {
      bool has_sum = false, has_other = false;
      for (ir::Var i : iterators) {
        if (!ir::UsesVar(index, i)) continue;
        (ir::UsesVar(fold.element, i) ? has_other : has_sum) = true;
      }
      has_windows |= has_sum && has_other;
    }
  });
  return has_windows;
}

// A value that may be computed at another time, and once for several instances: without calls of functions with
// effects.
bool IsMovable(Expr e) {
  bool is_movable = true;
  ir::ForEachExpr(e, [&](Expr part) {
    is_movable &= part.callee() == nullptr && !part.Is(ExprKind::kAddress);
  });
  return is_movable;
}

// Returns true if the statement's loops have ranges of their own.
bool IsBox(const isl::set& domain, const isl::set& context) {
  isl::set box = isl::set::universe(domain.space());
  const auto n = static_cast<unsigned>(Dimensions(domain));
  for (unsigned d = 0; d < n; ++d) {
    isl::set one = domain;
    one = isl::manage(isl_set_eliminate(one.release(), isl_dim_set, 0, d));
    one = isl::manage(isl_set_eliminate(one.release(), isl_dim_set, d + 1, n - d - 1));
    box = box.intersect(one);
  }
  return box.intersect_params(context).is_subset(domain);
}

const Access* WriteOf(const Statement& statement) {
  const Access* write = nullptr;
  for (const Access& access : statement.accesses) {
    if (!access.is_write) continue;
    if (write != nullptr) return nullptr;
    write = &access;
  }
  const bool is_element =
      write != nullptr && write->is_must && write->indices.size() == write->buffer->extents.size();
  return is_element ? write : nullptr;
}

// The loop whose iterations store neighbours along a dimension: its index is the only one that has it, plain.
std::optional<size_t> LaneOf(Stmt store, size_t row, const std::vector<ir::Var>& iterators) {
  const std::optional<ir::Affine> last = ir::Linearize(store.indices()[row], iterators);
  if (!last) return std::nullopt;
  for (size_t i = 0; i < iterators.size(); ++i) {
    const Expr slope = last->coefficients[i];
    if (!slope || !slope.IsInt(1)) continue;
    const auto rest = store.indices().subspan(0, row);
    if (std::none_of(rest.begin(), rest.end(),
                     [&](Expr index) { return ir::UsesVar(index, iterators[i]); })) {
      return i;
    }
  }
  return std::nullopt;
}

// Returns true if instances that differ in a loop that selects elements store different elements.
bool StoresEachOnce(const isl::map& write, const std::vector<size_t>& sums) {
  isl::map map = write;
  for (size_t i = sums.size(); i-- > 0;) {
    map = isl::manage(
        isl_map_project_out(map.release(), isl_dim_in, static_cast<unsigned>(sums[i]), 1));
  }
  return isl_map_is_injective(map.get()) == isl_bool_true;
}

// The roles of the loops if both operands have the lanes: elements of the row operand, neighbours in memory as those of
// the result, are multiplied by those of the column operand, which has no other loop of the result's.
bool SetLanewise(const Statement& statement, size_t lane, Contraction& result) {
  const auto uses = [&](Expr e, size_t i) { return ir::UsesVar(e, statement.iterators[i]); };
  const auto is_filter = [&](Expr operand) {
    for (size_t i = 0; i < statement.iterators.size(); ++i) {
      if (i != lane && uses(result.element, i) && uses(operand, i)) return false;
    }
    return true;
  };
  if (result.column_operand) {
    if (is_filter(result.row_operand)) std::swap(result.row_operand, result.column_operand);
    if (!is_filter(result.column_operand)) return false;
  }
  for (size_t i = 0; i < statement.iterators.size(); ++i) {
    if (!uses(result.element, i)) {
      result.sums.push_back(i);
    } else if (i != lane) {
      result.batch.push_back(i);
    }
  }
  if (result.batch.empty() || result.sums.empty()) return false;
  result.rows = {result.batch.back()};
  result.batch.pop_back();
  result.columns = {lane};
  result.is_lanewise = true;
  return true;
}

}  // namespace

std::optional<Contraction> FindContraction(const Scop& scop, const Statement& statement) {
  const Stmt store = statement.code;
  if (statement.is_opaque || !store.Is(StmtKind::kStore)) return std::nullopt;
  const Access* write = WriteOf(statement);
  if (write == nullptr) return std::nullopt;
  // Sums of narrow floats have no vectors.
  if (store.buffer()->type == ir::Type::kF16 || store.buffer()->type == ir::Type::kBF16)
    return std::nullopt;
  Contraction result{.statement = &statement};
  result.element = store.context().Load(store.buffer(), store.indices());
  if (const std::optional<Product> product = ProductOf(store.value(), result.element)) {
    result.row_operand = product->a, result.column_operand = product->b;
  } else {
    result.row_operand = FoldedOf(store.value(), result.element);
    if (!result.row_operand) return std::nullopt;
  }
  for (Expr operand : {result.row_operand, result.column_operand}) {
    if (operand && (ir::UsesBuffer(operand, store.buffer()) || !IsMovable(operand)))
      return std::nullopt;
  }
  // The element is read once and written once; nothing else may be at its place.
  const std::string array = RangeName(write->map);
  if (std::count_if(statement.accesses.begin(), statement.accesses.end(),
                    [&](const Access& a) { return RangeName(a.map) == array; }) != 2) {
    return std::nullopt;
  }
  if (store.indices().empty()) return std::nullopt;
  // Products of one column have a vector of their own: it is what panels of constants are made of.
  const size_t back = store.indices().size() - 1;
  const size_t row = result.column_operand ? back : ir::RowDimension(store.buffer()).value_or(back);
  const std::optional<size_t> lane = LaneOf(store, row, statement.iterators);
  if (!lane) return std::nullopt;
  const auto uses = [&](Expr e, size_t i) { return ir::UsesVar(e, statement.iterators[i]); };
  const bool is_lanewise = result.column_operand
                               ? uses(result.column_operand, *lane)
                               : LoadsAlong(result.row_operand, statement.iterators[*lane]);
  if (!result.column_operand && !(is_lanewise && LoadsWindows(result))) return std::nullopt;
  if (uses(result.row_operand, *lane) && is_lanewise) {
    if (!SetLanewise(statement, *lane, result) || !IsBox(statement.domain, scop.context) ||
        !StoresEachOnce(write->map.intersect_domain(statement.domain), result.sums)) {
      return std::nullopt;
    }
    return result;
  }
  if (!result.column_operand) return std::nullopt;
  if (uses(result.row_operand, *lane)) std::swap(result.row_operand, result.column_operand);
  for (size_t i = 0; i < statement.iterators.size(); ++i) {
    const bool row = uses(result.row_operand, i), column = uses(result.column_operand, i);
    if (!uses(result.element, i)) {
      result.sums.push_back(i);
    } else if (row && column) {
      result.batch.push_back(i);
    } else if (row) {
      result.rows.push_back(i);
    } else if (!column) {
      return std::nullopt;
    } else if (i != *lane) {
      result.columns.push_back(i);
    }
  }
  if (!uses(result.column_operand, *lane) || uses(result.row_operand, *lane)) return std::nullopt;
  result.columns.push_back(*lane);
  if (result.sums.empty()) return std::nullopt;
  if (!IsBox(statement.domain, scop.context)) return std::nullopt;
  if (!StoresEachOnce(write->map.intersect_domain(statement.domain), result.sums))
    return std::nullopt;
  return result;
}

bool CanBegin(const Scop& scop, const Statement& initial, const Contraction& contraction) {
  const Stmt store = initial.code;
  if (initial.is_opaque || !store.Is(StmtKind::kStore)) return false;
  const Access* write = WriteOf(initial);
  const Access* update = WriteOf(*contraction.statement);
  if (write == nullptr || write->buffer != update->buffer || !IsMovable(store.value()))
    return false;
  // Its indices are its loops, so that an element says which iteration stores it.
  if (initial.iterators.size() != store.indices().size()) return false;
  for (ir::Var iterator : initial.iterators) {
    if (std::count(store.indices().begin(), store.indices().end(), Expr(iterator)) != 1)
      return false;
  }
  for (const Access& read : initial.accesses) {
    if (read.is_write) continue;
    for (const Statement& other : scop.statements) {
      for (const Access& access : other.accesses) {
        if (access.is_write && RangeName(access.map) == RangeName(read.map)) return false;
      }
    }
  }
  const isl::set context = contraction.statement->domain.params().intersect(scop.context);
  const isl::set begun =
      write->map.intersect_domain(initial.domain).range().intersect_params(context);
  const isl::set updated =
      update->map.intersect_domain(contraction.statement->domain).range().intersect_params(context);
  return begun.is_equal(updated);
}

namespace {

// The code generator makes vectors of the value.
bool HasVectors(Expr value) {
  bool has_vectors = true;
  ir::ForEachExpr(value, [&](Expr e) {
    const bool is_narrow = e.type() == ir::Type::kF16 || e.type() == ir::Type::kBF16;
    if (is_narrow && e.Is(ExprKind::kCast)) has_vectors &= e.operand(0).type() == ir::Type::kF32;
    if (!e.Is(ExprKind::kCall)) return;
    const ir::PureIntrinsic* intrinsic = ir::FindPureIntrinsic(e.name());
    has_vectors &= intrinsic != nullptr && ir::HasVectorForm(*intrinsic, e.type());
  });
  return has_vectors;
}

// The indices are the statement's loops, each once.
bool AreIterators(absl::Span<const Expr> indices, const Statement& statement) {
  if (indices.size() != statement.iterators.size()) return false;
  return std::all_of(statement.iterators.begin(), statement.iterators.end(), [&](ir::Var i) {
    return std::count(indices.begin(), indices.end(), Expr(i)) == 1;
  });
}

}  // namespace

bool CanEnd(const Scop& scop, const Statement& last, const Contraction& contraction) {
  const Stmt store = last.code;
  if (last.is_opaque || !store.Is(StmtKind::kStore)) return false;
  const Access* write = WriteOf(last);
  const Access* update = WriteOf(*contraction.statement);
  if (write == nullptr || !IsMovable(store.value()) || !HasVectors(store.value())) return false;
  const std::string sums = RangeName(update->map), results = RangeName(write->map);
  if (!scop.IsPrivate(update->buffer)) return false;
  // Nobody else has the sums, and the contraction knows nothing of the results.
  for (const Statement& s : scop.statements) {
    const bool is_part = &s == contraction.statement || &s == contraction.initial;
    for (const Access& access : s.accesses) {
      const std::string array = RangeName(access.map);
      if (array == sums && !is_part && &s != &last) return false;
      if (array == results && is_part) return false;
    }
  }
  const Access* read = nullptr;
  for (const Access& access : last.accesses) {
    if (access.is_write) continue;
    const std::string array = RangeName(access.map);
    if (array == results) return false;
    if (array == sums && read != nullptr) return false;
    if (array == sums) read = &access;
  }
  if (read == nullptr || !read->is_must) return false;
  bool is_element = true;
  ir::ForEachExpr(store.value(), [&](Expr e) {
    if (!e.Is(ExprKind::kLoad) || ir::Buffer(e.buffer()) != update->buffer) return;
    is_element &= AreIterators(e.operands(), last);
  });
  if (!is_element) return false;
  const isl::set context = contraction.statement->domain.params().intersect(scop.context);
  const isl::set needed = read->map.intersect_domain(last.domain).range().intersect_params(context);
  return needed.is_equal(update->map.intersect_domain(contraction.statement->domain)
                             .range()
                             .intersect_params(context));
}

}  // namespace polynao::poly
