// Which channel of GMEM an address is on, and where in that channel.
#ifndef ISA_CHANNEL_MAP_H_
#define ISA_CHANNEL_MAP_H_

#include <cstdint>
#include <vector>

#include "isa/machine.h"

namespace polynao::isa {

// GMEM is cut into blocks of gmem.interleave bytes; of n = gmem.channels, block b lies on channel
//
//   b mod n                                             gmem.channel_hash = 0
//   (sum of the digits of b in base n) mod n            gmem.channel_hash = 1
//
// and there behind b / n others. n blocks that follow one another from a multiple of n on are on n channels either way,
// so each block has a place of its own. With the hash, blocks a multiple of n apart do not meet on one channel: of n
// blocks at a distance of any power of n, each is on a channel of its own; n = 4, block 4 k is on channel k mod 4 for k
// < 16.
class ChannelMap {
 public:
  explicit ChannelMap(const Machine& machine);

  int64_t interleave() const { return interleave_; }
  int64_t channels() const { return channels_; }
  int64_t ChannelOf(int64_t address) const {
    int64_t block = address / interleave_;
    if (sums_.empty()) return block % channels_;
    int64_t sum = 0;
    const int64_t size = static_cast<int64_t>(sums_.size());
    for (; block >= size; block /= size) sum += sums_[static_cast<size_t>(block % size)];
    return (sum + sums_[static_cast<size_t>(block)]) % channels_;
  }
  // The address in the channel.
  int64_t LocalAddress(int64_t address) const {
    return address / interleave_ / channels_ * interleave_ + address % interleave_;
  }

 private:
  int64_t interleave_;
  int64_t channels_;
  std::vector<uint8_t>
      sums_;  // of the digits of the least numbers, a power of n of them; empty without hash
};

}  // namespace polynao::isa

#endif  // ISA_CHANNEL_MAP_H_
