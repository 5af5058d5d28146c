#include "compiler/ir/agreement.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/tensor.h"

namespace polynao::ir {
namespace {

double LargestMagnitude(const Tensor& tensor) {
  double largest = 1;
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    const double magnitude = std::abs(tensor.Value(i));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest;
}

}  // namespace

std::string FindDisagreement(const Function& function, const RandomArguments& actual,
                             const RandomArguments& expected, double tolerance) {
  POLYNAO_CHECK(actual.tensors().size() == expected.tensors().size()) << function.name;
  size_t place = 0;
  for (const Param& param : function.params) {
    if (!param.buffer) continue;
    const Tensor& a = actual.tensors()[place];
    const Tensor& b = expected.tensors()[place];
    ++place;
    int64_t where = -1;
    std::string within;
    if (tolerance == 0) {
      where = FirstDifference(a, b);
    } else if (const Difference difference = Compare(a, b); difference.max_abs > 0) {
      const double limit = tolerance * LargestMagnitude(b);
      // An infinite difference is above any limit.
      if (difference.max_abs > limit) where = difference.where;
      within = StrCat(" within ", limit);
    }
    if (where < 0) continue;
    return StrCat(param.name(), ": element ", where, " is ", a.Value(where), ", expected ",
                  b.Value(where), within);
  }
  return "";
}

}  // namespace polynao::ir
