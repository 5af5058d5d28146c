// The part of GMEM's last-level cache that stands in front of one channel.
#ifndef SIMULATOR_CACHE_SLICE_H_
#define SIMULATOR_CACHE_SLICE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace polynao::simulator {

// Knows which bytes are in the cache; the bytes themselves stay in GMEM. A line is a run of consecutive
// bytes, of which the granules that were read are in the cache. Any line may stand anywhere (fully
// associative); the line used longest ago makes room.
class CacheSlice {
 public:
  // `lines` >= 1 of `line_bytes`, which are a multiple of `granule` and at most 64 of them.
  CacheSlice(int64_t lines, int64_t line_bytes, int64_t granule);

  // Reads [address, address + size), which must lie in one line: none if not all granules that it
  // touches are in the cache. The caller then fetches them; they count as present at once and arrive in cycle
  // `fetched`. Else the result is the cycle in which the line's last fetch arrives, which may be in the
  // future. The line becomes the one used last.
  std::optional<int64_t> Read(int64_t address, int64_t size, int64_t fetched);

  // Drops the granules that [address, address + size), in one line, touches; a line without any is
  // the next to make room.
  void Drop(int64_t address, int64_t size);

 private:
  struct Line {
    int64_t number = -1;  // address / line_bytes; -1: holds nothing yet
    uint64_t granules = 0;
    int64_t fetched = 0;
    int32_t newer = 0, older = 0;
  };
  // Bits of the granules that [address, address + size) touches in its line.
  uint64_t Touched(int64_t address, int64_t size) const;
  size_t Home(int64_t number) const {
    return static_cast<size_t>(static_cast<uint64_t>(number) * 0x9e3779b97f4a7c15u >> shift_);
  }
  // The slot of `index_` that holds the line of that number, or where it would stand.
  size_t Find(int64_t number) const;
  void Erase(size_t slot);
  void Unlink(int32_t line);
  // Puts an unlinked line before `newer`, i.e. makes it older than that one.
  void LinkBehind(int32_t newer, int32_t line);

  const int64_t line_bytes_;
  const int64_t granule_;
  const int32_t end_;  // position of the ring's head: its older neighbour is the newest line
  std::vector<Line> lines_;
  std::vector<int32_t> index_;  // open addressing, linear probing; -1: free
  size_t mask_;
  int shift_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_CACHE_SLICE_H_
