#include "cases/case_json.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace polynao::cases {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

TEST(CaseJson, ReadsBack) {
  kernels::OperatorCase c = {.op = "conv2d",
                             .shape = {56, 56, 64},
                             .operands = {{64, 3, 3, 64}},
                             .dtype = ir::Type::kI8,
                             .scalar = -0.5,
                             .attributes = {{"stride", "2"}, {"pad", "same"}},
                             .schedule = {{"rows", 7}},
                             .use_tuned = false};
  const auto read = ParseCaseJson(CaseJson(c), "p.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(SameComputation(*read, c));
  EXPECT_EQ(read->schedule, c.schedule);
  EXPECT_FALSE(read->use_tuned);
  kernels::OperatorCase other = c;
  other.schedule.clear();
  EXPECT_TRUE(SameComputation(other, c));
  other.scalar.reset();
  EXPECT_FALSE(SameComputation(other, c));
  const auto plain = ParseCaseJson(CaseJson(other), "p.json");
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(plain->scalar.has_value());
}

TEST(CaseJson, ErrorsNameTheMember) {
  const struct {
    const char* text;
    const char* message;
  } kWrong[] = {
      {"[]", "p.json: expected an operator's case, found []"},
      {"{}", "p.json: 'op': expected an operator's name, found none"},
      {R"({"op": 1})", "'op': expected an operator's name, found 1"},
      {R"({"op": "add", "shape": [1.5], "dtype": "f16"})", "'shape': expected a list of extents"},
      {R"({"op": "add", "shape": [18446744073709551615], "dtype": "f16"})", "'shape': expected"},
      {R"({"op": "add", "shape": [1], "dtype": "f17"})", "'dtype': expected a type's name"},
      {R"({"op": "add", "shape": [1], "dtype": "f16", "attributes": {"a": 1}})",
       "'attributes': expected an object of texts, found {\"a\":1}"},
      {R"({"op": "add", "shape": [1], "dtype": "f16", "scalar": null})",
       "'scalar': expected a number, found null"},
      {R"({"op": "add", "shape": [1], "dtype": "f16", "untuned": 1})", "expected true or false"},
  };
  for (const auto& wrong : kWrong) {
    const auto read = ParseCaseJson(Json::parse(wrong.text), "p.json");
    ASSERT_FALSE(read.ok()) << wrong.text;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(wrong.message));
  }
}

}  // namespace
}  // namespace polynao::cases
