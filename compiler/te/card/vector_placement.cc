// What each node of a vector group needs under a tiling, where it is, and what that costs.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/math.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/mapping/card_facts.h"
#include "compiler/target/target.h"
#include "compiler/te/card/tile_cost.h"
#include "compiler/te/card/vector_group.h"
#include "isa/granularity.h"

namespace polynao::te {

using arith::ConstRange;
using Kind = VectorNode::Kind;
using Operand = VectorNode::Operand;

// Decides for each node what it needs, where it is, and what it costs.
class VectorGroup::Placer {
 public:
  Placer(const VectorGroup& group, const Tiling& tiling)
      : group_(group), t_(tiling), list_(group.nodes_.list) {}

  Layout Run() {
    layout_.nodes.resize(list_.size());
    needed_of_tile_ = Needed(t_.tile);
    Shape once = t_.core;
    for (size_t d = 0; d < once.size(); ++d) {
      if (group_.IsOuter(d)) once[d] = t_.tile[d];
    }
    needed_of_core_ = Needed(once);
    if (t_.smem) needed_of_cluster_ = Needed(ClusterExtents());
    FindSharing();
    for (size_t i = list_.size(); i-- > 0;) Box(i);
    for (size_t i = 0; i < list_.size(); ++i) PlaceCopy(i);
    for (size_t i = 0; i < list_.size(); ++i) PlaceInput(i);
    for (size_t i = 0; i < list_.size(); ++i) {
      switch (list_[i].kind) {
        case Kind::kInput:
          CountInput(i);
          break;
        case Kind::kCopy:
          CountCopy(i);
          break;
        case Kind::kLane:
          CountLane(i);
          break;
        case Kind::kReduce:
          CountReduce(i);
          break;
        case Kind::kProduct:
          CountProduct(i);
          break;
      }
    }
    CountResult();
    return std::move(layout_);
  }

 private:
  Placed& at(size_t i) { return layout_.nodes[i]; }
  const mapping::CardFacts& card() const { return group_.card_; }

  // What a cluster has of the output.
  Shape ClusterExtents() const {
    Shape extents = t_.core;
    const Shape& whole = group_.output_.shape();
    if (t_.across > 1) extents[t_.apart] = whole[t_.apart];
    extents[t_.split] = std::min(extents[t_.split] * group_.RunsOfCluster(t_), whole[t_.split]);
    return extents;
  }

  // Whether all cores of a cluster read the same weights: they share none of the dimensions that these follow.
  void FindSharing() {
    const int64_t cores = card().cores;
    const bool splits =
        cores / t_.across > 1 && t_.core[t_.split] < group_.output_.shape()[t_.split];
    shares_weights_ = group_.has_products_ && cores > 1 && !(splits && group_.IsOuter(t_.split)) &&
                      !(t_.across > 1 && group_.IsOuter(t_.apart));
  }

  // Whether the node is the weights of a product, and nothing else.
  bool IsWeights(size_t i) const {
    if (!group_.has_products_ || i == group_.nodes_.result.node) return false;
    const std::vector<size_t>& readers = group_.readers_[i];
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](size_t reader) {
      const VectorNode& node = list_[reader];
      return node.kind == Kind::kProduct && node.operands[0].node != i;
    });
  }

  // Of each node the elements along each of its dimensions, the reduced ones whole.
  using Ranges = std::vector<std::vector<ConstRange>>;

  ConstRange RangeOfIndex(size_t i, size_t d, const std::vector<ConstRange>& axes) const {
    const VectorNode& node = list_[i];
    const Index& index = group_.indices_[i][d];
    if (index.is_linear) {
      ConstRange range = ConstRange::Point(index.constant);
      for (size_t a = 0; a < node.axes.size(); ++a) {
        if (index.coefficients[a] != 0) {
          range = range + axes[a] * ConstRange::Point(index.coefficients[a]);
        }
      }
      return range;
    }
    arith::VarRanges ranges;
    for (size_t a = 0; a < node.axes.size(); ++a) ranges[node.axes[a]] = axes[a];
    return arith::RangeOf(node.load.operands()[d], ranges);
  }

  // From the result back: which elements of each node the first `extents` elements of the output need.
  Ranges Needed(const Shape& extents) const {
    Ranges needed(list_.size());
    for (size_t i = 0; i < list_.size(); ++i) {
      needed[i].assign(list_[i].shape.size(), ConstRange::Nothing());
    }
    const auto need = [&needed](size_t node, size_t d, ConstRange range) {
      needed[node][d] = arith::Union(needed[node][d], range);
    };
    const Operand& result = group_.nodes_.result;
    for (size_t d = 0; d < result.dimensions.size(); ++d) {
      need(result.node, d, {0, extents[result.dimensions[d]] - 1});
    }
    for (size_t i = list_.size(); i-- > 0;) {
      const VectorNode& node = list_[i];
      std::vector<ConstRange> domain = needed[i];
      for (size_t r = 0; r < node.reduced.size(); ++r) {
        const bool is_parted = t_.part > 0 && r == 0;
        domain.push_back({0, (is_parted ? t_.part : node.reduced[r]) - 1});
      }
      if (node.kind == Kind::kCopy) {
        for (size_t d = 0; d < node.load.operands().size(); ++d) {
          need(node.operands[0].node, d, RangeOfIndex(i, d, domain));
        }
        continue;
      }
      for (const Operand& operand : node.operands) {
        for (size_t d = 0; d < operand.dimensions.size(); ++d) {
          const int in = operand.dimensions[d];
          need(operand.node, d, in < 0 ? ConstRange::Point(0) : domain[in]);
        }
      }
    }
    return needed;
  }

  static int64_t Size(ConstRange range, int64_t whole) {
    if (range.IsEmpty()) return 1;
    return range.IsBounded() ? std::min(range.max - range.min + 1, whole) : whole;
  }

  void Box(size_t i) {
    const VectorNode& node = list_[i];
    Placed& placed = at(i);
    placed.in_loop = node.reduction >= 0 && !t_.along && !t_.first;
    bool has_tiles = false;
    placed.is_same = !placed.in_loop;
    for (size_t d = 0; d < t_.tile.size(); ++d) {
      const bool moves = t_.tile[d] < t_.core[d] && !group_.IsOuter(d);
      has_tiles = has_tiles || moves;
      if (moves && (group_.follows_[i] >> d & 1) != 0) placed.is_same = false;
    }
    if (!has_tiles) placed.is_same = false;
    // What is computed before the tiles needs its operands there.
    for (size_t reader : group_.readers_[i]) {
      const bool in_loop = at(reader).in_loop;
      const bool is_weights =
          list_[reader].kind == Kind::kProduct && list_[reader].operands[1].node == i;
      const bool is_before = is_weights || at(in_loop ? list_[reader].reduction : reader).is_same;
      if (!placed.in_loop && is_before) placed.is_same = true;
    }
    const Ranges& needed = placed.is_same ? needed_of_core_ : needed_of_tile_;
    for (size_t d = 0; d < node.shape.size(); ++d) {
      const bool is_one = placed.in_loop && node.is_reduced[d];
      placed.box.push_back(is_one ? 1 : Size(needed[i][d], node.shape[d]));
    }
  }

  // The axes of a copy that an index has, the first and the last of them; -1: none, the index is one element, or what
  // the loops of a reduction give.
  struct AxisRun {
    int first = -1, last = -1;

    // How many elements these axes are of a copy's `extents`.
    int64_t Extent(const Shape& extents) const {
      int64_t count = 1;
      for (int d = first; d >= 0 && d <= last; ++d) count *= extents[d];
      return count;
    }
  };

  // The axes of an index of copy i, if its elements follow one another as the axes run: one axis, or several of which
  // each goes on where the next one ends (4q + h, h < 4). Nothing otherwise.
  std::optional<AxisRun> RunOfIndex(size_t i, const Index& index) const {
    AxisRun run;
    const Shape& box = layout_.nodes[i].box;
    int64_t next = 1;
    for (size_t d = list_[i].axes.size(); d-- > 0;) {
      // One place along an axis, or each in turn in the loops of a reduction.
      if (box[d] == 1 || !index.uses[d]) continue;
      if (index.bends[d] || index.coefficients[d] != next) return std::nullopt;
      next *= box[d];
      run.first = static_cast<int>(d);
      if (run.last < 0) run.last = run.first;
    }
    return run;
  }

  // Whether a copy keeps the order of elements: its axes come in their order in the operand's indices, which are
  // `runs` of them.
  bool KeepsOrder(size_t i, std::vector<AxisRun>& runs) const {
    const VectorNode& node = list_[i];
    const Shape& box = layout_.nodes[i].box;
    int last = -1;
    std::vector<bool> is_read(box.size());
    for (const Index& index : group_.indices_[i]) {
      const std::optional<AxisRun> run = RunOfIndex(i, index);
      if (!run) return false;
      runs.push_back(*run);
      if (run->first < 0) continue;
      if (run->first <= last) return false;
      last = run->last;
      for (size_t d = 0; d < node.axes.size(); ++d) is_read[d] = is_read[d] || index.uses[d];
    }
    // Axes that no index has would be repeated.
    for (size_t d = 0; d < box.size(); ++d) {
      if (!is_read[d] && box[d] > 1) return false;
    }
    return true;
  }

  // The stretches of memory in which elements of a box stand of which `part` are read; none if they do not begin where
  // vector instructions may.
  std::optional<Runs> RunsOf(const Shape& box, const Shape& part, Type type) const {
    size_t d = box.size();
    int64_t inner = 1;
    while (d > 0 && box[d - 1] == part[d - 1]) inner *= box[--d];
    const Runs runs = SegmentsOf(box, part);
    const bool is_aligned = (inner % isa::kVectorGroup == 0 || runs.count == 1) &&
                            inner * ir::ByteSize(type) % kOnChipAlignment == 0;
    return d == 0 || is_aligned ? std::optional(runs) : std::nullopt;
  }
  // The same for copies, which begin anywhere.
  static Runs SegmentsOf(const Shape& box, const Shape& part) {
    Runs runs;
    size_t d = box.size();
    while (d > 0 && box[d - 1] == part[d - 1]) runs.length *= box[--d];
    if (d == 0) return runs;
    runs.length *= part[d - 1];
    for (size_t k = 0; k + 1 < d; ++k) runs.count *= part[k];
    return runs;
  }

  // What a copy reads for the extents `box` of its own, as extents along its operand's dimensions.
  static Shape ReadBox(const std::vector<AxisRun>& axes, const Shape& box) {
    Shape part;
    for (const AxisRun& run : axes) part.push_back(run.Extent(box));
    return part;
  }

  void PlaceCopy(size_t i) {
    const VectorNode& node = list_[i];
    if (node.kind != Kind::kCopy) return;
    Placed& placed = at(i);
    const size_t from = node.operands[0].node;
    const bool is_input = list_[from].kind == Kind::kInput;
    if (shares_weights_ && IsWeights(i) && is_input && group_.readers_[from].size() == 1) {
      placed.by_smem = placed.by_parts = at(from).by_parts = true;
      return;
    }
    std::vector<AxisRun> axes;
    if (!KeepsOrder(i, axes)) return;
    if (is_input && group_.readers_[from].size() == 1 && !placed.in_loop) {
      placed.is_direct = true;
      return;
    }
    if (node.pads()) return;
    const std::optional<Runs> runs = RunsOf(at(from).box, ReadBox(axes, at(i).box), node.type);
    if (!runs) return;
    placed.is_inlined = true;
    for (size_t reader : group_.readers_[i]) {
      const Kind kind = list_[reader].kind;
      if (kind == Kind::kCopy || kind == Kind::kProduct ||
          (kind == Kind::kReduce && t_.along && runs->count > 1)) {
        placed.is_inlined = false;
      }
    }
    if (i == group_.nodes_.result.node) placed.is_inlined = false;
  }

  void PlaceInput(size_t i) {
    if (list_[i].kind != Kind::kInput) return;
    at(i).is_loaded = i == group_.nodes_.result.node;
    if (IsWeights(i)) {
      at(i).by_smem = shares_weights_;  // They go to WMEM alone.
      return;
    }
    for (size_t reader : group_.readers_[i]) {
      if (!at(reader).is_direct) at(i).is_loaded = true;
    }
  }

  // The operand's own extents of what a reader reads whose domain has these.
  static Shape OwnExtents(const Operand& operand, const Shape& domain) {
    Shape own;
    for (int d : operand.dimensions) own.push_back(d < 0 ? 1 : domain[d]);
    return own;
  }
  // The box that holds this, and the extents of what is read there.
  std::pair<Shape, Shape> Source(const Operand& operand, const Shape& domain) const {
    const Placed& placed = layout_.nodes[operand.node];
    const Shape own = OwnExtents(operand, domain);
    if (!placed.is_inlined) return {placed.box, own};
    std::vector<AxisRun> axes;
    KeepsOrder(operand.node, axes);
    return {layout_.nodes[list_[operand.node].operands[0].node].box, ReadBox(axes, own)};
  }

  // Whether the last tile leaves gaps between rows of the node's box, over which no instruction runs.
  bool HasGaps(size_t i) const {
    const int64_t whole = group_.output_.shape()[t_.split];
    if (whole % t_.tile[t_.split] == 0) return false;
    int64_t rows = 1;
    for (size_t d = 0; d < list_[i].shape.size(); ++d) {
      if ((group_.dimension_follows_[i][d] >> t_.split & 1) != 0 && rows > 1) return true;
      rows *= layout_.nodes[i].box[d];
    }
    return false;
  }

  // Whether the last tile, which is shorter, reads backwards: then it would begin before what is there.
  bool ReadsBackwards(size_t i) const {
    if (group_.output_.shape()[t_.split] % t_.tile[t_.split] == 0) return false;
    const VectorNode& node = list_[i];
    for (const Index& index : group_.indices_[i]) {
      for (size_t d = 0; d < node.axes.size(); ++d) {
        const bool follows = (group_.dimension_follows_[i][d] >> t_.split & 1) != 0;
        if (follows && index.coefficients[d] < 0) return true;
      }
    }
    return false;
  }

  // How often a node is computed in a tile.
  double Times(size_t i) const {
    if (!layout_.nodes[i].in_loop) return 1;
    return Times(list_[list_[i].reduction]);
  }
  double Times(const VectorNode& reduction) const {
    int64_t times = 1;
    for (size_t r = 0; r < reduction.reduced.size(); ++r) {
      times *= t_.part > 0 && r == 0 ? t_.part : reduction.reduced[r];
    }
    return static_cast<double>(times);
  }
  void Count(size_t i, double cycles) { (at(i).is_same ? once_ : needs_.compute_cycles) += cycles; }
  // Of the cluster's cores for those of one.
  int64_t Sharers(size_t i) const { return layout_.nodes[i].by_parts ? card().cores : 1; }
  // Results of products have whole groups of lanes, and so has what is computed from them.
  int64_t Room(const Shape& box) const {
    if (!group_.has_products_ || box.empty()) return ElementCount(box);
    return ElementCount(box) / std::max<int64_t>(1, box.back()) *
           RoundUp(box.back(), isa::kTensorLanes);
  }
  void Store(size_t i, bool is_moved) {
    const int64_t bytes = OnChipBytes(CeilDiv(Room(at(i).box), Sharers(i)), list_[i].type);
    layout_.needs.nmem += bytes * (is_moved && !at(i).is_same && !HasOneTile(t_) ? 2 : 1);
  }
  // Of node i, an input or a copy from one: `part` of `whole`.
  void Load(size_t i, const Shape& whole, const Shape& part) {
    const int64_t bytes = ElementCount(part) * ir::ByteSize(list_[i].type);
    if (t_.smem) return LoadBySmem(i, bytes, SegmentsOf(whole, part).count);
    if (at(i).is_same) {
      once_load_ +=
          card().gmem_latency +
          static_cast<double>(bytes * card().clusters * card().cores / Sharers(i)) / card().gmem;
      return;
    }
    needs_.moved_bytes += bytes;
    needs_.load_segments = std::max(needs_.load_segments, SegmentsOf(whole, part).count);
  }

  // The memory core brings what the cluster needs of the input, each core takes its part of that.
  void LoadBySmem(size_t i, int64_t bytes, int64_t segments) {
    const size_t from = list_[i].kind == Kind::kInput ? i : list_[i].operands[0].node;
    Shape box;
    for (size_t d = 0; d < list_[from].shape.size(); ++d) {
      box.push_back(Size(needed_of_cluster_[from][d], list_[from].shape[d]));
    }
    cluster_loads_.push_back({ElementCount(box) * ir::ByteSize(list_[from].type),
                              SegmentsOf(list_[from].shape, box).count,
                              (group_.follows_[from] >> t_.split & 1) != 0});
    const double copy = MoveCycles(bytes, segments);
    (at(i).is_same ? once_copies_ : copies_) += copy;
  }
  // Between a core's NMEM and SMEM, at the same time as the other cores.
  double MoveCycles(int64_t bytes, int64_t segments) const {
    const double moved =
        static_cast<double>(bytes) *
        std::max(1 / card().move_port, static_cast<double>(card().cores) / card().smem);
    const double waits =
        static_cast<double>(segments) * card().smem_latency / card().move_outstanding;
    return card().move_start + card().smem_latency + std::max(moved, waits);
  }

  void CountInput(size_t i) {
    if (!at(i).is_loaded) return;
    Store(i, true);
    Load(i, list_[i].shape, at(i).box);
  }

  void CountCopy(size_t i) {
    const VectorNode& node = list_[i];
    if (ReadsBackwards(i)) layout_.needs.nmem = kTooMuch;
    if (at(i).is_inlined) return;
    Store(i, at(i).is_direct);
    const Shape& box = at(i).box;
    double cycles =
        node.pads() ? VectorCycles(card(), ElementCount(box) * ir::ByteSize(node.type)) : 0;
    std::vector<AxisRun> axes;
    const bool keeps = KeepsOrder(i, axes);
    if (at(i).is_direct) {
      // Margins stand between the rows of a padded copy.
      const size_t from = node.operands[0].node;
      Shape part = ReadBox(axes, at(i).box);
      for (size_t d = 0; d < part.size(); ++d) part[d] = std::min(part[d], list_[from].shape[d]);
      Load(i, list_[from].shape, part);
      if (node.pads()) {
        needs_.load_segments = std::max(needs_.load_segments, SegmentsOf(box, part).count);
      }
    } else if (keeps) {
      const Runs runs = SegmentsOf(at(node.operands[0].node).box, ReadBox(axes, at(i).box));
      cycles += group_.instructions_->CopyCycles(node.type, runs.count, runs.length);
    } else {
      // Along the last axis, if it is the operand's last index, elements stand side by side.
      int64_t length = 1;
      for (size_t d = box.size(); d-- > 0;) {
        if (at(i).in_loop && node.is_reduced[d]) continue;
        if (!node.load.operands().empty() && node.load.operands().back() == node.axes[d]) {
          length = box[d];
        }
        break;
      }
      cycles += group_.instructions_->CopyCycles(node.type, ElementCount(box) / length, length);
    }
    Count(i, Times(i) * cycles / static_cast<double>(Sharers(i)));
  }

  // Copies of elements along dimensions that the operand lacks.
  double SpreadCycles(const Shape& box, const std::vector<bool>& has, Type type) {
    const int64_t elements = ElementCount(box);
    layout_.needs.nmem += OnChipBytes(Room(box), type);
    const auto copy = [&](int64_t segments, int64_t count) {
      return group_.instructions_->CopyCycles(type, segments, count);
    };
    if (RepeatsElements(box, has)) {
      const int64_t rows = elements / box.back();
      layout_.needs.nmem += OnChipBytes(rows * kFirstRun, type);
      const double runs =
          copy(rows * kFirstRun, 1) + copy(rows * isa::kVectorGroup / kFirstRun, kFirstRun);
      if (box.back() == isa::kVectorGroup) return runs;
      layout_.needs.nmem += OnChipBytes(rows * isa::kVectorGroup, type);
      return runs + copy(elements / isa::kVectorGroup, isa::kVectorGroup);
    }
    int64_t run = 1;
    for (size_t d = box.size(); d > 0 && has[d - 1]; --d) run *= box[d - 1];
    return copy(elements / run, run);
  }

  // The dimensions of a reader's box along which an operand has elements of its own.
  static std::vector<bool> Has(const Shape& box, const Operand& operand) {
    std::vector<bool> has(box.size());
    for (int d : operand.dimensions) {
      if (d >= 0 && d < static_cast<int>(box.size())) has[d] = true;
    }
    return has;
  }

  void CountLane(size_t i) {
    const VectorNode& node = list_[i];
    Placed& placed = at(i);
    const Shape& box = placed.box;
    if (HasGaps(i)) layout_.needs.nmem = kTooMuch;
    placed.form = node.step.instruction;
    placed.repeats.assign(node.operands.size(), -1);
    Runs own;
    own.length = ElementCount(box);
    int64_t row = 0;
    double cycles = 0;
    for (size_t o = 0; o < node.operands.size(); ++o) {
      const Operand& operand = node.operands[o];
      const std::vector<bool> has = Has(box, operand);
      bool covers = true;
      for (size_t d = 0; d < box.size(); ++d) covers = covers && (has[d] || box[d] == 1);
      const auto [whole, read] = Source(operand, box);
      const std::optional<Runs> runs = RunsOf(whole, read, node.type);
      Use use = Use::kSpread;
      if (covers && runs && (runs->count == 1 || own.count == 1)) {
        use = Use::kWhole;
        if (runs->count > 1 || runs->length < own.length) own = *runs;
      } else if (row == 0 && runs && runs->count == 1) {
        use = RowUse(node, o, has, placed, row);
      }
      placed.uses.push_back(use);
      if (use == Use::kSpread) cycles += SpreadCycles(box, has, list_[operand.node].type);
    }
    if (row > 0) {
      // A row's form has no runs of its own.
      if (own.count > 1) {
        placed.form = node.step.instruction;
        for (size_t o = 0; o < placed.uses.size(); ++o) {
          if (placed.uses[o] != Use::kRow) continue;
          placed.uses[o] = Use::kSpread;
          placed.repeats[o] = -1;
          cycles +=
              SpreadCycles(box, Has(box, node.operands[o]), list_[node.operands[o].node].type);
        }
      } else {
        own = {.count = own.length / row, .length = row};
      }
    }
    for (size_t o = 0; o < node.operands.size(); ++o) {
      if (placed.repeats[o] >= 0) CountRepeats(i, o);
    }
    const bool is_row = placed.form != node.step.instruction;
    cycles += is_row ? group_.instructions_->Cycles(*placed.form, own.count, own.length)
                     : static_cast<double>(own.count) *
                           group_.instructions_->Cycles(*placed.form, 1, own.length);
    Count(i, Times(i) * cycles);
    for (size_t o = 0; o < node.operands.size() && placed.place < 0; ++o) {
      if (CanTakePlace(i, o)) placed.place = static_cast<int>(node.operands[o].node);
    }
    if (placed.place < 0) Store(i, false);
  }

  // How a lane reads an operand that is the same for all its rows: by the row form, if there is one. Rows that are no
  // whole groups of the vector unit are repeated until they are.
  Use RowUse(const VectorNode& node, size_t operand, const std::vector<bool>& has, Placed& placed,
             int64_t& row) const {
    const Shape& box = placed.box;
    size_t first = box.size();
    int64_t length = 1;
    while (first > 0 && (has[first - 1] || box[first - 1] == 1)) length *= box[--first];
    size_t from = first;
    while (length % isa::kVectorGroup != 0 && from > 0) length *= box[--from];
    for (size_t d = 0; d < from; ++d) {
      if (has[d] && box[d] > 1) return Use::kSpread;
    }
    // A row that is all that there is, is no row.
    if (length % isa::kVectorGroup != 0 || (from < first && length == ElementCount(box))) {
      return Use::kSpread;
    }
    for (const Step::RowForm& row_form : node.step.row_forms) {
      if (row_form.operand != operand) continue;
      placed.form = row_form.instruction;
      row = length;
      if (from < first) placed.repeats[operand] = static_cast<int>(from);
      return Use::kRow;
    }
    return Use::kSpread;
  }

  // The copies that make an operand of lane i a longer row, at its own place if the lane is in the loops of a reduction
  // and the operand is not.
  void CountRepeats(size_t i, size_t o) {
    const VectorNode& node = list_[i];
    const size_t operand = node.operands[o].node;
    const std::vector<bool> has = Has(at(i).box, node.operands[o]);
    int64_t segments = 1, length = 1, places = 1;
    for (size_t d = 0; d < has.size(); ++d) {
      const bool is_place = at(i).in_loop && !at(operand).in_loop && node.is_reduced[d] && has[d];
      if (is_place) places *= node.shape[d];
      if (static_cast<int>(d) >= at(i).repeats[o]) (has[d] ? length : segments) *= at(i).box[d];
    }
    const Type type = list_[operand].type;
    layout_.needs.nmem += OnChipBytes(places * segments * length, type);
    const double cycles = group_.instructions_->CopyCycles(type, places * segments, length);
    if (at(operand).in_loop) {
      Count(i, Times(i) * cycles);
    } else {
      Count(operand, cycles);
    }
  }

  // Whether nobody needs operand `o`'s elements after lane i, which has one for each of its own.
  bool CanTakePlace(size_t i, size_t o) const {
    const size_t operand = list_[i].operands[o].node;
    const Placed &own = layout_.nodes[i], &other = layout_.nodes[operand];
    // One fill pads a whole buffer, before the copy, if nothing else writes to it.
    if (list_[operand].kind == Kind::kCopy && list_[operand].pads()) return false;
    return own.uses[o] == Use::kWhole && group_.readers_[operand].size() == 1 &&
           !other.is_inlined && !other.is_direct && list_[operand].type == list_[i].type &&
           other.box == own.box && list_[operand].shape == list_[i].shape &&
           other.is_same == own.is_same && list_[operand].reduction == list_[i].reduction &&
           (other.in_loop || list_[operand].kind != Kind::kInput || other.is_loaded) &&
           !(list_[operand].kind == Kind::kInput && own.in_loop);
  }

  void CountReduce(size_t i) {
    const VectorNode& node = list_[i];
    const Operand& operand = node.operands[0];
    if (HasGaps(i)) layout_.needs.nmem = kTooMuch;
    Store(i, false);
    const int64_t results = ElementCount(at(i).box), size = ir::ByteSize(node.type);
    Shape domain = at(i).box;
    domain.insert(domain.end(), node.reduced.begin(), node.reduced.end());
    if (t_.along) {
      const int64_t count = ElementCount(node.reduced), row = RoundUp(count, isa::kVectorGroup);
      // Whether the elements of a row stand side by side, and rows behind one another.
      bool is_row = true;
      int last = -1;
      const Shape own = OwnExtents(operand, domain);
      for (size_t d = 0; d < own.size(); ++d) {
        if (own[d] == 1) continue;
        is_row = is_row && operand.dimensions[d] > last;
        last = operand.dimensions[d];
      }
      const auto [whole, part] = Source(operand, domain);
      const bool is_whole = is_row && whole == part && ElementCount(part) == results * row;
      double cycles = VectorCycles(card(), results * row * size);
      if (!is_whole) {
        at(i).has_copy = true;
        layout_.needs.nmem += OnChipBytes(results * row, node.type);
        cycles += group_.instructions_->CopyCycles(node.type, is_row ? results : results * count,
                                                   is_row ? count : 1);
        if (row != count) cycles += VectorCycles(card(), results * row * size);
      }
      Count(i, cycles);
      return;
    }
    // Of several outer elements a last, smaller part would not run through memory.
    const auto results_rank = static_cast<int>(node.shape.size());
    if (t_.part > 0 && node.reduced[0] % t_.part != 0) {
      for (int d : operand.dimensions) {
        if (d >= results_rank) break;
        if (d >= 0 && at(i).box[d] > 1) layout_.needs.nmem = kTooMuch;
      }
    }
    // The elements of one place of the reduced dimensions.
    std::fill(domain.begin() + results_rank, domain.end(), 1);
    const auto [whole, read] = Source(operand, domain);
    double cycles = group_.instructions_->Cycles(*group_.reducers_[i].combine, 1, results);
    const bool has_all = ElementCount(read) == results;
    const std::optional<Runs> runs = has_all ? RunsOf(whole, read, node.type) : std::nullopt;
    const Runs segments = SegmentsOf(whole, read);
    const double gather = cycles + group_.instructions_->CopyCycles(
                                       node.type, results / segments.length, segments.length);
    const double direct =
        runs ? static_cast<double>(runs->count) *
                   group_.instructions_->Cycles(*group_.reducers_[i].combine, 1, runs->length)
             : HUGE_VAL;
    at(i).has_copy = gather < direct;
    if (at(i).has_copy) layout_.needs.nmem += OnChipBytes(results, node.type);
    cycles = Times(node) * std::min(gather, direct) + VectorCycles(card(), results * size);
    Count(i, cycles);
  }

  // Sums of a product, and what its weights and rows need.
  void CountProduct(size_t i) {
    const VectorNode& node = list_[i];
    Placed& placed = at(i);
    const Shape& box = placed.box;
    const int64_t channels = box.back(), depth = node.reduced[0];
    // Of a part of the channels whole groups of lanes.
    if (HasGaps(i) || (channels < node.shape.back() && channels % isa::kTensorLanes != 0)) {
      layout_.needs.nmem = kTooMuch;
    }
    Store(i, false);
    Shape domain = box;
    domain.push_back(depth);
    const size_t from = node.operands[0].node;
    const auto [whole, read] = Source(node.operands[0], domain);
    // An image has no gaps; it is no part of what is there.
    const bool is_moved = list_[from].kind == Kind::kInput || list_[from].kind == Kind::kCopy;
    const bool has_gaps = !is_moved && depth % isa::kTensorLanes != 0;
    placed.has_copy = has_gaps || whole != read || from == node.operands[1].node;
    const Type type = list_[from].type;
    const int64_t rows = ElementCount(read) / std::max<int64_t>(1, depth);
    if (placed.has_copy) {
      layout_.needs.nmem += OnChipBytes(rows * depth, type);
      Count(i, group_.instructions_->CopyCycles(type, rows, depth));
    }
    const double cycles = group_.instructions_->ProductCycles(*node.product, rows, channels, depth);
    Count(i, cycles);
    if (!placed.is_same) needs_.tensor_cycles += cycles;
    if (node.shape.back() == 1) {
      layout_.needs.nmem += OnChipBytes(rows, node.type);
      Count(i, group_.instructions_->CopyCycles(node.type, rows, 1));
    }
    CountWeights(node, domain);
  }

  void CountWeights(const VectorNode& node, const Shape& domain) {
    const size_t from = node.operands[1].node;
    const Shape own = OwnExtents(node.operands[1], domain);
    const int64_t size = ir::ByteSize(list_[from].type), depth = node.reduced[0];
    const int64_t filters = ElementCount(own) / std::max<int64_t>(1, depth);
    const int64_t bytes = ElementCount(own) * size;
    layout_.needs.wmem +=
        RoundUp(filters, isa::kTensorLanes) * RoundUp(depth * size, isa::kTensorUnitAlignment);
    const bool is_loaded = at(from).is_loaded || list_[from].kind != Kind::kInput;
    const bool by_smem = at(from).by_smem;
    if (by_smem) {
      layout_.needs.smem += RoundUp(bytes, kOnChipAlignment);
      once_load_ += static_cast<double>(bytes) / card().move_port;
    } else if (is_loaded) {
      once_ += group_.instructions_->WeightCopyCycles(list_[from].type, filters, depth);
    }
    if (is_loaded) return;
    const int64_t loads = card().clusters * (by_smem ? 1 : card().cores);
    once_load_ += card().gmem_latency + static_cast<double>(bytes * loads) / card().gmem;
  }

  void CountResult() {
    const Operand& result = group_.nodes_.result;
    const Type type = list_[result.node].type;
    const std::vector<bool> has = Has(t_.tile, result);
    for (size_t d = 0; d < has.size(); ++d) {
      if (!has[d] && t_.tile[d] > 1) layout_.spreads_result = true;
    }
    if (layout_.spreads_result) needs_.compute_cycles += SpreadCycles(t_.tile, has, type);
    // It leaves while the next tile is computed.
    size_t room = result.node;
    while (at(room).place >= 0) room = at(room).place;
    const bool is_moved = list_[room].kind == Kind::kInput || at(room).is_direct;
    if (!is_moved && !HasOneTile(t_)) {
      layout_.needs.nmem += OnChipBytes(ElementCount(at(room).box), type);
    }
    if (!t_.smem) needs_.moved_bytes += ElementCount(t_.tile) * ir::ByteSize(type);
    needs_.store_segments = SegmentsOf(group_.output_.shape(), t_.tile).count;
    needs_.nmem_bytes = layout_.needs.nmem;
    double outer = 1;
    for (size_t d = 0; d < t_.tile.size(); ++d) {
      if (group_.IsOuter(d)) outer *= static_cast<double>(CeilDiv(t_.core[d], t_.tile[d]));
    }
    const Shape& shape = group_.output_.shape();
    needs_.cores = CeilDiv(shape[t_.split], t_.core[t_.split]) * t_.across;
    int64_t tiles = 1;
    for (size_t d = 0; d < t_.tile.size(); ++d) tiles *= CeilDiv(t_.core[d], t_.tile[d]);
    if (t_.part > 0) tiles *= CeilDiv(list_[group_.parted_].reduced[0], t_.part);
    if (t_.smem) return CountShared(tiles, type);
    if (once_load_ > 0 || once_ > 0) {
      layout_.cost.Phase("before the tiles", outer);
      layout_.cost.Lane();
      layout_.cost.Add("loads", mapping::kGmem, once_load_);
      layout_.cost.Add("computation", mapping::kVectorUnit, once_);
    }
    layout_.cost.Append(PipelinedParts(card(), tiles, needs_));
  }

  // The cost where a cluster's inputs and results cross GMEM by its memory core: all of them before the first tile and
  // after the last.
  void CountShared(int64_t tiles, Type type) {
    const mapping::CardFacts& card = group_.card_;
    const int64_t pieces = CeilDiv(group_.output_.shape()[t_.split], ClusterExtents()[t_.split]);
    const auto clusters = static_cast<double>(std::min(card.clusters, pieces));
    const double port =
        std::min({card.memory_core_port, card.link, card.gmem * mapping::kTogether / clusters});
    const std::string_view binds =
        port < std::min(card.memory_core_port, card.link) ? mapping::kGmem : mapping::kMemoryCore;
    const double trip = card.io_start + card.latency + card.dram_latency + card.drain;
    const int64_t turns = group_.Turns(t_);
    const auto move = [&](std::string_view what, int64_t bytes, int64_t segments, double at_once) {
      layout_.cost.Add(what, binds, static_cast<double>(bytes) / port);
      layout_.cost.Add(what, mapping::kWaits,
                       trip + static_cast<double>(segments - 1) * card.latency / at_once);
    };
    const auto load = [&](bool moves) {
      for (const ClusterLoad& input : cluster_loads_) {
        if (input.moves == moves) move("loads", input.bytes, input.segments, card.strided_reads);
      }
    };
    const Shape extents = ClusterExtents();
    const int64_t results = ElementCount(extents) * ir::ByteSize(type);
    const auto store = [&] {
      move("results", results, SegmentsOf(group_.output_.shape(), extents).count,
           card.memory_core_stores);
    };
    for (const ClusterLoad& input : cluster_loads_) {
      layout_.needs.smem +=
          RoundUp(input.bytes, kOnChipAlignment) * (input.moves && turns > 1 ? 2 : 1);
    }
    layout_.needs.smem += RoundUp(results, kOnChipAlignment) * (turns > 1 ? 2 : 1);
    const int64_t tile = ElementCount(t_.tile) * ir::ByteSize(type);
    const double copies = copies_ + MoveCycles(tile, SegmentsOf(extents, t_.tile).count);
    const auto all = static_cast<double>(tiles);
    layout_.cost.Phase("before", 1), layout_.cost.Lane();
    load(false), load(true);
    layout_.cost.Phase("turns", static_cast<double>(turns)), layout_.cost.Lane();
    layout_.cost.Add("copies", mapping::kMoveDma, once_copies_);
    layout_.cost.Add("computation", mapping::kVectorUnit, once_ + all * needs_.compute_cycles);
    // Of several tiles copies are made meanwhile, but for the first and the last.
    layout_.cost.Add("copies", mapping::kMoveDma,
                     copies + (all - 1) * std::max(0.0, copies - needs_.compute_cycles));
    layout_.cost.Add("queues", mapping::kWaits, all * card.drain + 2 * card.barrier);
    if (turns > 1) layout_.cost.Lane(), load(true), store();
    layout_.cost.Phase("after", 1), layout_.cost.Lane(), store();
  }

  const VectorGroup& group_;
  const Tiling& t_;
  const std::vector<VectorNode>& list_;
  Layout layout_;
  struct ClusterLoad {
    int64_t bytes, segments;
    bool moves;  // with the turns
  };
  std::vector<ClusterLoad> cluster_loads_;  // t_.smem
  double copies_ = 0, once_copies_ = 0;     // between SMEM and NMEM, of a tile and once
  Ranges needed_of_cluster_;
  Ranges needed_of_tile_, needed_of_core_;
  TileNeeds needs_;
  double once_ = 0, once_load_ = 0;
  bool shares_weights_ = false;
};

VectorGroup::Layout VectorGroup::LayoutOf(const Tiling& t) const { return Placer(*this, t).Run(); }

}  // namespace polynao::te
