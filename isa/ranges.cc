#include "isa/ranges.h"

#include <algorithm>

#include "absl/types/span.h"

namespace polynao::isa {
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

// A canonical set, or the copies of its inner dimensions that stand at `begin`.
struct Set {
  int64_t begin;
  Dims dims;
  int64_t run;
  int64_t end() const { return begin + SpanOf(dims, run); }
  Set Copy(int64_t i) const { return {begin + i * dims.front().second, dims.subspan(1), run}; }
};

// A byte that both sets have. Two outermost dimensions of one stride are compared by the distance of their copies, of
// which only those count whose spans overlap: tiles of one array are compared in a few steps, however many rows they
// have. Of two different strides, the copies of the larger one are looked up one by one.
std::optional<int64_t> Common(const Set& a, const Set& b) {
  if (a.end() <= b.begin || b.end() <= a.begin) return std::nullopt;
  if (a.dims.empty()) return Find(b.begin, b.dims, b.run, a.begin, a.begin + a.run);
  if (b.dims.empty()) return Find(a.begin, a.dims, a.run, b.begin, b.begin + b.run);
  const auto [a_count, a_stride] = a.dims.front();
  const auto [b_count, b_stride] = b.dims.front();
  if (a_stride < b_stride) return Common(b, a);
  const int64_t a_span = SpanOf(a.dims.subspan(1), a.run);
  if (a_stride > b_stride) {
    const int64_t first = std::max<int64_t>(0, FloorDiv(b.begin - a.begin - a_span, a_stride) + 1);
    const int64_t last = std::min<int64_t>(a_count - 1, FloorDiv(b.end() - a.begin - 1, a_stride));
    for (int64_t i = first; i <= last; ++i) {
      if (const auto byte = Common(a.Copy(i), b)) return byte;
    }
    return std::nullopt;
  }
  const int64_t b_span = SpanOf(b.dims.subspan(1), b.run);
  // Copy i of a and copy i + k of b: -b_span < b.begin - a.begin + k * stride < a_span.
  const int64_t distance = b.begin - a.begin;
  const int64_t first = std::max<int64_t>(1 - a_count, FloorDiv(-b_span - distance, a_stride) + 1);
  const int64_t last = std::min<int64_t>(b_count - 1, FloorDiv(a_span - 1 - distance, a_stride));
  for (int64_t k = first; k <= last; ++k) {
    const int64_t i = std::max<int64_t>(0, -k);
    if (const auto byte = Common(a.Copy(i), b.Copy(i + k))) return byte;
  }
  return std::nullopt;
}

}  // namespace

ByteRanges Canonical(const ByteRanges& ranges) {
  ByteRanges result = ranges;
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

std::optional<int64_t> CommonByte(const ByteRanges& a, int64_t begin, int64_t end) {
  if (begin >= end || a.run <= 0) return std::nullopt;
  return Find(a.begin, a.dims, a.run, begin, end);
}

std::optional<int64_t> CommonByte(const ByteRanges& a, const ByteRanges& b) {
  if (a.run <= 0 || b.run <= 0) return std::nullopt;
  return Common({a.begin, a.dims, a.run}, {b.begin, b.dims, b.run});
}

RunCursor::RunCursor(const ByteRanges& ranges)
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

}  // namespace polynao::isa
