#include "simulator/ranges.h"

#include <algorithm>

#include "absl/types/span.h"

namespace polynao::simulator {
namespace {

using Dims = absl::Span<const std::pair<int64_t, int64_t>>;

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// The distance from the first byte of a canonical set to the end of the last.
int64_t SpanOf(Dims dims, int64_t run) {
  for (const auto& [count, stride] : dims) run += (count - 1) * stride;
  return run;
}

// A byte in [lo, hi) of the canonical set {begin, dims, run}, outermost (largest stride) first.
std::optional<int64_t> Find(int64_t begin, Dims dims, int64_t run, int64_t lo, int64_t hi) {
  if (dims.empty()) {
    const int64_t first = std::max(begin, lo);
    if (first < std::min(begin + run, hi)) return first;
    return std::nullopt;
  }
  const auto [count, stride] = dims.front();
  const Dims inner = dims.subspan(1);
  const int64_t span = SpanOf(inner, run);
  // The copies i whose span overlaps [lo, hi): begin + i*stride < hi and begin + i*stride + span > lo.
  const int64_t first = std::max<int64_t>(0, FloorDiv(lo - begin - span, stride) + 1);
  const int64_t last = std::min<int64_t>(count - 1, FloorDiv(hi - begin - 1, stride));
  for (int64_t i = first; i <= last; ++i) {
    if (const auto byte = Find(begin + i * stride, inner, run, lo, hi)) return byte;
  }
  return std::nullopt;
}

}  // namespace

isa::ByteRanges Canonical(const isa::ByteRanges& ranges) {
  isa::ByteRanges result = ranges;
  result.dims.clear();
  bool empty = ranges.run <= 0;
  for (auto [count, stride] : ranges.dims) {
    if (count <= 0) empty = true;
    if (count <= 1 || stride == 0) continue;
    if (stride < 0) {
      result.begin += (count - 1) * stride;
      stride = -stride;
    }
    result.dims.push_back({count, stride});
  }
  if (empty) {
    result.dims.clear();
    result.run = 0;
    return result;
  }
  // Sorts the dimensions, smallest stride (innermost) last. While the inner set is one run, a dimension whose
  // copies touch extends the run.
  std::sort(result.dims.begin(), result.dims.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  while (!result.dims.empty() && result.dims.back().second <= result.run) {
    const auto [count, stride] = result.dims.back();
    result.run += (count - 1) * stride;
    result.dims.pop_back();
  }
  // An outer dimension joins the next inner one if its copies continue the rows: {a, n*s} over {n, s}.
  for (size_t i = result.dims.size(); i-- > 1;) {
    auto& [inner_count, inner_stride] = result.dims[i];
    const auto [count, stride] = result.dims[i - 1];
    if (stride % inner_stride == 0 && stride / inner_stride <= inner_count) {
      inner_count += (count - 1) * (stride / inner_stride);
      result.dims.erase(result.dims.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    }
  }
  return result;
}

std::optional<int64_t> CommonByte(const isa::ByteRanges& a, int64_t begin, int64_t end) {
  if (begin >= end || a.run <= 0) return std::nullopt;
  return Find(a.begin, a.dims, a.run, begin, end);
}

std::optional<int64_t> CommonByte(const isa::ByteRanges& a, const isa::ByteRanges& b) {
  const int64_t a_end = a.begin + SpanOf(a.dims, a.run);
  const int64_t b_end = b.begin + SpanOf(b.dims, b.run);
  if (a.run <= 0 || b.run <= 0 || a_end <= b.begin || b_end <= a.begin) return std::nullopt;
  if (a.dims.empty()) return Find(b.begin, b.dims, b.run, a.begin, a_end);
  if (b.dims.empty()) return Find(a.begin, a.dims, a.run, b.begin, b_end);
  // Looks up the runs of the set with fewer runs in the other set.
  const auto runs = [](const isa::ByteRanges& r) {
    int64_t count = 1;
    for (const auto& dim : r.dims) count *= dim.first;
    return count;
  };
  const bool a_is_small = runs(a) <= runs(b);
  const isa::ByteRanges& small = a_is_small ? a : b;
  const isa::ByteRanges& large = a_is_small ? b : a;
  std::optional<int64_t> found;
  small.ForEachRun([&](int64_t begin, int64_t size) {
    if (!found) found = Find(large.begin, large.dims, large.run, begin, begin + size);
  });
  return found;
}

RunCursor::RunCursor(const isa::ByteRanges& ranges)
    : at_(ranges.begin), run_(ranges.run), done_(ranges.run <= 0) {
  for (const auto& [count, stride] : ranges.dims) {
    if (count <= 0) done_ = true;
    if (count != 1) dims_.push_back({count, stride});
  }
  while (!dims_.empty() && dims_.back().second == run_) {
    run_ *= dims_.back().first;
    dims_.pop_back();
  }
  index_.assign(dims_.size(), 0);
}

void RunCursor::Next() {
  for (size_t d = dims_.size(); d-- > 0;) {
    at_ += dims_[d].second;
    if (++index_[d] < dims_[d].first) return;
    at_ -= dims_[d].second * dims_[d].first;
    index_[d] = 0;
  }
  done_ = true;
}

int64_t RunCursor::run_count() const {
  if (done_) return 0;
  int64_t count = 1;
  for (const auto& dim : dims_) count *= dim.first;
  return count;
}

}  // namespace polynao::simulator
