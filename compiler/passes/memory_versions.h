// Answers by version numbers whether two loads see the same memory.
#ifndef COMPILER_PASSES_MEMORY_VERSIONS_H_
#define COMPILER_PASSES_MEMORY_VERSIONS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/passes/effects.h"

namespace polynao {

// A walk over a program in its order tells when buffers may change. Each change gives them a new
// version. Afterwards the version of any set of buffers at any time of the walk can be looked up:
//
//   MemoryVersions versions;
//   const int64_t t0 = versions.now();
//   versions.Write(effects.Writes(store to A));
//   const int64_t t1 = versions.now();
//   versions.At(loads of A, t0) != versions.At(loads of A, t1)
//   versions.At(loads of B, t0) == versions.At(loads of B, t1)
//
// A version is given once, so the highest version among several buffers stands for all of them.
class MemoryVersions {
 public:
  int64_t now() const { return time_; }
  // Statements that follow stand at a later time.
  void Tick() { ++time_; }
  // From now on the buffers in `written` may hold other values.
  void Write(const BufferSet& written);
  // From now on buffer `number` (Effects::Number) does.
  void Write(size_t number);

  // For branches: the versions of the buffers in `set` now, and going back to them.
  using Saved = std::vector<std::pair<size_t, int64_t>>;
  Saved Save(const BufferSet& set);
  void Restore(const Saved& saved);

  // Equal at two times exactly if no buffer in `loads` may have changed in between.
  int64_t At(const BufferSet& loads, int64_t time);

 private:
  // A buffer has the slot after its number. The first slot changes when any buffer may be written.
  static constexpr size_t kEveryBuffer = 0;

  template <typename Visit>
  static void ForEachSlot(const BufferSet& set, const Visit& visit) {
    if (set.is_everything()) {
      visit(kEveryBuffer);
    } else {
      set.ForEach([&](size_t number) { visit(number + 1); });
    }
  }

  std::vector<std::pair<int64_t, int64_t>>& History(size_t slot);
  void SetVersion(size_t slot, int64_t version) { History(slot).emplace_back(time_, version); }
  int64_t VersionAt(size_t slot, int64_t time);

  int64_t time_ = 0;
  int64_t last_version_ = 0;
  // For each slot the versions, and from which time on they hold.
  std::vector<std::vector<std::pair<int64_t, int64_t>>> history_;
};

}  // namespace polynao

#endif  // COMPILER_PASSES_MEMORY_VERSIONS_H_
