// The reference page of an instruction set (docs/isa.md), written from its table.
#ifndef ISA_REFERENCE_H_
#define ISA_REFERENCE_H_

#include <string>

#include "isa/instruction_set.h"

namespace polynao::isa {

// Markdown: the word's layout, then for each row of the table its variants, encoding, operands,
// constraints, cost and meaning.
std::string ReferencePage(const InstructionSet& set);

}  // namespace polynao::isa

#endif  // ISA_REFERENCE_H_
