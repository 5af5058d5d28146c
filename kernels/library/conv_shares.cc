#include "kernels/library/conv_shares.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/math.h"
#include "base/text.h"
#include "isa/channel_map.h"
#include "isa/granularity.h"

namespace polynao::kernels {
namespace {

// All ways to write `count` as rows * columns * channels.
std::vector<std::array<int64_t, 3>> Grids(int64_t count) {
  std::vector<std::array<int64_t, 3>> grids;
  for (int64_t channels = 1; channels <= count; ++channels) {
    if (count % channels != 0) continue;
    for (int64_t columns = 1; columns <= count / channels; ++columns) {
      if (count / channels % columns != 0) continue;
      grids.push_back({count / channels / columns, columns, channels});
    }
  }
  return grids;
}

// How many clusters may share a layer: 1, 2, 4, 8, ..., their multiples by 1.5 from 6 on, and all.
std::vector<int64_t> ClusterNumbers(int64_t clusters) {
  std::vector<int64_t> numbers = {clusters};
  for (int64_t n = 1; n < clusters; n = n + std::max<int64_t>(1, n % 3 == 0 ? n / 3
                                                                 : n >= 4   ? n / 2
                                                                            : n)) {
    numbers.push_back(n);
  }
  return numbers;
}

double Parameter(const isa::Machine& machine, std::string_view name) {
  return static_cast<double>(machine.Get(name));
}

// How unevenly the cores use the channels of GMEM if all compute their shares tile by tile, in step: the busiest
// channel's part of the rows of the image that are read in a step, against an even part.
double Crowding(const ConvCase& k, const ConvShares& s, const isa::Machine& machine,
                int64_t tile_rows) {
  const isa::ChannelMap map(machine);
  const int64_t channels = map.channels(), interleave = map.interleave();
  const int64_t row_bytes = (k.w + 2 * k.pad_w) * k.ci * k.bytes;
  const int64_t share_rows = ShareRows(k, s);
  double busiest = 0, even = 0;
  for (int64_t row = 0; row < share_rows; row += tile_rows) {
    std::vector<double> bytes(channels);
    for (int64_t first = row; first < k.ho; first += share_rows) {
      const int64_t from = first * k.stride * row_bytes;
      const int64_t to = from + std::min(tile_rows, k.ho - first) * k.stride * row_bytes;
      for (int64_t at = from; at < to; at = (at / interleave + 1) * interleave) {
        const int64_t end = std::min(to, (at / interleave + 1) * interleave);
        bytes[static_cast<size_t>(map.ChannelOf(at))] += static_cast<double>(end - at);
        even += static_cast<double>(end - at) / static_cast<double>(channels);
      }
    }
    busiest += *std::max_element(bytes.begin(), bytes.end());
  }
  return busiest / even;
}

}  // namespace

int64_t ShareRows(const ConvCase& k, const ConvShares& s) { return CeilDiv(k.ho, s.grid_rows()); }

int64_t ShareColumns(const ConvCase& k, const ConvShares& s) {
  return CeilDiv(k.wo, s.grid_columns());
}

int64_t ShareChannels(const ConvCase& k, const ConvShares& s, const isa::Machine& machine) {
  if (s.grid_channels() == 1) return k.co;
  const int64_t granule = std::max<int64_t>(1, machine.Get("gmem.granule") / 2);  // of f16
  return std::min(k.co, RoundUp(CeilDiv(k.co, s.grid_channels()), granule));
}

double EstimateCycles(const ConvCase& k, const ConvShares& s, const isa::Machine& machine,
                      int64_t tile_rows) {
  const auto get = [&](std::string_view name) { return Parameter(machine, name); };
  const bool cached = machine.caches_reads();
  const double gmem = machine.gmem_bytes_per_cycle();
  const double port = get("io_dma.port_bytes"), link = get("cluster.link_bytes");
  const double latency = get("gmem.latency") + get("io_dma.start");
  const double burst_latency = get("gmem.latency") + get("io_dma.burst") * (1 / port + 1 / link);
  const auto clusters = static_cast<double>(s.clusters());
  const auto cluster_cores = static_cast<double>(machine.cores_per_cluster());
  const double cores = clusters * cluster_cores;
  const int64_t rows = ShareRows(k, s), columns = ShareColumns(k, s);
  const int64_t channels = ShareChannels(k, s, machine);
  tile_rows = std::min(tile_rows, rows);

  // Of `n` rows of a core's share: bytes of image and result, and cycles of the core's IO-DMA for them.
  const auto image_bytes = [&](int64_t n) {
    return static_cast<double>(k.ImageRows(n) * k.ImageColumns(columns) * k.ci * k.bytes);
  };
  const auto result_bytes = [&](int64_t n) {
    return static_cast<double>(n * columns * channels * 2);
  };
  // A copy of several segments waits for each few of them.
  const auto waits = [&](int64_t segments, double in_flight) {
    const double rounds = segments == 1 ? 1 : std::ceil(static_cast<double>(segments) / in_flight);
    return get("io_dma.start") + rounds * burst_latency;
  };
  const auto load_waits = [&](int64_t n) {
    return waits(columns == k.wo ? 1 : k.ImageRows(n), get("io_dma.strided_reads"));
  };
  const auto store_waits = [&](int64_t n) {
    const int64_t segments = channels < k.co ? n * columns : columns < k.wo ? n : 1;
    return waits(segments, machine.store_segments_per_core());
  };
  const auto load = [&](int64_t n) { return load_waits(n) + image_bytes(n) / port; };
  const auto store = [&](int64_t n) { return store_waits(n) + result_bytes(n) / port; };

  // Bytes that GMEM moves for all cores.
  const auto filters = static_cast<double>(channels * k.filter_elements() * k.bytes);  // a core's
  const auto all_filters = static_cast<double>(k.co * k.filter_elements() * k.bytes);
  const double filter_copies = s.by_smem ? clusters : cores;
  const double gmem_filters = cached ? all_filters : filter_copies * filters;
  const double image = image_bytes(rows);
  const double all_image = cores * image;
  const double gmem_image =
      Crowding(k, s, machine, tile_rows) *
      (cached ? std::min(all_image, static_cast<double>(k.h * k.w * k.ci * k.bytes)) : all_image);
  const auto gmem_result = static_cast<double>(k.ho * k.wo * k.co * 2);

  // The first tile's filters and image; filters go first.
  const double link_filters = (s.by_smem ? 1 : cluster_cores) * filters / link;
  const double filters_come =
      latency + std::max({gmem_filters / gmem, link_filters, s.by_smem ? 0 : filters / port});
  const double to_wmem = s.by_smem ? filters / get("move_dma.port_bytes") : 0;
  const double first_part = image_bytes(tile_rows) / image;
  const double start =
      filters_come + std::max({to_wmem, load(tile_rows), latency + gmem_image * first_part / gmem});

  const auto results = static_cast<double>(rows * columns * RoundUp(channels, isa::kTensorLanes));
  const double macs = get(StrCat("tensor.macs_", ir::TypeName(k.type)));
  const double compute = results * static_cast<double>(k.filter_pitch() / k.bytes) / macs +
                         results * 4 / get("vector.bytes");
  const double steps = static_cast<double>(CeilDiv(rows, tile_rows));
  const double all_waits = (steps - 1) * (load_waits(tile_rows) + store_waits(tile_rows));
  const double io =
      all_waits + (image - image_bytes(tile_rows) + result_bytes(rows - tile_rows)) / port;
  // Other cores' copies hide most of the waits; measured on the layers of tensorize48.
  const double rest =
      all_waits / 4 + (gmem_image * (1 - first_part) + gmem_result * (steps - 1) / steps) / gmem;
  const double last = std::max(store(tile_rows), latency + gmem_result / steps / gmem);
  return start + std::max({compute, io, rest}) + last;
}

std::vector<ConvShares> AllShares(const ConvCase& k, const isa::Machine& machine,
                                  int64_t tile_rows) {
  std::vector<std::pair<double, ConvShares>> all;
  std::vector<std::array<int64_t, 3>> cluster_grids;
  for (int64_t clusters : ClusterNumbers(machine.clusters())) {
    for (const auto& grid : Grids(clusters)) cluster_grids.push_back(grid);
  }
  const std::vector<std::array<int64_t, 3>> core_grids = Grids(machine.cores_per_cluster());
  for (const auto& [rows, columns, channels] : cluster_grids) {
    for (const auto& [core_rows, core_columns, core_channels] : core_grids) {
      for (const bool by_smem : {true, false}) {
        if (by_smem && core_channels > 1) continue;
        const ConvShares s = {.cluster_rows = rows,
                              .cluster_columns = columns,
                              .cluster_channels = channels,
                              .core_rows = core_rows,
                              .core_columns = core_columns,
                              .core_channels = core_channels,
                              .by_smem = by_smem};
        all.emplace_back(EstimateCycles(k, s, machine, tile_rows), s);
      }
    }
  }
  std::sort(all.begin(), all.end());
  std::vector<ConvShares> shares;
  for (const auto& [cycles, s] : all) shares.push_back(s);
  return shares;
}

}  // namespace polynao::kernels
