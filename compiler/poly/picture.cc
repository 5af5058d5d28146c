#include "compiler/poly/picture.h"

#include <isl/point.h>
#include <isl/schedule.h>
#include <isl/schedule_node.h>
#include <isl/val.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "compiler/poly/dependences.h"
#include "compiler/poly/extract.h"
#include "compiler/poly/isl_tools.h"
#include "compiler/poly/schedule.h"
#include "compiler/poly/scop.h"

namespace polynao::poly {
namespace {

constexpr int kMaxInstances = 2000;
constexpr int kMaxArrows = 4000;

using Coordinates = std::vector<int64_t>;

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

// The elements of a set without parameters; nothing if there are more than `most`.
std::optional<std::vector<Coordinates>> Points(const isl::set& set, int most) {
  struct Visit {
    std::vector<Coordinates> points;
    size_t most;
  } visit{{}, static_cast<size_t>(most)};
  const isl::set flat = isl::manage(isl_set_flatten(set.copy()));
  // A set that is not bounded has no end; count first.
  if (flat.is_empty()) return visit.points;
  if (isl_set_is_bounded(flat.get()) != isl_bool_true) return std::nullopt;
  const isl_stat visited = isl_set_foreach_point(
      flat.get(),
      [](isl_point* point, void* user) {
        Visit* visit = static_cast<Visit*>(user);
        Coordinates values;
        const int dimensions =
            isl_space_dim(isl::manage(isl_point_get_space(point)).get(), isl_dim_set);
        for (int i = 0; i < dimensions; ++i) {
          isl_val* value = isl_point_get_coordinate_val(point, isl_dim_set, i);
          values.push_back(isl_val_get_num_si(value));
          isl_val_free(value);
        }
        isl_point_free(point);
        visit->points.push_back(std::move(values));
        return visit->points.size() > visit->most ? isl_stat_error : isl_stat_ok;
      },
      &visit);
  if (visited == isl_stat_error) return std::nullopt;
  std::sort(visit.points.begin(), visit.points.end());
  return visit.points;
}

// The new order: the given one, or that of a strategy.
absl::StatusOr<isl::schedule> NewSchedule(const Scop& scop, const Dependences& dependences,
                                          const PictureOptions& options) {
  if (!options.schedule.empty()) return ParseSchedule(scop, dependences, options.schedule);
  const std::optional<Strategy> strategy = ParseStrategy(options.strategy);
  if (!strategy) {
    return InvalidInput("expected a strategy of none, original, min, smart, max, found '",
                        options.strategy, "'");
  }
  return ComputeSchedule(scop, dependences, *strategy);
}

std::string NewScheduleName(const PictureOptions& options) {
  return options.schedule.empty() ? options.strategy : options.schedule;
}

// Instances at places of a grid.
struct Panel {
  std::string title, down, right;                   // what the axes are
  std::vector<std::pair<int64_t, int64_t>> places;  // of each instance: down, right
  std::vector<double> order;                        // 0 for the first to run, 1 for the last
};

struct Arrow {
  size_t from, to;  // instances
  bool is_flow;
};

class Svg {
 public:
  // Draws a panel with its left side at `left`; returns its right side.
  double Draw(const Panel& panel, const std::vector<Arrow>& arrows, double left);
  std::string Finish(double width, const std::string& title) const;

 private:
  template <typename... Args>
  void Add(const char* format, Args... args) {
    char text[512];
    std::snprintf(text, sizeof text, format, args...);
    body_ += text;
  }

  std::string body_;
  double height_ = 0;
};

double Svg::Draw(const Panel& panel, const std::vector<Arrow>& arrows, double left) {
  constexpr double kTop = 76, kMargin = 44;
  int64_t down_low = panel.places[0].first, down_high = down_low;
  int64_t right_low = panel.places[0].second, right_high = right_low;
  for (const auto& [down, right] : panel.places) {
    down_low = std::min(down_low, down), down_high = std::max(down_high, down);
    right_low = std::min(right_low, right), right_high = std::max(right_high, right);
  }
  const double span =
      static_cast<double>(std::max(down_high - down_low, right_high - right_low) + 1);
  const double cell = std::clamp(420 / span, 2.0, 34.0), radius = std::max(0.8, cell * 0.16);
  auto x = [&](int64_t right) { return left + kMargin + cell * (right - right_low + 0.5); };
  auto y = [&](int64_t down) { return kTop + cell * (down - down_low + 0.5); };
  StrAppend(&body_, "<text class=\"title\" x=\"", left + kMargin, "\" y=\"40\">",
            Escaped(panel.title), "</text>\n");
  StrAppend(&body_, "<text x=\"", left + kMargin, "\" y=\"58\">", Escaped(panel.right),
            " to the right, ", Escaped(panel.down), " down</text>\n");
  // Numbers along the axes, as many as have room.
  const int64_t step = std::max<int64_t>(1, static_cast<int64_t>(24 / cell) + (cell < 24));
  for (int64_t v = right_low; v <= right_high; v += step) {
    Add("<text class=\"axis\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%lld</text>\n", x(v),
        kTop - 3, static_cast<long long>(v));
  }
  for (int64_t v = down_low; v <= down_high; v += step) {
    Add("<text class=\"axis\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%lld</text>\n",
        left + kMargin - 4, y(v) + 4, static_cast<long long>(v));
  }
  for (const Arrow& arrow : arrows) {
    const auto& [d0, r0] = panel.places[arrow.from];
    const auto& [d1, r1] = panel.places[arrow.to];
    const double dx = x(r1) - x(r0), dy = y(d1) - y(d0);
    const double length = std::sqrt(dx * dx + dy * dy);
    if (length == 0) continue;
    // From the rim of a point to the rim of the other.
    const double ux = dx / length * (radius + 1), uy = dy / length * (radius + 1);
    Add("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
        "marker-end=\"url(#%s)\"/>\n",
        arrow.is_flow ? "flow" : "other", x(r0) + ux, y(d0) + uy, x(r1) - ux, y(d1) - uy,
        arrow.is_flow ? "flow" : "other");
  }
  for (size_t i = 0; i < panel.places.size(); ++i) {
    const auto& [down, right] = panel.places[i];
    // From blue to orange.
    const double t = panel.order[i];
    Add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"rgb(%d,%d,%d)\"/>\n", x(right), y(down),
        radius, static_cast<int>(47 + t * 185), static_cast<int>(109 + t * 40),
        static_cast<int>(179 - t * 141));
  }
  height_ = std::max(height_, y(down_high) + cell / 2 + 20);
  return std::max(x(right_high) + cell / 2, left + kMargin + 200) + 16;
}

std::string Svg::Finish(double width, const std::string& title) const {
  auto marker = [](const char* name, const char* color) {
    return StrCat(
        "<marker id=\"", name,
        "\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" markerHeight=\"6\" "
        "orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"",
        color, "\"/></marker>");
  };
  return StrCat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", static_cast<int>(width), "\" height=\"",
      static_cast<int>(height_), "\" viewBox=\"0 0 ", static_cast<int>(width), " ",
      static_cast<int>(height_),
      "\">\n<style>text{font:12px sans-serif;fill:#333}"
      ".title{font-weight:bold}.axis{font-size:10px;fill:#777}"
      ".flow{stroke:#555;stroke-width:1}.other{stroke:#b05050;stroke-width:1;stroke-dasharray:3 2}"
      "</style>\n<defs>",
      marker("flow", "#555"), marker("other", "#b05050"),
      "</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"44\" y=\"18\">",
      Escaped(title), "</text>\n", body_, "</svg>\n");
}

// One statement of a part, and what its picture needs.
class Picture {
 public:
  Picture(const Scop& scop, const Statement& statement, const PictureOptions& options)
      : scop_(scop), statement_(statement), options_(options) {}

  absl::StatusOr<std::string> Draw();

 private:
  absl::Status FindInstances();
  // The arrows of these dependences between instances in the picture.
  absl::Status AddArrows(const isl::union_map& dependences, bool is_flow);
  absl::StatusOr<Panel> After(const isl::schedule& schedule) const;
  isl::set At(const isl::set& set) const;

  const Scop& scop_;
  const Statement& statement_;
  const PictureOptions& options_;
  isl::set slice_;  // { S0[i, j] } of the picture
  std::vector<Coordinates> instances_;
  std::vector<Arrow> arrows_;
};

// The set for the arguments, without parameters.
isl::set Picture::At(const isl::set& set) const {
  isl_set* fixed = set.copy();
  for (const auto& [name, value] : options_.arguments) {
    const int position = isl_set_find_dim_by_name(fixed, isl_dim_param, name.c_str());
    if (position >= 0) fixed = isl_set_fix_si(fixed, isl_dim_param, position, value);
  }
  return isl::manage(
      isl_set_project_out(fixed, isl_dim_param, 0, isl_set_dim(fixed, isl_dim_param)));
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

absl::StatusOr<Panel> Picture::After(const isl::schedule& schedule) const {
  Panel panel;
  panel.title = StrCat("after, by ", NewScheduleName(options_));
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
  // The members that differ between instances; the first two are the axes.
  std::vector<size_t> axes;
  for (size_t d = 0; d < times[0].size() && axes.size() < 2; ++d) {
    const bool differs = std::any_of(times.begin(), times.end(),
                                     [&](const Coordinates& t) { return t[d] != times[0][d]; });
    if (differs) axes.push_back(d);
  }
  auto value = [&](size_t i, size_t axis) { return axis < axes.size() ? times[i][axes[axis]] : 0; };
  panel.down = axes.empty() ? "time" : StrCat("time ", axes[0]);
  panel.right = axes.size() < 2 ? "nothing" : StrCat("time ", axes[1]);
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
  ASSIGN_OR_RETURN(const isl::schedule schedule, NewSchedule(scop_, dependences, options_));
  const auto [down, right] = options_.dimensions;
  Panel before;
  before.title = "before";
  before.down = std::string(statement_.iterators[down].name());
  before.right = std::string(statement_.iterators[right].name());
  for (size_t i = 0; i < instances_.size(); ++i) {
    before.places.emplace_back(instances_[i][down], instances_[i][right]);
    before.order.push_back(static_cast<double>(i) / std::max<size_t>(1, instances_.size() - 1));
  }
  ASSIGN_OR_RETURN(const Panel after, After(schedule));
  Svg svg;
  const double middle = svg.Draw(before, arrows_, 0);
  const double end = svg.Draw(after, arrows_, middle);
  std::string title = StrCat(scop_.name, "   ", statement_.name);
  for (const auto& [name, value] : options_.arguments) StrAppend(&title, ", ", name, " = ", value);
  return svg.Finish(end, title);
}

// A schedule tree as nested elements that open and close.
std::string NodeHtml(const isl::schedule_node& node) {
  std::string head, css;
  switch (isl_schedule_node_get_type(node.get())) {
    case isl_schedule_node_band: {
      css = "band";
      head = StrCat("band ",
                    Text(isl::manage(isl_schedule_node_band_get_partial_schedule(node.get()))));
      const int members = isl_schedule_node_band_n_member(node.get());
      std::string coincident;
      for (int i = 0; i < members; ++i) {
        StrAppend(&coincident, i == 0 ? "" : ", ",
                  isl_schedule_node_band_member_get_coincident(node.get(), i) == isl_bool_true
                      ? "parallel"
                      : "in order");
      }
      StrAppend(
          &head, "  (", coincident,
          isl_schedule_node_band_get_permutable(node.get()) == isl_bool_true ? "; permutable" : "",
          ")");
      break;
    }
    case isl_schedule_node_domain:
      head = StrCat("domain ", Text(isl::manage(isl_schedule_node_domain_get_domain(node.get()))));
      break;
    case isl_schedule_node_filter:
      head = StrCat("filter ", Text(isl::manage(isl_schedule_node_filter_get_filter(node.get()))));
      break;
    case isl_schedule_node_sequence:
      head = "sequence: one after the other";
      break;
    case isl_schedule_node_set:
      head = "set: in any order";
      break;
    case isl_schedule_node_leaf:
      return "";
    default:
      head = "node";
  }
  std::string children;
  const int count = isl_schedule_node_n_children(node.get());
  for (int i = 0; i < count; ++i) {
    children += NodeHtml(isl::manage(isl_schedule_node_get_child(node.get(), i)));
  }
  if (children.empty()) {
    return StrCat("<div class=\"leaf ", css, "\">", Escaped(head), "</div>\n");
  }
  return StrCat("<details open><summary class=\"", css, "\">", Escaped(head), "</summary>\n",
                children, "</details>\n");
}

std::string TreeHtml(const isl::schedule& schedule) {
  return NodeHtml(isl::manage(isl_schedule_get_root(schedule.get())));
}

}  // namespace

absl::StatusOr<std::string> InstancesSvg(const ir::Function& function,
                                         const PictureOptions& options) {
  ASSIGN_OR_RETURN(const Extraction extraction, Extract(function));
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
  return Guarded(*part->isl, [&]() -> absl::StatusOr<std::string> {
    return Picture(*part, *statement, options).Draw();
  });
}

absl::StatusOr<std::string> TreesHtml(const ir::Function& function, const PictureOptions& options) {
  ASSIGN_OR_RETURN(const Extraction extraction, Extract(function));
  std::string page =
      StrCat("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>", Escaped(function.name),
             "</title>\n<style>body{font:14px sans-serif;margin:2em;color:#222}"
             "details,.leaf{margin-left:1.4em;border-left:1px solid #ccd;padding:2px 0 2px 8px}"
             "summary,.leaf{font-family:monospace;white-space:pre-wrap}.band{color:#2f6db3}"
             "</style></head><body>\n<h1>Schedule trees of ",
             Escaped(function.name), "</h1>\n");
  for (const Scop& scop : extraction.scops) {
    RETURN_IF_ERROR(Guarded(*scop.isl, [&]() -> absl::Status {
      const Dependences dependences = ComputeDependences(scop);
      ASSIGN_OR_RETURN(const isl::schedule schedule, NewSchedule(scop, dependences, options));
      StrAppend(&page, "<h2>", Escaped(scop.name), "</h2>\n<h3>before</h3>\n",
                TreeHtml(scop.schedule), "<h3>after, by ", Escaped(NewScheduleName(options)),
                "</h3>\n", TreeHtml(schedule));
      return absl::OkStatus();
    }));
  }
  return page + "</body></html>\n";
}

}  // namespace polynao::poly
