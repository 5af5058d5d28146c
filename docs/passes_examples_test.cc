// Every example of docs/passes.md, docs/operator.md and README.md holds: what "```nir after PASSES" shows is what
// these passes make, on the mlu270 machine, of the "```nir before" above it; the interpreter
// agrees. And docs/passes.md has a section for each registered pass.
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "docs/examples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "isa/instruction_set.h"
#include "testing/machine.h"

namespace polynao::docs {
namespace {

void CheckExamples(const std::string& path, int at_least) {
  const isa::Machine machine = TestMachine("mlu270");
  Target target;
  target.name = "diannao";
  target.instructions = &isa::DianNao();
  target.machine = &machine;
  std::string before;
  int checked = 0;
  for (const Example& example : ReadExamples(path, "nir")) {
    SCOPED_TRACE(StrCat(path, ":", example.line));
    if (example.kind == "before") {
      before = example.text;
      continue;
    }
    ASSERT_TRUE(example.kind.starts_with("after ")) << example.kind;
    ASSERT_FALSE(before.empty());
    const auto passes = ParsePasses(example.kind.substr(std::string("after ").size()));
    ASSERT_TRUE(passes.ok()) << passes.status();
    absl::StatusOr<ir::Function> function = ir::ParseFunction(before);
    ASSERT_TRUE(function.ok()) << function.status();
    ASSERT_TRUE(ir::Verify(*function).ok()) << ir::Verify(*function);
    const absl::Status status = RunPasses(*function, *passes, target, {.check = true});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(ir::Print(*function), example.text);
    ++checked;
  }
  EXPECT_GE(checked, at_least);
}

TEST(PassesExamplesTest, Passes) { CheckExamples("docs/passes.md", 8); }

TEST(PassesExamplesTest, Operator) { CheckExamples("docs/operator.md", 1); }

TEST(PassesExamplesTest, Readme) { CheckExamples("README.md", 1); }

// The first examples are the files that the pages tell to run, without the comments at their tops.
TEST(PassesExamplesTest, PagesShowFiles) {
  for (const auto& [page, path] :
       {std::pair{"README.md", "docs/guard.nir"}, {"docs/operator.md", "docs/add.nir"}}) {
    const std::string file = ReadDocument(path);
    EXPECT_EQ(ReadExamples(page, "nir").at(0).text, file.substr(file.find("func")));
  }
}

// And the passes that docs/operator.md shows are the pipeline.
TEST(PassesExamplesTest, OperatorShowsThePipeline) {
  Target target;
  target.name = "diannao";
  const auto pipeline = PipelineFor(target);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  std::string kind = "after ";
  for (const PassSpec& pass : *pipeline) {
    StrAppend(&kind, kind == "after " ? "" : ",", pass.name);
  }
  EXPECT_EQ(ReadExamples("docs/operator.md", "nir").at(1).kind, kind);
}

// Each pass has a section, which names the pass's options with their defaults.
TEST(PassesExamplesTest, EachPassHasASection) {
  const std::string text = ReadDocument("docs/passes.md");
  for (const PassInfo& pass : Passes()) {
    const size_t begin = text.find(StrCat("\n## ", pass.name, "\n"));
    ASSERT_NE(begin, std::string::npos) << pass.name;
    const std::string section = text.substr(begin, text.find("\n## ", begin + 1) - begin);
    for (const PassOption& option : pass.options) {
      EXPECT_THAT(section, testing::HasSubstr(StrCat("`", DefaultText(option), "`"))) << pass.name;
    }
  }
}

// Every pass that an example shows leaves its own result alone, if it says so.
TEST(PassesExamplesTest, ASecondRunChangesNothing) {
  const isa::Machine machine = TestMachine("mlu270");
  Target target;
  target.name = "diannao";
  target.instructions = &isa::DianNao();
  target.machine = &machine;
  int runs = 0;
  std::string before;
  for (const Example& example : ReadExamples("docs/passes.md", "nir")) {
    if (example.kind == "before") before = example.text;
    if (!example.kind.starts_with("after ")) continue;
    SCOPED_TRACE(StrCat("docs/passes.md:", example.line));
    const auto passes = ParsePasses(example.kind.substr(std::string("after ").size()));
    ASSERT_TRUE(passes.ok()) << passes.status();
    absl::StatusOr<ir::Function> function = ir::ParseFunction(before);
    ASSERT_TRUE(function.ok()) << function.status();
    for (const PassSpec& pass : *passes) {
      SCOPED_TRACE(pass.name);
      ASSERT_TRUE(RunPasses(*function, {pass}, target).ok());
      if (!FindPass(pass.name)->second_run_changes.empty()) continue;
      const std::string once = ir::Print(*function);
      ASSERT_TRUE(RunPasses(*function, {pass}, target).ok());
      EXPECT_EQ(ir::Print(*function), once);
      ++runs;
    }
  }
  EXPECT_GE(runs, 20);
}

}  // namespace
}  // namespace polynao::docs
