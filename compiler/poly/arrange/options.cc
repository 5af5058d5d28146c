#include "compiler/poly/arrange/options.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "base/text.h"

namespace polynao::poly {

namespace {

// "11 stages in 1 group: 1.04 times the instances; 4218.6 MiB to and from memory stage by stage, 312.3 MiB so"; where
// no stage runs in the tiles of another, "2 stages, none in tiles of another: ..".
std::string SummaryOf(const ScheduleReport& report) {
  if (report.stages_before == 0) return "";
  std::map<std::string, double> figures;
  for (const auto& [name, value] : report.Figures()) figures[name] = value;
  if (figures.empty()) return "";
  constexpr double kMiB = 1024 * 1024;
  const double groups = figures["groups"];
  bool is_fused = false;
  for (const PartReport& part : report.parts) {
    for (const GroupReport& group : part.groups) is_fused |= group.is_tiled && group.stages > 1;
  }
  const std::string how =
      is_fused ? absl::StrFormat(" in %.0f %s", groups, groups == 1 ? "group" : "groups")
               : ", none in tiles of another";
  return absl::StrFormat("%d %s%s: %s; %.1f MiB to and from memory stage by stage, %.1f MiB so",
                         report.stages_before, report.stages_before == 1 ? "stage" : "stages", how,
                         figures.contains("redundancy")
                             ? absl::StrFormat("%.4f times the instances (%.4f by the model)",
                                               figures["redundancy"], figures["redundancy_model"])
                             : "instances not counted",
                         figures["bytes_before"] / kMiB, figures["bytes_after"] / kMiB);
}

}  // namespace

void PartReport::AddLoops(const PartReport& one) {
  bands += one.bands;
  tiled_bands += one.tiled_bands;
  parallel_loops += one.parallel_loops;
  vector_loops += one.vector_loops;
  wavefronts += one.wavefronts;
  has_register_tiles |= one.has_register_tiles;
  lines.insert(lines.end(), one.lines.begin(), one.lines.end());
  before.insert(before.end(), one.before.begin(), one.before.end());
}

std::vector<std::pair<std::string, double>> ScheduleReport::Figures() const {
  int groups = 0;
  InstanceCount all;
  bool is_counted = true;
  double expected = 0, bytes = 0;
  int64_t tile_bytes = 0;
  for (const PartReport& part : parts) {
    is_counted &= part.groups.empty() || part.exist.has_value();
    all.exist += part.exist.value_or(0);
    for (const GroupReport& group : part.groups) {
      // Stages that share no tiles are groups of their own.
      groups += group.is_tiled ? 1 : group.stages;
      bytes += group.memory_bytes;
      tile_bytes = std::max(tile_bytes, group.local_bytes);
      is_counted &= group.instances.has_value();
      if (!group.instances) continue;
      all.run += group.instances->run;
      expected += group.redundancy * static_cast<double>(group.instances->exist);
    }
  }
  if (groups == 0) return {};
  std::vector<std::pair<std::string, double>> figures;
  if (stages_before > 0) figures.emplace_back("stages", stages_before);
  figures.emplace_back("groups", groups);
  if (is_counted && all.exist > 0) {
    figures.emplace_back("redundancy", all.Redundancy());
    figures.emplace_back("redundancy_model", expected / static_cast<double>(all.exist));
  }
  if (stages_before > 0) figures.emplace_back("bytes_before", bytes_before);
  figures.emplace_back("bytes_after", bytes);
  figures.emplace_back("tile_bytes", static_cast<double>(tile_bytes));
  return figures;
}

std::string ScheduleReport::ToString() const {
  std::string text;
  for (const PartReport& part : parts) {
    StrAppend(&text, "part '", part.name, "': ", part.statements,
              part.statements == 1 ? " statement" : " statements");
    if (!part.changed) StrAppend(&text, ", not scheduled: ", part.why_not);
    for (const std::string& line : part.lines) StrAppend(&text, "\n  ", line);
    StrAppend(&text, "\n");
  }
  if (const std::string summary = SummaryOf(*this); !summary.empty())
    StrAppend(&text, summary, "\n");
  for (const std::string& remark : remarks) StrAppend(&text, remark, "\n");
  return text;
}

}  // namespace polynao::poly
