// Statistics of measurements.
#ifndef BASE_MEDIAN_H_
#define BASE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace polynao {

// The value in the middle, or the mean of the two there; there is at least one.
inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace polynao

#endif  // BASE_MEDIAN_H_
