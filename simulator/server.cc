#include "simulator/server.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace polynao::simulator {

Server::Server(sc_core::sc_module_name name, int requesters, Rate rate)
    : sc_core::sc_module(name), rate_(rate), requests_(static_cast<size_t>(requesters)) {
  SC_HAS_PROCESS(Server);
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
  if (queue.size() == 1) wake_.NotifyAt(std::max(time, free_at_));
}

bool Server::Divert(Burst&, int64_t) { return false; }

void Server::Arbitrate() {
  const int64_t now = Now();
  if (now < free_at_) {
    // This wake-up is for a burst that arrived while another one is served.
    wake_.NotifyAt(free_at_);
    return;
  }
  int64_t earliest = std::numeric_limits<int64_t>::max();
  const int requesters = static_cast<int>(requests_.size());
  int passed = 0;  // requesters in a row that have nothing
  for (size_t r = next_; passed < requesters; ++passed, ++r) {
    if (r == requests_.size()) r = 0;
    std::deque<Request>& queue = requests_[r];
    if (queue.empty()) continue;
    const Request request = queue.front();
    if (request.time > now) {
      earliest = std::min(earliest, request.time);
      continue;
    }
    queue.pop_front();
    --waiting_;
    next_ = r + 1;
    if (next_ == requests_.size()) next_ = 0;
    if (Divert(*request.burst, request.bytes)) {
      passed = -1;
      continue;
    }
    const int64_t service = ServiceCycles(request.bytes, rate_);
    free_at_ = now + service;
    ++use_.bursts;
    use_.payload += request.burst->payload;
    use_.moved += request.bytes;
    use_.busy += service;
    if (observer_) observer_(now, free_at_, *request.burst);
    if (waiting_ > 0) wake_.NotifyAt(free_at_);
    // This call comes last, since it may push to this server or recycle the burst.
    request.burst->owner->Advance(*request.burst, free_at_);
    return;
  }
  if (waiting_ > 0) wake_.NotifyAt(earliest);
}

}  // namespace polynao::simulator
