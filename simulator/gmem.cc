#include "simulator/gmem.h"

#include <algorithm>
#include <optional>
#include <string>

#include "simulator/dram/preset.h"
#include "simulator/dram_gmem.h"

namespace polynao::simulator {

GmemChannel::GmemChannel(sc_core::sc_module_name name, const isa::Machine& machine, int requesters)
    : Server(name, requesters, machine.Get("gmem.channel_bytes_per_kilocycle")),
      fetch_latency_(
          std::max<int64_t>(0, machine.Get("gmem.latency") - machine.Get("gmem.cache_latency"))),
      cache_(machine.Get("gmem.cache_bytes") * kKilocycle) {
  // A DMA burst lies in one line, and so does a scalar access, which is aligned.
  const int64_t line = machine.Get("io_dma.burst");
  const int64_t lines = machine.Get("gmem.cache_kib") * 1024 / machine.Get("gmem.channels") / line;
  if (lines > 0 && machine.caches_reads()) {
    slice_.emplace(lines, line, machine.Get("gmem.granule"));
  }
}

std::optional<DramCounters> GmemChannel::Dram(int64_t) { return std::nullopt; }

void GmemChannel::Observe(RunProfile* profile, int channel) {
  add_observer([profile, channel](int64_t start, int64_t, const Burst& burst) {
    profile->AddBytes(channel, start, burst.moved);
  });
}

bool GmemChannel::Divert(Burst& burst, int64_t bytes) {
  if (!slice_) return false;
  if (burst.is_write) {
    slice_->Drop(burst.address, burst.payload);
    return false;
  }
  const int64_t fetched = Now() + ServiceCycles(bytes, rate()) + fetch_latency_;
  const std::optional<int64_t> there = slice_->Read(burst.address, burst.payload, fetched);
  if (!there) return false;
  burst.is_cached = true;
  burst.owner->Advance(burst, cache_.Pass(burst, bytes, std::max(Now(), *there)));
  return true;
}

Gmem::Gmem(sc_core::sc_module_name name, const isa::Machine& machine, uint8_t* data, int64_t bytes)
    : sc_core::sc_module(name),
      data_(data),
      size_(bytes),
      channel_map_(machine),
      granule_(machine.Get("gmem.granule")),
      latency_(machine.Get("gmem.latency")),
      cache_latency_(machine.Get("gmem.cache_latency")),
      has_cache_(machine.caches_reads()) {
  const int requesters =
      static_cast<int>(kRequesters * machine.clusters() * (machine.cores_per_cluster() + 1));
  std::optional<DramTiming> timing;
  if (machine.has_dram()) timing = DramOf(machine).value();  // Run has checked it
  for (int64_t i = 0; i < machine.Get("gmem.channels"); ++i) {
    const std::string name = "channel" + std::to_string(i);
    if (timing) {
      channels_.push_back(std::make_unique<DramGmemChannel>(name.c_str(), machine, *timing,
                                                            channel_map_, requesters));
    } else {
      channels_.push_back(std::make_unique<GmemChannel>(name.c_str(), machine, requesters));
    }
  }
}

int64_t Gmem::MovedBytes(int64_t address, int64_t size, bool is_write) const {
  const int64_t end = address + size;
  const int64_t first = address / granule_;
  const int64_t last = (end + granule_ - 1) / granule_;  // one past
  int64_t granules = last - first;
  if (is_write) {
    const bool partial_first = address % granule_ != 0;
    const bool partial_last = end % granule_ != 0;
    const bool one = last - first == 1;
    granules += one ? (partial_first || partial_last) : partial_first + partial_last;
  }
  return granules * granule_;
}

}  // namespace polynao::simulator
