// Computes what a sweep's table says: sums over programs, Pareto fronts, sensitivities, the best
// points.
#ifndef SWEEP_ANALYSIS_H_
#define SWEEP_ANALYSIS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/table.h"

namespace polynao::sweep {

using MetricValues = std::map<std::string, double, std::less<>>;

// A point with its programs together.
struct PointSum {
  int64_t point = 0;
  std::string error = {};  // "conv1: why"; of the first program that is infeasible
  // Sums over the programs; what belongs to the machine stands for itself.
  MetricValues metrics = {};
};

// One for each point of a table that has all its rows, in their order.
std::vector<PointSum> SumPoints(const Table& table);

// The points of which no other is at most as large in both metrics and smaller in one, in the order of `a`, then of
// their numbers. Of points that are equal in both all stay. Points without one of the metrics are none. O(n log n).
std::vector<int64_t> ParetoFront(const std::vector<PointSum>& sums, std::string_view a,
                                 std::string_view b);

struct Sensitivity {
  std::string axis;
  // For each value of the axis: the geometric mean over all combinations of the other axes of the metric there / the
  // metric at the axis's first value, where both points are feasible; nothing where there is no such pair.
  std::vector<std::optional<double>> relative;
  // The largest of them / the smallest; 1 if there are none.
  double effect = 1;
};

// Of all axes, the largest effect first; those of one effect in the order of the axes.
std::vector<Sensitivity> Sensitivities(const Table& table, const std::vector<PointSum>& sums,
                                       std::string_view metric);

// One program along an axis.
struct ProgramRatios {
  std::string program;
  // For each value of the axis: as Sensitivity::relative, of this program alone.
  std::vector<std::optional<double>> relative;
};

// How each program's metric changes along the axis, in the order of the programs. A metric of the machine is the same
// for all of them.
std::vector<ProgramRatios> RatiosAlong(const Table& table, std::string_view axis,
                                       std::string_view metric);

// For each value of the axis the geometric mean over the programs that have a ratio at all values; nothing if none
// has.
std::vector<std::optional<double>> MeansOf(const std::vector<ProgramRatios>& ratios);

// The comparison of instruction tables as text: the ratio of each program's cycles, then the means of cycles, energy
// and area, and how many programs have fewer cycles, the same and more. Empty if the sweep has one table.
//
//   cycles, relative to without       with
//   conv2d_bn/14x14x64               0.981
//   geometric mean, cycles           0.981
//   with: fewer cycles in 1 programs, the same in 0, more in 0
std::string InstructionsText(const Table& table);

// The point with the least product of these metrics, the first of several; nothing if no point has all of them.
std::optional<int64_t> BestPoint(const std::vector<PointSum>& sums,
                                 const std::vector<std::string>& metrics);

}  // namespace polynao::sweep

#endif  // SWEEP_ANALYSIS_H_
