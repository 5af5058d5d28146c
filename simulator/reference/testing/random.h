// Draws that give the same on all platforms, unlike the standard library's distributions.
#ifndef SIMULATOR_REFERENCE_TESTING_RANDOM_H_
#define SIMULATOR_REFERENCE_TESTING_RANDOM_H_

#include <cstdint>
#include <initializer_list>
#include <random>

namespace polynao::simulator::reference {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t Below(uint64_t limit) { return engine_() % limit; }
  int64_t From(int64_t first, int64_t last) {
    return first + static_cast<int64_t>(Below(static_cast<uint64_t>(last - first + 1)));
  }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[Below(values.size())];
  }
  int64_t OneOf(std::initializer_list<int64_t> values) {
    return values.begin()[Below(values.size())];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_TESTING_RANDOM_H_
