// Sets of bytes in the memories of a program.
#ifndef COMPILER_PASSES_BYTE_SET_H_
#define COMPILER_PASSES_BYTE_SET_H_

#include <cstdint>
#include <map>

#include "base/interval_set.h"

namespace polynao {

// The bytes `begin` to `end` (exclusive) of a memory.
struct ByteRange {
  int64_t memory = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const ByteRange&) const = default;
  bool IsEmpty() const { return begin >= end; }
  bool Overlaps(const ByteRange& other) const {
    return memory == other.memory && begin < other.end && other.begin < end;
  }
};

// Disjoint ranges of several memories; neighbours are merged.
class ByteSet {
 public:
  bool operator==(const ByteSet&) const = default;

  void Add(ByteRange range);
  void Add(const ByteSet& other);
  bool Overlaps(ByteRange range) const;
  bool Overlaps(const ByteSet& other) const;

  // Calls visit(range) by memory, then by address.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& [memory, bytes] : memories_) {
      bytes.ForEach([&, memory = memory](const IntervalSet::Interval& interval) {
        visit(ByteRange{memory, interval.begin, interval.end});
      });
    }
  }

 private:
  std::map<int64_t, IntervalSet> memories_;  // none of them is empty
};

}  // namespace polynao

#endif  // COMPILER_PASSES_BYTE_SET_H_
