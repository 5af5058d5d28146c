// The calculator's notation of maps for the rest of this folder.
#ifndef COMPILER_POLY_CALCULATOR_MAP_H_
#define COMPILER_POLY_CALCULATOR_MAP_H_

#include <isl/cpp.h>

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/poly/isl/isl_tools.h"

namespace polynao::poly {

// The map that `text`, one expression of the calculator (calculator.h), stands for, as an object of `isl`:
// "{ S0[i, j] -> [i + j, j] }", "[S0(i, j) -> (j, i)]", "[{ S0(i) -> (i/4) }, { S0(i) -> (i) }]". It may take the
// operations that `isl` has left. Errors have the place: "NAME:1:7: expected .., found ..".
absl::StatusOr<isl::union_map> EvaluateMap(IslContext& isl, std::string_view text,
                                           std::string_view name);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CALCULATOR_MAP_H_
