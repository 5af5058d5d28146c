// A memory of a core whose banks have one port, which computing and DMAs share.
#ifndef SIMULATOR_PORT_SHARING_H_
#define SIMULATOR_PORT_SHARING_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace polynao::simulator {

// When DMA ports move bursts to or from the memory, as far as an instruction that computes may still ask.
class PortSharing {
 public:
  // A DMA port moves a burst in the cycles [begin, end), of which none lies before `now`.
  void Add(int64_t begin, int64_t end, int64_t now) {
    if (!computing_) Forget(now);
    times_.push_back({begin, end});
  }

  // An instruction begins to compute in cycle `now`.
  void Begin(int64_t now) {
    computing_ = true;
    counted_to_ = now;
    Forget(now);
  }
  void End() { computing_ = false; }

  // The cycles since the last call, or Begin, in which DMA ports moved bursts; of two ports at once, both count.
  int64_t Count(int64_t now) {
    int64_t cycles = 0;
    for (const auto& [begin, end] : times_) {
      cycles += std::max<int64_t>(0, std::min(end, now) - std::max(begin, counted_to_));
    }
    counted_to_ = now;
    Forget(now);
    return cycles;
  }

 private:
  void Forget(int64_t now) {
    std::erase_if(times_, [now](const auto& time) { return time.second <= now; });
  }

  std::vector<std::pair<int64_t, int64_t>> times_;
  bool computing_ = false;
  int64_t counted_to_ = 0;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_PORT_SHARING_H_
