#include "compiler/passes/byte_set.h"

#include <algorithm>

namespace polynao {

void ByteSet::Add(ByteRange range) {
  if (!range.IsEmpty()) memories_[range.memory].Add(range.begin, range.end);
}

void ByteSet::Add(const ByteSet& other) {
  other.ForEach([&](ByteRange range) { Add(range); });
}

bool ByteSet::Overlaps(ByteRange range) const {
  const auto memory = memories_.find(range.memory);
  return memory != memories_.end() && memory->second.FirstOverlap(range.begin, range.end);
}

bool ByteSet::Overlaps(const ByteSet& other) const {
  bool overlaps = false;
  other.ForEach([&](ByteRange range) { overlaps = overlaps || Overlaps(range); });
  return overlaps;
}

}  // namespace polynao
