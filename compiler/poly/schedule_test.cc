// Schedules as texts: what is read, and the message for what is not.
#include "compiler/poly/schedule.h"

#include <string>
#include <utility>

#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/poly/extract.h"
#include "compiler/poly/isl_tools.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;

constexpr char kTwoNests[] =
    "func f(A: f32[n], B: f32[n, n], n: i32) {\n"
    "  for (i, 0, n) { A[i] = A[i] + 1.0 }\n"
    "  for (i, 0, n) { for (j, 0, n) { B[i, j] = A[i] * 2.0 } }\n"
    "}\n";

// The order that is read, as a map, or the error.
std::string Read(const std::string& text) {
  const absl::StatusOr<ir::Function> function = ir::ParseFunction(kTwoNests);
  EXPECT_TRUE(function.ok()) << function.status();
  const absl::StatusOr<Extraction> extraction = Extract(*function);
  EXPECT_TRUE(extraction.ok()) << extraction.status();
  const Scop& scop = extraction->scops.at(0);
  const absl::StatusOr<isl::schedule> schedule =
      ParseSchedule(scop, ComputeDependences(scop), text);
  if (!schedule.ok()) return StrCat("error: ", std::string(schedule.status().message()));
  const std::string order = Text(schedule->map().gist_domain(scop.Domain()));
  return order;
}

TEST(ScheduleTest, NamesAndPairsOfTimesDoNotCount) {
  const std::string plain = Read("[n] -> { S0[i] -> [0, i, 0]; S1[i, j] -> [1, i, j] }");
  ASSERT_THAT(plain, HasSubstr("S0[i] -> [0, i, 0]"));
  EXPECT_EQ(Read("{ S0[i] -> T[0, i, 0]; S1[i, j] -> [[1, i] -> U[j]] }"), plain);
}

TEST(ScheduleTest, ErrorsAreOneLineForTheReader) {
  const std::pair<const char*, const char*> cases[] = {
      {"{ S0[i] -> [0, i]; S1[i, j] -> [1, i, j] }",
       "a schedule: expected times of one length, found 2 for S0 and 3 for S1"},
      {"{ S0[i] -> []; S1[i, j] -> [] }",
       "a schedule: expected a time [t0, ..] for the instances of S0, found []"},
      {"[m] -> { S0[i] -> [0, i + m, 0]; S1[i, j] -> [1, i, j] }",
       "a schedule: expected parameters of the part (n), found 'm'"},
      {"[n] -> { S0[i] -> [i, 0]; S0[i] -> [i, 1];\n  S1[i, j] -> [n, j] }",
       "a schedule: expected one time for each instance, found '[n] -> { S0[i] -> [i, 0]; S0[i] -> "
       "[i, 1]; S1[i, j] -> [n, j] }'"},
      {"{ S0[i] -> [i, 0];\n S1[i, j -> [n, j] }",
       "expected a schedule { S0[i] -> [t0, ..]; .. }, found '{ S0[i] -> [i, 0]; S1[i, j -> [n, j] "
       "}'"},
      // The coordinate with a remainder has its value.
      {"{ S0[i] -> [1, 0, i]; S1[i, j] -> [0, i mod 2, j] }",
       "the schedule violates a flow dependence from S0[0] at time [1, 0, 0] to S1[0, 0] at time "
       "[0, 0, 0] "
       "on A[0] where n = 1"},
      {"domain: \"[n] -> { S0[i] : 0 <= i < n }\"",
       "the schedule has no time for the instances [n] -> { S1[i, j] : 0 <= i < n and 0 <= j < n "
       "}"},
      {"tree:\n  of\n  no form",
       "expected a schedule tree (domain: .., child: ..) or a map { S0[i] -> [t0, ..] }, found "
       "'tree: of no "
       "form'"},
  };
  testing::internal::CaptureStderr();
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(Read(text), StrCat("error: ", message)) << text;
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace polynao::poly
