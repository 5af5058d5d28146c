// The texts of operators and hand-written kernels, put into the program when it is built.
#ifndef BENCHMARKS_KERNEL_SOURCES_H_
#define BENCHMARKS_KERNEL_SOURCES_H_

#include <string_view>
#include <vector>

namespace polynao::benchmarks {

struct SourceText {
  std::string_view path;  // "kernels/te/elementwise.cc"
  std::string_view text;
};
const std::vector<SourceText>& KernelSources();

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_KERNEL_SOURCES_H_
