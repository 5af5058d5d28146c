// The examples of "TVM TIR Pass - CSE" as printed: its programs, the tables of its log, what may be a
// candidate, and the effects of calls.
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/passes/cse.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/pass_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ::testing::HasSubstr;

std::string After(const std::string& text, const CseOptions& options = {}) {
  return RunPass(text, [&](ir::Function& f) { return Cse(f, options); }, TestTarget());
}

std::string Printed(const std::string& text) { return ir::Print(ParseOrDie(text)); }

// A body over a few names, and the same after the pass; `externs` stand in front.
void Expect(const std::string& before, const std::string& after, const std::string& externs = "",
            const CseOptions& options = {}) {
  const auto function = [&](const std::string& body) {
    return StrCat(
        externs,
        "\nfunc f(A: i32[16], M: i32[16], w: i32, x: i32, y: i32, z: i32, u: i32, a: i32, b: "
        "i32, d: i32, e: i32) {\n",
        body, "\n}\n");
  };
  EXPECT_EQ(After(function(before), options), Printed(function(after))) << before;
}

// test_tir_transform_common_subexpr_elim.py::test_cse, as PrintIR shows it before and after.
TEST(CseArticleTest, TestCse) {
  EXPECT_EQ(After(R"(@main = primfn(i1: int32, i2: int32, z3: int32) -> () {
  let z1: int32 = 1
  let z2: int32 = 2
   {
    buffer: Pointer(int32)[i1] = (z1 + z2)
    let x: int32 = 1
    let y: int32 = 1
    let a: int32 = ((x + y) + (z1 + z2))
    let b: int32 = ((x + y) + z3)
    buffer[i2] = (a + b)
  }
})"),
            Printed(R"(@main = primfn(i1: int32, i2: int32, z3: int32) -> () {
  let z1: int32 = 1
  let z2: int32 = 2
  let cse_var_1: int32 = (z1 + z2)
   {
    buffer: Pointer(int32)[i1] = cse_var_1
    let x: int32 = 1
    let y: int32 = 1
    let cse_var_2: int32 = (x + y)
    let a: int32 = (cse_var_2 + cse_var_1)
    let b: int32 = (cse_var_2 + z3)
    buffer[i2] = (a + b)
  }
})"));
}

constexpr char kCascade[] =
    R"(@main = primfn(i1: int32, i2: int32, i3: int32, x: int32, y: int32, z: int32) -> () {
  buffer: Pointer(int32)[i1] = ((x + y) + z)
  buffer[i2] = ((x + y) + z)
  buffer[i3] = (x + y)
})";

// test_cse_cascade: the longer expression inside, the shorter one outside.
TEST(CseArticleTest, TestCseCascade) {
  EXPECT_EQ(
      After(kCascade),
      Printed(
          R"(@main = primfn(i1: int32, i2: int32, i3: int32, x: int32, y: int32, z: int32) -> () {
  let cse_var_2: int32 = (x + y)
  let cse_var_1: int32 = (cse_var_2 + z)
   {
    buffer: Pointer(int32)[i1] = cse_var_1
    buffer[i2] = cse_var_1
    buffer[i3] = cse_var_2
  }
})"));
}

// The log of common_subexpr_elim.cc on test_cse_cascade: Input Stmt, ComputationTable, variables_created.
TEST(CseArticleTest, LogOfTestCseCascade) {
  std::vector<std::string> tables;
  ir::Function f = ParseOrDie(kCascade);
  const absl::StatusOr<bool> changed = Cse(f, {}, nullptr, &tables);
  ASSERT_TRUE(changed.ok()) << changed.status();
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0], R"(Input Stmt :
buffer[i1] = x + y + z
buffer[i2] = x + y + z
buffer[i3] = x + y

ComputationTable :
{
(((x + y) + z), 2)
((x + y), 1)
}
variables_created true
Input Stmt :
let cse_var_1: i32 = x + y + z
buffer[i1] = cse_var_1
buffer[i2] = cse_var_1
buffer[i3] = x + y

ComputationTable :
{
(((x + y) + z), 1)
((x + y), 1)
}
variables_created true
Input Stmt :
let cse_var_2: i32 = x + y
let cse_var_1: i32 = cse_var_2 + z
buffer[i1] = cse_var_1
buffer[i2] = cse_var_1
buffer[i3] = cse_var_2

ComputationTable :
{
((x + y), 1)
((cse_var_2 + z), 1)
}
variables_created false
Input Stmt :
let cse_var_1: i32 = cse_var_2 + z
buffer[i1] = cse_var_1
buffer[i2] = cse_var_1
buffer[i3] = cse_var_2

ComputationTable :
{
((cse_var_2 + z), 1)
}
variables_created false
Input Stmt :
buffer[i1] = cse_var_1
buffer[i2] = cse_var_1
buffer[i3] = cse_var_2

ComputationTable :
{
}
variables_created false
)");
}

// `nao opt --explain` prints it.
TEST(CseArticleTest, ExplainPrintsTheTables) {
  std::string explained;
  ir::Function f = ParseOrDie(kCascade);
  const Target cpu{.name = "cpu"};
  std::vector<std::string> explanations;
  const absl::StatusOr<bool> changed =
      CsePass().run(f, {.target = cpu, .explanations = &explanations}, {});
  ASSERT_TRUE(changed.ok()) << changed.status();
  for (const std::string& text : explanations) explained += text;
  EXPECT_THAT(explained, HasSubstr("ComputationTable :\n{\n(((x + y) + z), 2)\n((x + y), 1)\n}\n"));
}

// What it is: (w+x)+(y+z); (w+x)+u  =>  new_var = (w+x); new_var+(y+z); new_var+u.
TEST(CseArticleTest, Subexpressions) {
  Expect("A[0] = (w+x)+(y+z) A[1] = (w+x)+u",
         "let cse_var_1: i32 = w + x A[0] = cse_var_1 + (y + z) A[1] = cse_var_1 + u");
}

// Principle: a whole expression that does not repeat is searched for parts: (w+x)*(y+z).
TEST(CseArticleTest, PartsOfCandidates) {
  Expect("A[0] = (w+x)*(y+z) A[1] = w+x A[2] = y+z",
         "let cse_var_1: i32 = w + x let cse_var_2: i32 = y + z"
         " A[0] = cse_var_1 * cse_var_2 A[1] = cse_var_1 A[2] = cse_var_2");
}

// Creation of variables: smallComp outside (y=a+b, z=d+e), bigComp inside (p=y+z).
TEST(CseArticleTest, SmallOutsideBigInside) {
  Expect("A[0] = (a+b)+(d+e) A[1] = (a+b)+(d+e) A[2] = a+b A[3] = d+e",
         "let cse_var_2: i32 = a + b let cse_var_3: i32 = d + e"
         " let cse_var_1: i32 = cse_var_2 + cse_var_3 A[0] = cse_var_1 A[1] = cse_var_1"
         " A[2] = cse_var_2 A[3] = cse_var_3");
}

// Candidates are no constants and no variables.
TEST(CseArticleTest, NoConstantsNoVariables) {
  Expect("A[0] = 7 A[1] = 7 A[2] = x A[3] = x", "A[0] = 7 A[1] = 7 A[2] = x A[3] = x");
}

// Two loads may give different values. Here a load is a candidate as long as nothing stores in between.
TEST(CseArticleTest, MemoryLoads) {
  Expect("A[0] = M[x] + 1 A[1] = M[x] + 1 M[x] = 3 A[2] = M[x] + 1 A[3] = M[x] + 1",
         "let cse_var_1: i32 = M[x] + 1 A[0] = cse_var_1 A[1] = cse_var_1 M[x] = 3"
         " let cse_var_2: i32 = M[x] + 1 A[2] = cse_var_2 A[3] = cse_var_2");
}

// Shortcomings, and the extension from syntax to meaning: x+y <=> y+x, (x+y)+z <=> x+(y+z),
// x*(y+z) <=> x*y+x*z.
TEST(CseArticleTest, SemanticComputations) {
  const CseOptions semantic = {.semantic = true};
  Expect("A[0] = x+y A[1] = y+x", "let cse_var_1: i32 = x + y A[0] = cse_var_1 A[1] = cse_var_1",
         "", semantic);
  Expect("A[0] = (x+y)+z A[1] = z+(x+y) A[2] = x+(y+z)",
         "let cse_var_1: i32 = x + y + z A[0] = cse_var_1 A[1] = cse_var_1 A[2] = cse_var_1", "",
         semantic);
  Expect("A[0] = x*(y+z) A[1] = x*y+x*z",
         "let cse_var_1: i32 = x * (y + z) A[0] = cse_var_1 A[1] = cse_var_1", "", semantic);
  Expect("A[0] = x+y A[1] = y+x", "A[0] = x+y A[1] = y+x");
}

// CallEffectKind: kPure = 1, a function that does not interact with any external state. sum(f, f) is then
// safe to replace.
TEST(CseArticleTest, PureCalls) {
  Expect("A[0] = g(x) + g(x) o() A[1] = g(x) + 1",
         "let cse_var_1: i32 = g(x) A[0] = cse_var_1 + cse_var_1 o() A[1] = cse_var_1 + 1",
         "extern pure func g(x: i32) -> i32 = x ^ 5 extern opaque func o() { }");
}

// kReadState = 2: functions that may read from states. They are candidates between two calls that update.
TEST(CseArticleTest, ReadState) {
  const std::string externs =
      "extern reads func r(M: i32[1] in) -> i32 = M[0] extern reads func clock() -> i32 = 3"
      " extern writes func w(M: i32[1]) { M[0] = M[0] + 1 }";
  Expect("A[0] = r(&M[3]) A[1] = r(&M[3]) M[3] = 5 A[2] = r(&M[3]) A[4] = r(&M[3])",
         "let cse_var_1: i32 = r(&M[3]) A[0] = cse_var_1 A[1] = cse_var_1 M[3] = 5"
         " let cse_var_2: i32 = r(&M[3]) A[2] = cse_var_2 A[4] = cse_var_2",
         externs);
  // The state outside of the program changes where a function writes, whatever it is given.
  Expect("A[0] = clock() A[1] = clock() w(&M[0]) A[2] = clock()",
         "let cse_var_1: i32 = clock() A[0] = cse_var_1 A[1] = cse_var_1 w(&M[0]) A[2] = clock()",
         externs);
}

// kUpdateState = 3: what it writes is another value afterwards, other buffers are not.
TEST(CseArticleTest, UpdateState) {
  Expect("A[0] = M[1] * w w(&M[0]) A[1] = M[1] * w", "A[0] = M[1] * w w(&M[0]) A[1] = M[1] * w",
         "extern writes func w(M: i32[1]) { M[0] = M[0] + 1 }");
  Expect("A[x] = w * M[1] writes_only(&A[0]) A[y] = w * M[1]",
         "let cse_var_1: i32 = w * M[1] A[x] = cse_var_1 writes_only(&A[0]) A[y] = cse_var_1",
         "extern writes func writes_only(A: i32[1] out) { A[0] = 7 }");
}

// kOpaque = kUpdateState: no assumption can be made, so no load is the same on both sides of the call.
TEST(CseArticleTest, Opaque) {
  Expect("A[0] = M[1] + (x + y) o() A[1] = M[1] + (x + y)",
         "let cse_var_1: i32 = x + y A[0] = M[1] + cse_var_1 o() A[1] = M[1] + cse_var_1",
         "extern opaque func o() { }");
}

}  // namespace
}  // namespace polynao
