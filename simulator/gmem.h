// GMEM: the memory off chip, its controller and channels.
#ifndef SIMULATOR_GMEM_H_
#define SIMULATOR_GMEM_H_

#include <cstdint>
#include <memory>
#include <systemc>
#include <vector>

#include "isa/machine.h"
#include "simulator/server.h"

namespace polynao::simulator {

// The controller maps an address to a channel and tells what an access costs there. Channels serve
// one burst at a time; their requesters are the card's cores, memory cores included.
class Gmem : public sc_core::sc_module {
 public:
  // `bytes` of memory at `data`, which outlives this.
  Gmem(sc_core::sc_module_name name, const isa::Machine& machine, uint8_t* data, int64_t bytes);

  uint8_t* data() const { return data_; }
  int64_t size() const { return size_; }

  int channel_count() const { return static_cast<int>(channels_.size()); }
  int ChannelOf(int64_t address) const {
    return static_cast<int>(address / interleave_ % channel_count());
  }
  Server& channel(int i) { return *channels_[static_cast<size_t>(i)]; }

  // Channel requesters: two for each core of the card, its IO-DMA and its scalar unit.
  static int DmaRequester(int card_core) { return 2 * card_core; }
  static int ScalarRequester(int card_core) { return 2 * card_core + 1; }

  // Bytes that a channel moves for [address, address + size): whole granules; a store first reads
  // each granule that it covers in part (read-modify-write).
  int64_t MovedBytes(int64_t address, int64_t size, bool is_write) const;

  // Bytes asked for and moved, counted when their bursts set out.
  struct Use {
    int64_t payload = 0;
    int64_t moved = 0;
  };
  void Count(const Burst& burst, bool is_write) {
    Use& use = is_write ? written_ : read_;
    use.payload += burst.payload;
    use.moved += burst.moved;
  }
  const Use& read() const { return read_; }
  const Use& written() const { return written_; }

 private:
  uint8_t* const data_;
  const int64_t size_;
  const int64_t interleave_;
  const int64_t granule_;
  Use read_;
  Use written_;
  std::vector<std::unique_ptr<Server>> channels_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_GMEM_H_
