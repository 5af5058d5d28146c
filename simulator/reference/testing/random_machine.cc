#include "simulator/reference/testing/random_machine.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "isa/machine_rows.h"
#include "simulator/configs/configs_text.h"
#include "simulator/reference/testing/random_dram.h"

namespace polynao::simulator::reference {
namespace {

// Values to choose from for parameters that stand alone. All others but dram.* and those of MachineMaker::Geometry have
// a few from the least on.
const std::map<std::string, std::vector<int64_t>, std::less<>>& Choices() {
  static const auto* choices = new std::map<std::string, std::vector<int64_t>, std::less<>>{
      {"card.launch", {0, 1, 5000}},
      {"cluster.link_bytes", {3, 7, 16, 33, 64, 200}},
      {"cluster.smem_kib", {1, 4, 64, 100, 4096}},
      {"core.nmem_kib", {3, 4, 10, 32, 1000}},
      {"core.wmem_kib", {4, 5, 16, 300}},
      {"core.queue_depth", {1, 1, 2, 3, 5, 24}},
      {"core.nmem_line", {0, 0, 1, 8, 24, 32, 128, 1000}},
      {"scalar.dependent", {0, 1, 2, 5, 30}},
      {"scalar.div", {1, 3, 10, 40}},
      {"scalar.nmem", {1, 2, 7, 25}},
      {"io_dma.transfers", {1, 2, 3, 8}},
      {"move_dma.transfers", {1, 2, 3, 8}},
      {"gmem.latency", {0, 1, 30, 99, 300}},
      {"vector.start", {0, 0, 1, 7, 20}},
      {"vector.bytes", {16, 50, 128, 4096}},
      {"tensor.start", {0, 1, 30, 80}},
      {"tensor.macs_i8", {64, 100, 1024, 65536}},
      {"tensor.macs_i16", {0, 64, 100, 2048}},
      {"tensor.macs_f16", {0, 64, 100, 2048}},
      {"tensor.macs_f32", {0, 16, 64, 999}},
      {"tensor.read_bytes", {16, 64, 100, 1024}},
      {"tensor.write_bytes", {16, 64, 100, 1024}},
      {"io_dma.start", {0, 1, 13, 40}},
      {"io_dma.port_bytes", {3, 8, 17, 64, 128}},
      {"io_dma.memory_core_port_bytes", {5, 16, 100, 128}},
      {"io_dma.outstanding", {1, 2, 3, 5, 8, 20, 64}},
      {"io_dma.strided_reads", {1, 2, 3, 5, 17}},
      {"io_dma.strided_writes", {1, 2, 3, 9}},
      {"move_dma.start", {0, 1, 13, 40}},
      {"move_dma.port_bytes", {3, 8, 17, 64, 128}},
      {"move_dma.outstanding", {1, 2, 3, 6, 20}},
      {"smem.bytes", {5, 16, 64, 256}},
      {"smem.latency", {0, 1, 20, 70}},
      {"sync.drain", {0, 1, 8}},
      {"sync.cluster", {0, 1, 32}},
      {"sync.global", {0, 2, 128}},
  };
  return *choices;
}

class MachineMaker {
 public:
  MachineMaker(Random& random, const std::string& name)
      : random_(random), file_(*MachineOf(name, {})) {}

  std::vector<std::string> Make() {
    if (random_.Below(12) == 0) return {};  // the card as it is
    Size();
    Alone();
    Geometry();
    Memory();
    return overrides_;
  }

 private:
  void Set(std::string_view name, int64_t value) {
    overrides_.push_back(absl::StrCat(std::string(name), "=", value));
  }
  void Maybe(std::string_view name, int64_t value) {
    if (random_.Below(2) == 0) Set(name, value);
  }

  // A cycle of the clocked model costs the more, the larger the card: most are small.
  void Size() {
    if (file_.clusters() > 3 ? random_.Below(16) != 0 : random_.Below(2) == 0) {
      Set("card.clusters", random_.From(1, 3));
    }
    Maybe("cluster.cores", random_.From(1, 4));
    Maybe("cluster.smem_reserved_kib", 0);
    Maybe("core.nmem_reserved_kib", random_.From(0, 2));
    if (random_.Below(32) == 0) Set("cluster.cores", 16);
    channels_ = random_.OneOf({file_.Get("gmem.channels"), random_.From(1, 5), random_.From(1, 5),
                               random_.Below(6) == 0 ? random_.From(1, 64) : random_.From(1, 12)});
    if (channels_ != file_.Get("gmem.channels")) Set("gmem.channels", channels_);
  }

  void Alone() {
    static const char* const kElsewhere[] = {
        "card.clusters",     "card.clock_mhz",
        "cluster.cores",     "cluster.smem_reserved_kib",
        "gmem.channels",     "gmem.granule",
        "gmem.interleave",   "core.nmem_reserved_kib",
        "io_dma.burst",      "smem.granule",
        "smem.burst",        "gmem.channel_bytes_per_kilocycle",
        "gmem.cache_kib",    "gmem.mib",
        "gmem.cache_reads",  "gmem.cache_bytes",
        "gmem.cache_latency"};
    for (const isa::ParameterRow& row : isa::MachineRows()) {
      const std::string_view name = row.name;
      const bool is_elsewhere =
          std::find(std::begin(kElsewhere), std::end(kElsewhere), name) != std::end(kElsewhere);
      if (row.is_text || is_elsewhere || name.starts_with("dram.") || IsOfEnergyAlone(name)) {
        continue;
      }
      const auto found = Choices().find(name);
      Maybe(name, found == Choices().end() ? random_.From(row.min, std::min(row.max, row.min + 4))
                                           : found->second[random_.Below(found->second.size())]);
    }
  }

  // Some granules, but not so few bytes that a transfer takes forever.
  int64_t BurstOf(int64_t granule, std::initializer_list<int64_t> counts) {
    int64_t burst = granule * random_.OneOf(counts);
    // At least three granules of 8 bytes, and a multiple of the largest type.
    while (burst < 24 || burst % 8 != 0) burst += granule;
    return burst;
  }

  // What divides one another.
  void Geometry() {
    burst_ = file_.Get("io_dma.burst");
    granule_ = file_.Get("gmem.granule");
    if (random_.Below(3) != 0) {
      granule_ = random_.OneOf({1, 4, 8, 12, 16, 32, 40, 64, 64, 96});
      burst_ = BurstOf(granule_, {1, 2, 3, 4, 8, 16});
      Set("gmem.granule", granule_);
      Set("io_dma.burst", burst_);
      Set("gmem.interleave",
          burst_ * std::max<int64_t>(random_.OneOf({1, 2, 5, 16, 64}), (63 + burst_) / burst_));
    }
    if (random_.Below(3) == 0) return;
    const int64_t granule = random_.OneOf({1, 8, 24, 64, 100, 128});
    Set("smem.granule", granule);
    Set("smem.burst", BurstOf(granule, {1, 2, 4, 16}));
  }

  void Memory() {
    const uint64_t kind = random_.Below(4);
    if (kind == 0 && file_.has_dram()) {
      // The file's channels, perhaps of another clock; what follows from them follows.
      Maybe("card.clock_mhz", random_.OneOf({1000, 800, 500, 1600}));
      return;
    }
    if (kind < 3) {
      std::vector<std::string> dram = RandomDramOverrides(random_);
      // All of GMEM that the rows hold, or little of it.
      if (random_.Below(2) == 0) {
        std::erase_if(dram, [](const std::string& text) { return text.starts_with("gmem.mib="); });
      }
      overrides_.insert(overrides_.end(), dram.begin(), dram.end());
      return;
    }
    overrides_.push_back("gmem.dram=flat");
    Maybe("card.clock_mhz", random_.From(300, 3000));
    Maybe("gmem.mib", random_.OneOf({3, 16, 1000}));
    Set("gmem.channel_bytes_per_kilocycle", random_.From(2'000, 60'000));
    // At least a line for each channel; often only a few, so that lines make room for others. A line has at most 64
    // granules.
    const int64_t least = (channels_ * burst_ + 1023) / 1024;
    const bool has_cache = random_.Below(3) != 0 && burst_ <= 64 * granule_;
    Set("gmem.cache_kib", has_cache ? least * random_.OneOf({1, 1, 2, 8, 64}) : 0);
    Set("gmem.cache_reads", random_.Below(8) == 0 ? 0 : 1);
    Maybe("gmem.cache_bytes", random_.OneOf({2, 16, 31, 128}));
    Maybe("gmem.cache_latency", random_.From(0, 300));
  }

  Random& random_;
  const isa::Machine file_;
  std::vector<std::string> overrides_;
  int64_t channels_ = 0, burst_ = 0, granule_ = 0;
};

}  // namespace

const std::vector<std::string>& MachineNames() {
  static const auto* names = [] {
    auto* result = new std::vector<std::string>;
    for (const ConfigText& config : ConfigTexts()) result->emplace_back(config.name);
    std::sort(result->begin(), result->end());
    return result;
  }();
  return *names;
}

absl::StatusOr<isa::Machine> MachineOf(const std::string& name,
                                       const std::vector<std::string>& overrides) {
  for (const ConfigText& config : ConfigTexts()) {
    if (config.name == name) return isa::ParseMachine(config.text, name + ".toml", overrides);
  }
  POLYNAO_UNREACHABLE(name);
}

std::vector<std::string> RandomOverrides(Random& random, const std::string& name) {
  while (true) {
    const std::vector<std::string> overrides = MachineMaker(random, name).Make();
    if (MachineOf(name, overrides).ok()) return overrides;
  }
}

bool IsOfEnergyAlone(std::string_view parameter) {
  return parameter == "card.supply_mv" || parameter == "cluster.smem_edram" ||
         parameter == "core.wmem_edram";
}

}  // namespace polynao::simulator::reference
