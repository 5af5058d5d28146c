#include "compiler/poly/tools/tree_page.h"

#include <isl/id.h>
#include <isl/schedule.h>
#include <isl/schedule_node.h>

#include "base/text.h"
#include "pages/page.h"

namespace polynao::poly {
namespace {

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
    case isl_schedule_node_mark: {
      const isl::id mark = isl::manage(isl_schedule_node_mark_get_id(node.get()));
      head = StrCat("mark ", isl_id_get_name(mark.get()));
      break;
    }
    case isl_schedule_node_extension:
      css = "extension";
      head = StrCat("extension, what each tile adds: ",
                    Text(isl::manage(isl_schedule_node_extension_get_extension(node.get()))));
      break;
    case isl_schedule_node_context:
      head =
          StrCat("context ", Text(isl::manage(isl_schedule_node_context_get_context(node.get()))));
      break;
    case isl_schedule_node_guard:
      head = StrCat("guard ", Text(isl::manage(isl_schedule_node_guard_get_guard(node.get()))));
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
    return StrCat("<div class=\"leaf ", css, "\">", pages::Escape(head), "</div>\n");
  }
  return StrCat("<details open><summary class=\"", css, "\">", pages::Escape(head), "</summary>\n",
                children, "</details>\n");
}

}  // namespace

std::string TreeHtml(const isl::schedule& schedule) {
  return NodeHtml(isl::manage(isl_schedule_get_root(schedule.get())));
}

}  // namespace polynao::poly
