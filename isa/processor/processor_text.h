// The text of instructions.nir.
#ifndef ISA_PROCESSOR_PROCESSOR_TEXT_H_
#define ISA_PROCESSOR_PROCESSOR_TEXT_H_

#include <string_view>

namespace polynao::isa {

std::string_view ProcessorText();

}  // namespace polynao::isa

#endif  // ISA_PROCESSOR_PROCESSOR_TEXT_H_
