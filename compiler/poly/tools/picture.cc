#include "compiler/poly/tools/picture.h"

#include <isl/aff.h>
#include <isl/point.h>
#include <isl/schedule.h>
#include <isl/schedule_node.h>
#include <isl/space.h>
#include <isl/union_map.h>
#include <isl/val.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/ir/text.h"
#include "compiler/poly/fuse/fuse.h"
#include "compiler/poly/fuse/inline.h"
#include "compiler/poly/isl/isl_tools.h"
#include "compiler/poly/isl/tree_text.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/expand.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/model/scop.h"
#include "compiler/poly/order/strategies.h"
#include "compiler/poly/tools/picture_svg.h"
#include "compiler/poly/tools/tree_page.h"
#include "pages/page.h"

namespace polynao::poly {
namespace {

using pages::Escape;

constexpr int kMaxInstances = 2000;
constexpr int kMaxArrows = 4000;

using Coordinates = std::vector<int64_t>;

// The elements of a set without parameters; nothing if there are more than `most`.
std::optional<std::vector<Coordinates>> Points(const isl::set& set, int most) {
  const isl::set flat = isl::manage(isl_set_flatten(set.copy()));
  std::vector<Coordinates> result;
  // A set that is not bounded has no end; count first.
  if (flat.is_empty()) return result;
  if (isl_set_is_bounded(flat.get()) != isl_bool_true) return std::nullopt;
  struct Visit {
    std::vector<isl::point> points;
    size_t most;
  } visit{{}, static_cast<size_t>(most)};
  const isl_stat visited = isl_set_foreach_point(
      flat.get(),
      [](isl_point* point, void* user) {
        Visit* visit = static_cast<Visit*>(user);
        visit->points.push_back(isl::manage(point));
        return visit->points.size() > visit->most ? isl_stat_error : isl_stat_ok;
      },
      &visit);
  if (visited == isl_stat_error) return std::nullopt;
  for (const isl::point& point : visit.points) {
    Coordinates& values = result.emplace_back();
    for (int i = 0; i < Dimensions(flat); ++i) {
      const isl::val value = isl::manage(isl_point_get_coordinate_val(point.get(), isl_dim_set, i));
      values.push_back(isl_val_get_num_si(value.get()));
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

// The parts of the function as the scheduler sees them: for "fuse" and "overlap" without the arrays that are computed
// where they are read; for these and "auto" with arrays in place of scalars, as the dependences that it respects are
// between those.
absl::StatusOr<Extraction> ExtractFor(const ir::Function& function,
                                      const ScheduleOptions& options) {
  ir::Function prepared = function;
  if (IsFusion(options.strategy) && options.inline_stages)
    InlineStages(prepared, options.machine.assumed_extent);
  // Of no strategy's name the scheduler tells.
  const NamedStrategy* strategy = FindStrategy(options.strategy);
  if (strategy != nullptr && strategy->expands_scalars) ExpandScalars(prepared);
  return Extract(prepared);
}

// Panels are no order: what is packed has no schedule tree to show.
ScheduleOptions WithoutPanels(ScheduleOptions options) {
  options.packing = Packing::kNone;
  return options;
}

// The new order of a part, with tiles and marks; for "none" the old one.
absl::StatusOr<isl::schedule> NewSchedule(const Scop& scop, size_t part,
                                          const ScheduleReport& report) {
  if (part >= report.parts.size()) return scop.schedule;
  if (!report.parts[part].changed) {
    return InvalidInput("part '", scop.name, "' is not scheduled: ", report.parts[part].why_not);
  }
  if (!report.parts[part].groups.empty()) {
    return InvalidInput(
        "part '", scop.name,
        "': a picture has one order for all instances; those of fused stages are shown "
        "as trees");
  }
  return ReadTree(scop.isl->ctx(), report.parts[part].tree);
}

std::string NameOf(const ScheduleOptions& options) {
  return options.strategy == "text" ? options.text : options.strategy;
}

// A band around a statement in a schedule tree.
struct Band {
  int first;  // the first of its dimensions in the flattened schedule
  isl::multi_union_pw_aff members;
};

// Outermost first. isl's flattened schedule has a dimension for each member, and one for the place in each sequence.
std::vector<Band> BandsAround(const isl::schedule& schedule, const std::string& statement) {
  std::vector<Band> bands;
  int depth = 0;
  isl::schedule_node node = isl::manage(isl_schedule_get_root(schedule.get()));
  while (isl_schedule_node_n_children(node.get()) > 0) {
    const auto type = isl_schedule_node_get_type(node.get());
    int child = 0;
    if (type == isl_schedule_node_band) {
      bands.push_back(
          {depth, isl::manage(isl_schedule_node_band_get_partial_schedule(node.get()))});
      depth += isl_schedule_node_band_n_member(node.get());
    } else if (type == isl_schedule_node_sequence || type == isl_schedule_node_set) {
      const int count = isl_schedule_node_n_children(node.get());
      if (count > 1) ++depth;
      for (int i = 0; i < count; ++i) {
        const isl::schedule_node filter = isl::manage(isl_schedule_node_get_child(node.get(), i));
        for (const isl::set& set :
             SetsOf(isl::manage(isl_schedule_node_filter_get_filter(filter.get())))) {
          if (TupleName(set) == statement) child = i;
        }
      }
    }
    node = isl::manage(isl_schedule_node_get_child(node.get(), child));
  }
  return bands;
}

// "t + i" for a member { S0[t, i] -> [(t + i)] }; "" if it has pieces.
std::string MemberText(const isl::union_pw_aff& member, const std::string& statement) {
  const isl::union_map graph = isl::manage(isl_union_map_from_union_pw_aff(member.copy()));
  for (const isl::map& map : MapsOf(graph)) {
    if (DomainName(map) != statement) continue;
    const isl::pw_aff pieces =
        isl::manage(isl_union_pw_aff_extract_pw_aff(member.get(), isl_map_get_space(map.get())));
    if (isl_pw_aff_n_piece(pieces.get()) != 1) return "";
    // Without the piece's domain.
    std::string text;
    isl_pw_aff_foreach_piece(
        pieces.get(),
        [](isl_set* domain, isl_aff* value, void* user) {
          isl::manage(domain);
          *static_cast<std::string*>(user) = Text(isl::manage(value));
          return isl_stat_ok;
        },
        &text);
    const size_t begin = text.rfind(" -> [("), end = text.rfind(")] }");
    if (begin == std::string::npos || end + 4 != text.size()) return "";
    return text.substr(begin + 6, end - begin - 6);
  }
  return "";
}

// One statement of a part, and what its picture needs.
class Picture {
 public:
  // `part`: the place of `scop` in the report.
  Picture(const Scop& scop, size_t part, const Statement& statement, const PictureOptions& options,
          const ScheduleReport& report)
      : scop_(scop), part_(part), statement_(statement), options_(options), report_(report) {}

  absl::StatusOr<std::string> Draw();

 private:
  absl::Status FindInstances();
  // The arrows of these dependences between instances in the picture.
  absl::Status AddArrows(const isl::union_map& dependences, bool is_flow);
  // When each instance runs.
  absl::StatusOr<std::vector<Coordinates>> Times(const isl::schedule& schedule) const;
  Panel After(const isl::schedule& schedule, const std::vector<Coordinates>& times) const;
  isl::set At(const isl::set& set) const;

  const Scop& scop_;
  const size_t part_;
  const Statement& statement_;
  const PictureOptions& options_;
  const ScheduleReport& report_;
  isl::set slice_;  // { S0[i, j] } of the picture
  std::vector<Coordinates> instances_;
  std::vector<Arrow> arrows_;
};

// The set for the arguments, without parameters.
isl::set Picture::At(const isl::set& set) const {
  isl::set fixed = set;
  for (const auto& [name, value] : options_.arguments) {
    const int position = isl_set_find_dim_by_name(fixed.get(), isl_dim_param, name.c_str());
    if (position < 0) continue;
    fixed = isl::manage(isl_set_fix_si(fixed.release(), isl_dim_param, position, value));
  }
  return isl::manage(isl_set_project_out_all_params(fixed.release()));
}

absl::Status Picture::FindInstances() {
  const int depth = static_cast<int>(statement_.iterators.size());
  const auto [down, right] = options_.dimensions;
  for (int loop : {down, right}) {
    if (loop < 0 || loop >= depth) {
      return InvalidInput("expected loops 0 to ", depth - 1, " of ", statement_.name, ", found ",
                          loop);
    }
  }
  slice_ = At(statement_.domain.intersect_params(scop_.context));
  if (slice_.is_empty()) {
    return InvalidInput("expected values of the parameters for which ", statement_.name,
                        " runs, found none of its instances");
  }
  // The other loops at the values of the first instance.
  const std::optional<std::vector<Coordinates>> first = Points(slice_.lexmin(), 1);
  if (!first) return InvalidInput("expected finitely many instances of ", statement_.name);
  for (int i = 0; i < depth; ++i) {
    if (i == down || i == right) continue;
    slice_ = isl::manage(isl_set_fix_si(slice_.release(), isl_dim_set, i, (*first)[0][i]));
  }
  const std::optional<std::vector<Coordinates>> points = Points(slice_, kMaxInstances);
  if (!points) {
    return InvalidInput("expected at most ", kMaxInstances, " instances of ", statement_.name,
                        " in a picture, found more; give smaller arguments");
  }
  instances_ = *points;
  return absl::OkStatus();
}

absl::Status Picture::AddArrows(const isl::union_map& dependences, bool is_flow) {
  const size_t depth = statement_.iterators.size();
  for (const isl::map& map : MapsOf(dependences)) {
    if (DomainName(map) != statement_.name || RangeName(map) != statement_.name) continue;
    const isl::set pairs = At(map.wrap());
    const isl::map inside = pairs.unwrap().intersect_domain(slice_).intersect_range(slice_);
    const std::optional<std::vector<Coordinates>> points = Points(inside.wrap(), kMaxArrows);
    if (!points) {
      return InvalidInput("expected at most ", kMaxArrows,
                          " dependences in a picture, found more; give smaller arguments");
    }
    for (const Coordinates& pair : *points) {
      const Coordinates from(pair.begin(), pair.begin() + depth);
      const Coordinates to(pair.begin() + depth, pair.end());
      const auto index = [&](const Coordinates& c) {
        return static_cast<size_t>(std::lower_bound(instances_.begin(), instances_.end(), c) -
                                   instances_.begin());
      };
      arrows_.push_back({index(from), index(to), is_flow});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Coordinates>> Picture::Times(const isl::schedule& schedule) const {
  std::vector<Coordinates> times(instances_.size());
  for (const isl::map& map : MapsOf(schedule.map())) {
    if (DomainName(map) != statement_.name) continue;
    const isl::map fixed = At(map.wrap()).unwrap().intersect_domain(slice_);
    const std::optional<std::vector<Coordinates>> points = Points(fixed.wrap(), kMaxInstances);
    if (!points) return InvalidInput("expected a schedule with one time for each instance");
    const size_t depth = statement_.iterators.size();
    for (const Coordinates& pair : *points) {
      const Coordinates instance(pair.begin(), pair.begin() + depth);
      const size_t index =
          std::lower_bound(instances_.begin(), instances_.end(), instance) - instances_.begin();
      times[index].assign(pair.begin() + depth, pair.end());
    }
  }
  return times;
}

// The innermost dimension of time that differs between instances, and the next one outwards that tells apart what
// the first does not: of [floor(t/4), floor(i/4), t, i], the last two.
std::vector<size_t> AxesOf(const std::vector<Coordinates>& times) {
  std::vector<size_t> differ;
  for (size_t d = 0; d < times[0].size(); ++d) {
    const bool differs = std::any_of(times.begin(), times.end(),
                                     [&](const Coordinates& t) { return t[d] != times[0][d]; });
    if (differs) differ.push_back(d);
  }
  if (differ.size() < 2) return differ;
  const size_t right = differ.back();
  size_t down = differ[differ.size() - 2], most = 0;
  for (size_t k = differ.size() - 1; k-- > 0;) {
    std::set<std::pair<int64_t, int64_t>> places;
    for (const Coordinates& t : times) places.insert({t[differ[k]], t[right]});
    if (places.size() <= most) continue;
    most = places.size();
    down = differ[k];
  }
  return {down, right};
}

// Levels of tiles: what runs between two steps of the loops of a band whose members are more than the axes. Numbers
// go with the order of execution.
std::vector<std::vector<int>> TilesOf(const std::vector<Coordinates>& times,
                                      const std::vector<size_t>& axes,
                                      const std::vector<Band>& bands) {
  std::vector<std::vector<int>> levels;
  for (const Band& band : bands) {
    const size_t first = static_cast<size_t>(band.first);
    size_t end = std::min<size_t>(first + band.members.size(), times[0].size());
    // The innermost loop over tiles.
    const auto is_block = [&](size_t d) {
      return std::find(axes.begin(), axes.end(), d) == axes.end() &&
             std::any_of(times.begin(), times.end(),
                         [&](const Coordinates& t) { return t[d] != times[0][d]; });
    };
    while (end > first && !is_block(end - 1)) --end;
    if (end == first) continue;
    std::map<Coordinates, int> numbers;
    for (const Coordinates& t : times) numbers[Coordinates(t.begin(), t.begin() + end)] = 0;
    if (numbers.size() < 2 || numbers.size() == times.size()) continue;
    int next = 0;
    for (auto& [prefix, number] : numbers) number = next++;
    std::vector<int> level;
    for (const Coordinates& t : times) {
      level.push_back(numbers[Coordinates(t.begin(), t.begin() + end)]);
    }
    if (levels.empty() || level != levels.back()) levels.push_back(std::move(level));
  }
  return levels;
}

Panel Picture::After(const isl::schedule& schedule, const std::vector<Coordinates>& times) const {
  Panel panel;
  panel.title = StrCat("after, by ", NameOf(options_.order));
  const std::vector<size_t> axes = AxesOf(times);
  const std::vector<Band> bands = BandsAround(schedule, statement_.name);
  panel.tiles = TilesOf(times, axes, bands);
  const auto value = [&](size_t i, size_t axis) {
    return axis < axes.size() ? times[i][axes[axis]] : 0;
  };
  const auto name = [&](size_t axis) {
    std::string text;
    for (const Band& band : bands) {
      const int member = static_cast<int>(axis) - band.first;
      if (member < 0 || member >= static_cast<int>(band.members.size())) continue;
      text = MemberText(band.members.at(member), statement_.name);
    }
    return text.empty() ? StrCat("time ", axis) : text;
  };
  panel.down = axes.empty() ? "time" : name(axes[0]);
  panel.right = axes.size() < 2 ? "nothing" : name(axes[1]);
  std::vector<size_t> order(instances_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::tie(times[a], a) < std::tie(times[b], b); });
  panel.order.resize(instances_.size());
  for (size_t i = 0; i < order.size(); ++i) {
    panel.order[order[i]] = static_cast<double>(i) / std::max<size_t>(1, order.size() - 1);
  }
  for (size_t i = 0; i < instances_.size(); ++i) {
    panel.places.emplace_back(value(i, 0), value(i, 1));
  }
  return panel;
}

absl::StatusOr<std::string> Picture::Draw() {
  RETURN_IF_ERROR(FindInstances());
  const Dependences dependences = ComputeDependences(scop_);
  RETURN_IF_ERROR(AddArrows(dependences.flow, true));
  RETURN_IF_ERROR(
      AddArrows(dependences.anti.unite(dependences.output).unite(dependences.reduction), false));
  ASSIGN_OR_RETURN(const isl::schedule schedule, NewSchedule(scop_, part_, report_));
  const auto [down, right] = options_.dimensions;
  Panel before;
  before.title = "before";
  before.down = std::string(statement_.iterators[down].name());
  before.right = std::string(statement_.iterators[right].name());
  for (size_t i = 0; i < instances_.size(); ++i) {
    before.places.emplace_back(instances_[i][down], instances_[i][right]);
    before.order.push_back(static_cast<double>(i) / std::max<size_t>(1, instances_.size() - 1));
  }
  ASSIGN_OR_RETURN(const std::vector<Coordinates> times, Times(schedule));
  const Panel after = After(schedule, times);
  before.tiles = after.tiles;
  std::string title = StrCat(statement_.name, " in '", scop_.name, "'");
  for (const auto& [name, value] : options_.arguments) StrAppend(&title, ", ", name, " = ", value);
  std::vector<std::string> notes;
  if (part_ < report_.parts.size()) notes = report_.parts[part_].lines;
  if (!after.tiles.empty()) {
    notes.emplace_back("Lines are borders of tiles, the numbers their order on one thread.");
  }
  return PanelsSvg({before, after}, arrows_, title, notes);
}

}  // namespace

absl::StatusOr<std::string> InstancesSvg(const ir::Function& function,
                                         const PictureOptions& options) {
  ASSIGN_OR_RETURN(const Extraction extraction, ExtractFor(function, options.order));
  const Scop* part = nullptr;
  const Statement* statement = nullptr;
  std::string names;
  for (const Scop& scop : extraction.scops) {
    for (const Statement& s : scop.statements) {
      StrAppend(&names, names.empty() ? "" : ", ", s.name);
      const bool is_wanted =
          options.statement.empty() ? s.iterators.size() >= 2 : s.name == options.statement;
      if (statement != nullptr || !is_wanted) continue;
      part = &scop;
      statement = &s;
    }
  }
  if (statement == nullptr) {
    return InvalidInput("expected ",
                        options.statement.empty() ? "a statement in two loops"
                                                  : StrCat("statement '", options.statement, "'"),
                        ", found ", names.empty() ? "no static control part" : names);
  }
  for (const Parameter& parameter : part->parameters) {
    if (!options.arguments.contains(parameter.name)) {
      return InvalidInput("expected a value for the parameter '", parameter.name, "', found none");
    }
  }
  for (const auto& [name, value] : options.arguments) {
    const bool is_known = std::any_of(part->parameters.begin(), part->parameters.end(),
                                      [&](const Parameter& p) { return p.name == name; });
    if (!is_known) {
      return InvalidInput("expected a parameter of '", part->name, "', found '", name, "'");
    }
  }
  ir::Function scheduled = function;
  ASSIGN_OR_RETURN(const ScheduleReport report, Schedule(scheduled, WithoutPanels(options.order)));
  const size_t place = static_cast<size_t>(part - extraction.scops.data());
  return Guarded(*part->isl, [&]() -> absl::StatusOr<std::string> {
    return Picture(*part, place, *statement, options, report).Draw();
  });
}

namespace {

constexpr std::string_view kTreeStyle =
    "details, .leaf { margin: 0 0 0 1.4em; border-left: 1px solid var(--line); padding: 2px 0 2px "
    "8px; }\n"
    "summary, .leaf { font: 13px monospace; white-space: pre-wrap; } .band { color: var(--accent); "
    "}\n"
    ".extension { color: #b3572f; } pre { white-space: pre-wrap; }\n";

// "S0   a[i] = b[i] + 1", a line for each statement.
std::string StatementsHtml(const Scop& scop) {
  std::string text;
  for (const Statement& s : scop.statements)
    StrAppend(&text, Text(s.domain), "\n  ", ir::Print(s.code), "\n");
  return StrCat("<details><summary>statements</summary><pre>", Escape(text), "</pre></details>\n");
}

// The tree of the part, or one for each of its groups of stages.
absl::StatusOr<std::string> NewTreesHtml(const Scop& scop, size_t i, const ScheduleReport& report) {
  if (i >= report.parts.size() || report.parts[i].groups.empty()) {
    ASSIGN_OR_RETURN(const isl::schedule schedule, NewSchedule(scop, i, report));
    return TreeHtml(schedule);
  }
  std::string html = "<ul>\n";
  for (const std::string& line : report.parts[i].lines)
    StrAppend(&html, "<li>", Escape(line), "</li>\n");
  html += "</ul>\n";
  for (const GroupReport& group : report.parts[i].groups) {
    StrAppend(&html, "<h4>", Escape(TitleOf(group)), "</h4>\n",
              TreeHtml(ReadTree(scop.isl->ctx(), group.tree)));
  }
  return html;
}

}  // namespace

absl::StatusOr<std::string> TreesHtml(const ir::Function& function,
                                      const ScheduleOptions& options) {
  ASSIGN_OR_RETURN(const Extraction extraction, ExtractFor(function, options));
  ir::Function scheduled = function;
  ASSIGN_OR_RETURN(const ScheduleReport report, Schedule(scheduled, WithoutPanels(options)));
  std::string body;
  for (size_t i = 0; i < extraction.scops.size(); ++i) {
    const Scop& scop = extraction.scops[i];
    RETURN_IF_ERROR(Guarded(*scop.isl, [&]() -> absl::Status {
      ASSIGN_OR_RETURN(const std::string after, NewTreesHtml(scop, i, report));
      StrAppend(&body, "<h2>", Escape(scop.name), "</h2>\n", StatementsHtml(scop),
                "<h3>before</h3>\n", TreeHtml(scop.schedule), "<h3>after, by ",
                Escape(NameOf(options)), "</h3>\n", after);
      return absl::OkStatus();
    }));
  }
  return pages::Page(StrCat("Schedule trees of ", function.name), body, kTreeStyle);
}

}  // namespace polynao::poly
