#include "compiler/ir/counts.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace polynao::ir {

int64_t Counts::total() const {
  int64_t sum = 0;
  for (const auto& [name, count] : CountRows(*this)) sum += count;
  return sum;
}

std::vector<std::pair<std::string, int64_t>> CountRows(const Counts& counts) {
  return {{"loads", counts.loads},           {"stores", counts.stores},
          {"int_add", counts.int_add},       {"int_mul", counts.int_mul},
          {"int_div", counts.int_div},       {"int_compare", counts.int_compare},
          {"logic", counts.logic},           {"float_ops", counts.float_ops},
          {"casts", counts.casts},           {"branches", counts.branches},
          {"iterations", counts.iterations}, {"instructions", counts.instructions}};
}

}  // namespace polynao::ir
