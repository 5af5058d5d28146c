// Counts what an instruction does as far as energy depends on it, derived from the loop nest of its meaning.
#ifndef ISA_ACTIONS_H_
#define ISA_ACTIONS_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/int_expression.h"
#include "compiler/ir/type.h"
#include "isa/instruction_set.h"

namespace polynao::isa {

// Sums over executed instructions. They depend on decoded instructions and their operands alone, not on time.
struct ActionCounts {
  struct Bytes {
    int64_t read = 0;
    int64_t written = 0;
    bool operator==(const Bytes&) const = default;
  };
  template <typename T>
  using ByType = std::array<T, ir::kTypeCount>;

  ByType<int64_t> macs{};  // multiply-accumulates of the tensor unit, by type of the operands
  ByType<int64_t> element_ops{};  // element operations of the vector unit, by type
  ByType<int64_t> slow_ops{};     // those that take vector.slow passes: division, exp, ...
  // Bytes at the ports of memories, by [memory][Unit].
  std::array<std::array<Bytes, kUnitCount>, kSpaceCount> bytes{};

  bool operator==(const ActionCounts&) const = default;
  void Add(const ActionCounts& other);
  const Bytes& BytesOf(Space space, Unit unit) const {
    return bytes[static_cast<size_t>(space)][static_cast<size_t>(unit)];
  }
  // (name, value) of every count that is not 0, in a fixed order: "macs.i8", "element_ops.f16", "slow_ops.f16",
  // "nmem.tensor.read".
  std::vector<std::pair<std::string, int64_t>> Rows() const;
};

// The actions of one instruction as products of loop extents. docs/energy.md states the rules:
//
// - A store of a computed value is one operation for each iteration of its loops. On the tensor unit only sums of
//   products count, by the type of what is multiplied; on the vector unit only values that are more than a copied
//   element.
// - A read operand costs its bytes for each iteration of the loops around the load, since no unit keeps operands. A
//   loop of constant extent is one over lanes: an element that all lanes read is read once.
// - A written operand costs each of its elements once, and once more if the instruction also reads what it held:
//   sums stay in the unit.
//
// Immutable, so shared by threads.
class ActionPlan {
 public:
  static absl::StatusOr<ActionPlan> Create(const Instruction& instruction,
                                           const ir::IntExpression::Resolver& resolver);
  // Adds what the instruction does with these operands.
  void Count(const ir::IntInputs& inputs, ActionCounts* counts) const;

 private:
  class Builder;
  struct Term {
    enum class Kind : uint8_t { kMac, kElementOp, kSlowOp, kRead, kWrite } kind;
    ir::Type type = ir::Type::kI8;  // of operations
    Space space = Space::kGmem;     // of bytes, as is operand
    int operand = -1;
    int64_t factor = 1;      // bytes of an element
    std::vector<int> loops;  // positions in extents_
  };
  Unit unit_ = Unit::kScalar;
  std::vector<ir::IntExpression> extents_;
  std::vector<Term> terms_;
};

}  // namespace polynao::isa

#endif  // ISA_ACTIONS_H_
