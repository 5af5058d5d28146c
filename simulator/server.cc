#include "simulator/server.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "third_party/systemc/process.h"

namespace polynao::simulator {

Server::Server(sc_core::sc_module_name name, int requesters, Rate rate)
    : sc_core::sc_module(name), rate_(rate), requests_(static_cast<size_t>(requesters)) {
  SC_METHOD(Arbitrate);
  sensitive << wake_.event();
  dont_initialize();
}

void Server::Push(int requester, Burst& burst, int64_t bytes, int64_t time) {
  POLYNAO_CHECK(time > Now()) << name() << ": arrival at " << time << " in cycle " << Now();
  std::deque<Request>& queue = requests_[static_cast<size_t>(requester)];
  POLYNAO_CHECK(queue.empty() || queue.back().time <= time)
      << name() << ": requester " << requester << " at " << time << " after " << queue.back().time;
  queue.push_back({&burst, bytes, time});
  ++waiting_;
  if (queue.size() == 1) Announce(time);
}

void Server::Announce(int64_t time) { wake_.NotifyAt(std::max(time, free_at_)); }

bool Server::Divert(Burst&, int64_t) { return false; }
bool Server::Admits(const Burst&, int64_t, int64_t&) { return true; }

std::optional<Server::Request> Server::Take(int64_t time, int64_t& earliest) {
  earliest = std::numeric_limits<int64_t>::max();
  const size_t requesters = requests_.size();
  size_t r = next_;
  for (size_t passed = 0; passed < requesters; ++passed, ++r) {
    if (r == requesters) r = 0;
    std::deque<Request>& queue = requests_[r];
    if (queue.empty()) continue;
    const Request request = queue.front();
    if (request.time > time) {
      earliest = std::min(earliest, request.time);
      continue;
    }
    if (!Admits(*request.burst, time, earliest)) continue;
    queue.pop_front();
    --waiting_;
    next_ = r + 1 == requesters ? 0 : r + 1;
    return request;
  }
  return std::nullopt;
}

void Server::Use(int64_t start, int64_t end, const Request& request) {
  ++use_.bursts;
  use_.payload += request.burst->payload;
  use_.moved += request.bytes;
  use_.busy += end - start;
  for (const Observer& observer : observers_) observer(start, end, *request.burst);
}

void Server::Arbitrate() {
  const int64_t now = Now();
  if (now < free_at_) {
    // This wake-up is for a burst that arrived while another one is served.
    wake_.NotifyAt(free_at_);
    return;
  }
  int64_t earliest = 0;
  while (const std::optional<Request> request = Take(now, earliest)) {
    if (Divert(*request->burst, request->bytes)) continue;
    free_at_ = now + ServiceCycles(request->bytes, rate_);
    Use(now, free_at_, *request);
    if (waiting_ > 0) wake_.NotifyAt(free_at_);
    // This call comes last, since it may push to this server or recycle the burst.
    request->burst->owner->Advance(*request->burst, free_at_);
    return;
  }
  if (earliest != std::numeric_limits<int64_t>::max()) wake_.NotifyAt(earliest);
}

}  // namespace polynao::simulator
