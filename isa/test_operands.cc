#include "isa/test_operands.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace polynao::isa {
namespace {

template <typename T>
T Pick(std::initializer_list<T> values, std::mt19937_64& random) {
  return values.begin()[random() % values.size()];
}

double RandomFloat(std::mt19937_64& random) {
  switch (random() % 16) {
    case 0:
      return Pick({0.0, -0.0, HUGE_VAL, -HUGE_VAL, std::nan(""), 1e-7, -6e-8, 65504.0, 1e30, -3e9},
                  random);
    case 1:
      return std::bit_cast<float>(static_cast<uint32_t>(random()));
    default:
      return (static_cast<double>(random() % 4097) - 2048) / 128;
  }
}

int64_t RandomScalar(const Operand& operand, std::mt19937_64& random) {
  if (IsFloat(operand.type)) {
    int64_t bits = 0;
    ir::StoreFloat(operand.type, &bits, RandomFloat(random));
    return bits;
  }
  const std::string& name = operand.name;
  if (operand.type != ir::Type::kI64 || name == "lhs" || name == "rhs" || name == "value" ||
      name == "source" || name == "condition") {
    return random() % 2 == 0 ? static_cast<int64_t>(random())
                             : static_cast<int64_t>(random() % 9) - 4;
  }
  if (name == "count" || name == "co") {
    return Pick<int64_t>({0, 1, 2, 3, 13, 63, 64, 64, 128, 192, 320, 64, 0, 128}, random);
  }
  if (name == "pitch" || name == "bank") return Pick<int64_t>({64, 64, 128, 192, 256, 512}, random);
  if (name == "wi") return Pick<int64_t>({5, 7, 9, 11}, random);
  if (name == "dst_stride" || name == "src_stride" || name == "stride" || name == "dst_plane" ||
      name == "src_plane") {
    return Pick<int64_t>({0, 1, 3, 64, 65, 128, 200, 320}, random);
  }
  return Pick<int64_t>({0, 1, 1, 2, 2, 3, 5}, random);
}

}  // namespace

TestMachine::TestMachine(int64_t bytes) {
  for (std::vector<uint8_t>& m : memory) m.assign(bytes, 0);
  for (int64_t i = 0; i < 16; ++i) args.push_back(i * 1000 - 3);
}

InstructionSet::CoreView TestMachine::View() {
  InstructionSet::CoreView view;
  for (int s = 0; s < kSpaceCount; ++s) {
    view.memory[s] = memory[s].data();
    view.size[s] = static_cast<int64_t>(memory[s].size());
  }
  view.pc = &pc;
  view.args = args;
  return view;
}

std::optional<std::vector<int64_t>> RandomOperands(const InstructionSet& set,
                                                   const Instruction& instruction, int64_t bytes,
                                                   std::mt19937_64& random) {
  for (int attempt = 0; attempt < 5000; ++attempt) {
    std::vector<int64_t> values;
    for (const Operand& operand : instruction.operands) {
      switch (operand.kind) {
        case OperandKind::kWritten:
          values.push_back(0);
          break;
        case OperandKind::kAddress:
          values.push_back(static_cast<int64_t>(random() % (bytes / 128)) * 128);
          // Some operands lie at the same address as another one.
          if (random() % 4 == 0) {
            for (size_t o = 0; o + 1 < values.size(); ++o) {
              if (instruction.operands[o].kind == OperandKind::kAddress) values.back() = values[o];
            }
          }
          break;
        case OperandKind::kValue:
        case OperandKind::kImmediate:
          values.push_back(RandomScalar(operand, random));
          break;
      }
    }
    if (!set.CheckConstraints(instruction, values).ok()) continue;
    bool fits = true;
    int64_t touched = 0;
    for (const ByteRanges& range : set.Footprint(instruction, values)) {
      fits &= range.begin >= 0 && range.end() <= bytes;
      touched += range.byte_count();
    }
    if (fits && touched < 100000) return values;
  }
  return std::nullopt;
}

void FillOperands(const InstructionSet& set, const Instruction& instruction,
                  const std::vector<int64_t>& values, TestMachine* machine,
                  std::mt19937_64& random) {
  for (std::vector<uint8_t>& memory : machine->memory) {
    for (uint8_t& byte : memory) byte = static_cast<uint8_t>(random() % 7);
  }
  for (const ByteRanges& range : set.Footprint(instruction, values)) {
    const ir::Type type = instruction.operands[range.operand].type;
    uint8_t* memory = machine->memory[static_cast<int>(range.space)].data();
    range.ForEachRun([&](int64_t begin, int64_t size) {
      for (int64_t at = begin; at < begin + size; at += ByteSize(type)) {
        if (IsFloat(type)) {
          ir::StoreFloat(type, memory + at, RandomFloat(random));
        } else {
          ir::StoreInt(type, memory + at, static_cast<int64_t>(random()));
        }
      }
    });
  }
}

void UnifyNans(const InstructionSet& set, const Instruction& instruction,
               const std::vector<int64_t>& values, TestMachine* machine) {
  for (const ByteRanges& range : set.Footprint(instruction, values)) {
    const ir::Type type = instruction.operands[range.operand].type;
    if (!range.is_write || !IsFloat(type)) continue;
    uint8_t* memory = machine->memory[static_cast<int>(range.space)].data();
    range.ForEachRun([&](int64_t begin, int64_t size) {
      for (int64_t at = begin; at < begin + size; at += ByteSize(type)) {
        if (!std::isnan(ir::LoadFloat(type, memory + at))) continue;
        ir::StoreFloat(type, memory + at, std::numeric_limits<double>::quiet_NaN());
      }
    });
  }
}

std::string DescribeOperands(const Instruction& instruction, const std::vector<int64_t>& values) {
  std::string text = instruction.mnemonic;
  for (size_t o = 0; o < values.size(); ++o) {
    StrAppend(&text, o == 0 ? ": " : ", ", instruction.operands[o].name, " = ", values[o]);
  }
  return text;
}

}  // namespace polynao::isa
