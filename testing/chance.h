// What random tests may count without a defect.
#ifndef TESTING_CHANCE_H_
#define TESTING_CHANCE_H_

#include <cmath>

namespace polynao {

// The most of `count` draws that may come out in a way that `percent` in a hundred do: five standard deviations above
// the mean, and two, so that fewer than one run in ten thousand has more by chance; 0 if none may.
inline int MostByChance(int count, double percent) {
  if (percent == 0) return 0;
  const double mean = count * percent / 100;
  return static_cast<int>(mean + 5 * std::sqrt(mean)) + 2;
}

}  // namespace polynao

#endif  // TESTING_CHANCE_H_
