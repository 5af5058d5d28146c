// A cluster's link to GMEM: one direction down (loads), one up (stores).
#ifndef SIMULATOR_LINK_H_
#define SIMULATOR_LINK_H_

#include <systemc>

#include "isa/machine.h"
#include "simulator/server.h"

namespace polynao::simulator {

class ClusterLink : public sc_core::sc_module {
 public:
  ClusterLink(sc_core::sc_module_name name, const isa::Machine& machine)
      : sc_core::sc_module(name),
        down("down", 2 * static_cast<int>(machine.Get("gmem.channels")),
             machine.Get("cluster.link_bytes") * kKilocycle),
        up("up", 2 * (static_cast<int>(machine.cores_per_cluster()) + 1),
           machine.Get("cluster.link_bytes") * kKilocycle) {}

  static int DmaRequester(int core) { return 2 * core; }
  static int ScalarRequester(int core) { return 2 * core + 1; }

  // Data from a channel, and data from its slice of the cache, which arrives sooner.
  static int DownRequester(int channel, bool is_cached) {
    return 2 * channel + (is_cached ? 1 : 0);
  }

  Server down;  // requesters: GMEM's channels, two each
  Server up;    // requesters: the cluster's cores, two each
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_LINK_H_
