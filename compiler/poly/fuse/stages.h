// Splits a static control part into stages: what it computes, one array after the other.
//
//   for (i) a[i] = f(x[i])                          stage 0  stores a, reads x
//   for (i) { b[i] = 0; for (r) b[i] += a[i + r] }  stage 1  stores b (two statements), reads stage 0
//   for (i) y[i] = b[i] * x[i]                      stage 2  stores y, reads stage 1 and x; y is live behind the part
#ifndef COMPILER_POLY_FUSE_STAGES_H_
#define COMPILER_POLY_FUSE_STAGES_H_

#include <set>
#include <vector>

#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

// The instances of the statements, of which there is one at least.
isl::union_set DomainOf(const std::vector<const Statement*>& statements);

// Statements that belong together: those that store one array, those that depend on each other in a circle, and those
// that are joined to run in the same tiles.
struct Stage {
  std::vector<const Statement*> statements;  // in the order of the program
  std::vector<ir::Buffer> buffers;           // that they store
  // Stages that must run before, by number: those that this one reads, and all, those whose reads or stores it
  // overwrites included.
  std::set<int> reads, after;
  std::set<int> overwrites;  // those of which it overwrites reads or stores
  // It stores one buffer, which nothing outside of the part uses and which has a value wherever it is read, and reads
  // of it only elements that it updates: a tile of another stage may have its own copy of what it needs.
  bool is_local = false;
  // Its instances that may not run at once, or not in the other order.
  isl::union_map pairs = {};

  isl::union_set Domain() const { return DomainOf(statements); }
};

// Buffers whose stages are one.
using JoinedBuffers = std::vector<std::vector<ir::Buffer>>;

// The stages, each behind those in its `after`. Throws isl::exception.
std::vector<Stage> StagesOf(const Scop& scop, const Dependences& dependences,
                            const JoinedBuffers& joined = {});

// The statements of some stages as a part of its own (scop.h).
Scop PartOf(const Scop& scop, const std::vector<const Stage*>& stages);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_STAGES_H_
