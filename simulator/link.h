// A cluster's link to GMEM: one direction down (loads), one up (stores).
#ifndef SIMULATOR_LINK_H_
#define SIMULATOR_LINK_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <systemc>
#include <vector>

#include "isa/machine.h"
#include "simulator/server.h"

namespace polynao::simulator {

// The direction upwards. At most `segments` segments of the cluster's stores are in flight (0: any number), each from
// the turn of its first burst here to the cycle in which its last burst has completed.
class StoreLink : public Server {
 public:
  StoreLink(sc_core::sc_module_name name, int requesters, Rate rate, int64_t segments)
      : Server(name, requesters, rate), segments_(segments) {}

  // A segment will have completed in cycle `time`, which lies in the future.
  void ReleaseAt(int64_t time) {
    if (segments_ == 0) return;
    releases_.push(time);
    if (any_waiting()) Announce(time);
  }

 protected:
  bool Admits(const Burst& burst, int64_t time, int64_t& earliest) override {
    if (segments_ == 0 || !burst.is_first) return true;
    while (!releases_.empty() && releases_.top() <= time) {
      releases_.pop();
      --in_flight_;
    }
    if (in_flight_ < segments_) return true;
    if (!releases_.empty()) earliest = std::min(earliest, releases_.top());
    return false;
  }
  bool Divert(Burst& burst, int64_t) override {
    if (burst.is_first) ++in_flight_;
    return false;
  }

 private:
  const int64_t segments_;
  int64_t in_flight_ = 0;
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> releases_;
};

class ClusterLink : public sc_core::sc_module {
 public:
  ClusterLink(sc_core::sc_module_name name, const isa::Machine& machine)
      : sc_core::sc_module(name),
        down("down", 2 * static_cast<int>(machine.Get("gmem.channels")),
             machine.Get("cluster.link_bytes") * kKilocycle),
        up("up", 2 * (static_cast<int>(machine.cores_per_cluster()) + 1),
           machine.Get("cluster.link_bytes") * kKilocycle, machine.Get("cluster.store_segments")) {}

  static int DmaRequester(int core) { return 2 * core; }
  static int ScalarRequester(int core) { return 2 * core + 1; }

  // Data from a channel, and data from its slice of the cache, which arrives sooner.
  static int DownRequester(int channel, bool is_cached) {
    return 2 * channel + (is_cached ? 1 : 0);
  }

  Server down;   // requesters: GMEM's channels, two each
  StoreLink up;  // requesters: the cluster's cores, two each
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_LINK_H_
