// Collects what the cost model knows of the statements under a band: how far each access moves with each loop, and how
// many iterations the loops have.
//
//   band [i, k, j] of  S: C[i, j] = C[i, j] + A[i, k] * B[k, j]
//     C  [[1, 0, 0], [0, 0, 1]]     the first index moves with i, the second with j
//     A  [[1, 0, 0], [0, 1, 0]]
//     B  [[0, 1, 0], [0, 0, 1]]
#ifndef COMPILER_POLY_ARRANGE_LOOP_MODEL_H_
#define COMPILER_POLY_ARRANGE_LOOP_MODEL_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/poly/model/assumed.h"
#include "compiler/poly/model/scop.h"
#include "compiler/poly/order/band_info.h"

namespace polynao::poly {

struct LinearAccess {
  ir::Buffer buffer;
  // An element that is read and stored is one access.
  bool is_read = false, is_write = false;
  // By how much each index (outermost dimension first) grows when one member grows by one and the others stay.
  // False: that is not one number.
  bool is_linear = false;
  std::vector<std::vector<int64_t>> steps;  // [dimension][member]
  // Accesses with the same number have the same steps, and so share most of what they touch.
  int group = 0;
  // Accesses with the same number are to the same elements, as far as it is seen from their functions.
  int element = 0;

  // By how many elements of memory it moves when the member grows by one; nothing if that is not known.
  std::optional<int64_t> ElementsAlong(int member) const;
  Stride StrideAlong(int member) const;
};

struct StatementModel {
  const Statement* statement = nullptr;
  // About how many instances there are (estimate.h).
  double count = 0;
  // Iterations along each member; 1 for a member that does not move with the statement.
  std::vector<int64_t> extents;
  std::vector<LinearAccess> accesses;
  // Arithmetic of an instance: how many cycles an operation takes in a scalar pipeline, and the members along which its
  // result differs, one bit each. (alpha * A[i, k] is computed once for all j.)
  std::vector<std::pair<double, unsigned>> operations;
  // Until what an instance stores is there, counted from an element that an instance before it has stored
  // and that stays in a register; 0 if it reads none.
  double chain_cycles = 0;

  // Iterations along all members. Where bounds depend on other members, an upper bound.
  double Instances() const;
  // Cycles of the operations of all instances in a box of `iterations` along each member.
  double OperationCycles(const std::vector<double>& iterations) const;
  bool Moves(int member) const { return extents[static_cast<size_t>(member)] > 1; }
};

struct LoopModel {
  std::vector<StatementModel> statements;
  int members = 0;  // of the band; then come the loops around it, outermost first
  int all = 0;      // members and loops around
  int groups = 0;   // of accesses
  double runs = 1;  // of these loops

  const StatementModel* Find(const std::string& name) const;
  // The most iterations that a statement has along a member.
  int64_t Extent(int member) const;
};

// Of the instances at `place`, which run in the loops of `band`. Parameters whose value nobody knows are
// `assumed`. Throws isl::exception.
LoopModel ModelOf(const Scop& scop, const Place& place, const isl::multi_union_pw_aff& band,
                  const AssumedParameters& assumed);

// Cycles that the arithmetic of a statement's instance takes in a scalar pipeline; indices and conversions cost
// nothing.
double ArithmeticCycles(const Statement& statement);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_LOOP_MODEL_H_
