// One piece of a DMA transfer on its way through channels, links and ports.
#ifndef SIMULATOR_BURST_H_
#define SIMULATOR_BURST_H_

#include <cstdint>

namespace polynao::simulator {

struct Burst;
struct DmaTransfer;

// Who sent a burst and knows where it goes next.
class BurstOwner {
 public:
  virtual ~BurstOwner() = default;
  // `burst` will have left the place it was in at `time`, which lies in the future.
  virtual void Advance(Burst& burst, int64_t time) = 0;
};

struct Burst {
  BurstOwner* owner = nullptr;
  int64_t address = 0;              // in the memory whose segments the transfer follows
  int64_t payload = 0;              // requested bytes
  int64_t moved = 0;                // bytes that the memory moves for them
  int64_t lines = 0;                // of the core's memory that the payload touches
  DmaTransfer* transfer = nullptr;  // that it is a part of, if it is one of a DMA
  int segment = 0;                  // slot of the segment in the transfer's window
  bool is_first = false;            // of its segment
  int stage = 0;                    // how many places it has passed
  bool is_write = false;            // to GMEM
  bool is_cached = false;           // came from GMEM's cache instead of a channel
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_BURST_H_
