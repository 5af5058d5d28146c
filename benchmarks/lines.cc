#include "benchmarks/lines.h"

#include <set>

#include "absl/strings/str_split.h"
#include "base/status.h"
#include "benchmarks/kernel_sources.h"

namespace polynao::benchmarks {
namespace {

const std::set<std::string>& Kinds() {
  static const auto* kinds = new std::set<std::string>{"tensor-program", "library", "expert"};
  return *kinds;
}

}  // namespace

absl::Status CountLines(std::string_view file, std::string_view text, LineCounts& counts) {
  const std::string_view comment = file.ends_with(".nasm") ? "#" : "//";
  // What is open, with the line that opened it.
  std::map<std::pair<std::string, std::string>, int> open;
  int number = 0;
  for (absl::string_view piece : absl::StrSplit(ToAbsl(text), '\n')) {
    ++number;
    std::string_view line = ToStd(absl::StripAsciiWhitespace(piece));
    if (line.empty()) continue;
    if (!line.starts_with(comment)) {
      for (const auto& [key, opened] : open) ++counts[key];
      continue;
    }
    line = ToStd(absl::StripAsciiWhitespace(ToAbsl(line.substr(comment.size()))));
    if (!line.starts_with('[')) continue;
    const std::vector<std::string> words =
        absl::StrSplit(ToAbsl(line.substr(1, line.find(']') - 1)), ' ');
    if (!Kinds().contains(words[0])) continue;  // another comment
    const std::string& last = words.back();
    if (!line.ends_with(']') || words.size() < 3 || (last != "begin" && last != "end")) {
      return InvalidInput(file, ":", number, ": expected [", words[0],
                          " CLASS... begin] or [... end], found ", line);
    }
    for (size_t i = 1; i + 1 < words.size(); ++i) {
      const std::pair<std::string, std::string> key = {words[0], words[i]};
      if (last == "begin") {
        if (!open.emplace(key, number).second) {
          return InvalidInput(file, ":", number, ": ", key.first, " ", key.second,
                              " is open since line ", open[key]);
        }
        counts.emplace(key, 0);
      } else if (open.erase(key) == 0) {
        return InvalidInput(file, ":", number, ": ", key.first, " ", key.second, " is not open");
      }
    }
  }
  if (!open.empty()) {
    const auto& [key, opened] = *open.begin();
    return InvalidInput(file, ":", opened, ": ", key.first, " ", key.second, " is never closed");
  }
  return absl::OkStatus();
}

absl::StatusOr<LineCounts> CountKernelLines() {
  LineCounts counts;
  for (const SourceText& source : KernelSources()) {
    RETURN_IF_ERROR(CountLines(source.path, source.text, counts));
  }
  return counts;
}

}  // namespace polynao::benchmarks
