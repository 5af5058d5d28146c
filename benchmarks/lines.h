// Lines of code of tensor programs and of hand-written kernels, counted by one rule.
//
// Comments mark what counts, in the sources themselves:
//
//     // [tensor-program binary begin]
//     ...
//     // [tensor-program binary end]
//
// and in assembly with "#". The kind is tensor-program, library or expert; the class is one of a
// suite's. A mark of code that several classes share names them all ("[tensor-program binary unary begin]"); the
// code counts for each. Lines between the marks count unless they are blank or only a comment.
#ifndef BENCHMARKS_LINES_H_
#define BENCHMARKS_LINES_H_

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace polynao::benchmarks {

// Lines by (kind, class): {"tensor-program", "binary"} -> 42. Code without marks is not counted.
using LineCounts = std::map<std::pair<std::string, std::string>, int>;

// Adds what `text` marks. Errors: file and line of a mark that is malformed, not opened, or not
// closed.
absl::Status CountLines(std::string_view file, std::string_view text, LineCounts& counts);

// Of kernels/te/*.cc and the hand-written *.nasm, as they were when this program was built.
absl::StatusOr<LineCounts> CountKernelLines();

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_LINES_H_
