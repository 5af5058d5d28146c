#include "cases/program_file.h"

#include "cases/case_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::cases {
namespace {

using ::testing::HasSubstr;

TEST(ProgramFile, ReadsBack) {
  ProgramFile file = {.name = "layer1",
                      .operator_case = {{.op = "add", .shape = {5, 7}}},
                      .impl = "library",
                      .arguments = {{"x", "5x7"}, {"n", "35"}},
                      .error = "too large"};
  const std::string text = ProgramFileText(file);
  const auto read = ParseProgramFile(text, "layer1.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ProgramFileText(*read), text);
  ASSERT_TRUE(read->operator_case.has_value());
  EXPECT_TRUE(SameComputation(*read->operator_case, *file.operator_case));
  EXPECT_EQ(read->arguments, file.arguments);
  EXPECT_EQ(read->error, "too large");
}

// A hand-written convolution takes an image that the host has padded.
TEST(ProgramFile, ArgumentsHaveTheShapesThatTheHostMakes) {
  BuiltProgram built;
  built.program.params.push_back({.name = "x", .any_shape = true});
  built.program.params.push_back({.name = "y", .any_shape = true, .access = ir::Access::kOut});
  built.program.params.push_back({.name = "n", .is_tensor = false, .type = ir::Type::kI64});
  built.scalars = {0, 0, 7};
  const std::vector<kernels::TensorSpec> specs = {{"x", ir::Type::kI8, {5, 6}},
                                                  {"y", ir::Type::kI8, {5, 6}}};
  using Arguments = std::map<std::string, std::string>;
  EXPECT_EQ(ArgumentsOf(built, specs), (Arguments{{"x", "5x6"}, {"y", "5x6"}, {"n", "7"}}));
  built.prepare = [](const ir::Tensor& t) {
    return ir::Tensor(t.type, {t.shape[0] + 2, t.shape[1] + 2});
  };
  EXPECT_EQ(ArgumentsOf(built, specs), (Arguments{{"x", "7x8"}, {"y", "5x6"}, {"n", "7"}}));
}

TEST(ProgramFile, ErrorsNameTheMember) {
  const struct {
    const char* text;
    const char* message;
  } kWrong[] = {
      {"", "p.json: expected the JSON object"},
      {"[1]", "p.json: expected the JSON object"},
      {"{}", "p.json: 'name': expected a text, found none"},
      {R"({"name": "x", "impl": 1})", "'impl': expected a text, found 1"},
      {R"({"name": "x", "impl": "y", "arguments": 1})", "'arguments': expected an object"},
      {R"({"name": "x", "impl": "y", "arguments": {"n": 1}})", "'n': expected a text, found 1"},
      {R"({"name": "x", "impl": "y", "error": 1})", "'error': expected a text"},
      {R"({"name": "x", "impl": "y", "case": {}})", "p.json: 'case': 'op': expected"},
  };
  for (const auto& wrong : kWrong) {
    const auto read = ParseProgramFile(wrong.text, "p.json");
    ASSERT_FALSE(read.ok()) << wrong.text;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(wrong.message));
  }
}

}  // namespace
}  // namespace polynao::cases
