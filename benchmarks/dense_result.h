// Results of the suite dense: times of layers, by this compiler and by libraries.
#ifndef BENCHMARKS_DENSE_RESULT_H_
#define BENCHMARKS_DENSE_RESULT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/comparison.h"
#include "nlohmann/json_fwd.hpp"

namespace polynao::benchmarks {

inline constexpr char kDenseSuite[] = "dense";
inline constexpr char kDenseTitle[] = "dense: layers of networks, and products of matrices";

// Speed-ups of the layers of a class.
struct ClassSpeedup {
  std::string name;  // "resnet50 f32"
  int threads = 1;
  std::string implementation, over;  // "nao-auto", "onednn"
  double mean = 1;                   // geometric
  double least = 1;
  std::string least_kernel = {};
  int layers = 0;
};
// For each class and number of threads, of this compiler's implementations over each library's.
std::vector<ClassSpeedup> ClassSpeedups(const Comparison& result);

// As ToJson of comparison.h, and `classes`, an object for each of ClassSpeedups:
// {class, threads, implementation, over, geomean, least, least_kernel, layers}.
nlohmann::ordered_json DenseToJson(const Comparison& result);
// Returns the result that DenseToJson was made of. Errors: another object.
absl::StatusOr<Comparison> DenseFromJson(const nlohmann::ordered_json& json);
// For a terminal: times in ms, a line for each layer and number of threads, and the classes.
std::string DenseText(const Comparison& result);

// A figure of an entry, "mac_ms"; 0 if it has none of that name.
double FigureOf(const ComparisonEntry& entry, const std::string& name);

}  // namespace polynao::benchmarks

#endif  // BENCHMARKS_DENSE_RESULT_H_
