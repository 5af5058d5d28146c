// A burst and the way that it takes.
#ifndef SIMULATOR_REFERENCE_BURST_H_
#define SIMULATOR_REFERENCE_BURST_H_

#include <cstdint>

namespace polynao::simulator::reference {

// A server of the card. `index` counts channels, clusters or (DMA ports) the cores of the card.
struct Place {
  enum class Kind { kChannel, kLinkDown, kLinkUp, kSmem, kIoIn, kIoOut, kMove };
  Kind kind = Kind::kChannel;
  int64_t index = 0;
};

// One server on a burst's way.
struct Stop {
  Place place = {};
  int64_t requester = 0;  // as whom it queues there
  int64_t bytes = 0;      // that the server moves for it
  int64_t lines = 0;      // of the core's memory that it touches, one a cycle
  int64_t delay = 0;      // cycles from where it was before until it arrives
};

enum class Sender { kIoDma, kMoveDma, kScalar };

struct Burst {
  int64_t core = 0;  // in the card
  Sender sender = Sender::kScalar;
  int64_t transfer = 0;        // its number among those of the core's queue
  int64_t segment = 0;         // of the transfer
  bool opens_segment = false;  // the first burst of a segment that is stored to GMEM
  int64_t address = 0;         // in the memory whose runs are the transfer's segments
  int64_t payload = 0;         // bytes
  bool writes_gmem = false;
  bool touches_nmem = false, touches_wmem = false;
  int64_t lines = 0;  // of the core's memory
  Stop way[4];
  int stops = 0;             // on the way
  int passed = 0;            // of them
  int64_t return_delay = 0;  // cycles from the last stop to the sender

  void Add(const Stop& stop) { way[stops++] = stop; }
  bool arrived() const { return passed == stops; }
  const Stop& next_stop() const { return way[passed]; }
};

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_BURST_H_
