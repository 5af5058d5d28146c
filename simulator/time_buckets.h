// Counts over time in a bounded number of buckets.
#ifndef SIMULATOR_TIME_BUCKETS_H_
#define SIMULATOR_TIME_BUCKETS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace polynao::simulator {

// A table of sums: rows x buckets of `width()` cycles. A bucket is one cycle at first; when time goes beyond the last
// bucket, two neighbours become one, as often as it takes. So memory depends on neither the length of the run nor the
// number of events.
class TimeBuckets {
 public:
  explicit TimeBuckets(int rows, int limit = 400);

  // `amount` happened in cycle `cycle` >= 0, in any order.
  void Add(int row, int64_t cycle, int64_t amount) {
    while (cycle >> shift_ >= limit_) Merge();
    sums_[static_cast<size_t>(row) * static_cast<size_t>(limit_) +
          static_cast<size_t>(cycle >> shift_)] += amount;
  }

  int rows() const { return rows_; }
  int64_t width() const { return int64_t{1} << shift_; }  // cycles, a power of two
  // The run takes `end` cycles, and nothing has been added from there on. At least limit / 2 buckets are left, if it
  // takes so many.
  void Close(int64_t end);
  // The buckets of a row up to the end of the run; at least one.
  std::vector<int64_t> Row(int row) const;

 private:
  void Merge();

  const int rows_;
  const int64_t limit_;  // buckets, an even number
  int shift_ = 0;
  int64_t end_ = 1;
  std::vector<int64_t> sums_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_TIME_BUCKETS_H_
