#include "testing/fuzz.h"

#include <cstdlib>
#include <set>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kCorpus = {"let a = 1\nlet b = (a + 2)\nlet c = b\n",
                                          "let x = 3\nlet y = (x)\n"};

TEST(InputMutatorTest, TheSameSeedAndNumberGiveTheSameInput) {
  InputMutator a(kCorpus, 7);
  InputMutator b(kCorpus, 7);
  InputMutator other(kCorpus, 8);
  b.Input(3);
  int same_as_other = 0;
  for (int64_t i = 0; i < 100; ++i) {
    const std::string input = a.Input(i);
    EXPECT_EQ(input, b.Input(i)) << i;
    same_as_other += input == other.Input(i);
  }
  EXPECT_LT(same_as_other, 20);
}

TEST(InputMutatorTest, InputsDifferAndStayShort) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "line " + std::to_string(i) + "\n";
  InputMutator mutator({lines, "short\n"}, 1, 300);
  std::set<std::string> inputs;
  size_t longest = 0;
  for (int64_t i = 0; i < 500; ++i) {
    const std::string input = mutator.Input(i);
    inputs.insert(input);
    longest = std::max(longest, input.size());
  }
  EXPECT_GT(inputs.size(), 400u);
  EXPECT_LE(longest, 300u);
  EXPECT_GT(longest, 150u);
}

TEST(InputMutatorTest, AcceptsInputsWithoutBytesTokensOrLines) {
  for (const std::string& input : {std::string(), std::string(" "), std::string("\n")}) {
    InputMutator mutator({input}, 1);
    for (int64_t i = 0; i < 200; ++i) mutator.Input(i);
  }
}

TEST(FuzzTest, CountsAnswers) {
  FuzzTarget target{.corpus = kCorpus,
                    .parse =
                        [](const std::string& input) {
                          return input.starts_with("let") ? absl::OkStatus()
                                                          : InvalidInput("f:1: expected 'let'");
                        },
                    .place = "f:\\d+: "};
  const FuzzResult result = Fuzz(target, 500, 1);
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(result.accepted + result.refused, 502);
  EXPECT_GT(result.accepted, 300);
  EXPECT_GT(result.refused, 5);
}

TEST(FuzzTest, FindsErrorsWithoutPlaceAndShrinksThem) {
  FuzzTarget target{.corpus = kCorpus,
                    .parse =
                        [](const std::string& input) {
                          return input.find("((") != std::string::npos ? InvalidInput("nested")
                                                                       : absl::OkStatus();
                        },
                    .place = "f:\\d+: "};
  const FuzzResult result = Fuzz(target, 5000, 1);
  EXPECT_THAT(result.failure, HasSubstr("an error without its place: nested\n(("));
  EXPECT_THAT(result.failure, testing::EndsWith("\n(("));
}

TEST(FuzzTest, FindsViolationsOfTheParsersOwnChecks) {
  FuzzTarget target{.corpus = kCorpus,
                    .parse =
                        [](const std::string& input) {
                          return input.find("yy") != std::string::npos
                                     ? absl::InternalError("does not parse back")
                                     : absl::OkStatus();
                        },
                    .place = "f:\\d+: "};
  EXPECT_THAT(Fuzz(target, 20000, 1).failure, HasSubstr("does not parse back\nyy"));
}

TEST(FuzzTest, RefusedCorpus) {
  FuzzTarget target{.corpus = kCorpus,
                    .parse = [](const std::string&) { return InvalidInput("f:1: no"); },
                    .place = "f:\\d+: "};
  EXPECT_EQ(Fuzz(target, 10, 1).failure,
            "seed 1, input -2: an input of the corpus is refused: f:1: no");
}

FuzzTarget TargetThatDoes(const std::function<void()>& act) {
  return {.corpus = kCorpus,
          .parse =
              [act](const std::string& input) {
                if (input.find("let a") == std::string::npos) act();
                return absl::OkStatus();
              },
          .place = "",
          .max_seconds = 1};
}

TEST(FuzzDeathTest, ReportsAborts) {
  EXPECT_DEATH(Fuzz(TargetThatDoes([] { std::abort(); }), 100, 1),
               "fuzz: an abort at seed 1, input -1; the input is in .*fuzz_input");
}

int Recurse(volatile int* depth) {
  *depth = *depth + 1;
  if (*depth == 0) return 0;
  return Recurse(depth) + *depth;
}

TEST(FuzzDeathTest, ReportsExhaustedStacks) {
  EXPECT_DEATH(Fuzz(TargetThatDoes([] {
                      volatile int depth = 0;
                      Recurse(&depth);
                    }),
                    100, 1),
               "fuzz: a crash at seed 1, input -1");
}

TEST(FuzzDeathTest, ReportsHangs) {
  EXPECT_DEATH(Fuzz(TargetThatDoes([] {
                      volatile bool forever = true;
                      while (forever) {
                      }
                    }),
                    100, 1),
               "fuzz: no end in sight at seed 1, input -1");
}

TEST(FuzzTest, Excerpt) {
  EXPECT_EQ(Excerpt(std::string("a\nb\0\xff", 5)), "a\nb\\x00\\xff");
  EXPECT_THAT(Excerpt(std::string(3000, 'x')), testing::EndsWith("x... (3000 bytes)"));
}

}  // namespace
}  // namespace polynao
