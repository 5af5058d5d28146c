// The vector instructions of a table that compute one element of the result from one element of each operand: which
// of them computes an expression, and at what cost. Found by their meanings; there is no list of operators here.
#ifndef COMPILER_TE_CARD_LANE_INSTRUCTIONS_H_
#define COMPILER_TE_CARD_LANE_INSTRUCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/ir.h"
#include "isa/instruction_set.h"
#include "isa/machine.h"

namespace polynao::te {

// An instruction that computes an expression from some of its subexpressions.
struct LaneMatch {
  const isa::Instruction* instruction = nullptr;
  // The subexpressions that it reads from memory, each once, in the order of the instruction's operands.
  std::vector<ir::Expr> operands = {};
  // Which of them is the same for all rows of the result (`rhs` of row_add); none if all have an element for each
  // element of the result.
  std::optional<size_t> row = {};
  // How many nodes of the expression the instruction computes.
  int size = 0;
  // The element that the meaning stores, over its loads.
  ir::Expr pattern = {};
};

class LaneInstructions {
 public:
  // Instructions that the machine lacks are left out. Both must outlive this.
  LaneInstructions(const isa::InstructionSet& instructions, const isa::Machine& machine);

  // All instructions whose result is `value`: the largest first, of equal ones in the table's order; steps.cc chooses
  // by cycles. Variables and constants may be operands that are numbers of the instruction (`value` of muls); every
  // other subexpression may be one that is read.
  std::vector<LaneMatch> Find(ir::Expr value) const;
  // The instruction that stores one value to all elements; null if there is none for the type.
  const isa::Instruction* Fill(ir::Type type) const;

  // The instruction that reduces rows of `type` by the binary operation `combine`; null if there is none.
  const isa::Instruction* RowReduction(ir::ExprKind combine, ir::Type type) const;

  // The instruction that transposes a matrix, dst[j, i] = src[i, j]; null if there is none for the type.
  const isa::Instruction* Transpose(ir::Type type) const;
  // Its cycles for a matrix of so many rows and columns.
  double TransposeCycles(const isa::Instruction& instruction, int64_t rows, int64_t columns) const {
    return CyclesWith(instruction, {{"rows", rows}, {"columns", columns}});
  }

  // The tensor unit's instruction that sums products of two factors of `type`, over `reduced` loops for each of
  // `results` loops of results. The last of these, the channels, is two loops of the instruction: groups of lanes, and
  // lanes.
  // Null if there is none, or none of the machine.
  const isa::Instruction* SumOfProducts(ir::Type type, size_t results, size_t reduced) const;
  // Cycles of SumOfProducts(.., 2, 1) for so many rows, channels and products of each sum.
  double ProductCycles(const isa::Instruction& instruction, int64_t rows, int64_t channels,
                       int64_t depth) const;

  // Cycles of the vector unit for `rows` rows of `count` elements, `count` rounded up to whole groups.
  double Cycles(const isa::Instruction& instruction, int64_t rows, int64_t count) const;
  // The same of an instruction of which some operands, of these types, lack the result's rows: by its form for one such
  // operand, `row_form`, or, if that is null, with a copy of each of them to all rows before it.
  double Cycles(const isa::Instruction& instruction, const isa::Instruction* row_form,
                const std::vector<ir::Type>& lacking, int64_t rows, int64_t count) const;
  // Cycles of a copy inside NMEM.
  double CopyCycles(ir::Type type, int64_t segments, int64_t count) const;
  // The same from NMEM to WMEM.
  double WeightCopyCycles(ir::Type type, int64_t segments, int64_t count) const;

 private:
  struct Pattern {
    const isa::Instruction* instruction;
    ir::Expr value;                   // of the element that the meaning stores
    std::vector<ir::Expr> loads;      // in it
    std::optional<size_t> row;        // which load is of a row
    std::vector<ir::Expr> variables;  // loops
  };
  static std::optional<Pattern> PatternOf(const isa::Instruction& instruction);
  // Cycles with these values of operands, 0 for all others; infinite if the machine lacks the instruction.
  double CyclesWith(const isa::Instruction& instruction,
                    std::initializer_list<std::pair<std::string_view, int64_t>> values) const;
  double SegmentCycles(ir::Type type, std::string_view to, int64_t segments, int64_t count) const;
  // Cycles with these values of all operands; infinite if the machine lacks the instruction.
  double Cost(const isa::Instruction& instruction, const std::vector<int64_t>& values) const;

  const isa::InstructionSet& instructions_;
  const isa::Machine& machine_;
  std::vector<Pattern> patterns_;
  std::vector<const isa::Instruction*> fills_;
  // The parameters of the machine that costs name: those looked for (null: the machine lacks it), and their values. To
  // find one by name takes longer than the cost itself.
  mutable std::vector<std::optional<const int64_t*>> found_;
  mutable std::vector<int64_t> parameters_;
  // memcpy by type and target.
  mutable absl::flat_hash_map<std::pair<ir::Type, std::string_view>, const isa::Instruction*>
      copies_;
};

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_LANE_INSTRUCTIONS_H_
