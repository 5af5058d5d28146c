#include "compiler/poly/calculator/count.h"

#include <isl/constraint.h>
#include <isl/local_space.h>
#include <isl/mat.h>
#include <isl/point.h>
#include <isl/val_gmp.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/poly/calculator/count_polynomial.h"

namespace polynao::poly {
namespace {

using IslBasicSet = IslHandle<isl_basic_set, isl_basic_set_copy, isl_basic_set_free>;
using IslMat = IslHandle<isl_mat, isl_mat_copy, isl_mat_free>;
using IslLocalSpace = IslHandle<isl_local_space, isl_local_space_copy, isl_local_space_free>;
using IslAff = IslHandle<isl_aff, isl_aff_copy, isl_aff_free>;

// Floors over one variable with a common period up to this are removed by splitting the variable
// by its remainder; longer ones become variables of their own, which costs chambers.
constexpr int kMaxSplit = 60;

// The sum of `summand` over the integer points of { x : equalities = 0, inequalities >= 0 } for
// each value of the fixed variables (numbers 0 .. fixed - 1) in `context`.
struct Piece {
  IslSet context;  // { [fixed] : ... }: what equations ask of the fixed variables alone
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
  absl::Status AddBasicSet(isl_basic_set* set, int sign);
  absl::Status Run();

  // The sum of all results on `space` (taken): a parameter space or a set's.
  absl::StatusOr<IslPwQuasiPolynomial> Result(isl_space* space);

  // The error that isl's failure means.
  absl::Status Failed(const char* doing) const;

 private:
  // Takes isl's number; notes if isl failed to make it.
  Integer TakeInteger(isl_val* value);
  IntegerForm Row(const IslMat& matrix, int row);
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

  isl_aff* ToAff(const IntegerForm& form, isl_local_space* space) const;
  IslSet ToSet(const Piece& piece) const;
  isl_qpolynomial* ToIsl(const QuasiPolynomial& polynomial, isl_space* space) const;

  isl_ctx* const context_;
  const int fixed_;
  int next_variable_;
  const CountOptions options_;
  bool has_failed_ = false;
  FloorTable floors_;
  std::vector<Piece> work_;
  int pieces_ = 0;
  // { [fixed] }, and the sum there; the sets may overlap.
  std::vector<std::pair<IslSet, QuasiPolynomial>> results_;
};

absl::Status Counter::Failed(const char* doing) const {
  if (isl_ctx_last_error(context_) == isl_error_quota) {
    return absl::ResourceExhaustedError(
        StrCat("counting needs more operations than the limit allows, while ", doing));
  }
  const char* message = isl_ctx_last_error_msg(context_);
  return absl::InternalError(StrCat("counting failed while ", doing, ": ",
                                    message == nullptr ? "no reason given" : message));
}

Integer Counter::TakeInteger(isl_val* value) {
  Integer result;
  if (isl_val_get_num_gmp(value, result.get_mpz_t()) < 0) has_failed_ = true;
  isl_val_free(value);
  return result;
}

IntegerForm Counter::Row(const IslMat& matrix, int row) {
  IntegerForm form;
  const int columns = isl_mat_cols(matrix.get());
  for (int i = 0; i + 1 < columns; ++i) {
    form.Add(i, TakeInteger(isl_mat_get_element_val(matrix.get(), row, i)));
  }
  form.constant = TakeInteger(isl_mat_get_element_val(matrix.get(), row, columns - 1));
  return form;
}

absl::Status Counter::AddBasicSet(isl_basic_set* set, int sign) {
  const int parameters = isl_basic_set_dim(set, isl_dim_param);
  const int dimensions = isl_basic_set_dim(set, isl_dim_set);
  const int divs = isl_basic_set_dim(set, isl_dim_div);
  if (parameters < 0 || dimensions < 0 || divs < 0) return Failed("reading a set");
  auto rows = [&](isl_mat* taken, std::vector<IntegerForm>& to) {
    const IslMat matrix(taken);
    const int count = isl_mat_rows(matrix.get());
    for (int i = 0; i < count; ++i) to.push_back(Row(matrix, i));
    return count >= 0;
  };
  // The numbers of the variables are those of the columns: parameters, dimensions, divisions.
  Piece piece;
  if (!rows(isl_basic_set_equalities_matrix(set, isl_dim_param, isl_dim_set, isl_dim_div,
                                            isl_dim_cst),
            piece.equalities) ||
      !rows(isl_basic_set_inequalities_matrix(set, isl_dim_param, isl_dim_set, isl_dim_div,
                                              isl_dim_cst),
            piece.inequalities)) {
    return Failed("reading constraints");
  }
  const int first_div = parameters + dimensions;
  next_variable_ = std::max(next_variable_, first_div + divs);
  for (int i = fixed_; i < first_div + divs; ++i) piece.unknowns.insert(i);
  const IslLocalSpace local(isl_basic_set_get_local_space(set));
  for (int i = 0; i < divs; ++i) {
    // 0 <= numerator - denominator * division < denominator.
    const IslAff div(isl_local_space_get_div(local.get(), i));
    if (!div) return Failed("reading an integer division");
    const Integer denominator = TakeInteger(isl_aff_get_denominator_val(div.get()));
    IntegerForm numerator;
    auto read = [&](isl_dim_type type, int count, int first) {
      for (int j = 0; j < count; ++j) {
        isl_val* value = isl_aff_get_coefficient_val(div.get(), type, j);
        value = isl_val_mul(value, isl_aff_get_denominator_val(div.get()));
        numerator.Add(first + j, TakeInteger(value));
      }
    };
    read(isl_dim_param, parameters, 0);
    read(isl_dim_in, dimensions, parameters);
    read(isl_dim_div, divs, first_div);
    numerator.constant = TakeInteger(
        isl_val_mul(isl_aff_get_constant_val(div.get()), isl_aff_get_denominator_val(div.get())));
    numerator.Add(first_div + i, -denominator);
    piece.inequalities.push_back(numerator);
    IntegerForm below;
    below.Add(numerator, -1);
    below.constant += denominator - 1;
    piece.inequalities.push_back(below);
  }
  if (has_failed_) return Failed("reading constraints");
  piece.context = IslSet(isl_set_universe(isl_space_set_alloc(context_, 0, fixed_)));
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
      result = isl_mat_set_element_val(result, row, column,
                                       isl_val_int_from_gmp(context_, value.get_mpz_t()));
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
  const IslBasicSet simple(isl_basic_set_remove_redundancies(set));
  const isl_bool is_empty = isl_basic_set_is_empty(simple.get());
  if (is_empty == isl_bool_error) return Failed("simplifying constraints");
  if (is_empty == isl_bool_true) return false;
  if (isl_basic_set_dim(simple.get(), isl_dim_div) != 0) {
    return absl::InternalError("counting: a simplified polyhedron has an integer division");
  }
  auto read = [&](isl_mat* taken, std::vector<IntegerForm>& to) {
    const IslMat rows(taken);
    to.clear();
    const int count = isl_mat_rows(rows.get());
    for (int i = 0; i < count; ++i) {
      const IntegerForm by_column = Row(rows, i);
      IntegerForm form;
      form.constant = by_column.constant;
      for (const auto& [column, coefficient] : by_column.coefficients) {
        form.Add(variable_of[column], coefficient);
      }
      to.push_back(std::move(form));
    }
    return count >= 0;
  };
  if (!read(isl_basic_set_equalities_matrix(simple.get(), isl_dim_param, isl_dim_set, isl_dim_div,
                                            isl_dim_cst),
            piece.equalities) ||
      !read(isl_basic_set_inequalities_matrix(simple.get(), isl_dim_param, isl_dim_set, isl_dim_div,
                                              isl_dim_cst),
            piece.inequalities) ||
      has_failed_) {
    return Failed("reading simplified constraints");
  }
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
      isl_local_space* space = isl_local_space_from_space(isl_space_set_alloc(context_, 0, fixed_));
      isl_aff* remainder =
          isl_aff_mod_val(ToAff(value, space),
                          isl_val_int_from_gmp(context_, const_cast<mpz_ptr>(divisor.get_mpz_t())));
      piece.context = IslSet(isl_set_intersect(
          piece.context.take(), isl_set_from_basic_set(isl_aff_zero_basic_set(remainder))));
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
    const isl_bool is_empty = isl_set_is_empty(piece.context.get());
    if (is_empty == isl_bool_error) return Failed("looking for an unbounded part");
    if (is_empty == isl_bool_true) return absl::OkStatus();
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
  IslSet domain = ToSet(piece);
  if (!domain) return Failed("building a chamber");
  const isl_bool is_empty = isl_set_is_empty(domain.get());
  if (is_empty == isl_bool_error) return Failed("building a chamber");
  if (is_empty == isl_bool_true) return absl::OkStatus();
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
      if (!piece.context) return Failed("solving an equation");
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

isl_aff* Counter::ToAff(const IntegerForm& form, isl_local_space* space) const {
  isl_aff* result = isl_aff_zero_on_domain(isl_local_space_copy(space));
  const int parameters = isl_local_space_dim(space, isl_dim_param);
  auto value = [&](Integer integer) { return isl_val_int_from_gmp(context_, integer.get_mpz_t()); };
  for (const auto& [variable, coefficient] : form.coefficients) {
    result = variable < parameters
                 ? isl_aff_set_coefficient_val(result, isl_dim_param, variable, value(coefficient))
                 : isl_aff_set_coefficient_val(result, isl_dim_in, variable - parameters,
                                               value(coefficient));
  }
  result = isl_aff_set_constant_val(result, value(form.constant));
  isl_local_space_free(space);
  return result;
}

// { [fixed] } of a piece without unknowns.
IslSet Counter::ToSet(const Piece& piece) const {
  isl_space* space = isl_space_set_alloc(context_, 0, fixed_);
  isl_set* result = isl_set_copy(piece.context.get());
  auto aff = [&](const IntegerForm& form) {
    return ToAff(form, isl_local_space_from_space(isl_space_copy(space)));
  };
  for (const IntegerForm& form : piece.equalities) {
    result = isl_set_intersect(result, isl_set_from_basic_set(isl_aff_zero_basic_set(aff(form))));
  }
  for (const IntegerForm& form : piece.inequalities) {
    result = isl_set_intersect(result, isl_pw_aff_nonneg_set(isl_pw_aff_from_aff(aff(form))));
  }
  isl_space_free(space);
  return IslSet(isl_set_coalesce(result));
}

isl_qpolynomial* Counter::ToIsl(const QuasiPolynomial& polynomial, isl_space* space) const {
  isl_qpolynomial* result = isl_qpolynomial_zero_on_domain(isl_space_copy(space));
  const int parameters = isl_space_dim(space, isl_dim_param);
  for (const auto& [monomial, coefficient] : polynomial.terms()) {
    isl_qpolynomial* term = isl_qpolynomial_val_on_domain(
        isl_space_copy(space),
        isl_val_from_gmp(context_, coefficient.get_num_mpz_t(), coefficient.get_den_mpz_t()));
    for (const auto& [factor, power] : monomial) {
      isl_qpolynomial* value;
      if (factor < 0) {
        const FloorTerm& floor = floors_[~factor];
        isl_aff* aff = ToAff(floor.numerator, isl_local_space_from_space(isl_space_copy(space)));
        Integer denominator = floor.denominator;
        aff = isl_aff_scale_down_val(aff, isl_val_int_from_gmp(context_, denominator.get_mpz_t()));
        value = isl_qpolynomial_from_aff(isl_aff_floor(aff));
      } else if (factor < parameters) {
        value = isl_qpolynomial_var_on_domain(isl_space_copy(space), isl_dim_param, factor);
      } else {
        value =
            isl_qpolynomial_var_on_domain(isl_space_copy(space), isl_dim_set, factor - parameters);
      }
      term = isl_qpolynomial_mul(term, isl_qpolynomial_pow(value, power));
    }
    result = isl_qpolynomial_add(result, term);
  }
  isl_space_free(space);
  return result;
}

absl::StatusOr<IslPwQuasiPolynomial> Counter::Result(isl_space* taken) {
  const IslSpace space(taken);
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
    sums.emplace_back(isl_pw_qpolynomial_alloc(named, ToIsl(polynomial, space.copy())));
  }
  if (sums.empty()) {
    sums.emplace_back(
        isl_pw_qpolynomial_from_qpolynomial(isl_qpolynomial_zero_on_domain(space.copy())));
  }
  // Pairwise, so that large sums are split by others seldom.
  while (sums.size() > 1) {
    std::vector<IslPwQuasiPolynomial> halves;
    for (size_t i = 0; i < sums.size(); i += 2) {
      halves.push_back(i + 1 == sums.size()
                           ? std::move(sums[i])
                           : IslPwQuasiPolynomial(isl_pw_qpolynomial_coalesce(
                                 isl_pw_qpolynomial_add(sums[i].take(), sums[i + 1].take()))));
    }
    sums = std::move(halves);
  }
  if (!sums[0]) return Failed("adding the parts");
  return std::move(sums[0]);
}

}  // namespace

namespace {

std::vector<IslBasicSet> BasicSets(const IslSet& set) {
  std::vector<IslBasicSet> parts;
  isl_set_foreach_basic_set(
      set.get(),
      [](isl_basic_set* taken, void* user) {
        static_cast<std::vector<IslBasicSet>*>(user)->emplace_back(taken);
        return isl_stat_ok;
      },
      &parts);
  return parts;
}

// Adds the intersections of the parts from `next` on with `chosen`, of which `sign` is the sign.
absl::Status AddIntersections(Counter& counter, const std::vector<IslBasicSet>& parts, size_t next,
                              const IslBasicSet& chosen, int sign) {
  for (size_t i = next; i < parts.size(); ++i) {
    const IslBasicSet both(chosen ? isl_basic_set_intersect(chosen.copy(), parts[i].copy())
                                  : parts[i].copy());
    const isl_bool is_empty = isl_basic_set_is_empty(both.get());
    if (is_empty == isl_bool_error) return counter.Failed("intersecting parts");
    if (is_empty == isl_bool_true) continue;
    RETURN_IF_ERROR(counter.AddBasicSet(both.get(), sign));
    RETURN_IF_ERROR(AddIntersections(counter, parts, i + 1, both, -sign));
  }
  return absl::OkStatus();
}

// The number of points of `set` (taken) for each value of the first `fixed` columns, as a function
// on `space` (taken), which has as many: parameters, then dimensions.
absl::StatusOr<IslPwQuasiPolynomial> Count(isl_set* set, int fixed, isl_space* space,
                                           const CountOptions& options) {
  const IslSpace result_space(space);
  Counter counter(isl_set_get_ctx(set), fixed, options);
  const IslSet parts(isl_set_compute_divs(isl_set_coalesce(isl_set_flatten(set))));
  const IslSet disjoint(isl_set_compute_divs(isl_set_make_disjoint(parts.copy())));
  if (!disjoint) return counter.Failed("making the parts disjoint");
  // The difference of two parts has one for each constraint of the second. With few parts, the sum
  // over all intersections with alternating signs is shorter.
  constexpr size_t kMaxIntersected = 4;
  const std::vector<IslBasicSet> overlapping = BasicSets(parts);
  const std::vector<IslBasicSet> separate = BasicSets(disjoint);
  const bool is_shorter = overlapping.size() <= kMaxIntersected &&
                          separate.size() > (size_t{1} << overlapping.size()) - 1;
  if (is_shorter) {
    RETURN_IF_ERROR(AddIntersections(counter, overlapping, 0, IslBasicSet(), 1));
  } else {
    for (const IslBasicSet& part : separate) RETURN_IF_ERROR(counter.AddBasicSet(part.get(), 1));
  }
  RETURN_IF_ERROR(counter.Run());
  return counter.Result(result_space.copy());
}

// Adds up what `count` says of each part of a union. Part: a handle; Foreach: isl's function.
template <typename Part, typename Union, typename Foreach, typename CountPart>
absl::StatusOr<IslUnionQuasiPolynomial> CountUnion(Union* whole, isl_space* space, Foreach foreach,
                                                   CountPart count) {
  struct Visit {
    CountPart count;
    absl::Status status;
    IslUnionQuasiPolynomial sum;
  } visit{count, absl::OkStatus(), IslUnionQuasiPolynomial(isl_union_pw_qpolynomial_zero(space))};
  const isl_stat visited = foreach (
      whole,
      [](auto* taken, void* user) {
        Visit* visit = static_cast<Visit*>(user);
        const Part part(taken);
        absl::StatusOr<IslPwQuasiPolynomial> number = visit->count(part.get());
        visit->status = number.status();
        if (!number.ok()) return isl_stat_error;
        visit->sum = IslUnionQuasiPolynomial(isl_union_pw_qpolynomial_add(
            visit->sum.take(), isl_union_pw_qpolynomial_from_pw_qpolynomial(number->take())));
        return visit->sum ? isl_stat_ok : isl_stat_error;
      },
      &visit);
  RETURN_IF_ERROR(visit.status);
  if (visited == isl_stat_error) return absl::InternalError("counting failed: adding the parts");
  return std::move(visit.sum);
}

}  // namespace

absl::StatusOr<IslPwQuasiPolynomial> CountElements(isl_set* set, const CountOptions& options) {
  const IslSpace space(isl_space_params(isl_set_get_space(set)));
  if (isl_set_is_params(set) == isl_bool_true) {
    // { : condition } has one element, the empty tuple, where the condition holds.
    return IslPwQuasiPolynomial(
        isl_pw_qpolynomial_alloc(isl_set_copy(set), isl_qpolynomial_one_on_domain(space.copy())));
  }
  return Count(isl_set_copy(set), isl_set_dim(set, isl_dim_param), space.copy(), options);
}

absl::StatusOr<IslPwQuasiPolynomial> CountImages(isl_map* map, const CountOptions& options) {
  const int fixed = isl_map_dim(map, isl_dim_param) + isl_map_dim(map, isl_dim_in);
  return Count(isl_map_wrap(isl_map_copy(map)), fixed, isl_space_domain(isl_map_get_space(map)),
               options);
}

absl::StatusOr<IslUnionQuasiPolynomial> CountElements(isl_union_set* set,
                                                      const CountOptions& options) {
  return CountUnion<IslSet>(set, isl_union_set_get_space(set), isl_union_set_foreach_set,
                            [&](isl_set* part) { return CountElements(part, options); });
}

absl::StatusOr<IslUnionQuasiPolynomial> CountImages(isl_union_map* map,
                                                    const CountOptions& options) {
  return CountUnion<IslMap>(map, isl_union_map_get_space(map), isl_union_map_foreach_map,
                            [&](isl_map* part) { return CountImages(part, options); });
}

absl::StatusOr<IslVal> ValueAt(isl_pw_qpolynomial* count,
                               const std::map<std::string, IslVal>& parameters) {
  const IslSpace space(isl_pw_qpolynomial_get_domain_space(count));
  if (isl_space_is_params(space.get()) == isl_bool_false) {
    return InvalidInput("expected a function of parameters, found one of the elements of ",
                        TakeIslText(isl_space_to_str(space.get())));
  }
  isl_point* point = isl_point_zero(space.copy());
  const int dimensions = isl_space_dim(space.get(), isl_dim_param);
  for (int i = 0; i < dimensions; ++i) {
    const std::string name = isl_space_get_dim_name(space.get(), isl_dim_param, i);
    const auto it = parameters.find(name);
    if (it != parameters.end()) {
      point = isl_point_set_coordinate_val(point, isl_dim_param, i, it->second.copy());
    } else if (isl_pw_qpolynomial_involves_dims(count, isl_dim_param, i, 1) != isl_bool_false) {
      isl_point_free(point);
      return InvalidInput("expected a value for the parameter '", name, "', found none");
    }
  }
  IslVal value(isl_pw_qpolynomial_eval(isl_pw_qpolynomial_copy(count), point));
  if (!value) return absl::InternalError("evaluating a count failed");
  return value;
}

absl::StatusOr<IslVal> ValueAt(isl_pw_qpolynomial* count,
                               const std::map<std::string, int64_t>& parameters) {
  std::map<std::string, IslVal> values;
  for (const auto& [name, value] : parameters) {
    values.emplace(name, isl_val_int_from_si(isl_pw_qpolynomial_get_ctx(count), value));
  }
  return ValueAt(count, values);
}

namespace {

// isl's printer of polynomials crashes where the operations allowed end within it. It needs few; here it may do them.
template <typename Count>
std::string TextOf(Count* count, isl_ctx* context, char* (*to_text)(Count*)) {
  const unsigned long allowed = isl_ctx_get_max_operations(context);
  isl_ctx_set_max_operations(context, 0);
  std::string text = TakeIslText(to_text(count));
  isl_ctx_set_max_operations(context, allowed);
  return text;
}

}  // namespace

std::string ToString(isl_pw_qpolynomial* count) {
  return TextOf(count, isl_pw_qpolynomial_get_ctx(count), isl_pw_qpolynomial_to_str);
}

std::string ToString(isl_union_pw_qpolynomial* count) {
  return TextOf(count, isl_union_pw_qpolynomial_get_ctx(count), isl_union_pw_qpolynomial_to_str);
}

}  // namespace polynao::poly
