// Every example of docs/ir.md holds:
//   ```nir           parses, verifies, and its printed form parses back to the same function
//   ```nir printed   is the printed form of the block before it
//   ```nir error     is refused; the comment at its end is the message
//   ```nir trap      runs (buffers zero, scalars one) into the error that its comment gives
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "docs/examples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::docs {
namespace {

std::vector<Example> Examples(const std::string& kind) {
  std::vector<Example> examples;
  for (Example& example : ReadExamples("docs/ir.md", "nir")) {
    if (example.kind == kind) examples.push_back(std::move(example));
  }
  return examples;
}

std::string Place(const Example& example) { return StrCat("docs/ir.md:", example.line); }

absl::StatusOr<ir::Module> ParseAndVerify(const Example& example) {
  absl::StatusOr<ir::Module> module = ir::ParseModule(example.text, "x.nir");
  if (module.ok()) {
    for (const ir::Function& function : module->functions) {
      const absl::Status status = ir::Verify(function);
      if (!status.ok()) return status;
    }
  }
  return module;
}

TEST(IrExamplesTest, KindsAreKnown) {
  for (const Example& example : ReadExamples("docs/ir.md", "nir")) {
    EXPECT_THAT((std::vector<std::string>{"", "printed", "error", "trap"}),
                testing::Contains(example.kind))
        << Place(example);
  }
}

TEST(IrExamplesTest, ParseVerifyAndPrint) {
  const std::vector<Example> examples = Examples("");
  EXPECT_GE(examples.size(), 6u);
  for (const Example& example : examples) {
    SCOPED_TRACE(Place(example));
    const absl::StatusOr<ir::Module> module = ParseAndVerify(example);
    ASSERT_TRUE(module.ok()) << module.status();
    ASSERT_FALSE(module->functions.empty());
    const absl::StatusOr<ir::Module> again = ir::ParseModule(ir::Print(*module), "printed.nir");
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << ir::Print(*module);
    ASSERT_EQ(again->functions.size(), module->functions.size());
    for (size_t i = 0; i < module->functions.size(); ++i) {
      EXPECT_TRUE(ir::StructurallyEqual(module->functions[i], again->functions[i]))
          << ir::Print(module->functions[i]);
    }
  }
}

TEST(IrExamplesTest, PrintedForms) {
  const std::vector<Example> all = ReadExamples("docs/ir.md", "nir");
  int seen = 0;
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i].kind != "printed") continue;
    ++seen;
    SCOPED_TRACE(Place(all[i]));
    const absl::StatusOr<ir::Module> module = ParseAndVerify(all[i - 1]);
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_EQ(ir::Print(*module), all[i].text);
  }
  EXPECT_GE(seen, 2);
}

TEST(IrExamplesTest, ErrorsHaveTheMessageShown) {
  const std::vector<Example> examples = Examples("error");
  EXPECT_GE(examples.size(), 4u);
  for (const Example& example : examples) {
    SCOPED_TRACE(Place(example));
    const absl::StatusOr<ir::Module> module = ParseAndVerify(example);
    ASSERT_FALSE(module.ok());
    EXPECT_EQ(std::string(module.status().message()), example.Expectation());
  }
}

TEST(IrExamplesTest, TrapsHaveTheMessageShown) {
  const std::vector<Example> examples = Examples("trap");
  EXPECT_GE(examples.size(), 3u);
  for (const Example& example : examples) {
    SCOPED_TRACE(Place(example));
    const absl::StatusOr<ir::Module> module = ParseAndVerify(example);
    ASSERT_TRUE(module.ok()) << module.status();
    ASSERT_EQ(module->functions.size(), 1u);
    const ir::Function& function = module->functions[0];
    ir::IntValues scalars;
    for (const ir::Param& param : function.params) {
      if (param.var) scalars[param.var] = 1;
    }
    const auto shapes = ir::ParameterShapes(function, scalars);
    ASSERT_TRUE(shapes.ok()) << shapes.status();
    std::vector<ir::Tensor> tensors;
    tensors.reserve(shapes->size());
    std::vector<ir::Argument> arguments;
    for (const ir::Param& param : function.params) {
      if (param.var) {
        arguments.push_back({.int_value = 1, .float_value = 1});
      } else {
        tensors.emplace_back(param.buffer->type, (*shapes)[tensors.size()]);
        arguments.push_back(ir::Argument::Of(&tensors.back()));
      }
    }
    EXPECT_EQ(std::string(ir::Interpret(function, arguments).message()), example.Expectation());
  }
}

}  // namespace
}  // namespace polynao::docs
