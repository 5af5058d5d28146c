#include "simulator/energy/axes.h"

namespace polynao::simulator {
namespace {

constexpr std::string_view kLatency =
    "a latency: of stages and distances that the table's figures already include";
constexpr std::string_view kSoftware = "software: what programs leave alone is there all the same";
constexpr std::string_view kAddresses = "which bits of an address go where: wires alone";
constexpr std::string_view kMoved = "energy is of the bytes moved, which runs count";
constexpr std::string_view kSpeedGrade =
    "timing of the DRAM's chips: the table's figures are of their speed grade";
constexpr std::string_view kRefreshes = "energy is of the refreshes, which runs count";
constexpr std::string_view kRule = "a rule of the controller, without storage";

constexpr UnpricedAxis kUnpriced[] = {
    {"card.launch", "time of the host, reported apart"},
    {"cluster.smem_reserved_kib", kSoftware},
    {"core.nmem_reserved_kib", kSoftware},
    {"gmem.mib", "bounds a run's tensors; what DRAM holds is dram.rows and so on"},
    {"gmem.interleave", kAddresses},
    {"gmem.channel_hash", kAddresses},
    {"gmem.latency", kLatency},
    {"gmem.cache_latency", kLatency},
    {"scalar.issue", kLatency},
    {"scalar.simple", kLatency},
    {"scalar.div", kLatency},
    {"scalar.nmem", kLatency},
    {"scalar.dependent", kLatency},
    {"vector.start", kLatency},
    {"tensor.start", kLatency},
    {"io_dma.start", kLatency},
    {"move_dma.start", kLatency},
    {"smem.granule", kMoved},
    {"smem.latency", kLatency},
    {"sync.drain", kLatency},
    {"sync.cluster", kLatency},
    {"sync.global", kLatency},
    {"dram.cl", kSpeedGrade},
    {"dram.cwl", kSpeedGrade},
    {"dram.trcd", kSpeedGrade},
    {"dram.trp", kSpeedGrade},
    {"dram.tras", kSpeedGrade},
    {"dram.trc", kSpeedGrade},
    {"dram.tccd_s", kSpeedGrade},
    {"dram.tccd_l", kSpeedGrade},
    {"dram.trrd_s", kSpeedGrade},
    {"dram.trrd_l", kSpeedGrade},
    {"dram.tfaw", kSpeedGrade},
    {"dram.twr", kSpeedGrade},
    {"dram.twtr_s", kSpeedGrade},
    {"dram.twtr_l", kSpeedGrade},
    {"dram.trtp", kSpeedGrade},
    {"dram.turnaround", kSpeedGrade},
    {"dram.rank_switch", kSpeedGrade},
    {"dram.trefi", kRefreshes},
    {"dram.trfc", kRefreshes},
    {"dram.write_high", kRule},
    {"dram.write_low", kRule},
    {"dram.starvation", kRule},
    {"dram.keep_rows", kRule},
    {"dram.posted", kRule},
    {"dram.hash", kAddresses},
    {"dram.map", kAddresses},
};

}  // namespace

absl::Span<const UnpricedAxis> UnpricedAxes() { return kUnpriced; }

}  // namespace polynao::simulator
