// The code of a program as the check walks it: decoded, with the ways that a branch may go.
#ifndef ISA_CHECK_CODE_H_
#define ISA_CHECK_CODE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "isa/instruction_set.h"
#include "isa/program.h"

namespace polynao::isa {

// What the check needs to know of each instruction, from its row.
struct CheckedStep {
  const Instruction* instruction = nullptr;  // null: the word is none
  std::vector<int64_t> fields = {};          // as InstructionSet::Decoded has them
  bool touches_memory = false;
  bool writes_pc = false;
  bool is_conditional = false;  // it may also go on with the next instruction
  bool reads_arguments = false;
  int64_t target = -1;  // the immediate that it may continue at
};

class CheckedCode {
 public:
  CheckedCode(const InstructionSet& set, const Program& program);

  int64_t size() const { return static_cast<int64_t>(steps_.size()); }
  const CheckedStep& at(int64_t pc) const { return steps_[static_cast<size_t>(pc)]; }
  // Two ways may come together in front of this instruction.
  bool IsJoin(int64_t pc) const { return is_join_[static_cast<size_t>(pc)]; }

  // The first instruction that all ways from behind the branch at `pc` to the program's end come to; size() if they end
  // apart. Found for all instructions when it is first asked for, in time linear in the code for structured programs.
  int64_t JoinOf(int64_t pc) const;

 private:
  std::vector<int64_t> Successors(int64_t pc) const;
  void FindJoins() const;

  std::vector<CheckedStep> steps_;
  std::vector<bool> is_join_;
  mutable std::vector<int64_t> joins_;  // immediate postdominators
};

}  // namespace polynao::isa

#endif  // ISA_CHECK_CODE_H_
