#include "compiler/passes/memory_versions.h"

#include <algorithm>
#include <iterator>

namespace polynao {

std::vector<std::pair<int64_t, int64_t>>& MemoryVersions::History(size_t slot) {
  if (slot >= history_.size()) history_.resize(slot + 1);
  return history_[slot];
}

void MemoryVersions::Write(const BufferSet& written) {
  ++time_;
  ForEachSlot(written, [&](size_t slot) { SetVersion(slot, ++last_version_); });
}

void MemoryVersions::Write(size_t number) {
  ++time_;
  SetVersion(number + 1, ++last_version_);
}

MemoryVersions::Saved MemoryVersions::Save(const BufferSet& set) {
  Saved saved;
  ForEachSlot(set, [&](size_t slot) {
    const auto& history = History(slot);
    saved.emplace_back(slot, history.empty() ? 0 : history.back().second);
  });
  return saved;
}

void MemoryVersions::Restore(const Saved& saved) {
  ++time_;
  for (const auto& [slot, version] : saved) SetVersion(slot, version);
}

int64_t MemoryVersions::VersionAt(size_t slot, int64_t time) {
  const auto& history = History(slot);
  const auto later = std::upper_bound(history.begin(), history.end(), time,
                                      [](int64_t t, const auto& event) { return t < event.first; });
  return later == history.begin() ? 0 : std::prev(later)->second;
}

int64_t MemoryVersions::At(const BufferSet& loads, int64_t time) {
  if (loads.empty()) return 0;
  int64_t version = VersionAt(kEveryBuffer, time);
  ForEachSlot(loads, [&](size_t slot) { version = std::max(version, VersionAt(slot, time)); });
  return version;
}

}  // namespace polynao
