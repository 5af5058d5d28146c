// The parameters of a machine that have no price of their own, each with the reason. All others change area, static
// power or the energy of a run; axes_test holds every parameter to one or the other, so that a new one is free only on
// purpose.
#ifndef SIMULATOR_ENERGY_AXES_H_
#define SIMULATOR_ENERGY_AXES_H_

#include <string_view>

#include "absl/types/span.h"

namespace polynao::simulator {

struct UnpricedAxis {
  std::string_view name;  // "gmem.latency"
  std::string_view reason;
};

absl::Span<const UnpricedAxis> UnpricedAxes();

}  // namespace polynao::simulator

#endif  // SIMULATOR_ENERGY_AXES_H_
