// A group of stages, a graph of tensor expressions, as a function of the card.
#ifndef COMPILER_POLY_CARD_GROUP_FUNCTION_H_
#define COMPILER_POLY_CARD_GROUP_FUNCTION_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_program.h"
#include "compiler/target/target.h"
#include "compiler/te/graph.h"

namespace polynao::poly {

// The function of a group by all clusters, or, of products on the tensor unit, by as many as take least: the cheapest
// schedule's, or that of another one if it leaves scalar code, which costs more then. `cycles`: by the cost model. What
// takes more than `limit` may be left out. Errors: what has no schedule, with `place`, a statement's first line.
absl::StatusOr<ir::Function> GroupFunction(const te::Tensor& output, const Target& target,
                                           const std::string& place, double limit,
                                           const CountScalarStores& scalar_stores, double& cycles);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_GROUP_FUNCTION_H_
