#include "sweep/axis.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"
#include "isa/machine_rows.h"
#include "isa/parameter_file.h"

namespace polynao::sweep {
namespace {

// The least number of letters to change, add or leave out.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// Up to three parameters with names like `name`.
std::string NamesNear(const isa::Machine& machine, std::string_view name) {
  std::vector<std::pair<size_t, std::string>> names;
  const auto add = [&](const std::string& known) {
    size_t distance = EditDistance(name, known);
    // "nmem_kib" for "core.nmem_kib".
    if (known.ends_with(StrCat(".", name))) distance = 0;
    names.emplace_back(distance, known);
  };
  for (const auto& [known, value] : machine.parameters()) add(known);
  for (const auto& [known, value] : machine.texts()) add(known);
  std::sort(names.begin(), names.end());
  std::vector<std::string> near;
  for (size_t i = 0; i < names.size() && i < 3; ++i) near.push_back(names[i].second);
  return absl::StrJoin(near, ", ");
}

}  // namespace

absl::StatusOr<Axis> ParseAxis(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return InvalidInput("axis '", text, "': expected NAME=VALUE,VALUE,..");
  }
  Axis axis;
  axis.name = text.substr(0, equals);
  axis.values = absl::StrSplit(ToAbsl(text.substr(equals + 1)), ',');
  std::set<std::string> seen;
  for (const std::string& value : axis.values) {
    if (value.empty()) {
      return InvalidInput("axis '", text,
                          "': expected values with commas between, found an empty one");
    }
    if (!seen.insert(value).second) {
      return InvalidInput("axis '", text, "': the value ", value, " comes twice");
    }
  }
  return axis;
}

absl::Status CheckAxes(const std::vector<Axis>& axes, const isa::Machine& machine) {
  std::set<std::string> seen;
  bool varies_dram = false;
  for (const Axis& axis : axes) varies_dram = varies_dram || axis.name == "gmem.dram";
  for (const Axis& axis : axes) {
    if (!seen.insert(axis.name).second) {
      return InvalidInput("axis ", axis.name, " comes twice");
    }
    const isa::ParameterRow* row = isa::FindParameter(isa::MachineRows(), axis.name);
    // A file need not state what only energy depends on.
    const bool is_optional = row != nullptr && row->is_optional && !axis.name.starts_with("dram.");
    const bool exists = machine.parameters().contains(axis.name) ||
                        machine.texts().contains(axis.name) || is_optional;
    // Whether a machine has DRAM may itself be an axis.
    if (exists || (varies_dram && axis.name.starts_with("dram."))) continue;
    return InvalidInput("axis ", axis.name, ": machine ", machine.name,
                        " has no such parameter; names like it: ", NamesNear(machine, axis.name));
  }
  return absl::OkStatus();
}

std::vector<Point> Points(const std::vector<Axis>& axes) {
  std::vector<Point> points = {{}};
  for (const Axis& axis : axes) {
    std::vector<Point> longer;
    longer.reserve(points.size() * axis.values.size());
    for (const Point& point : points) {
      for (const std::string& value : axis.values) {
        longer.push_back(point);
        longer.back().push_back(value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::vector<std::string> Overrides(const std::vector<Axis>& axes, const Point& point) {
  std::vector<std::string> overrides;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].name == kInstructionsAxis) continue;
    overrides.push_back(StrCat(axes[i].name, "=", point[i]));
  }
  return overrides;
}

}  // namespace polynao::sweep
