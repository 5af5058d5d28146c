// Sets of integers as disjoint intervals: the bytes that have been read, written or defined in a memory.
#ifndef BASE_INTERVAL_SET_H_
#define BASE_INTERVAL_SET_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/btree_map.h"

namespace polynao {

// A set of integers, kept as maximal disjoint intervals [begin, end) with one tag each. Adding an
// interval merges it with those it touches; the merged interval takes the new tag. Operations take
// time logarithmic in the number of intervals, plus linear in those they touch.
class IntervalSet {
 public:
  struct Interval {
    int64_t begin;
    int64_t end;
    int tag;
    bool operator==(const Interval&) const = default;
  };

  bool operator==(const IntervalSet&) const = default;

  void Add(int64_t begin, int64_t end, int tag = 0);
  void Remove(int64_t begin, int64_t end);
  void Clear() { map_.clear(); }
  bool empty() const { return map_.empty(); }
  size_t size() const { return map_.size(); }  // intervals

  // Returns true if all of [begin, end) is in the set; an empty interval is.
  bool Contains(int64_t begin, int64_t end) const;
  // The first interval that shares an element with [begin, end).
  std::optional<Interval> FirstOverlap(int64_t begin, int64_t end) const;
  // The first maximal part of [begin, end) that is not in the set.
  std::optional<std::pair<int64_t, int64_t>> FirstGap(int64_t begin, int64_t end) const;

  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& [begin, rest] : map_) visit(Interval{begin, rest.end, rest.tag});
  }

 private:
  struct Rest {
    int64_t end;
    int tag;
    bool operator==(const Rest&) const = default;
  };
  absl::btree_map<int64_t, Rest> map_;  // by begin
};

}  // namespace polynao

#endif  // BASE_INTERVAL_SET_H_
