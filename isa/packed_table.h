// An instruction table that a build has parsed, as bytes: what InstructionSet::LoadPacked reads.
#ifndef ISA_PACKED_TABLE_H_
#define ISA_PACKED_TABLE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "isa/table.h"

namespace polynao::isa {

// A variant of a row, and the function that its text holds. Unpacked variants have no text.
struct ParsedVariant {
  TableVariant row;
  ir::Function meaning;
};

// Expands, parses and verifies a table. Errors name file and line.
absl::StatusOr<std::string> PackTable(std::string_view text, std::string_view file);

// The variants that PackTable has packed, their functions in `context`.
std::vector<ParsedVariant> UnpackTable(std::string_view bytes,
                                       std::shared_ptr<ir::Context> context);

}  // namespace polynao::isa

#endif  // ISA_PACKED_TABLE_H_
