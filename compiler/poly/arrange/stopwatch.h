// How long steps take.
#ifndef COMPILER_POLY_ARRANGE_STOPWATCH_H_
#define COMPILER_POLY_ARRANGE_STOPWATCH_H_

#include <ctime>

namespace polynao::poly {

// CPU time since the last call, in milliseconds.
class Stopwatch {
 public:
  double Lap() {
    const std::clock_t now = std::clock();
    const double ms = 1000.0 * static_cast<double>(now - last_) / CLOCKS_PER_SEC;
    last_ = now;
    return ms;
  }

 private:
  std::clock_t last_ = std::clock();
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_STOPWATCH_H_
