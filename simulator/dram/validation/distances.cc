#include "simulator/dram/validation/distances.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_format.h"
#include "base/text.h"
#include "simulator/dram/validation/streams.h"

namespace polynao::simulator {
namespace {

constexpr int64_t kBytes = 64;      // of a request
constexpr int64_t kRunBytes = 512;  // that a stream has in a turn
constexpr int64_t kNumbers[] = {2, 4, 8, 16, 32, 64};

std::string BytesText(int64_t bytes) {
  if (bytes >= 1 << 20) return StrCat(bytes >> 20, " MiB");
  return StrCat(bytes >> 10, " KiB");
}

}  // namespace

std::vector<int64_t> StreamDistances(const DramTiming& timing, int64_t streams) {
  std::vector<int64_t> distances;
  for (int64_t distance = kDistanceRequests * kBytes / streams;
       distance * streams <= timing.capacity(); distance *= 2) {
    distances.push_back(distance);
  }
  return distances;
}

double ShareOfPeak(const DramTiming& timing, const StreamMix& mix, int64_t streams,
                   int64_t distance) {
  const Stream stream{[&](int64_t i) {
    const int64_t per_run = kRunBytes / kBytes;
    const int64_t run = i / per_run, s = run % streams;
    return DramRequest{
        .address = distance * s + kRunBytes * (run / streams) + kBytes * (i % per_run),
        .bytes = kBytes,
        .is_write = mix.writes_of > 0 && s % mix.writes_of == mix.writes_of - 1};
  }};
  const StreamResult result = RunStream(timing, stream, kDistanceRequests);
  const double bursts = static_cast<double>(kDistanceRequests) * 0.99;
  return bursts * static_cast<double>(timing.burst_clocks()) / static_cast<double>(result.clocks);
}

std::string WorstSharesTable(const DramTiming& timing) {
  std::string text = "| streams |";
  for (const int64_t streams : kNumbers) StrAppend(&text, " ", streams, " |");
  StrAppend(&text, "\n|---|");
  for (size_t i = 0; i < std::size(kNumbers); ++i) StrAppend(&text, "---|");
  for (const StreamMix& mix : kStreamMixes) {
    StrAppend(&text, "\n| ", mix.name, " |");
    for (const int64_t streams : kNumbers) {
      double worst = 1;
      for (const int64_t distance : StreamDistances(timing, streams)) {
        worst = std::min(worst, ShareOfPeak(timing, mix, streams, distance));
      }
      StrAppend(&text, absl::StrFormat(" %.2f |", worst));
    }
  }
  return text + "\n";
}

std::string DistancesSvg(const std::vector<NamedTiming>& timings, int64_t streams) {
  constexpr int kLeft = 60, kTop = 30, kWidth = 560, kHeight = 240, kRight = 120, kBottom = 50;
  const char* const colours[] = {"#999999", "#d98c00", "#1f5fa8", "#2a7f3f"};
  int64_t least = 0, most = 0;
  for (const NamedTiming& named : timings) {
    const std::vector<int64_t> distances = StreamDistances(named.timing, streams);
    least = least == 0 ? distances.front() : std::min(least, distances.front());
    most = std::max(most, distances.back());
  }
  const int first = std::countr_zero(static_cast<uint64_t>(least));
  const int last = std::countr_zero(static_cast<uint64_t>(most));
  const auto x = [&](int power) { return kLeft + kWidth * (power - first) / (last - first); };
  const auto y = [&](double share) { return kTop + kHeight * (1 - share); };
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
      "<text x=\"%d\" y=\"18\">%d streams of reads: share of the peak over the distance of their "
      "starts</text>\n",
      kLeft + kWidth + kRight, kTop + kHeight + kBottom, kLeft, streams);
  for (int tenth = 0; tenth <= 10; tenth += 2) {
    const double at = y(tenth / 10.0);
    StrAppend(&svg, absl::StrFormat("<path d=\"M%d %.1fH%d\" stroke=\"#dddddd\"/>"
                                    "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.1f</text>\n",
                                    kLeft, at, kLeft + kWidth, kLeft - 6, at + 4, tenth / 10.0));
  }
  for (int power = first; power <= last; power += 2) {
    StrAppend(&svg, absl::StrFormat("<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                                    x(power), kTop + kHeight + 20, BytesText(int64_t{1} << power)));
  }
  for (size_t t = 0; t < timings.size(); ++t) {
    const NamedTiming& named = timings[t];
    std::string path;
    double end = 0;
    for (const int64_t distance : StreamDistances(named.timing, streams)) {
      end = ShareOfPeak(named.timing, kStreamMixes[0], streams, distance);
      StrAppend(
          &path, path.empty() ? "M" : "L",
          absl::StrFormat("%d %.1f", x(std::countr_zero(static_cast<uint64_t>(distance))), y(end)));
    }
    const char* colour = colours[t % std::size(colours)];
    StrAppend(&svg, absl::StrFormat("<path d=\"%s\" fill=\"none\" stroke=\"%s\" "
                                    "stroke-width=\"2\"/><text x=\"%d\" y=\"%d\" "
                                    "fill=\"%s\">%s</text>\n",
                                    path, colour, kLeft + kWidth + 8,
                                    kTop + 14 + 18 * static_cast<int>(t), colour, named.name));
  }
  return svg + "</svg>\n";
}

}  // namespace polynao::simulator
