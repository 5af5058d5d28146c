// Stages that are cheaper to compute again where they are read than to store.
#ifndef COMPILER_POLY_FUSE_INLINE_H_
#define COMPILER_POLY_FUSE_INLINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace polynao::poly {

// Puts the expression of an array's elements in place of the loads of them, and takes the array away:
//
//   allocate t: f32[n]
//   for (i, 0, n) { t[i] = a[i] * a[i] }                     for (i, 1, n - 2) { y[i] = a[i - 1] * a[i - 1] + ..
//   for (i, 1, n - 2) { y[i] = t[i - 1] + t[i] + t[i + 1] }  -->
//
// An array is inlined if one statement in a nest of plain loops stores it, nothing stores what that reads any more,
// each load is proved to be of an element that is stored, and the work that is done again is at most as much as loads
// and stores of the array that go (some more, for what it saves in cache). An array that stays, because others read all
// of it, is still inlined in a statement that reads few of its elements: t[li[i], i], where t[k, i] is stored for eight
// k. From the last array to the first, so that a chain ends in its last statement. Returns the names of the arrays, "t
// in y" for one statement, "t (3 times)" where each element is computed three times now. `assumed_extent`: iterations
// of a loop of which that is not known (CpuMachine::assumed_extent).
std::vector<std::string> InlineStages(ir::Function& function, int64_t assumed_extent);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_INLINE_H_
