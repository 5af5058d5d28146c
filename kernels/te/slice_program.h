// Convolutions of groups on the card's tensor unit, slice by slice of the image's channels.
#ifndef KERNELS_TE_SLICE_PROGRAM_H_
#define KERNELS_TE_SLICE_PROGRAM_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "base/math.h"
#include "compiler/ir/ir.h"
#include "compiler/te/card/card_schedule.h"
#include "isa/granularity.h"
#include "isa/machine.h"
#include "kernels/te/depthwise.h"
#include "kernels/te/operator.h"
#include "kernels/te/schedule_util.h"

namespace polynao::kernels {

// Groups side by side that the tensor unit convolves as one: a slice of the image's channels with filters that have
// zeros where a channel is of another group.
struct Slices {
  int64_t count = 0;        // of the image
  int64_t merged = 1;       // groups of a slice
  int64_t in = 0, out = 0;  // channels of a slice
  // Of each filter what is in WMEM at a time: rows and columns of the window, and input channels. All of it, or where
  // that is too much, parts whose sums are added up.
  int64_t part_rows = 0, part_columns = 0, part_channels = 0;

  Slices(const GroupedConv& k, int64_t groups, const isa::Machine& m)
      : count(k.groups / groups),
        merged(groups),
        in(groups * k.group_ci()),
        out(groups * k.group_co()),
        part_rows(k.kh),
        part_columns(k.kw),
        part_channels(in) {
    // Merged groups are small, and are made in two places in turn.
    const auto is_too_much = [&] { return merged == 1 && WmemBytes(k) > m.wmem_bytes(); };
    if (is_too_much()) part_rows = 1;
    if (is_too_much()) part_columns = 1;
    for (int64_t cut = 2; is_too_much() && cut <= in; ++cut) {
      if (in % cut == 0) part_channels = in / cut;
    }
  }

  int64_t parts(const GroupedConv& k) const {
    return k.kh / part_rows * (k.kw / part_columns) * (in / part_channels);
  }
  // Of a part of the filters of a slice, zeros included.
  int64_t WmemBytes(const GroupedConv& k) const {
    const int64_t elements = part_rows * part_columns * part_channels;
    return RoundUp(out, isa::kTensorLanes) *
           RoundUp(elements * ir::ByteSize(k.in), isa::kTensorUnitAlignment);
  }
};

// How the cores of a card share a grouped convolution.
struct Sharing {
  enum class Kind : uint8_t {
    kVector,  // depthwise, by the vector unit
    kTiles,   // slices, all of a tile, one after the other
    kShared,  // cores of a cluster share its slices; image and results go by way of SMEM
  };
  Kind kind = Kind::kVector;
  te::CardChoice vector = {};  // kVector: of its program
  GridTiling tiling = {};      // kShared: the rows of a cluster and of a core
  int64_t merged = 0;          // groups of a slice
  int64_t across = 1;          // kShared: cores that share the slices
  int64_t turns = 1;           // kShared: in which a cluster takes its rows
  double cycles = 0;
  ScheduleChoice choice = {};

  // kShared: slices of a core.
  int64_t OwnSlices(const Slices& t) const { return t.count / across; }
  int64_t turn_rows() const { return CeilDiv(tiling.cluster_rows, turns); }
  // Several turns: cores that store equal runs of a turn's rows.
  int64_t StoringCores(const isa::Machine& m) const {
    int64_t cores = std::min(turn_rows(), m.cores_per_cluster());
    while (turn_rows() % cores != 0) --cores;
    return cores;
  }
  // Slices of a core.
  int64_t CoreSlices(const Slices& t) const {
    return kind == Kind::kShared ? OwnSlices(t) : t.count;
  }
  // Of the filters of all slices of a core. An instruction's banks begin with its slice's filters, so behind the last
  // bank there is room for the slices in front of the last one.
  int64_t AllFilterBytes(const GroupedConv& k, const Slices& t) const {
    const int64_t own = CoreSlices(t);
    return own * t.WmemBytes(k) + (own - 1) * t.WmemBytes(k) / isa::kTensorLanes;
  }
  // Whether a core has the filters of all its slices in WMEM before the first: where WMEM holds them. Those that come
  // from GMEM as they are, for one turn, come slice by slice, while others are convolved.
  bool FiltersAhead(const GroupedConv& k, const Slices& t, const isa::Machine& m) const {
    return (t.merged > 1 || kind == Kind::kTiles || turns > 1) && t.parts(k) == 1 &&
           AllFilterBytes(k, t) <= m.wmem_bytes();
  }
  // Where half of the lanes or more are no channels. Rows of biases have to be whole groups of the vector unit.
  bool Gathers(const GroupedConv& k, const Slices& t) const {
    return kind == Kind::kShared && 2 * t.out <= isa::kTensorLanes &&
           (!k.bias || OwnSlices(t) * t.out % isa::kVectorGroup == 0);
  }
};

// The function of a plan that is not kVector.
absl::StatusOr<ir::Function> ConvolveSlices(const GroupedConv& k, const Sharing& plan,
                                            const isa::Machine& m);

}  // namespace polynao::kernels

#endif  // KERNELS_TE_SLICE_PROGRAM_H_
