// Times since a moment, by the clock that never goes back.
#ifndef BASE_ELAPSED_H_
#define BASE_ELAPSED_H_

#include <chrono>

namespace polynao {

using Clock = std::chrono::steady_clock;

inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

inline double MillisecondsSince(Clock::time_point start) { return SecondsSince(start) * 1e3; }

}  // namespace polynao

#endif  // BASE_ELAPSED_H_
