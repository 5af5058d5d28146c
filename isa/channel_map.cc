#include "isa/channel_map.h"

namespace polynao::isa {
namespace {

constexpr int64_t kMostSums = 4096;

}  // namespace

ChannelMap::ChannelMap(const Machine& machine)
    : interleave_(machine.Get("gmem.interleave")), channels_(machine.Get("gmem.channels")) {
  if (machine.Get("gmem.channel_hash") == 0 || channels_ == 1) return;
  sums_ = {0};
  while (static_cast<int64_t>(sums_.size()) * channels_ <= kMostSums) {
    const size_t size = sums_.size();
    for (int64_t digit = 1; digit < channels_; ++digit) {
      for (size_t i = 0; i < size; ++i) {
        sums_.push_back(static_cast<uint8_t>((sums_[i] + digit) % channels_));
      }
    }
  }
}

}  // namespace polynao::isa
