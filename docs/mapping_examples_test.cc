// Blocks of docs/mapping.md that begin with ```text explain OPERATOR SHAPES TYPE are what `nao run --explain` prints of
// that case on mlu270.
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/text.h"
#include "cases/build.h"
#include "cases/case_text.h"
#include "cases/explain.h"
#include "cases/machines.h"
#include "cases/run_case.h"
#include "compiler/target/target.h"
#include "docs/examples.h"
#include "gtest/gtest.h"
#include "isa/machine.h"

namespace polynao::docs {
namespace {

TEST(MappingExamplesTest, ExplanationsAreWhatIsPrinted) {
  const isa::Machine machine = cases::LoadMachine("mlu270", {}).value();
  const Target target = MakeTarget("diannao", &machine).value();
  int explained = 0;
  for (const Example& example : ReadExamples("docs/mapping.md", "text")) {
    SCOPED_TRACE(StrCat("docs/mapping.md:", example.line));
    const std::vector<std::string> words = absl::StrSplit(example.kind, ' ');
    ASSERT_EQ(words.size(), 4u) << example.kind;
    ASSERT_EQ(words[0], "explain");
    const auto c = cases::ParseCase({.op = words[1], .shape = words[2], .dtype = words[3]}, target);
    ASSERT_TRUE(c.ok()) << c.status();
    const auto taken = cases::TakeSchedule(*c, target);
    ASSERT_TRUE(taken.ok()) << taken.status();
    auto explanation = cases::Explain(*taken, target);
    ASSERT_TRUE(explanation.ok()) << explanation.status();
    cases::CaseSettings settings;
    settings.timing_only = true;
    const auto report = cases::RunCase(taken->operator_case, settings);
    ASSERT_TRUE(report.ok()) << report.status();
    explanation->simulated = report->simulated->cycles;
    EXPECT_EQ(explanation->ToText(), example.text);
    ++explained;
  }
  EXPECT_EQ(explained, 1);
}

}  // namespace
}  // namespace polynao::docs
