// The lines of layers95.txt, which are part of the program.
#ifndef BENCHMARKS_LAYERS95_TEXT_H_
#define BENCHMARKS_LAYERS95_TEXT_H_

#include <string_view>

namespace polynao::benchmarks {

std::string_view Layers95Text();

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_LAYERS95_TEXT_H_
