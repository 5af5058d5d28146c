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

// The nodes and voltages that ScaleFactors takes.
inline constexpr double kSmallestNode = 7;
inline constexpr double kLargestNode = 130;

struct ScaleFactors {
  double energy = 1;  // of one operation or access
  double area = 1;
  // Leakage of a given circuit changes as its energy does; that of a given area also as the area of a circuit.
  double leakage_per_area() const { return energy / area; }
};

// What to multiply figures of `from` with to have those of `to`. The rule and its coefficients are those of A.
// Stillmaker, B. Baas, "Scaling equations for the accurate prediction of CMOS device performance from 180 nm to
// 7 nm", Integration 58 (2017); between their nodes we interpolate in the node. Error: a node outside of 7 to 130 nm,
// a voltage outside of 0.5 to 1.3 V.
absl::StatusOr<ScaleFactors> ScaleBetween(const Process& from, const Process& to);

}  // namespace polynao::simulator

#endif  // SIMULATOR_ENERGY_SCALING_H_
