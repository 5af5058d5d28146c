// How the cores of a card compute a layer whose weights stream: a decision, its text, what it needs and costs.
#ifndef COMPILER_MAPPING_MAPPING_H_
#define COMPILER_MAPPING_MAPPING_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/mapping/card_facts.h"
#include "compiler/mapping/estimate.h"
#include "compiler/mapping/layer.h"

namespace polynao::mapping {

// Clusters take runs of rows; `channel_clusters` of them share a run and have a part of the channels each. In a
// cluster, `columns_apart` cores stand side by side, `across` cores share the channels of a block of `across * block`,
// and the others share rows. A core's image stays in NMEM. Blocks of channels come one after the other: while a core
// computes with the weights of one, those of the next come.
struct Mapping {
  int64_t channel_clusters = 1;
  int64_t columns_apart = 1;
  int64_t across = 1;
  int64_t block = 64;  // channels for which a core has weights at a time
  // Of each filter: parts that come one after the other, while the sums of the part before are added up. If there are
  // several, all channels of a core are one block, unless the image comes in parts, too.
  int64_t parts = 1;
  // Of the image what a part of the filters is multiplied by comes with that part: for filters or images of which a
  // core has no room for all.
  bool image_in_parts = false;
  // Equal runs of a core's rows in which whole sums are worked on and leave, one after the other. Several only of sums
  // that are added up part by part, for all rows together.
  int64_t pieces = 1;
  // Runs of a cluster's rows that come one after the other while the weights of all its channels stay: the memory core
  // brings the image of the next run and stores the results of the one before. Of several, filters are whole, image and
  // results go by way of SMEM, weights do not, and a core's channels stand side by side: all its blocks.
  int64_t turns = 1;
  // Weights, image and results go by way of SMEM, which the memory core fills and empties. Weights otherwise come to
  // each core by itself; results otherwise stay in NMEM whole, until all channels of a pixel are there.
  bool weights_by_smem = false, image_by_smem = false, results_by_smem = false;

  // Whether a core stores the results of each block by themselves: they lie so in GMEM, or its image is not there for
  // all blocks either.
  bool StoresBlocks(const Layer& layer) const {
    return (image_in_parts || layer.in_blocks) && !results_by_smem;
  }

  bool operator==(const Mapping&) const = default;

  // "across=4 block=64 channel_clusters=1 columns_apart=1 image_by_smem=1 image_in_parts=0 parts=1 pieces=1
  // results_by_smem=1 turns=1 weights_by_smem=0": all names in the order of the alphabet.
  std::string Text() const;
  std::map<std::string, int64_t> Values() const;
};

// Reads Text back, its words in any order. Errors name the word: what is no NAME=NUMBER, a name that there is not, that
// is there twice or missing, a number below 1 or, for a flag, above 1.
absl::StatusOr<Mapping> ParseMapping(std::string_view text);

// What a cluster and a core have of rows, columns and channels, and of bytes.
struct Shares {
  int64_t cluster_rows = 0, cluster_channels = 0, core_columns = 0;
  int64_t turn_rows = 0, core_rows = 0;  // in a turn: of a cluster, of a core
  // Of turns: whether all are alike, for all cores; cores that store the results of one, equal runs of rows or pixels.
  bool equal_turns = false;
  int64_t storing_cores = 1;
  bool stores_pixels = false;
  int64_t clusters = 0;           // that have rows
  int64_t image_columns = 0;      // of a core's image, margins and what makes rows longer included
  int64_t steps = 0;              // blocks of channels times parts of filters
  int64_t pixels = 0, lanes = 0;  // of a step of a core
  int64_t piece_pixels = 0;       // that are worked on at a time when sums are whole
  // Of a turn, with margins of zeros, and without.
  int64_t core_image_bytes = 0, cluster_loaded_bytes = 0, core_loaded_bytes = 0;
  int64_t part_image_bytes = 0;  // of a step, if the image comes in parts
  int64_t part_pixel_bytes = 0;  // and of a pixel of it
  int64_t weight_bytes = 0;      // of a step of a core
  int64_t core_channels = 0;     // whole blocks of them
  int64_t pitch = 0;             // of a filter, or of its part, in WMEM
  int64_t loaded_bytes = 0;      // of elementwise inputs, for one element
};
Shares SharesOf(const Layer& layer, const CardFacts& card, const Mapping& m);

// Blocks other than multiples of the tensor unit's 64 lanes: cores that share channels have as many each, all at once
// or in as many blocks as of 64. Lanes are idle, but no core waits for one that loads more: of 80 channels that two
// cores share 40 and 40 come sooner than 64 and 16. For results in whole pixels of all channels, in one turn.
std::vector<int64_t> EvenBlocks(const Layer& layer, const Mapping& m);

// Copies that bring so many filters without gaps to the tensor unit's banks: whole groups of lanes, and a rest.
int64_t CopiesToBanks(int64_t filters);

// How many blocks of weights a core has room for: those of the next one come while it computes, or where they do not
// fit WMEM beside each other after that.
int64_t WeightCopies(const CardFacts& card, const Shares& shares);

Needs NeedsOf(const Layer& layer, const CardFacts& card, const Mapping& m);

// The reason why the mapping is none (its numbers do not divide clusters and cores, half of the cores have no
// channels), or why it does not fit; "" if it does.
std::string WhyNot(const Layer& layer, const CardFacts& card, const Mapping& m);

// Where the cycles go: what the first block needs, steps, each as long as its slowest part, and results that are stored
// at the end.
CostParts CostOf(const Layer& layer, const CardFacts& card, const Mapping& m);

// No mapping that differs from `m` in its block and pieces alone takes less: bytes that cross GMEM and SMEM, and sums
// of the busiest core.
double AtLeast(const Layer& layer, const CardFacts& card, const Mapping& m);

}  // namespace polynao::mapping

#endif  // COMPILER_MAPPING_MAPPING_H_
