#include "compiler/ir/externs.h"

#include <string>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What Print gives, if it parses to the same function again.
std::string RoundTrip(std::string_view text) {
  const absl::StatusOr<Function> f = ParseFunction(text, "x.nir");
  EXPECT_TRUE(f.ok()) << f.status();
  if (!f.ok()) return "";
  EXPECT_TRUE(Verify(*f).ok()) << Verify(*f);
  const std::string printed = Print(*f);
  const absl::StatusOr<Function> again = ParseFunction(printed, "again.nir");
  EXPECT_TRUE(again.ok()) << again.status() << printed;
  if (!again.ok()) return "";
  EXPECT_TRUE(StructurallyEqual(*f, *again)) << printed;
  EXPECT_EQ(Print(*again), printed);
  return printed;
}

std::string ErrorOf(std::string_view text) {
  const absl::StatusOr<Function> f = ParseFunction(text, "x.nir");
  const absl::Status status = f.ok() ? Verify(*f) : f.status();
  EXPECT_FALSE(status.ok()) << text;
  return std::string(status.message());
}

// In the order in which the function calls them first.
constexpr std::string_view kAllKinds =
    "extern writes func fill(A: f32[2, n] out, n: i32, value: f32) {\n"
    "  for (i, 0, n) {\n"
    "    A[1, i] = value\n"
    "  }\n"
    "}\n"
    "extern pure func square(x: f32) -> f32 = x * x\n"
    "extern pure func quartic(x: f32) -> f32 = square(square(x))\n"
    "extern reads func last(A: f32[n] in, n: i32) -> f32 = A[n - 1]\n"
    "extern opaque func tick(step: i64)\n"
    "extern reads func clock() -> u64\n"
    "\n"
    "func f(A: f32[8], n: i32) {\n"
    "  fill(&A[0], n, 0.5)\n"
    "  A[0] = quartic(2.0) + last(&A[1], n)\n"
    "  tick(1)\n"
    "  A[1] = cast(f32, clock())\n"
    "}\n";

TEST(ExternsTest, PrintsAndParses) { EXPECT_EQ(RoundTrip(kAllKinds), kAllKinds); }

TEST(ExternsTest, PrintsWhatIsCalledAlone) {
  EXPECT_EQ(RoundTrip("extern pure func g(x: f32) -> f32  extern opaque func h(x: i8) -> ()\n"
                      "func f(A: f32[4]) { A[0] = g(1) }"),
            "extern pure func g(x: f32) -> f32\n\n"
            "func f(A: f32[4]) {\n"
            "  A[0] = g(1.0)\n"
            "}\n");
}

TEST(ExternsTest, ModulesPrintADeclarationOnce) {
  const absl::StatusOr<Module> module = ParseModule(
      "extern pure func g(x: f32) -> f32\n"
      "func f(A: f32[4]) { A[0] = g(1.0) }\n"
      "func h(A: f32[4]) { A[0] = g(2.0) }",
      "x.nir");
  ASSERT_TRUE(module.ok()) << module.status();
  const std::string text = Print(*module);
  EXPECT_EQ(text.find("extern"), text.rfind("extern"));
  EXPECT_TRUE(ParseModule(text, "again.nir").ok()) << text;
}

TEST(ExternsTest, FunctionsMoveToAnotherContext) {
  const absl::StatusOr<Function> f = ParseFunction(kAllKinds);
  ASSERT_TRUE(f.ok()) << f.status();
  const auto other = std::make_shared<Context>();
  const Function clone = CloneInto(*f, other);
  EXPECT_TRUE(StructurallyEqual(*f, clone));
  EXPECT_EQ(Print(clone), kAllKinds);
  for (const ExternNode* callee : ExternsOf(clone)) EXPECT_EQ(callee->context, other.get());
}

TEST(ExternsTest, Errors) {
  const std::string use = "\nfunc f(A: f32[4]) { }";
  EXPECT_EQ(ErrorOf("extern func g()" + use),
            "x.nir:1:8: expected pure, reads, writes or opaque, found 'func'");
  EXPECT_EQ(ErrorOf("extern pure func g(x: f32)" + use),
            "x.nir:2:1: a function that is pure or only reads has a result");
  EXPECT_EQ(ErrorOf("extern writes func g(A: f32[1]) -> f32" + use),
            "x.nir:1:20: a function that writes or is opaque has no result: it stores to a buffer");
  EXPECT_EQ(ErrorOf("extern pure func g(A: f32[1] in) -> f32" + use),
            "x.nir:1:18: a pure function has no buffers, found 'A'");
  EXPECT_EQ(ErrorOf("extern reads func g(A: f32[1]) -> f32" + use),
            "x.nir:1:19: a function that reads has its buffers 'in', found 'A' without");
  EXPECT_EQ(ErrorOf("extern pure func exp(x: f32) -> f32" + use),
            "x.nir:1:18: 'exp' is an intrinsic");
  EXPECT_EQ(ErrorOf("extern pure func a.b(x: f32) -> f32" + use),
            "x.nir:1:18: an extern function's name is one of C, found 'a.b'");
  EXPECT_EQ(ErrorOf("extern pure func g(x: f32) -> f32 extern pure func g(x: f64) -> f64" + use),
            "x.nir:1:52: 'g' is declared in two ways");
  EXPECT_EQ(ErrorOf("extern opaque func f()" + use),
            "x.nir:2:1: 'f' is an extern function already");
}

TEST(ExternsTest, ErrorsOfCalls) {
  const auto error = [](std::string_view body) {
    return ErrorOf(
        "extern pure func g(x: f32) -> f32\n"
        "extern reads func r(A: f32[2] in) -> f32\n"
        "extern writes func w(A: f32[2])\n"
        "func f(A: f32[4], B: f64[4], n: i32) { " +
        std::string(body) + " }");
  };
  EXPECT_EQ(error("A[0] = g(1.0, 2.0)"), "x.nir:4:47: g takes 1 arguments, found 2");
  EXPECT_EQ(error("A[0] = g(n)"), "x.nir:4:49: expected f32 for 'x', found i32");
  EXPECT_EQ(error("A[0] = g(&A[0])"), "x.nir:4:49: expected f32 for 'x', found an address of f32");
  EXPECT_EQ(error("A[0] = r(A[0])"),
            "x.nir:4:49: expected the address of an element of f32 for 'A'");
  EXPECT_EQ(
      error("A[0] = r(&B[0])"),
      "x.nir:4:49: expected the address of an element of f32 for 'A', found an address of f64");
  EXPECT_EQ(error("g(1.0)"),
            "x.nir:4:40: g only gives a result: it is called inside an expression");
  EXPECT_EQ(error("A[0] = w(&A[0])"),
            "x.nir:4:47: w has no result: it is called as a statement of its own");
}

TEST(ExternsTest, AMeaningDoesWhatIsDeclared) {
  EXPECT_THAT(ErrorOf("extern reads func r() -> f32\n"
                      "extern pure func g(x: f32) -> f32 = x + r()\n"
                      "func f(A: f32[4]) { A[0] = g(1.0) }"),
              HasSubstr("extern function 'g': it is declared pure and calls r, which is reads"));
  EXPECT_THAT(ErrorOf("extern writes func w(A: f32[4] in) { A[0] = 1.0 }\n"
                      "func f(A: f32[4]) { w(&A[0]) }"),
              HasSubstr("extern function 'w': it stores to 'A', which is declared 'in'"));
  EXPECT_THAT(ErrorOf("extern writes func w(A: f32[4]) { sync.io() }\n"
                      "func f(A: f32[4]) { w(&A[0]) }"),
              HasSubstr("extern function 'w': it calls the instruction sync.io"));
}

std::vector<float> RunOn(std::string_view text, std::vector<float> elements, std::string* error) {
  const absl::StatusOr<Function> f = ParseFunction(text);
  EXPECT_TRUE(f.ok()) << f.status();
  if (!f.ok()) return {};
  EXPECT_TRUE(Verify(*f).ok()) << Verify(*f);
  Tensor a(Type::kF32, {static_cast<int64_t>(elements.size())});
  for (size_t i = 0; i < elements.size(); ++i) a.SetValue(i, elements[i]);
  const absl::Status status = Interpret(*f, {Argument::Of(&a)});
  EXPECT_EQ(status.ok(), error == nullptr) << status;
  if (error != nullptr) *error = std::string(status.message());
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(a.Value(i));
  return elements;
}

TEST(ExternsTest, MeaningsAreInterpreted) {
  EXPECT_THAT(
      RunOn("extern pure func square(x: f32) -> f32 = x * x\n"
            "extern reads func second(A: f32[2] in) -> f32 = A[1]\n"
            "extern writes func twice(A: f32[n], n: i32) { for (i, 0, n) A[i] = A[i] * 2 }\n"
            "func f(A: f32[4]) {\n"
            "  twice(&A[1], 2)\n"
            "  A[0] = square(A[0]) + second(&A[1])\n"
            "}",
            {3, 1, 2, 5}, nullptr),
      ElementsAre(13, 2, 4, 5));
}

TEST(ExternsTest, WhatStopsTheInterpreter) {
  std::string error;
  RunOn("extern pure func g(x: f32) -> f32\nfunc f(A: f32[1]) { A[0] = g(1.0) }", {0}, &error);
  EXPECT_EQ(error,
            "function 'f': the extern function 'g' has no meaning to interpret: only its "
            "declaration is known; "
            "declare it with '= value'");
  RunOn(
      "extern reads func second(A: f32[2] in) -> f32 = A[1]\n"
      "func f(A: f32[2]) { A[0] = second(&A[1]) }",
      {0, 0}, &error);
  EXPECT_EQ(
      error,
      "function 'f', in 'A[0] = second(&A[1])': operand 'A' reaches element 2 of A, which has "
      "2");
  RunOn(
      "extern reads func first(A: f32[1] in) -> f32 = A[0]\n"
      "func f(A: f32[2]) { allocate L: f32[1] allocate M: f32[1] M[0] = first(&L[0]) }",
      {0, 0}, &error);
  EXPECT_THAT(error, HasSubstr("element 0 of A is read before it is stored"));
}

TEST(ExternsTest, SurelyReturns) {
  const auto returns = [](std::string_view declaration, std::string_view call) {
    const absl::StatusOr<Function> f = ParseFunction(
        std::string(declaration) + "\nfunc f(A: i32[4]) { A[0] = " + std::string(call) + " }");
    EXPECT_TRUE(f.ok()) << f.status();
    return f.ok() && SurelyReturns(f->body.value());
  };
  EXPECT_TRUE(returns("extern pure func g(x: i32) -> i32", "g(1)"));
  EXPECT_TRUE(returns("extern pure func g(x: i32) -> i32 = x + 1", "g(1)"));
  EXPECT_TRUE(returns("extern pure func g(x: i32) -> i32 = x / 3", "g(1)"));
  EXPECT_FALSE(returns("extern pure func g(x: i32) -> i32 = 1 / x", "g(1)"));
  EXPECT_FALSE(returns("extern pure func g(x: i32) -> i32 = x + 1 < 3 ? 1 : 2", "g(1)"));
  EXPECT_FALSE(returns("extern reads func g(x: i32) -> i32", "g(1)"));
}

}  // namespace
}  // namespace polynao::ir
