#include "benchmarks/dense_cases.h"

#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/text.h"

namespace polynao::benchmarks {
namespace {

std::vector<SuiteCase> ReadCases() {
  std::vector<SuiteCase> cases;
  for (const auto line : absl::StrSplit(ToAbsl(DenseCasesText()), '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    POLYNAO_CHECK(words.size() >= 4) << std::string(line);
    for (const auto type : absl::StrSplit(words[1], ',')) {
      SuiteCase& c = cases.emplace_back(SuiteCase{.op_class = words[0],
                                                  .op = words[2],
                                                  .shape = words[3],
                                                  .dtype = std::string(type),
                                                  .attributes = {words.begin() + 4, words.end()}});
      c.attributes.push_back(c.dtype == "i8" ? "out=i32" : "out=f32");
    }
  }
  return cases;
}

}  // namespace

absl::Span<const SuiteCase> DenseCases() {
  static const auto* cases = new std::vector<SuiteCase>(ReadCases());
  return *cases;
}

std::string DenseName(const SuiteCase& c) {
  SuiteCase named = c;
  named.attributes.pop_back();
  return StrCat(named.Name(), "/", c.dtype);
}

std::string DenseClass(std::string_view name) {
  return StrCat(name.substr(0, name.find('/')), " ", name.substr(name.rfind('/') + 1));
}

}  // namespace polynao::benchmarks
