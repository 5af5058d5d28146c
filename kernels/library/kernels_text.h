// The texts of the hand-written kernels. The build embeds the .nasm files in the program.
#ifndef KERNELS_LIBRARY_KERNELS_TEXT_H_
#define KERNELS_LIBRARY_KERNELS_TEXT_H_

#include <string_view>

namespace polynao::kernels {

std::string_view BinaryKernelText();  // binary.nasm
std::string_view UnaryKernelText();   // unary.nasm
std::string_view PartitionText();     // partition.nasm: part of both
std::string_view Conv2dKernelText();  // conv2d.nasm

std::string_view ExpertBinaryKernelText();  // expert_binary.nasm
std::string_view ExpertUnaryKernelText();   // expert_unary.nasm
std::string_view ExpertConv2dKernelText();  // expert_conv2d.nasm
std::string_view ExpertPartitionText();     // expert_partition.nasm: part of both

}  // namespace polynao::kernels

#endif  // KERNELS_LIBRARY_KERNELS_TEXT_H_
