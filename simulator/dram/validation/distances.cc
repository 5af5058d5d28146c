#include "simulator/dram/validation/distances.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_format.h"
#include "base/text.h"
#include "pages/charts.h"
#include "pages/svg.h"
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
  pages::LineChart chart{
      .x_title = StrCat("distance of the starts of ", streams, " streams of reads"),
      .y_title = "share of the peak",
      .reach = {0, 1}};
  std::set<int64_t> places;
  for (const NamedTiming& named : timings) {
    const std::vector<int64_t> distances = StreamDistances(named.timing, streams);
    places.insert(distances.begin(), distances.end());
  }
  for (const int64_t distance : places) chart.places.push_back(BytesText(distance));
  for (const NamedTiming& named : timings) {
    pages::LineChart::Series& series = chart.series.emplace_back();
    series.name = named.name;
    const std::vector<int64_t> distances = StreamDistances(named.timing, streams);
    for (const int64_t distance : places) {
      const bool has = std::binary_search(distances.begin(), distances.end(), distance);
      series.values.push_back(
          has ? std::optional(ShareOfPeak(named.timing, kStreamMixes[0], streams, distance))
              : std::nullopt);
    }
  }
  return pages::SvgFile(pages::LineChartSvg(chart));
}

}  // namespace polynao::simulator
