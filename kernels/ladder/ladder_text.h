// The text of gemm.nasm. The build embeds it in the program.
#ifndef KERNELS_LADDER_LADDER_TEXT_H_
#define KERNELS_LADDER_LADDER_TEXT_H_

#include <string_view>

namespace polynao::kernels {

std::string_view LadderText();

}  // namespace polynao::kernels

#endif  // KERNELS_LADDER_LADDER_TEXT_H_
