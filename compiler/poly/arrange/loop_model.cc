#include "compiler/poly/arrange/loop_model.h"

#include <isl/aff.h>
#include <isl/map.h>
#include <isl/set.h>
#include <isl/val.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/type.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/isl/estimate.h"

namespace polynao::poly {

namespace {

// Cycles of operations that a processor does not start each cycle.
constexpr double kDivisionCycles = 8;
constexpr double kCallCycles = 20;
// Until the result of a sum or product, and of a division, is there.
constexpr double kArithmeticLatency = 4;
constexpr double kDivisionLatency = 13;

using Row = std::vector<int64_t>;  // coefficients of the iterators

// The function of the only piece; nothing if there are several.
std::optional<isl::aff> OnlyPiece(const isl::pw_aff& f) {
  if (isl_pw_aff_n_piece(f.get()) != 1) return std::nullopt;
  std::optional<isl::aff> found;
  isl_pw_aff_foreach_piece(
      f.get(),
      [](isl_set* set, isl_aff* aff, void* result) {
        isl::manage(set);
        *static_cast<std::optional<isl::aff>*>(result) = isl::manage(aff);
        return isl_stat_ok;
      },
      &found);
  return found;
}

// The coefficients of an affine function without quotients.
std::optional<Row> RowOf(const isl::pw_aff& f, int iterators) {
  const std::optional<isl::aff> aff = OnlyPiece(f);
  if (!aff) return std::nullopt;
  for (int i = 0; i < isl_aff_dim(aff->get(), isl_dim_div); ++i) {
    if (!isl::manage(isl_aff_get_coefficient_val(aff->get(), isl_dim_div, i)).is_zero())
      return std::nullopt;
  }
  Row row;
  for (int i = 0; i < iterators; ++i) {
    const isl::val v = isl::manage(isl_aff_get_coefficient_val(aff->get(), isl_dim_in, i));
    if (!v.is_int()) return std::nullopt;
    row.push_back(isl_val_get_num_si(v.get()));
  }
  return row;
}

// Whether `row` is not a sum of multiples of `rows`, which are independent of each other.
bool IsIndependent(const std::vector<Row>& rows, const Row& row) {
  std::vector<Row> a = rows;
  a.push_back(row);
  size_t done = 0;
  for (size_t column = 0; column < row.size() && done < a.size(); ++column) {
    size_t pivot = done;
    while (pivot < a.size() && a[pivot][column] == 0) ++pivot;
    if (pivot == a.size()) continue;
    std::swap(a[done], a[pivot]);
    for (size_t r = done + 1; r < a.size(); ++r) {
      const int64_t p = a[done][column], q = a[r][column];
      if (q == 0) continue;
      for (size_t c = 0; c < row.size(); ++c) a[r][c] = a[r][c] * p - a[done][c] * q;
    }
    ++done;
  }
  return done == a.size();
}

// By how much the iterators change when the row `one` grows by one and the other rows stay: the solution x of
// rows * x = e. Nothing if no such integers exist, or several do.
std::optional<Row> StepOf(const std::vector<Row>& rows, size_t one, int iterators) {
  const auto n = static_cast<size_t>(iterators);
  // Gauss-Jordan elimination with fractions avoided: rows stay integer multiples.
  std::vector<Row> a;
  for (size_t r = 0; r < rows.size(); ++r) {
    Row row = rows[r];
    row.push_back(r == one ? 1 : 0);
    a.push_back(std::move(row));
  }
  size_t done = 0;
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = done;
    while (pivot < a.size() && a[pivot][column] == 0) ++pivot;
    if (pivot == a.size()) return std::nullopt;  // the rows leave this iterator open
    std::swap(a[done], a[pivot]);
    for (size_t r = 0; r < a.size(); ++r) {
      if (r == done || a[r][column] == 0) continue;
      const int64_t p = a[done][column], q = a[r][column];
      for (size_t c = 0; c <= n; ++c) a[r][c] = a[r][c] * p - a[done][c] * q;
    }
    ++done;
  }
  for (size_t r = done; r < a.size(); ++r) {
    if (a[r][n] != 0) return std::nullopt;
  }
  Row step(n, 0);
  for (size_t c = 0; c < n; ++c) {
    if (a[c][n] % a[c][c] != 0) return std::nullopt;
    step[c] = a[c][n] / a[c][c];
  }
  return step;
}

// The arithmetic of a statement's code. `varies` tells along which members a variable, or a loaded element, differs.
class OperationCounter {
 public:
  explicit OperationCounter(const absl::flat_hash_map<ir::Var, unsigned>& varies)
      : varies_(varies) {}

  void Count(ir::Stmt code, StatementModel& s) {
    ir::AnyStmt(code, [&](ir::Stmt part) {
      if (part.Is(ir::StmtKind::kStore)) stored_.insert(part.buffer());
      return false;
    });
    ir::AnyStmt(code, [&](ir::Stmt part) {
      if (part.Is(ir::StmtKind::kStore)) {
        // Indices cost nothing.
        s.chain_cycles = std::max(s.chain_cycles, Visit(part.value()).chain.value_or(0));
      } else {
        for (ir::Expr e : part.operands()) Visit(e);
      }
      return false;
    });
    s.operations = std::move(operations_);
  }

 private:
  struct Known {
    unsigned mask = 0;
    std::optional<double> chain;  // the shortest way from an element that the statement stores
  };

  Known Visit(ir::Expr e) {
    if (const auto it = seen_.find(e); it != seen_.end()) return it->second;
    const Known known = VisitNew(e);
    seen_.emplace(e, known);
    return known;
  }

  Known VisitNew(ir::Expr e) {
    if (e.Is(ir::ExprKind::kVar)) {
      const auto it = varies_.find(e);
      return {.mask = it != varies_.end() ? it->second : 0, .chain = std::nullopt};
    }
    const size_t before = operations_.size();
    Known known;
    for (ir::Expr operand : e.operands()) {
      const Known part = Visit(operand);
      known.mask |= part.mask;
      if (part.chain) known.chain = std::min(*part.chain, known.chain.value_or(*part.chain));
    }
    if (e.Is(ir::ExprKind::kLoad)) {
      operations_.resize(before);
      known.chain.reset();
      if (stored_.contains(ir::Buffer(e.buffer()))) known.chain = 0;
      return known;
    }
    if (e.operands().empty() || e.Is(ir::ExprKind::kCast)) return known;
    double cycles = 1, latency = kArithmeticLatency;
    if (e.Is(ir::ExprKind::kCall)) cycles = latency = kCallCycles;
    // Counted as one operation with a product, whether or not it may be contracted: loads weigh more then.
    if ((e.Is(ir::ExprKind::kAdd) || e.Is(ir::ExprKind::kSub)) && !operations_.empty() &&
        std::any_of(e.operands().begin(), e.operands().end(),
                    [](ir::Expr operand) { return operand.Is(ir::ExprKind::kMul); })) {
      cycles = latency = 0;
    }
    if (ir::IsFloat(e.type()) && (e.Is(ir::ExprKind::kDiv) || e.Is(ir::ExprKind::kMod))) {
      cycles = kDivisionCycles;
      latency = kDivisionLatency;
    }
    operations_.emplace_back(cycles, known.mask);
    if (known.chain) *known.chain += latency;
    return known;
  }

  const absl::flat_hash_map<ir::Var, unsigned>& varies_;
  absl::flat_hash_set<ir::Buffer> stored_;
  absl::flat_hash_map<ir::Expr, Known> seen_;
  std::vector<std::pair<double, unsigned>> operations_;
};

int64_t ExtentOf(const isl::set& domain, const isl::pw_aff& f) {
  const std::optional<isl::aff> aff = OnlyPiece(f);
  if (!aff) return 1;
  const isl::val low = isl::manage(isl_set_min_val(domain.get(), aff->get()));
  const isl::val high = isl::manage(isl_set_max_val(domain.get(), aff->get()));
  if (!low.is_int() || !high.is_int()) return 1;
  const int64_t extent = isl_val_get_num_si(high.get()) - isl_val_get_num_si(low.get()) + 1;
  return std::max<int64_t>(extent, 1);
}

int64_t ExtentOf(const isl::set& domain, int iterator) {
  return ExtentOf(domain, isl::manage(isl_pw_aff_from_aff(isl_aff_var_on_domain(
                              isl_local_space_from_space(isl_set_get_space(domain.get())),
                              isl_dim_set, static_cast<unsigned>(iterator)))));
}

bool IsSameMap(const isl::map& a, const isl::map& b) {
  return isl_map_plain_is_equal(a.get(), b.get()) == isl_bool_true;
}

// The functions of a band, or of the loops around it, for one statement.
std::vector<isl::pw_aff> FunctionsOf(const isl::multi_union_pw_aff& schedule,
                                     const isl::set& domain) {
  std::vector<isl::pw_aff> functions;
  for (unsigned i = 0; i < schedule.size(); ++i) {
    const isl::union_pw_aff f = schedule.at(static_cast<int>(i));
    functions.push_back(isl::manage(isl_union_pw_aff_extract_pw_aff(
        f.get(), isl_space_add_dims(isl_space_from_domain(isl_set_get_space(domain.get())),
                                    isl_dim_out, 1))));
  }
  return functions;
}

}  // namespace

double ArithmeticCycles(const Statement& statement) {
  const absl::flat_hash_map<ir::Var, unsigned> none;
  StatementModel model;
  OperationCounter(none).Count(statement.code, model);
  double sum = 0;
  for (const auto& [cycles, mask] : model.operations) sum += cycles;
  return sum;
}

std::optional<int64_t> LinearAccess::ElementsAlong(int member) const {
  if (!is_linear) return std::nullopt;
  const auto m = static_cast<size_t>(member);
  // Elements of arrays that may overlap are not told apart.
  const bool has_extents = steps.size() == buffer->extents.size();
  constexpr int64_t kMost = int64_t{1} << 40;
  std::optional<int64_t> size = 1;  // elements of what follows the dimension
  int64_t elements = 0;
  for (size_t d = steps.size(); d-- > 0;) {
    const int64_t step = steps[d][m];
    if (step != 0 && (!size || std::abs(step) > kMost / *size)) return std::nullopt;
    if (step != 0) elements += step * *size;
    const bool is_known = size && has_extents && buffer->extents[d].Is(ir::ExprKind::kIntImm);
    const int64_t extent = is_known ? std::max<int64_t>(buffer->extents[d].int_value(), 1) : kMost;
    size = extent < kMost / size.value_or(1) ? std::optional(*size * extent) : std::nullopt;
  }
  return elements;
}

Stride LinearAccess::StrideAlong(int member) const {
  const std::optional<int64_t> elements = ElementsAlong(member);
  if (!elements) return Stride::kOther;
  return *elements == 0    ? Stride::kNone
         : *elements == 1  ? Stride::kOne
         : *elements == -1 ? Stride::kMinusOne
                           : Stride::kOther;
}

double StatementModel::OperationCycles(const std::vector<double>& iterations) const {
  double sum = 0;
  for (const auto& [cycles, mask] : operations) {
    double count = cycles;
    for (size_t m = 0; m < iterations.size(); ++m) {
      if ((mask >> m & 1U) != 0) count *= iterations[m];
    }
    sum += count;
  }
  return sum;
}

double StatementModel::Instances() const {
  double count = 1;
  for (const int64_t extent : extents) count *= static_cast<double>(extent);
  return count;
}

const StatementModel* LoopModel::Find(const std::string& name) const {
  for (const StatementModel& s : statements) {
    if (s.statement->name == name) return &s;
  }
  return nullptr;
}

int64_t LoopModel::Extent(int member) const {
  int64_t most = 1;
  for (const StatementModel& s : statements)
    most = std::max(most, s.extents[static_cast<size_t>(member)]);
  return most;
}

namespace {

// Builds a LoopModel, statement by statement.
class Modeller {
 public:
  Modeller(const Scop& scop, const Place& place, const isl::multi_union_pw_aff& band,
           const AssumedParameters& assumed)
      : scop_(scop), place_(place), band_(band), assumed_(assumed) {
    model_.members = static_cast<int>(band.size());
    model_.all = model_.members + (place.has_prefix ? static_cast<int>(place.prefix.size()) : 0);
  }

  LoopModel Model() && {
    for (const isl::set& domain : SetsOf(place_.domain)) {
      const Statement* statement = scop_.Find(TupleName(domain));
      if (statement != nullptr) Add(*statement, domain);
    }
    model_.groups = static_cast<int>(groups_.size());
    return std::move(model_);
  }

 private:
  // How a member moves the iterators; none: in no single way, or it has one iteration.
  using Moves = std::vector<std::optional<Row>>;

  void Add(const Statement& statement, const isl::set& domain) {
    const isl::set sized = AtAssumed(domain, scop_, assumed_);
    StatementModel s;
    s.statement = &statement;
    s.count = EstimateCount(sized);
    const Moves moves = SetExtents(domain, sized, s);
    LimitExtents(sized, Dimensions(domain), moves, s);
    CountOperations(moves, s);
    AddAccesses(Dimensions(domain), moves, s);
    model_.statements.push_back(std::move(s));
  }

  // Sets the members' extents as if each ran over its whole range.
  Moves SetExtents(const isl::set& domain, const isl::set& sized, StatementModel& s) const {
    const int iterators = Dimensions(domain);
    const auto all = static_cast<size_t>(model_.all);
    // Rows that depend on those further out do not move: in [k = j, i, j] the last member has one iteration.
    std::vector<Row> rows;
    bool all_rows = true;
    const auto add = [&](const isl::pw_aff& f) {
      const std::optional<Row> row = RowOf(f, iterators);
      if (!row) {
        all_rows = false;
        return true;
      }
      if (!IsIndependent(rows, *row)) return false;
      rows.push_back(*row);
      return true;
    };
    std::vector<size_t> row_of(all, 0);  // each member's, if it moves
    s.extents.assign(all, 1);
    const auto add_all = [&](const isl::multi_union_pw_aff& schedule, size_t m) {
      for (const isl::pw_aff& f : FunctionsOf(schedule, domain)) {
        row_of[m] = rows.size();
        if (add(f)) s.extents[m] = ExtentOf(sized, f);
        ++m;
      }
    };
    if (place_.has_prefix) add_all(place_.prefix, static_cast<size_t>(model_.members));
    add_all(band_, 0);
    Moves moves;
    for (int m = 0; m < model_.all; ++m) {
      moves.push_back(all_rows && s.Moves(m)
                          ? StepOf(rows, row_of[static_cast<size_t>(m)], iterators)
                          : std::nullopt);
    }
    return moves;
  }

  // Where loops are skewed, only a part of a member's range has iterations for given values of the others.
  static void LimitExtents(const isl::set& sized, int iterators, const Moves& moves,
                           StatementModel& s) {
    Row box;
    for (int i = 0; i < iterators; ++i) box.push_back(ExtentOf(sized, i));
    for (size_t m = 0; m < moves.size(); ++m) {
      if (!moves[m]) continue;
      for (size_t i = 0; i < box.size(); ++i) {
        const int64_t step = std::llabs((*moves[m])[i]);
        if (step == 0) continue;
        s.extents[m] = std::max<int64_t>(std::min(s.extents[m], box[i] / step), 1);
      }
    }
  }

  static void CountOperations(const Moves& moves, StatementModel& s) {
    absl::flat_hash_map<ir::Var, unsigned> varies;
    for (size_t i = 0; i < s.statement->iterators.size(); ++i) {
      unsigned mask = 0;
      for (size_t m = 0; m < moves.size(); ++m) {
        if (s.Moves(static_cast<int>(m)) && (!moves[m] || (*moves[m])[i] != 0)) mask |= 1U << m;
      }
      varies[s.statement->iterators[i]] = mask;
    }
    OperationCounter(varies).Count(s.statement->code, s);
  }

  void AddAccesses(int iterators, const Moves& moves, StatementModel& s) {
    std::vector<isl::map> seen;  // of s.accesses
    for (const Access& access : s.statement->accesses) {
      bool known = false;
      for (size_t i = 0; i < seen.size() && !known; ++i) {
        if (s.accesses[i].buffer != access.buffer || !IsSameMap(seen[i], access.map)) continue;
        (access.is_write ? s.accesses[i].is_write : s.accesses[i].is_read) = true;
        known = true;
      }
      if (known) continue;
      LinearAccess linear = LinearOf(access, iterators, moves, s);
      Number(access, linear);
      seen.push_back(access.map);
      s.accesses.push_back(std::move(linear));
    }
  }

  // How the indices of an access move with the members.
  static LinearAccess LinearOf(const Access& access, int iterators, const Moves& moves,
                               const StatementModel& s) {
    LinearAccess linear{.buffer = access.buffer,
                        .is_read = !access.is_write,
                        .is_write = access.is_write,
                        .is_linear = isl_map_is_single_valued(access.map.get()) == isl_bool_true,
                        .steps = {}};
    if (!linear.is_linear) return linear;
    const auto dimensions = isl_map_dim(access.map.get(), isl_dim_out);
    const isl::pw_multi_aff f = isl::manage(isl_pw_multi_aff_from_map(access.map.copy()));
    for (int d = 0; d < dimensions && linear.is_linear; ++d) {
      const std::optional<Row> index =
          RowOf(isl::manage(isl_pw_multi_aff_get_pw_aff(f.get(), d)), iterators);
      std::vector<int64_t> steps;
      for (size_t m = 0; m < moves.size() && linear.is_linear; ++m) {
        // A member that does not move with the statement has one iteration.
        if (!s.Moves(static_cast<int>(m))) {
          steps.push_back(0);
          continue;
        }
        linear.is_linear = index && moves[m];
        int64_t step = 0;
        for (size_t i = 0; linear.is_linear && i < static_cast<size_t>(iterators); ++i)
          step += (*index)[i] * (*moves[m])[i];
        steps.push_back(step);
      }
      linear.steps.push_back(std::move(steps));
    }
    if (!linear.is_linear) linear.steps.clear();
    return linear;
  }

  // Accesses that move alike share a group, those to the same elements an element, whatever the statement.
  void Number(const Access& access, LinearAccess& linear) {
    const auto key = std::make_pair(access.buffer, linear.steps);
    const auto at = std::find(groups_.begin(), groups_.end(), key);
    linear.group = static_cast<int>(at - groups_.begin());
    if (at == groups_.end()) groups_.push_back(key);
    const isl::map nameless = isl::manage(isl_map_reset_tuple_id(access.map.copy(), isl_dim_in));
    const auto same = std::find_if(elements_.begin(), elements_.end(), [&](const auto& known) {
      return known.first == linear.group && IsSameMap(known.second, nameless);
    });
    linear.element = static_cast<int>(same - elements_.begin());
    if (same == elements_.end()) elements_.emplace_back(linear.group, nameless);
  }

  const Scop& scop_;
  const Place& place_;
  const isl::multi_union_pw_aff& band_;
  const AssumedParameters& assumed_;
  LoopModel model_;
  std::vector<std::pair<ir::Buffer, std::vector<std::vector<int64_t>>>> groups_;
  std::vector<std::pair<int, isl::map>>
      elements_;  // group, and access without the statement's name
};

}  // namespace

LoopModel ModelOf(const Scop& scop, const Place& place, const isl::multi_union_pw_aff& band,
                  const AssumedParameters& assumed) {
  return Modeller(scop, place, band, assumed).Model();
}

}  // namespace polynao::poly
