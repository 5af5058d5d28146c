#include "simulator/definedness.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "isa/ranges.h"

namespace polynao::simulator {
namespace {

class Spreader {
 public:
  Spreader(const isa::Flow& flow, const IntervalSet& defined, IntervalSet* undefined)
      : defined_(defined),
        undefined_(*undefined),
        read_begin_(flow.read_begin),
        write_begin_(flow.write_begin) {
    isa::ByteRanges window{.space = flow.read_space, .run = flow.read_bytes, .dims = {}};
    isa::ByteRanges spread{.space = flow.write_space, .run = flow.write_bytes, .dims = {}};
    for (const isa::Flow::Loop& loop : flow.loops) {
      if (loop.count <= 0) is_empty_ = true;
      if (loop.count == 1) continue;
      if (loop.read_stride == 0) {
        spread.dims.push_back({loop.count, loop.write_stride});
      } else if (loop.write_stride == 0) {
        window.dims.push_back({loop.count, loop.read_stride});
      } else if (loop.read_stride > 0) {
        walked_.push_back(loop);
      } else {
        // Walk the loop backwards, since gaps are found in ascending order.
        read_begin_ += (loop.count - 1) * loop.read_stride;
        write_begin_ += (loop.count - 1) * loop.write_stride;
        walked_.push_back({loop.count, -loop.read_stride, -loop.write_stride});
      }
    }
    if (walked_.empty()) walked_.push_back({1, 0, 0});
    window_ = Canonical(window);
    spread_ = Canonical(spread);
    // Loop d and the loops inside it read within span_[d] bytes.
    int64_t span = window_.end() - window_.begin;
    span_.resize(walked_.size());
    for (size_t d = walked_.size(); d-- > 0;) {
      span += (walked_[d].count - 1) * walked_[d].read_stride;
      span_[d] = span;
    }
  }

  void Run() {
    if (!is_empty_) Walk(0, read_begin_, write_begin_);
  }

 private:
  void Walk(size_t d, int64_t read, int64_t write) {
    if (defined_.Contains(read + window_.begin, read + window_.begin + span_[d])) return;
    const isa::Flow::Loop& loop = walked_[d];
    if (d + 1 == walked_.size()) return WalkLast(loop, read, write);
    for (int64_t i = 0; i < loop.count; ++i) {
      Walk(d + 1, read + i * loop.read_stride, write + i * loop.write_stride);
    }
  }

  void WalkLast(const isa::Flow::Loop& loop, int64_t read, int64_t write) {
    if (window_.dims.empty() && window_.run == loop.read_stride) {
      // Each iteration reads the bytes that follow those of the iteration before.
      const int64_t begin = read + window_.begin;
      const int64_t end = begin + loop.count * loop.read_stride;
      for (auto gap = defined_.FirstGap(begin, end); gap;
           gap = defined_.FirstGap(gap->second, end)) {
        Mark(loop, write, (gap->first - begin) / loop.read_stride,
             (gap->second - begin + loop.read_stride - 1) / loop.read_stride);
      }
      return;
    }
    int64_t first = -1;  // of the undefined iterations before this one
    for (int64_t i = 0; i <= loop.count; ++i) {
      if (i < loop.count && !IsDefined(read + i * loop.read_stride)) {
        if (first < 0) first = i;
      } else if (first >= 0) {
        Mark(loop, write, first, i);
        first = -1;
      }
    }
  }

  bool IsDefined(int64_t read) const {
    bool is_defined = true;
    window_.ForEachRun([&](int64_t begin, int64_t size) {
      is_defined = is_defined && defined_.Contains(read + begin, read + begin + size);
    });
    return is_defined;
  }

  // Marks what iterations [first, last) write as undefined.
  void Mark(const isa::Flow::Loop& loop, int64_t write, int64_t first, int64_t last) {
    if (std::abs(loop.write_stride) > spread_.run) {
      for (int64_t i = first; i < last; ++i) Add(write + i * loop.write_stride, 0);
    } else {
      const int64_t lowest = loop.write_stride >= 0 ? first : last - 1;
      Add(write + lowest * loop.write_stride, (last - 1 - first) * std::abs(loop.write_stride));
    }
  }
  void Add(int64_t write, int64_t more) {
    spread_.ForEachRun([&](int64_t begin, int64_t size) {
      undefined_.Add(write + begin, write + begin + size + more);
    });
  }

  const IntervalSet& defined_;
  IntervalSet& undefined_;
  int64_t read_begin_, write_begin_;
  bool is_empty_ = false;
  isa::ByteRanges window_, spread_;      // from 0
  std::vector<isa::Flow::Loop> walked_;  // loops that move both sides; reads ascend
  std::vector<int64_t> span_;
};

}  // namespace

void SpreadUndefined(const isa::Flow& flow, const IntervalSet& defined, IntervalSet* undefined) {
  Spreader(flow, defined, undefined).Run();
}

}  // namespace polynao::simulator
