// The registry: errors about options, defaults, and that each option of each pass does something.
#include "compiler/registry/registry.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/passes/pass_test_util.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Target TargetOf(const std::string& name) {
  Target target;
  target.name = name;
  return target;
}

std::string After(const std::string& text, const std::vector<PassSpec>& passes,
                  const Target& target) {
  ir::Function function = ParseProgram(text);
  const absl::Status status = RunPasses(function, passes, target);
  EXPECT_TRUE(status.ok()) << status;
  return ir::Print(function);
}

TEST(RegistryTest, ParsesOptions) {
  const auto passes = ParsePasses("simplify, loop_partition(max_pieces=4; only_in_pragmas=1),cse");
  ASSERT_TRUE(passes.ok()) << passes.status();
  ASSERT_EQ(passes->size(), 3);
  EXPECT_EQ((*passes)[1].name, "loop_partition");
  EXPECT_EQ((*passes)[1].options, (OptionValues{{"max_pieces", 4}, {"only_in_pragmas", 1}}));
  EXPECT_EQ((*ParsePasses("schedule(strategy=smart)"))[0].options, (OptionValues{{"strategy", 2}}));
}

TEST(RegistryTest, ErrorsListWhatThereIs) {
  const std::string all =
      "; it has: max_pieces (an integer from 1 to 1000), max_nest_pieces (an integer from 0 to "
      "100000), only_in_pragmas (0 or 1)";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"loop_partition(pieces=4)", "pass 'loop_partition' has no option 'pieces'" + all},
      {"loop_partition(max_pieces=four)",
       "pass 'loop_partition' option 'max_pieces': expected an integer from 1 to 1000, found "
       "'four'" +
           all},
      {"loop_partition(max_pieces=0)", "expected an integer from 1 to 1000, found '0'" + all},
      {"loop_partition(max_pieces=)", "expected an integer from 1 to 1000, found ''" + all},
      {"loop_partition(max_pieces=99999999999999999999)", "found '99999999999999999999'"},
      {"schedule(strategy=fast)",
       "option 'strategy': expected original, min, smart, max, auto, fuse, overlap, found 'fast'; "
       "it has: "
       "strategy (original, min, smart, max, auto, fuse, overlap), tile (an integer from 0 to "
       "1024)"},
      {"cse(semantic=2)", "option 'semantic': expected 0 or 1, found '2'; it has: semantic"},
      {"cse(semantic=1;semantic=0)", "option 'semantic' is given twice"},
      {"sync(x=1)", "pass 'sync' has no option 'x'; it has no options"},
      {"inline", "no pass is named 'inline'; there are: simplify, normalize, "},
      {"cse(semantic)", "expected option=value at character 13, found ')'"},
      {"cse(semantic=1", "expected ')' at character 15, found the end"},
      {"cse(semantic=1)x", "expected ',' at character 16, found 'x'"},
      {"cse,", "expected a pass at character 5, found the end"},
  };
  for (const auto& [text, error] : cases) {
    const auto passes = ParsePasses(text);
    ASSERT_FALSE(passes.ok()) << text;
    EXPECT_THAT(passes.status().message(), HasSubstr(error));
  }
}

// A list that is not made from text is checked, too.
TEST(RegistryTest, RunPassesChecksOptions) {
  ir::Function function = ParseProgram("func f(A: i32[1]) { A[0] = 1 }");
  const std::vector<PassSpec> passes = {{"cse", {{"semantics", 1}}}};
  const absl::Status status = RunPasses(function, passes, TargetOf("cpu"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("pass 'cse' has no option 'semantics'"));
}

TEST(RegistryTest, PrintsDefaults) {
  std::map<std::string, std::string> defaults;
  for (const PassInfo& pass : Passes()) {
    for (const PassOption& option : pass.options) {
      defaults[StrCat(pass.name, ".", option.name)] = DefaultText(option);
    }
  }
  EXPECT_EQ(defaults["loop_partition.max_pieces"], "max_pieces=16");
  EXPECT_EQ(defaults["cse.semantic"], "semantic=0");
  EXPECT_EQ(defaults["schedule.strategy"], "strategy=smart");
  EXPECT_EQ(defaults["licm.unrolled"], "unrolled=0 (4 for cpu, c; 8 for cuda)");
}

// A value of an option, and a program that it changes the result for.
struct OptionExample {
  int64_t value;
  std::string target;
  std::string program;
  OptionValues others = {};  // that it needs
};

const std::map<std::string, OptionExample>& OptionExamples() {
  const std::string invariant =
      "func f(A: f32[64], B: f32[1] in) { for (i, 0, 64) { A[i] = A[i] * B[0] } }";
  const std::string guards =
      "func f(A: i32[64]) { for (i, 0, 64) { if (i < 3) { A[i] = 1 } else { A[i] = 2 } } }";
  const std::string sums =
      "func f(A: f32[64, 64] in, B: f32[64]) { for (i, 0, 64) { for (j, 0, 64) {"
      " B[i] = B[i] + A[j, i] } } }";
  static const auto* examples = new std::map<std::string, OptionExample>{
      {"normalize.float",
       {1, "cpu",
        "func f(A: f32[8] in, B: f32[64] out, x: f32) { for (i, 0, 8) { for (j, 0, 8) {"
        " B[i * 8 + j] = A[j] + A[i] + x } } }"}},
      {"licm.k", {100, "cpu", invariant}},
      {"licm.max_live", {0, "cpu", invariant}},
      {"licm.unrolled", {64, "cpu", invariant}},
      {"licm.leave",
       {1, "cpu", "func f(A: i32[64]) { for (i, 0, 8) { for (j, 0, 8) { A[i * 8 + j] = j } } }"}},
      {"licm.beside_instructions",
       {1, "diannao",
        "func f(A: f16[256] in, n: i32) { allocate L: f16[256] @nmem for (i, 0, 4) {"
        " memcpy.f16.nmem.gmem(&L[n * 3], &A[i * 64], 64, 1, 0, 0) } }"}},
      {"cse.leave", {1, "cpu", "func f(A: i32[4], x: i32, y: i32) { A[0] = x + y A[1] = x + y }"}},
      {"hoist_if.max_growth",
       {0, "cpu",
        "func f(A: i32[8], n: i32) { for (i, 0, 8) { A[i] = 1 if (n < 3) { A[0] = 2 } } }"}},
      {"cse.semantic",
       {1, "interp",
        "func f(A: i32[4], x: i32, y: i32, z: i32) { A[0] = x * y + x * z A[1] = (z + y) * x"
        " A[2] = max(x, y + z) }"}},
      {"promote.max_bytes",
       {0, "cpu",
        "func f(A: f32[64], B: f32[64] in) { for (k, 0, 64) { unroll (i, 0, 4) { A[i] = A[i] + "
        "B[k] } } }"}},
      {"loop_partition.max_pieces", {1, "cpu", guards}},
      {"loop_partition.max_nest_pieces", {0, "cpu", guards}},
      {"loop_partition.only_in_pragmas", {1, "cpu", guards}},
      {"schedule.strategy",
       {0, "cpu", "func f(A: f32[64], B: f32[64]) { for (i, 0, 64) { A[i] = 1.0 B[i] = 2.0 } }"}},
      {"schedule.tile", {0, "cpu", sums}},
      {"schedule.parallel", {0, "cpu", sums}},
      {"schedule.vectorize", {0, "cpu", sums}},
      {"schedule.operations", {1, "cpu", sums}},
      {"schedule.reassociate",
       {1, "cpu",
        "func f(A: f32[64, 64] in, B: f32[1]) { for (i, 0, 64) { for (j, 0, 64) {"
        " B[0] = B[0] + A[j, i] } } }"}},
      {"schedule.windows",
       {1,
        "cpu",
        "func f(a: f32[302, 302] in, y: f32[300, 300]) { allocate b: f32[302, 302]"
        " for (i, 0, 302) { for (j, 0, 302) { b[i, j] = a[i, j] / (a[i, j] * a[i, j] + 3.0) } }"
        " for (i, 0, 300) { for (j, 0, 300) {"
        " y[i, j] = b[i, j] / b[i + 1, j + 1] + b[i + 2, j + 2] } } }",
        {{"strategy", 5}}}},
      {"flatten.keep_private",
       {1, "cuda",
        "func f(A: i32[8]) { thread (x = \"threadIdx.x\", 8) { allocate L: i32[1, 2] @local"
        " L[0, 1] = x A[x] = L[0, 1] } }"}},
  };
  return *examples;
}

TEST(RegistryTest, EachOptionChangesAResult) {
  int options = 0;
  for (const PassInfo& pass : Passes()) {
    for (const PassOption& option : pass.options) {
      const std::string name = StrCat(pass.name, ".", option.name);
      SCOPED_TRACE(name);
      ASSERT_TRUE(OptionExamples().contains(name)) << "no example";
      const OptionExample& example = OptionExamples().at(name);
      const Target target = TargetOf(example.target);
      const std::string pass_name(pass.name), option_name(option.name);
      const int64_t value = option.default_value(target);
      EXPECT_LE(option.least, value);
      EXPECT_LE(value, option.most);
      const auto with = [&](int64_t to) {
        OptionValues values = example.others;
        values[option_name] = to;
        return After(example.program, {{pass_name, values}}, target);
      };
      const std::string without = After(example.program, {{pass_name, example.others}}, target);
      EXPECT_EQ(with(value), without);
      EXPECT_NE(with(example.value), without);
      ++options;
    }
  }
  EXPECT_EQ(options, OptionExamples().size());
}

TEST(RegistryTest, PassesHaveNamesAndTexts) {
  for (const PassInfo& pass : Passes()) {
    EXPECT_EQ(FindPass(pass.name), &pass);
    EXPECT_FALSE(pass.doc.empty()) << pass.name;
    for (const PassOption& option : pass.options) {
      EXPECT_FALSE(option.doc.empty()) << pass.name << " " << option.name;
      EXPECT_LT(option.least, option.most) << pass.name << " " << option.name;
    }
  }
}

// The first program that a second run of the pass changes, with both results; "" if there is none.
std::string ChangedAgain(const PassInfo& pass, const std::vector<ir::Function>& programs) {
  const Target& accelerator = TestTarget();
  const Target cpu = TargetOf("cpu");
  for (const ir::Function& program : programs) {
    for (const Target* target : {&cpu, &accelerator}) {
      const PassEnvironment environment{*target};
      ir::Function once = program;
      if (!pass.run(once, environment, {}).ok()) continue;  // not for this program or target
      ir::Function twice = once;
      const absl::StatusOr<bool> second = pass.run(twice, environment, {});
      if (!second.ok()) return StrCat(ir::Print(program), second.status().ToString());
      if (ir::Print(twice) != ir::Print(once)) {
        return StrCat(ir::Print(program), "\nonce:\n", ir::Print(once), "\ntwice:\n",
                      ir::Print(twice));
      }
    }
  }
  return "";
}

// Every pass that does not say otherwise changes nothing in its own result. The programs have no
// instructions; for passes that read the instruction table, the examples of docs/passes.md do.
TEST(RegistryTest, ASecondRunChangesNothing) {
  std::vector<ir::Function> programs;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    programs.push_back(ir::RandomProgram(
        seed, {.repetition = seed % 2 == 0 ? 30 : 0, .extern_calls = seed % 5 == 0}));
    const bool symbolic = seed % 2 == 0;
    programs.push_back(RandomAffineProgram(
        seed,
        {.max_depth = 5, .symbolic = symbolic, .symbolic_bounds = symbolic && seed % 4 == 0}));
  }
  for (const PassInfo& pass : Passes()) {
    if (pass.second_run_changes.empty()) EXPECT_EQ(ChangedAgain(pass, programs), "") << pass.name;
  }
}

}  // namespace
}  // namespace polynao
