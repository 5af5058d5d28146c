// Instruction tables in files: the built-in one with rows more, or another one.
#ifndef ISA_TABLE_FILE_H_
#define ISA_TABLE_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "isa/instruction_set.h"

namespace polynao::isa {

// The table of a file. Rows whose opcodes are all free in the built-in table are added to it; a file that has an opcode
// of the built-in table is a table of its own, such as a copy of isa/instructions.nir without a row. Errors: the file
// can not be read; those of InstructionSet::Load.
absl::StatusOr<std::unique_ptr<InstructionSet>> LoadTableFile(const std::string& path);

// "with" for "rows/with.nir": the table's name in results, which must not depend on folders.
std::string TableName(const std::string& path);

}  // namespace polynao::isa

#endif  // ISA_TABLE_FILE_H_
