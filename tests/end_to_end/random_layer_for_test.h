// Random layers and machines, for tests that compile what nobody thought of.
#ifndef TESTS_END_TO_END_RANDOM_LAYER_FOR_TEST_H_
#define TESTS_END_TO_END_RANDOM_LAYER_FOR_TEST_H_

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "cases/case_text.h"

namespace polynao {

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int64_t Number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  template <typename T>
  T OneOf(std::initializer_list<T> list) {
    return list.begin()[Number(0, static_cast<int64_t>(list.size()) - 1)];
  }

 private:
  std::mt19937_64 random_;
};

// A convolution, a product, a group with batch normalisation, or something elementwise, of odd sizes.
cases::CaseText RandomLayer(Draw& draw);

// "card.clusters=3" and so on, for --set.
std::vector<std::string> RandomCard(Draw& draw);

}  // namespace polynao

#endif  // TESTS_END_TO_END_RANDOM_LAYER_FOR_TEST_H_
