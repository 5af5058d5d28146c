// Copies of parts of arrays in local buffers: which elements a tile of a schedule tree accesses, in which box
// they are, and which of them belong to one thread alone.
//
//   for (it, ..) for (jt, ..) for (kt, ..)      at this place, with tiles of 8 x 32 x 16:
//     for (i, ..) for (j, ..) for (k, ..)         A[8 it .. 8 it + 7, 16 kt .. 16 kt + 15], each used 32 times
//       C[i, j] += A[i, k] * B[k, j]              B[16 kt .. 16 kt + 15, 32 jt .. 32 jt + 31], each 8 times
//                                                 C[i, j] belongs to the thread (i - 8 it, j - 32 jt)
//
// Method: Verdoolaege et al., "Polyhedral parallel code generation for CUDA", TACO 2013, section 4: array reference
// groups, and footprints that fit a box of constant size at an offset that is affine in the loops around.
#ifndef COMPILER_POLY_ARRANGE_LOCAL_COPIES_H_
#define COMPILER_POLY_ARRANGE_LOCAL_COPIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/scop.h"
#include "compiler/poly/order/band_info.h"

namespace polynao::poly {

// A box of elements: `sizes` of them along each dimension, from `first`, functions on the loops around.
struct Box {
  std::vector<isl::pw_aff> first;  // { [t0, t1, ..] -> [f] }
  std::vector<int64_t> sizes;
  // Of a box whose size parameters decide, instead of `sizes`: { [t0, t1, ..] -> [n + 31] }, the same for all loops
  // around.
  std::vector<isl::pw_aff> extents = {};
  int64_t elements() const;
};

// The smallest such box that isl's constraints show: { [t0, ..] -> A[i, j] } is the footprint. Nothing if there is
// none of constant size.
std::optional<Box> BoxOf(const isl::map& footprint);

// The same, of a size over parameters: of { [t] -> A[a] : 32 t <= a < 32 t + 31 + n }, 31 + n elements from 32 t on.
// Nothing if the constraints show none.
std::optional<Box> ParametricBoxOf(const isl::map& footprint);

// An access of a statement, by its place among Statement::accesses.
struct Reference {
  const Statement* statement;
  size_t access;
  const Access& get() const { return statement->accesses[access]; }
};

// References to one array whose elements at a place lie in one box.
struct ReferenceGroup {
  ir::Buffer buffer;
  std::string array;  // the tuple's name
  std::vector<Reference> references = {};
  isl::map footprint = {};  // { [t0, ..] -> A[i, j] }
  Box box = {};
  // Some element is accessed by several instances of one iteration of the loops around.
  bool is_reused = false;
  // Whoever copies the box may read these elements: { [t0, ..] : .. } over the parameters `element.0`, .. . Nothing:
  // all elements of the array.
  std::optional<isl::set> readable = {};
};

// Buffers of which all elements are defined before the part: `in` and `inout` parameters.
using Given = absl::flat_hash_set<ir::Buffer>;

// The groups of the arrays that no instance at `place` stores to, where all accesses are affine. The loops around are
// `place.prefix`, of which there must be one. References are in one group if the box of both is no larger than both
// boxes together: A[i - 1] and A[i + 1], but not A[i, k] and A[j, k].
std::vector<ReferenceGroup> ReadGroups(const Scop& scop, const Place& place);

// Sets what may be read of the box of a group at `place`, if its buffer is not given: what instances of `kernel`, a
// place around, read for certain in the same iteration of the loops around that, or what certainly has been stored.
// False if there are other elements that instances may read, or if the set takes too many conditions to write down:
// then the box must not be copied.
bool FindReadable(const Scop& scop, const Place& place, const Place& kernel,
                  const Dependences& dependences, ReferenceGroup& group);

// Elements of an array that is stored to, where each iteration of the loops around and of `threads` accesses a single
// one.
struct OwnElement {
  ir::Buffer buffer;
  std::string array;
  // Functions on the loops around, and on the parameters `thread.0`, `thread.1`, ..., which are the coordinates of
  // `threads`.
  std::vector<isl::pw_aff> element = {};
  // The iterations that need the value from before: they read it before they store it, or may do so, or a store may not
  // happen.
  isl::set loaded = {};
  isl::set stored = {};  // those that may store it
  // An access under a condition: the element may be outside of the array where the condition does not hold.
  bool may_be_outside = false;
};

// Such arrays among those that instances at `place` store to. What instances access is theirs alone if `threads` and
// the loops around carry no dependence. Of an array that is not given no element belongs here that only may be read:
// nothing may have stored it.
std::vector<OwnElement> OwnElements(const Scop& scop, const Place& place,
                                    const isl::multi_union_pw_aff& threads,
                                    const Dependences& dependences, const Given& given);

// The names of parameters of OwnElement and ReferenceGroup.
std::string ThreadParameter(size_t number);
std::string ElementParameter(size_t number);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_ARRANGE_LOCAL_COPIES_H_
