// Random instructions that keep the rules of the instruction set and stay inside the memories of simulator/configs/unit.toml.
#ifndef SIMULATOR_REFERENCE_TESTING_RANDOM_OP_H_
#define SIMULATOR_REFERENCE_TESTING_RANDOM_OP_H_

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "simulator/reference/testing/random_case.h"

namespace polynao::simulator::reference {

// Draws that give the same on all platforms, unlike the standard library's distributions.
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

class OpMaker {
 public:
  explicit OpMaker(Random& random) : random_(random) {}
  Op Make(bool is_memory_core);

 private:
  Op Copy(bool is_memory_core);
  Op Vector();
  Op Tensor();
  Op ScalarAccess(bool is_memory_core);
  Op ScalarWork();
  Op Sync();
  // An address in a memory for `bytes` bytes, a multiple of `align`.
  Op::Arg Address(const std::string& memory, int64_t bytes, int64_t align);

  Random& random_;
};

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_TESTING_RANDOM_OP_H_
