#include "compiler/mapping/mapping.h"

#include <algorithm>
#include <cmath>
#include <numeric>
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

// The cut of filters into the parts of a mapping; null if there is none, as for one part.
const Layer::Part* FindPart(const Layer& layer, const Mapping& m) {
  const auto it =
      std::find_if(layer.parts.begin(), layer.parts.end(), [&](const Layer::Part& part) {
        return part.count == m.parts && (part.channels > 0) == m.image_in_parts;
      });
  return it == layer.parts.end() ? nullptr : &*it;
}

int64_t PixelBytes(const Layer& layer) { return layer.input_channels * layer.element_bytes; }

// Whether all parts begin where the tensor unit may read an image that has so many columns.
bool PartsBegin(const Layer& layer, const Layer::Part& part, int64_t image_columns) {
  const int64_t pixel = PixelBytes(layer);
  return part.row_step * image_columns * pixel % isa::kTensorUnitAlignment == 0 &&
         part.column_step * pixel % isa::kTensorUnitAlignment == 0;
}

// Columns of a core's image. Of one with margins these are wider where rows would begin elsewhere than the tensor unit
// may read: of 22 columns of 72 bytes two more.
int64_t ImageColumns(const Layer& layer, const Mapping& m, const Layer::Part* part,
                     int64_t core_columns) {
  const int64_t columns = layer.image_columns.Of(core_columns);
  const bool is_cut = part != nullptr && !m.image_in_parts && !PartsBegin(layer, *part, columns);
  if (!is_cut || !layer.is_padded || layer.image_columns.whole == 1) return columns;
  return RoundUp(
      columns, isa::kTensorUnitAlignment / std::gcd(isa::kTensorUnitAlignment, PixelBytes(layer)));
}

// Equal parts of channels are rounded up to so many, so that copies of them are of whole segments.
constexpr int64_t kEvenChannels = 8;

int64_t OnChip(int64_t bytes) { return RoundUp(bytes, kOnChipAlignment); }

}  // namespace

std::map<std::string, int64_t> Mapping::Values() const {
  return {{"across", across},
          {"block", block},
          {"channel_clusters", channel_clusters},
          {"columns_apart", columns_apart},
          {"image_by_smem", image_by_smem},
          {"image_in_parts", image_in_parts},
          {"parts", parts},
          {"pieces", pieces},
          {"results_by_smem", results_by_smem},
          {"turns", turns},
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
    const bool is_flag = parts[0].ends_with("_by_smem") || parts[0] == "image_in_parts";
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
                 .parts = values["parts"],
                 .image_in_parts = values["image_in_parts"] != 0,
                 .pieces = values["pieces"],
                 .turns = values["turns"],
                 .weights_by_smem = values["weights_by_smem"] != 0,
                 .image_by_smem = values["image_by_smem"] != 0,
                 .results_by_smem = values["results_by_smem"] != 0};
}

Shares SharesOf(const Layer& layer, const CardFacts& card, const Mapping& m) {
  Shares s;
  s.cluster_rows = CeilDiv(layer.rows, std::max<int64_t>(1, card.clusters / m.channel_clusters));
  s.cluster_channels =
      m.channel_clusters == 1
          ? layer.channels
          : RoundUp(CeilDiv(layer.channels, m.channel_clusters), isa::kTensorLanes);
  s.clusters = CeilDiv(layer.rows, s.cluster_rows) * m.channel_clusters;
  s.core_columns = CeilDiv(layer.columns, m.columns_apart);
  s.turn_rows = CeilDiv(s.cluster_rows, m.turns);
  s.core_rows = CeilDiv(s.turn_rows, std::max<int64_t>(1, card.cores / m.across / m.columns_apart));
  const auto equal_runs = [&](int64_t n) {
    int64_t runs = std::min(n, card.cores);
    while (n % runs != 0) --runs;
    return runs;
  };
  s.storing_cores = equal_runs(s.turn_rows);
  const bool are_equal = layer.rows % s.cluster_rows == 0 && s.cluster_rows % s.turn_rows == 0;
  s.equal_turns =
      are_equal && s.turn_rows % s.core_rows == 0 && layer.columns % s.core_columns == 0;
  if (const int64_t runs = equal_runs(s.turn_rows * layer.columns);
      !layer.sub_pixels && are_equal && runs > s.storing_cores) {
    s.stores_pixels = true;
    s.storing_cores = runs;
  }
  s.steps = CeilDiv(s.cluster_channels, m.across * m.block) * m.parts;
  s.core_channels = s.steps / m.parts * m.block;
  s.pixels = s.core_rows * s.core_columns;
  s.piece_pixels = CeilDiv(s.core_rows, m.pieces) * s.core_columns;
  s.lanes = RoundUp(m.block, isa::kTensorLanes);
  const int64_t pixel = PixelBytes(layer);
  const Layer::Part* part = FindPart(layer, m);
  s.image_columns = ImageColumns(layer, m, part, s.core_columns);
  s.core_image_bytes = layer.image_rows.Of(s.core_rows) * s.image_columns * pixel;
  s.core_loaded_bytes =
      layer.image_rows.LoadedOf(s.core_rows) * layer.image_columns.LoadedOf(s.core_columns) * pixel;
  s.cluster_loaded_bytes =
      layer.image_rows.LoadedOf(s.turn_rows) * layer.image_columns.LoadedOf(layer.columns) *
      std::max(layer.pixel_channels, layer.input_channels) * layer.element_bytes;
  s.weight_bytes = m.block * (part == nullptr ? layer.filter_bytes : part->bytes);
  s.pitch = part == nullptr ? layer.filter_pitch : part->pitch;
  // One place of the window for each part; between the pixels of a stride lie others.
  if (m.image_in_parts && part != nullptr) {
    const auto box = [](const Window& window, int64_t outputs) {
      return (outputs - 1) * window.step + 1;
    };
    s.part_pixel_bytes = part->channels * layer.element_bytes;
    s.part_image_bytes = box(layer.image_rows, s.core_rows) *
                         box(layer.image_columns, s.core_columns) * s.part_pixel_bytes;
  }
  for (int64_t bytes : layer.loaded) s.loaded_bytes += bytes;
  return s;
}

std::vector<int64_t> EvenBlocks(const Layer& layer, const Mapping& m) {
  if (layer.in_blocks || m.turns > 1 || m.channel_clusters > 1 || m.across == 1) return {};
  std::vector<int64_t> blocks;
  const int64_t own = CeilDiv(layer.channels, m.across);
  for (const int64_t count : {int64_t{1}, CeilDiv(own, isa::kTensorLanes)}) {
    const int64_t block = RoundUp(CeilDiv(own, count), kEvenChannels);
    // Vectors of channels are there for all blocks, each of which reads them where vector instructions may begin.
    const bool may_begin = m.across * block % isa::kVectorGroup == 0 || layer.channel_vectors == 0;
    if (count > 1 && !may_begin) continue;
    const bool is_new = blocks.empty() || blocks.back() != block;
    if (block % isa::kTensorLanes != 0 && is_new) blocks.push_back(block);
  }
  return blocks;
}

int64_t CopiesToBanks(int64_t filters) {
  return filters > isa::kTensorLanes && filters % isa::kTensorLanes != 0 ? 2 : 1;
}

int64_t WeightCopies(const CardFacts& card, const Shares& s) {
  return 2 * OnChip(s.lanes * s.pitch) <= card.wmem_bytes ? 2 : 1;
}

namespace {

Needs NeedsOf(const Layer& layer, const CardFacts& card, const Mapping& m, const Shares& s) {
  const int64_t cluster_outputs = s.turn_rows * layer.columns * s.cluster_channels;
  const int64_t image = m.image_in_parts ? s.part_image_bytes : s.core_image_bytes;
  Needs needs;
  needs.nmem =
      (m.image_in_parts ? 2 : 1) * OnChip(RoundUp(image, isa::kVectorGroup * layer.element_bytes)) +
      layer.channel_vectors * OnChip(layer.channels * 4) +
      layer.temporaries(s.piece_pixels, s.lanes,
                        m.results_by_smem || layer.in_blocks || m.pieces > 1 ? 2 : 1);
  // Sums of all rows besides; what takes their place in one piece, does not in several.
  if (m.pieces > 1) needs.nmem += OnChip(s.pixels * s.lanes * 4);
  const int64_t copies = m.turns > 1 ? 2 : 1;  // of what comes and goes by way of SMEM
  if (m.results_by_smem) {
    needs.smem += copies * (OnChip(cluster_outputs * layer.result_bytes) +
                            OnChip(cluster_outputs * s.loaded_bytes));
  } else {
    const int64_t outputs = s.pixels * RoundUp(s.cluster_channels, isa::kVectorGroup);
    needs.nmem += OnChip(outputs * s.loaded_bytes);
    if (!m.StoresBlocks(layer)) needs.nmem += OnChip(outputs * layer.result_bytes);
  }
  // Of all blocks, each bank has a filter of each; the last block is read as so many whole banks from its first filter.
  needs.wmem = m.turns > 1 ? OnChip(s.steps * s.lanes * s.pitch + (s.steps - 1) * s.pitch)
                           : WeightCopies(card, s) * OnChip(s.lanes * s.pitch);
  if (m.weights_by_smem) needs.smem += 2 * OnChip(m.across * s.weight_bytes);
  if (m.image_by_smem) needs.smem += copies * OnChip(s.cluster_loaded_bytes);
  return needs;
}

}  // namespace

Needs NeedsOf(const Layer& layer, const CardFacts& card, const Mapping& m) {
  return NeedsOf(layer, card, m, SharesOf(layer, card, m));
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
  const Shares shares = SharesOf(layer, card, m);
  const int64_t cluster_channels = shares.cluster_channels;
  // No cluster is without channels, and of the cores that share a cluster's less than half are.
  const auto is_even = [&] {
    const std::vector<int64_t> even = EvenBlocks(layer, m);
    return std::find(even.begin(), even.end(), m.block) != even.end();
  };
  if (m.block < 1 || (m.block % isa::kTensorLanes != 0 && !is_even()) ||
      (m.channel_clusters - 1) * cluster_channels >= layer.channels ||
      2 * CeilDiv(cluster_channels, m.block) <= m.across) {
    return StrCat("channel_clusters = ", m.channel_clusters, " times across = ", m.across,
                  " blocks of ", m.block, ": expected multiples of ", isa::kTensorLanes,
                  ", or equal parts, with which more than half of the cores have some of ",
                  layer.channels, " channels");
  }
  if (m.columns_apart > layer.columns) {
    return StrCat("columns_apart = ", m.columns_apart, " of ", layer.columns, " columns");
  }
  if (m.parts != 1 && FindPart(layer, m) == nullptr) {
    return StrCat("parts = ", m.parts, ": filters have no such equal parts");
  }
  if (m.parts > 1 && !m.image_in_parts &&
      !PartsBegin(layer, *FindPart(layer, m), shares.image_columns)) {
    return StrCat("parts = ", m.parts, " of filters are read between multiples of ",
                  isa::kTensorUnitAlignment, " bytes of the image");
  }
  if (m.image_in_parts && m.parts == 1) return "image_in_parts = 1: expected parts of filters";
  if (layer.has_part_of_pixels() && (m.parts == 1 || m.turns > 1)) {
    return StrCat("parts = ", m.parts, ", turns = ", m.turns,
                  ": where clusters share sums, filters come in parts, in one turn");
  }
  if (m.parts > 1 && !m.image_in_parts && m.across * m.block < cluster_channels) {
    return StrCat("parts = ", m.parts, " of filters of a part of the channels");
  }
  if (m.pieces < 1 || shares.core_rows % m.pieces != 0 ||
      (m.pieces > 1 && (m.parts == 1 || (!m.results_by_smem && !m.StoresBlocks(layer))))) {
    return StrCat("pieces = ", m.pieces, " of ", shares.core_rows,
                  " rows of a core: expected a divisor, and 1 if sums are not in parts or a core's "
                  "results are stored "
                  "together");
  }
  if (m.turns < 1 || CeilDiv(shares.cluster_rows, shares.turn_rows) != m.turns) {
    return StrCat("turns = ", m.turns, " of ", shares.cluster_rows, " rows");
  }
  if (m.turns > 1 && (m.parts > 1 || m.weights_by_smem || !m.image_by_smem || !m.results_by_smem)) {
    return StrCat("turns = ", m.turns,
                  ": expected whole filters, image and results by way of SMEM, weights not");
  }
  if (const int64_t own = RoundUp(CeilDiv(cluster_channels, m.across), isa::kTensorLanes);
      m.turns > 1 && shares.core_channels != own) {
    return StrCat("turns = ", m.turns, ": block = ", m.block, " of a core's ", own,
                  " channels, expected equal blocks");
  }
  // Of sub-pixels there are no tilings that would do without.
  if (m.parts == 1 && m.turns == 1 && m.block >= cluster_channels && m.across == 1 &&
      !layer.sub_pixels) {
    return "all channels are one block: nothing streams";
  }
  if (layer.sub_pixels && !m.results_by_smem) {
    return "channels are those of several pixels, put in order in SMEM: results_by_smem = 1 is "
           "needed";
  }
  if (layer.sub_pixels) {
    const int64_t own = m.turns > 1 ? shares.core_channels : m.across * m.block;
    std::optional<SubPixels> run = layer.sub_pixels;
    for (const int64_t size : {cluster_channels, own, m.block}) run = run ? run->Run(size) : run;
    if (!run) {
      return StrCat(
          "runs of ", cluster_channels, ", ", own, " and ", m.block,
          " channels: expected whole rows, pixels or divisors of the channels of a pixel");
    }
  }
  if (layer.in_blocks && m.results_by_smem) {
    return "results in blocks of channels are stored by cores: results_by_smem = 0 is needed";
  }
  if (m.across > 1 && !m.results_by_smem && !layer.in_blocks) {
    return "cores that share channels have parts of pixels: results_by_smem = 1 is needed";
  }
  const Needs needs = NeedsOf(layer, card, m, shares);
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

}  // namespace polynao::mapping
