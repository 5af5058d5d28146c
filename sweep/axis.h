// The axes of a sweep: parameters of a machine and the values that they take.
#ifndef SWEEP_AXIS_H_
#define SWEEP_AXIS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/machine.h"

namespace polynao::sweep {

struct Axis {
  std::string name;                 // "core.nmem_kib", "gmem.dram"
  std::vector<std::string> values;  // in the order in which they were given
  bool operator==(const Axis&) const = default;
};

// The axis whose values are instruction tables (isa::TableName) and no parameters; the last one of a sweep that has it.
inline constexpr std::string_view kInstructionsAxis = "instructions";

// The values of all axes, in their order: {"256", "ddr4_3200"}.
using Point = std::vector<std::string>;

// "core.nmem_kib=256,512,1024". Errors: no name or value; a value that comes twice.
absl::StatusOr<Axis> ParseAxis(std::string_view text);

// That each axis is a parameter of `machine`, or of its DRAM, and that none comes twice. Errors name the parameters
// whose names are near.
absl::Status CheckAxes(const std::vector<Axis>& axes, const isa::Machine& machine);

// All combinations, the first axis slowest. {{}} without axes.
std::vector<Point> Points(const std::vector<Axis>& axes);

// "core.nmem_kib=256" for each axis of a parameter: what --set takes.
std::vector<std::string> Overrides(const std::vector<Axis>& axes, const Point& point);

}  // namespace polynao::sweep

#endif  // SWEEP_AXIS_H_
