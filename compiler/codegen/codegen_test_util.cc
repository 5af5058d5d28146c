#include "compiler/codegen/codegen_test_util.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "gtest/gtest.h"

namespace polynao::codegen {

ir::Function Parse(std::string_view text) {
  absl::StatusOr<ir::Function> f = ir::ParseFunction(text);
  POLYNAO_CHECK(f.ok()) << std::string(f.status().message());
  return *std::move(f);
}

void ExpectGolden(const std::string& text, const std::string& golden) {
  const char* checkout = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (std::getenv("POLYNAO_UPDATE_GOLDENS") != nullptr && checkout != nullptr) {
    std::ofstream(StrCat(checkout, "/", golden)) << text;
  }
  std::ifstream file(golden);
  std::ostringstream expected;
  expected << file.rdbuf();
  ASSERT_FALSE(expected.str().empty()) << "cannot read " << golden;
  EXPECT_EQ(text, expected.str());
}

std::vector<ir::Function> FunctionsOf(absl::Span<const SemanticsCase> cases) {
  std::vector<ir::Function> functions;
  for (const SemanticsCase& c : cases) functions.push_back(c.function);
  return functions;
}

void ExpectSemantics(absl::Span<const SemanticsCase> cases, const RunOne& run) {
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(Disagreement(
                  cases[i].function, cases[i].arguments, [&](auto a) { return run(i, a); },
                  cases[i].max_ulps),
              "")
        << cases[i].name;
  }
}

}  // namespace polynao::codegen
