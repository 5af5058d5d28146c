// The C files of benchmarks/peers/dense, put into the program when it is built.
#ifndef BENCHMARKS_DENSE_SOURCES_H_
#define BENCHMARKS_DENSE_SOURCES_H_

#include <string_view>
#include <utility>
#include <vector>

namespace polynao::benchmarks {

// Path ("benchmarks/peers/dense/onednn.c") and text of each.
const std::vector<std::pair<std::string_view, std::string_view>>& DenseSources();

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_DENSE_SOURCES_H_
