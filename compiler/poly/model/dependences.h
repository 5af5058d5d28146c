// Finds the instances that must stay in order in a static control part.
#ifndef COMPILER_POLY_MODEL_DEPENDENCES_H_
#define COMPILER_POLY_MODEL_DEPENDENCES_H_

#include <string>
#include <vector>

#include "compiler/poly/model/scop.h"

namespace polynao::poly {

struct DependenceOptions {
  // Updates x = x + e of one float element may change their order, and so the rounding (of a maximum: which NaN or
  // zero it is). Those of integers always may: they wrap, so that the order does not matter.
  bool reassociate_floats = false;
};

// Order of accesses to one buffer that belongs to the part alone (Scop::private_buffers).
struct PrivateOrder {
  ir::Buffer buffer;
  std::string array;     // its tuple
  isl::union_map flow;   // as below, through this buffer
  isl::union_map order;  // anti and output: needed only while instances share the buffer's elements
};

// Pairs { S0[i] -> S1[j] } of instances of which the first must run before the second.
struct Dependences {
  DependenceOptions options;
  // S1[j] may read what S0[i] has stored (value-based: no must-write of the element in between).
  isl::union_map flow;
  // Through buffers that are not private: S1[j] may overwrite what S0[i] reads, or stores. A write that
  // certainly happens in between makes a pair superfluous, and it is left out.
  isl::union_map anti;
  isl::union_map output;
  // Pairs of one reduction's updates that are in none of the above: they may swap, but not run at
  // the same time.
  isl::union_map reduction;
  std::vector<PrivateOrder> private_order;
  // { S0[i] -> A[i] }: reads that may get what was in the buffer before the part; writes that may
  // still be there behind it.
  isl::union_map live_in;
  isl::union_map live_out;

  // All pairs that a schedule of instances must keep, those of private buffers included.
  isl::union_map All() const;
  // Those that count whatever is private.
  isl::union_map Validity() const { return flow.unite(anti).unite(output); }
};

Dependences ComputeDependences(const Scop& scop, const DependenceOptions& options = {});

// "" if `schedule` is legal; else one instance of a violated dependence: the kind, both statement
// instances with their times, the array element, and a value for each parameter.
std::string FindViolation(const Scop& scop, const Dependences& dependences,
                          const isl::schedule& schedule);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_MODEL_DEPENDENCES_H_
