#include "compiler/poly/tools/describe.h"

#include <isl/ast_build.h>
#include <isl/schedule.h>

#include <algorithm>

#include "base/check.h"
#include "base/status.h"
#include "compiler/ir/text.h"
#include "compiler/poly/fuse/fuse.h"
#include "compiler/poly/isl/tree_text.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {

namespace {

// One line for each map or set of a union.
template <typename Pieces>
std::string Lines(std::string_view title, const Pieces& pieces) {
  std::string text = StrCat("  ", title, ":", pieces.empty() ? " none\n" : "\n");
  for (const auto& piece : pieces) StrAppend(&text, "    ", Text(piece), "\n");
  return text;
}

std::string Indented(const std::string& text, std::string_view by) {
  std::string result;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    StrAppend(&result, by, text.substr(at, end - at), "\n");
    at = end + 1;
  }
  return result;
}

std::string ContextText(const Scop& scop) {
  std::string text;
  for (const Parameter& p : scop.parameters) {
    StrAppend(&text, "  ", p.name, " = ", ir::Print(p.value), "\n");
  }
  return StrCat(text, "  known: ", Text(scop.context), "\n  assumed: ", Text(scop.assumed), "\n");
}

std::string DomainText(const Scop& scop) {
  std::string text;
  for (const Statement& s : scop.statements) {
    StrAppend(&text, "  ", Text(s.domain), s.is_opaque ? "  (opaque)" : "",
              s.reduction ? "  (reduction)" : "", "\n", Indented(ir::Print(s.code), "    "));
  }
  return text;
}

std::string AccessesText(const Scop& scop) {
  std::string text;
  for (const Statement& s : scop.statements) {
    for (const Access& a : s.accesses) {
      StrAppend(&text, "  ", a.is_must ? "must " : "may ", a.is_write ? "write " : "read ",
                Text(a.map), "\n");
    }
  }
  return text;
}

std::string DependencesText(const Scop& scop) {
  const Dependences d = ComputeDependences(scop);
  std::string text = Lines("flow", MapsOf(d.flow)) + Lines("anti", MapsOf(d.anti)) +
                     Lines("output", MapsOf(d.output)) +
                     Lines("between updates of a reduction", MapsOf(d.reduction));
  for (const PrivateOrder& p : d.private_order) {
    text += Lines(StrCat("anti and output of the private buffer ", p.array), MapsOf(p.order));
  }
  return text + Lines("live in", MapsOf(d.live_in)) + Lines("live out", MapsOf(d.live_out));
}

std::string AstText(const Scop& scop, const isl::schedule& schedule) {
  const isl::ast_build build = isl::ast_build::from_context(scop.context);
  return build.node_from(schedule).to_C_str();
}

}  // namespace

const std::vector<std::string_view>& Descriptions() {
  static const auto* names =
      new std::vector<std::string_view>{"context", "domain", "accesses", "deps",   "schedule",
                                        "tree",    "ast",    "loops",    "report", "remarks"};
  return *names;
}

absl::StatusOr<std::string> Describe(const ir::Function& function, std::string_view what,
                                     const ScheduleOptions& options) {
  const std::vector<std::string_view>& names = Descriptions();
  if (std::find(names.begin(), names.end(), what) == names.end()) {
    std::string list;
    for (const std::string_view name : names) StrAppend(&list, list.empty() ? "" : ", ", name);
    return InvalidInput("expected one of ", list, ", found '", what, "'");
  }
  ir::Function scheduled = function;
  ASSIGN_OR_RETURN(const ScheduleReport report, Schedule(scheduled, options));
  if (what == "loops") return ir::Print(scheduled);
  if (what == "report") return report.ToString();
  ASSIGN_OR_RETURN(const Extraction extraction, Extract(function));
  std::string text;
  if (what == "remarks") {
    for (const Remark& remark : extraction.remarks) StrAppend(&text, remark.ToString(), "\n");
    return text;
  }
  for (size_t i = 0; i < extraction.scops.size(); ++i) {
    const Scop& scop = extraction.scops[i];
    StrAppend(&text, "part '", scop.name, "':\n");
    RETURN_IF_ERROR(Guarded(*scop.isl, [&]() -> absl::Status {
      if (what == "context") text += ContextText(scop);
      if (what == "domain") text += DomainText(scop);
      if (what == "accesses") text += AccessesText(scop);
      if (what == "deps") text += DependencesText(scop);
      const bool is_order = what == "schedule" || what == "tree" || what == "ast";
      if (!is_order) return absl::OkStatus();
      isl::schedule schedule = scop.schedule;
      if (i < report.parts.size()) {
        const PartReport& part = report.parts[i];
        if (!part.changed) {
          StrAppend(&text, "  not scheduled: ", part.why_not, "\n");
          return absl::OkStatus();
        }
        for (const GroupReport& group : part.groups) {
          StrAppend(&text, "  ", TitleOf(group), ":\n");
          if (what == "tree") text += Indented(group.tree, "    ");
          if (what == "ast") {
            text += Indented(AstText(scop, ReadTree(scop.isl->ctx(), group.tree)), "    ");
          }
          // The map would be the root's alone.
          if (what == "schedule" && group.is_tiled)
            text += "    no map, since tiles run instances more than once; see the tree\n";
          if (what == "schedule" && !group.is_tiled)
            text += Lines("order", MapsOf(ReadTree(scop.isl->ctx(), group.tree).map()));
        }
        if (!part.groups.empty()) return absl::OkStatus();
        if (what == "tree") {
          text += Indented(part.tree, "  ");
          return absl::OkStatus();
        }
        schedule = ReadTree(scop.isl->ctx(), part.tree);
      }
      if (what == "schedule") text += Lines("order", MapsOf(schedule.map()));
      if (what == "tree") text += Indented(TreeText(schedule), "  ");
      if (what == "ast") text += Indented(AstText(scop, schedule), "  ");
      return absl::OkStatus();
    }));
  }
  return text;
}

}  // namespace polynao::poly
