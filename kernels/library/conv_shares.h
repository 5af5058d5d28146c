// How the cores of a card share a convolution, for the hand-written kernels: which ways there are, and what
// each of them costs, as far as one can tell without running it.
#ifndef KERNELS_LIBRARY_CONV_SHARES_H_
#define KERNELS_LIBRARY_CONV_SHARES_H_

#include <compare>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "isa/machine.h"
#include "kernels/library/conv2d.h"

namespace polynao::kernels {

// The clusters form a grid over the rows, columns and channels of the output; clusters beyond it have nothing to do.
// The cores of a cluster form a grid over the cluster's part of it.
struct ConvShares {
  int64_t cluster_rows = 1, cluster_columns = 1, cluster_channels = 1;
  int64_t core_rows = 1, core_columns = 1, core_channels = 1;
  // Filters go from GMEM to SMEM once per cluster; only where all cores of a cluster need the same ones. Else
  // each core loads its own.
  bool by_smem = false;

  int64_t clusters() const { return cluster_rows * cluster_columns * cluster_channels; }
  int64_t grid_rows() const { return cluster_rows * core_rows; }
  int64_t grid_columns() const { return cluster_columns * core_columns; }
  int64_t grid_channels() const { return cluster_channels * core_channels; }
  auto operator<=>(const ConvShares&) const = default;
};

// Rows, columns and channels of the largest share.
int64_t ShareRows(const ConvCase& k, const ConvShares& s);
int64_t ShareColumns(const ConvCase& k, const ConvShares& s);
// A multiple of the channels that fill a granule of GMEM (unless one share has all): no two cores store
// into the same granule.
int64_t ShareChannels(const ConvCase& k, const ConvShares& s, const isa::Machine& machine);

// Cycles that the layer takes with these shares, if a tile has `tile_rows` rows of a share: the filters and the
// image of the first tile come; then the slowest of compute queue, the core's IO-DMA and GMEM sets the pace;
// then the last tile's result leaves. What several cores read comes from GMEM once if the card has a cache.
// Copies of several segments have few of these in flight, so results that are no runs in GMEM are slow to store.
double EstimateCycles(const ConvCase& k, const ConvShares& s, const isa::Machine& machine,
                      int64_t tile_rows);

// The hand-written kernels with these shares; the expert's in the first of its styles. Errors: ResourceExhausted
// if no tile fits NMEM beside filters that fit WMEM (and SMEM).
absl::StatusOr<HandWrittenKernel> LibraryConv2d(const ConvCase& k, const Target& target,
                                                const ConvShares& shares);
absl::StatusOr<HandWrittenKernel> ExpertConv2d(const ConvCase& k, const Target& target,
                                               const ConvShares& shares);

// All ways to share: the extents of each grid are divisors of the number of clusters, of half as many and so on, or of
// a cluster's cores. The one that takes fewest cycles by the estimate comes first.
std::vector<ConvShares> AllShares(const ConvCase& k, const isa::Machine& machine,
                                  int64_t tile_rows);

}  // namespace polynao::kernels

#endif  // KERNELS_LIBRARY_CONV_SHARES_H_
