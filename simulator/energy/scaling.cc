#include "simulator/energy/scaling.h"

#include <iterator>

#include "base/status.h"

namespace polynao::simulator {
namespace {

// The energy of a circuit is proportional to a V^2 + b V + c; its area to `area`.
struct Node {
  double nm;
  double a, b, c;
  double area;
};

constexpr Node kNodes[] = {
    {7, 0.1776, -0.09097, 0.02447, 0.059}, {10, 0.2068, -0.09311, 0.02375, 0.10},
    {14, 0.2363, -0.09675, 0.02239, 0.17}, {16, 0.2958, -0.1241, 0.03024, 0.19},
    {20, 0.373, -0.1582, 0.04104, 0.21},   {32, 0.9559, -0.7823, 0.471, 0.46},
    {45, 1.103, -0.362, 0.2767, 1.0},      {65, 3.755, -4.398, 1.975, 1.5},
    {90, 4.762, -4.781, 2.092, 2.8},       {130, 7.171, -6.709, 2.904, 6.4},
};

struct Figures {
  double energy, area;
};

absl::StatusOr<Figures> FiguresOf(const Process& process) {
  if (!(process.node_nm >= kSmallestNode && process.node_nm <= kLargestNode)) {  // a NaN too
    return InvalidInput("a node of ", process.node_nm, " nm: expected ", kSmallestNode, " to ",
                        kLargestNode);
  }
  if (!(process.volts >= 0.5 && process.volts <= 1.3)) {
    return InvalidInput("a supply of ", process.volts, " V: expected 0.5 to 1.3");
  }
  const auto energy = [&](const Node& node) {
    return (node.a * process.volts + node.b) * process.volts + node.c;
  };
  size_t above = 1;
  while (above + 1 < std::size(kNodes) && kNodes[above].nm < process.node_nm) ++above;
  const Node& low = kNodes[above - 1];
  const Node& high = kNodes[above];
  const double t = (process.node_nm - low.nm) / (high.nm - low.nm);
  return Figures{energy(low) * (1 - t) + energy(high) * t, low.area * (1 - t) + high.area * t};
}

}  // namespace

absl::StatusOr<ScaleFactors> ScaleBetween(const Process& from, const Process& to) {
  ASSIGN_OR_RETURN(const Figures before, FiguresOf(from));
  ASSIGN_OR_RETURN(const Figures after, FiguresOf(to));
  return ScaleFactors{after.energy / before.energy, after.area / before.area};
}

}  // namespace polynao::simulator
