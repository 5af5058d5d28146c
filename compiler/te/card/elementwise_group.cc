#include "compiler/te/card/elementwise_group.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/pragmas.h"
#include "compiler/ir/replace.h"
#include "compiler/ir/visit.h"
#include "compiler/te/card/tile_cost.h"
#include "compiler/te/lower.h"
#include "compiler/te/schedule.h"
#include "isa/granularity.h"
#include "isa/levels.h"

namespace polynao::te {

absl::StatusOr<ElementwiseGroup> ElementwiseGroup::Create(const Tensor& output,
                                                          const LaneInstructions& instructions,
                                                          const isa::Machine& machine,
                                                          const TileExtras& extras) {
  ElementwiseGroup group(output, instructions, machine, extras);
  ASSIGN_OR_RETURN(group.steps_, CutIntoSteps(output, instructions));
  for (const Step& step : group.steps_.list) {
    if (step.tensor == nullptr || step.tensor->kind != Operation::Kind::kCompute) continue;
    return InvalidInput("tensor ", step.name,
                        " is no elementwise compute of tensors in its order of dimensions");
  }
  group.MergeDimensions();
  return group;
}

void ElementwiseGroup::MergeDimensions() {
  const size_t rank = steps_.domain.size();
  const auto vary_alike = [this](size_t d, size_t e) {
    return std::all_of(steps_.list.begin(), steps_.list.end(),
                       [d, e](const Step& step) { return step.varies[d] == step.varies[e]; });
  };
  merged_.assign(rank, -1);
  std::optional<size_t> last;
  for (size_t d = 0; d < rank; ++d) {
    // Column sums need a dimension of channels, and one of pixels.
    const bool is_column = extras_.any() && d + 1 == rank;
    if (steps_.domain[d] == 1 && !is_column) continue;
    if (is_column && extents_.empty()) extents_.push_back(1);
    if (last && vary_alike(*last, d) && !is_column) {
      extents_.back() *= steps_.domain[d];
    } else {
      extents_.push_back(steps_.domain[d]);
    }
    last = d;
    merged_[d] = static_cast<int>(extents_.size()) - 1;
  }
  if (extents_.empty()) extents_.push_back(1);
  for (const Step& step : steps_.list) {
    std::vector<bool>& varies = varies_.emplace_back(extents_.size());
    for (size_t d = 0; d < rank; ++d) {
      if (merged_[d] >= 0 && step.varies[d]) varies[merged_[d]] = true;
    }
  }
}

int64_t ElementwiseGroup::TileExtent(const Tiling& t, size_t d) const {
  return d < t.split ? 1 : d == t.split ? t.tile : extents_[d];
}

std::vector<bool> ElementwiseGroup::TileMask(const Tiling& t, size_t step) const {
  std::vector<bool> mask = varies_[step];
  for (size_t d = 0; d < mask.size(); ++d) mask[d] = mask[d] && TileExtent(t, d) > 1;
  return mask;
}

int64_t ElementwiseGroup::TileElements(const Tiling& t, const std::vector<bool>& mask) const {
  int64_t elements = 1;
  for (size_t d = 0; d < mask.size(); ++d) {
    if (mask[d]) elements *= TileExtent(t, d);
  }
  return elements;
}

bool ElementwiseGroup::IsSame(const Tiling& t, size_t step) const {
  return std::none_of(varies_[step].begin(),
                      varies_[step].begin() + static_cast<ptrdiff_t>(t.split) + 1,
                      [](bool varies) { return varies; });
}

std::vector<ElementwiseGroup::Use> ElementwiseGroup::Uses(const Tiling& t, size_t step,
                                                          const isa::Instruction*& form) const {
  const Step& s = steps_.list[step];
  const std::vector<bool> mask = TileMask(t, step);
  form = s.instruction;
  std::vector<Use> uses;
  for (size_t operand : s.operands) {
    uses.push_back(TileMask(t, operand) == mask ? Use::kWhole : Use::kSpread);
  }
  for (const Step::RowForm& row : s.row_forms) {
    const std::vector<bool> own = TileMask(t, s.operands[row.operand]);
    // A row is the last of the tile's dimensions, and whole groups of the vector unit.
    const auto first = std::find(own.begin(), own.end(), true);
    const bool is_row = std::equal(first, own.end(), mask.begin() + (first - own.begin())) &&
                        TileElements(t, own) % isa::kVectorGroup == 0 && first != own.end();
    if (uses[row.operand] != Use::kSpread || !is_row) continue;
    form = row.instruction;
    uses[row.operand] = Use::kRow;
    break;
  }
  return uses;
}

bool ElementwiseGroup::RepeatsElements(const Tiling& t, size_t step,
                                       const std::vector<bool>& mask) const {
  const size_t last = extents_.size() - 1;
  return mask[last] && !varies_[step][last] && TileExtent(t, last) >= 2 * isa::kVectorGroup;
}

std::vector<int> ElementwiseGroup::Places(const Tiling& t) const {
  const std::vector<size_t> last = steps_.LastReaders();
  std::vector<int> places(steps_.list.size(), -1);
  // Of steps that are repeated, or read in another loop than their own, the last reader is not the last in time.
  std::vector<bool> is_kept(steps_.list.size());
  for (size_t i = 0; i < steps_.list.size(); ++i) {
    const isa::Instruction* form;
    const std::vector<Use> uses = Uses(t, i, form);
    for (size_t o = 0; o < uses.size(); ++o) {
      const size_t operand = steps_.list[i].operands[o];
      if (uses[o] == Use::kSpread || IsSame(t, i) != IsSame(t, operand)) is_kept[operand] = true;
    }
  }
  for (size_t i = 0; i < steps_.list.size(); ++i) {
    const isa::Instruction* form;
    const std::vector<Use> uses = Uses(t, i, form);
    for (size_t o = 0; o < uses.size(); ++o) {
      const size_t operand = steps_.list[i].operands[o];
      const bool is_free = places[i] < 0 && uses[o] == Use::kWhole && last[operand] == i &&
                           operand != steps_.result && !is_kept[operand] &&
                           varies_[operand] == varies_[i] &&
                           steps_.list[operand].type == steps_.list[i].type;
      if (is_free) places[i] = static_cast<int>(operand);
    }
  }
  return places;
}

mapping::CostParts ElementwiseGroup::Cost(const Tiling& t, int64_t& nmem_bytes) const {
  TileNeeds needs;
  double once = 0;
  const std::vector<int> places = Places(t);
  std::map<size_t, std::pair<int64_t, bool>> rooms;  // bytes, and whether they are moved
  std::vector<size_t> room(steps_.list.size());
  const auto spread = [&](size_t step, const std::vector<bool>& mask) {
    const Type type = steps_.list[step].type;
    const int64_t elements = TileElements(t, mask);
    double cycles;
    nmem_bytes += OnChipBytes(elements, type);
    if (RepeatsElements(t, step, mask)) {
      const int64_t groups = elements / extents_.back() * isa::kVectorGroup;
      nmem_bytes += OnChipBytes(groups, type);
      cycles = instructions_->CopyCycles(type, groups, 1) +
               instructions_->CopyCycles(type, elements / isa::kVectorGroup, isa::kVectorGroup);
    } else {
      const int64_t run = varies_[step].back() ? TileExtent(t, extents_.size() - 1) : 1;
      cycles = instructions_->CopyCycles(type, elements / std::max<int64_t>(1, run), run);
    }
    (IsSame(t, step) ? once : needs.compute_cycles) += cycles;
  };
  nmem_bytes = 0;
  for (size_t i = 0; i < steps_.list.size(); ++i) {
    const Step& step = steps_.list[i];
    const std::vector<bool> mask = TileMask(t, i);
    const int64_t elements = TileElements(t, mask);
    const bool is_input = step.tensor != nullptr;
    room[i] = places[i] >= 0 ? room[places[i]] : i;
    auto& [bytes, is_moved] = rooms[room[i]];
    bytes = OnChipBytes(elements, step.type);
    if (!IsSame(t, i)) is_moved = is_moved || is_input || i == steps_.result;
    if (is_input) {
      if (!IsSame(t, i)) needs.moved_bytes += elements * ir::ByteSize(step.type);
      continue;
    }
    const isa::Instruction* form;
    const std::vector<Use> uses = Uses(t, i, form);
    int64_t row = elements;
    for (size_t o = 0; o < uses.size(); ++o) {
      if (uses[o] == Use::kRow) row = TileElements(t, TileMask(t, step.operands[o]));
      if (uses[o] == Use::kSpread) spread(step.operands[o], mask);
    }
    (IsSame(t, i) ? once : needs.compute_cycles) +=
        instructions_->Cycles(*form, elements / std::max<int64_t>(1, row), row);
  }
  for (const auto& [step, space] : rooms) nmem_bytes += space.first * (space.second ? 2 : 1);
  const std::vector<bool> whole = TileMask(t, steps_.result);
  std::vector<bool> all(extents_.size());
  for (size_t d = 0; d < all.size(); ++d) all[d] = TileExtent(t, d) > 1;
  if (whole != all) spread(steps_.result, all);
  const int64_t elements = TileElements(t, all);
  if (extras_.is_stored) needs.moved_bytes += elements * ir::ByteSize(output_.type());
  if (extras_.any()) {
    const int tiles = extras_.sums + extras_.values;
    const int64_t pixels = elements / extents_.back();
    nmem_bytes +=
        tiles * OnChipBytes(pixels * RoundUp(extents_.back(), isa::kVectorGroup), Type::kF32) +
        extras_.sums * OnChipBytes(extents_.back(), Type::kF32);
    needs.compute_cycles += tiles * VectorCycles(card_, elements * ir::ByteSize(Type::kF32));
    once += extras_.RowCycles(*machine_, pixels, extents_.back());
  }
  int64_t outer = 1;
  for (size_t d = 0; d < t.split; ++d) outer *= extents_[d];
  mapping::CostParts cost;
  cost.Phase("once", 1), cost.Lane(), cost.Add("computation", mapping::kVectorUnit, once);
  cost.Append(PipelinedParts(card_, outer * CeilDiv(t.core, t.tile), needs));
  return cost;
}

void ElementwiseGroup::AddRagged(int64_t run, std::vector<Tiling>& tilings) const {
  // Runs and tiles are whole groups of the vector unit.
  const auto fits = [&](int64_t tile) {
    int64_t nmem_bytes;
    Cost({.core = run, .tile = tile}, nmem_bytes);
    return nmem_bytes <= machine_->nmem_bytes();
  };
  int64_t largest = 0;  // in groups
  for (int64_t step = int64_t{1} << 40; step > 0; step /= 2) {
    const int64_t tile = (largest + step) * isa::kVectorGroup;
    if (tile <= run && fits(tile)) largest += step;
  }
  largest *= isa::kVectorGroup;
  if (largest == 0) return;
  // Sizes between a half, a third, ... of the run, and parts of the largest tile.
  std::set<int64_t> sizes;
  const int64_t least = 4 * CeilDiv(run, largest);
  for (int64_t quarters = least; quarters <= least + 24; ++quarters) {
    sizes.insert(RoundUp(CeilDiv(4 * run, quarters), isa::kVectorGroup));
  }
  for (int64_t part = 16; part <= 128; ++part) {
    sizes.insert(RoundUp(largest * part / 128, isa::kVectorGroup));
  }
  for (const int64_t tile : sizes) {
    if (tile > largest) continue;
    const int64_t orders = std::min(machine_->cores_per_cluster(), CeilDiv(run, tile));
    for (int64_t rotation = 0; rotation < orders; ++rotation) {
      const Tiling t = {.core = run, .tile = tile, .rotation = rotation};
      if (!t.is_plain()) tilings.push_back(t);
    }
  }
}

std::vector<std::pair<ElementwiseGroup::Tiling, CardSchedule>> ElementwiseGroup::Tilings(
    bool fitting) const {
  std::vector<Tiling> all;
  for (size_t split = 0; split < (extras_.any() ? 1 : extents_.size()); ++split) {
    const int64_t extent = extents_[split];
    const int64_t run = std::max<int64_t>(1, CeilDiv(extent, machine_->cores()));
    // Single elements fill whole groups of the vector unit.
    const int64_t group = split + 1 == extents_.size() ? isa::kVectorGroup : 1;
    Tiling t = {.split = split, .tile = 0};
    for (const int64_t size : Fractions(run)) {
      const int64_t tile =
          std::min(RoundUp(size, group),
                   extents_.size() == 1 ? RoundUp(size, group) : std::max<int64_t>(1, extent));
      if (tile == t.tile) continue;
      t.tile = tile;
      t.core = RoundUp(run, t.tile);
      all.push_back(t);
    }
    // What all tiles read repeated is as long as a tile, and begins with it.
    const bool all_vary = std::all_of(varies_.begin(), varies_.end(),
                                      [](const std::vector<bool>& varies) { return varies[0]; });
    // Longer chains leave scalar code in rotated ragged tiles (gelu 5x26x89 on 12 cores, tiles of 320).
    const auto computed = std::count_if(steps_.list.begin(), steps_.list.end(),
                                        [](const Step& step) { return step.tensor == nullptr; });
    if (extents_.size() == 1 && all_vary && computed <= 2 && !extras_.any()) {
      AddRagged(RoundUp(run, group), all);
    }
  }
  std::vector<std::pair<Tiling, CardSchedule>> tilings;
  for (const Tiling& t : all) {
    int64_t nmem_bytes;
    CardSchedule schedule;
    schedule.cycles = Cost(t, nmem_bytes).cycles();
    schedule.choice = {
        {"rotate", t.rotation}, {"split", static_cast<int64_t>(t.split)}, {"tile", t.tile}};
    if ((nmem_bytes <= machine_->nmem_bytes()) == fitting)
      tilings.emplace_back(t, std::move(schedule));
  }
  std::sort(tilings.begin(), tilings.end(), [](const auto& a, const auto& b) {
    return std::tuple(!a.first.is_plain(), a.second.cycles, a.second.choice) <
           std::tuple(!b.first.is_plain(), b.second.cycles, b.second.choice);
  });
  return tilings;
}

std::vector<CardSchedule> ElementwiseGroup::Schedules() const {
  std::vector<CardSchedule> schedules;
  for (auto& [tiling, schedule] : Tilings()) schedules.push_back(std::move(schedule));
  return schedules;
}

// Writes the tensors of a tiling and their schedule.
class ElementwiseGroup::Builder {
 public:
  Builder(const ElementwiseGroup& group, const Tiling& tiling)
      : group_(group), t_(tiling), graph_(group.output_.graph()) {}

  absl::StatusOr<ir::Function> Build() {
    const size_t result = group_.steps_.result;
    for (size_t i = 0; i < group_.steps_.list.size(); ++i) values_.push_back(MakeValue(i));
    const std::vector<bool> all = AllInTile();
    const bool is_whole = group_.TileMask(t_, result) == all;
    if (!is_whole) Spread(result, all);
    const Tensor y = graph_.Compute(group_.output_.name(), group_.extents_, [&](const Axes& at) {
      return is_whole ? Element(result, at, Zero()) : SpreadElement(result, all, at);
    });
    Schedule s(y);
    return Program(s, y);
  }

 private:
  struct Value {
    Tensor tensor;  // over the dimensions along which it varies, or of one element
    const isa::Instruction* form = nullptr;
  };
  // Elements repeated for a mask, by way of a few copies of each where that pays.
  struct Copies {
    Tensor few, full;
  };

  std::vector<bool> AllInTile() const {
    std::vector<bool> all(group_.extents_.size());
    for (size_t d = 0; d < all.size(); ++d) all[d] = group_.TileExtent(t_, d) > 1;
    return all;
  }
  Expr Zero() const { return graph_.context().Int(graph_.index_type(), 0); }

  // What belongs to the dimensions of `mask`, of a list for all dimensions; `one` if it has none.
  template <typename T>
  static std::vector<T> Own(const std::vector<bool>& mask, const std::vector<T>& all, T one) {
    std::vector<T> own;
    for (size_t d = 0; d < mask.size(); ++d) {
      if (mask[d]) own.push_back(all[d]);
    }
    if (own.empty()) own.push_back(one);
    return own;
  }
  // The other way round: coordinates for all dimensions from those of `mask`.
  Axes All(const std::vector<bool>& mask, const Axes& own) const {
    Axes all;
    size_t next = 0;
    for (bool has : mask) all.push_back(has ? own[next++] : Zero());
    return all;
  }

  // `one`: the index of a tensor of one element.
  Expr Element(size_t step, const Axes& at, Expr one) const {
    return values_[step].tensor(Own(group_.varies_[step], at, one));
  }

  // The dimensions of the tensor that repeats a step's elements for `mask`. If all tiles share it, its dimensions
  // are those of a tile.
  std::vector<bool> SpreadDimensions(size_t step, std::vector<bool> mask) const {
    for (size_t d = 0; d < mask.size(); ++d) mask[d] = mask[d] || group_.varies_[step][d];
    return mask;
  }
  Expr SpreadElement(size_t step, const std::vector<bool>& mask, const Axes& at) const {
    Axes inside = at;
    if (group_.IsSame(t_, step)) inside[t_.split] = inside[t_.split] % t_.tile;
    return spreads_.at({step, mask}).full(Own(SpreadDimensions(step, mask), inside, Zero()));
  }
  void Spread(size_t step, const std::vector<bool>& mask) {
    if (spreads_.contains({step, mask})) return;
    Copies copies;
    const std::string& name = group_.steps_.list[step].name;
    const std::vector<bool> dimensions = SpreadDimensions(step, mask);
    Shape extents = group_.extents_;
    if (group_.IsSame(t_, step)) extents[t_.split] = t_.tile;
    const Shape shape = Own<int64_t>(dimensions, extents, 1);
    std::function<Expr(const Axes&)> element = [&](const Axes& own) {
      return Element(step, All(dimensions, own), Zero());
    };
    if (group_.RepeatsElements(t_, step, mask)) {
      Shape few = shape;
      few.back() = isa::kVectorGroup;
      copies.few = graph_.Compute(StrCat(name, ".few"), few, element);
      element = [&](const Axes& own) {
        Axes at = own;
        at.back() = at.back() % isa::kVectorGroup;
        return copies.few(at);
      };
    }
    copies.full = graph_.Compute(StrCat(name, ".full"), shape, element);
    spreads_[{step, mask}] = copies;
  }

  Value MakeValue(size_t i) {
    const Step& step = group_.steps_.list[i];
    const std::vector<bool>& varies = group_.varies_[i];
    const Shape shape = Own<int64_t>(varies, group_.extents_, 1);
    if (step.tensor != nullptr) {
      const Operation* input =
          step.tensor->kind == Operation::Kind::kView ? step.tensor->base : step.tensor;
      return {.tensor = graph_.Reshape(Tensor(graph_.state(), input), shape)};
    }
    Value value;
    const std::vector<Use> uses = group_.Uses(t_, i, value.form);
    const std::vector<bool> mask = group_.TileMask(t_, i);
    for (size_t o = 0; o < uses.size(); ++o) {
      if (uses[o] == Use::kSpread) Spread(step.operands[o], mask);
    }
    value.tensor = graph_.Compute(StrCat(step.name, ".", i), shape, [&](const Axes& own) {
      const Axes at = All(varies, own);
      const bool is_one = std::find(varies.begin(), varies.end(), true) == varies.end();
      absl::flat_hash_map<Expr, Expr> elements;
      for (size_t o = 0; o < uses.size(); ++o) {
        const size_t operand = step.operands[o];
        elements[step.elements[o]] = uses[o] == Use::kSpread
                                         ? SpreadElement(operand, mask, at)
                                         : Element(operand, at, is_one ? own[0] : Zero());
      }
      return ir::Replace(step.value, elements);
    });
    return value;
  }

  // On the card each core takes one run and moves it through NMEM in tiles: copy the inputs in, one instruction for
  // each step, copy the output out.
  absl::StatusOr<ir::Function> Program(Schedule& s, const Tensor& y) {
    std::vector<Tensor> on_chip;
    for (size_t i = 0; i < values_.size(); ++i) {
      const bool is_input = group_.steps_.list[i].tensor != nullptr;
      on_chip.push_back(is_input ? s.CacheRead(values_[i].tensor, isa::kNmem) : values_[i].tensor);
    }
    const std::vector<Axis> axes = s[y].leaves();
    auto [core, rest] = s[y].Split(axes[t_.split], t_.core);
    // Cores without a tile would load what others store, if the group works in place.
    const int64_t used = CeilDiv(group_.extents_[t_.split], t_.core);
    auto [cid, tid] = s[y].Split(
        core, std::max<int64_t>(1, std::min(group_.machine_->cores_per_cluster(), used)));
    auto [tile_in_order, element] = s[y].Split(rest, t_.tile);
    const Axis tile =
        t_.rotation > 0 ? s[y].Rotate(tile_in_order, tid, t_.rotation) : tile_in_order;
    std::vector<Axis> order = {cid, tid};
    order.insert(order.end(), axes.begin(), axes.begin() + static_cast<ptrdiff_t>(t_.split));
    order.insert(order.end(), {tile, element});
    s[y].Reorder(order)
        .Bind(cid, isa::kClusterAxis)
        .Bind(tid, isa::kCoreAxis)
        .Pragma(element, "memcpy");
    // The bounds of copies tell the last tile's size, so that there is one program for all tiles. Of a few steps the
    // last tile may have a program of its own, which is faster.
    constexpr size_t kManySteps = 12;
    const bool is_ragged = t_.core % t_.tile != 0;
    if (is_ragged || group_.steps_.list.size() > kManySteps) s[y].Pragma(tile, pragma::kRagged);
    const auto compute = [&, tid = tid](const Tensor& tensor, bool is_same,
                                        std::string_view instruction) {
      s[tensor].ComputeAt(s[y], is_same ? tid : tile).SetScope(isa::kNmem);
      s[tensor].Pragma(s[tensor].leaves()[0], instruction);
    };
    const std::vector<int> places = group_.Places(t_);
    std::vector<bool> is_place(values_.size());
    for (int place : places) {
      if (place >= 0) is_place[place] = true;
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      const bool is_same = group_.IsSame(t_, i);
      const bool is_input = values_[i].form == nullptr;
      compute(on_chip[i], is_same, is_input ? "memcpy" : values_[i].form->family);
      if (places[i] >= 0) s[on_chip[i]].InPlace(on_chip[places[i]]);
      if (!is_same && !is_place[i]) s[on_chip[i]].DoubleBuffer();
    }
    for (const auto& [key, copies] : spreads_) {
      const bool is_same = group_.IsSame(t_, key.first);
      if (copies.few) {
        s[copies.full].Split(s[copies.full].leaves().back(), isa::kVectorGroup);
        compute(copies.few, is_same, "memcpy");
      }
      compute(copies.full, is_same, "memcpy");
    }
    return Lower(s);
  }

  const ElementwiseGroup& group_;
  const Tiling t_;
  Graph graph_;
  std::vector<Value> values_;
  std::map<std::pair<size_t, std::vector<bool>>, Copies> spreads_;
};

absl::StatusOr<ir::Function> ElementwiseGroup::Build(const CardChoice& choice) const {
  for (const auto& [tiling, schedule] : Tilings()) {
    if (schedule.choice == choice) return Builder(*this, tiling).Build();
  }
  return InvalidInput("no such schedule of ", output_.name());
}

absl::StatusOr<mapping::Estimate> ElementwiseGroup::EstimateOf(const CardChoice& choice) const {
  for (const auto& [tiling, schedule] : Tilings()) {
    if (schedule.choice != choice) continue;
    mapping::Estimate estimate = {.kind = "tiles", .cost = {}, .needs = {}};
    estimate.cost = Cost(tiling, estimate.needs.nmem);
    return estimate;
  }
  return InvalidInput("no such schedule of ", output_.name());
}

std::string ElementwiseGroup::WhyNone(const CardChoice& wanted) const {
  int64_t least = INT64_MAX;
  CardChoice nearest;
  for (const auto& [tiling, schedule] : Tilings(/*fitting=*/false)) {
    int64_t nmem_bytes;
    Cost(tiling, nmem_bytes);
    if (!Agrees(schedule.choice, wanted) || nmem_bytes >= least) continue;
    least = nmem_bytes, nearest = schedule.choice;
  }
  if (nearest.empty()) return "";
  return DoesNotFit("nmem", least, machine_->nmem_bytes(), nearest);
}

}  // namespace polynao::te
