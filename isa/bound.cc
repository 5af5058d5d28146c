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

// Cycles of a core's units for all of the work, `tensor` and `vector`, and for what either may do.
struct UnitCycles {
  double tensor = 0, vector = 0;
  double either_by_tensor = 0, either_by_vector = 0;
  bool may_choose = false;
};

absl::StatusOr<UnitCycles> UnitCyclesOf(const Machine& machine, const Work& work) {
  UnitCycles cycles;
  const std::string type(ir::TypeName(work.mac_type));
  const int64_t* rate = machine.Find(absl::StrCat("tensor.macs_", type));
  const double macs_per_cycle = rate == nullptr ? 0 : static_cast<double>(*rate);
  if (work.macs > 0 && macs_per_cycle == 0) {
    return InvalidInput("machine ", machine.name, " has no tensor unit for ", type);
  }
  const double elements_per_cycle = static_cast<double>(machine.Get("vector.bytes")) /
                                    static_cast<double>(ir::ByteSize(work.vector_type));
  if (work.macs > 0) cycles.tensor = static_cast<double>(work.macs) / macs_per_cycle;
  cycles.vector = static_cast<double>(work.vector_elements) / elements_per_cycle;
  cycles.either_by_vector = static_cast<double>(work.either_elements) / elements_per_cycle;
  cycles.may_choose = work.either_elements > 0 && work.either_macs > 0 && macs_per_cycle > 0;
  if (cycles.may_choose) {
    cycles.either_by_tensor = static_cast<double>(work.either_macs) / macs_per_cycle;
  }
  return cycles;
}

// The cycles of Bound's "clusters".
double ClustersCycles(const Machine& machine, const Work& work, double compute) {
  const int64_t clusters = machine.clusters();
  if (machine.caches_reads() || clusters < 2 || work.operand_bytes[0] == 0 ||
      work.operand_bytes[1] == 0) {
    return 0;
  }
  const auto rest =
      static_cast<double>(work.gmem_bytes - work.operand_bytes[0] - work.operand_bytes[1]);
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
  ASSIGN_OR_RETURN(const UnitCycles units, UnitCyclesOf(machine, work));
  const auto cores = static_cast<double>(machine.cores());
  const double tensor = units.tensor / cores, vector = units.vector / cores;
  // What either may do: the one takes the rest when the other is full.
  const double by_vector = units.either_by_vector / cores,
               by_tensor = units.either_by_tensor / cores;
  consider(tensor, "tensor unit");
  if (work.macs > 0) consider(ClustersCycles(machine, work, tensor), "clusters");
  if (units.may_choose) {
    // x of it on the tensor unit: tensor + x * by_tensor = vector + (1 - x) * by_vector.
    const double x = std::clamp((vector + by_vector - tensor) / (by_tensor + by_vector), 0.0, 1.0);
    consider(std::max(tensor + x * by_tensor, vector + (1 - x) * by_vector), "both units");
    return bound;
  }
  consider(vector + by_vector, "vector unit");
  return bound;
}

absl::StatusOr<int64_t> ReachOf(const Machine& machine, const Work& work) {
  ASSIGN_OR_RETURN(const Bound bound, BoundOf(machine, work));
  ASSIGN_OR_RETURN(const UnitCycles units, UnitCyclesOf(machine, work));
  const double compute =
      units.tensor + units.vector +
      (units.may_choose ? std::min(units.either_by_tensor, units.either_by_vector)
                        : units.either_by_vector);
  const auto image = static_cast<double>(work.operand_bytes[0]);
  const auto weights = static_cast<double>(work.operand_bytes[1]);
  const double rest = static_cast<double>(work.gmem_bytes) - image - weights;
  const auto link = static_cast<double>(machine.Get("cluster.link_bytes"));
  const int64_t clusters = machine.clusters();
  double best = std::numeric_limits<double>::infinity();
  for (int64_t rows = 1; rows <= clusters; ++rows) {
    for (int64_t columns = 1; rows * columns <= clusters; ++columns) {
      for (int64_t sums = 1; rows * columns * sums <= clusters; ++sums) {
        const auto a = static_cast<double>(rows), b = static_cast<double>(columns),
                   k = static_cast<double>(sums);
        const double partial = sums == 1 ? 0 : k * static_cast<double>(work.results) * 4;
        // What a cache has, crosses GMEM once.
        const bool is_cached = machine.caches_reads();
        const double gmem = (is_cached ? image + weights : b * image + a * weights) + rest;
        const double loaded = (image / a + weights / b) / k + partial / (a * b * k);
        const double stored = rest / (a * b * k) + partial / (a * b * k);
        best = std::min(best, std::max({(gmem + 2 * partial) / GmemBytesPerCycle(machine),
                                        std::max(loaded, stored) / link,
                                        compute / (a * b * k) /
                                            static_cast<double>(machine.cores_per_cluster())}));
      }
    }
  }
  const double latencies =
      2 * static_cast<double>(machine.Get("io_dma.start") + machine.Get("gmem.latency"));
  return std::max(bound.cycles, static_cast<int64_t>(std::ceil(best + latencies)));
}

}  // namespace polynao::isa
