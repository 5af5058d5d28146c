// What each node of a vector group needs under a tiling, where it is, and what that costs.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/math.h"
#include "compiler/arith/const_range.h"
#include "compiler/arith/symbolic_interval.h"
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
  const isa::Machine& machine() const { return *group_.machine_; }

  // Whether all cores of a cluster read the same weights: they share none of the dimensions that these follow.
  void FindSharing() {
    const int64_t cores = machine().cores_per_cluster();
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

  // Whether a copy keeps the order of elements: each index is at most one axis, plus what the loops of a reduction
  // give, and axes come in their order. Elements are the operand's dimensions that `axis_of` leaves at -1.
  bool KeepsOrder(size_t i, std::vector<int>& axis_of) const {
    const VectorNode& node = list_[i];
    int last = -1;
    for (const Index& index : group_.indices_[i]) {
      int axis = -1;
      for (size_t d = 0; d < node.axes.size(); ++d) {
        // One place along an axis, or each in turn in the loops of a reduction.
        if (layout_.nodes[i].box[d] == 1 || !index.uses[d]) continue;
        if (axis >= 0) return false;
        axis = static_cast<int>(d);
      }
      axis_of.push_back(axis);
      if (axis < 0) continue;
      if (axis <= last || !index.is_linear || index.coefficients[axis] != 1) return false;
      last = axis;
    }
    // Axes that no index has would be repeated.
    for (size_t d = 0; d < node.shape.size(); ++d) {
      const bool is_read = std::count(axis_of.begin(), axis_of.end(), static_cast<int>(d)) > 0;
      if (!is_read && layout_.nodes[i].box[d] > 1) return false;
    }
    return true;
  }

  // The stretches of memory in which elements of a box stand of which `part` are read; none if they do not begin where
  // vector instructions may.
  std::optional<Runs> RunsOf(const Shape& box, const Shape& part, Type type) const {
    size_t d = box.size();
    int64_t inner = 1;
    while (d > 0 && box[d - 1] == part[d - 1]) inner *= box[--d];
    const bool is_aligned =
        inner % isa::kVectorGroup == 0 && inner * ir::ByteSize(type) % kOnChipAlignment == 0;
    return d == 0 || is_aligned ? std::optional(SegmentsOf(box, part)) : std::nullopt;
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

  // What a copy reads, as extents along its operand's dimensions.
  Shape ReadBox(size_t i, const std::vector<int>& axis_of) const {
    Shape part;
    for (int axis : axis_of) part.push_back(axis < 0 ? 1 : layout_.nodes[i].box[axis]);
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
    std::vector<int> axis_of;
    if (!KeepsOrder(i, axis_of)) return;
    if (is_input && group_.readers_[from].size() == 1 && !placed.in_loop) {
      placed.is_direct = true;
      return;
    }
    if (node.pads()) return;
    const std::optional<Runs> runs = RunsOf(at(from).box, ReadBox(i, axis_of), node.type);
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
    std::vector<int> axis_of;
    KeepsOrder(operand.node, axis_of);
    Shape part;
    for (int axis : axis_of) part.push_back(axis < 0 ? 1 : own[axis]);
    return {layout_.nodes[list_[operand.node].operands[0].node].box, part};
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
  int64_t Sharers(size_t i) const {
    return layout_.nodes[i].by_parts ? machine().cores_per_cluster() : 1;
  }
  // Results of products have whole groups of lanes, and so has what is computed from them.
  int64_t Room(const Shape& box) const {
    if (!group_.has_products_ || box.empty()) return ElementCount(box);
    return ElementCount(box) / std::max<int64_t>(1, box.back()) *
           RoundUp(box.back(), isa::kTensorLanes);
  }
  void Store(size_t i, bool is_moved) {
    const int64_t bytes = OnChipBytes(CeilDiv(Room(at(i).box), Sharers(i)), list_[i].type);
    layout_.needs.nmem += bytes * (is_moved && !at(i).is_same ? 2 : 1);
  }
  void Load(size_t i, const Shape& whole, const Shape& part) {
    const int64_t bytes = ElementCount(part) * ir::ByteSize(list_[i].type);
    if (at(i).is_same) {
      once_load_ += static_cast<double>(machine().Get("gmem.latency")) +
                    static_cast<double>(bytes * machine().cores() / Sharers(i)) /
                        machine().gmem_bytes_per_cycle();
      return;
    }
    needs_.moved_bytes += bytes;
    needs_.load_segments = std::max(needs_.load_segments, SegmentsOf(whole, part).count);
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
        node.pads() ? VectorCycles(machine(), ElementCount(box) * ir::ByteSize(node.type)) : 0;
    std::vector<int> axis_of;
    const bool keeps = KeepsOrder(i, axis_of);
    if (at(i).is_direct) {
      // Margins stand between the rows of a padded copy.
      const size_t from = node.operands[0].node;
      Shape part = ReadBox(i, axis_of);
      for (size_t d = 0; d < part.size(); ++d) part[d] = std::min(part[d], list_[from].shape[d]);
      Load(i, list_[from].shape, part);
      if (node.pads()) {
        needs_.load_segments = std::max(needs_.load_segments, SegmentsOf(box, part).count);
      }
    } else if (keeps) {
      const Runs runs = SegmentsOf(at(node.operands[0].node).box, ReadBox(i, axis_of));
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
        use = RowUse(node, o, has, box, placed.form, row);
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
          cycles +=
              SpreadCycles(box, Has(box, node.operands[o]), list_[node.operands[o].node].type);
        }
      } else {
        own = {.count = own.length / row, .length = row};
      }
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

  Use RowUse(const VectorNode& node, size_t operand, const std::vector<bool>& has, const Shape& box,
             const isa::Instruction*& form, int64_t& row) const {
    size_t first = box.size();
    int64_t length = 1;
    while (first > 0 && (has[first - 1] || box[first - 1] == 1)) length *= box[--first];
    for (size_t d = 0; d < first; ++d) {
      if (has[d] && box[d] > 1) return Use::kSpread;
    }
    if (length % isa::kVectorGroup != 0) return Use::kSpread;
    for (const Step::RowForm& row_form : node.step.row_forms) {
      if (row_form.operand != operand) continue;
      form = row_form.instruction;
      row = length;
      return Use::kRow;
    }
    return Use::kSpread;
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
      double cycles = VectorCycles(machine(), results * row * size);
      if (!is_whole) {
        at(i).has_copy = true;
        layout_.needs.nmem += OnChipBytes(results * row, node.type);
        cycles += group_.instructions_->CopyCycles(node.type, is_row ? results : results * count,
                                                   is_row ? count : 1);
        if (row != count) cycles += VectorCycles(machine(), results * row * size);
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
    cycles = Times(node) * std::min(gather, direct) + VectorCycles(machine(), results * size);
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
      once_load_ +=
          static_cast<double>(bytes) / static_cast<double>(machine().Get("move_dma.port_bytes"));
    } else if (is_loaded) {
      once_ += group_.instructions_->WeightCopyCycles(list_[from].type, filters, depth);
    }
    if (is_loaded) return;
    const int64_t loads = by_smem ? machine().clusters() : machine().cores();
    once_load_ += static_cast<double>(machine().Get("gmem.latency")) +
                  static_cast<double>(bytes * loads) / machine().gmem_bytes_per_cycle();
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
    if (!is_moved) layout_.needs.nmem += OnChipBytes(ElementCount(at(room).box), type);
    needs_.moved_bytes += ElementCount(t_.tile) * ir::ByteSize(type);
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
    if (once_load_ > 0 || once_ > 0) {
      layout_.cost.Phase("before the tiles", outer);
      layout_.cost.Lane();
      layout_.cost.Add("loads", mapping::kGmem, once_load_);
      layout_.cost.Add("computation", mapping::kVectorUnit, once_);
    }
    layout_.cost.Append(PipelinedParts(machine(), tiles, needs_));
  }

  const VectorGroup& group_;
  const Tiling& t_;
  const std::vector<VectorNode>& list_;
  Layout layout_;
  Ranges needed_of_tile_, needed_of_core_;
  TileNeeds needs_;
  double once_ = 0, once_load_ = 0;
  bool shares_weights_ = false;
};

VectorGroup::Layout VectorGroup::LayoutOf(const Tiling& t) const { return Placer(*this, t).Run(); }

}  // namespace polynao::te
