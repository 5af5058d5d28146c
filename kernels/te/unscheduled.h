// Operators that are written as tensor expressions only: their schedules are found from the expressions.
#ifndef KERNELS_TE_UNSCHEDULED_H_
#define KERNELS_TE_UNSCHEDULED_H_

#include <functional>
#include <vector>

#include "compiler/te/graph.h"
#include "kernels/te/operator.h"

namespace polynao::kernels {

// Writes the tensors of a case; the output. Placeholders are the operator's inputs, in order.
using Expressions = std::function<te::Tensor(te::Graph&, const OperatorCase&)>;

// Gives `row` what follows from the expressions: `build`, of a function of this name, and `schedules`. On a card,
// te::CardProgram fuses what it can; elsewhere all that is elementwise becomes one loop nest, and reductions are
// computed row by row.
void ScheduleByExpressions(Operator& row, const Expressions& express, const std::string& function);

// The same with a card's program made of the loops that the interpreter runs, as of any nest (Operator::loops_on_card):
// for graphs of several groups that cross GMEM. `build` alone, there are no schedules to choose from.
void ScheduleByLoops(Operator& row, const Expressions& express, const std::string& function);

// For a row with schedules from other expressions of the same operator: where none of them fits, or, `if_cheaper`, the
// first one takes more cycles than these loops by the models of both, a card takes the loops. Other targets always do.
void OrByLoops(Operator& row, const Expressions& express, const std::string& function,
               bool if_cheaper);

// Elementwise graphs: add_relu, add_n, batch_norm, silu, gelu, hard_swish.
std::vector<Operator> UnscheduledOperators();
// Convolutions with what follows them: conv2d_bn, conv2d_batch_norm, conv2d_pair (fused_layers.cc).
std::vector<Operator> FusedLayers();

}  // namespace polynao::kernels

#endif  // KERNELS_TE_UNSCHEDULED_H_
