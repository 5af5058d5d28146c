// The text of isa/instructions.nir, put into the program when it is built.
#ifndef ISA_INSTRUCTIONS_TEXT_H_
#define ISA_INSTRUCTIONS_TEXT_H_

#include <string_view>

namespace polynao::isa {

std::string_view InstructionsText();

}  // namespace polynao::isa

#endif  // ISA_INSTRUCTIONS_TEXT_H_
