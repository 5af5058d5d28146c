#include "simulator/server.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

namespace polynao::simulator {

Server::Server(sc_core::sc_module_name name, int requesters, Rate rate)
    : sc_core::sc_module(name),
      rate_(rate),
      lines_(static_cast<size_t>(requesters)),
      used_lines_(static_cast<size_t>(requesters + 63) / 64),
      wake_([this] { Arbitrate(); }) {}

void Server::Push(int requester, Burst& burst, int64_t bytes, int64_t time) {
  POLYNAO_CHECK(time > Now()) << name() << ": arrival at " << time << " in cycle " << Now();
  const size_t r = static_cast<size_t>(requester);
  Line& line = lines_[r];
  int32_t node = free_node_;
  if (node == kNone) {
    node = static_cast<int32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    free_node_ = nodes_[static_cast<size_t>(node)].next;
  }
  nodes_[static_cast<size_t>(node)] = {{&burst, bytes, time}, kNone};
  ++waiting_;
  if (line.last != kNone) {
    Node& last = nodes_[static_cast<size_t>(line.last)];
    POLYNAO_CHECK(last.request.time <= time) << name() << ": requester " << requester << " at "
                                             << time << " after " << last.request.time;
    last.next = node;
    line.last = node;
    return;
  }
  line = {time, node, node};
  used_lines_[r / 64] |= uint64_t{1} << r % 64;
  Announce(time);
}

void Server::Announce(int64_t time) { wake_.NotifyAt(std::max(time, free_at_)); }

bool Server::Divert(Burst&, int64_t) { return false; }
bool Server::Admits(const Burst&, int64_t, int64_t&) { return true; }

std::optional<Server::Request> Server::Take(int64_t time, int64_t& earliest) {
  earliest = std::numeric_limits<int64_t>::max();
  // The word of the next requester comes twice: at first its bits from there on, in the end those before.
  const uint64_t from_next = ~uint64_t{0} << next_ % 64;
  size_t w = next_ / 64;
  uint64_t word = used_lines_[w] & from_next;
  for (size_t left = used_lines_.size();; --left) {
    for (; word != 0; word &= word - 1) {
      const size_t r = w * 64 + static_cast<size_t>(std::countr_zero(word));
      const Line& line = lines_[r];
      if (line.time > time) {
        earliest = std::min(earliest, line.time);
      } else if (Admits(*nodes_[static_cast<size_t>(line.first)].request.burst, time, earliest)) {
        return Remove(r);
      }
    }
    if (left == 0) return std::nullopt;
    w = w + 1 == used_lines_.size() ? 0 : w + 1;
    word = used_lines_[w] & (left == 1 ? ~from_next : ~uint64_t{0});
  }
}

Server::Request Server::Remove(size_t r) {
  Line& line = lines_[r];
  const int32_t index = line.first;
  Node& node = nodes_[static_cast<size_t>(index)];
  line.first = node.next;
  if (line.first == kNone) {
    line.last = kNone;
    used_lines_[r / 64] &= ~(uint64_t{1} << r % 64);
  } else {
    line.time = nodes_[static_cast<size_t>(line.first)].request.time;
  }
  node.next = free_node_;
  free_node_ = index;
  --waiting_;
  next_ = r + 1 == lines_.size() ? 0 : r + 1;
  return node.request;
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
