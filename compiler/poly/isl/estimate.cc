#include "compiler/poly/isl/estimate.h"

#include <isl/mat.h>
#include <isl/set.h>
#include <isl/val.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly {

namespace {

constexpr int kWalks = 256;

// 0 <= constant + coefficients * (the first coordinates); the last coefficient is not 0.
struct Bound {
  double constant;
  std::vector<double> coefficients;
};

void AddBounds(const IslMatrix& matrix, bool both_ways, std::vector<Bound>* bounds) {
  const isl_size rows = isl_mat_rows(matrix.get()), columns = isl_mat_cols(matrix.get());
  for (isl_size r = 0; r < rows; ++r) {
    const auto at = [&](isl_size c) {
      return isl_val_get_d(isl::manage(isl_mat_get_element_val(matrix.get(), r, c)).get());
    };
    Bound bound{.constant = at(0), .coefficients = {}};
    for (isl_size c = 1; c < columns; ++c) bound.coefficients.push_back(at(c));
    if (bound.coefficients.empty() || bound.coefficients.back() == 0) continue;
    bounds->push_back(bound);
    if (!both_ways) continue;
    bound.constant = -bound.constant;
    for (double& c : bound.coefficients) c = -c;
    bounds->push_back(bound);
  }
}

// For each coordinate, its bounds by those before it.
std::vector<std::vector<Bound>> BoundsOf(const isl::set& set) {
  isl::basic_set hull = isl::manage(isl_basic_set_remove_redundancies(
      isl_basic_set_remove_divs(isl_set_simple_hull(isl_set_project_out_all_params(set.copy())))));
  std::vector<std::vector<Bound>> bounds(static_cast<size_t>(isl_set_dim(set.get(), isl_dim_set)));
  for (size_t d = bounds.size(); d-- > 0;) {
    AddBounds(IslMatrix(isl_basic_set_equalities_matrix(hull.get(), isl_dim_cst, isl_dim_param,
                                                        isl_dim_set, isl_dim_div)),
              true, &bounds[d]);
    AddBounds(IslMatrix(isl_basic_set_inequalities_matrix(hull.get(), isl_dim_cst, isl_dim_param,
                                                          isl_dim_set, isl_dim_div)),
              false, &bounds[d]);
    hull = isl::manage(isl_basic_set_remove_divs(
        isl_basic_set_project_out(hull.release(), isl_dim_set, static_cast<unsigned>(d), 1)));
  }
  return bounds;
}

// How many there are to choose from along a walk.
double Walk(const std::vector<std::vector<Bound>>& bounds, std::mt19937_64& random) {
  std::vector<double> at;
  double count = 1;
  for (const std::vector<Bound>& of_coordinate : bounds) {
    double low = -std::numeric_limits<double>::infinity(), high = -low;
    for (const Bound& bound : of_coordinate) {
      double rest = bound.constant;
      for (size_t i = 0; i < at.size(); ++i) rest += bound.coefficients[i] * at[i];
      const double own = bound.coefficients.back();
      if (own > 0) low = std::max(low, std::ceil(-rest / own));
      if (own < 0) high = std::min(high, std::floor(rest / -own));
    }
    if (low > high) return 0;
    const double choices = high - low + 1;
    if (std::isinf(choices)) return choices;
    count *= choices;
    const double part = static_cast<double>(random() >> 11) * 0x1p-53;
    at.push_back(low + std::floor(part * choices));
  }
  return count;
}

}  // namespace

double EstimateCount(const isl::set& set) {
  if (set.is_empty()) return 0;
  const std::vector<std::vector<Bound>> bounds = BoundsOf(set);
  std::mt19937_64 random(1);
  double sum = 0;
  for (int i = 0; i < kWalks; ++i) sum += Walk(bounds, random);
  return sum / kWalks;
}

}  // namespace polynao::poly
