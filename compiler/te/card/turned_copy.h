// Copies on chip that turn rows into columns, faster than element by element. A segment of a copy takes a cycle however
// short it is, while a select takes 64 elements a cycle. So squares of digits x digits elements are turned by selects,
// in as many rounds as digits has bits, and then moved in runs of `digits`. For digits = 2, of X as two sets of rows:
//
//   R0 = rows 0, 2, 4, .. of X     a b c d      select    a A c C       Y  a A ..    column 0 of X
//   R1 = rows 1, 3, 5, .. of X     A B C D   -->          b B d D   -->    b B ..    column 1
//                                                                          c C ..
// In round w = 1, 2, 4, .. rows r and r + w, of which r lacks the bit w, exchange halves of their runs of 2 w elements:
//
//   R'[r][j]     = j has bit w ? R[r + w][j - w] : R[r][j]
//   R'[r + w][j] = j has bit w ? R[r + w][j]     : R[r][j + w]
//
// Without a select for the type, integers take products with 0 and 1 instead.
#ifndef COMPILER_TE_CARD_TURNED_COPY_H_
#define COMPILER_TE_CARD_TURNED_COPY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/te/card/lane_instructions.h"
#include "compiler/te/graph.h"
#include "isa/instruction_set.h"

namespace polynao::te {

// A copy Y[.., b, .., a] of what stands in memory as X[.., a, .., b], in boxes of `box` elements at multiples of it.
struct Turn {
  Shape shape, box;    // of Y; a is the last dimension
  size_t columns = 0;  // b
  int64_t digits = 0;  // a power of two that divides the box and the shape along a and b
  // Each set of rows has instructions of its own.
  static constexpr int64_t kMostDigits = 8;

  int64_t rows() const { return box.back() / digits; }        // of each of the sets of rows
  int64_t set() const { return ElementCount(box) / digits; }  // elements of a set
};

// How elements of a type are chosen by a mask of zeros and ones: by a select, or by two products and a sum.
struct TurnInstructions {
  const isa::Instruction* fill = nullptr;
  const isa::Instruction* select = nullptr;
  const isa::Instruction *mul = nullptr, *add = nullptr;
};
// Nothing if the machine cannot.
std::optional<TurnInstructions> FindTurnInstructions(ir::Context& c, ir::Type type,
                                                     const LaneInstructions& instructions);

// Cycles of the vector unit for a box, and those that a core spends once. `copies`: sets of rows are copied on chip.
struct TurnCycles {
  double box = 0, once = 0;
};
TurnCycles CyclesOf(const Turn& turn, ir::Type type, bool copies, const TurnInstructions& by,
                    const LaneInstructions& instructions);
// Bytes of NMEM besides Y: the sets of rows, of which there are `copies` if they are loaded, what the rounds make of
// them, and masks.
int64_t BytesOf(const Turn& turn, ir::Type type, int copies, const TurnInstructions& by);

// A compute that a turn needs, in the order of the computation.
struct TurnPart {
  enum class Kind : uint8_t {
    kRows,  // the sets of rows: loaded, or copied
    kMask,  // once for a core
    kBox,   // for each box
  };
  Kind kind;
  Tensor tensor = {};
  std::string_view instruction = {};  // family; of a copy none
  Tensor place = {};                  // whose memory it takes
  std::vector<int64_t> splits = {};   // of the last dimension, from the outside
  // The loop that comes first, counted from the innermost one: its guard then is outside of what becomes one copy.
  std::optional<size_t> first = {};
};
struct TurnedCopy {
  std::vector<TurnPart> parts;
  Tensor result;  // Y; SplitRuns gives it the loops of a copy in runs
};

class Schedule;
// The computes of a turn. `element`: of Y at some axes. `compute` adds a compute to the graph.
using MakeCompute = std::function<Tensor(const std::string& name, const Shape& shape,
                                         const std::function<Expr(const Axes&)>& element)>;
TurnedCopy MakeTurn(const std::string& name, const Turn& turn, ir::Context& c, ir::Type index_type,
                    ir::Type type, const TurnInstructions& by, const MakeCompute& compute,
                    const std::function<Expr(const Axes&)>& element);

// Makes the loops of `result` run over runs of digits elements.
void SplitRuns(Schedule& s, const Turn& turn, const Tensor& result);

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_TURNED_COPY_H_
