// The texts of the .nir files of this folder. The build embeds them in the program.
#ifndef KERNELS_POLYBENCH_POLYBENCH_TEXT_H_
#define KERNELS_POLYBENCH_POLYBENCH_TEXT_H_

#include <string_view>

namespace polynao::kernels {

// The text of kernels/polybench/NAME.nir; empty if there is no such file.
std::string_view PolyBenchText(std::string_view name);

}  // namespace polynao::kernels

#endif  // KERNELS_POLYBENCH_POLYBENCH_TEXT_H_
