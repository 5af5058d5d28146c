// Which bytes an instruction reads and writes, derived from the loop nest of its meaning.
#ifndef ISA_FOOTPRINT_H_
#define ISA_FOOTPRINT_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/int_expression.h"
#include "isa/instruction_set.h"

namespace polynao::isa {

using ir::IntExpression;
using ir::IntInputs;

// The accesses of one instruction, compiled. Immutable, so shared by threads.
class FootprintPlan {
 public:
  // Error: an extent or an index that is not an expression over the scalar operands.
  static absl::StatusOr<FootprintPlan> Create(const Instruction& instruction,
                                              const IntExpression::Resolver& resolver);

  // Adds the instruction's ranges for these operands: exact (as a set of bytes) where indices are
  // affine in the loop variables, else all of the buffer's declared extent; conditions around an
  // access are taken as true. Loads of `out` operands read what the instruction itself has written,
  // and are left out. Nothing if a loop around an access has no iterations, or its extent divides
  // by zero.
  void Append(const IntInputs& inputs, std::vector<ByteRanges>* ranges) const;

  // InstructionSet::Flows.
  std::optional<std::vector<Flow>> Flows(const IntInputs& inputs) const;

  // From the first to one past the last byte of an operand; (0, 0) if there is none.
  std::pair<int64_t, int64_t> Bounds(int operand, const IntInputs& inputs) const;

  // Returns true if all accesses of two operands, the first of them written, have one and the same
  // index: then they may stand at the same address, element for element.
  bool MayCoincide(int written, int other) const;

 private:
  struct Loop {
    IntExpression min, extent;
  };
  struct Access {
    int operand;
    Space space;
    bool is_write;
    int64_t element_bytes;
    IntExpression constant;                   // in elements
    std::vector<int> loops;                   // outermost first
    std::vector<IntExpression> coefficients;  // one per loop, in elements
  };
  // A store and a load of its value, which stand in the same loops: positions in accesses_.
  struct Dependence {
    int store, load;
    bool is_copy;
  };
  class Builder;

  using Wide = __int128;
  static constexpr int kMaxDepth = 16;
  static constexpr int64_t kFar = int64_t{1} << 62;
  // Where an access goes: dims are (count, stride in elements), outermost first, without trivial
  // ones.
  struct Extent {
    int64_t begin, end;
    bool fits;  // else [0, kFar)
    int depth;
    std::pair<int64_t, int64_t> dims[kMaxDepth];
  };
  // False if it touches nothing.
  bool Evaluate(const Access& access, const IntInputs& inputs, Extent* extent) const;

  std::vector<Loop> loops_;
  std::vector<Access> accesses_;
  std::vector<std::pair<int, int>> coincident_;
  std::vector<Dependence> dependences_;
  bool has_flows_ = true;  // dependences_ are all there is
};

}  // namespace polynao::isa

#endif  // ISA_FOOTPRINT_H_
