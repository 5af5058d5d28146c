// Chooses numbers for the parameters of a part where cost models need some.
#ifndef COMPILER_POLY_MODEL_ASSUMED_H_
#define COMPILER_POLY_MODEL_ASSUMED_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

struct AssumedParameters {
  isl::set context;                       // [n] -> { : n = 1024 }, and what is known besides
  std::map<std::string, int64_t> values;  // by the parameters' names
  absl::flat_hash_map<ir::Var, int64_t> variables;  // of those that are a variable
};

// `extent` for each parameter, but few for the size of a window: the bound of a loop of a sum whose variable is added
// to another one in an index,
// as p of  for (u, 0, p) { y[i] = y[i] + a[i + u] }, if no other loop ends there. As near to that as the part's asserts allow. Throws
// isl::exception.
AssumedParameters AssumeParameters(const Scop& scop, int64_t extent);

// `set` at these values; as it is where they are in none of its elements.
isl::set AtAssumed(const isl::set& set, const Scop& scop, const AssumedParameters& assumed);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_MODEL_ASSUMED_H_
