#include "compiler/passes/byte_set.h"

#include <algorithm>
#include <iterator>

namespace polynao {

void ByteSet::Add(ByteRange range) {
  if (range.IsEmpty()) return;
  auto it = ranges_.upper_bound({range.memory, range.begin});
  if (it != ranges_.begin()) {
    const auto before = std::prev(it);
    if (before->first.first == range.memory && before->second >= range.begin) it = before;
  }
  while (it != ranges_.end() && it->first.first == range.memory && it->first.second <= range.end) {
    range.begin = std::min(range.begin, it->first.second);
    range.end = std::max(range.end, it->second);
    it = ranges_.erase(it);
  }
  ranges_[{range.memory, range.begin}] = range.end;
}

void ByteSet::Add(const ByteSet& other) {
  other.ForEach([&](ByteRange range) { Add(range); });
}

bool ByteSet::Overlaps(ByteRange range) const {
  if (range.IsEmpty()) return false;
  // Of the ranges that begin before the end of `range`, the last one also ends last.
  auto it = ranges_.lower_bound({range.memory, range.end});
  if (it == ranges_.begin()) return false;
  --it;
  return it->first.first == range.memory && it->second > range.begin;
}

bool ByteSet::Overlaps(const ByteSet& other) const {
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    if (a->first.first == b->first.first && a->first.second < b->second &&
        b->first.second < a->second) {
      return true;
    }
    // The range that ends first meets no further range of the other set.
    if (std::pair(a->first.first, a->second) < std::pair(b->first.first, b->second)) {
      ++a;
    } else {
      ++b;
    }
  }
  return false;
}

}  // namespace polynao
