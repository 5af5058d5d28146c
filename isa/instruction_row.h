// One row of an instruction table, read into an Instruction.
#ifndef ISA_INSTRUCTION_ROW_H_
#define ISA_INSTRUCTION_ROW_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "isa/instruction_set.h"
#include "isa/packed_table.h"
#include "isa/table.h"

namespace polynao::isa {

// Scopes of parameters besides memories: a register, the program counter, the program's arguments,
// a constant.
inline constexpr std::string_view kRegisterScope = "reg";
inline constexpr std::string_view kPcScope = "pc";
inline constexpr std::string_view kArgScope = "arg";
inline constexpr std::string_view kImmediateScope = "imm";

inline constexpr int kWordBits = 128;
inline constexpr int kOpcodeBits = 8;
inline constexpr int kVariantBits = 8;
inline constexpr int kMaxParams = 32;
inline constexpr int kFirstOperandBit = kOpcodeBits + kVariantBits;

// The names of units and queues, by their numbers.
inline constexpr std::string_view kUnitNames[] = {"scalar", "vector",   "tensor",
                                                  "io_dma", "move_dma", "control"};
inline constexpr std::string_view kQueueNames[] = {"compute", "io", "move", "none"};

// The instruction of one variant of a row; its index is not set. Errors name file and line, and
// what the row lacks or contradicts.
absl::StatusOr<Instruction> ReadRow(const TableVariant& row, std::string_view file,
                                    std::shared_ptr<ir::Context> context);

// The same for a variant that has been parsed and verified.
absl::StatusOr<Instruction> ReadParsedRow(const ParsedVariant& variant, std::string_view file);

}  // namespace polynao::isa

#endif  // ISA_INSTRUCTION_ROW_H_
