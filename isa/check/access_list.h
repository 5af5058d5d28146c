// A set of accesses to a memory, kept short: the accesses that one instruction makes in a loop become one.
#ifndef ISA_CHECK_ACCESS_LIST_H_
#define ISA_CHECK_ACCESS_LIST_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "isa/instruction_set.h"

namespace polynao::isa {

// What an instruction reads or writes, or all its executions together.
struct Access {
  ByteRanges ranges;  // canonical (isa/ranges.h)
  int64_t pc = 0;
  // It depends on values in memory whether these bytes are accessed: some of them, or none, may be.
  bool is_uncertain = false;
  bool operator==(const Access&) const;
};

// Accesses in the order of their instructions. An instruction in a loop accesses bytes at one distance from iteration
// to iteration; the list then grows by the copies of a dimension, not by elements. Two loops give two dimensions:
//
//   [0, 8), [16, 24), [32, 40), ...             -->  8 bytes, 3 times, 16 apart
//   the same from 100 on, then from 200 on      -->  3 times, 100 apart, of these
class AccessList {
 public:
  void Add(Access access);
  // This list or `other`, on two ways that lead to one place: an access that one of them lacks is uncertain. Returns
  // true if this list changed.
  bool Join(const AccessList& other);
  void Clear();
  bool empty() const { return series_.empty(); }

  // Calls visit(access) for each access, merged; stops when `visit` returns false.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const Series& series : series_) {
      for (const Item& item : series.items) {
        if (!visit(Canonical(item))) return;
      }
    }
  }

 private:
  // The ranges as they were merged, the new dimensions outermost.
  struct Item {
    ByteRanges merged;
    mutable Access canonical;
    mutable bool is_current = false;  // `canonical` is that of `merged`
  };
  // The accesses of one operand at one pc.
  struct Series {
    std::vector<Item> items;
  };
  struct Key {
    int64_t pc;
    int operand;
    bool is_write, is_uncertain;
    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.pc, key.operand, key.is_write, key.is_uncertain);
    }
  };

  bool Contains(const Access& access) const;
  static const Access& Canonical(const Item& item);
  // Makes one of two neighbours, the first one; false if they do not fit together.
  static bool Merge(Item& item, const Item& next);

  std::vector<Series> series_;
  absl::flat_hash_map<Key, size_t> places_;
};

}  // namespace polynao::isa

#endif  // ISA_CHECK_ACCESS_LIST_H_
