#include "compiler/poly/isl/tree_text.h"

#include <isl/printer.h>
#include <isl/schedule.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace polynao::poly {

std::string TreeText(const isl::schedule& schedule) {
  isl_printer* printer = isl_printer_to_str(schedule.ctx().release());
  printer = isl_printer_set_yaml_style(printer, ISL_YAML_STYLE_BLOCK);
  printer = isl_printer_print_schedule(printer, schedule.get());
  char* text = isl_printer_get_str(printer);
  const std::string result = text == nullptr ? "" : text;
  std::free(text);
  isl_printer_free(printer);
  return result;
}

std::string Readable(const std::string& text) {
  std::vector<std::string> lines;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (lines.empty() && line.starts_with("part '") && line.ends_with("':")) continue;
    const size_t mark = line.find("mark: ");
    const bool is_mark = mark != std::string::npos && line.find_first_not_of(' ') == mark;
    if (is_mark && text.compare(at, mark + 6, std::string(mark, ' ') + "child:") != 0) {
      if (!lines.empty()) lines.pop_back();  // "child:"
    } else {
      lines.push_back(line);
    }
  }
  std::string without;
  for (const std::string& line : lines) StrAppend(&without, line, "\n");
  return without;
}

isl::schedule ReadTree(const isl::ctx& context, const std::string& text) {
  return isl::schedule(context, Readable(text));
}

}  // namespace polynao::poly
