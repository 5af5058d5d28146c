// What both models share hides mistakes from their comparison. README.md lists it, with a test for each part that knows
// the right answer from elsewhere. Here: that the list is complete and its tests exist; and the DRAM's figures and
// addresses, which no other test derives anew.

#include <cstdint>
#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "isa/dram_presets.h"
#include "simulator/dram/address_map.h"
#include "simulator/dram/preset.h"
#include "simulator/dram/testing.h"

namespace polynao::simulator::reference {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Rows of the table in README.md's section: part, targets, tests.
std::vector<std::vector<std::string>> SharedParts() {
  std::vector<std::vector<std::string>> rows;
  std::istringstream text(ReadText("simulator/reference/README.md"));
  bool is_inside = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("## ")) is_inside = line == "## What both models share";
    if (!is_inside || !line.starts_with("| ")) continue;
    std::vector<std::string>& row = rows.emplace_back();
    std::istringstream cells(line.substr(1));
    for (std::string cell; std::getline(cells, cell, '|');) row.push_back(cell);
  }
  if (!rows.empty()) rows.erase(rows.begin());  // the heading
  return rows;
}

std::vector<std::vector<std::string>> Matches(const std::string& text, const char* pattern) {
  std::vector<std::vector<std::string>> result;
  const std::regex regex(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    result.emplace_back(it->begin(), it->end());
  }
  return result;
}

TEST(SharedPartsTest, TheListHasWhatBothDependOn) {
  std::set<std::string> listed, used;
  for (const auto& row : SharedParts()) {
    ASSERT_EQ(row.size(), 3u) << row[0];
    for (const auto& match : Matches(row[1], "`(//[a-z_/]+(:[a-z_]+)?)`")) listed.insert(match[1]);
  }
  std::istringstream targets(ReadText("simulator/reference/shared_targets"));
  for (std::string target; std::getline(targets, target);) {
    if (target.starts_with("//third_party") || !target.starts_with("//")) continue;
    // By itself, or as one of its package.
    const std::string package = target.substr(0, target.find(':'));
    const std::string& name = listed.contains(package) ? package : target;
    used.insert(name);
    EXPECT_TRUE(listed.contains(name)) << "README.md does not list " << target;
  }
  EXPECT_GT(used.size(), 10u);
  for (const std::string& name : listed) {
    EXPECT_TRUE(used.contains(name)) << "README.md lists " << name << ", which they do not share";
  }
}

TEST(SharedPartsTest, EachPartHasATestOfItsOwn) {
  for (const auto& row : SharedParts()) {
    const auto tests = Matches(row[2], "`([a-z0-9_/]+_test)`((,? [A-Za-z]+\\.[A-Za-z0-9]+)+)");
    EXPECT_FALSE(tests.empty()) << row[0];
    for (const auto& test : tests) {
      const std::string text = ReadText(test[1] + ".cc");
      for (const auto& name : Matches(test[2], "([A-Za-z]+)\\.([A-Za-z0-9]+)")) {
        const std::string begin = name[1] + ", " + name[2] + ")";
        EXPECT_TRUE(text.find("TEST(" + begin) != std::string::npos ||
                    text.find("TEST_F(" + begin) != std::string::npos)
            << test[1] << " has no " << name[0];
      }
    }
  }
}

// Whole clocks that take no less than so many picoseconds.
int64_t Clocks(int64_t picoseconds, int64_t clock_mhz) {
  int64_t clocks = 0;
  while (clocks * 1'000'000 < picoseconds * clock_mhz) ++clocks;
  return clocks;
}

// Where a preset's source states nanoseconds, its number of clocks is computed anew.
TEST(SharedPartsTest, PresetsHaveTheClocksOfTheirNanoseconds) {
  int checked = 0;
  for (const isa::DramPresetText& preset : isa::DramPresetTexts()) {
    const auto file = isa::ReadDramPreset(preset.name);
    ASSERT_TRUE(file.ok()) << file.status();
    const int64_t clock_mhz = DramPreset(std::string(preset.name)).value().clock_mhz;
    for (const isa::MachineParameter& parameter : file->parameters) {
      for (const auto& match : Matches(parameter.source, "^derived: ([0-9]+) ns")) {
        ++checked;
        EXPECT_EQ(parameter.value, Clocks(1000 * std::stoll(match[1]), clock_mhz))
            << preset.name << " " << parameter.name;
      }
    }
  }
  EXPECT_GE(checked, 16);
}

// The nanoseconds of LPDDR5 with bank groups, as gem5's src/python/gem5/components/memory/dram_interfaces/lpddr5.py
// quotes them from the JEDEC specification; a precharge of all banks takes 3 ns more than the 18 of one (JESD209-5).
TEST(SharedPartsTest, Lpddr5HasTheNanosecondsOfTheStandard) {
  const DramTiming t = DramPreset("lpddr5").value();
  const std::pair<int64_t, int64_t> kPicoseconds[] = {
      {t.trcd, 18'000},  {t.tras, 42'000},  {t.twr, 34'000},   {t.trrd_s, 5'000},
      {t.trrd_l, 5'000}, {t.tfaw, 20'000},  {t.twtr_s, 6'250}, {t.twtr_l, 12'000},
      {t.trp, 21'000},   {t.tccd_s, 2'500}, {t.tccd_l, 5'000}};
  for (const auto& [clocks, picoseconds] : kPicoseconds) {
    EXPECT_EQ(clocks, Clocks(picoseconds, t.clock_mhz)) << picoseconds << " ps";
  }
}

// The place of a burst, bit by bit from the least significant one, as address_map.h describes it.
DramPlace PlaceByHand(const DramTiming& t, int64_t address) {
  const auto bits = [](int64_t size) {
    int count = 0;
    while (int64_t{1} << count < size) ++count;
    return count;
  };
  std::map<std::string, int> left = {{"row", bits(t.rows)},
                                     {"rank", bits(t.ranks)},
                                     {"bank_group", bits(t.bank_groups)},
                                     {"bank", bits(t.banks)},
                                     {"column", bits(t.bursts_per_row())}};
  std::vector<std::pair<std::string, int>> pieces;  // a piece without a number has -1 bits so far
  std::istringstream text(t.map);
  for (std::string word; text >> word;) {
    const size_t colon = word.find(':');
    const std::string field = word.substr(0, colon);
    const int count = colon == std::string::npos ? -1 : std::stoi(word.substr(colon + 1));
    if (count > 0) left[field] -= count;
    pieces.emplace_back(field, count);
  }
  int64_t burst = address / t.burst_bytes();
  std::map<std::string, int64_t> value;
  std::map<std::string, int> next;  // bit of the field
  std::vector<int> below,
      above;  // bits of the number in the rank, those since the last column bit apart
  std::vector<int64_t> above_all_columns;  // the bits of the burst there
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    const int count = piece->second >= 0 ? piece->second : left[piece->first];
    for (int i = 0; i < count; ++i) {
      above_all_columns.push_back(burst % 2);
      if (piece->first == "column") {
        below.insert(below.end(), above.begin(), above.end());
        above.clear();
        above_all_columns.clear();
      } else if (piece->first == "bank") {
        above.push_back(next["bank"]);
      } else if (piece->first == "bank_group") {
        above.push_back(bits(t.banks) + next["bank_group"]);
      }
      value[piece->first] += (burst % 2) << next[piece->first]++;
      burst /= 2;
    }
  }
  int64_t in_rank = value["bank_group"] * t.banks + value["bank"];
  if (t.hash == 1) {
    const int64_t row = value["row"];
    // Bit i of the Gray code: whether bits i and i + 1 of the row differ.
    for (int i = 0; i < bits(t.banks_per_rank()); ++i) {
      if ((row >> i) % 2 != (row >> (i + 1)) % 2) in_rank ^= int64_t{1} << i;
    }
  }
  if (t.hash == 2) {
    const auto set = [&](int bit, int64_t to) {
      in_rank += (to - (in_rank >> bit) % 2) * (int64_t{1} << bit);
    };
    for (size_t i = 0; i < above_all_columns.size() && !below.empty(); ++i) {
      const int bit = below[i % below.size()];
      if (above_all_columns[i] == 1) set(bit, 1 - (in_rank >> bit) % 2);
    }
    // The remainder of a division on paper: exponents of x in primitive polynomials, by degree.
    const std::vector<std::vector<size_t>> primitive = {{},        {1, 0},    {2, 1, 0}, {3, 1, 0},
                                                        {4, 1, 0}, {5, 2, 0}, {6, 1, 0}};
    const size_t degree = above.size();
    std::vector<int64_t> rest = above_all_columns;
    rest.resize(std::max(rest.size(), degree));
    for (size_t top = rest.size(); top-- > degree && degree > 0;) {
      if (rest[top] == 0) continue;
      for (const size_t exponent : primitive[degree]) rest[top - degree + exponent] ^= 1;
    }
    for (size_t i = 0; i < degree; ++i) set(above[i], rest[i]);
  }
  DramPlace place;
  place.bank = static_cast<int32_t>(value["rank"] * t.banks_per_rank() + in_rank);
  place.row = static_cast<int32_t>(value["row"]);
  place.column = static_cast<int32_t>(value["column"]);
  return place;
}

TEST(SharedPartsTest, AddressesAreWhereTheDescriptionSays) {
  std::mt19937_64 random(11);
  std::vector<DramTiming> timings;
  for (const isa::DramPresetText& preset : isa::DramPresetTexts()) {
    timings.push_back(DramPreset(std::string(preset.name)).value());
  }
  for (int i = 0; i < 200; ++i) timings.push_back(RandomDram(random));
  for (const DramTiming& timing : timings) {
    SCOPED_TRACE(DescribeDram(timing));
    const AddressMap map = AddressMap::Make(timing, "test").value();
    for (int i = 0; i < 100; ++i) {
      const int64_t address =
          static_cast<int64_t>(random() % static_cast<uint64_t>(2 * timing.capacity()));
      ASSERT_EQ(map.Map(address), PlaceByHand(timing, address)) << address;
    }
  }
}

}  // namespace
}  // namespace polynao::simulator::reference
