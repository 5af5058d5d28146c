// A server: it serves one burst at a time, by turns.
#ifndef SIMULATOR_REFERENCE_SERVER_H_
#define SIMULATOR_REFERENCE_SERVER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "simulator/reference/burst.h"
#include "simulator/reference/report.h"

namespace polynao::simulator::reference {

struct Server {
  struct Waiting {
    Burst burst;
    int64_t arrival;  // cycle
  };
  PortCounts counts;                         // with name and rate
  std::vector<std::deque<Waiting>> waiting;  // by requester
  int64_t waiting_count = 0;
  int64_t turn = 0;  // the requester that is asked first
  std::optional<Burst> serving;
  int64_t left = 0;        // of the burst in service, in thousandths of a byte
  int64_t lines_left = 0;  // the same, lines of the core's memory
  // Of a link upwards: segments of stores whose first burst has had its turn and whose last one has not completed.
  int64_t segments_in_flight = 0;
  int64_t segments_allowed = 0;  // 0: any number

  bool free() const { return !serving; }
};

Server MakeServer(const std::string& name, int64_t requesters, int64_t bytes_per_kilocycle);

// `burst`, on its way to this server, arrives in that cycle. A requester's bursts are served in the order of the calls:
// one that arrives late holds up those behind it.
void Enter(Server& server, const Burst& burst, int64_t arrival);

// The end of a cycle of service: the burst whose service is over, if it is. The burst has passed this stop.
std::optional<Burst> Finish(Server& server);

// Takes the burst whose turn it is out of its queue: none if no burst has arrived. A burst that opens a segment has no
// turn while as many as allowed are in flight.
std::optional<Burst> TakeTurn(Server& server, int64_t cycle);

// Counts `burst` and its bytes.
void Count(Server& server, const Burst& burst);

// Begins the service of `burst` in this cycle.
void Serve(Server& server, const Burst& burst);

// Executes what a server without a cache does in a cycle: if it is free, it begins to serve the burst whose turn it is.
inline void Take(Server& server, int64_t cycle) {
  if (!server.free() || server.waiting_count == 0) return;
  if (const std::optional<Burst> burst = TakeTurn(server, cycle)) Serve(server, *burst);
}

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_SERVER_H_
