// Arithmetic on the byte ranges that an instruction touches (ByteRanges).
#ifndef ISA_RANGES_H_
#define ISA_RANGES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "isa/instruction_set.h"

namespace polynao::isa {

// The same set of bytes with few, long runs: dimensions sorted by stride, positive, and merged
// where runs touch or overlap. The 3x3 windows of a convolution become the rows they cover.
ByteRanges Canonical(const ByteRanges& ranges);

// Returns true if the set is one run (or empty) as it stands; Canonical finds more of these.
inline bool IsContiguous(const ByteRanges& ranges) { return ranges.dims.empty(); }

// One byte that two canonical sets of one memory share, if they do.
std::optional<int64_t> CommonByte(const ByteRanges& a, const ByteRanges& b);
// One byte that [begin, end) and a canonical set share.
std::optional<int64_t> CommonByte(const ByteRanges& a, int64_t begin, int64_t end);

// Walks the runs of a transfer in the order of its loops; runs that follow each other in memory are
// one. A DMA engine takes these runs as its segments.
class RunCursor {
 public:
  explicit RunCursor(const ByteRanges& ranges);
  bool done() const { return done_; }
  int64_t begin() const { return at_; }
  int64_t size() const { return run_; }
  void Next();
  int64_t run_count() const;

 private:
  std::vector<std::pair<int64_t, int64_t>> dims_;
  std::vector<int64_t> index_;
  int64_t at_;
  int64_t run_;
  bool done_;
};

}  // namespace polynao::isa

#endif  // ISA_RANGES_H_
