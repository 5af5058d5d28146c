#include "compiler/poly/calculator/count.h"

#include <isl/constraint.h>
#include <isl/local_space.h>
#include <isl/mat.h>
#include <isl/point.h>
#include <isl/val.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/poly/calculator/count_polynomial.h"

namespace polynao::poly {
namespace {

// Floors over one variable with a common period up to this are removed by splitting the variable
// by its remainder; longer ones become variables of their own, which costs chambers.
constexpr int kMaxSplit = 60;

// The sum of `summand` over the integer points of { x : equalities = 0, inequalities >= 0 } for
// each value of the fixed variables (numbers 0 .. fixed - 1) in `context`.
struct Piece {
  isl::set context;  // { [fixed] : ... }: what equations ask of the fixed variables alone
  std::vector<IntegerForm> equalities;
  std::vector<IntegerForm> inequalities;
  std::set<int> unknowns;  // the variables to sum over
  QuasiPolynomial summand;
  bool is_simple = false;  // Simplify() was here since the constraints changed
};

class Counter {
 public:
  // The first `fixed` columns of the sets to come (parameters, then dimensions) are not summed over.
  Counter(isl_ctx* context, int fixed, const CountOptions& options)
      : context_(context), fixed_(fixed), next_variable_(fixed), options_(options) {}

  // Counts the set's points `sign` times.
  absl::Status AddBasicSet(const isl::basic_set& part, int sign);
  absl::Status Run();

  // The sum of all results on `space`, a parameter space or a set's.
  IslPwQuasiPolynomial Result(const isl::space& space);

 private:
  absl::StatusOr<bool> Simplify(Piece& piece);
  void Substitute(Piece& piece, int variable, const IntegerForm& numerator,
                  const Integer& denominator);
  void SolveEquality(Piece& piece, size_t index);
  bool DropDetermined(Piece& piece);
  int ChooseVariable(const Piece& piece);
  void LiftFloor(Piece& piece, int floor);
  Integer Period(const QuasiPolynomial& polynomial, int variable) const;
  absl::Status Eliminate(Piece piece, int variable);
  absl::Status Finish(Piece piece);
  absl::Status Push(Piece piece);
  static absl::Status CheckSize(const QuasiPolynomial& sum);

  // An isl number, given.
  isl_val* Number(const Integer& integer) const {
    const size_t limbs = (mpz_sizeinbase(integer.get_mpz_t(), 2) + 63) / 64;
    std::vector<uint64_t> magnitude(limbs);
    mpz_export(magnitude.data(), nullptr, -1, sizeof(uint64_t), 0, 0, integer.get_mpz_t());
    isl_val* const result =
        isl_val_int_from_chunks(context_, limbs, sizeof(uint64_t), magnitude.data());
    return integer < 0 ? isl_val_neg(result) : result;
  }
  // { [fixed] }.
  isl::space Space() const { return isl::manage(isl_space_set_alloc(context_, 0, fixed_)); }
  isl::aff ToAff(const IntegerForm& form, const isl::space& space) const;
  isl::set ToSet(const Piece& piece) const;
  IslQuasiPolynomial ToIsl(const QuasiPolynomial& polynomial, const isl::space& space) const;

  isl_ctx* const context_;
  const int fixed_;
  int next_variable_;
  const CountOptions options_;
  FloorTable floors_;
  std::vector<Piece> work_;
  int pieces_ = 0;
  // { [fixed] }, and the sum there; the sets may overlap.
  std::vector<std::pair<isl::set, QuasiPolynomial>> results_;
};

// The numerator of isl's number (taken).
Integer NumeratorOf(isl_val* taken) {
  const isl::val value = isl::manage(taken);
  Integer result;
  std::vector<uint64_t> limbs(isl_val_n_abs_num_chunks(value.get(), sizeof(uint64_t)));
  isl_val_get_abs_num_chunks(value.get(), sizeof(uint64_t), limbs.data());
  mpz_import(result.get_mpz_t(), limbs.size(), -1, sizeof(uint64_t), 0, 0, limbs.data());
  if (isl_val_is_neg(value.get())) result = -result;
  return result;
}

// The rows of a matrix (taken); the constants are in its last column.
std::vector<IntegerForm> Rows(isl_mat* taken) {
  const IslMatrix matrix(taken);
  const int rows = isl_mat_rows(matrix.get()), columns = isl_mat_cols(matrix.get());
  std::vector<IntegerForm> forms(rows);
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i + 1 < columns; ++i) {
      forms[row].Add(i, NumeratorOf(isl_mat_get_element_val(matrix.get(), row, i)));
    }
    forms[row].constant = NumeratorOf(isl_mat_get_element_val(matrix.get(), row, columns - 1));
  }
  return forms;
}

absl::Status Counter::AddBasicSet(const isl::basic_set& part, int sign) {
  isl_basic_set* set = part.get();
  const int parameters = isl_basic_set_dim(set, isl_dim_param);
  const int dimensions = isl_basic_set_dim(set, isl_dim_set);
  const int divs = isl_basic_set_dim(set, isl_dim_div);
  // The numbers of the variables are those of the columns: parameters, dimensions, divisions.
  Piece piece;
  piece.equalities = Rows(
      isl_basic_set_equalities_matrix(set, isl_dim_param, isl_dim_set, isl_dim_div, isl_dim_cst));
  piece.inequalities = Rows(
      isl_basic_set_inequalities_matrix(set, isl_dim_param, isl_dim_set, isl_dim_div, isl_dim_cst));
  const int first_div = parameters + dimensions;
  next_variable_ = std::max(next_variable_, first_div + divs);
  for (int i = fixed_; i < first_div + divs; ++i) piece.unknowns.insert(i);
  const IslLocalSpace local(isl_basic_set_get_local_space(set));
  for (int i = 0; i < divs; ++i) {
    // 0 <= numerator - denominator * division < denominator.
    const isl::aff div = isl::manage(isl_local_space_get_div(local.get(), i));
    const Integer denominator = NumeratorOf(isl_aff_get_denominator_val(div.get()));
    IntegerForm numerator;
    auto read = [&](isl_dim_type type, int count, int first) {
      for (int j = 0; j < count; ++j) {
        isl_val* value = isl_aff_get_coefficient_val(div.get(), type, j);
        value = isl_val_mul(value, isl_aff_get_denominator_val(div.get()));
        numerator.Add(first + j, NumeratorOf(value));
      }
    };
    read(isl_dim_param, parameters, 0);
    read(isl_dim_in, dimensions, parameters);
    read(isl_dim_div, divs, first_div);
    numerator.constant = NumeratorOf(
        isl_val_mul(isl_aff_get_constant_val(div.get()), isl_aff_get_denominator_val(div.get())));
    numerator.Add(first_div + i, -denominator);
    piece.inequalities.push_back(numerator);
    IntegerForm below;
    below.Add(numerator, -1);
    below.constant += denominator - 1;
    piece.inequalities.push_back(below);
  }
  piece.context = isl::set::universe(Space());
  piece.summand = QuasiPolynomial(Rational(sign));
  return Push(std::move(piece));
}

absl::Status Counter::CheckSize(const QuasiPolynomial& sum) {
  if (!sum.IsTooLarge()) return absl::OkStatus();
  return absl::ResourceExhaustedError("counting makes a polynomial with too many terms");
}

absl::Status Counter::Push(Piece piece) {
  if (++pieces_ > options_.max_pieces) {
    return absl::ResourceExhaustedError(
        StrCat("counting needs more than ", options_.max_pieces, " partial sums"));
  }
  RETURN_IF_ERROR(CheckSize(piece.summand));
  work_.push_back(std::move(piece));
  return absl::OkStatus();
}

// Removes redundant constraints, makes implicit equations explicit. False: there is no point.
absl::StatusOr<bool> Counter::Simplify(Piece& piece) {
  if (piece.is_simple) return true;
  const std::vector<int> unknowns(piece.unknowns.begin(), piece.unknowns.end());
  std::map<int, int> column_of;
  std::vector<int> variable_of;
  for (int i = 0; i < fixed_; ++i) variable_of.push_back(i);
  variable_of.insert(variable_of.end(), unknowns.begin(), unknowns.end());
  for (size_t i = 0; i < variable_of.size(); ++i) column_of[variable_of[i]] = i;
  const int columns = variable_of.size();
  auto matrix = [&](const std::vector<IntegerForm>& forms) {
    isl_mat* result = isl_mat_alloc(context_, forms.size(), columns + 1);
    auto set = [&](int row, int column, Integer value) {
      result = isl_mat_set_element_val(result, row, column, Number(value));
    };
    for (size_t row = 0; row < forms.size(); ++row) {
      for (int i = 0; i < columns; ++i) set(row, i, 0);
      for (const auto& [variable, coefficient] : forms[row].coefficients) {
        set(row, column_of.at(variable), coefficient);
      }
      set(row, columns, forms[row].constant);
    }
    return result;
  };
  isl_basic_set* set = isl_basic_set_from_constraint_matrices(
      isl_space_set_alloc(context_, 0, columns), matrix(piece.equalities),
      matrix(piece.inequalities), isl_dim_param, isl_dim_set, isl_dim_div, isl_dim_cst);
  set = isl_basic_set_detect_equalities(set);
  const isl::basic_set simple = isl::manage(isl_basic_set_remove_redundancies(set));
  if (simple.is_empty()) return false;
  if (isl_basic_set_dim(simple.get(), isl_dim_div) != 0) {
    return absl::InternalError("counting: a simplified polyhedron has an integer division");
  }
  auto read = [&](isl_mat* taken) {
    std::vector<IntegerForm> forms;
    for (const IntegerForm& by_column : Rows(taken)) {
      IntegerForm form;
      form.constant = by_column.constant;
      for (const auto& [column, coefficient] : by_column.coefficients) {
        form.Add(variable_of[column], coefficient);
      }
      forms.push_back(std::move(form));
    }
    return forms;
  };
  piece.equalities = read(isl_basic_set_equalities_matrix(simple.get(), isl_dim_param, isl_dim_set,
                                                          isl_dim_div, isl_dim_cst));
  piece.inequalities = read(isl_basic_set_inequalities_matrix(
      simple.get(), isl_dim_param, isl_dim_set, isl_dim_div, isl_dim_cst));
  piece.is_simple = true;
  return true;
}

// variable := numerator / denominator, in all constraints and in the summand.
void Counter::Substitute(Piece& piece, int variable, const IntegerForm& numerator,
                         const Integer& denominator) {
  piece.is_simple = false;
  for (IntegerForm& form : piece.equalities) {
    form = form.Substituted(variable, numerator, denominator);
  }
  for (IntegerForm& form : piece.inequalities) {
    form = form.Substituted(variable, numerator, denominator);
  }
  piece.summand = piece.summand.Substituted(variable, numerator, denominator, floors_);
}

// Uses an equation with unknowns to remove one of them. Euclid's algorithm on the unknowns'
// coefficients: x := x - q*y is a bijection on the integers, and leaves one unknown in the end,
// whose value is a function of the fixed variables where its coefficient divides that.
void Counter::SolveEquality(Piece& piece, size_t index) {
  while (true) {
    const IntegerForm equation = piece.equalities[index];
    int smallest = -1, others = 0;
    for (const auto& [variable, coefficient] : equation.coefficients) {
      if (variable < fixed_) continue;
      if (smallest >= 0) ++others;
      if (smallest < 0 || abs(coefficient) < abs(equation.CoefficientOf(smallest))) {
        smallest = variable;
      }
    }
    const Integer pivot = equation.CoefficientOf(smallest);
    if (others > 0 && abs(pivot) != 1) {
      IntegerForm replacement;
      replacement.Add(smallest, 1);
      for (const auto& [variable, coefficient] : equation.coefficients) {
        if (variable < fixed_ || variable == smallest) continue;
        Integer quotient = FloorDiv(coefficient, abs(pivot));
        if (pivot < 0) quotient = -quotient;
        replacement.Add(variable, -quotient);
      }
      Substitute(piece, smallest, replacement, 1);
      continue;
    }
    // pivot * smallest + rest = 0.
    IntegerForm rest = equation;
    rest.coefficients.erase(smallest);
    IntegerForm value;
    value.Add(rest, pivot > 0 ? -1 : 1);
    const Integer divisor = abs(pivot);
    piece.equalities.erase(piece.equalities.begin() + index);
    if (divisor != 1) {
      // `rest` has fixed variables only here.
      const isl::aff remainder = ToAff(value, Space()).mod(isl::manage(Number(divisor)));
      piece.context = piece.context.intersect(
          isl::manage(isl_set_from_basic_set(isl_aff_zero_basic_set(remainder.copy()))));
    }
    Substitute(piece, smallest, value, divisor);
    piece.unknowns.erase(smallest);
    return;
  }
}

// The least p > 0 for which every floor over the variable, in variable = p*x + r, is one over other
// variables plus an integral multiple of x.
Integer Counter::Period(const QuasiPolynomial& polynomial, int variable) const {
  Integer period = 1;
  for (int number : polynomial.FloorsWith(variable, floors_)) {
    const FloorTerm& floor = floors_[number];
    const Integer common = gcd(floor.denominator, floor.numerator.CoefficientOf(variable));
    period = lcm(period, floor.denominator / common);
  }
  return period;
}

// Drops an unknown x that no floor and no other constraint has than 0 <= f - c*x < c: for each value of
// the others it has one value, floor(f/c). So are divisions that nothing uses, and tiles of a loop.
bool Counter::DropDetermined(Piece& piece) {
  for (int variable : piece.unknowns) {
    std::vector<size_t> rows;
    for (size_t i = 0; i < piece.inequalities.size(); ++i) {
      if (piece.inequalities[i].CoefficientOf(variable) != 0) rows.push_back(i);
    }
    if (rows.size() != 2) continue;
    IntegerForm sum = piece.inequalities[rows[0]];
    sum.Add(piece.inequalities[rows[1]], 1);
    const Integer size = abs(piece.inequalities[rows[0]].CoefficientOf(variable));
    if (!sum.coefficients.empty() || sum.constant != size - 1) continue;
    if (piece.summand.CoefficientsOf(variable).size() > 1 ||
        !piece.summand.FloorsWith(variable, floors_).empty()) {
      continue;
    }
    piece.inequalities.erase(piece.inequalities.begin() + rows[1]);
    piece.inequalities.erase(piece.inequalities.begin() + rows[0]);
    piece.unknowns.erase(variable);
    return true;
  }
  return false;
}

// The unknown whose elimination makes the fewest pieces.
int Counter::ChooseVariable(const Piece& piece) {
  int best = -1;
  double best_cost = 0;
  for (int variable : piece.unknowns) {
    double lower = 0, upper = 0;
    double new_floors = 0;
    for (const IntegerForm& form : piece.inequalities) {
      const Integer coefficient = form.CoefficientOf(variable);
      if (coefficient == 0) continue;
      (coefficient > 0 ? lower : upper) += 1;
      if (abs(coefficient) == 1) continue;
      // A bound c*x >= y makes a floor over y; a long one becomes a variable with bounds of its own.
      const double floors = abs(coefficient) <= kMaxSplit ? 1 : 4;
      for (const auto& entry : form.coefficients) {
        if (entry.first != variable && entry.first >= fixed_) new_floors += floors;
      }
    }
    const std::set<int> floors = piece.summand.FloorsWith(variable, floors_);
    double split = 1;
    if (!floors.empty()) {
      const Integer period = Period(piece.summand, variable);
      split = period <= kMaxSplit ? period.get_d() : kMaxSplit * 2.0 * floors.size();
    }
    const double cost = lower * upper * split * (1 + new_floors);
    if (best < 0 || cost < best_cost) {
      best = variable;
      best_cost = cost;
    }
  }
  return best;
}

// Makes a floor of the summand an unknown: the one integer f with
// 0 <= numerator - denominator * f < denominator.
void Counter::LiftFloor(Piece& piece, int floor) {
  const int unknown = next_variable_++;
  IntegerForm lower = floors_[floor].numerator;
  lower.Add(unknown, -floors_[floor].denominator);
  IntegerForm upper;
  upper.Add(lower, -1);
  upper.constant += floors_[floor].denominator - 1;
  piece.inequalities.push_back(std::move(lower));
  piece.inequalities.push_back(std::move(upper));
  piece.unknowns.insert(unknown);
  piece.is_simple = false;
  IntegerForm value;
  value.Add(unknown, 1);
  piece.summand = piece.summand.Replaced({{~floor, QuasiPolynomial::Quotient(value, 1)}});
}

// Sums over one unknown, which no equation and no floor has.
absl::Status Counter::Eliminate(Piece piece, int variable) {
  std::vector<std::pair<Integer, IntegerForm>> lowers, uppers;  // c*x + f >= 0, -c*x + f >= 0
  std::vector<IntegerForm> others;
  for (IntegerForm& form : piece.inequalities) {
    const Integer coefficient = form.CoefficientOf(variable);
    if (coefficient == 0) {
      others.push_back(std::move(form));
      continue;
    }
    form.coefficients.erase(variable);
    (coefficient > 0 ? lowers : uppers).emplace_back(abs(coefficient), std::move(form));
  }
  if (lowers.empty() || uppers.empty()) {
    if (piece.context.is_empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        StrCat("expected a set with finitely many elements, found one whose elements have no ",
               lowers.empty() ? "lower" : "upper", " bound"));
  }
  const std::vector<QuasiPolynomial> powers = piece.summand.CoefficientsOf(variable);
  // c_a*f_b - c_b*f_a >= 0: as a lower bound a is at least b; as an upper bound, at most b. An equal
  // bound with a smaller index comes first.
  auto prefer = [](const std::vector<std::pair<Integer, IntegerForm>>& bounds, size_t a,
                   std::vector<IntegerForm>& constraints) {
    for (size_t b = 0; b < bounds.size(); ++b) {
      if (a == b) continue;
      IntegerForm constraint;
      constraint.Add(bounds[b].second, bounds[a].first);
      constraint.Add(bounds[a].second, -bounds[b].first);
      if (b < a) constraint.constant -= 1;
      constraints.push_back(std::move(constraint));
    }
  };
  for (size_t i = 0; i < lowers.size(); ++i) {
    const auto& [lower_coefficient, lower] = lowers[i];
    // ceil(-lower / c) - 1.
    QuasiPolynomial before = QuasiPolynomial(Rational(-1));
    before.Add(QuasiPolynomial::Floor(lower, lower_coefficient, floors_), -1);
    for (size_t j = 0; j < uppers.size(); ++j) {
      const auto& [upper_coefficient, upper] = uppers[j];
      Piece part;
      part.context = piece.context;
      part.equalities = piece.equalities;
      part.inequalities = others;
      part.unknowns = piece.unknowns;
      part.unknowns.erase(variable);
      prefer(lowers, i, part.inequalities);
      prefer(uppers, j, part.inequalities);
      // -lower/c <= upper/d as rational numbers. Where no integer is between them, the last one
      // below is the one before the first one above, and the sum comes out as 0.
      IntegerForm nonempty;
      nonempty.Add(lower, upper_coefficient);
      nonempty.Add(upper, lower_coefficient);
      part.inequalities.push_back(std::move(nonempty));
      absl::StatusOr<bool> has_points = Simplify(part);
      if (!has_points.ok()) return has_points.status();
      if (!*has_points) continue;
      const QuasiPolynomial last = QuasiPolynomial::Floor(upper, upper_coefficient, floors_);
      for (size_t k = 0; k < powers.size(); ++k) {
        if (powers[k].IsZero()) continue;
        QuasiPolynomial sum = Compose(PowerSum(k), last);
        sum.Add(Compose(PowerSum(k), before), -1);
        part.summand.Add(powers[k].Times(sum));
      }
      if (part.summand.IsZero()) continue;
      RETURN_IF_ERROR(Push(std::move(part)));
    }
  }
  return absl::OkStatus();
}

absl::Status Counter::Finish(Piece piece) {
  isl::set domain = ToSet(piece);
  if (domain.is_empty()) return absl::OkStatus();
  for (auto& [other, sum] : results_) {
    if (isl_set_plain_is_equal(other.get(), domain.get()) != isl_bool_true) continue;
    sum.Add(piece.summand);
    return CheckSize(sum);
  }
  results_.emplace_back(std::move(domain), std::move(piece.summand));
  return absl::OkStatus();
}

absl::Status Counter::Run() {
  while (!work_.empty()) {
    Piece piece = std::move(work_.back());
    work_.pop_back();
    RETURN_IF_ERROR(CheckSize(piece.summand));
    ASSIGN_OR_RETURN(const bool has_points, Simplify(piece));
    if (!has_points) continue;
    const auto equation = std::find_if(
        piece.equalities.begin(), piece.equalities.end(), [&](const IntegerForm& form) {
          // The map is sorted by variable, and unknowns have the larger numbers.
          return !form.coefficients.empty() && form.coefficients.rbegin()->first >= fixed_;
        });
    if (equation != piece.equalities.end()) {
      SolveEquality(piece, equation - piece.equalities.begin());
      work_.push_back(std::move(piece));
      continue;
    }
    if (piece.unknowns.empty()) {
      RETURN_IF_ERROR(Finish(std::move(piece)));
      continue;
    }
    if (DropDetermined(piece)) {
      work_.push_back(std::move(piece));
      continue;
    }
    const int variable = ChooseVariable(piece);
    const Integer period = Period(piece.summand, variable);
    if (period == 1) {
      RETURN_IF_ERROR(Eliminate(std::move(piece), variable));
    } else if (period <= kMaxSplit) {
      for (Integer remainder = 0; remainder < period; ++remainder) {
        Piece part = piece;
        IntegerForm value;
        value.Add(variable, period);
        value.constant = remainder;
        Substitute(part, variable, value, 1);
        RETURN_IF_ERROR(Push(std::move(part)));
      }
    } else {
      for (int floor : piece.summand.FloorsWith(variable, floors_)) LiftFloor(piece, floor);
      RETURN_IF_ERROR(Eliminate(std::move(piece), variable));
    }
  }
  return absl::OkStatus();
}

isl::aff Counter::ToAff(const IntegerForm& form, const isl::space& space) const {
  isl_aff* result = space.zero_aff_on_domain().release();
  const int parameters = isl_space_dim(space.get(), isl_dim_param);
  for (const auto& [variable, coefficient] : form.coefficients) {
    const bool is_parameter = variable < parameters;
    result = isl_aff_set_coefficient_val(result, is_parameter ? isl_dim_param : isl_dim_in,
                                         is_parameter ? variable : variable - parameters,
                                         Number(coefficient));
  }
  return isl::manage(isl_aff_set_constant_val(result, Number(form.constant)));
}

// { [fixed] } of a piece without unknowns.
isl::set Counter::ToSet(const Piece& piece) const {
  isl::set result = piece.context;
  for (const IntegerForm& form : piece.equalities) {
    result = result.intersect(isl::manage(
        isl_set_from_basic_set(isl_aff_zero_basic_set(ToAff(form, Space()).release()))));
  }
  for (const IntegerForm& form : piece.inequalities) {
    result = result.intersect(
        isl::manage(isl_pw_aff_nonneg_set(isl_pw_aff_from_aff(ToAff(form, Space()).release()))));
  }
  return result.coalesce();
}

IslQuasiPolynomial Counter::ToIsl(const QuasiPolynomial& polynomial,
                                  const isl::space& space) const {
  IslQuasiPolynomial result(isl_qpolynomial_zero_on_domain(space.copy()));
  const int parameters = isl_space_dim(space.get(), isl_dim_param);
  for (const auto& [monomial, coefficient] : polynomial.terms()) {
    IslQuasiPolynomial term(isl_qpolynomial_val_on_domain(
        space.copy(), isl_val_div(Number(coefficient.get_num()), Number(coefficient.get_den()))));
    for (const auto& [factor, power] : monomial) {
      const bool is_parameter = factor < parameters;
      IslQuasiPolynomial value(
          factor < 0 ? isl_qpolynomial_from_aff(
                           ToAff(floors_[~factor].numerator, space)
                               .scale_down(isl::manage(Number(floors_[~factor].denominator)))
                               .floor()
                               .release())
                     : isl_qpolynomial_var_on_domain(space.copy(),
                                                     is_parameter ? isl_dim_param : isl_dim_set,
                                                     is_parameter ? factor : factor - parameters));
      value = IslQuasiPolynomial(isl_qpolynomial_pow(value.release(), power));
      term = IslQuasiPolynomial(isl_qpolynomial_mul(term.release(), value.release()));
    }
    result = IslQuasiPolynomial(isl_qpolynomial_add(result.release(), term.release()));
  }
  return result;
}

IslPwQuasiPolynomial Counter::Result(const isl::space& space) {
  const int parameters = isl_space_dim(space.get(), isl_dim_param);
  std::vector<IslPwQuasiPolynomial> sums;
  for (const auto& [domain, polynomial] : results_) {
    if (polynomial.IsZero()) continue;
    isl_set* named = isl_set_move_dims(domain.copy(), isl_dim_param, 0, isl_dim_set, 0, parameters);
    if (isl_space_is_params(space.get()) == isl_bool_true) named = isl_set_params(named);
    for (int i = 0; i < parameters; ++i) {
      named = isl_set_set_dim_id(named, isl_dim_param, i,
                                 isl_space_get_dim_id(space.get(), isl_dim_param, i));
    }
    if (isl_space_is_params(space.get()) != isl_bool_true) {
      named = isl_set_reset_space(named, space.copy());
    }
    const isl::set chamber = isl::manage(named);
    IslQuasiPolynomial sum = ToIsl(polynomial, space);
    sums.emplace_back(isl_pw_qpolynomial_alloc(chamber.copy(), sum.release()));
  }
  if (sums.empty()) {
    sums.emplace_back(
        isl_pw_qpolynomial_from_qpolynomial(isl_qpolynomial_zero_on_domain(space.copy())));
  }
  // Pairwise, so that large sums are split by others seldom.
  while (sums.size() > 1) {
    std::vector<IslPwQuasiPolynomial> halves;
    for (size_t i = 0; i < sums.size(); i += 2) {
      halves.push_back(i + 1 == sums.size() ? std::move(sums[i])
                                            : IslPwQuasiPolynomial(isl_pw_qpolynomial_coalesce(
                                                  isl_pw_qpolynomial_add(sums[i].release(),
                                                                         sums[i + 1].release()))));
    }
    sums = std::move(halves);
  }
  return std::move(sums[0]);
}

std::vector<isl::basic_set> BasicSets(const isl::set& set) {
  std::vector<isl::basic_set> parts;
  set.foreach_basic_set([&](const isl::basic_set& part) { parts.push_back(part); });
  return parts;
}

// Adds the intersections of the parts from `next` on with `chosen`, of which `sign` is the sign.
absl::Status AddIntersections(Counter& counter, const std::vector<isl::basic_set>& parts,
                              size_t next, const isl::basic_set& chosen, int sign) {
  for (size_t i = next; i < parts.size(); ++i) {
    const isl::basic_set both = chosen.is_null() ? parts[i] : chosen.intersect(parts[i]);
    if (both.is_empty()) continue;
    RETURN_IF_ERROR(counter.AddBasicSet(both, sign));
    RETURN_IF_ERROR(AddIntersections(counter, parts, i + 1, both, -sign));
  }
  return absl::OkStatus();
}

// `work()`, or the error that isl's failure means.
template <typename Work>
auto Counted(isl_ctx* context, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const isl::exception& error) {
    if (IsSpent(context)) {
      return absl::ResourceExhaustedError("counting needs more operations than the limit allows");
    }
    return absl::InternalError(StrCat("counting failed: ", std::string(error.what())));
  }
}

// The number of points of `set` for each value of the first `fixed` columns, as a function on
// `space`, which has as many: parameters, then dimensions.
absl::StatusOr<IslPwQuasiPolynomial> Count(const isl::set& set, int fixed, const isl::space& space,
                                           const CountOptions& options) {
  Counter counter(isl_set_get_ctx(set.get()), fixed, options);
  const isl::set parts = isl::manage(isl_set_compute_divs(set.flatten().coalesce().release()));
  const isl::set disjoint = isl::manage(isl_set_compute_divs(isl_set_make_disjoint(parts.copy())));
  // The difference of two parts has one for each constraint of the second. With few parts, the sum
  // over all intersections with alternating signs is shorter.
  constexpr size_t kMaxIntersected = 4;
  const std::vector<isl::basic_set> overlapping = BasicSets(parts);
  const std::vector<isl::basic_set> separate = BasicSets(disjoint);
  const bool is_shorter = overlapping.size() <= kMaxIntersected &&
                          separate.size() > (size_t{1} << overlapping.size()) - 1;
  if (is_shorter) {
    RETURN_IF_ERROR(AddIntersections(counter, overlapping, 0, isl::basic_set(), 1));
  } else {
    for (const isl::basic_set& part : separate) RETURN_IF_ERROR(counter.AddBasicSet(part, 1));
  }
  RETURN_IF_ERROR(counter.Run());
  return counter.Result(space);
}

// Adds up the counts of each part of a union.
template <typename Part>
absl::StatusOr<IslUnionQuasiPolynomial> CountParts(
    isl_space* space, const std::vector<Part>& parts, const CountOptions& options,
    absl::StatusOr<IslPwQuasiPolynomial> (*count)(const Part&, const CountOptions&)) {
  IslUnionQuasiPolynomial sum(isl_union_pw_qpolynomial_zero(space));
  for (const Part& part : parts) {
    ASSIGN_OR_RETURN(IslPwQuasiPolynomial number, count(part, options));
    sum = IslUnionQuasiPolynomial(isl_union_pw_qpolynomial_add(
        sum.release(), isl_union_pw_qpolynomial_from_pw_qpolynomial(number.release())));
  }
  return sum;
}

}  // namespace

absl::StatusOr<IslPwQuasiPolynomial> CountElements(const isl::set& set,
                                                   const CountOptions& options) {
  return Counted(isl_set_get_ctx(set.get()), [&]() -> absl::StatusOr<IslPwQuasiPolynomial> {
    const isl::space space = isl::manage(isl_space_params(isl_set_get_space(set.get())));
    if (isl_set_is_params(set.get()) == isl_bool_true) {
      // One element, where the condition holds.
      return IslPwQuasiPolynomial(
          isl_pw_qpolynomial_alloc(set.copy(), isl_qpolynomial_one_on_domain(space.copy())));
    }
    return Count(set, isl_set_dim(set.get(), isl_dim_param), space, options);
  });
}

absl::StatusOr<IslPwQuasiPolynomial> CountImages(const isl::map& map, const CountOptions& options) {
  return Counted(isl_map_get_ctx(map.get()), [&] {
    const int fixed = isl_map_dim(map.get(), isl_dim_param) + isl_map_dim(map.get(), isl_dim_in);
    return Count(map.wrap(), fixed, isl::manage(isl_space_domain(isl_map_get_space(map.get()))),
                 options);
  });
}

absl::StatusOr<IslUnionQuasiPolynomial> CountElements(const isl::union_set& set,
                                                      const CountOptions& options) {
  return Counted(isl_union_set_get_ctx(set.get()), [&] {
    return CountParts<isl::set>(isl_union_set_get_space(set.get()), SetsOf(set), options,
                                CountElements);
  });
}

absl::StatusOr<IslUnionQuasiPolynomial> CountImages(const isl::union_map& map,
                                                    const CountOptions& options) {
  return Counted(isl_union_map_get_ctx(map.get()), [&] {
    return CountParts<isl::map>(isl_union_map_get_space(map.get()), MapsOf(map), options,
                                CountImages);
  });
}

absl::StatusOr<isl::val> ValueAt(const IslPwQuasiPolynomial& count,
                                 const std::map<std::string, isl::val>& parameters) {
  const isl::space space = isl::manage(isl_pw_qpolynomial_get_domain_space(count.get()));
  if (isl_space_is_params(space.get()) == isl_bool_false) {
    return InvalidInput("expected a function of parameters, found one of the elements of ",
                        Text(space));
  }
  isl::point point = isl::manage(isl_point_zero(space.copy()));
  const int dimensions = isl_space_dim(space.get(), isl_dim_param);
  for (int i = 0; i < dimensions; ++i) {
    const std::string name = isl_space_get_dim_name(space.get(), isl_dim_param, i);
    const auto it = parameters.find(name);
    if (it != parameters.end()) {
      point = isl::manage(
          isl_point_set_coordinate_val(point.release(), isl_dim_param, i, it->second.copy()));
    } else if (isl_pw_qpolynomial_involves_dims(count.get(), isl_dim_param, i, 1) !=
               isl_bool_false) {
      return InvalidInput("expected a value for the parameter '", name, "', found none");
    }
  }
  return isl::manage(isl_pw_qpolynomial_eval(count.copy(), point.release()));
}

absl::StatusOr<isl::val> ValueAt(const IslPwQuasiPolynomial& count,
                                 const std::map<std::string, int64_t>& parameters) {
  std::map<std::string, isl::val> values;
  for (const auto& [name, value] : parameters) {
    values.emplace(
        name, isl::manage(isl_val_int_from_si(isl_pw_qpolynomial_get_ctx(count.get()), value)));
  }
  return ValueAt(count, values);
}

namespace {

// isl's printer of polynomials crashes where the operations allowed end within it. It needs few; here it may do them.
template <typename Count>
std::string TextOf(Count* count, isl_ctx* context, char* (*to_text)(Count*)) {
  const unsigned long allowed = isl_ctx_get_max_operations(context);
  isl_ctx_set_max_operations(context, 0);
  const std::unique_ptr<char, void (*)(void*)> text(to_text(count), std::free);
  isl_ctx_set_max_operations(context, allowed);
  return text.get();
}

}  // namespace

std::string ToString(const IslPwQuasiPolynomial& count) {
  return TextOf(count.get(), isl_pw_qpolynomial_get_ctx(count.get()), isl_pw_qpolynomial_to_str);
}

std::string ToString(const IslUnionQuasiPolynomial& count) {
  return TextOf(count.get(), isl_union_pw_qpolynomial_get_ctx(count.get()),
                isl_union_pw_qpolynomial_to_str);
}

}  // namespace polynao::poly
