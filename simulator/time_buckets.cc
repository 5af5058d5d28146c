#include "simulator/time_buckets.h"

#include <algorithm>

#include "base/check.h"

namespace polynao::simulator {

TimeBuckets::TimeBuckets(int rows, int limit)
    : rows_(rows), limit_(limit), sums_(static_cast<size_t>(rows) * static_cast<size_t>(limit)) {
  POLYNAO_CHECK(limit >= 2 && limit % 2 == 0) << limit;
}

void TimeBuckets::Merge() {
  ++shift_;
  const size_t half = static_cast<size_t>(limit_ / 2);
  for (int r = 0; r < rows_; ++r) {
    int64_t* row = &sums_[static_cast<size_t>(r) * 2 * half];
    for (size_t i = 0; i < half; ++i) row[i] = row[2 * i] + row[2 * i + 1];
    std::fill(row + half, row + 2 * half, 0);
  }
}

void TimeBuckets::Close(int64_t end) {
  end_ = std::max<int64_t>(1, end);
  while ((end_ - 1) >> shift_ >= limit_) Merge();
  const int64_t used = ((end_ - 1) >> shift_) + 1;
  for (int r = 0; r < rows_; ++r) {
    const auto row = sums_.begin() + static_cast<std::ptrdiff_t>(r * limit_);
    POLYNAO_CHECK(std::all_of(row + used, row + limit_, [](int64_t sum) { return sum == 0; }))
        << "row " << r << " has events after cycle " << end;
  }
}

std::vector<int64_t> TimeBuckets::Row(int row) const {
  const auto begin = sums_.begin() + static_cast<std::ptrdiff_t>(row * limit_);
  return std::vector<int64_t>(begin, begin + ((end_ - 1) >> shift_) + 1);
}

}  // namespace polynao::simulator
