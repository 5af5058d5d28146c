// Bytes of the bursts whose turn has come at a GMEM channel.
#ifndef SIMULATOR_REFERENCE_GMEM_COUNTS_H_
#define SIMULATOR_REFERENCE_GMEM_COUNTS_H_

#include <cstdint>

namespace polynao::simulator::reference {

struct GmemCounts {
  int64_t read = 0;         // that instructions asked for
  int64_t read_moved = 0;   // whole granules, moved by the channel
  int64_t read_cached = 0;  // the same, from the slice of the cache
  int64_t written = 0;
  int64_t written_moved = 0;  // with the reads of granules that are covered in part
};

}  // namespace polynao::simulator::reference

#endif  // SIMULATOR_REFERENCE_GMEM_COUNTS_H_
