#include "base/interval_set.h"

#include <algorithm>

namespace polynao {

void IntervalSet::Add(int64_t begin, int64_t end, int tag) {
  if (begin >= end) return;
  auto it = map_.upper_bound(begin);
  if (it != map_.begin()) {
    auto before = std::prev(it);
    if (before->second.end >= begin) {
      // The common case of a stream or a tile used again: grows in place, touching nothing else.
      if (it == map_.end() || it->first > end) {
        before->second.end = std::max(before->second.end, end);
        before->second.tag = tag;
        return;
      }
      it = before;
    }
  }
  while (it != map_.end() && it->first <= end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second.end);
    it = map_.erase(it);
  }
  map_.emplace(begin, Rest{end, tag});
}

void IntervalSet::Remove(int64_t begin, int64_t end) {
  if (begin >= end) return;
  auto it = map_.upper_bound(begin);
  if (it != map_.begin() && std::prev(it)->second.end > begin) --it;
  while (it != map_.end() && it->first < end) {
    const int64_t first = it->first;
    const Rest rest = it->second;
    it = map_.erase(it);
    if (first < begin) map_.emplace(first, Rest{begin, rest.tag});
    if (rest.end > end) {
      map_.emplace(end, rest);
      return;
    }
    it = map_.lower_bound(end > rest.end ? rest.end : end);
  }
}

bool IntervalSet::Contains(int64_t begin, int64_t end) const {
  if (begin >= end) return true;
  auto it = map_.upper_bound(begin);
  return it != map_.begin() && std::prev(it)->second.end >= end;
}

std::optional<IntervalSet::Interval> IntervalSet::FirstOverlap(int64_t begin, int64_t end) const {
  if (begin >= end) return std::nullopt;
  auto it = map_.upper_bound(begin);
  if (it != map_.begin() && std::prev(it)->second.end > begin) --it;
  if (it == map_.end() || it->first >= end) return std::nullopt;
  return Interval{it->first, it->second.end, it->second.tag};
}

std::optional<std::pair<int64_t, int64_t>> IntervalSet::FirstGap(int64_t begin, int64_t end) const {
  if (begin >= end) return std::nullopt;
  auto it = map_.upper_bound(begin);
  if (it != map_.begin() && std::prev(it)->second.end > begin) begin = std::prev(it)->second.end;
  if (begin >= end) return std::nullopt;
  // Intervals are maximal, so the byte at `begin` is missing.
  return std::pair(begin, it == map_.end() ? end : std::min(end, it->first));
}

}  // namespace polynao
