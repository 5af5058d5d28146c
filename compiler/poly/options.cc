#include "compiler/poly/options.h"

#include "base/text.h"

namespace polynao::poly {

std::string ScheduleReport::ToString() const {
  std::string text;
  for (const PartReport& part : parts) {
    StrAppend(&text, "part '", part.name, "': ", part.statements,
              part.statements == 1 ? " statement" : " statements");
    if (!part.changed) StrAppend(&text, ", not scheduled: ", part.why_not);
    for (const std::string& line : part.lines) StrAppend(&text, "\n  ", line);
    StrAppend(&text, "\n");
  }
  for (const std::string& remark : remarks) StrAppend(&text, remark, "\n");
  return text;
}

}  // namespace polynao::poly
