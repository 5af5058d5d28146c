// The Python programs of benchmarks/peers, put into the program when it is built.
#ifndef BENCHMARKS_HALIDE_SOURCES_H_
#define BENCHMARKS_HALIDE_SOURCES_H_

#include <string_view>
#include <utility>
#include <vector>

namespace polynao::benchmarks {

// Path ("benchmarks/peers/halide_pipelines.py") and text of each.
const std::vector<std::pair<std::string_view, std::string_view>>& HalideSources();

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_HALIDE_SOURCES_H_
