#include "compiler/passes/pass_test_util.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/check.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/same_meaning.h"
#include "gtest/gtest.h"
#include "testing/machine.h"

namespace polynao {

const Target& TestTarget(const std::string& machine) {
  static auto* targets = new std::map<std::string, Target>();
  auto [it, added] = targets->try_emplace(machine);
  if (added) {
    it->second.name = "diannao";
    it->second.instructions = &isa::DianNao();
    it->second.machine = new isa::Machine(TestMachine(machine));
  }
  return it->second;
}

ir::Function ParseOrDie(std::string_view text) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text, "test.nir");
  POLYNAO_CHECK(function.ok()) << function.status();
  const absl::Status verified = ir::Verify(*function);
  POLYNAO_CHECK(verified.ok()) << verified;
  return *std::move(function);
}

std::string RunPass(std::string_view text, const PassFunction& pass, const Target& target,
                    bool same_meaning) {
  ir::Function function = ParseOrDie(text);
  const ir::Function before = ir::CloneInto(function, std::make_shared<ir::Context>());
  const ir::Stmt body = function.body;
  absl::StatusOr<bool> changed = pass(function);
  EXPECT_TRUE(changed.ok()) << changed.status() << "\n" << text;
  if (!changed.ok()) return "";
  EXPECT_EQ(*changed, function.body != body) << ir::Print(function);
  const absl::Status verified = ir::Verify(function);
  EXPECT_TRUE(verified.ok()) << verified << "\n" << ir::Print(function);
  if (same_meaning) {
    const absl::Status same = CheckSameMeaning(before, function, target, 7);
    EXPECT_TRUE(same.ok()) << same << "\n" << ir::Print(function);
  }
  const std::string printed = ir::Print(function);
  EXPECT_TRUE(ir::StructurallyEqual(function, ParseOrDie(printed))) << printed;
  return printed;
}

std::string PassError(std::string_view text, const PassFunction& pass) {
  ir::Function function = ParseOrDie(text);
  const absl::StatusOr<bool> changed = pass(function);
  EXPECT_FALSE(changed.ok()) << ir::Print(function);
  return std::string(changed.status().message());
}

std::string TextOfEveryProcess(void (*print)()) {
  constexpr char kPrintVariable[] = "POLYNAO_TEST_PRINT";
  if (std::getenv(kPrintVariable) != nullptr) {
    print();
    std::fflush(stdout);
    std::_Exit(testing::Test::HasFailure());  // before gtest says how long it took
  }
  std::string path(4096, '\0');
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  POLYNAO_CHECK(size > 0) << "readlink";
  path.resize(static_cast<size_t>(size));
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  std::string texts[2];
  for (std::string& text : texts) {
    // The child runs this test alone, whatever part of all tests this process has.
    FILE* child =
        popen(StrCat("env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX -u XML_OUTPUT_FILE ",
                     kPrintVariable, "=1 '", path, "' --gtest_filter=", test.test_suite_name(), ".",
                     test.name(), " --gtest_brief=1")
                  .c_str(),
              "r");
    POLYNAO_CHECK(child != nullptr) << "popen";
    char buffer[4096];
    size_t read;
    while ((read = std::fread(buffer, 1, sizeof(buffer), child)) > 0) text.append(buffer, read);
    EXPECT_EQ(pclose(child), 0) << text;
  }
  EXPECT_EQ(texts[0], texts[1]);
  return texts[0];
}

}  // namespace polynao
