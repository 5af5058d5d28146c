#include "kernels/pipelines/pipeline_text.h"

#include "absl/strings/str_join.h"
#include "base/text.h"

namespace polynao::kernels {
namespace {

std::string Declaration(std::string_view name, std::string_view type,
                        const PipelineText::Extents& extents) {
  return StrCat(name, ": ", type, "[", absl::StrJoin(extents, ", "), "]");
}

}  // namespace

PipelineText::PipelineText(std::string_view name) : name_(name) {}

void PipelineText::Parameter(std::string_view name, std::string_view type, const Extents& extents,
                             std::string_view role) {
  StrAppend(&parameters_, parameters_.empty() ? "" : ", ", Declaration(name, type, extents), " ",
            role);
}

void PipelineText::Input(std::string_view name, std::string_view type, const Extents& extents) {
  Parameter(name, type, extents, "in");
}

void PipelineText::Output(std::string_view name, std::string_view type, const Extents& extents) {
  Parameter(name, type, extents, "out");
}

void PipelineText::Allocate(std::string_view name, std::string_view type, const Extents& extents) {
  StrAppend(&body_, "  allocate ", Declaration(name, type, extents), "\n");
}

void PipelineText::Nest(const std::vector<Range>& ranges, std::string_view element,
                        std::string_view value, std::string_view guard) {
  StrAppend(&body_, "  ");
  for (const Range& r : ranges) {
    StrAppend(&body_, "for (", r.variable, ", ", r.first, ", ", r.end - r.first, ") ");
  }
  if (!guard.empty()) StrAppend(&body_, "if (", guard, ") ");
  StrAppend(&body_, "{ ", element, " = ", value, " }\n");
}

void PipelineText::Stage(std::string_view name, std::string_view type, const Extents& extents,
                         const std::vector<Range>& ranges, std::string_view value) {
  Allocate(name, type, extents);
  std::string indices;
  for (const Range& r : ranges) StrAppend(&indices, indices.empty() ? "" : ", ", r.variable);
  Nest(ranges, StrCat(name, "[", indices, "]"), value);
}

std::string PipelineText::Text() const {
  return StrCat("func ", name_, "(", parameters_, ") {\n", body_, "}\n");
}

}  // namespace polynao::kernels
