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
  if (m.across < 1 || m.across > card.cores || m.columns_apart < 1 ||
      m.columns_apart > card.cores) {
    return StrCat("across = ", m.across, ", columns_apart = ", m.columns_apart, " of ", card.cores,
                  " cores");
  }
  if (card.cores % (m.across * m.columns_apart) != 0) {
    return StrCat("across * columns_apart = ", m.across * m.columns_apart, " is no divisor of ",
                  card.cores, " cores");
  }
  if (m.channel_clusters < 1 || card.clusters % m.channel_clusters != 0) {
    return StrCat("channel_clusters = ", m.channel_clusters, " is no divisor of ", card.clusters,
                  " clusters");
  }
  if (m.block < 1 || m.block > layer.channels) {
    return StrCat("block = ", m.block, " of ", layer.channels, " channels");
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

CostParts CostOf(const Layer& layer, const CardFacts& card, const Mapping& m) {
  const Parts p = PartsOf(layer, card, m);
  const auto clusters = static_cast<double>(p.shares.clusters);
  const auto cores = static_cast<double>(card.cores);
  const double share = ShareOf(card, clusters);
  const std::string_view share_is = share < card.link ? kGmem : kLink;
  const double latency = card.latency + card.dram_latency;
  // A load or store: what it waits for, then bytes, by what carries them.
  struct Transfer {
    double waits = 0, bytes = 0;
    std::string_view by;
    double cycles() const { return waits + bytes; }
  };
  const auto longer = [](const Transfer& a, const Transfer& b) {
    return a.cycles() > b.cycles() ? a : b;
  };
  // Of `bytes` by each core, or by the memory core.
  const auto by_cores = [&](double bytes, double segments, double at_once) {
    return longer({card.io_start + segments * latency / at_once, bytes / card.io_port, kIoDma},
                  {card.io_start + latency, bytes * cores / share, share_is});
  };
  const double port = std::min(card.memory_core_port, share);
  const std::string_view port_is = port < share ? kMemoryCore : share_is;
  const auto by_memory_core = [&](double bytes, double segments = 1, double at_once = 1) {
    return longer({card.io_start + segments * latency / at_once, 0, kGmem},
                  {card.io_start + latency, bytes / port, port_is});
  };
  // A copy between SMEM and each core.
  const double core_rate = std::min(card.move_port, card.smem / cores);
  const auto by_move = [&](double bytes) {
    return Transfer{card.move_start + card.smem_latency, bytes / core_rate, kMoveDma};
  };

  CostParts cost;
  const auto add = [&cost](std::string_view what, const Transfer& t) {
    cost.Add(what, kWaits, t.waits);
    cost.Add(what, t.by, t.bytes);
  };
  const auto weights = static_cast<double>(p.weights);
  const auto outputs = static_cast<double>(p.pixels * m.block);  // of a step of a core
  const auto cluster_outputs =
      static_cast<double>(p.shares.cluster_rows * layer.columns * p.shares.cluster_channels);
  // Of a cluster's or core's part of a tensor of the output's shape.
  const bool whole_pixels = m.channel_clusters == 1;
  const double cluster_segments =
      whole_pixels ? 1.0 : static_cast<double>(p.shares.cluster_rows * layer.columns);
  const bool whole_columns = p.shares.core_columns == layer.columns;
  const double core_segments = !whole_pixels   ? static_cast<double>(p.pixels)
                               : whole_columns ? 1.0
                                               : static_cast<double>(p.shares.core_rows);
  // Sums and elementwise work of a step, and copies of what it loaded and of its results.
  const auto add_compute = [&] {
    cost.Add("sums", kTensorUnit,
             card.tensor_start + static_cast<double>(p.pixels * p.lanes * layer.filter_pitch) /
                                     static_cast<double>(layer.element_bytes) /
                                     layer.macs_per_cycle);
    cost.Add("elementwise", kVectorUnit, layer.vector_cycles(p.pixels, p.lanes));
    if (m.results_by_smem) return;
    // A copy to where all channels of a pixel are; another one of what was loaded.
    const auto copies = static_cast<double>(layer.result_bytes + p.loaded);
    cost.Add("copies", kVectorUnit,
             (p.loaded > 0 ? 2 : 1) * card.vector_start + outputs * copies / card.vector_bytes);
  };
  // Between SMEM and NMEM.
  const auto add_moved = [&] {
    if (!m.results_by_smem) return;
    add("results", by_move(outputs * static_cast<double>(layer.result_bytes)));
    if (p.loaded > 0) add("operands", by_move(outputs * static_cast<double>(p.loaded)));
  };
  const auto core_image = static_cast<double>(p.core_image_bytes);
  // What is loaded once: the image, elementwise inputs.
  const auto add_image = [&] {
    if (layer.is_padded) {
      cost.Add("padding", kVectorUnit, card.vector_start + core_image / card.vector_bytes);
      cost.Add("padding", kWaits, card.drain);
    }
    const auto segments =
        whole_columns ? 1.0 : static_cast<double>(layer.image_rows.Of(p.shares.core_rows));
    add("image", m.image_by_smem ? by_memory_core(static_cast<double>(p.cluster_image_bytes))
                                 : by_cores(core_image, segments, card.strided_reads));
    for (int64_t bytes : layer.loaded) {
      const double all = cluster_outputs * static_cast<double>(bytes);
      add("operands", m.results_by_smem ? by_memory_core(all, cluster_segments, card.strided_reads)
                                        : by_cores(all / cores, core_segments, card.strided_reads));
    }
  };
  const auto add_to_core = [&] {
    if (!m.image_by_smem) return;
    cost.Add("image", kWaits, card.barrier);
    add("image", by_move(core_image));
  };
  const auto add_vectors = [&] {
    cost.Add("vectors of channels", kWaits,
             static_cast<double>(layer.channel_vectors) * (card.io_start + latency));
  };
  const auto add_waits = [&](double times, double cycles) {
    cost.Phase("waits", times), cost.Lane(), cost.Add("queues and barriers", kWaits, cycles);
  };
  const auto steps = static_cast<double>(p.shares.steps);
  const bool alone = WeightCopies(layer, card, m) == 1;
  cost.Phase("before", 1), cost.Lane();
  cost.Add("program", kScalarUnit, kScalarCode);
  if (m.weights_by_smem) {
    const Transfer load = by_memory_core(static_cast<double>(m.across) * weights);
    const Transfer fetch = by_move(weights);
    // Loads and copies out of SMEM meet at its port, which takes bursts in turn: while cores copy, the memory core has
    // its burst's part of a round.
    const double round = card.io_burst + cores * card.move_burst;
    const double while_fetching = fetch.cycles() * card.smem * card.io_burst / round;
    const double rest = static_cast<double>(m.across) * weights - while_fetching;
    const auto add_loads = [&] {
      cost.Lane(), add("weights", load);
      cost.Lane(), add("weights to WMEM", fetch);
      if (rest > 0) add("weights", {card.io_start, rest / port, port_is});
    };
    // The memory core loads the image first, cores then the rest; step 0 loads, step 1 loads and fetches.
    add_image(), add_to_core(), add_vectors();
    const bool is_behind = m.image_by_smem || m.results_by_smem;
    if (!is_behind) cost.Lane();
    add("weights", load);
    if (!is_behind) cost.Add("image", share_is, core_image * cores / share);
    const double wait = card.drain + card.barrier;
    if (alone) {
      // Copies to WMEM wait for the sums before them.
      const auto add_rest = [&] {
        cost.Lane(), add("weights to WMEM", fetch);
        cost.Add("queues and barriers", kWaits, card.drain);
        add_compute(), add_moved();
      };
      add_waits(steps, wait);
      cost.Phase("steps", steps - 1), add_loads(), add_rest();
      cost.Phase("last step", 1), add_rest();
    } else {
      add_waits(steps + 1, wait);
      cost.Phase("second load", 1);
      if (steps > 1) {
        add_loads();
      } else {
        cost.Lane(), add("weights to WMEM", fetch);
      }
      const auto add_step = [&] { cost.Lane(), add_compute(), add_moved(); };
      if (steps > 2) cost.Phase("steps", steps - 2), add_loads(), add_step();
      if (steps > 1) {
        cost.Phase("last step but one", 1);
        cost.Lane(), add("weights to WMEM", fetch);
        add_step();
      }
      cost.Phase("last step", 1), add_step();
    }
  } else {
    const Transfer load = by_cores(weights, 1, 1);
    add_image();
    cost.Phase("first weights", 1);
    cost.Lane(), add_to_core();
    cost.Lane(), add_vectors(), add("weights", load);
    if (alone) {
      add_waits(1, card.drain);
      cost.Phase("steps", steps), cost.Lane(), add_compute(), add_moved();
      cost.Add("queues and barriers", kWaits, 3 * card.drain);
      cost.Phase("loads between", steps - 1), cost.Lane(), add("weights", load);
    } else {
      add_waits(steps + 1, card.drain);
      cost.Phase("steps", steps - 1);
      cost.Lane(), add("weights", load);
      cost.Lane(), add_moved();
      cost.Lane(), add_compute();
      cost.Phase("last step", 1), cost.Lane(), add_compute(), add_moved();
    }
  }
  cost.Phase("after", 1), cost.Lane();
  const double results = cluster_outputs * static_cast<double>(layer.result_bytes);
  if (m.results_by_smem) {
    cost.Add("queues and barriers", kWaits, card.drain + card.barrier);
    add("results", by_memory_core(results, cluster_segments, card.store_segments * cores));
  } else {
    add("results", by_cores(results / cores, core_segments, card.store_segments));
  }
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
