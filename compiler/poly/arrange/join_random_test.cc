// Random programs of several nests, with indices that are affine only in part, before and after the strategies,
// compared by the interpreter. POLYNAO_RANDOM_CASES=5000 makes it that many programs, POLYNAO_SEED=1000 begins with
// that one.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/poly/arrange/join.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/poly.h"
#include "testing/fuzz.h"

namespace polynao::poly {
namespace {

// Nests over i from 0 to n - 1 that store and read elements i .. i + 4 of arrays with n + 8 elements.
class ProgramMaker {
 public:
  explicit ProgramMaker(uint64_t seed) : random_(seed) {}

  std::string Make() {
    std::string text =
        "func f(x0: f32[n + 8], x1: f32[n + 8], x2: f32[n + 8], x3: f32[n + 8], idx: i32[n + 8] "
        "in, "
        "n: i32) {\n";
    for (int nests = Pick(2, 5); nests > 0; --nests) StrAppend(&text, Nest());
    return StrCat(text, "}\n");
  }

 private:
  int Pick(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  std::string Array() { return StrCat("x", Pick(0, 3)); }

  // In i .. i + 4, whatever `from` has.
  std::string Index(const std::string& from) {
    switch (Pick(0, 9)) {
      case 0:
        return StrCat("i + idx[", from, "] % 5");
      case 1:
        return StrCat("max(i + idx[", from, "] % 7 - 3, i + 1)");
      case 2:
        return StrCat("min(i + idx[", from, "] % 7, i + ", Pick(0, 4), ")");
      case 3:
        return StrCat("max(min(idx[", from, "] % 9, i + 4), i)");
      case 4:
        return StrCat("i + 4 - idx[", from, "] % ", Pick(1, 5));
      case 5:
        return StrCat("max(idx[", from, "] % 4, i)");
      default:
        return StrCat("i + ", Pick(0, 4));
    }
  }
  std::string Value(const std::string& from) {
    std::string text = StrCat(Array(), "[", Index(from), "]");
    for (int more = Pick(0, 2); more > 0; --more) {
      StrAppend(&text, Pick(0, 1) == 0 ? " + " : " * ", Array(), "[", Index(from), "]");
    }
    return text;
  }
  // At `index` or, where that depends on the data, by way of a let.
  std::string Store(const std::string& from) {
    const std::string array = Array(), index = Index(from), value = Value(from);
    if (Pick(0, 1) == 0)
      return StrCat("let j: i32 = ", index, " ", array, "[j] = ", array, "[j] + ", value);
    return StrCat(array, "[", index, "] = ", value);
  }
  std::string Nest() {
    if (Pick(0, 3) > 0) return StrCat("  for (i, 0, n) { ", Store("i"), " }\n");
    return StrCat("  for (i, 0, n) { for (k, i, idx[i] % 3) { ", Store("k"), " } }\n");
  }

  std::mt19937_64 random_;
};

TEST(JoinRandomTest, EveryStrategyKeepsTheMeaning) {
  const int64_t cases = FuzzCases(80);
  const auto first = static_cast<int64_t>(FuzzSeed());
  std::map<std::string, int> joined;
  for (int64_t seed = first; seed < first + cases; ++seed) {
    const std::string text = ProgramMaker(static_cast<uint64_t>(seed)).Make();
    const absl::StatusOr<ir::Function> before = ir::ParseFunction(text);
    ASSERT_TRUE(before.ok()) << text << before.status();
    for (const char* strategy : {"smart", "max", "auto"}) {
      ir::Function after = *before;
      ScheduleOptions options;
      options.strategy = strategy;
      options.machine = SmallMachine();
      options.tile = {{3}};
      options.max_operations = 1'000'000;
      const absl::StatusOr<ScheduleReport> report = Schedule(after, options);
      ASSERT_TRUE(report.ok()) << text << report.status();
      ASSERT_TRUE(report->internal_errors.empty()) << text << report->internal_errors[0];
      joined[strategy] += report->ToString().find(kJoinLine) != std::string::npos;
      for (const int64_t n : {0, 1, 2, 7}) {
        ir::MeaningOptions meaning;
        meaning.arguments.scalars["n"] = ir::Argument::Int(n);
        ASSERT_EQ(ir::CompareMeaning(*before, after, static_cast<uint64_t>(seed), meaning), "")
            << "seed " << seed << ", " << strategy << ", n = " << n << "\n"
            << text << report->ToString() << ir::Print(after);
      }
    }
  }
  std::printf("seeds %d to %d: auto joined nests in %d programs\n", static_cast<int>(first),
              static_cast<int>(first + cases - 1), joined["auto"]);
  EXPECT_GT(joined["auto"], cases / 20);
}

}  // namespace
}  // namespace polynao::poly
