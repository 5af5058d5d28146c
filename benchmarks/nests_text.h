// The text of nests.nir, which is part of the program.
#ifndef BENCHMARKS_NESTS_TEXT_H_
#define BENCHMARKS_NESTS_TEXT_H_

#include <string_view>

namespace polynao::benchmarks {

std::string_view NestsText();

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_NESTS_TEXT_H_
