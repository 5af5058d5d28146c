// Random instructions that keep the rules of the instruction set and stay inside a machine's memories.
#ifndef SIMULATOR_REFERENCE_TESTING_RANDOM_OP_H_
#define SIMULATOR_REFERENCE_TESTING_RANDOM_OP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isa/instruction_set.h"
#include "isa/machine.h"
#include "simulator/reference/testing/random.h"

namespace polynao::simulator::reference {

// One instruction with its operands set up, perhaps in a loop.
struct Op {
  struct Arg {
    int64_t value = 0;      // in a register of its own
    bool is_gmem = false;   // an offset in the program's tensor
    std::string text = {};  // instead of a value, as it is written: "r41", "17"; kLabel
  };
  // The index of the second instruction behind this one, where a branch goes.
  static constexpr char kLabel[] = "@";
  static constexpr char kLabelInRegister[] = "[@]";

  std::string mnemonic;
  std::vector<Arg> args = {};
  int64_t repeat = 1;
  int64_t step = 0;  // bytes, added to offsets in the tensor after each repetition
};

// r41 has what was loaded or computed from that, unknown to the clocked model; r42 and r43 what was computed from
// constants.
inline constexpr char kUnknownRegister[] = "r41";

class OpMaker {
 public:
  // `tensor_bytes`: of the program's tensor. Without `loads` no instruction reads a register from a memory.
  OpMaker(Random& random, const isa::Machine& machine, int64_t tensor_bytes, bool loads);

  // Any instruction that the core can execute.
  Op Make(bool is_memory_core);
  // This one; none if the machine lacks its unit, its operands fit no memory, or it is not one to be drawn alone
  // (CanBeDrawn).
  std::optional<Op> Make(const isa::Instruction& instruction);

 private:
  using Values = std::map<std::string, int64_t, std::less<>>;

  std::optional<Op> Attempt(const isa::Instruction& instruction);
  Values CopyValues(const isa::Instruction& instruction);
  Values VectorValues(const isa::Instruction& instruction);
  Values TensorValues(const isa::Instruction& instruction);
  Op ScalarOp(const isa::Instruction& instruction);
  int64_t Room(isa::Space space) const { return bytes_[static_cast<int>(space)]; }
  // An address in a memory for `bytes` bytes.
  int64_t Address(isa::Space space, int64_t bytes, int64_t align);
  bool Fits(const isa::Instruction& instruction, const std::vector<int64_t>& values) const;

  Random& random_;
  const isa::Machine& machine_;
  int64_t bytes_[isa::kSpaceCount] = {};
  bool loads_;
};

// Returns true if a core can execute the instruction and go on with the next one, or the one after it, by itself: all
// but barriers and halt.
bool CanBeDrawn(const isa::Instruction& instruction);

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_TESTING_RANDOM_OP_H_
