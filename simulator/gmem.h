// GMEM: the memory off chip, its controller, channels and cache.
#ifndef SIMULATOR_GMEM_H_
#define SIMULATOR_GMEM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <systemc>
#include <vector>

#include "isa/channel_map.h"
#include "isa/machine.h"
#include "simulator/cache_slice.h"
#include "simulator/dram/request.h"
#include "simulator/profile.h"
#include "simulator/server.h"

namespace polynao::simulator {

// One channel, with its slice of the last-level cache if the card has one. A read whose granules are
// all in the slice when its turn comes goes to the slice's port, and the channel takes the next
// burst in the same cycle. What the channel serves counts as in the slice from the start of its
// service on, but a reader waits until it has arrived: with gmem.latency behind the
// channel, gmem.latency - gmem.cache_latency of which lie before the slice. A write drops what it
// touches: the cache never holds what GMEM does not.
//
// A channel of DRAM is a DramGmemChannel (dram_gmem.h).
class GmemChannel : public Server {
 public:
  GmemChannel(sc_core::sc_module_name name, const isa::Machine& machine, int requesters);

  const Port& cache() const { return cache_; }
  // Returns what the DRAM did in the first `cycles` cycles; none for a flat channel.
  virtual std::optional<DramCounters> Dram(int64_t cycles);
  // By bank, up to where Dram has counted.
  virtual std::span<const DramBankCounters> DramBanks() const { return {}; }
  // From now on tells `profile`, which outlives this, what the channel does.
  virtual void Observe(RunProfile* profile, int channel);

 protected:
  bool Divert(Burst& burst, int64_t bytes) override;

 private:
  const int64_t fetch_latency_;  // from the channel to the slice
  std::optional<CacheSlice> slice_;
  Port cache_;
};

// The controller maps an address to a channel and tells what an access costs there. Channels serve
// one burst at a time; their requesters are the card's cores, memory cores included.
class Gmem : public sc_core::sc_module {
 public:
  // `bytes` of memory at `data`, which outlives this.
  Gmem(sc_core::sc_module_name name, const isa::Machine& machine, uint8_t* data, int64_t bytes);

  uint8_t* data() const { return data_; }
  int64_t size() const { return size_; }

  int channel_count() const { return static_cast<int>(channels_.size()); }
  int ChannelOf(int64_t address) const { return static_cast<int>(channel_map_.ChannelOf(address)); }
  GmemChannel& channel(int i) { return *channels_[static_cast<size_t>(i)]; }
  bool has_cache() const { return has_cache_; }
  // Cycles from the channel or the cache to a cluster link, or the other way.
  int64_t LatencyOf(const Burst& burst) const {
    return burst.is_cached ? cache_latency_ : latency_;
  }

  // Channel requesters: three for each core of the card, its IO-DMA's loads and stores and its scalar unit.
  static int DmaRequester(int card_core, bool is_store) {
    return kRequesters * card_core + (is_store ? 1 : 0);
  }
  static int ScalarRequester(int card_core) { return kRequesters * card_core + 2; }
  static constexpr int kRequesters = 3;

  // Bytes that a channel moves for [address, address + size): whole granules; a store first reads
  // each granule that it covers in part (read-modify-write).
  int64_t MovedBytes(int64_t address, int64_t size, bool is_write) const;

  // Requested bytes and the bytes of their granules, counted when their bursts are sent. The channels move
  // the reads that the cache does not serve.
  struct Use {
    int64_t payload = 0;
    int64_t moved = 0;
  };
  void Count(const Burst& burst) {
    Use& use = burst.is_write ? written_ : read_;
    use.payload += burst.payload;
    use.moved += burst.moved;
  }
  const Use& read() const { return read_; }
  const Use& written() const { return written_; }

 private:
  uint8_t* const data_;
  const int64_t size_;
  const isa::ChannelMap channel_map_;
  const int64_t granule_;
  const int64_t latency_;
  const int64_t cache_latency_;
  const bool has_cache_;
  Use read_;
  Use written_;
  std::vector<std::unique_ptr<GmemChannel>> channels_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_GMEM_H_
