#include "compiler/te/card/vector_group.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"
#include "compiler/ir/visit.h"
#include "compiler/te/card/tile_cost.h"
#include "isa/granularity.h"

namespace polynao::te {

using ir::ExprKind;
using Kind = VectorNode::Kind;
using Operand = VectorNode::Operand;

absl::StatusOr<VectorGroup> VectorGroup::Create(const Tensor& output,
                                                const LaneInstructions& instructions,
                                                const isa::Machine& machine, bool products,
                                                const FlatTiles& flat, bool reuses) {
  VectorGroup group(output, instructions, machine, flat, reuses);
  if (output.rank() == 0) {
    return InvalidInput("tensor ", output.name(), ": expected one dimension or more");
  }
  ASSIGN_OR_RETURN(group.nodes_, CutIntoNodes(output, instructions, products));
  group.ReadIndices();
  group.FindFollowed();
  group.FindOuter();
  if (products && !group.has_products_) {
    return absl::UnimplementedError(StrCat("tensor ", output.name(), ": it has no products"));
  }
  RETURN_IF_ERROR(group.FindReducers());
  group.parted_ = group.FindParted();
  group.FindTurns();
  group.ranked_ = group.Ranked();
  if (!group.ranked_.empty()) return group;
  return absl::ResourceExhaustedError(StrCat(
      "tensor ", output.name(), ": its smallest tile does not fit; nmem has ", machine.nmem_bytes(),
      " bytes", group.has_products_ ? StrCat(", wmem ", machine.wmem_bytes()) : std::string()));
}

void VectorGroup::FindOuter() {
  for (size_t i = 0; i < nodes_.list.size(); ++i) {
    const VectorNode& node = nodes_.list[i];
    if (node.kind != Kind::kProduct) continue;
    has_products_ = true;
    for (int d : node.operands[1].dimensions) {
      if (d >= 0 && d < static_cast<int>(node.shape.size())) outer_ |= dimension_follows_[i][d];
    }
  }
  // All is the same along a dimension of one element.
  for (size_t d = 0; d < output_.rank(); ++d) {
    if (output_.shape()[d] == 1) outer_ &= ~(uint64_t{1} << d);
  }
}

void VectorGroup::ReadIndices() {
  indices_.resize(nodes_.list.size());
  for (size_t i = 0; i < nodes_.list.size(); ++i) {
    const VectorNode& node = nodes_.list[i];
    if (node.kind != Kind::kCopy) continue;
    for (Expr e : node.load.operands()) {
      const arith::LinearForm form = arith::Decompose(e);
      Index& index = indices_[i].emplace_back();
      index.constant = form.constant();
      for (const Expr axis : node.axes) {
        index.coefficients.push_back(form.CoefficientOf(axis));
        index.uses.push_back(ir::UsesVar(e, axis));
      }
      index.bends.resize(node.axes.size());
      if (e.Is(ir::ExprKind::kDiv) || e.Is(ir::ExprKind::kMod)) {
        const auto axis = std::find(node.axes.begin(), node.axes.end(), e.operand(0));
        if (axis != node.axes.end() && e.operand(1).Is(ir::ExprKind::kIntImm)) {
          (e.Is(ir::ExprKind::kDiv) ? index.divides : index.wraps) =
              static_cast<int>(axis - node.axes.begin());
          index.parts = e.operand(1).int_value();
        }
      }
      for (const arith::LinearForm::Term& term : form.terms()) {
        const bool is_axis =
            std::find(node.axes.begin(), node.axes.end(), term.atom) != node.axes.end();
        if (is_axis) continue;
        index.is_linear = false;
        for (size_t a = 0; a < node.axes.size(); ++a) {
          if (ir::UsesVar(term.atom, node.axes[a])) index.bends[a] = true;
        }
      }
    }
  }
}

void VectorGroup::FindTurns() {
  for (size_t i = 0; i < nodes_.list.size(); ++i) {
    const VectorNode& node = nodes_.list[i];
    if (node.kind != Kind::kCopy || node.pads() || node.reduction >= 0) continue;
    // Beside products only weights: others have whole groups of lanes.
    const bool is_weights = std::all_of(readers_[i].begin(), readers_[i].end(), [&](size_t reader) {
      return nodes_.list[reader].kind == Kind::kProduct &&
             nodes_.list[reader].operands[0].node != i;
    });
    if (has_products_ && !is_weights) continue;
    // Each axis is an index, and the last one is not the last index.
    std::vector<int> of_axis(node.axes.size(), -1);
    bool permutes = true;
    for (size_t k = 0; k < indices_[i].size(); ++k) {
      const Index& index = indices_[i][k];
      const auto used = std::count(index.uses.begin(), index.uses.end(), true);
      permutes = permutes && index.is_linear && used <= 1;
      for (size_t d = 0; d < node.axes.size(); ++d) {
        if (!index.uses[d]) continue;
        permutes = permutes && index.coefficients[d] == 1 && of_axis[d] < 0;
        of_axis[d] = static_cast<int>(k);
      }
    }
    permutes = permutes && std::count(of_axis.begin(), of_axis.end(), -1) == 0;
    const int last = static_cast<int>(indices_[i].size()) - 1;
    if (!permutes || std::count(of_axis.begin(), of_axis.end(), last) == 0 ||
        of_axis.back() == last) {
      continue;
    }
    if (const auto* by = instructions_->Transpose(node.type)) turns_[i] = by;
  }
}

void VectorGroup::FindFollowed() {
  const auto& list = nodes_.list;
  readers_.resize(list.size());
  std::vector<std::vector<uint64_t>>& follows = dimension_follows_;
  follows.resize(list.size());
  for (size_t i = 0; i < list.size(); ++i) follows[i].resize(list[i].shape.size());
  for (size_t d = 0; d < nodes_.result.dimensions.size(); ++d) {
    follows[nodes_.result.node][d] |= uint64_t{1} << nodes_.result.dimensions[d];
  }
  follows_.resize(list.size());
  for (size_t i = list.size(); i-- > 0;) {
    const VectorNode& node = list[i];
    for (uint64_t bits : follows[i]) follows_[i] |= bits;
    for (const Operand& operand : node.operands) {
      readers_[operand.node].push_back(i);
      std::vector<uint64_t>& below = follows[operand.node];
      for (size_t k = 0; k < below.size(); ++k) {
        if (node.kind != Kind::kCopy) {
          const int d = operand.dimensions[k];
          const bool is_own = d >= 0 && d < static_cast<int>(node.shape.size());
          below[k] |= is_own ? follows[i][d] : 0;
          continue;
        }
        for (size_t d = 0; d < node.axes.size(); ++d) {
          if (indices_[i][k].uses[d]) below[k] |= follows[i][d];
        }
      }
    }
  }
}

absl::Status VectorGroup::FindReducers() {
  reducers_.resize(nodes_.list.size());
  for (size_t i = 0; i < nodes_.list.size(); ++i) {
    const VectorNode& node = nodes_.list[i];
    if (node.kind != Kind::kReduce) continue;
    ir::Context& c = *output_.graph()->context;
    const Expr a = c.Load(c.NewBuffer("a", node.type, {}), {});
    const Expr b = c.Load(c.NewBuffer("b", node.type, {}), {});
    const ExprKind kind = node.reducer == Reducer::kSum   ? ExprKind::kAdd
                          : node.reducer == Reducer::kMin ? ExprKind::kMin
                                                          : ExprKind::kMax;
    const std::vector<LaneMatch> matches = instructions_->Find(c.Binary(kind, a, b));
    const auto combine = std::find_if(matches.begin(), matches.end(), [](const LaneMatch& match) {
      return !match.row && match.operands.size() == 2;
    });
    if (combine != matches.end()) reducers_[i].combine = combine->instruction;
    reducers_[i].row = instructions_->RowReduction(kind, node.type);
    if (reducers_[i].combine == nullptr && reducers_[i].row == nullptr) {
      return InvalidInput("tensor ", node.name, ": the card has no instruction that reduces ",
                          ir::TypeName(node.type));
    }
  }
  return absl::OkStatus();
}

int VectorGroup::FindParted() const {
  if (has_products_) return -1;
  int reduction = -1;
  for (size_t i = 0; i < nodes_.list.size(); ++i) {
    if (nodes_.list[i].kind != Kind::kReduce) continue;
    if (reduction >= 0) return -1;
    reduction = static_cast<int>(i);
  }
  if (reduction < 0) return -1;
  // All that it reads is computed for it alone: inputs and what stands in its loops.
  for (size_t i = 0; i < static_cast<size_t>(reduction); ++i) {
    const VectorNode& node = nodes_.list[i];
    const bool is_alone = std::all_of(readers_[i].begin(), readers_[i].end(), [&](size_t reader) {
      return static_cast<int>(reader) == reduction || nodes_.list[reader].reduction == reduction;
    });
    if (!is_alone || (node.kind != Kind::kInput && node.reduction != reduction)) return -1;
  }
  return reduction;
}

bool VectorGroup::MayComputeFirst() const {
  bool has_lanes = false;
  for (const VectorNode& node : nodes_.list) {
    if (node.reduction < 0) continue;
    if (node.kind != Kind::kLane && node.kind != Kind::kCopy) return false;
    has_lanes = has_lanes || node.kind == Kind::kLane;
  }
  return has_lanes;
}

namespace {

// A few sizes of tiles for a run of n: all, a half, a third, a quarter, a sixth, ...
std::vector<int64_t> Parts(int64_t n) {
  std::vector<int64_t> sizes;
  for (int64_t parts = 1; parts <= n; parts += parts < 4 ? 1 : parts / 2) {
    const int64_t size = CeilDiv(n, parts);
    if (sizes.empty() || sizes.back() != size) sizes.push_back(size);
  }
  if (!sizes.empty() && sizes.back() != 1) sizes.push_back(1);
  return sizes;
}

}  // namespace

std::vector<int64_t> VectorGroup::CoresAcross(size_t split) const {
  const int64_t clusters = machine_->clusters(), cores = machine_->cores_per_cluster();
  std::vector<int64_t> across = Divisors(cores);
  // All cores of several clusters where there are not as many runs as clusters, or one more round for a few.
  if (output_.shape()[split] % clusters == 0 || channels_ != 0) return across;
  for (const int64_t together : Divisors(clusters)) {
    if (together > 1) across.push_back(together * cores);
  }
  return across;
}

std::vector<VectorGroup::Tiling> VectorGroup::SharedOutputs() const {
  const Shape& shape = output_.shape();
  const size_t last = shape.size() - 1;
  std::vector<Tiling> ways;
  // Flat windows run through all columns that a core has.
  const auto is_columns = [&](size_t d) { return channels_ > 0 && d + 2 == shape.size(); };
  for (size_t split = 0; split < shape.size(); ++split) {
    // Along the first dimension at least, be it of one element.
    if ((shape[split] == 1 && split > 0) || is_columns(split)) continue;
    for (const int64_t across : CoresAcross(split)) {
      for (size_t apart = 0; apart < shape.size(); ++apart) {
        // No other dimension is shared.
        if (across == 1 ? apart != split : apart == split) continue;
        // Parts of rows in several clusters would begin between groups of the vector unit.
        if (across > machine_->cores_per_cluster() && (apart == last || split == last)) continue;
        const bool shares_channels = channels_ > 0 && across > 1 && apart == last;
        // The last core may have fewer than the others, but some.
        const int64_t part = CeilDiv(shape[apart], across);
        if (across > 1 && !shares_channels && (across - 1) * part >= shape[apart]) continue;
        const bool has_rest = across > 1 && shape[apart] % across != 0;
        if (has_rest && !shares_channels && (channels_ > 0 || apart == last)) continue;
        if (channels_ > 0 && (is_columns(apart) ? part : shape[last - 1]) != flat_.columns)
          continue;
        if (channels_ == kFew && across > 1 && split > 0) continue;
        Tiling t = {.split = split, .apart = apart, .across = across, .core = shape, .tile = {}};
        const int64_t runs = machine_->clusters() * machine_->cores_per_cluster() / across;
        t.core[split] = CeilDiv(shape[split], runs);
        if (across > 1) t.core[apart] = part;
        if (channels_ > 0) {
          // Rows of any length are flat (flat_windows.h); the last core may have fewer channels than the others.
          if (CeilDiv(shape[last], channels_) != (shares_channels ? across : 1)) continue;
          t.core[last] = std::min(channels_, shape[last]);
        } else if (across > 1 && apart == last && t.core[last] % isa::kVectorGroup != 0 &&
                   !OnlyCopies()) {
          continue;
        }
        ways.push_back(t);
        // Rows become columns in boxes of one size, and of longer ones come longer segments: fewer cores may share the
        // output, without a rest.
        const int64_t of_cluster = std::max<int64_t>(1, machine_->cores_per_cluster() / across);
        const bool turns = !turns_.empty() && !has_products_;
        for (int64_t used = runs; turns && used >= of_cluster; used -= of_cluster) {
          if (shape[split] % used != 0 || shape[split] / used == t.core[split]) continue;
          ways.push_back(t);
          ways.back().core[split] = shape[split] / used;
        }
        if (split < last || channels_ > 0) continue;
        // Single elements fill whole groups of the vector unit; and one core alone leaves no gaps.
        const int64_t groups = std::min(RoundUp(t.core[last], isa::kVectorGroup), shape[last]);
        if (groups != t.core[last]) {
          t.core[last] = groups;
          ways.push_back(t);
        }
        if (across > 1 || shape[last] % groups == 0) continue;
        t.core[last] = shape[last];
        ways.push_back(std::move(t));
      }
    }
  }
  return ways;
}

std::vector<int64_t> VectorGroup::TileSizes(const Tiling& way, size_t d) const {
  const int64_t core = way.core[d];
  const bool is_last = d + 1 == way.core.size();
  if (IsOuter(d) && !is_last) return {1};
  if (channels_ > 0 && d + 2 >= way.core.size()) return {core};
  std::vector<int64_t> sizes;
  const auto suits = [&](int64_t size) {
    return channels_ <= 0 || d + 3 != way.core.size() ||
           (flat_.least_rows <= size && size <= flat_.most_rows);
  };
  if (d == way.split) {
    // Of single elements whole groups of the vector unit too.
    std::set<int64_t, std::greater<>> all;
    for (const int64_t part : Parts(core)) {
      all.insert(part);
      if (is_last) all.insert(std::min(RoundUp(part, isa::kVectorGroup), core));
    }
    std::copy_if(all.begin(), all.end(), std::back_inserter(sizes), suits);
    return sizes;
  }
  // Others divide what a core has.
  sizes = Divisors(core);
  std::reverse(sizes.begin(), sizes.end());
  std::erase_if(sizes, [&](int64_t size) { return !suits(size); });
  if (is_last && !OnlyCopies()) {
    std::erase_if(sizes, [&](int64_t n) { return n < core && n % isa::kVectorGroup != 0; });
  }
  return sizes;
}

// Behind so many sizes of a dimension that are no better than a larger one, smaller ones are not looked at; nor where
// one takes so many times the cycles of the best tiling of all.
constexpr int kNoBetter = 3;
constexpr double kFarBehind = 5;

std::vector<std::pair<VectorGroup::Tiling, double>> VectorGroup::AllTilings(bool fitting) const {
  std::vector<std::pair<Tiling, double>> tilings;
  bool may_along = false, may_combine = true;
  for (size_t i = 0; i < nodes_.list.size(); ++i) {
    if (nodes_.list[i].kind != Kind::kReduce) continue;
    may_along = true;
    may_combine = may_combine && reducers_[i].combine != nullptr;
  }
  for (size_t i = 0; i < nodes_.list.size(); ++i) {
    const bool is_reduce = nodes_.list[i].kind == Kind::kReduce;
    if (!is_reduce) continue;
    // Rows of windows are copied together element by element, which pays for few channels alone.
    const VectorNode& operand = nodes_.list[nodes_.list[i].operands[0].node];
    const bool is_window = operand.kind == Kind::kCopy && operand.reduction >= 0;
    const bool is_wide = output_.shape().back() >= isa::kVectorGroup && reducers_[i].combine;
    if (reducers_[i].row == nullptr || (is_window && is_wide)) may_along = false;
  }
  // Tiles by extents: all of the last dimension, then of the one before, ...; what fits is not made smaller in vain.
  // Returns the least cycles of those that fit.
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double best = kNone;
  const auto add = [&](const auto& self, Tiling& t, size_t d) -> double {
    if (d == 0) {
      const Layout layout = LayoutOf(t);
      const bool fits = Fits(layout.needs);
      const double cycles = fits == fitting ? layout.cost.cycles() : 0;
      if (fits == fitting) tilings.emplace_back(t, cycles);
      return fits ? cycles : kNone;
    }
    double least = kNone;
    int more = 0, no_better = 0;
    for (const int64_t size : TileSizes(t, d - 1)) {
      t.tile[d - 1] = size;
      const double cycles = self(self, t, d - 1);
      if (fitting && cycles >= least && least != kNone && ++no_better > kNoBetter) break;
      least = std::min(least, cycles);
      if (fitting && cycles != kNone && cycles > kFarBehind * best) break;
      best = std::min(best, cycles);
      if (least != kNone && ++more > 4 && d > 1) break;
    }
    return least;
  };
  std::vector<Tiling> ways = SharedOutputs();
  if (card_.cores > 1 && !has_products_ && channels_ != kFew) {
    for (size_t i = 0, n = ways.size(); i < n; ++i) {
      // By one piece it comes sooner where cores have a part of each row, or groups of a part, or read the same rows.
      const Tiling way = ways[i];
      // Parts of rows meet there as longer ones.
      const bool joins_parts = way.split > 0 && OnlyCopies();
      if ((way.split > 0 && !joins_parts) || (way.across > 1 && way.apart + 2 < output_.rank())) {
        continue;
      }
      if (way.across > card_.cores) continue;
      int64_t last = 0;
      for (const int64_t turns : {1, 2, 4}) {
        Tiling by_smem = way;
        by_smem.smem = 1;
        int64_t& core = by_smem.core[way.split];
        core = CeilDiv(core, turns);
        if (core == last) continue;
        last = core;
        // Pieces of one size: guards inside of shorter ones would leave scalar code. Around the only row of a core with
        // flat windows they do not.
        const int64_t piece = core * RunsOfCluster(by_smem);
        const int64_t rows = output_.shape()[way.split];
        const bool may_end_early = core == 1 && channels_ > 0;
        if ((rows % piece != 0 && !may_end_early) || CeilDiv(rows, piece) % Turns(by_smem) != 0) {
          continue;
        }
        ways.push_back(by_smem);
        if (!joins_parts && (way.across == 1 || turns_.empty())) continue;
        by_smem.smem = 2;
        ways.push_back(std::move(by_smem));
      }
    }
  }
  // Halos of columns that cores load themselves cross GMEM more often.
  const size_t columns = output_.rank() < 2 ? 0 : output_.rank() - 2;
  std::erase_if(ways, [&](const Tiling& way) {
    return channels_ > 0 && flat_.columns < output_.shape()[columns] && way.smem != 1;
  });
  for (Tiling& way : ways) {
    way.tile = way.core;
    if (may_along) {
      way.along = true;
      add(add, way, way.tile.size());
      way.along = false;
    }
    if (!may_combine) continue;
    for (const bool first : {false, true}) {
      if (first && !MayComputeFirst()) continue;
      way.first = first;
      const Shape none = {0};
      for (const int64_t part : parted_ < 0 ? none : Parts(nodes_.list[parted_].reduced[0])) {
        // A cluster's piece has all that its cores reduce.
        if (way.smem && part > 0 && part < nodes_.list[parted_].reduced[0]) continue;
        way.part = part;
        add(add, way, way.tile.size());
      }
      way.part = 0;
    }
    way.first = false;
  }
  return tilings;
}

CardChoice VectorGroup::ChoiceOf(const Tiling& t) const {
  CardChoice choice = {{"split", static_cast<int64_t>(t.split)},
                       {"apart", static_cast<int64_t>(t.apart)},
                       {"across", t.across},
                       {"core", t.core[t.split]},
                       {"along", t.along},
                       {"first", t.first},
                       {"part", t.part},
                       {"smem", t.smem}};
  for (size_t d = 0; d < t.tile.size(); ++d) choice[StrCat("tile", d)] = t.tile[d];
  return choice;
}

std::vector<std::pair<VectorGroup::Tiling, CardSchedule>> VectorGroup::Ranked() const {
  std::vector<std::pair<Tiling, CardSchedule>> tilings;
  for (auto& [tiling, cycles] : AllTilings()) {
    tilings.emplace_back(tiling, CardSchedule{ChoiceOf(tiling), cycles});
  }
  std::sort(tilings.begin(), tilings.end(),
            [](const auto& a, const auto& b) { return IsBefore(a.second, b.second); });
  return tilings;
}

const VectorGroup::Tiling* VectorGroup::Find(const CardChoice& choice) const {
  for (const auto& [tiling, schedule] : ranked_) {
    if (schedule.choice == choice) return &tiling;
  }
  return nullptr;
}

absl::StatusOr<mapping::Estimate> VectorGroup::EstimateOf(const CardChoice& choice) const {
  const Tiling* t = Find(choice);
  if (t == nullptr) return InvalidInput("no such schedule of ", output_.name());
  const Layout layout = LayoutOf(*t);
  return mapping::Estimate{.kind = t->smem    ? "clusters by SMEM"
                                   : t->along ? "rows side by side"
                                              : "tiles",
                           .cost = layout.cost,
                           .needs = layout.needs};
}

std::string VectorGroup::WhyNone(const CardChoice& wanted) const {
  int64_t least = kTooMuch;
  std::string nearest;
  for (const auto& [t, cycles] : AllTilings(/*fitting=*/false)) {
    const CardChoice choice = ChoiceOf(t);
    const mapping::Needs needs = LayoutOf(t).needs;
    if (!Agrees(choice, wanted) || needs.nmem + needs.wmem + needs.smem >= least) continue;
    least = needs.nmem + needs.wmem + needs.smem;
    const isa::Machine& m = *machine_;
    nearest = needs.nmem > m.nmem_bytes() ? DoesNotFit("nmem", needs.nmem, m.nmem_bytes(), choice)
              : needs.wmem > m.wmem_bytes()
                  ? DoesNotFit("wmem", needs.wmem, m.wmem_bytes(), choice)
                  : DoesNotFit("smem", needs.smem, m.smem_bytes(), choice);
  }
  return nearest;
}

std::vector<CardSchedule> VectorGroup::Schedules() const {
  std::vector<CardSchedule> schedules;
  for (const auto& [tiling, schedule] : ranked_) schedules.push_back(schedule);
  return schedules;
}

}  // namespace polynao::te
