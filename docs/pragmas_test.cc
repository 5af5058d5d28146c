// docs/ir.md lists the pragma keys of compiler/ir/pragmas.h.
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>

#include "base/text.h"
#include "compiler/ir/pragmas.h"
#include "docs/examples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::docs {
namespace {

// "compiler/te/lower.cc kernels/te/pool.cc" as "te/lower, te/pool".
std::string Names(std::string_view files) {
  std::string names;
  std::istringstream words{std::string(files)};
  for (std::string file; words >> file;) {
    const std::filesystem::path path(file);
    StrAppend(&names, names.empty() ? "" : ", ", path.parent_path().filename().string(), "/",
              path.stem().string());
  }
  return names.empty() ? "people" : names;
}

TEST(PragmasTest, TheListIsThatOfTheHeader) {
  std::string table =
      "| key | around | what it says | written by | read by |\n|---|---|---|---|---|\n";
  for (const pragma::Key& key : pragma::kKeys) {
    StrAppend(&table, "| `\"", key.name, "\"", key.operands.empty() ? "" : " (", key.operands,
              key.operands.empty() ? "" : ")", "` | ", key.below, " | ", key.meaning, " | ",
              Names(key.writers), " | ", Names(key.readers), " |\n");
  }
  EXPECT_THAT(ReadDocument("docs/ir.md"), testing::HasSubstr(table));
}

}  // namespace
}  // namespace polynao::docs
