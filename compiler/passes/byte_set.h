// Sets of bytes in the memories of a program.
#ifndef COMPILER_PASSES_BYTE_SET_H_
#define COMPILER_PASSES_BYTE_SET_H_

#include <cstdint>
#include <map>
#include <utility>

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

// Disjoint ranges; neighbours are merged.
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
    for (const auto& [at, end] : ranges_) visit(ByteRange{at.first, at.second, end});
  }

 private:
  std::map<std::pair<int64_t, int64_t>, int64_t> ranges_;  // (memory, begin) to end
};

}  // namespace polynao

#endif  // COMPILER_PASSES_BYTE_SET_H_
