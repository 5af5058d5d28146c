// Copies on chip that turn rows into columns by an instruction that transposes a matrix. Element by element, a copy
// takes a cycle for each.
//
//   Y[b, a] = X[a, b]                -->  rows[a, b] = X[a, b] (loaded, or copied)    Y = transposed rows
//   Y[d, b, c, a] = X[d, a, c, b]    -->  rows[d, c, a, b]   Y[d] = transposed rows[d], of which (c, a) are one dimension
#ifndef COMPILER_TE_CARD_TURNED_COPY_H_
#define COMPILER_TE_CARD_TURNED_COPY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "compiler/te/card/lane_instructions.h"
#include "compiler/te/graph.h"
#include "isa/instruction_set.h"

namespace polynao::te {

// A copy Y[.., b, .., a] of what stands in memory as X[.., a, .., b], in boxes of `box` elements.
struct Turn {
  Shape shape, box;                      // of Y; a is the last dimension
  size_t columns = 0;                    // b
  const isa::Instruction* by = nullptr;  // transposes a matrix

  // Matrices of a box: one for each place along the dimensions before b.
  int64_t matrices() const {
    int64_t count = 1;
    for (size_t d = 0; d < columns; ++d) count *= box[d];
    return count;
  }
  // Of a matrix in memory: all behind b.
  int64_t rows() const { return ElementCount(box) / (matrices() * box[columns]); }
};

// Cycles of the vector unit for a box. `copies`: its rows are copied on chip.
double CyclesOf(const Turn& turn, ir::Type type, bool copies, const LaneInstructions& instructions);
// Bytes of NMEM besides Y. `copies` of the rows.
int64_t BytesOf(const Turn& turn, ir::Type type, int copies);

struct TurnedCopy {
  Tensor rows;    // the matrices as they stand in memory
  Tensor result;  // Y
};

class Schedule;
class Stage;
// The computes of a turn. `element`: of Y at some axes. `compute` adds a compute to the graph.
using MakeCompute = std::function<Tensor(const std::string& name, const Shape& shape,
                                         const std::function<Expr(const Axes&)>& element)>;
TurnedCopy MakeTurn(const std::string& name, const Turn& turn, const MakeCompute& compute,
                    const std::function<Expr(const Axes&)>& element);

// Has all of the matrices' rows loaded and transposed, also where readers need a part of them.
void ComputeWholeRows(Schedule& s, const Turn& turn, const TurnedCopy& copy);

// Gives Y's stage its loops: those over matrices outside. The two innermost are the instruction.
void TransposeEach(Stage& stage, const Turn& turn);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_TURNED_COPY_H_
