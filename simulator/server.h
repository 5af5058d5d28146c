// A resource that serves one burst at a time: a GMEM channel, a cluster link, the port of SMEM.
#ifndef SIMULATOR_SERVER_H_
#define SIMULATOR_SERVER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <systemc>
#include <vector>

#include "simulator/burst.h"
#include "simulator/clock.h"

namespace polynao::simulator {

// Bytes per 1000 cycles, so that 25.6 B/cycle is exact.
using Rate = int64_t;
inline constexpr int64_t kKilocycle = 1000;

// Whole cycles that `bytes` take, at least one.
inline int64_t ServiceCycles(int64_t bytes, Rate rate) {
  const int64_t cycles = (bytes * kKilocycle + rate - 1) / rate;
  return cycles > 0 ? cycles : 1;
}

// Counts what went through a port. No port moves more than rate x busy.
struct PortUse {
  int64_t bursts = 0;
  int64_t payload = 0;
  int64_t moved = 0;  // with granules and read-modify-write
  int64_t busy = 0;   // cycles
};

// Arbitrates between requesters. In each cycle in which it is free and some burst has arrived, it
// takes the first burst of the next requester, round-robin from the one after the last served, and
// serves it for ceil(bytes / rate) cycles. It is work-conserving: never idle while a burst waits.
// A burst that is diverted (Divert) takes no time: the server takes the next one in the same cycle.
//
// Bursts are pushed ahead of time, with the cycle of their arrival: then every arrival of a cycle
// is known when the cycle comes, whatever the order in which SystemC runs its processes, and a
// burst costs one event here.
class Server : public sc_core::sc_module {
 public:
  Server(sc_core::sc_module_name name, int requesters, Rate rate);
  ~Server() override = default;

  // `burst` arrives in cycle `time` > Now(); for one requester arrivals must not go back in time.
  // It takes `bytes` of the rate. When it is served, its owner's Advance is called, with the cycle
  // in which the service ends, at the cycle in which it starts.
  void Push(int requester, Burst& burst, int64_t bytes, int64_t time);

  const PortUse& use() const { return use_; }
  Rate rate() const { return rate_; }

  // Called with (start, end, burst) of each service; for traces.
  using Observer = std::function<void(int64_t start, int64_t end, const Burst& burst)>;
  void add_observer(Observer observer) { observers_.push_back(std::move(observer)); }

 protected:
  // Called with each burst whose turn it is, in the cycle in which its service would start. True if
  // it goes another way instead and takes no time here: then this has called its owner's Advance.
  virtual bool Divert(Burst& burst, int64_t bytes);
  // Returns true if the first burst of a requester, which has arrived by cycle `time`, may have its turn. If not,
  // `earliest` becomes at most the next cycle in which that may be otherwise, as far as it is known.
  virtual bool Admits(const Burst& burst, int64_t time, int64_t& earliest);

  struct Request {
    Burst* burst;
    int64_t bytes;
    int64_t time;
  };
  // Runs whenever wake() triggers.
  virtual void Arbitrate();
  // Called when a requester that had none got a burst that arrives in cycle `time`.
  virtual void Announce(int64_t time);

  // Takes the first burst of the next requester, round-robin, of which one has arrived by cycle `time`. None: then
  // `earliest` is the cycle of the next arrival, if any burst waits.
  std::optional<Request> Take(int64_t time, int64_t& earliest);
  bool any_waiting() const { return waiting_ > 0; }
  Timer& wake() { return wake_; }
  // Counts and observes a burst.
  void Use(int64_t start, int64_t end, const Request& request);
  void set_busy(int64_t cycles) { use_.busy = cycles; }

 private:
  static constexpr int32_t kNone = -1;
  // The requests of one requester that wait: a list in nodes_.
  struct Line {
    int64_t time = 0;  // of the first one
    int32_t first = kNone, last = kNone;
  };
  struct Node {
    Request request;
    int32_t next;
  };

  // Takes the first request of a requester, after which the next requester has its turn.
  Request Remove(size_t requester);

  const Rate rate_;
  std::vector<Line> lines_;
  std::vector<uint64_t> used_lines_;  // a bit for each requester that has requests
  std::vector<Node> nodes_;
  int32_t free_node_ = kNone;  // list
  int waiting_ = 0;            // requests in all lines
  size_t next_ = 0;            // requester that goes first
  int64_t free_at_ = 0;
  PortUse use_;
  Timer wake_;
  std::vector<Observer> observers_;
};

// A port that only one requester uses, in order: the same, without an event.
class Port {
 public:
  explicit Port(Rate rate) : rate_(rate) {}
  // A burst of `bytes` that arrives in cycle `time` has passed in the cycle that is returned. It takes at least `least`
  // cycles.
  int64_t Pass(const Burst& burst, int64_t bytes, int64_t time, int64_t least = 1) {
    const int64_t start = time > free_at_ ? time : free_at_;
    const int64_t service = std::max(least, ServiceCycles(bytes, rate_));
    free_at_ = start + service;
    ++use_.bursts;
    use_.payload += burst.payload;
    use_.moved += bytes;
    use_.busy += service;
    return free_at_;
  }
  const PortUse& use() const { return use_; }
  Rate rate() const { return rate_; }

 private:
  const Rate rate_;
  int64_t free_at_ = 0;
  PortUse use_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_SERVER_H_
