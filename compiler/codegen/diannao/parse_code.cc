#include "compiler/codegen/diannao/parse_code.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>

#include "base/check.h"

namespace polynao::diannao {
namespace {

// The number behind the first character of "v12", "(v12)" or "b3".
int64_t NumberIn(std::string word) {
  word.erase(std::remove_if(word.begin(), word.end(),
                            [](char c) { return c == '(' || c == ')' || c == ','; }),
             word.end());
  const bool is_immediate = word[0] == '-' || (word[0] >= '0' && word[0] <= '9');
  return std::strtoll(word.c_str() + (is_immediate ? 0 : 1), nullptr, 10);
}

}  // namespace

Code ParseCode(std::string_view text) {
  Code code{.name = "test", .set = &isa::DianNao(), .blocks = {}, .home = {}};
  std::istringstream lines{std::string(text)};
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word)) continue;
    if (word.back() == ':') {
      code.blocks.emplace_back();
      while (words >> word) {
        const size_t reg = NumberIn(word);
        code.home.resize(std::max(code.home.size(), reg + 1), Code::kValue);
        code.home[reg] = static_cast<int>(code.blocks.size()) - 1;
      }
      continue;
    }
    Op op{.instruction = code.set->Find(word), .fields = {}};
    POLYNAO_CHECK(op.instruction != nullptr && !code.blocks.empty()) << line;
    while (words >> word) {
      op.fields.push_back(NumberIn(word));
      if (word[0] != 'v') continue;
      const size_t reg = op.fields.back();
      code.home.resize(std::max(code.home.size(), reg + 1), Code::kValue);
    }
    POLYNAO_CHECK(op.fields.size() == op.instruction->operands.size()) << line;
    code.blocks.back().ops.push_back(std::move(op));
  }
  return code;
}

}  // namespace polynao::diannao
