// Every target of the table has a back end, which writes what the table says and computes what the interpreter does.
#include "compiler/codegen/back_ends.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_split.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/machine.h"
#include "testing/machine.h"

namespace polynao::codegen {
namespace {

using ::testing::HasSubstr;

// Runs as it is on all targets, without any pass.
ir::Function Doubled() {
  auto function = ir::ParseFunction(
      "func doubled(A: i32[4] in, B: i32[4] out) { for (i, 0, 4) { B[i] = A[i] + A[i] } }", "");
  EXPECT_TRUE(function.ok()) << function.status();
  return *std::move(function);
}

TEST(BackEndsTest, EachTargetHasItsOwn) {
  for (const TargetFacts& facts : Targets()) {
    EXPECT_EQ(FindBackEnd(facts.name).name(), facts.name);
  }
}

TEST(BackEndsTest, WritesWhatTheTableSays) {
  const isa::Machine machine = TestMachine("mlu270");
  for (const TargetFacts& facts : Targets()) {
    const absl::StatusOr<Target> target = MakeTarget(facts.name, &machine);
    ASSERT_TRUE(target.ok()) << target.status();
    const isa::ParameterReads reads;
    const auto files = FindBackEnd(facts.name)
                           .Write(Doubled(), *target, {.reads = &reads, .nvcc = {.arch = "none"}});
    ASSERT_TRUE(files.ok()) << files.status();
    // Whoever asks writes NAME.nir.
    EXPECT_EQ(files->empty(), facts.writes == ".nir") << facts.name;
    for (const OutputFile& file : *files) {
      const std::string suffix =
          IsGpu(facts.name) ? file.name : file.name.substr(file.name.rfind('.'));
      EXPECT_THAT(std::string(facts.writes), HasSubstr(suffix)) << facts.name;
      EXPECT_NE(file.contents, "") << file.name;
    }
    if (IsGpu(facts.name)) continue;
    const std::vector<std::string> suffixes = absl::StrSplit(std::string(facts.writes), ", ");
    EXPECT_EQ(files->size(), facts.writes == ".nir" ? 0 : suffixes.size()) << facts.name;
  }
}

TEST(BackEndsTest, ProgramsRunHereOrSayThatTheyDoNot) {
  for (const TargetFacts& facts : Targets()) {
    const absl::StatusOr<Executable> executable = FindBackEnd(facts.name).Load(Doubled(), {});
    if (IsCard(facts.name)) {
      EXPECT_THAT(executable.status().message(), HasSubstr("a target that runs on this machine"));
      continue;
    }
    ASSERT_TRUE(executable.ok()) << executable.status();
    ir::Tensor a(ir::Type::kI32, {4}), b(ir::Type::kI32, {4});
    for (int i = 0; i < 4; ++i) a.SetInt(i, i + 1);
    const ir::Argument arguments[] = {ir::Argument::Of(&a), ir::Argument::Of(&b)};
    ASSERT_EQ(executable->run(arguments), absl::OkStatus()) << facts.name;
    for (int i = 0; i < 4; ++i) EXPECT_EQ(b.Int(i), 2 * i + 2) << facts.name;
    EXPECT_EQ(executable->entry != nullptr, IsProcessor(facts.name)) << facts.name;
    if (executable->entry != nullptr) EXPECT_TRUE(executable->to_status(0).ok()) << facts.name;
  }
}

}  // namespace
}  // namespace polynao::codegen
