// The passes that use what conditions say, on random programs whose conditions compare floats, with NaN,
// infinities and -0 among the inputs: `!(x < y)` is not `y <= x`. The same few operands come again in every
// order, under other conditions and beside conditions of loop variables. POLYNAO_RANDOM_CASES=1000000 makes
// it that many programs.
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

#include "absl/status/statusor.h"
#include "base/text.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/passes/cse.h"
#include "compiler/passes/hoist_if.h"
#include "compiler/passes/licm.h"
#include "compiler/passes/loop_partition.h"
#include "compiler/passes/normalize.h"
#include "compiler/passes/simplify.h"
#include "compiler/target/target.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  // Loops over i and j around nested ifs; every branch stores another number.
  std::string Text() {
    return StrCat("func f(B: i32[8, 8], x: f32, y: f32, n: i32) {\n",
                  Below(3) == 0 ? StrCat("if (", Condition(2, false), ") {", Loops(), "} else {",
                                         Loops(), "}")
                                : Loops(),
                  "}");
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  std::string Loops() { return StrCat("for (i, 0, 8) { for (j, 0, 8) {", Statement(3), "} }"); }

  std::string Statement(int depth) {
    if (depth == 0 || Below(8) == 0) return StrCat("B[i, j] = ", Value());
    if (Below(6) == 0) return StrCat(Statement(depth - 1), " ", Statement(depth - 1));
    return StrCat("if (", Condition(2, true), ") {", Statement(depth - 1), "} else {",
                  Statement(depth - 1), "}");
  }

  std::string Value() {
    const int number = ++numbers_;
    if (Below(3) != 0) return StrCat(number);
    return StrCat("select(", Condition(1, true), ", B[i, j] + ", number, ", ", number, ")");
  }

  std::string Condition(int depth, bool in_loops) {
    switch (depth == 0 ? 3 : Below(5)) {
      case 0:
        return StrCat("!(", Condition(depth - 1, in_loops), ")");
      case 1:
        return StrCat("(", Condition(depth - 1, in_loops), " && ", Condition(depth - 1, in_loops),
                      ")");
      case 2:
        return StrCat("(", Condition(depth - 1, in_loops), " || ", Condition(depth - 1, in_loops),
                      ")");
      default:
        break;
    }
    constexpr const char* kOrders[] = {"<", "<=", "==", "!=", "<", "<="};
    const char* order = kOrders[Below(6)];
    if (in_loops && Below(3) == 0) {
      constexpr const char* kIntegers[] = {"i", "j", "i + j", "n"};
      return StrCat("(", kIntegers[Below(4)], " ", order, " ", Below(10), ")");
    }
    constexpr const char* kFloats[] = {"x", "y", "1.0"};
    const int a = Below(3);
    return StrCat("(", kFloats[a], " ", order, " ", kFloats[(a + 1 + Below(2)) % 3], ")");
  }

  std::mt19937_64 random_;
  int numbers_ = 0;
};

// Runs the pass number `pass`; the name of the pass, for messages.
std::string RunPass(int pass, ir::Function& function, bool& changed) {
  static const auto* cpu = new Target{.name = "cpu"};
  const auto note = [&](const char* name, const absl::StatusOr<bool>& result) {
    EXPECT_TRUE(result.ok()) << name << ": " << result.status();
    changed = result.ok() && *result;
    return std::string(name);
  };
  switch (pass) {
    case 0:
      return note("simplify", Simplify(function));
    case 1:
      return note("normalize", Normalize(function, *cpu));
    case 2:
      return note("hoist_if", HoistIf(function, *cpu));
    case 3:
      return note("licm", Licm(function, *cpu, LicmOptionsFor(*cpu)));
    case 4:
      return note("cse", Cse(function));
    default:
      return note("loop_partition", LoopPartition(function));
  }
}

constexpr int kPasses = 6;

TEST(FloatConditionsTest, SameMeaning) {
  const char* more = std::getenv("POLYNAO_RANDOM_CASES");
  const uint64_t cases = more == nullptr ? 1000 : std::strtoull(more, nullptr, 10);
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kPairs[][2] = {{kNaN, 1}, {2, kNaN},          {kNaN, kNaN}, {1, 1},
                                  {0, -0.0}, {-kInfinity, kNaN}, {0.5, 3},     {kInfinity, 0}};
  int changes[kPasses] = {};
  for (uint64_t seed = 1; seed <= cases && !HasFailure(); ++seed) {
    const ir::Function before = ParseProgram(Generator(seed).Text());
    ir::Function after = before;
    std::string passes;
    // Up to three passes, one after the other.
    for (int step = 0; step < 3; ++step) {
      const int pass = static_cast<int>((seed / (step == 0 ? 1 : step == 1 ? 6 : 36)) % kPasses);
      bool changed = false;
      StrAppend(&passes, passes.empty() ? "" : ", ", RunPass(pass, after, changed));
      changes[pass] += changed;
    }
    for (const auto& [x, y] : kPairs) {
      ir::MeaningOptions options{.draws = 1, .runs = 1};
      options.arguments.scalars = {{"x", ir::Argument::Float(x)},
                                   {"y", ir::Argument::Float(y)},
                                   {"n", ir::Argument::Int(static_cast<int64_t>(seed % 9))}};
      ASSERT_EQ(ir::CompareMeaning(before, after, seed, options), "")
          << "seed " << seed << ", " << passes << ", x = " << x << ", y = " << y << "\n"
          << ir::Print(before) << ir::Print(after);
    }
  }
  for (int pass = 0; pass < kPasses; ++pass) {
    EXPECT_GT(changes[pass], 0) << "pass " << pass << " changed no program";
  }
}

}  // namespace
}  // namespace polynao
