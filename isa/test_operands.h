// Random machines and operands for tests of instructions: any row of a table, found by its
// constraints.
#ifndef ISA_TEST_OPERANDS_H_
#define ISA_TEST_OPERANDS_H_

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "isa/instruction_set.h"

namespace polynao::isa {

// Memories filled with random values, and registers.
struct TestMachine {
  std::vector<uint8_t> memory[kSpaceCount];
  int64_t pc = 7;
  std::vector<int64_t> args;

  // `bytes` in each memory.
  explicit TestMachine(int64_t bytes);
  // How instructions see it.
  InstructionSet::CoreView View();
};

// Operand values that satisfy the instruction's constraints and stay within memories of `bytes`;
// none if a few thousand attempts found none. Counts are small: 0, 1, primes, multiples of 64.
std::optional<std::vector<int64_t>> RandomOperands(const InstructionSet& set,
                                                   const Instruction& instruction, int64_t bytes,
                                                   std::mt19937_64& random);

// Fills the operands' memories with values of the operands' types: small numbers, and for floats
// now and then zeros of both signs, infinities, NaNs, subnormals and huge values.
void FillOperands(const InstructionSet& set, const Instruction& instruction,
                  const std::vector<int64_t>& values, TestMachine* machine,
                  std::mt19937_64& random);

// Makes all NaNs in the written operands one NaN: their payload is left open.
void UnifyNans(const InstructionSet& set, const Instruction& instruction,
               const std::vector<int64_t>& values, TestMachine* machine);

// "count = 64, dst = 128, ..." for failure messages.
std::string DescribeOperands(const Instruction& instruction, const std::vector<int64_t>& values);

}  // namespace polynao::isa

#endif  // ISA_TEST_OPERANDS_H_
