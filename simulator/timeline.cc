#include "simulator/timeline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pages/page.h"
#include "pages/svg.h"

namespace polynao::simulator {
namespace {

// The kinds of slices, in the order of the legend.
enum class Paint { kLoad, kStore, kMove, kVector, kTensor, kScalar, kWait, kBarrier };
struct PaintStyle {
  const char* label;
  const char* color;
};
constexpr std::array<PaintStyle, 8> kStyles = {{
    {"load from GMEM", "#3b76b0"},
    {"store to GMEM", "#e8833a"},
    {"move on chip", "#2aa198"},
    {"vector", "#57a64a"},
    {"tensor", "#9b5fb5"},
    {"scalar code", "#8a8f98"},
    {"waits for queues", "#f3c9c4"},
    {"waits at a barrier", "#e6a0a8"},
}};

Paint PaintOf(const Slice& slice) {
  switch (slice.kind) {
    case Slice::Kind::kScalar:
      return Paint::kScalar;
    case Slice::Kind::kQueueFull:
    case Slice::Kind::kSync:
    case Slice::Kind::kWait:
      return Paint::kWait;
    case Slice::Kind::kBarrier:
      return Paint::kBarrier;
    case Slice::Kind::kExecute:
      break;
  }
  switch (slice.unit) {
    case isa::Unit::kVector:
      return Paint::kVector;
    case isa::Unit::kTensor:
      return Paint::kTensor;
    case isa::Unit::kMoveDma:
      return Paint::kMove;
    case isa::Unit::kIoDma:
      return slice.is_store ? Paint::kStore : Paint::kLoad;
    case isa::Unit::kScalar:
    case isa::Unit::kControl:
      break;
  }
  return Paint::kScalar;
}

// Rows of one core, in this order: units that share a queue share a row.
enum class Lane { kScalar, kCompute, kIo, kMove };
constexpr std::array<const char*, 4> kLaneNames = {"scalar", "compute", "io", "move"};

Lane LaneOf(const Slice& slice) {
  switch (isa::QueueOf(slice.unit)) {
    case isa::Queue::kCompute:
      return Lane::kCompute;
    case isa::Queue::kIo:
      return Lane::kIo;
    case isa::Queue::kMove:
      return Lane::kMove;
    case isa::Queue::kNone:
      break;
  }
  return Lane::kScalar;
}

constexpr int kLeft = 128;
constexpr int kRight = 56;
constexpr int kRowHeight = 11;
constexpr int kRowGap = 1;
constexpr int kCoreGap = 5;
constexpr int kClusterGap = 12;
constexpr int kCurveHeight = 56;
constexpr std::string_view kPanel = "class=\"panel\"";

class Drawing {
 public:
  Drawing(const RunResult& result, const TimelineOptions& options)
      : result_(result), width_(options.width) {
    begin_ = options.begin;
    end_ = std::min(options.end, result.end_cycle);
    if (!result.slices.empty()) {
      int64_t first = end_, last = begin_;
      for (const Slice& slice : result.slices) {
        first = std::min(first, slice.begin);
        last = std::max(last, slice.end);
      }
      // A trace of a window shows the window.
      if (first > begin_) begin_ = std::min(first, end_);
      if (last < end_) end_ = std::max(last, begin_);
    }
    end_ = std::max(end_, begin_ + 1);
  }

  std::string Svg() {
    Header();
    Curve();
    axis_top_ = y_;
    y_ += 18;
    Rows();
    DrawCycles();
    grid_.Add(body_.body());
    return grid_.Element(width_, y_ + 12);
  }

 private:
  double X(int64_t cycle) const {
    return kLeft + static_cast<double>(cycle - begin_) / static_cast<double>(end_ - begin_) *
                       (width_ - kLeft - kRight);
  }
  double CyclesPerPixel() const {
    return static_cast<double>(end_ - begin_) / (width_ - kLeft - kRight);
  }

  void Header() {
    body_.Text(12, 22,
               absl::StrCat(result_.program, " on ", result_.machine, ": ",
                            pages::Thousands(result_.cycles), " cycles"),
               "title");
    if (!result_.slices_complete) {
      body_.Text(width_ - 12, 22, "the trace reached its limit of slices and is cut", "end bad");
    }
    std::array<bool, kStyles.size()> used{};
    for (const Slice& slice : result_.slices) used[static_cast<size_t>(PaintOf(slice))] = true;
    std::vector<std::pair<std::string, std::string>> legend;
    for (size_t i = 0; i < kStyles.size(); ++i) {
      if (used[i]) legend.emplace_back(kStyles[i].label, kStyles[i].color);
    }
    body_.Legend(12, 31, width_, legend);
    y_ = 58;
  }

  void Curve() {
    if (result_.gmem_buckets.empty() || result_.gmem_bucket <= 0) return;
    int64_t rate = 0;
    for (const PortReport& port : result_.ports) {
      // The curve shows what channels move; what the cache serves instead is not in it.
      if (port.name.starts_with("gmem.channel")) rate += port.rate;
    }
    const double peak = std::max(1.0, static_cast<double>(rate) / 1000);
    const int base = y_ + kCurveHeight;
    body_.Text(kLeft - 8, y_ + 12, "GMEM", "end bold");
    body_.Text(kLeft - 8, y_ + 26, "B/cycle", "end soft");
    body_.Text(width_ - kRight + 6, y_ + 8, absl::StrFormat("%.1f", peak), "soft");
    body_.Text(width_ - kRight + 6, base, "0", "soft");
    // Mean of the buckets under each pixel.
    const int pixels = width_ - kLeft - kRight;
    std::string points = absl::StrFormat("M%d,%d", kLeft, base);
    for (int p = 0; p < pixels; ++p) {
      const double from = static_cast<double>(begin_) + p * CyclesPerPixel();
      const size_t first = static_cast<size_t>(from / static_cast<double>(result_.gmem_bucket));
      const size_t last = std::max(
          first + 1, static_cast<size_t>(std::ceil((from + CyclesPerPixel()) /
                                                   static_cast<double>(result_.gmem_bucket))));
      double sum = 0;
      for (size_t b = first; b < std::min(last, result_.gmem_buckets.size()); ++b) {
        sum += static_cast<double>(result_.gmem_buckets[b]);
      }
      const double value =
          sum / static_cast<double>(last - first) / static_cast<double>(result_.gmem_bucket);
      absl::StrAppend(&points, absl::StrFormat(" L%d,%.1f", kLeft + p,
                                               base - std::min(1.0, value / peak) * kCurveHeight));
    }
    absl::StrAppend(&points, absl::StrFormat(" L%d,%d Z", width_ - kRight, base));
    body_.Rect(kLeft, y_, pixels, kCurveHeight, kPanel);
    body_.Add("<path d=\"" + points + "\" fill=\"#3b76b0\" fill-opacity=\"0.55\"/>\n");
    body_.Line(kLeft, y_, width_ - kRight, y_, "ink dashed");
    y_ = base + 6;
  }

  void DrawCycles() {
    const double span = static_cast<double>(end_ - begin_);
    const int most = (width_ - kLeft - kRight) / 90;
    const pages::Axis axis(static_cast<double>(begin_), static_cast<double>(end_), false, kLeft,
                           width_ - kRight, static_cast<int>(std::min<double>(most, span)));
    for (const double cycle : axis.ticks()) {
      const std::string label = pages::Thousands(std::llround(cycle));
      grid_.Line(axis.At(cycle), axis_top_ + 14, axis.At(cycle), y_, "grid");
      body_.Text(axis.At(cycle), axis_top_ + 10, label, "middle soft");
      body_.Text(axis.At(cycle), y_ + 10, label, "middle soft");
    }
    body_.Text(kLeft - 8, axis_top_ + 10, "cycle", "end soft");
    y_ += 12;
  }

  void Rows() {
    std::map<std::pair<int, Lane>, std::vector<const Slice*>> rows;
    for (const Slice& slice : result_.slices) {
      if (slice.end <= begin_ || slice.begin >= end_) continue;
      rows[{slice.core, LaneOf(slice)}].push_back(&slice);
    }
    // A core whose slices together are narrower than a pixel is left out: it halted at once.
    std::map<int, int64_t> active;
    for (const auto& [key, slices] : rows) {
      for (const Slice* slice : slices) active[key.first] += slice->end - slice->begin;
    }
    int last_core = -1;
    for (auto& [key, slices] : rows) {
      const auto& [core_index, lane] = key;
      if (static_cast<double>(active[core_index]) < CyclesPerPixel()) continue;
      const CoreReport& core = result_.cores[static_cast<size_t>(core_index)];
      if (core_index != last_core) {
        if (last_core >= 0) {
          const bool new_cluster =
              result_.cores[static_cast<size_t>(last_core)].cluster != core.cluster;
          y_ += new_cluster ? kClusterGap : kCoreGap;
          if (new_cluster) {
            const int middle = y_ - kClusterGap / 2;
            grid_.Line(12, middle, width_ - 12, middle, "grid");
          }
        }
        body_.Text(12, y_ + kRowHeight - 2,
                   core.is_memory_core ? absl::StrCat(core.cluster, ".memory")
                                       : absl::StrCat("core ", core.cluster, ".", core.core),
                   "bold");
        last_core = core_index;
      }
      body_.Text(kLeft - 8, y_ + kRowHeight - 2, kLaneNames[static_cast<size_t>(lane)], "end soft");
      grid_.Rect(kLeft, y_, width_ - kLeft - kRight, kRowHeight, kPanel);
      Row(slices);
      y_ += kRowHeight + kRowGap;
    }
  }

  // A run of slices of one paint, drawn as one rectangle.
  struct Group {
    Paint paint;
    int64_t begin;
    int64_t end;
    int64_t busy;
    int count;
    const Slice* first;
  };

  void Row(std::vector<const Slice*>& slices) {
    std::sort(slices.begin(), slices.end(),
              [](const Slice* a, const Slice* b) { return a->begin < b->begin; });
    // Slices that are far apart or wide enough to see stand alone.
    const double tiny = 1.5 * CyclesPerPixel();
    std::vector<Group> groups;
    std::array<int, kStyles.size()> open;
    open.fill(-1);
    int64_t busy = 0;
    for (const Slice* slice : slices) {
      const Paint paint = PaintOf(*slice);
      const int64_t begin = std::max(slice->begin, begin_);
      const int64_t end = std::min(slice->end, end_);
      if (paint != Paint::kWait && paint != Paint::kBarrier) busy += end - begin;
      int& current = open[static_cast<size_t>(paint)];
      const bool is_tiny = static_cast<double>(end - begin) < tiny;
      if (current >= 0 && is_tiny) {
        Group& group = groups[static_cast<size_t>(current)];
        if (static_cast<double>(begin - group.end) < tiny &&
            static_cast<double>(end - group.begin) < 3 * tiny) {
          group.end = std::max(group.end, end);
          group.busy += end - begin;
          ++group.count;
          continue;
        }
      }
      groups.push_back({paint, begin, end, end - begin, 1, slice});
      current = is_tiny ? static_cast<int>(groups.size()) - 1 : -1;
    }
    for (const Group& group : groups) Rectangle(group);
    body_.Text(width_ - kRight + 6, y_ + kRowHeight - 2,
               absl::StrFormat("%.0f%%", 100.0 * static_cast<double>(busy) /
                                             static_cast<double>(end_ - begin_)),
               "soft");
  }

  void Rectangle(const Group& group) {
    const double x = X(group.begin);
    const double width = std::max(0.6, X(group.end) - x);
    const double share = static_cast<double>(group.busy) /
                         std::max<double>(static_cast<double>(group.end - group.begin), 1);
    std::string what;
    if (group.count > 1) {
      what = absl::StrCat(group.count, " slices");
    } else if (group.first->kind == Slice::Kind::kExecute &&
               static_cast<size_t>(group.first->pc) < result_.instructions.size()) {
      what = result_.instructions[static_cast<size_t>(group.first->pc)];
    } else {
      what = kStyles[static_cast<size_t>(group.paint)].label;
    }
    body_.Rect(x, y_, width, kRowHeight,
               absl::StrCat(
                   "fill=\"", kStyles[static_cast<size_t>(group.paint)].color, "\"",
                   share < 0.99 ? absl::StrFormat(" fill-opacity=\"%.2f\"", 0.3 + 0.7 * share) : "",
                   // A light edge separates neighbours if the slice is wide enough.
                   width > 4 ? " stroke=\"#ffffff\" stroke-width=\"0.5\"" : ""),
               absl::StrCat("pc ", group.first->pc, ": ", what, "\ncycles ", group.begin, " to ",
                            group.end, " (", group.end - group.begin, ")"));
  }

  const RunResult& result_;
  const int width_;
  int64_t begin_ = 0;
  int64_t end_ = 0;
  int y_ = 0;
  int axis_top_ = 0;
  pages::Svg grid_;  // below
  pages::Svg body_;
};

}  // namespace

std::string TimelineSvg(const RunResult& result, const TimelineOptions& options) {
  return Drawing(result, options).Svg();
}

std::string TimelineFile(const RunResult& result, std::string_view path) {
  const std::string svg = TimelineSvg(result);
  if (!path.ends_with(".html")) return pages::SvgFile(svg);
  pages::Table counters({"counter", "value"}, 1);
  for (const auto& [name, value] : result.Rows()) counters.Row({name, pages::Thousands(value)});
  return pages::Page(absl::StrCat(result.program, " on ", result.machine), svg + counters.Html());
}

}  // namespace polynao::simulator
