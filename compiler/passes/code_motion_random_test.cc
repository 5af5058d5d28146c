// normalize, licm and hoist_if one after the other on random programs: the same values before and
// after. POLYNAO_RANDOM_CASES=1000000 makes it that many programs.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/passes/hoist_if.h"
#include "compiler/passes/licm.h"
#include "compiler/passes/normalize.h"
#include "compiler/passes/pass_test_util.h"
#include "compiler/passes/simplify.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

const Target& TargetNamed(const std::string& name) {
  static const auto* cpu = new Target{.name = "cpu"};
  static const auto* cuda = new Target{.name = "cuda"};
  return name == "cpu" ? *cpu : *cuda;
}

// How many programs each pass changed.
struct Changed {
  int normalize = 0;
  int licm = 0;
  int hoist_if = 0;
};

void MoveCode(ir::Function& function, uint64_t seed, Changed& changed) {
  const Target& target = TargetNamed(seed % 5 == 0 ? "cuda" : "cpu");
  LicmOptions options = LicmOptionsFor(target);
  if (seed % 2 == 0) options.threshold = 1;
  if (seed % 2 == 0) options.unrolled_extent = 0;
  options.leave = seed % 3 == 0;
  if (seed % 7 == 0) options.max_live = 2;
  const absl::StatusOr<bool> normalized = Normalize(function, target);
  ASSERT_TRUE(normalized.ok()) << normalized.status();
  changed.normalize += *normalized;
  // In either order: what one moves makes room for the other.
  for (const bool is_licm : {seed % 3 != 0, seed % 3 == 0}) {
    const absl::StatusOr<bool> moved =
        is_licm ? Licm(function, target, options) : HoistIf(function, target);
    ASSERT_TRUE(moved.ok()) << moved.status();
    (is_licm ? changed.licm : changed.hoist_if) += *moved;
  }
  // What is left must be something that simplify understands.
  if (seed % 11 == 0) ASSERT_TRUE(Simplify(function).ok());
  ASSERT_TRUE(ir::Verify(function).ok()) << ir::Verify(function) << ir::Print(function);
}

ir::RandomProgramOptions Options(uint64_t seed) {
  return {.stores = 4,
          .expression_depth = 3,
          .may_stop = seed % 4 == 3,
          .max_iterations = 100,
          .repetition = seed % 2 == 0 ? 40 : 0,
          .extern_calls = seed % 3 == 1,
          .edges = seed % 8 > 4};
}

constexpr int kParts = 4;

class CodeMotionRandomTest : public testing::TestWithParam<int> {};

TEST_P(CodeMotionRandomTest, SameMeaning) {
  const char* more = std::getenv("POLYNAO_RANDOM_CASES");
  const uint64_t cases = (more == nullptr ? 12000 : std::strtoull(more, nullptr, 10)) / kParts;
  const uint64_t first = 1 + cases * static_cast<uint64_t>(GetParam());
  Changed changed;
  int stopped = 0;
  for (uint64_t seed = first; seed < first + cases && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const ir::Function before = ir::RandomProgram(seed, Options(seed));
    ir::Function after = ir::CloneInto(before, std::make_shared<ir::Context>());
    MoveCode(after, seed, changed);
    bool stops = false;
    const std::string difference = CompareMeaningOnRandomArguments(before, after, seed, &stops);
    // Nothing is owed to a program that stops; none may be made to stop.
    stopped += stops;
    if (!stops) {
      EXPECT_EQ(difference, "") << ir::Print(before) << ir::Print(after);
    }
  }
  EXPECT_GT(changed.normalize, static_cast<int>(cases / 4));
  EXPECT_GT(changed.licm, static_cast<int>(cases / 4));
  EXPECT_GT(changed.hoist_if, static_cast<int>(cases / 20));
  EXPECT_GT(stopped, 0);
}

INSTANTIATE_TEST_SUITE_P(Parts, CodeMotionRandomTest, testing::Range(0, kParts));

// The text after the passes does not depend on where a process has its memory.
TEST(CodeMotionTest, SameTextInEveryProcess) {
  const std::string text = TextOfEveryProcess([] {
    Changed changed;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      ir::Function f = ir::RandomProgram(seed, {.stores = 8, .repetition = 40});
      MoveCode(f, seed, changed);
      std::printf("%s", ir::Print(f).c_str());
    }
  });
  EXPECT_NE(text.find("let inv_"), std::string::npos) << text;
}

}  // namespace
}  // namespace polynao
