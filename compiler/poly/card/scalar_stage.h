// A stage as loops of the scalar units.
#ifndef COMPILER_POLY_CARD_SCALAR_STAGE_H_
#define COMPILER_POLY_CARD_SCALAR_STAGE_H_

#include "compiler/ir/ir.h"
#include "compiler/poly/card/nest_stages.h"
#include "isa/machine.h"

namespace polynao::poly {

// Loops that compute a stage element by element, shared by all cores along its longest axis, with indices of
// `index_type`. `cycles`: about as many as they take, since each access waits for GMEM.
struct ScalarLoops {
  ir::Stmt body;
  double cycles;
};
ScalarLoops ScalarLoopsOf(const NestStage& stage, ir::Type index_type, const isa::Machine& machine,
                          ir::Context& c);

}  // namespace polynao::poly

#endif  // COMPILER_POLY_CARD_SCALAR_STAGE_H_
