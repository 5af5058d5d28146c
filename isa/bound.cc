#include "isa/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace polynao::isa {
namespace {

// Bytes that a cluster loads for a part of the products, without results; partial sums included where sums are cut.
double LeastBytes(const Work& work, double part, int64_t clusters) {
  const auto image = static_cast<double>(work.operand_bytes[0]);
  const auto weights = static_cast<double>(work.operand_bytes[1]);
  double least = std::numeric_limits<double>::infinity();
  for (int64_t cuts = 1; cuts <= clusters; ++cuts) {
    const double lambda = 1 / static_cast<double>(cuts);
    const double area = part / lambda;  // rho * kappa
    if (area > 1) break;
    const double rho = std::clamp(std::sqrt(area * weights / image), area, 1.0);
    double bytes = lambda * (rho * image + area / rho * weights);
    if (cuts > 1) bytes += area * static_cast<double>(work.results) * 4;
    least = std::min(least, bytes);
  }
  return least;
}

// Of all channels, without what a DRAM makes of it.
double GmemBytesPerCycle(const Machine& machine) {
  return static_cast<double>(machine.Get("gmem.channels") *
                             machine.Get("gmem.channel_bytes_per_kilocycle")) /
         1000;
}

// The cycles of Bound's "clusters".
double ClustersCycles(const Machine& machine, const Work& work, double macs_per_cycle) {
  const int64_t clusters = machine.clusters();
  if (machine.caches_reads() || clusters < 2 || work.operand_bytes[0] == 0 ||
      work.operand_bytes[1] == 0) {
    return 0;
  }
  const auto rest =
      static_cast<double>(work.gmem_bytes - work.operand_bytes[0] - work.operand_bytes[1]);
  const double compute = static_cast<double>(work.macs) / macs_per_cycle;
  // Parts of 1 / clusters to 1, of which intervals are looked at: computation takes as long as at an interval's begin,
  // the fewest bytes for a product are those of the best part up to its end.
  constexpr int kIntervals = 1000;
  double best = std::numeric_limits<double>::infinity();
  double bytes_per_part = best;
  const double least = 1 / static_cast<double>(clusters);
  for (int i = 0; i <= kIntervals; ++i) {
    const double end = least + (1 - least) * i / kIntervals;
    const double begin = std::max(least, end - (1 - least) / kIntervals);
    bytes_per_part = std::min(bytes_per_part, LeastBytes(work, end, clusters) / end);
    const double loads = (bytes_per_part + rest) / GmemBytesPerCycle(machine);
    best = std::min(best, std::max(begin * static_cast<double>(clusters) * compute, loads));
  }
  return best;
}

}  // namespace

absl::StatusOr<Bound> BoundOf(const Machine& machine, const Work& work) {
  Bound bound;
  const auto consider = [&bound](double cycles, std::string_view by) {
    const auto whole = static_cast<int64_t>(std::ceil(cycles - 1e-9 * cycles));
    if (whole > bound.cycles) bound = {whole, by};
  };
  consider(static_cast<double>(work.gmem_bytes) / GmemBytesPerCycle(machine), "GMEM");
  const auto cores = static_cast<double>(machine.cores());
  const std::string name = absl::StrCat("tensor.macs_", std::string(ir::TypeName(work.mac_type)));
  const int64_t* rate = machine.Find(name);
  const double macs_per_cycle = rate == nullptr ? 0 : static_cast<double>(*rate) * cores;
  const double elements_per_cycle = static_cast<double>(machine.Get("vector.bytes")) * cores /
                                    static_cast<double>(ir::ByteSize(work.vector_type));
  if (work.macs > 0 && macs_per_cycle == 0) {
    return InvalidInput("machine ", machine.name, " has no tensor unit for ",
                        std::string(ir::TypeName(work.mac_type)));
  }
  double tensor = 0, vector = static_cast<double>(work.vector_elements) / elements_per_cycle;
  if (work.macs > 0) tensor = static_cast<double>(work.macs) / macs_per_cycle;
  // What either may do: the one takes the rest when the other is full.
  const double by_vector = static_cast<double>(work.either_elements) / elements_per_cycle;
  const bool has_tensor = work.either_macs > 0 && macs_per_cycle > 0;
  const double by_tensor = has_tensor ? static_cast<double>(work.either_macs) / macs_per_cycle : 0;
  consider(tensor, "tensor unit");
  if (work.macs > 0) consider(ClustersCycles(machine, work, macs_per_cycle), "clusters");
  if (work.either_elements > 0 && has_tensor) {
    // x of it on the tensor unit: tensor + x * by_tensor = vector + (1 - x) * by_vector.
    const double x = std::clamp((vector + by_vector - tensor) / (by_tensor + by_vector), 0.0, 1.0);
    consider(std::max(tensor + x * by_tensor, vector + (1 - x) * by_vector), "both units");
    return bound;
  }
  consider(vector + by_vector, "vector unit");
  return bound;
}

}  // namespace polynao::isa
