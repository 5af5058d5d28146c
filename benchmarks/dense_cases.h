// The layers of the suite dense.
#ifndef BENCHMARKS_DENSE_CASES_H_
#define BENCHMARKS_DENSE_CASES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "benchmarks/suites.h"

namespace polynao::benchmarks {

// All of them, in order. An attribute `out` gives outputs the type of the sums: f32 of floats, i32 of integers.
absl::Span<const SuiteCase> DenseCases();

// "resnet50/conv2d/56x56x64,64x1x1x64/f32", "../stride=2/i8".
std::string DenseName(const SuiteCase& c);
// "resnet50 f32": layers whose times are summed up together.
std::string DenseClass(std::string_view name);

// The text of dense.txt.
std::string_view DenseCasesText();

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_DENSE_CASES_H_
