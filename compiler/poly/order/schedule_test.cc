// Schedules as texts: what is read, and the message for what is not.
#include "compiler/poly/order/schedule.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/poly/isl/isl_tools.h"
#include "compiler/poly/isl/tree_text.h"
#include "compiler/poly/model/extract.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/fuzz.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;

constexpr char kTwoNests[] =
    "func f(A: f32[n], B: f32[n, n], n: i32) {\n"
    "  for (i, 0, n) { A[i] = A[i] + 1.0 }\n"
    "  for (i, 0, n) { for (j, 0, n) { B[i, j] = A[i] * 2.0 } }\n"
    "}\n";

class ScheduleTest : public testing::Test {
 protected:
  ScheduleTest()
      : extraction_(*Extract(*ir::ParseFunction(kTwoNests))),
        scop_(extraction_.scops.at(0)),
        dependences_(ComputeDependences(scop_)) {}

  // The order that is read, as a map, or the error.
  std::string Read(const std::string& text) {
    const absl::StatusOr<isl::schedule> schedule = ParseSchedule(scop_, dependences_, text);
    if (!schedule.ok()) return StrCat("error: ", std::string(schedule.status().message()));
    return Text(schedule->map().gist_domain(scop_.Domain()));
  }

  const Extraction extraction_;
  const Scop& scop_;
  const Dependences dependences_;
};

TEST_F(ScheduleTest, NamesAndPairsOfTimesDoNotCount) {
  const std::string plain = Read("[n] -> { S0[i] -> [0, i, 0]; S1[i, j] -> [1, i, j] }");
  ASSERT_THAT(plain, HasSubstr("S0[i] -> [0, i, 0]"));
  EXPECT_EQ(Read("{ S0[i] -> T[0, i, 0]; S1[i, j] -> [[1, i] -> U[j]] }"), plain);
}

TEST_F(ScheduleTest, TheNotationOfTexts) {
  const std::string plain = Read("[n] -> { S0[i] -> [0, i, 0]; S1[i, j] -> [1, i, j] }");
  ASSERT_THAT(plain, HasSubstr("S0[i] -> [0, i, 0]"));
  EXPECT_EQ(Read("{ S0(i) → (0, i, 0); S1(i, j) → (1, i, j) }"), plain);
  EXPECT_EQ(Read("[S 0 ( i ) → ( 0,i,0 ); S 1 ( i,j ) → ( 1,i,j )]  # as written"), plain);
  EXPECT_EQ(Read("[{ S0(i) -> (0, i); S1(i, j) -> (1, i) }, { S0(i) -> (0); S1(i, j) -> (j) }]"),
            plain);
  // Statements by numbers from 1, unless S0 is among them or there are not as many.
  EXPECT_EQ(Read("[S 1 ( i ) → ( 0,i,0 ); S 2 ( i,j ) → ( 1,i,j )]"), plain);
  EXPECT_EQ(Read("{ S0(i) → (0, i, 0); S1(i, j) → (1, i, j); S2(i) → (2, i, 0) }"), plain);
  EXPECT_THAT(Read("[S1(i, j) → (i, j)]"), HasSubstr("no time for the instances"));
  // A name may be left out where there is one statement only.
  EXPECT_THAT(Read("{ (i, j) → (i, j) }"), HasSubstr("no time for the instances"));
  // Quotients round down; parameters of the part need no declaration, but n alone would be a new variable.
  const std::string quotient =
      Read("[n] -> { S0[i] -> [0, floor(i/4), i]; S1[i, j] -> [n, i, j + n] : n > 0 }");
  ASSERT_THAT(quotient, HasSubstr("4o1"));
  EXPECT_EQ(Read("{ S0[i] -> [0, i/4, i]; S1[i, j] -> [n(), i, j + n] : n > 0 }"), quotient);
}

TEST_F(ScheduleTest, ErrorsAreOneLineForTheReader) {
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
       "schedule:2:10: expected ',' or ']', found '->'"},
      {"{ S0[i] : i > 0 }", "schedule:1:1: expected a map, found a set"},
      {"[n]", "schedule:1:4: expected '->' after the parameters, found the end of the text"},
      {"{ S0[i] -> [i] }; { S1[i, j] -> [i] }",
       "schedule:1:19: expected one map, found 2 statements"},
      {"{ S0(i) → (0, i*i); S1(i, j) → (1, i) }",
       "schedule:1:16: expected an affine expression, found a product of two variable expressions"},
      {"[{ S0(i) → (i) }, { S1(i, j) → (i)",
       "schedule:1:35: expected '->', ':', ';' or '}', found the end of the text"},
      // The coordinate with a remainder has its value.
      {"{ S0[i] -> [1, 0, i]; S1[i, j] -> [0, i mod 2, j] }",
       "the schedule violates a flow dependence from S0[0] at time [1, 0, 0] to S1[0, 0] at time "
       "[0, 0, 0] "
       "on A[0] where n = 1"},
      {"domain: \"[n] -> { S0[i] : 0 <= i < n }\"",
       "the schedule has no time for the instances [n] -> { S1[i, j] : 0 <= i < n and 0 <= j < n "
       "}"},
      // isl's reader would crash, and not end.
      {"domain: 2",
       "expected a schedule tree (domain: .., child: ..) or a map { S0[i] -> [t0, ..] }, found "
       "'domain: 2'"},
      {"domain: \"{ S0[i] }\"\nchild:\n  sequence:\n  - filter: \"{ S0[i] }\"\n      schedule: "
       "\"[{ S1[i] ->",
       "expected a schedule tree (domain: .., child: ..) or a map { S0[i] -> [t0, ..] }, found "
       "'domain: \"{ S0[i] "
       "}\" child: sequence: - filter: \"{ S0[i] }\" schedule: \"[{ S1[i] ->'"},
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

// Damaged texts, some with few operations for isl: an order or a message of one line, nothing of isl's.
TEST_F(ScheduleTest, MutatedTexts) {
  FuzzTarget target;
  target.corpus = {
      "[n] -> { S0[i] -> [0, i, 0]; S1[i, j] -> [1, i, j] }",
      "{ S0[i] -> T[0, i mod 3, i, 0]; S1[i, j] -> [[1, i] -> U[floor(j/4), j]] }",
      "[n] -> { S0[i] -> [i, 0] : i >= 0; S1[i, j] -> [n + i, j] : j < n }",
      "[S 1 ( i ) → ( 0,i,0 ); S 2 ( i,j ) → ( 1,i,j )]",
      "[{ S0(i) → (0, i/ 32); S1(i, j) → (1, i/32) }, { S0(i) → (i, 0); S1(i, j) → (i - j, j) }]",
      TreeText(scop_.schedule),
      "domain: \"[n] -> { S0[i] : 0 <= i < n; S1[i, j] : 0 <= i < n and 0 <= j < n }\"\n"
      "child:\n"
      "  sequence:\n"
      "  - filter: \"[n] -> { S0[i] }\"\n"
      "    child:\n"
      "      schedule: \"[n] -> [{ S0[i] -> [(i)] }]\"\n"
      "      permutable: 1\n"
      "  - filter: \"[n] -> { S1[i, j] }\"\n"
      "    child:\n"
      "      schedule: \"[n] -> [{ S1[i, j] -> [(floor((i)/4))] }, { S1[i, j] -> [(i)] }, { S1[i, "
      "j] -> [(j)] }]\"\n",
  };
  target.parse = [&](const std::string& input) -> absl::Status {
    const size_t hash = std::hash<std::string>()(input);
    scop_.isl->Allow(hash % 2 == 0 ? 100'000 : 1 + (hash >> 16) % (1ul << ((hash >> 8) % 14)));
    const absl::Status status = ParseSchedule(scop_, dependences_, input).status();
    const bool is_spent = absl::IsResourceExhausted(status);
    scop_.isl->Allow(0);
    if (is_spent) return ParseSchedule(scop_, dependences_, input).status();
    const std::string message(status.message());
    if (absl::StrContains(message, "\n") || absl::StrContains(message, "isl: ")) {
      return absl::InternalError(StrCat("not a message of one line for its reader: ", message));
    }
    return status;
  };
  target.place = R"((schedule:\d+:\d+: expected|expected|a schedule: expected|the schedule) )";
  target.max_bytes = 2048;
  const FuzzResult result = Fuzz(target, FuzzCases(1000), FuzzSeed());
  EXPECT_EQ(result.failure, "");
  EXPECT_GT(result.accepted, 20);
  EXPECT_GT(result.refused, 20);
}

}  // namespace
}  // namespace polynao::poly
