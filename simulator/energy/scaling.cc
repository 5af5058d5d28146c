#include "simulator/energy/scaling.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/status.h"

namespace polynao::simulator {
namespace {

// The energy of a circuit is proportional to a V^2 + b V + c, its delay to d3 V^3 + d2 V^2 + d1 V + d0; its area to
// `area`.
struct Node {
  double nm;
  double a, b, c;
  double area;
  double d3, d2, d1, d0;
};

constexpr Node kNodes[] = {
    {7, 0.1776, -0.09097, 0.02447, 0.059, -28.58, 76.6, -70.26, 24.69},
    {10, 0.2068, -0.09311, 0.02375, 0.10, -34.95, 93.65, -85.99, 30.4},
    {14, 0.2363, -0.09675, 0.02239, 0.17, -40.66, 109.2, -100.6, 35.92},
    {16, 0.2958, -0.1241, 0.03024, 0.19, 0, 24.8, -47.52, 28.87},
    {20, 0.373, -0.1582, 0.04104, 0.21, 0, 34.63, -66.37, 41.15},
    {32, 0.9559, -0.7823, 0.471, 0.46, -325.9, 1374, -1922, 913.2},
    {45, 1.103, -0.362, 0.2767, 1.0, -285.7, 1239, -1795, 898.8},
    {65, 3.755, -4.398, 1.975, 1.5, -53.3, 230.4, -333.9, 178.6},
    {90, 4.762, -4.781, 2.092, 2.8, -60.34, 262.5, -384.2, 210.9},
    {130, 7.171, -6.709, 2.904, 6.4, -76.65, 334.9, -493.4, 275.8},
};

struct Figures {
  double energy, area, delay;
};

absl::StatusOr<Figures> FiguresOf(const Process& process) {
  if (!(process.node_nm >= kSmallestNode && process.node_nm <= kLargestNode)) {  // a NaN too
    return InvalidInput("a node of ", process.node_nm, " nm: expected ", kSmallestNode, " to ",
                        kLargestNode);
  }
  if (!(process.volts >= kLeastVolts && process.volts <= kMostVolts)) {
    return InvalidInput("a supply of ", process.volts, " V: expected ", kLeastVolts, " to ",
                        kMostVolts);
  }
  const auto energy = [&](const Node& node) {
    return (node.a * process.volts + node.b) * process.volts + node.c;
  };
  const auto delay = [&](const Node& node) {
    return ((node.d3 * process.volts + node.d2) * process.volts + node.d1) * process.volts +
           node.d0;
  };
  size_t above = 1;
  while (above + 1 < std::size(kNodes) && kNodes[above].nm < process.node_nm) ++above;
  const Node& low = kNodes[above - 1];
  const Node& high = kNodes[above];
  const double t = (process.node_nm - low.nm) / (high.nm - low.nm);
  return Figures{energy(low) * (1 - t) + energy(high) * t, low.area * (1 - t) + high.area * t,
                 delay(low) * (1 - t) + delay(high) * t};
}

}  // namespace

absl::StatusOr<ScaleFactors> ScaleBetween(const Process& from, const Process& to) {
  ASSIGN_OR_RETURN(const Figures before, FiguresOf(from));
  ASSIGN_OR_RETURN(const Figures after, FiguresOf(to));
  return ScaleFactors{after.energy / before.energy, after.area / before.area};
}

absl::StatusOr<double> DelayOf(const Process& process) {
  ASSIGN_OR_RETURN(const Figures figures, FiguresOf(process));
  return figures.delay;
}

absl::StatusOr<double> SupplyFor(const Process& rated, double clock, double wanted,
                                 double least_volts) {
  // Steps, since a polynomial may turn; then halving inside the step.
  constexpr double kStep = 0.01;
  constexpr int kHalvings = 40;
  ASSIGN_OR_RETURN(const double delay, DelayOf(rated));
  if (wanted == clock && rated.volts >= least_volts) return rated.volts;
  const auto clock_at = [&](double volts) -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const double other, DelayOf({rated.node_nm, volts}));
    return clock * delay / other;
  };
  double low = least_volts;
  ASSIGN_OR_RETURN(double reached, clock_at(low));
  if (reached >= wanted) return low;
  while (low < kMostVolts) {
    double high = std::min(low + kStep, kMostVolts);
    ASSIGN_OR_RETURN(const double next, clock_at(high));
    if (next <= reached) break;
    if (next < wanted) {
      low = high;
      reached = next;
      continue;
    }
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      ASSIGN_OR_RETURN(const double at, clock_at(middle));
      (at < wanted ? low : high) = middle;
    }
    return high;
  }
  return InvalidInput("expected at most ", std::floor(reached), " MHz, which ", rated.node_nm,
                      " nm meets at ", low, " V, found ", wanted);
}

}  // namespace polynao::simulator
