// A tensor-ISA program under construction: instructions in basic blocks, over virtual registers.
//
// A register is a *value* or a *variable*:
//   - a value is written by one instruction, which dominates all its readers (SSA form);
//   - a variable is written by several: the counter of a loop, the result of a branch. It has a
//     *home*, the block at whose beginning its value is settled (the head of the loop, the block in
//     which the branch ends). Only that block and those it dominates read it, where nothing writes
//     it anymore; besides, the end of a loop reads the counter that it has just stepped.
// So each register that is read stands for one value, which is known from its number alone, and
// code over registers can be compared and moved as in SSA form, without phi functions.
//
// Blocks are in program order. Each ends with a branch, `jump` or `halt`; a branch that is not
// taken continues with the next block. A branch backwards goes to the head of a loop, and the
// blocks of a loop are contiguous: the code is structured as loop IR is.
#ifndef COMPILER_CODEGEN_DIANNAO_CODE_H_
#define COMPILER_CODEGEN_DIANNAO_CODE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "isa/instruction_set.h"

namespace polynao::diannao {

struct Op {
  const isa::Instruction* instruction;
  // In the order of the operands: registers, constants, and blocks as targets of branches.
  absl::InlinedVector<int64_t, 4> fields;
};

struct Block {
  std::vector<Op> ops;
  std::string label = "";  // for readers; "" for none
};

struct Code {
  std::string name;  // of the function
  const isa::InstructionSet* set;
  std::vector<Block> blocks;
  static constexpr int kValue = -1;
  std::vector<int> home;  // of each register: a variable's home, or kValue

  int NewRegister(int home_block = kValue) {
    home.push_back(home_block);
    return static_cast<int>(home.size()) - 1;
  }
  bool IsValue(int64_t reg) const { return home[reg] == kValue; }
};

inline bool IsWritten(const isa::Operand& operand) {
  return operand.kind == isa::OperandKind::kWritten;
}
inline bool IsRead(const isa::Operand& operand) {
  return operand.kind == isa::OperandKind::kValue || operand.kind == isa::OperandKind::kAddress;
}

// The register that an instruction writes, or -1. (No scalar instruction writes two.)
int64_t WrittenRegister(const Op& op);
// The field with the block that a branch goes to, or null.
int64_t* BranchTarget(Op& op);
const int64_t* BranchTarget(const Op& op);

template <typename Visit>
void ForEachRead(const Op& op, const Visit& visit) {
  for (size_t i = 0; i < op.fields.size(); ++i) {
    if (IsRead(op.instruction->operands[i])) visit(op.fields[i]);
  }
}
template <typename Visit>
void ForEachRead(Op& op, const Visit& visit) {
  for (size_t i = 0; i < op.fields.size(); ++i) {
    if (IsRead(op.instruction->operands[i])) visit(op.fields[i]);
  }
}

// The constant in each register that `li` writes.
using Constants = std::vector<std::optional<int64_t>>;
Constants FindConstants(const Code& code);

// Returns true if `op` floats: it computes a value from registers alone and cannot stop the
// program, so it may be computed wherever its operands are available, and omitted where nothing
// reads it. Its @require conditions must follow from constant operands: a division by a register
// does not float.
bool Floats(const Code& code, const Op& op, const Constants& constants);

// Removes values that nothing reads.
void RemoveDeadCode(Code& code);

// How control flows through the blocks.
class Flow {
 public:
  struct Loop {
    int head;    // its first block
    int last;    // its last
    int parent;  // the loop around it, or -1
    int depth;   // 1 for an outermost loop
  };

  explicit Flow(const Code& code);

  // The block through which each path to `block` comes last; -1 for the first.
  int dominator(int block) const { return dominator_[block]; }
  bool Dominates(int a, int b) const { return first_[a] <= first_[b] && last_[b] <= last_[a]; }
  // The innermost loop around a block, or -1.
  int loop(int block) const { return loop_[block]; }
  const std::vector<Loop>& loops() const { return loops_; }
  int Depth(int block) const { return loop_[block] < 0 ? 0 : loops_[loop_[block]].depth; }
  // Returns true if a loop stands between a block and its dominator.
  bool IsBehindLoop(int block) const {
    return heads_[block] - heads_[dominator_[block]] > (IsHead(block) ? 1 : 0);
  }
  bool IsHead(int block) const { return loop_[block] >= 0 && loops_[loop_[block]].head == block; }

 private:
  std::vector<int> dominator_;
  std::vector<int> first_, last_;  // of the blocks that it dominates, numbered in preorder
  std::vector<int> loop_;
  std::vector<int> heads_;  // how many loops begin up to a block
  std::vector<Loop> loops_;
};

// Places for instructions. A place is an index over all instructions, block after block, and means:
// directly before the instruction that has this index now.
class Places {
 public:
  Places(const Code& code, const Flow& flow, const Constants& constants);

  int count() const { return static_cast<int>(block_.size()); }
  int block(int place) const { return block_[place]; }
  int Begin(int block) const { return begin_[block]; }
  int End(int block) const { return begin_[block + 1]; }
  // The best place for floating code that is needed at `place`; not before `earliest`, which
  // dominates `place`. It is outside of loops if possible, and then before the nearest syncs and
  // barriers, where the core computes it while it would otherwise only wait for its queues:
  //
  //     conv ...              conv ...
  //     sync.compute          r = ...
  //     r = ...        -->    sync.compute
  //     store r ...           store r ...
  int Best(int place, int earliest) const;
  // Returns true if code at the place is computed while the core would wait.
  bool IsHidden(int place) const { return slot_[place] == place; }

 private:
  const Flow& flow_;
  std::vector<int> block_;
  std::vector<int> begin_;
  // For each place, the first of the nearest syncs and barriers at or before it that dominate it
  // and are in the same loop, not in an inner loop; -1 if there is none.
  std::vector<int> slot_;
};

// Text for tests and readers: "b0:", then "  add v2, v0, v1" or "  beq v2, v3, b4" for each
// instruction. A block's name is followed by the variables whose home it is: "b1: (v3)".
std::string Print(const Code& code);

}  // namespace polynao::diannao

#endif  // COMPILER_CODEGEN_DIANNAO_CODE_H_
