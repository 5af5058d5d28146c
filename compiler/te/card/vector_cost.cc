// What each node of a vector group costs under a tiling: bytes of the memories, and cycles.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/math.h"
#include "compiler/mapping/card_facts.h"
#include "compiler/target/target.h"
#include "compiler/te/card/tile_cost.h"
#include "compiler/te/card/vector_group.h"
#include "compiler/te/card/vector_places.h"
#include "isa/granularity.h"

namespace polynao::te {

using Kind = VectorNode::Kind;
using Operand = VectorNode::Operand;

class VectorGroup::Counter : public VectorGroup::Places {
 public:
  Counter(const VectorGroup& group, const Tiling& tiling) : Places(group, tiling) {}

  Layout Run() {
    FindEarly();
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
  void Count(size_t i, double cycles) {
    (IsEarly(i) ? early_ : at(i).is_same ? once_ : needs_.compute_cycles) += cycles;
  }

  // Which nodes cores compute while their cluster loads more (passes/turns.h): those that read nothing that moves with
  // the turns; where there is but one turn, nothing of the last input.
  void FindEarly() {
    if (t_.smem != 1) return;
    const bool has_turns = group_.Turns(t_) > 1;
    size_t last = list_.size();
    for (size_t i = 0; i < list_.size(); ++i) {
      if (list_[i].kind == Kind::kInput && !group_.readers_[i].empty()) last = i;
    }
    is_late_.resize(list_.size());
    for (size_t i = 0; i < list_.size(); ++i) {
      const VectorNode& node = list_[i];
      is_late_[i] = node.kind == Kind::kInput
                        ? (has_turns ? group_.MovesWithTurns(t_, i) : i == last)
                        : layout_.nodes[i].in_loop ||
                              std::any_of(node.operands.begin(), node.operands.end(),
                                          [&](const Operand& o) { return is_late_[o.node]; });
      has_early_ = has_early_ || (node.kind == Kind::kInput && !is_late_[i]);
    }
    has_early_ = has_early_ && std::count(is_late_.begin(), is_late_.end(), true) > 0;
  }
  bool IsEarly(size_t i) const {
    return has_early_ && !is_late_[i] && (HasOneTile(t_) || layout_.nodes[i].is_same);
  }
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
    if (!is_moved && !at(i).is_same) computed_.emplace_back(i, bytes);
  }
  // Of node i, an input or a copy from one: `part` of `whole`.
  void Load(size_t i, const Shape& whole, const Shape& part) {
    const int64_t bytes = ElementCount(part) * ir::ByteSize(list_[i].type);
    const int64_t segments = SegmentsOf(whole, part).count;
    if (t_.smem == 1) return LoadBySmem(i, bytes, segments);
    if (at(i).is_same) {
      const double trips =
          std::max(1.0, static_cast<double>(segments) / card().strided_reads) * card().gmem_latency;
      once_load_ +=
          trips +
          static_cast<double>(bytes * card().clusters * card().cores / Sharers(i)) / card().gmem;
      return;
    }
    needs_.moved_bytes += bytes;
    if (segments > 1) needs_.load_segments += segments;
  }

  // The memory core brings what the cluster needs of the input, each core takes its part of that.
  void LoadBySmem(size_t i, int64_t bytes, int64_t segments) {
    const size_t input = list_[i].kind == Kind::kInput ? i : list_[i].operands[0].node;
    cluster_loads_.push_back(LoadOfCluster(input));
    is_early_load_.push_back(has_early_ && !is_late_[input]);
    const double copy = MoveCycles(bytes, segments);
    (IsEarly(i) ? early_copies_ : at(i).is_same ? once_copies_ : copies_) += copy;
  }
  // Whether what is filled next in a cluster's only turn is filled while the cluster loads: nothing stands before it.
  bool FillsFirst() const {
    return t_.smem == 1 && group_.Turns(t_) == 1 && HasOneTile(t_) &&
           (has_early_ || (cluster_loads_.empty() && once_ + needs_.compute_cycles == 0));
  }
  // How long the memory cores' transfers take: GMEM has the bytes of all clusters, a memory core's port its own.
  double TransferCycles(const ClusterLoad& load) const {
    return std::max(load.all / card().gmem, static_cast<double>(load.largest) /
                                                std::min(card().memory_core_port, card().link));
  }
  // What a transfer waits for besides. Behind another one DRAM has rows open, and nothing is drained between.
  double TransferWaits(bool is_first) const {
    if (!is_first) return card().io_start + card().gmem_latency;
    return card().io_start + card().latency + card().dram_latency + card().drain;
  }

  // Between a core's NMEM and SMEM, at the same time as the other cores.
  double MoveCycles(int64_t bytes, int64_t segments) const {
    // A segment takes the core's port, and SMEM's for each core, whole cycles.
    const auto count = static_cast<double>(std::max<int64_t>(segments, 1));
    const double segment = static_cast<double>(bytes) / count;
    const double moved =
        count * std::max(std::ceil(segment / card().move_port),
                         static_cast<double>(card().cores) * std::ceil(segment / card().smem));
    const double waits = count * card().smem_latency / card().move_outstanding;
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
    if (at(i).turn) return CountTurned(i);
    if (MovesNothing(i)) return;
    Store(i, at(i).is_direct);
    const Shape& box = at(i).box;
    double cycles =
        node.pads() ? VectorCycles(card(), ElementCount(box) * ir::ByteSize(node.type)) : 0;
    if (at(i).is_direct && FillsFirst()) fill_ += std::exchange(cycles, 0);
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
        const std::vector<Index>& indices = group_.indices_[i];
        const bool is_last =
            !node.load.operands().empty() && node.load.operands().back() == node.axes[d];
        if (is_last || (indices.size() > 1 && ArePartsOf(indices, indices.size() - 1, d))) {
          length = box[d];
        }
        break;
      }
      cycles += group_.instructions_->CopyCycles(node.type, ElementCount(box) / length, length);
    }
    Count(i, Times(i) * cycles / static_cast<double>(Sharers(i)));
  }

  // Whether index k and the one before are axis / parts and axis % parts.
  static bool ArePartsOf(const std::vector<Index>& indices, size_t k, size_t axis) {
    return k > 0 && indices[k].wraps == static_cast<int>(axis) &&
           indices[k - 1].divides == indices[k].wraps && indices[k - 1].parts == indices[k].parts;
  }

  // A copy of all that is on chip of its operand, each element to the place that it has (passes/copy_elision.h): along
  // each axis both go on by as many elements. `axis / 12` and `axis % 12` are rows of 12, one behind the other.
  bool MovesNothing(size_t i) {
    const VectorNode& node = list_[i];
    const size_t from = node.operands[0].node;
    const bool is_result_of_many = i == group_.nodes_.result.node && !HasOneTile(t_);
    if (node.pads() || at(i).is_direct || is_result_of_many) return false;
    if (list_[from].kind == Kind::kInput ? !at(from).is_loaded : at(from).is_inlined) return false;
    const Shape &box = at(i).box, &all = at(from).box;
    if (ElementCount(box) != ElementCount(all)) return false;
    const std::vector<Index>& indices = group_.indices_[i];
    std::vector<int64_t> steps(box.size());  // in the operand
    int64_t size = 1;
    for (size_t d = all.size(); d-- > 0; size *= all[d]) {
      const Index& index = indices[d];
      if (index.wraps >= 0) {
        const bool is_whole = d > 0 && indices[d - 1].divides == index.wraps &&
                              indices[d - 1].parts == index.parts && all[d] == index.parts;
        if (!is_whole) return false;
        steps[index.wraps] += size;
      } else if (index.divides >= 0) {
        const bool is_whole = d + 1 < all.size() && indices[d + 1].wraps == index.divides;
        if (!is_whole) return false;
      } else if (index.is_linear) {
        for (size_t a = 0; a < box.size(); ++a) steps[a] += index.coefficients[a] * size;
      } else {
        return false;
      }
    }
    size = 1;
    for (size_t a = box.size(); a-- > 0; size *= box[a]) {
      if (box[a] > 1 && steps[a] != size) return false;
    }
    return true;
  }

  void CountTurned(size_t i) {
    const VectorNode& node = list_[i];
    const Turn& turn = *at(i).turn;
    const bool loads = at(i).loads_turned;
    Store(i, false);
    layout_.needs.nmem += BytesOf(turn, node.type, loads && !HasOneTile(t_) ? 2 : 1);
    if (loads) {
      Shape part;
      for (const Index& index : group_.indices_[i]) {
        const auto axis = std::find(index.uses.begin(), index.uses.end(), true);
        part.push_back(axis == index.uses.end() ? 1 : at(i).box[axis - index.uses.begin()]);
      }
      Load(i, list_[node.operands[0].node].shape, part);
    }
    Count(i, CyclesOf(turn, node.type, !loads, *group_.instructions_));
  }

  // Copies of elements along dimensions that the operand lacks, to a box of `whole`.
  double SpreadCycles(const Shape& whole, const Shape& box, const std::vector<bool>& has,
                      Type type) {
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
      // Parts of a row that begin between groups are copied element by element.
      if (box.back() < whole.back() && box.back() % isa::kVectorGroup != 0) {
        return runs + static_cast<double>(elements) * copy(1, 1);
      }
      return runs + copy(elements / isa::kVectorGroup, isa::kVectorGroup);
    }
    int64_t run = 1;
    for (size_t d = box.size(); d > 0 && has[d - 1]; --d) run *= box[d - 1];
    return copy(elements / run, run);
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
      } else if (row == 0 && SegmentsOf(whole, read).count == 1) {
        use = RowUse(node, o, has, runs.has_value(), placed, row);
      }
      placed.uses.push_back(use);
      if (use == Use::kSpread) {
        cycles += SpreadCycles(node.shape, box, has, list_[operand.node].type);
      }
    }
    if (row > 0) {
      // A row's form has no runs of its own.
      if (own.count > 1) {
        placed.form = node.step.instruction;
        for (size_t o = 0; o < placed.uses.size(); ++o) {
          if (placed.uses[o] != Use::kRow) continue;
          placed.uses[o] = Use::kSpread;
          placed.repeats[o] = -1;
          cycles += SpreadCycles(node.shape, box, Has(box, node.operands[o]),
                                 list_[node.operands[o].node].type);
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
  // whole groups of the vector unit are repeated until they are; others have to begin where it may.
  Use RowUse(const VectorNode& node, size_t operand, const std::vector<bool>& has, bool is_aligned,
             Placed& placed, int64_t& row) const {
    const Shape& box = placed.box;
    auto [first, length] = RowOf(box, has);
    size_t from = first;
    while (length % isa::kVectorGroup != 0 && from > 0) length *= box[--from];
    for (size_t d = 0; d < from; ++d) {
      if (has[d] && box[d] > 1) return Use::kSpread;
    }
    // A row that is all that there is, is no row.
    if (length % isa::kVectorGroup != 0 || (from < first && length == ElementCount(box)) ||
        (from == first && !is_aligned)) {
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
    const size_t operand = group_.SourceOfRows(layout_, node.operands[o].node);
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
        const auto dimensions = std::count_if(node.reduced.begin(), node.reduced.end(),
                                              [](int64_t extent) { return extent > 1; });
        const int64_t segments = is_row ? results : results * count;
        // Elements of several dimensions that are no row are no strided copy: one instruction each.
        cycles +=
            dimensions > 1 && !is_row
                ? static_cast<double>(segments) * group_.instructions_->CopyCycles(node.type, 1, 1)
                : group_.instructions_->CopyCycles(node.type, segments, is_row ? count : 1);
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
    cycles = Times(node) * std::min(gather, direct);
    (has_early_ && FillsFirst() ? fill_ : cycles) += VectorCycles(card(), results * size);
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

  // The extents of what the output is stored to, all of it or a box.
  const Shape& StoredShape() const {
    const Shape& within = group_.output_.graph()->within;
    return within.size() == group_.output_.rank() ? within : group_.output_.shape();
  }
  void CountResult() {
    const Operand& result = group_.nodes_.result;
    const Type type = list_[result.node].type;
    const std::vector<bool> has = Has(t_.tile, result);
    for (size_t d = 0; d < has.size(); ++d) {
      if (!has[d] && t_.tile[d] > 1) layout_.spreads_result = true;
    }
    if (layout_.spreads_result) {
      needs_.compute_cycles += SpreadCycles(group_.output_.shape(), t_.tile, has, type);
    }
    // It leaves while the next tile is computed.
    size_t room = result.node;
    while (at(room).place >= 0) room = at(room).place;
    const bool is_moved = list_[room].kind == Kind::kInput || at(room).is_direct;
    if (!is_moved && !HasOneTile(t_)) {
      layout_.needs.nmem += OnChipBytes(ElementCount(at(room).box), type);
    }
    if (!t_.smem) needs_.moved_bytes += ElementCount(t_.tile) * ir::ByteSize(type);
    needs_.store_segments = SegmentsOf(StoredShape(), t_.tile).count;
    if (group_.reuses_ && layout_.needs.nmem > card().nmem_bytes && layout_.needs.nmem < kTooMuch) {
      layout_.needs.nmem -= SharedBytes();
    }
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

  // What computed nodes need less if they share bytes with those that are not read any more. The pass `storage` leaves
  // a few gaps.
  int64_t SharedBytes() const {
    constexpr int64_t kGaps = 20;  // percent
    const auto end_of = [&](size_t i) {
      return layout_.nodes[i].in_loop ? static_cast<size_t>(list_[i].reduction) : i;
    };
    std::vector<size_t> last(list_.size());
    for (size_t i = list_.size(); i-- > 0;) {
      last[i] = i == group_.nodes_.result.node ? list_.size() : end_of(i);
      for (const size_t reader : group_.readers_[i]) {
        const Placed& placed = layout_.nodes[reader];
        last[i] = std::max(last[i], end_of(reader));
        if (placed.is_inlined || placed.place == static_cast<int>(i)) {
          last[i] = std::max(last[i], last[reader]);
        }
      }
    }
    std::vector<int64_t> changes(list_.size() + 2);
    int64_t all = 0, live = 0, most = 0;
    for (const auto& [i, bytes] : computed_) {
      all += bytes;
      changes[i] += bytes;
      changes[last[i] + 1] -= bytes;
    }
    for (const int64_t change : changes) most = std::max(most, live += change);
    return std::max<int64_t>(0, all - most - most * kGaps / 100);
  }

  // The cost where a cluster's inputs and results cross GMEM by its memory core: all of them before the first tile and
  // after the last.
  void CountShared(int64_t tiles, Type type) {
    const mapping::CardFacts& card = group_.card_;
    const int64_t turns = group_.Turns(t_);
    const auto move = [&](std::string_view what, const ClusterLoad& load, double at_once,
                          bool is_first) {
      const double cycles = TransferCycles(load);
      const bool by_port = cycles > load.all / card.gmem;
      layout_.cost.Add(what, by_port ? mapping::kMemoryCore : mapping::kGmem, cycles);
      layout_.cost.Add(what, mapping::kWaits,
                       TransferWaits(is_first) +
                           static_cast<double>(load.segments - 1) * card.latency / at_once);
    };
    const auto load = [&](const ClusterLoad& input, bool is_first) {
      move("loads", input, card.strided_reads, is_first);
    };
    const Shape extents = ClusterExtents();
    const int64_t results = ElementCount(extents) * ir::ByteSize(type);
    const ClusterLoad stored = {
        .largest = results,
        .all = static_cast<double>(ElementCount(group_.output_.shape()) * ir::ByteSize(type)) /
               static_cast<double>(turns),
        .segments = SegmentsOf(StoredShape(), extents).count};
    const auto store = [&] { move("results", stored, card.memory_core_stores, true); };
    for (const ClusterLoad& input : cluster_loads_) {
      layout_.needs.smem +=
          RoundUp(input.largest, kOnChipAlignment) * (input.moves && turns > 1 ? 2 : 1);
    }
    layout_.needs.smem += RoundUp(results, kOnChipAlignment) * (turns > 1 ? 2 : 1);
    const int64_t tile = ElementCount(t_.tile) * ir::ByteSize(type);
    const double copies = copies_ + MoveCycles(tile, SegmentsOf(extents, t_.tile).count);
    const auto all = static_cast<double>(tiles);
    // What cores load by themselves: a tile's while another one is computed, but for the first of each turn.
    const double loads = OwnLoads();
    const auto load_all = [&](bool early) {
      for (size_t i = 0; i < cluster_loads_.size(); ++i) {
        if (is_early_load_[i] == early) load(cluster_loads_[i], i == 0);
      }
    };
    layout_.cost.Phase("before", 1), layout_.cost.Lane();
    load_all(has_early_);
    layout_.cost.Add("loads", mapping::kGmem, once_load_);
    layout_.cost.Lane(), layout_.cost.Add("fills", mapping::kVectorUnit, fill_);
    if (has_early_) {
      layout_.cost.Phase("last loads", 1), layout_.cost.Lane(), load_all(false);
      layout_.cost.Add("queues", mapping::kWaits, card.drain + card.barrier);
      layout_.cost.Lane();
      layout_.cost.Add("copies", mapping::kMoveDma, early_copies_);
      layout_.cost.Add("computation", mapping::kVectorUnit, early_);
    }
    layout_.cost.Phase("first tile", static_cast<double>(turns)), layout_.cost.Lane();
    layout_.cost.Add("loads", mapping::kGmem, loads);
    layout_.cost.Phase("turns", static_cast<double>(turns)), layout_.cost.Lane();
    layout_.cost.Add("copies", mapping::kMoveDma, once_copies_);
    layout_.cost.Add("computation", mapping::kVectorUnit, once_ + all * needs_.compute_cycles);
    // Of several tiles copies are made meanwhile, but for the first and the last.
    layout_.cost.Add("copies", mapping::kMoveDma,
                     copies + (all - 1) * std::max(0.0, copies - needs_.compute_cycles));
    layout_.cost.Add("queues", mapping::kWaits, all * card.drain + 2 * card.barrier);
    if (loads > 0) {
      // The last tile is computed and copied behind its load.
      layout_.cost.Lane(), layout_.cost.Add("loads", mapping::kGmem, (all - 1) * loads);
      layout_.cost.Add("last computation", mapping::kVectorUnit, needs_.compute_cycles);
      layout_.cost.Add("last copies", mapping::kMoveDma, copies);
    }
    if (turns > 1) {
      layout_.cost.Lane();
      for (const ClusterLoad& input : cluster_loads_) {
        if (input.moves) load(input, true);
      }
      store();
    }
    layout_.cost.Phase("after", 1), layout_.cost.Lane(), store();
  }

  // Of a tile, by a core itself.
  double OwnLoads() const {
    if (needs_.moved_bytes == 0) return 0;
    const mapping::CardFacts& card = group_.card_;
    const double share = std::min(card.gmem / static_cast<double>(needs_.cores), card.io_port);
    const double segments =
        static_cast<double>(needs_.load_segments) * card.gmem_latency / card.strided_reads;
    const double bytes = static_cast<double>(needs_.moved_bytes) / share;
    return card.io_start + card.gmem_latency + std::max(bytes + kPartInStep * segments, segments);
  }

  std::vector<ClusterLoad> cluster_loads_;  // t_.smem
  std::vector<bool> is_early_load_, is_late_;
  bool has_early_ = false;
  std::vector<std::pair<size_t, int64_t>>
      computed_;                         // nodes with storage that is not moved, and its bytes
  double copies_ = 0, once_copies_ = 0;  // between SMEM and NMEM, of a tile and once
  TileNeeds needs_;
  double once_ = 0, once_load_ = 0;
  double fill_ = 0;                      // while memory cores load
  double early_ = 0, early_copies_ = 0;  // FindEarly
};

VectorGroup::Layout VectorGroup::LayoutOf(const Tiling& t) const { return Counter(*this, t).Run(); }

}  // namespace polynao::te
