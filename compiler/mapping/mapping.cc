#include "compiler/mapping/mapping.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/target/target.h"
#include "isa/granularity.h"

namespace polynao::mapping {
namespace {

// Cycles of a program that are in no unit's work: scalar code before the first copies and behind barriers. The smallest
// layers take so much more than their parts (matmul 128x64,128x64).
constexpr double kScalarCode = 150;

// What the cores' parts have in common.
struct Parts {
  Shares shares;
  int64_t pixels = 0, lanes = 0;    // of a step of a core
  int64_t image_pixels = 0;         // of a core
  int64_t cluster_image_bytes = 0;  // without what lies outside of it
  int64_t core_image_bytes = 0;
  int64_t weights = 0;  // bytes of a block of a core
  int64_t loaded = 0;   // bytes of elementwise inputs, of one element
};

Parts PartsOf(const Layer& layer, const CardFacts& card, const Mapping& m) {
  Parts p;
  p.shares = SharesOf(layer, card, m);
  p.pixels = p.shares.core_rows * p.shares.core_columns;
  p.lanes = RoundUp(m.block, isa::kTensorLanes);
  const int64_t columns = layer.image_columns.Of(p.shares.core_columns);
  p.image_pixels = layer.image_rows.Of(p.shares.core_rows) * columns;
  const int64_t pixel = layer.input_channels * layer.element_bytes;
  p.core_image_bytes = p.image_pixels * pixel;
  p.cluster_image_bytes =
      layer.image_rows.Of(p.shares.cluster_rows) * layer.image_columns.Of(layer.columns) * pixel;
  p.weights = m.block * layer.filter_bytes;
  for (int64_t bytes : layer.loaded) p.loaded += bytes;
  return p;
}

// A cluster's share of GMEM's rate.
double ShareOf(const CardFacts& card, double clusters) {
  return std::min(card.link, card.gmem / clusters * (clusters > 1 ? kTogether : 1));
}

int64_t OnChip(int64_t bytes) { return RoundUp(bytes, kOnChipAlignment); }

}  // namespace

std::map<std::string, int64_t> Mapping::Values() const {
  return {{"across", across},
          {"block", block},
          {"channel_clusters", channel_clusters},
          {"columns_apart", columns_apart},
          {"image_by_smem", image_by_smem},
          {"results_by_smem", results_by_smem},
          {"weights_by_smem", weights_by_smem}};
}

std::string Mapping::Text() const {
  std::string text;
  for (const auto& [name, value] : Values()) {
    StrAppend(&text, text.empty() ? "" : " ", name, "=", value);
  }
  return text;
}

absl::StatusOr<Mapping> ParseMapping(std::string_view text) {
  std::map<std::string, int64_t> values;
  const Mapping none;
  for (const std::string& word :
       std::vector<std::string>(absl::StrSplit(ToAbsl(text), ' ', absl::SkipWhitespace()))) {
    const std::vector<std::string> parts = absl::StrSplit(word, '=');
    int64_t value = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &value)) {
      return InvalidInput("mapping: expected NAME=NUMBER, found '", word, "'");
    }
    if (!none.Values().contains(parts[0])) {
      return InvalidInput("mapping: '", word, "': there is no ", parts[0], ", there are ",
                          none.Text());
    }
    const bool is_flag = parts[0].ends_with("_by_smem");
    if (is_flag ? value != 0 && value != 1 : value < 1 || value > int64_t{1} << 40) {
      return InvalidInput("mapping: '", word, "': expected ", is_flag ? "0 or 1" : "1 and more");
    }
    if (!values.emplace(parts[0], value).second) {
      return InvalidInput("mapping: '", word, "': ", parts[0], " stands there twice");
    }
  }
  for (const auto& [name, value] : none.Values()) {
    if (!values.contains(name)) return InvalidInput("mapping: ", name, " is missing");
  }
  return Mapping{.channel_clusters = values["channel_clusters"],
                 .columns_apart = values["columns_apart"],
                 .across = values["across"],
                 .block = values["block"],
                 .weights_by_smem = values["weights_by_smem"] != 0,
                 .image_by_smem = values["image_by_smem"] != 0,
                 .results_by_smem = values["results_by_smem"] != 0};
}

Shares SharesOf(const Layer& layer, const CardFacts& card, const Mapping& m) {
  Shares s;
  s.cluster_rows = CeilDiv(layer.rows, std::max<int64_t>(1, card.clusters / m.channel_clusters));
  s.cluster_channels = CeilDiv(layer.channels, m.channel_clusters);
  s.clusters = CeilDiv(layer.rows, s.cluster_rows) * m.channel_clusters;
  s.core_columns = CeilDiv(layer.columns, m.columns_apart);
  s.core_rows =
      CeilDiv(s.cluster_rows, std::max<int64_t>(1, card.cores / m.across / m.columns_apart));
  s.steps = CeilDiv(s.cluster_channels, m.across * m.block);
  return s;
}

int64_t WeightCopies(const Layer& layer, const CardFacts& card, const Mapping& m) {
  const int64_t lanes = RoundUp(m.block, isa::kTensorLanes);
  return 2 * OnChip(lanes * layer.filter_pitch) <= card.wmem_bytes ? 2 : 1;
}

Needs NeedsOf(const Layer& layer, const CardFacts& card, const Mapping& m) {
  const Parts p = PartsOf(layer, card, m);
  const int64_t cluster_outputs = p.shares.cluster_rows * layer.columns * p.shares.cluster_channels;
  Needs needs;
  needs.nmem = OnChip(RoundUp(p.core_image_bytes, isa::kVectorGroup * layer.element_bytes)) +
               layer.channel_vectors * OnChip(layer.channels * 4) +
               layer.temporaries(p.pixels, p.lanes, m.results_by_smem ? 2 : 1);
  if (m.results_by_smem) {
    needs.smem += OnChip(cluster_outputs * layer.result_bytes) + OnChip(cluster_outputs * p.loaded);
  } else {
    const int64_t outputs = p.pixels * RoundUp(p.shares.cluster_channels, isa::kVectorGroup);
    needs.nmem += OnChip(outputs * layer.result_bytes) + OnChip(outputs * p.loaded);
  }
  needs.wmem = WeightCopies(layer, card, m) * OnChip(p.lanes * layer.filter_pitch);
  if (m.weights_by_smem) needs.smem += 2 * OnChip(m.across * p.weights);
  if (m.image_by_smem) needs.smem += OnChip(p.cluster_image_bytes);
  return needs;
}

std::string WhyNot(const Layer& layer, const CardFacts& card, const Mapping& m) {
  if (card.cores % (m.across * m.columns_apart) != 0) {
    return StrCat("across * columns_apart = ", m.across * m.columns_apart, " is no divisor of ",
                  card.cores, " cores");
  }
  if (card.clusters % m.channel_clusters != 0) {
    return StrCat("channel_clusters = ", m.channel_clusters, " is no divisor of ", card.clusters,
                  " clusters");
  }
  const int64_t at_once = m.channel_clusters * m.across * m.block;
  if (m.block % isa::kTensorLanes != 0 || layer.channels % at_once != 0) {
    return StrCat("channel_clusters * across * block = ", at_once, " is no divisor of ",
                  layer.channels, " channels in groups of ", isa::kTensorLanes);
  }
  if (m.columns_apart > layer.columns) {
    return StrCat("columns_apart = ", m.columns_apart, " of ", layer.columns, " columns");
  }
  if (at_once == layer.channels && m.across == 1) {
    return "all channels are one block: nothing streams";
  }
  if (m.across > 1 && !m.results_by_smem) {
    return "cores that share channels have parts of pixels: results_by_smem = 1 is needed";
  }
  const Needs needs = NeedsOf(layer, card, m);
  const auto too_large = [](std::string_view memory, int64_t bytes, int64_t has) {
    return bytes <= has ? "" : StrCat(memory, ": ", bytes, " bytes of ", has);
  };
  for (std::string why : {too_large("nmem", needs.nmem, card.nmem_bytes),
                          too_large("wmem", needs.wmem, card.wmem_bytes),
                          too_large("smem", needs.smem, card.smem_bytes)}) {
    if (!why.empty()) return why;
  }
  return "";
}

std::string_view Cost::Binds() const {
  if (load >= std::max(fetch, tensor + vector)) return "load";
  return fetch > tensor + vector ? "fetch" : "compute";
}

Cost CostOf(const Layer& layer, const CardFacts& card, const Mapping& m) {
  const Parts p = PartsOf(layer, card, m);
  const auto clusters = static_cast<double>(p.shares.clusters);
  const auto cores = static_cast<double>(card.cores);
  const double share = ShareOf(card, clusters);
  const double latency = card.latency + card.dram_latency;
  const double trip = card.io_start + latency;
  // A load or store of `bytes` by each core, or by the memory core.
  const auto by_cores = [&](double bytes, double segments, double at_once) {
    return card.io_start + std::max(segments * latency / at_once + bytes / card.io_port,
                                    latency + bytes * cores / share);
  };
  const auto by_memory_core = [&](double bytes, double segments = 1, double at_once = 1) {
    return card.io_start + std::max(segments * latency / at_once,
                                    latency + bytes / std::min(card.memory_core_port, share));
  };
  // A copy between SMEM and each core.
  const double hop = card.move_start + card.smem_latency;
  const double core_rate = std::min(card.move_port, card.smem / cores);
  const auto by_move = [&](double bytes) { return hop + bytes / core_rate; };

  Cost cost;
  cost.before = kScalarCode;
  const auto weights = static_cast<double>(p.weights);
  const auto outputs = static_cast<double>(p.pixels * m.block);  // of a step of a core
  const auto cluster_outputs =
      static_cast<double>(p.shares.cluster_rows * layer.columns * p.shares.cluster_channels);
  // Of a cluster's or core's part of a tensor of the output's shape.
  const bool whole_pixels = m.channel_clusters == 1;
  const double cluster_segments =
      whole_pixels ? 1.0 : static_cast<double>(p.shares.cluster_rows * layer.columns);
  cost.tensor = card.tensor_start + static_cast<double>(p.pixels * p.lanes * layer.filter_pitch) /
                                        static_cast<double>(layer.element_bytes) /
                                        layer.macs_per_cycle;
  cost.vector = layer.vector_cycles(p.pixels, p.lanes);
  double moved = 0;  // by each core between SMEM and NMEM in a step
  if (m.results_by_smem) {
    moved = by_move(outputs * static_cast<double>(layer.result_bytes));
    if (p.loaded > 0) moved += by_move(outputs * static_cast<double>(p.loaded));
  } else {
    // A copy to where all channels of a pixel are; another one of what was loaded.
    const auto copies = static_cast<double>(layer.result_bytes + p.loaded);
    cost.vector +=
        (p.loaded > 0 ? 2 : 1) * card.vector_start + outputs * copies / card.vector_bytes;
  }
  // What is loaded once: the image, elementwise inputs, vectors of channels.
  const auto core_image = static_cast<double>(p.core_image_bytes);
  const bool whole_columns = p.shares.core_columns == layer.columns;
  const auto image_segments =
      whole_columns ? 1.0 : static_cast<double>(layer.image_rows.Of(p.shares.core_rows));
  const double core_segments = !whole_pixels   ? static_cast<double>(p.pixels)
                               : whole_columns ? 1.0
                                               : static_cast<double>(p.shares.core_rows);
  const double image = m.image_by_smem ? by_memory_core(static_cast<double>(p.cluster_image_bytes))
                                       : by_cores(core_image, image_segments, card.strided_reads);
  const double to_core = m.image_by_smem ? card.barrier + by_move(core_image) : 0;
  double operands = 0;
  for (int64_t bytes : layer.loaded) {
    const double all = cluster_outputs * static_cast<double>(bytes);
    operands += m.results_by_smem ? by_memory_core(all, cluster_segments, card.strided_reads)
                                  : by_cores(all / cores, core_segments, card.strided_reads);
  }
  const double vectors = static_cast<double>(layer.channel_vectors) * trip;
  const double padding =
      layer.is_padded ? card.vector_start + core_image / card.vector_bytes + card.drain : 0;
  const auto steps = static_cast<double>(p.shares.steps);
  const double compute = cost.tensor + cost.vector;
  // Loads and copies out of SMEM meet at its port, which takes bursts in turn: while cores copy, the memory core has
  // its burst's part of a round.
  const bool alone = WeightCopies(layer, card, m) == 1;
  if (m.weights_by_smem) {
    cost.load = by_memory_core(static_cast<double>(m.across) * weights);
    cost.fetch = by_move(weights);
    cost.wait = card.drain + card.barrier;
    const double round = card.io_burst + cores * card.move_burst;
    const double while_fetching = cost.fetch * card.smem * card.io_burst / round;
    const double rest = static_cast<double>(m.across) * weights - while_fetching;
    const double together =
        rest <= 0 ? std::max(cost.load, cost.fetch)
                  : std::max(cost.load, cost.fetch + card.io_start +
                                            rest / std::min(card.memory_core_port, share));
    // The memory core loads the image first, cores then the rest; step 0 loads, step 1 loads and fetches.
    cost.before += padding + image + operands + to_core + vectors;
    cost.before = m.image_by_smem || m.results_by_smem
                      ? cost.before + cost.load
                      : std::max(cost.before, cost.load + core_image * cores / share);
    cost.before += cost.wait;
    if (alone) {
      // Copies to WMEM wait for the sums before them.
      const double rest_of_step = cost.fetch + card.drain + compute + moved;
      cost.steps = (steps - 1) * (std::max(together, rest_of_step) + cost.wait) + rest_of_step;
    } else {
      cost.steps = (steps > 1 ? together : cost.fetch) + cost.wait;
      if (steps > 2) cost.steps += (steps - 2) * (std::max(together, compute + moved) + cost.wait);
      if (steps > 1) cost.steps += std::max(cost.fetch, compute + moved) + cost.wait;
      cost.steps += compute + moved;
    }
    cost.load = together;
  } else {
    cost.load = by_cores(weights, 1, 1);
    cost.fetch = moved;
    cost.wait = card.drain;
    cost.before += padding + image + operands + std::max(to_core, vectors + cost.load) + cost.wait;
    cost.steps = (steps - 1) * (std::max({cost.load, cost.fetch, compute}) + cost.wait) + compute +
                 cost.wait + moved;
    if (alone) {
      cost.steps = steps * (compute + moved + 3 * card.drain) + (steps - 1) * cost.load;
    }
  }
  const double results = cluster_outputs * static_cast<double>(layer.result_bytes);
  cost.after = m.results_by_smem
                   ? card.drain + card.barrier +
                         by_memory_core(results, cluster_segments, card.store_segments * cores)
                   : by_cores(results / cores, core_segments, card.store_segments);
  return cost;
}

double AtLeast(const Layer& layer, const CardFacts& card, const Mapping& m) {
  const Parts p = PartsOf(layer, card, m);
  const auto clusters = static_cast<double>(p.shares.clusters);
  const auto cores = static_cast<double>(card.cores);
  const double share = ShareOf(card, clusters);
  // The image comes before the last block of weights, and results leave behind it.
  const double image = m.image_by_smem ? static_cast<double>(p.cluster_image_bytes)
                                       : static_cast<double>(p.core_image_bytes) * cores;
  const int64_t channels = p.shares.cluster_channels;
  const auto weights = static_cast<double>(channels * layer.filter_bytes);
  const double copies = m.weights_by_smem ? 1 : cores / static_cast<double>(m.across);
  const double fetched = m.weights_by_smem ? weights / static_cast<double>(m.across) /
                                                 std::min(card.move_port, card.smem / cores)
                                           : 0;
  const auto results =
      static_cast<double>(p.shares.cluster_rows * layer.columns * channels * layer.result_bytes);
  const double sums = static_cast<double>(p.pixels * (channels / m.across)) *
                      static_cast<double>(layer.filter_pitch) /
                      static_cast<double>(layer.element_bytes) / layer.macs_per_cycle;
  return std::max({image / share + weights * copies / share, fetched, sums}) + results / share;
}

}  // namespace polynao::mapping
