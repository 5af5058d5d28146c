// The tilings of a contraction group: their text, which of them there are, and the search for the cheapest.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/math.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/te/card/contraction_group.h"
#include "compiler/te/card/tile_cost.h"
#include "isa/granularity.h"

namespace polynao::te {

CardChoice ContractionGroup::ChoiceOf(const Tiling& t) {
  return {{"across", t.across},
          {"ahead", t.ahead},
          {"block", t.block},
          {"channel_clusters", t.channel_clusters},
          {"columns", t.columns},
          {"columns_apart", t.columns_apart},
          {"copies", t.copies},
          {"depth", t.depth},
          {"image_by_smem", t.image_by_smem},
          {"pipelined", t.pipelined},
          {"rotate", t.rotation},
          {"rows", t.rows},
          {"weights_by_smem", t.weights_by_smem}};
}

absl::StatusOr<ContractionGroup::Tiling> ContractionGroup::TilingOf(
    const CardChoice& choice) const {
  const CardChoice names = ChoiceOf({});
  for (const auto& [name, value] : choice) {
    if (!names.contains(name)) {
      return InvalidInput("tiling of ", output_.name(), ": there is no choice ", name);
    }
  }
  for (const auto& [name, value] : names) {
    if (!choice.contains(name)) {
      return InvalidInput("tiling of ", output_.name(), ": ", name, " is missing");
    }
  }
  const auto get = [&choice](std::string_view name) { return choice.find(name)->second; };
  Tiling t = {.channel_clusters = get("channel_clusters"),
              .columns_apart = get("columns_apart"),
              .across = get("across"),
              .block = get("block"),
              .rows = get("rows"),
              .columns = get("columns"),
              .depth = get("depth"),
              .rotation = get("rotate"),
              .ahead = get("ahead"),
              .copies = get("copies"),
              .weights_by_smem = get("weights_by_smem") != 0,
              .image_by_smem = get("image_by_smem") != 0,
              .pipelined = get("pipelined") != 0};
  const bool divides = t.channel_clusters >= 1 && machine().clusters() % t.channel_clusters == 0 &&
                       t.columns_apart >= 1 && t.across >= 1 &&
                       machine().cores_per_cluster() % (t.across * t.columns_apart) == 0;
  if (!divides || t.block < 1 || t.rows < 1 || t.columns < 1 || t.depth < 0) {
    return InvalidInput("tiling of ", output_.name(),
                        ": channel_clusters, or across * columns_apart, ",
                        "is no divisor of the card's clusters or cores, or a size is none");
  }
  int64_t inner = 1;  // A part has whole inner axes.
  const std::vector<ReduceAxis>& axes = levels_[0].contraction.sums->bodies[0].axes;
  const Cut cut = CutOf(axes, t.depth);
  for (size_t d = cut.axis + 1; d < axes.size(); ++d) inner *= axes[d].extent;
  if (t.depth % inner != 0 || axes[cut.axis].extent % cut.places != 0 ||
      t.depth >= levels_[0].contraction.filter_elements) {
    return InvalidInput("tiling of ", output_.name(), ": depth=", t.depth,
                        " is no part of the sums");
  }
  t = Placed(t);
  const std::string why = WhyNot(t);
  if (!why.empty()) return InvalidInput("tiling of ", output_.name(), ": ", why);
  return t;
}

ContractionGroup::Tiling ContractionGroup::Placed(Tiling t) const {
  const int64_t row_clusters = machine().clusters() / t.channel_clusters;
  const int64_t row_cores = machine().cores_per_cluster() / t.across / t.columns_apart;
  t.cluster_rows = CeilDiv(rows(), row_clusters);
  t.cluster_channels =
      t.channel_clusters == 1 ? channels() : Lanes(CeilDiv(channels(), t.channel_clusters));
  t.core_rows = CeilDiv(t.cluster_rows, row_cores);
  t.core_columns = CeilDiv(columns(), t.columns_apart);
  return t;
}

std::string ContractionGroup::WhyNot(const Tiling& t) const {
  const Needs needs = NeedsOf(t);
  const auto too_large = [](std::string_view memory, int64_t bytes, int64_t has) {
    return StrCat(memory, ": ", bytes, " bytes of ", has);
  };
  if (needs.nmem > card_.nmem_bytes) return too_large("nmem", needs.nmem, card_.nmem_bytes);
  if (needs.wmem > card_.wmem_bytes) return too_large("wmem", needs.wmem, card_.wmem_bytes);
  if (needs.smem > card_.smem_bytes) return too_large("smem", needs.smem, card_.smem_bytes);
  return "";
}

int64_t ContractionGroup::Depth() const {
  if (!depth_) depth_ = LeastCut();
  return *depth_;
}

int64_t ContractionGroup::LeastCut() const {
  if (levels_.size() > 1 || extras_.any()) return 0;
  const Contraction& c = levels_[0].contraction;
  const bool can_add =
      target_->instructions->Find(StrCat(c.family, "_acc.", ir::TypeName(c.type))) != nullptr;
  Tiling t = Placed({.block = std::min(channels(), isa::kTensorLanes), .rows = 1, .columns = 1});
  if (!can_add || WhyNot(t).empty()) return 0;
  int64_t inner = c.filter_elements;
  for (const ReduceAxis& axis : c.sums->bodies[0].axes) {
    inner /= axis.extent;
    for (int64_t parts = 1; parts <= axis.extent; ++parts) {
      if (axis.extent % parts != 0) continue;  // A shorter last part would leave scalar code.
      t.depth = axis.extent / parts * inner;
      if (t.depth < c.filter_elements && WhyNot(t).empty()) return t.depth;
    }
  }
  return 0;
}

absl::Status ContractionGroup::CheckSmallestTile() const {
  if (lead() > 0) return absl::OkStatus();  // has no tiles
  int64_t nmem = INT64_MAX, wmem = INT64_MAX;
  for (int64_t sharing = 1; sharing <= machine().clusters(); ++sharing) {
    if (machine().clusters() % sharing != 0) continue;
    Tiling t = Placed({.channel_clusters = sharing, .rows = 1, .columns = 1, .depth = Depth()});
    t.block =
        levels_.size() > 1 ? t.cluster_channels : std::min(t.cluster_channels, isa::kTensorLanes);
    const Needs needs = NeedsOf(t);
    nmem = std::min(nmem, needs.nmem), wmem = std::min(wmem, needs.wmem);
  }
  if (nmem <= machine().nmem_bytes() && wmem <= machine().wmem_bytes()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      StrCat("tensor ", output_.name(), ": its smallest tile does not fit: ", nmem,
             " bytes of nmem and ", wmem, " of wmem; nmem has ", machine().nmem_bytes(),
             " bytes, wmem ", machine().wmem_bytes()));
}

// Visits tilings in three levels: how clusters and cores share the output and how weights come; tiles; their orders. If
// only the first is asked for, branches are visited in the order of their lower bounds, and none whose bound is more
// than the best cost.
class ContractionGroup::TilingSearch {
 public:
  TilingSearch(const ContractionGroup& group, const CardChoice& wanted, bool only_first,
               double limit)
      : group_(group), wanted_(wanted), only_first_(only_first), limit_(limit) {}

  std::vector<CardSchedule> Run() {
    const CardChoice names = ChoiceOf({});
    for (const auto& [name, value] : wanted_) {
      if (!names.contains(name)) return {};
    }
    const int64_t clusters = group_.machine().clusters();
    for (int64_t sharing = 1; sharing <= clusters; ++sharing) {
      if (clusters % sharing == 0) AddCores(sharing);
    }
    std::vector<std::pair<double, size_t>> order;
    for (const Tiling& branch : branches_) {
      order.emplace_back(only_first_ ? group_.AtLeast(branch) : 0, order.size());
    }
    std::sort(order.begin(), order.end());
    for (const auto& [bound, branch] : order) {
      // Of equals the order decides, so that equal bounds are looked at.
      if (only_first_ && bound > limit_) break;
      VisitTiles(branches_[branch]);
    }
    std::sort(found_.begin(), found_.end(), IsBefore);
    return std::move(found_);
  }

  std::pair<double, std::string> NearestMisfit() {
    is_for_misfits_ = true;
    Run();
    return nearest_;
  }

 private:
  void ConsiderMisfit(const Tiling& t, const std::string& why) {
    const Needs needs = group_.NeedsOf(t);
    const isa::Machine& m = group_.machine();
    const auto part = [](int64_t bytes, int64_t has) {
      return static_cast<double>(bytes) / static_cast<double>(has);
    };
    const double times =
        std::max({part(needs.nmem, m.nmem_bytes()), part(needs.wmem, m.wmem_bytes()),
                  part(needs.smem, m.smem_bytes())});
    if (why.empty() || (nearest_.first > 0 && times >= nearest_.first)) return;
    const CardChoice choice = ChoiceOf(t);
    if (Agrees(choice, wanted_)) nearest_ = {times, StrCat(why, " with ", ChoiceText(choice))};
  }

  bool Allows(std::string_view name, int64_t value) const {
    const auto it = wanted_.find(name);
    return it == wanted_.end() || it->second == value;
  }

  void AddCores(int64_t sharing) {
    const int64_t cores = group_.machine().cores_per_cluster();
    for (int64_t across = 1; across <= cores; ++across) {
      if (cores % across != 0) continue;
      for (int64_t apart = 1; apart <= cores / across; ++apart) {
        if (cores / across % apart != 0 || (apart > 1 && apart > group_.columns())) continue;
        const Tiling t =
            group_.Placed({.channel_clusters = sharing, .columns_apart = apart, .across = across});
        if (sharing > 1 && (sharing - 1) * t.cluster_channels >= group_.channels()) continue;
        if (Allows("channel_clusters", sharing) && Allows("across", across) &&
            Allows("columns_apart", apart)) {
          AddBlocks(t);
        }
      }
    }
  }

  void AddBlocks(Tiling t) {
    t.depth = group_.Depth();
    const int64_t most = Lanes(CeilDiv(t.cluster_channels, t.across));
    for (int64_t block = most; block > 0; block -= isa::kTensorLanes) {
      t.block = std::min(block, t.cluster_channels);
      // All cores have channels. A chain has all channels in one block, since each block would compute what is before
      // it.
      if ((t.across - 1) * t.block >= t.cluster_channels) continue;
      if (t.block < t.cluster_channels && group_.levels_.size() > 1) continue;
      for (const auto& [by_smem, pipelined] :
           {std::pair(true, false), {false, false}, {true, true}}) {
        t.weights_by_smem = by_smem, t.pipelined = pipelined;
        if (pipelined && (t.across * t.block >= t.cluster_channels || t.depth > 0)) continue;
        for (const bool image_by_smem : {false, true}) {
          t.image_by_smem = image_by_smem;
          if (image_by_smem && !CanShareImage(t)) continue;
          if (!Allows("block", t.block) || !Allows("weights_by_smem", by_smem) ||
              !Allows("pipelined", pipelined) || !Allows("image_by_smem", image_by_smem)) {
            continue;
          }
          branches_.push_back(t);
        }
      }
    }
  }

  bool CanShareImage(const Tiling& t) const {
    return t.across > 1 && t.across == group_.machine().cores_per_cluster() && t.depth == 0 &&
           group_.levels_.size() == 1;
  }

  void VisitTiles(Tiling t) {
    std::vector<int64_t> columns;
    for (int64_t size = t.core_columns; size > 1; size = CeilDiv(size, 2)) columns.push_back(size);
    columns.push_back(1);
    for (const int64_t rows : Fractions(t.core_rows)) {
      t.rows = rows;
      for (const int64_t size : columns) {
        t.columns = size;
        if (Allows("rows", t.rows) && Allows("columns", t.columns)) VisitOrders(t);
      }
    }
  }

  void VisitOrders(Tiling t) {
    // Rotating rows and columns of tiles together, or clusters, cores and tiles with different numbers of rows, gives
    // bounds that the passes cannot take out of the loops.
    const bool turns = t.columns >= t.core_columns && group_.rows() % t.cluster_rows == 0 &&
                       t.cluster_rows % t.core_rows == 0 && t.core_rows % t.rows == 0;
    const int64_t most_turns = turns ? std::min<int64_t>(CeilDiv(t.core_rows, t.rows) - 1, 3) : 0;
    const int64_t most = group_.CanStay(t) && !t.image_by_smem ? 2 : 0;
    for (t.ahead = 0; t.ahead <= most; ++t.ahead) {
      for (t.rotation = 0; t.rotation <= most_turns; ++t.rotation) {
        for (t.copies = 2; t.copies <= (t.ahead > 0 ? 3 : 2); ++t.copies) Consider(t);
      }
    }
  }

  void Consider(const Tiling& t) {
    const std::string why = group_.WhyNot(t);
    if (is_for_misfits_) return ConsiderMisfit(t, why);
    if (!why.empty()) return;
    const double cycles =
        group_.Cost(t, only_first_ ? limit_ : std::numeric_limits<double>::infinity()).cycles();
    if (only_first_ && cycles > limit_) return;
    CardSchedule schedule = {.choice = ChoiceOf(t), .cycles = cycles};
    if (!Agrees(schedule.choice, wanted_)) return;
    if (!only_first_) {
      found_.push_back(std::move(schedule));
    } else if (found_.empty() || IsBefore(schedule, found_[0])) {
      limit_ = cycles;
      found_ = {std::move(schedule)};
    }
  }

  const ContractionGroup& group_;
  const CardChoice& wanted_;
  const bool only_first_;
  double limit_;
  std::vector<Tiling> branches_;
  std::vector<CardSchedule> found_;
  bool is_for_misfits_ = false;
  std::pair<double, std::string> nearest_ = {0, ""};
};

std::pair<double, std::string> ContractionGroup::NearestTiling(const CardChoice& wanted) const {
  return TilingSearch(*this, wanted, false, 0).NearestMisfit();
}

std::vector<CardSchedule> ContractionGroup::Tilings(const CardChoice& wanted, bool only_first,
                                                    double limit) const {
  return TilingSearch(*this, wanted, only_first, limit).Run();
}

}  // namespace polynao::te
