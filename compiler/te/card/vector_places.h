// What each node of a vector group needs under a tiling, and where it is.
#ifndef COMPILER_TE_CARD_VECTOR_PLACES_H_
#define COMPILER_TE_CARD_VECTOR_PLACES_H_

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/arith/const_range.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/mapping/card_facts.h"
#include "compiler/target/target.h"
#include "compiler/te/card/vector_group.h"
#include "isa/granularity.h"

namespace polynao::te {

class VectorGroup::Places {
 protected:
  // Finds them all.
  Places(const VectorGroup& group, const Tiling& tiling)
      : group_(group), t_(tiling), list_(group.nodes_.list) {
    layout_.nodes.resize(list_.size());
    needed_of_tile_ = Needed(t_.tile);
    Shape once = t_.core;
    for (size_t d = 0; d < once.size(); ++d) {
      if (group_.IsOuter(d)) once[d] = t_.tile[d];
    }
    needed_of_core_ = Needed(once);
    if (t_.smem) {
      needed_of_cluster_ = Needed(ClusterExtents());
      needed_of_all_ = Needed(group_.output_.shape());
    }
    FindSharing();
    for (size_t i = list_.size(); i-- > 0;) Box(i);
    for (size_t i = 0; i < list_.size(); ++i) PlaceCopy(i);
    for (size_t i = 0; i < list_.size(); ++i) PlaceInput(i);
  }

  Placed& at(size_t i) { return layout_.nodes[i]; }
  const mapping::CardFacts& card() const { return group_.card_; }

  // What a cluster has of the output.
  Shape ClusterExtents() const {
    Shape extents = t_.core;
    const Shape& whole = group_.output_.shape();
    extents[t_.apart] = std::min(extents[t_.apart] * group_.AcrossInCluster(t_), whole[t_.apart]);
    extents[t_.split] = std::min(extents[t_.split] * group_.RunsOfCluster(t_), whole[t_.split]);
    return extents;
  }

  // In how many pieces clusters take the output, and how many clusters have one.
  int64_t Pieces() const {
    return CeilDiv(group_.output_.shape()[t_.split], ClusterExtents()[t_.split]);
  }
  int64_t UsedClusters() const { return CeilDiv(Pieces(), group_.Turns(t_)); }

  // What a cluster loads of an input, for all of its cores.
  struct ClusterLoad {
    int64_t largest = 0;  // bytes
    double all = 0;       // of all clusters in a turn, in the mean
    int64_t segments = 1;
    bool moves = false;  // with the turns
  };
  ClusterLoad LoadOfCluster(size_t input) const {
    const Shape& whole = list_[input].shape;
    const int64_t size = ir::ByteSize(list_[input].type), pieces = Pieces();
    Shape box;
    for (size_t d = 0; d < whole.size(); ++d) {
      box.push_back(Size(needed_of_cluster_[input][d], whole[d]));
    }
    ClusterLoad load = {.largest = ElementCount(box) * size,
                        .segments = SegmentsOf(whole, box).count,
                        .moves = group_.MovesWithTurns(t_, input)};
    if (!load.moves) {
      load.all = static_cast<double>(load.largest * UsedClusters());
      return load;
    }
    // Pieces at the border have a part of the halo.
    for (int64_t piece = 0; piece < pieces; ++piece) {
      int64_t elements = 1;
      for (size_t d = 0; d < whole.size(); ++d) elements *= SizeInPiece(input, d, piece, box[d]);
      load.all += static_cast<double>(elements * size);
    }
    load.all /= static_cast<double>(group_.Turns(t_));
    return load;
  }
  // Along a dimension of an input, of which the first piece would need `size`.
  int64_t SizeInPiece(size_t input, size_t d, int64_t piece, int64_t size) const {
    const arith::ConstRange &first = needed_of_cluster_[input][d], &all = needed_of_all_[input][d];
    const bool follows = (group_.dimension_follows_[input][d] >> t_.split & 1) != 0;
    const int64_t rows = ClusterExtents()[t_.split];
    const int64_t others = group_.output_.shape()[t_.split] - rows;
    if (!follows || others == 0 || !first.IsBounded() || !all.IsBounded() || all.IsEmpty()) {
      return size;
    }
    const int64_t moved = (all.max - first.max) * piece * rows / others;
    const int64_t begin = std::max<int64_t>(first.min + moved, 0);
    const int64_t last = std::min({first.max + moved, all.max, list_[input].shape[d] - 1});
    return std::clamp<int64_t>(last - begin + 1, 0, size);
  }

  // Whether all cores of a cluster read the same weights: they share none of the dimensions that these follow.
  void FindSharing() {
    const int64_t cores = card().cores;
    const bool splits = cores > t_.across && t_.core[t_.split] < group_.output_.shape()[t_.split];
    shares_weights_ = group_.has_products_ && cores > 1 && !(splits && group_.IsOuter(t_.split)) &&
                      !(t_.across > 1 && group_.IsOuter(t_.apart));
  }

  // Whether the node is the weights of a product, and nothing else.
  bool IsWeights(size_t i) const {
    if (!group_.has_products_ || i == group_.nodes_.result.node) return false;
    const std::vector<size_t>& readers = group_.readers_[i];
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](size_t reader) {
      const VectorNode& node = list_[reader];
      return node.kind == VectorNode::Kind::kProduct && node.operands[0].node != i;
    });
  }

  // Of each node the elements along each of its dimensions, the reduced ones whole.
  using Ranges = std::vector<std::vector<arith::ConstRange>>;

  arith::ConstRange RangeOfIndex(size_t i, size_t d,
                                 const std::vector<arith::ConstRange>& axes) const {
    const VectorNode& node = list_[i];
    const Index& index = group_.indices_[i][d];
    if (index.is_linear) {
      arith::ConstRange range = arith::ConstRange::Point(index.constant);
      for (size_t a = 0; a < node.axes.size(); ++a) {
        if (index.coefficients[a] != 0) {
          range = range + axes[a] * arith::ConstRange::Point(index.coefficients[a]);
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
      needed[i].assign(list_[i].shape.size(), arith::ConstRange::Nothing());
    }
    const auto need = [&needed](size_t node, size_t d, arith::ConstRange range) {
      needed[node][d] = arith::Union(needed[node][d], range);
    };
    const VectorNode::Operand& result = group_.nodes_.result;
    for (size_t d = 0; d < result.dimensions.size(); ++d) {
      need(result.node, d, {0, extents[result.dimensions[d]] - 1});
    }
    for (size_t i = list_.size(); i-- > 0;) {
      const VectorNode& node = list_[i];
      std::vector<arith::ConstRange> domain = needed[i];
      for (size_t r = 0; r < node.reduced.size(); ++r) {
        const bool is_parted = t_.part > 0 && r == 0;
        domain.push_back({0, (is_parted ? t_.part : node.reduced[r]) - 1});
      }
      if (node.kind == VectorNode::Kind::kCopy) {
        for (size_t d = 0; d < node.load.operands().size(); ++d) {
          need(node.operands[0].node, d, RangeOfIndex(i, d, domain));
        }
        continue;
      }
      for (const VectorNode::Operand& operand : node.operands) {
        for (size_t d = 0; d < operand.dimensions.size(); ++d) {
          const int in = operand.dimensions[d];
          need(operand.node, d, in < 0 ? arith::ConstRange::Point(0) : domain[in]);
        }
      }
    }
    return needed;
  }

  static int64_t Size(arith::ConstRange range, int64_t whole) {
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
          list_[reader].kind == VectorNode::Kind::kProduct && list_[reader].operands[1].node == i;
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
    // A copy with margins may have more dimensions than what it reads, or fewer: rows of the last one each.
    if (box.size() != part.size()) {
      runs.length = part.empty() ? 1 : part.back();
      runs.count = ElementCount(part) / std::max<int64_t>(1, runs.length);
      return runs;
    }
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
    if (node.kind != VectorNode::Kind::kCopy) return;
    Placed& placed = at(i);
    const size_t from = node.operands[0].node;
    const bool is_input = list_[from].kind == VectorNode::Kind::kInput;
    if (shares_weights_ && IsWeights(i) && is_input && group_.readers_[from].size() == 1) {
      placed.by_smem = placed.by_parts = at(from).by_parts = true;
      // Each core makes some of the last dimension.
      Shape part = placed.box;
      if (part.back() % card().cores == 0) {
        part.back() /= card().cores;
        placed.turn = TurnInBoxes(i, part);
        placed.loads_turned = placed.turn.has_value();
      }
      return;
    }
    std::vector<AxisRun> axes;
    if (!KeepsOrder(i, axes)) {
      const bool loads = is_input && group_.readers_[from].size() == 1;
      const Shape box = placed.box;
      if (loads) LoadWholeRows(i);
      placed.turn = TurnOf(i);
      placed.loads_turned = placed.turn && loads;
      if (!placed.turn) placed.box = box;
      return;
    }
    if (is_input && group_.readers_[from].size() == 1 && !placed.in_loop) {
      placed.is_direct = true;
      return;
    }
    if (node.pads()) return;
    // A reader that makes a longer row of it copies it from where it is.
    if (placed.in_loop && !at(from).in_loop && group_.readers_[i].size() == 1 &&
        IsRepeated(i, group_.readers_[i][0])) {
      placed.is_inlined = placed.is_repeated_before = true;
      return;
    }
    const std::optional<Runs> runs = RunsOf(at(from).box, ReadBox(axes, at(i).box), node.type);
    if (!runs) return;
    placed.is_inlined = true;
    for (size_t reader : group_.readers_[i]) {
      const VectorNode::Kind kind = list_[reader].kind;
      if (kind == VectorNode::Kind::kCopy || kind == VectorNode::Kind::kProduct ||
          (kind == VectorNode::Kind::kReduce && t_.along && runs->count > 1)) {
        placed.is_inlined = false;
      }
    }
    if (i == group_.nodes_.result.node) placed.is_inlined = false;
  }

  // The dimensions of a reader's box along which an operand has elements of its own.
  static std::vector<bool> Has(const Shape& box, const VectorNode::Operand& operand) {
    std::vector<bool> has(box.size());
    for (int d : operand.dimensions) {
      if (d >= 0 && d < static_cast<int>(box.size())) has[d] = true;
    }
    return has;
  }
  // Of an operand that is the same for all rows: the first dimension of a row, and how long a row is.
  static std::pair<size_t, int64_t> RowOf(const Shape& box, const std::vector<bool>& has) {
    size_t first = box.size();
    int64_t length = 1;
    while (first > 0 && (has[first - 1] || box[first - 1] == 1)) length *= box[--first];
    return {first, length};
  }
  // Whether a reader of node i, a lane in the loops of a reduction, copies its rows since they are no whole groups of
  // the vector unit.
  bool IsRepeated(size_t i, size_t reader) const {
    const VectorNode& lane = list_[reader];
    const Shape& box = layout_.nodes[reader].box;
    if (lane.kind != VectorNode::Kind::kLane || !layout_.nodes[reader].in_loop) return false;
    return std::all_of(lane.operands.begin(), lane.operands.end(),
                       [&](const VectorNode::Operand& operand) {
                         if (operand.node != i) return true;
                         const auto [first, length] = RowOf(box, Has(box, operand));
                         return first > 0 && length > 1 && length % isa::kVectorGroup != 0;
                       });
  }

  // Whether boxes of a node begin at multiples of their size along dimension d, and are all of one size, also those of
  // the last cluster's cores.
  bool HasWholeBoxes(size_t i, size_t d) const {
    const int64_t box = layout_.nodes[i].box[d], whole = list_[i].shape[d];
    if (box == whole) return true;
    const uint64_t follows = group_.dimension_follows_[i][d];
    for (size_t k = 0; k < t_.tile.size(); ++k) {
      if (follows != uint64_t{1} << k) continue;
      const int64_t all = group_.output_.shape()[k];
      const int64_t shared = k == t_.split ? t_.core[k] * group_.RunsOfCluster(t_) : t_.core[k];
      return whole == all && box == t_.tile[k] && t_.core[k] % box == 0 && all % shared == 0;
    }
    return false;
  }

  // Rows of which most elements are turned are loaded as a whole: parts of rows are short segments.
  void LoadWholeRows(size_t i) {
    if (!group_.turns_.contains(i)) return;
    const size_t columns = ColumnsOf(i);
    int64_t& loaded = at(i).box[columns];
    const int64_t whole = list_[i].shape[columns];
    if (2 * loaded > whole) loaded = whole;
  }

  // The axis of a copy that runs along the rows of what it reads.
  size_t ColumnsOf(size_t i) const {
    const std::vector<bool>& last = group_.indices_[i].back().uses;
    return std::find(last.begin(), last.end(), true) - last.begin();
  }

  // How copy i turns rows into columns; nothing if it copies element by element.
  std::optional<Turn> TurnOf(size_t i) const {
    const Placed& placed = layout_.nodes[i];
    if (placed.in_loop || placed.is_same) return std::nullopt;
    for (size_t d = 0; d < placed.box.size(); ++d) {
      if (!HasWholeBoxes(i, d)) return std::nullopt;
    }
    return TurnInBoxes(i, placed.box);
  }
  std::optional<Turn> TurnInBoxes(size_t i, const Shape& box) const {
    const auto by = group_.turns_.find(i);
    if (by == group_.turns_.end()) return std::nullopt;
    for (size_t d = 0; d < box.size(); ++d) {
      if (list_[i].shape[d] % box[d] != 0) return std::nullopt;
    }
    const Turn turn = {
        .shape = list_[i].shape, .box = box, .columns = ColumnsOf(i), .by = by->second};
    const Type type = list_[i].type;
    // Matrices stand one behind the other, and vector instructions begin with each.
    const int64_t matrix = ElementCount(box) / turn.matrices() * ir::ByteSize(type);
    if (turn.matrices() > 1 && matrix % kOnChipAlignment != 0) return std::nullopt;
    const double by_element = group_.instructions_->CopyCycles(type, ElementCount(box), 1);
    const double cycles = CyclesOf(turn, type, /*copies=*/false, *group_.instructions_);
    return cycles < by_element ? std::optional(turn) : std::nullopt;
  }

  void PlaceInput(size_t i) {
    if (list_[i].kind != VectorNode::Kind::kInput) return;
    at(i).is_loaded = i == group_.nodes_.result.node;
    if (IsWeights(i)) {
      at(i).by_smem = shares_weights_;  // They go to WMEM alone.
      return;
    }
    for (size_t reader : group_.readers_[i]) {
      if (!at(reader).is_direct && !at(reader).loads_turned) at(i).is_loaded = true;
    }
  }

  // The operand's own extents of what a reader reads whose domain has these.
  static Shape OwnExtents(const VectorNode::Operand& operand, const Shape& domain) {
    Shape own;
    for (int d : operand.dimensions) own.push_back(d < 0 ? 1 : domain[d]);
    return own;
  }
  // The box that holds this, and the extents of what is read there.
  std::pair<Shape, Shape> Source(const VectorNode::Operand& operand, const Shape& domain) const {
    const Placed& placed = layout_.nodes[operand.node];
    const Shape own = OwnExtents(operand, domain);
    if (!placed.is_inlined) return {placed.box, own};
    std::vector<AxisRun> axes;
    KeepsOrder(operand.node, axes);
    return {layout_.nodes[list_[operand.node].operands[0].node].box, ReadBox(axes, own)};
  }

  // The output's dimensions, as bits, whose last tile is shorter. Channels of flat windows are no rows.
  uint64_t WithRest() const {
    uint64_t rests = 0;
    for (const size_t d : {t_.split, t_.apart}) {
      const bool has_rest = group_.output_.shape()[d] % t_.tile[d] != 0;
      if (has_rest && (d == t_.split || group_.channels_ <= 0)) rests |= uint64_t{1} << d;
    }
    return rests;
  }

  // Whether the last tile leaves gaps between rows of the node's box, over which no instruction runs.
  bool HasGaps(size_t i) const {
    const uint64_t rests = WithRest();
    int64_t rows = 1;
    for (size_t d = 0; d < list_[i].shape.size(); ++d) {
      if ((group_.dimension_follows_[i][d] & rests) != 0 && rows > 1) return true;
      rows *= layout_.nodes[i].box[d];
    }
    return false;
  }

  // Whether the last tile, which is shorter, reads backwards: then it would begin before what is there.
  bool ReadsBackwards(size_t i) const {
    const uint64_t rests = WithRest();
    const VectorNode& node = list_[i];
    for (const Index& index : group_.indices_[i]) {
      for (size_t d = 0; d < node.axes.size(); ++d) {
        const bool follows = (group_.dimension_follows_[i][d] & rests) != 0;
        if (follows && index.coefficients[d] < 0) return true;
      }
    }
    return false;
  }

  const VectorGroup& group_;
  const Tiling& t_;
  const std::vector<VectorNode>& list_;
  Layout layout_;
  Ranges needed_of_tile_, needed_of_core_, needed_of_cluster_, needed_of_all_;
  bool shares_weights_ = false;
};

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_VECTOR_PLACES_H_
