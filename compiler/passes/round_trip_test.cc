// What a pass makes of a program prints to text that parses back to the same function.
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/pass_test_util.h"
#include "compiler/registry/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

void ExpectRoundTrip(const ir::Function& function) {
  const std::string printed = ir::Print(function);
  const absl::StatusOr<ir::Function> again = ir::ParseFunction(printed, "printed.nir");
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
  EXPECT_TRUE(ir::Verify(*again).ok()) << ir::Verify(*again);
  EXPECT_TRUE(ir::StructurallyEqual(function, *again)) << printed;
  EXPECT_EQ(ir::Print(*again), printed);
}

const Target& TargetNamed(const std::string& name) {
  if (name == "diannao") return TestTarget();
  static const auto* cpu = new Target{.name = "cpu"};
  static const auto* cuda = new Target{.name = "cuda"};
  return name == "cpu" ? *cpu : *cuda;
}

class RoundTripTest : public testing::TestWithParam<std::string> {};

// Each pass alone, then the pipeline with a look after each step. Passes may refuse a program.
TEST_P(RoundTripTest, RandomPrograms) {
  const Target& target = TargetNamed(GetParam());
  const absl::StatusOr<std::vector<PassSpec>> pipeline = PipelineFor(target);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  int changed = 0;
  for (uint64_t seed = 0; seed < 40 && !HasFailure(); ++seed) {
    const ir::Function program = ir::RandomProgram(seed, {.expression_depth = 4,
                                                          .repetition = seed % 3 == 0 ? 40 : 0,
                                                          .extern_calls = seed % 4 == 1});
    const PipelineOptions options{.on_step = [&](const PipelineOptions::Step& step) {
      SCOPED_TRACE(StrCat("seed ", seed, " after ", step.pass->name));
      if (step.changed && !HasFailure()) ExpectRoundTrip(*step.function);
      changed += step.changed;
    }};
    for (const PassInfo& pass : Passes()) {
      ir::Function function = ir::CloneInto(program, std::make_shared<ir::Context>());
      OptionValues values;
      if (pass.name == "schedule")
        values["operations"] = 30;  // it would take seconds for a program
      RunPasses(function, {{.name = std::string(pass.name), .options = values}}, target, options)
          .IgnoreError();
    }
    ir::Function function = ir::CloneInto(program, std::make_shared<ir::Context>());
    RunPasses(function, *pipeline, target, options).IgnoreError();
  }
  EXPECT_GT(changed, 100);
}

INSTANTIATE_TEST_SUITE_P(Targets, RoundTripTest, testing::Values("cpu", "cuda", "diannao"),
                         [](const auto& info) { return info.param; });

// cse binds hundreds of values in one block: each let stands in those before it.
TEST(RoundTripOfLetsTest, CommonValuesOfManyStores) {
  constexpr int kStores = 512;
  std::string text = "func f(A: f32[1024] in, B: f32[512] out, C: f32[512] out) {\n";
  for (int i = 0; i < kStores; ++i) {
    for (std::string_view buffer : {"B", "C"}) {
      StrAppend(&text, buffer, "[", i, "] = exp(A[", i, "] * A[", i + kStores, "]) + A[0]\n");
    }
  }
  ir::Function function = ParseOrDie(StrCat(text, "}\n"));
  const Target& target = TargetNamed("cpu");
  const absl::Status status = RunPasses(function, {{.name = "cse", .options = {}}}, target);
  ASSERT_TRUE(status.ok()) << status;
  int lets = 0;
  ir::ForEachStmt(function.body, [&](ir::Stmt s) {
    lets += s.Is(ir::StmtKind::kLet);
    return true;
  });
  EXPECT_GE(lets, kStores);
  ExpectRoundTrip(function);
}

}  // namespace
}  // namespace polynao
