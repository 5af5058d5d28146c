#include "simulator/page/report_page.h"

#include "base/text.h"
#include "nlohmann/json.hpp"
#include "pages/page.h"
#include "simulator/page/page_texts.h"

namespace polynao::simulator {

std::string ReportPage(std::string_view title, const nlohmann::ordered_json& data,
                       const std::vector<std::string>& timelines) {
  std::string body =
      "<noscript>This page draws itself with a script.</noscript>\n<main id=\"runs\"></main>\n";
  for (const std::string& timeline : timelines) {
    StrAppend(&body, "<template class=\"timeline\">", timeline, "</template>\n");
  }
  StrAppend(&body,
            pages::DataElement(
                data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)),
            "<script>\n", PageScript(), "</script>\n");
  return pages::Page(title, body, PageStyle());
}

}  // namespace polynao::simulator
