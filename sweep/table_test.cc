#include "sweep/table.h"

#include <random>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::sweep {
namespace {

using ::testing::HasSubstr;

Table Example() {
  Table table;
  table.config = "mlu270";
  table.base = {"card.clusters=2"};
  table.energy = "28nm";
  table.axes = {{"core.nmem_kib", {"256", "512"}}, {"gmem.dram", {"flat", "hbm2"}}};
  table.programs = {"conv", "add"};
  for (int64_t point = 0; point < 4; ++point) {
    table.rows.push_back({point, "conv", "", {{"cycles", 100.0 + point}, {"energy_pj", 0.1}}});
    if (point == 2) {
      table.rows.push_back({point, "add", "does not fit, by \"1\" byte", {}});
    } else {
      table.rows.push_back({point, "add", "", {{"cycles", 7e9}, {"energy_pj", 1e300}}});
    }
  }
  return table;
}

std::string ErrorOf(std::string_view text) {
  const auto table = ParseTable(text, "t.json");
  return table.ok() ? "" : std::string(table.status().message());
}

TEST(Table, ReadsBack) {
  const Table table = Example();
  const std::string text = TableJson(table);
  const auto read = ParseTable(text, "t.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, table);
  EXPECT_EQ(TableJson(*read), text);
  EXPECT_THAT(text, HasSubstr("\"cycles\":100,"));
  EXPECT_THAT(text, HasSubstr("\"cycles\":7000000000,"));
}

TEST(Table, ErrorsNameTheMember) {
  const struct {
    const char* text;
    const char* message;
  } kWrong[] = {
      {"", "t.json: expected the JSON object of a sweep"},
      {"{}", "t.json: 'config': expected a text, found none"},
      {R"({"config": "m", "set": [1]})", "'set': expected a list of texts, found [1]"},
      {R"({"config": "m", "set": [], "energy": "", "programs": ["p"], "axes": 1})",
       "'axes': expected a list"},
      {R"({"config": "m", "set": [], "energy": "", "programs": ["p"], "axes": [{"name": "a", "values": []}]})",
       "t.json: 'axes': 'values': expected at least one value"},
      {R"({"config": "m", "set": [], "energy": "", "programs": ["p"], "axes": [], "rows": [{"point": 1}]})",
       "t.json: row 0: 'point': expected a number below 1, found 1"},
      {R"({"config": "m", "set": [], "energy": "", "programs": ["p"], "axes": [], "rows": [{"point": -1}]})",
       "'point': expected a number below 1"},
      {R"({"config": "m", "set": [], "energy": "", "programs": ["p"], "axes": [], "rows": [{"point": 0, "program": "q"}]})",
       "'program': expected one of 'programs', found \"q\""},
      {R"({"config": "m", "set": [], "energy": "", "programs": ["p"], "axes": [], "rows": [{"point": 0, "program": "p"}]})",
       "'metrics': expected an object of numbers, found none"},
      {R"({"config": "m", "set": [], "energy": "", "programs": ["p"], "axes": [], "rows": [{"point": 0, "program": "p", "metrics": {"x": 1}}]})",
       "expected numbers that a sweep knows, found x = 1"},
  };
  for (const auto& wrong : kWrong) EXPECT_THAT(ErrorOf(wrong.text), HasSubstr(wrong.message));
}

TEST(Table, DamagedTextNeverCrashes) {
  constexpr uint64_t kSeed = 20261123;
  SCOPED_TRACE(StrCat("seed ", kSeed));
  std::mt19937_64 random(kSeed);
  const std::string text = TableJson(Example());
  int accepted = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string damaged = text;
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % damaged.size();
      constexpr std::string_view kBytes = "0{}[],:\"-e.x\\ ";
      if (random() % 3 == 0) {
        damaged.erase(at, 1 + random() % 20);
      } else {
        damaged[at] = kBytes[random() % kBytes.size()];
      }
      if (damaged.empty()) break;
    }
    const auto table = ParseTable(damaged, "t.json");
    if (!table.ok()) {
      EXPECT_THAT(std::string(table.status().message()), HasSubstr("t.json"));
      continue;
    }
    ++accepted;
    EXPECT_EQ(TableJson(*ParseTable(TableJson(*table), "t.json")), TableJson(*table));
    TableCsv(*table);
  }
  EXPECT_GT(accepted, 0);
}

TEST(Table, CsvQuotesWhatMustBe) {
  const std::string text = TableCsv(Example());
  EXPECT_THAT(text, HasSubstr("core.nmem_kib,gmem.dram,program,cycles,energy_pj,error\r\n"
                              "256,flat,conv,100,0.1,\r\n"
                              "256,flat,add,7000000000,1e+300,\r\n"));
  EXPECT_THAT(text, HasSubstr("512,flat,add,,,\"does not fit, by \"\"1\"\" byte\"\r\n"));
}

TEST(Table, MergesPartsInAnyOrder) {
  const Table whole = Example();
  std::vector<Table> parts(3, whole);
  for (Table& part : parts) part.rows.clear();
  for (size_t i = 0; i < whole.rows.size(); ++i) {
    parts[(i * 5 + 2) % 3].rows.push_back(whole.rows[whole.rows.size() - 1 - i]);
  }
  const auto merged = MergeTables(parts);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(*merged, whole);
  // Parts may know their own programs only.
  std::vector<Table> by_program(2, whole);
  for (size_t i = 0; i < 2; ++i) {
    by_program[i].programs = {whole.programs[i]};
    std::erase_if(by_program[i].rows,
                  [&](const Row& row) { return row.program != whole.programs[i]; });
  }
  ASSERT_TRUE(MergeTables(by_program).ok());
  EXPECT_EQ(*MergeTables(by_program), whole);

  std::vector<Table> twice = {whole, whole};
  EXPECT_EQ(MergeTables(twice).status().message(), "point 0 of conv comes twice");
  parts[1].rows.clear();
  EXPECT_THAT(std::string(MergeTables(parts).status().message()), HasSubstr("is missing"));
  twice[1].config = "mlu370";
  EXPECT_THAT(std::string(MergeTables(twice).status().message()), HasSubstr("different sweeps"));
  EXPECT_FALSE(MergeTables({}).ok());
}

TEST(Table, KeepsSomeMetrics) {
  Table table = Example();
  ASSERT_TRUE(KeepMetrics(table, "").ok());
  EXPECT_EQ(table, Example());
  ASSERT_TRUE(KeepMetrics(table, "cycles").ok());
  EXPECT_EQ(table.rows[0].metrics.size(), 1u);
  EXPECT_THAT(std::string(KeepMetrics(table, "cycles,x").message()),
              HasSubstr("metric 'x': expected one of cycles, time_ns, "));
}

TEST(Table, WithoutAFeasiblePointIsAnError) {
  Table table = Example();
  EXPECT_TRUE(CheckFeasible(table).ok());
  for (Row& row : table.rows) row.error = "too small";
  EXPECT_EQ(CheckFeasible(table).message(),
            "no point of the sweep is feasible; point 0: too small");
}

}  // namespace
}  // namespace polynao::sweep
