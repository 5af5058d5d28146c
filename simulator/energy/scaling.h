// Scales energy, area and leakage from one technology node to another.
#ifndef SIMULATOR_ENERGY_SCALING_H_
#define SIMULATOR_ENERGY_SCALING_H_

#include "absl/status/statusor.h"

namespace polynao::simulator {

// A process: its node in nm and its supply in volts.
struct Process {
  double node_nm = 0;
  double volts = 0;
};

// The nodes and voltages that the functions below take.
inline constexpr double kSmallestNode = 7;
inline constexpr double kLargestNode = 130;
inline constexpr double kLeastVolts = 0.5;
inline constexpr double kMostVolts = 1.3;

struct ScaleFactors {
  double energy = 1;  // of one operation or access
  double area = 1;
  // Leakage of a given circuit changes as its energy does; that of a given area also as the area of a circuit.
  double leakage_per_area() const { return energy / area; }
};

// Returns the factors that turn figures of `from` into those of `to`. The rule and its coefficients are those of A.
// Stillmaker, B. Baas, "Scaling equations for the accurate prediction of CMOS device performance from 180 nm to 7 nm",
// Integration 58 (2017); between their nodes we interpolate in the node. Error: a node outside of 7 to 130 nm, a
// voltage outside of 0.5 to 1.3 V.
absl::StatusOr<ScaleFactors> ScaleBetween(const Process& from, const Process& to);

// The delay of a circuit, in a unit of its own for each node: at one node its reciprocal is proportional to the clock
// that a circuit meets. a V^3 + b V^2 + c V + d with the coefficients of the same paper, interpolated between its
// nodes. Errors as above.
absl::StatusOr<double> DelayOf(const Process& process);

// The least supply in volts, from `least_volts` on, at which a circuit that meets `clock` at `rated` meets `wanted`:
// the solution of DelayOf(V) / DelayOf(rated) = clock / wanted. Error: no supply up to kMostVolts does, or higher ones
// no longer help (the polynomials of 16 and 20 nm turn at 0.96 V); it names the fastest clock.
absl::StatusOr<double> SupplyFor(const Process& rated, double clock, double wanted,
                                 double least_volts);

}  // namespace polynao::simulator

#endif  // SIMULATOR_ENERGY_SCALING_H_
