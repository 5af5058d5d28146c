#include "benchmarks/licm_rows.h"

#include <fstream>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace polynao::benchmarks {
namespace {

using ::testing::HasSubstr;

const nlohmann::ordered_json kRun = {{"suite", "licm511"}, {"target", "cuda"}, {"commit", "abc"}};

LicmRow Row(const std::string& op, int id) {
  LicmRow row;
  row.op = op;
  row.id = id;
  row.shape = "1x2";
  row.functions = 2;
  row.values_agree = true;
  row.baseline_counts.int_add = 7;
  row.optimized_counts.instructions = 3;
  row.baseline_code = LicmCode{.executed = 1.5, .ptx = 10, .registers = 20};
  row.optimized_code = LicmCode{.exact_execution = false, .spill_bytes = 8};
  row.pass_ms = {{"normalize", 0.25}, {"licm", 0.5}};
  return row;
}

std::string Path() {
  return ::testing::TempDir() + "/" +
         ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".jsonl";
}

void Write(const std::string& text) { std::ofstream(Path()) << text; }

std::string Contents() {
  std::ostringstream text;
  text << std::ifstream(Path()).rdbuf();
  return text.str();
}

TEST(LicmRowsTest, GoesOnWhereItStopped) {
  {
    auto file = LicmRowsFile::Open(Path(), kRun);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(file->rows().empty());
    LicmRow failed = Row("b", 1);
    failed.error = "no such thing";
    ASSERT_TRUE(file->Append(Row("a", 1)).ok());
    ASSERT_TRUE(file->Append(failed).ok());
    ASSERT_TRUE(file->Append(Row("a", 1)).ok());
  }
  const std::string before = Contents();
  // A run that is stopped while it writes.
  Write(before + "{\"case\": \"a/2\", \"op");
  {
    auto file = LicmRowsFile::Open(Path(), kRun);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_EQ(file->rows().size(), 1);
    EXPECT_EQ(RowToJson(file->rows()[0], "cuda"), RowToJson(Row("a", 1), "cuda"));
    ASSERT_TRUE(file->Append(Row("a", 2)).ok());
  }
  EXPECT_TRUE(Contents().starts_with(before));
  auto file = LicmRowsFile::Open(Path(), kRun);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->rows().size(), 2);
  EXPECT_EQ(file->rows()[1].Name(), "a/2");
}

TEST(LicmRowsTest, Errors) {
  const auto error = [](const nlohmann::ordered_json& run) {
    return std::string(LicmRowsFile::Open(Path(), run).status().message());
  };
  Write(kRun.dump() + "\n");
  EXPECT_EQ(error(kRun), "");
  EXPECT_THAT(error({{"suite", "licm511"}, {"target", "cuda"}, {"commit", "def"}}),
              HasSubstr("\"commit\":\"def\"}, found '{\"suite\":\"licm511\""));
  Write(kRun.dump() + "\n{\"op\": \"a\", \"id\": \"1\"}\n");
  EXPECT_THAT(error(kRun), HasSubstr(":2: 'id': expected a number, found \"1\""));
  EXPECT_THAT(
      std::string(
          LicmRowsFile::Open(::testing::TempDir() + "/no/such/file", kRun).status().message()),
      HasSubstr("cannot write "));
}

TEST(LicmRowsTest, RowsOfTheCpu) {
  LicmRow row = Row("a", 3);
  row.baseline_code.reset();
  row.optimized_code.reset();
  row.baseline_ns = 1e6;
  row.speedup = 1.25;
  row.samples = 4;
  const nlohmann::ordered_json json = RowToJson(row, "cpu");
  const absl::StatusOr<LicmRow> back = RowFromJson(json);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(RowToJson(*back, "cpu"), json);
}

}  // namespace
}  // namespace polynao::benchmarks
