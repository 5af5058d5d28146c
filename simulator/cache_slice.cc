#include "simulator/cache_slice.h"

#include <bit>

#include "base/check.h"

namespace polynao::simulator {

CacheSlice::CacheSlice(int64_t lines, int64_t line_bytes, int64_t granule)
    : line_bytes_(line_bytes),
      granule_(granule),
      end_(static_cast<int32_t>(lines)),
      lines_(static_cast<size_t>(lines) + 1) {
  POLYNAO_CHECK(lines >= 1 && line_bytes % granule == 0 && line_bytes / granule <= 64)
      << lines << " lines of " << line_bytes << " bytes, granules of " << granule;
  for (int32_t i = 0; i <= end_; ++i) {
    lines_[static_cast<size_t>(i)].newer = i == 0 ? end_ : i - 1;
    lines_[static_cast<size_t>(i)].older = i == end_ ? 0 : i + 1;
  }
  // At most half full, so that probes are short.
  const size_t slots = std::bit_ceil(2 * lines_.size());
  index_.assign(slots, -1);
  mask_ = slots - 1;
  shift_ = 64 - std::countr_zero(slots);
}

uint64_t CacheSlice::Touched(int64_t address, int64_t size) const {
  const int64_t first = address % line_bytes_ / granule_;
  const int64_t count = (address % line_bytes_ + size - 1) / granule_ + 1 - first;
  return (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
}

size_t CacheSlice::Find(int64_t number) const {
  size_t slot = Home(number);
  while (index_[slot] >= 0 && lines_[static_cast<size_t>(index_[slot])].number != number) {
    slot = (slot + 1) & mask_;
  }
  return slot;
}

void CacheSlice::Erase(size_t slot) {
  // Moves a later entry of the probe sequence into the hole if that does not take it in front of its home slot.
  for (size_t next = (slot + 1) & mask_; index_[next] >= 0; next = (next + 1) & mask_) {
    const size_t home = Home(lines_[static_cast<size_t>(index_[next])].number);
    if (((next - home) & mask_) < ((next - slot) & mask_)) continue;
    index_[slot] = index_[next];
    slot = next;
  }
  index_[slot] = -1;
}

void CacheSlice::Unlink(int32_t line) {
  const Line& l = lines_[static_cast<size_t>(line)];
  lines_[static_cast<size_t>(l.newer)].older = l.older;
  lines_[static_cast<size_t>(l.older)].newer = l.newer;
}

void CacheSlice::LinkBehind(int32_t newer, int32_t line) {
  Line& l = lines_[static_cast<size_t>(line)];
  l.newer = newer;
  l.older = lines_[static_cast<size_t>(newer)].older;
  lines_[static_cast<size_t>(l.older)].newer = line;
  lines_[static_cast<size_t>(newer)].older = line;
}

std::optional<int64_t> CacheSlice::Read(int64_t address, int64_t size, int64_t fetched) {
  const int64_t number = address / line_bytes_;
  const uint64_t touched = Touched(address, size);
  size_t slot = Find(number);
  int32_t at = index_[slot];
  if (at < 0) {
    at = lines_[static_cast<size_t>(end_)].newer;  // the oldest
    Line& line = lines_[static_cast<size_t>(at)];
    if (line.number >= 0) {
      Erase(Find(line.number));
      slot = Find(number);  // Erasing moves entries.
    }
    index_[slot] = at;
    line.number = number;
    line.granules = 0;
  }
  if (lines_[static_cast<size_t>(end_)].older != at) {
    Unlink(at);
    LinkBehind(end_, at);
  }
  Line& line = lines_[static_cast<size_t>(at)];
  if ((line.granules & touched) == touched) return line.fetched;
  line.granules |= touched;
  line.fetched = fetched;
  return std::nullopt;
}

void CacheSlice::Drop(int64_t address, int64_t size) {
  const int32_t at = index_[Find(address / line_bytes_)];
  if (at < 0) return;
  Line& line = lines_[static_cast<size_t>(at)];
  line.granules &= ~Touched(address, size);
  if (line.granules != 0 || lines_[static_cast<size_t>(end_)].newer == at) return;
  Unlink(at);
  LinkBehind(lines_[static_cast<size_t>(end_)].newer, at);
}

}  // namespace polynao::simulator
