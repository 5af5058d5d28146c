// isa/instructions.nir as PackTable writes it, put into the program when it is built.
#ifndef ISA_PACKED_INSTRUCTIONS_H_
#define ISA_PACKED_INSTRUCTIONS_H_

#include <string_view>

namespace polynao::isa {

std::string_view PackedInstructions();

}  // namespace polynao::isa

#endif  // ISA_PACKED_INSTRUCTIONS_H_
