#include "simulator/reference/core.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status.h"

namespace polynao::simulator::reference {
namespace {

bool IsRegister(const isa::Operand& operand) {
  return operand.kind == isa::OperandKind::kValue || operand.kind == isa::OperandKind::kAddress;
}

bool WritesRegister(const isa::Instruction& instruction) {
  return std::any_of(
      instruction.operands.begin(), instruction.operands.end(),
      [](const isa::Operand& operand) { return operand.kind == isa::OperandKind::kWritten; });
}

// Whether the instruction may read this operand without its value being known: it decides neither where bytes are nor
// how long anything takes nor where the program goes on.
bool MayBeUnknown(const isa::Instruction& instruction, const isa::Operand& operand) {
  if (operand.kind == isa::OperandKind::kAddress) return false;
  if (instruction.unit != isa::Unit::kScalar) return operand.type != ir::Type::kI64;
  // What is neither computed nor stored is compared, by a branch.
  return WritesRegister(instruction) || AccessesMemory(instruction);
}

bool AnyUnknown(const isa::InstructionSet::Decoded& decoded, const Core& core) {
  const auto& operands = decoded.instruction->operands;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (IsRegister(operands[i]) && core.unknown[static_cast<size_t>(decoded.fields[i])])
      return true;
  }
  return false;
}

}  // namespace

bool Core::idle() const {
  return std::all_of(queues.begin(), queues.end(), [](const Queue& q) { return q.empty(); });
}

std::string Core::Name() const {
  return is_memory_core ? absl::StrCat("cluster ", cluster, " memory core")
                        : absl::StrCat("cluster ", cluster, " core ", core);
}

bool AccessesMemory(const isa::Instruction& instruction) {
  return std::any_of(
      instruction.operands.begin(), instruction.operands.end(),
      [](const isa::Operand& operand) { return operand.kind == isa::OperandKind::kAddress; });
}

absl::StatusOr<std::vector<int64_t>> ReadOperands(const isa::InstructionSet& set,
                                                  const isa::InstructionSet::Decoded& decoded,
                                                  const Core& core) {
  const isa::Instruction& instruction = *decoded.instruction;
  std::vector<int64_t> values(instruction.operands.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const isa::Operand& operand = instruction.operands[i];
    if (operand.kind == isa::OperandKind::kImmediate) values[i] = decoded.fields[i];
    if (!IsRegister(operand)) continue;
    const size_t r = static_cast<size_t>(decoded.fields[i]);
    if (!core.unknown[r]) {
      values[i] = core.registers[r];
    } else if (!MayBeUnknown(instruction, operand)) {
      return absl::UnimplementedError(
          absl::StrCat("expected a known ", operand.name, ", found r", r,
                       ", which depends on what memory holds; this model computes no values"));
    }
  }
  if (instruction.unit == isa::Unit::kScalar && AnyUnknown(decoded, core)) return values;
  RETURN_IF_ERROR(set.CheckConstraints(instruction, values));
  return values;
}

int64_t ReadableFrom(const isa::InstructionSet::Decoded& decoded, const Core& core) {
  int64_t cycle = 0;
  const auto& operands = decoded.instruction->operands;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!IsRegister(operands[i])) continue;
    cycle = std::max(cycle, core.readable_from[static_cast<size_t>(decoded.fields[i])]);
  }
  return cycle;
}

absl::Status ExecuteScalar(const isa::InstructionSet& set,
                           const isa::InstructionSet::Decoded& decoded,
                           const std::vector<int64_t>& operands, int64_t readable_from,
                           Core& core) {
  const isa::Instruction& instruction = *decoded.instruction;
  const bool is_unknown = AccessesMemory(instruction) || AnyUnknown(decoded, core);
  int64_t next_pc = core.pc + 1;
  std::vector<int64_t> written(operands.size(), 0);
  if (!is_unknown) {
    isa::InstructionSet::CoreView machine;
    machine.pc = &next_pc;
    machine.args = core.args;
    RETURN_IF_ERROR(set.Execute(instruction, operands, machine, absl::MakeSpan(written)));
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (instruction.operands[i].kind != isa::OperandKind::kWritten) continue;
    const size_t r = static_cast<size_t>(decoded.fields[i]);
    core.registers[r] = written[i];
    core.unknown[r] = is_unknown;
    core.readable_from[r] = readable_from;
  }
  core.pc = next_pc;
  return absl::OkStatus();
}

}  // namespace polynao::simulator::reference
