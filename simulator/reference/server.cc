#include "simulator/reference/server.h"

namespace polynao::simulator::reference {

Server MakeServer(const std::string& name, int64_t requesters, int64_t bytes_per_kilocycle) {
  Server server;
  server.counts.name = name;
  server.counts.rate = bytes_per_kilocycle;
  server.waiting.resize(static_cast<size_t>(requesters));
  return server;
}

void Enter(Server& server, const Burst& burst, int64_t arrival) {
  server.waiting[static_cast<size_t>(burst.next_stop().requester)].push_back({burst, arrival});
  ++server.waiting_count;
}

std::optional<Burst> Finish(Server& server) {
  if (!server.serving) return std::nullopt;
  ++server.counts.busy;
  server.left -= server.counts.rate;
  --server.lines_left;
  if (server.left > 0 || server.lines_left > 0) return std::nullopt;
  Burst burst = *server.serving;
  server.serving.reset();
  ++burst.passed;
  return burst;
}

std::optional<Burst> TakeTurn(Server& server, int64_t cycle) {
  if (server.waiting_count == 0) return std::nullopt;
  const int64_t requesters = static_cast<int64_t>(server.waiting.size());
  for (int64_t i = 0; i < requesters; ++i) {
    int64_t requester = server.turn + i;
    if (requester >= requesters) requester -= requesters;
    auto& queue = server.waiting[static_cast<size_t>(requester)];
    if (queue.empty() || queue.front().arrival > cycle) continue;
    const Burst burst = queue.front().burst;
    if (burst.opens_segment && server.segments_allowed > 0) {
      if (server.segments_in_flight == server.segments_allowed) continue;
      ++server.segments_in_flight;
    }
    queue.pop_front();
    --server.waiting_count;
    server.turn = (requester + 1) % requesters;
    return burst;
  }
  return std::nullopt;
}

void Count(Server& server, const Burst& burst) {
  ++server.counts.bursts;
  server.counts.payload += burst.payload;
  server.counts.moved += burst.next_stop().bytes;
}

void Serve(Server& server, const Burst& burst) {
  server.serving = burst;
  server.left = burst.next_stop().bytes * 1000;
  server.lines_left = burst.next_stop().lines;
  Count(server, burst);
}

}  // namespace polynao::simulator::reference
