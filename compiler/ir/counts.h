// How many operations of each kind a run executed.
#ifndef COMPILER_IR_COUNTS_H_
#define COMPILER_IR_COUNTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace polynao::ir {

// Counts the operations that a run executed.
struct Counts {
  int64_t loads = 0;
  int64_t stores = 0;
  int64_t int_add = 0;  // + - & | ^ << >> on integers
  int64_t int_mul = 0;
  int64_t int_div = 0;      // / and %
  int64_t int_compare = 0;  // comparisons, min, max on integers
  int64_t logic = 0;        // && || !
  int64_t float_ops = 0;    // arithmetic, comparisons and intrinsics on floats
  int64_t casts = 0;
  int64_t branches = 0;      // ifs, selects, short-circuits and loop back-edges taken or not
  int64_t iterations = 0;    // loop bodies entered
  int64_t instructions = 0;  // calls of tensor instructions and of extern functions
  int64_t int_ops() const { return int_add + int_mul + int_div + int_compare + logic; }
  int64_t total() const;
  bool operator==(const Counts&) const = default;
};
// (name, value) of each count, in a fixed order.
std::vector<std::pair<std::string, int64_t>> CountRows(const Counts& counts);

}  // namespace polynao::ir

#endif  // COMPILER_IR_COUNTS_H_
