#include "simulator/page/report_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "simulator/page/page_texts.h"

namespace polynao::simulator {
namespace {

std::string Escape(std::string_view text) {
  return absl::StrReplaceAll(std::string(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// JSON in a script element: "<" could end it, or begin a comment in it, so it stands as an escape of JSON.
std::string ScriptJson(const nlohmann::ordered_json& data) {
  const std::string text =
      data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return absl::StrReplaceAll(text, {{"<", "\\u003c"}});
}

}  // namespace

std::string ReportPage(std::string_view title, const nlohmann::ordered_json& data,
                       const std::vector<std::string>& timelines) {
  std::string page = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
      Escape(title), "</title>\n<style>\n", std::string(PageStyle()), "</style></head>\n<body>\n",
      "<h1>", Escape(title), "</h1>\n<noscript>This page draws itself with a script.</noscript>\n",
      "<main id=\"runs\"></main>\n");
  for (const std::string& timeline : timelines) {
    absl::StrAppend(&page, "<template class=\"timeline\">", timeline, "</template>\n");
  }
  absl::StrAppend(&page, "<script type=\"application/json\" id=\"data\">", ScriptJson(data),
                  "</script>\n<script>\n", std::string(PageScript()),
                  "</script>\n</body></html>\n");
  return page;
}

}  // namespace polynao::simulator
