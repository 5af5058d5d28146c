#include "compiler/passes/cse.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/ir/counts.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/passes/pass_test_util.h"
#include "compiler/passes/simplify.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

constexpr char kParams[] = "A: i32[16], B: i32[16], F: f32[16], x: i32, y: i32, z: i32, n: i32";

std::string Text(const std::string& body, const std::string& attributes = "") {
  return StrCat(attributes, "func f(", kParams, ") {\n", body, "}\n");
}

// The program of `body` after the pass; checks the meaning, and that a second run changes nothing.
std::string After(const std::string& body, const CseOptions& options = {}) {
  const auto pass = [&](ir::Function& f) { return Cse(f, options); };
  const std::string after = RunPass(Text(body), pass, TestTarget());
  EXPECT_EQ(RunPass(after, pass, TestTarget()), after);
  return after;
}

// `body` as it is printed.
std::string Printed(const std::string& body) { return ir::Print(ParseOrDie(Text(body))); }

struct Case {
  const char* what;
  std::string before;
  std::string after;  // empty: unchanged
};

void Check(const std::vector<Case>& cases, const CseOptions& options = {}) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    EXPECT_EQ(After(c.before, options), Printed(c.after.empty() ? c.before : c.after));
  }
}

TEST(CseTest, Places) {
  Check({
      {"used once", "A[0] = x + y A[1] = x - y", ""},
      {"constants and variables", "A[0] = x A[1] = x A[2] = 7 A[3] = 7", ""},
      {"what is inside a longer one only", "A[0] = (x + y) * z A[1] = (x + y) * z",
       "let cse_var_1: i32 = (x + y) * z A[0] = cse_var_1 A[1] = cse_var_1"},
      {"within one expression", "A[0] = (x + y) * (x + y)",
       "let cse_var_1: i32 = x + y A[0] = cse_var_1 * cse_var_1"},
      {"before the first use", "A[0] = 1 A[1] = x + y A[2] = x + y",
       "A[0] = 1 let cse_var_1: i32 = x + y A[1] = cse_var_1 A[2] = cse_var_1"},
      {"in the loop that binds its variable",
       "for (i, 0, 4) { A[i + 1] = x for (j, 0, 4) { A[i + 1] = j } }",
       "for (i, 0, 4) { let cse_var_1: i32 = i + 1 A[cse_var_1] = x for (j, 0, 4) {"
       " A[cse_var_1] = j } }"},
      {"in front of two loops", "for (i, 0, 4) { A[i] = x * y } for (j, 0, 4) { B[j] = x * y }",
       "let cse_var_1: i32 = x * y for (i, 0, 4) { A[i] = cse_var_1 } for (j, 0, 4) {"
       " B[j] = cse_var_1 }"},
      {"in front of a loop of no certain iteration: it is evaluated later in any case",
       "for (i, 0, n) { A[i] = x * y } B[0] = x * y",
       "let cse_var_1: i32 = x * y for (i, 0, n) { A[i] = cse_var_1 } B[0] = cse_var_1"},
      {"condition and branch", "if (x + y < 3) { A[0] = x + y }",
       "let cse_var_1: i32 = x + y if (cse_var_1 < 3) { A[0] = cse_var_1 }"},
      {"branches exclude one another", "if (x < 3) { A[0] = x + y } else { B[0] = x + y }", ""},
      {"in one branch", "if (x < 3) { A[0] = x + y A[1] = x + y } else { B[0] = x + y }",
       "if (x < 3) { let cse_var_1: i32 = x + y A[0] = cse_var_1 A[1] = cse_var_1 } else {"
       " B[0] = x + y }"},
      {"sides of a select exclude one another", "A[0] = x < 3 ? x + y : (x + y) * 2", ""},
      {"two branches, one after the other, of which maybe none is taken",
       "if (x < 3) { A[0] = x + y } if (y < 3) { B[0] = x + y }", ""},
      {"two branches, and a third use in any case",
       "if (x < 3) { A[0] = x + y } if (y < 3) { B[0] = x + y } A[1] = x + y",
       "let cse_var_1: i32 = x + y if (x < 3) { A[0] = cse_var_1 } if (y < 3) { B[0] = cse_var_1 "
       "} A[1] = cse_var_1"},
      {"a pragma is no scope of its own", "pragma \"p\" { A[0] = x + y } A[1] = x + y",
       "let cse_var_1: i32 = x + y pragma \"p\" { A[0] = cse_var_1 } A[1] = cse_var_1"},
      {"after the allocation that it loads from",
       "allocate L: i32[4] L[0] = x A[0] = L[0] A[1] = L[0]",
       "allocate L: i32[4] L[0] = x let cse_var_1: i32 = L[0] A[0] = cse_var_1 A[1] = cse_var_1"},
      {"a scope that ends", "{ let a: i32 = x + y A[0] = a * z A[1] = a * z } A[2] = x + y",
       "let cse_var_1: i32 = x + y { let cse_var_2: i32 = cse_var_1 * z A[0] = cse_var_2"
       " A[1] = cse_var_2 } A[2] = cse_var_1"},
      {"floats, and pure intrinsics", "F[0] = exp(F[2]) + exp(F[2])",
       "let cse_var_1: f32 = exp(F[2]) F[0] = cse_var_1 + cse_var_1"},
      {"a store in between, and floats in another order", "F[0] = F[2] + F[3] F[1] = F[3] + F[2]",
       ""},
      {"integers in another order are not found without semantic=1", "A[0] = x + y A[1] = y + x",
       ""},
      {"thread loops keep their bounds", "thread (tid, n + 1) { A[tid] = n + 1 }", ""},
  });
}

TEST(CseTest, ExistingLets) {
  Check({
      {"a let serves later uses", "let a: i32 = x + y A[0] = a A[1] = x + y A[2] = (x + y) * 2",
       "let a: i32 = x + y A[0] = a A[1] = a A[2] = a * 2"},
      {"and what uses it meets what uses its value",
       "let a: i32 = x + y A[0] = a * z A[1] = (x + y) * z",
       "let a: i32 = x + y let cse_var_1: i32 = a * z A[0] = cse_var_1 A[1] = cse_var_1"},
      {"an earlier use does not see it", "A[1] = x + y let a: i32 = x + y A[0] = a",
       "let cse_var_1: i32 = x + y A[1] = cse_var_1 A[0] = cse_var_1"},
      {"unless it sizes memory", "A[1] = x + y let a: i32 = x + y allocate L: i32[a] L[0] = a",
       "let cse_var_1: i32 = x + y A[1] = cse_var_1 let a: i32 = cse_var_1 allocate L: i32[a]"
       " L[0] = a"},
      {"or threads are counted by it",
       "A[1] = x + y { let a: i32 = x + y thread (tid, a) { A[tid] = a } }",
       "let cse_var_1: i32 = x + y A[1] = cse_var_1 { let a: i32 = cse_var_1 thread (tid, a) {"
       " A[tid] = a } }"},
      {"or a hint is about it", "A[1] = x + y { let a: i32 = x + y pragma \"p\" (a) { A[2] = a } }",
       "let cse_var_1: i32 = x + y A[1] = cse_var_1 { let a: i32 = cse_var_1 pragma \"p\" (a) {"
       " A[2] = a } }"},
      {"what uses copies becomes equal, and so do copies of that",
       "A[1] = x + y { let a: i32 = x + y let b: i32 = a * z A[2] = b } { let a: i32 = x + y"
       " let b: i32 = a * z A[3] = b * b }",
       "let cse_var_1: i32 = x + y A[1] = cse_var_1 let cse_var_2: i32 = cse_var_1 * z"
       " A[2] = cse_var_2 A[3] = cse_var_2 * cse_var_2"},
      {"a let inside an expression may become a copy, too",
       "A[0] = x + y A[1] = (let a = x + y in a * a)",
       "let cse_var_1: i32 = x + y A[0] = cse_var_1 A[1] = cse_var_1 * cse_var_1"},
      {"shadowed names are other variables",
       "{ let a: i32 = x A[0] = a + 1 } { let a: i32 = y A[1] = a + 1 }", ""},
      {"names do not clash",
       "let cse_var_3: i32 = x * x A[0] = y * y A[1] = y * y A[2] = cse_var_3",
       "let cse_var_3: i32 = x * x let cse_var_4: i32 = y * y A[0] = cse_var_4 A[1] = cse_var_4"
       " A[2] = cse_var_3"},
      {"what depends on a let inside an expression stays inside",
       "A[0] = (let a = x in a * a + a * a)",
       "A[0] = (let a = x in (let cse_var_1 = a * a in cse_var_1 + cse_var_1))"},
      {"and is bound in the innermost such let",
       "A[0] = (let a = x in a * y + (let b = y in (a + b) * (a + b) + a * y + b * 3))",
       "A[0] = (let a = x in (let cse_var_1 = a * y in cse_var_1 + (let b = y in"
       " (let cse_var_2 = a + b in cse_var_2 * cse_var_2 + cse_var_1 + b * 3))))"},
      {"once on each side", "A[0] = x < 3 ? (let a = y in a * a + a * a) : (let b = z in b * b)",
       "A[0] = x < 3 ? (let a = y in (let cse_var_1 = a * a in cse_var_1 + cse_var_1)) :"
       " (let b = z in b * b)"},
      {"memory that a let inside an expression reads",
       "A[0] = (let a = x in B[a] * B[a]) B[0] = 1 A[1] = (let a = x in B[a])",
       "A[0] = (let a = x in (let cse_var_1 = B[a] in cse_var_1 * cse_var_1)) B[0] = 1"
       " A[1] = (let a = x in B[a])"},
      {"guards inside of a let's body", "A[0] = (let a = y in a != 0 && 0 < x / a ? x / a : 0)",
       ""},
      {"but what does not depend on it does", "A[0] = (let a = x in a * (y + z) + (y + z))",
       "let cse_var_1: i32 = y + z A[0] = (let a = x in a * cse_var_1 + cse_var_1)"},
  });
}

TEST(CseTest, NothingStopsThatWentOn) {
  Check({
      {"a test guards the division", "if (n != 0) { A[0] = x / n } if (n != 0) { A[1] = x / n }",
       "let cse_var_1: bool = n != 0 if (cse_var_1) { A[0] = x / n } if (cse_var_1) {"
       " A[1] = x / n }"},
      {"guarded by && and in the branch", "if (n != 0 && 0 < x / n) { A[0] = x / n }", ""},
      {"guarded by ||", "A[0] = n == 0 || x / n < 1 ? 1 : 2 B[0] = n == 0 || x / n < 1 ? 1 : 3",
       "let cse_var_1: bool = n == 0 || x / n < 1 A[0] = cse_var_1 ? 1 : 2"
       " B[0] = cse_var_1 ? 1 : 3"},
      {"inside of one side", "A[0] = n == 0 ? 0 : x / n + x / n",
       "A[0] = n == 0 ? 0 : (let cse_var_1 = x / n in cse_var_1 + cse_var_1)"},
      {"evaluated before in any case", "A[0] = x / n if (y < 3) { A[1] = x / n }",
       "let cse_var_1: i32 = x / n A[0] = cse_var_1 if (y < 3) { A[1] = cse_var_1 }"},
      {"evaluated afterwards in any case", "if (y < 3) { A[1] = x / n } A[0] = x / n",
       "let cse_var_1: i32 = x / n if (y < 3) { A[1] = cse_var_1 } A[0] = cse_var_1"},
      {"by a constant: it may be evaluated, but maybe nobody needs it",
       "if (n != 0) { A[0] = x / 3 } if (n != 1) { A[1] = x / 3 }", ""},
      {"a loop that may be empty", "for (i, 0, n) { A[i] = x / n } for (i, 0, n) { B[i] = x / n }",
       ""},
      {"a loop that is not", "for (i, 0, 3) { A[i] = x / n } for (i, 0, 2) { B[i] = x / n }",
       "let cse_var_1: i32 = x / n for (i, 0, 3) { A[i] = cse_var_1 } for (i, 0, 2) {"
       " B[i] = cse_var_1 }"},
      {"a guarded load", "A[0] = x < 16 ? B[x] : 0 A[1] = x < 16 ? B[x] + 1 : 0",
       "let cse_var_1: bool = x < 16 A[0] = cse_var_1 ? B[x] : 0 A[1] = cse_var_1 ? B[x] + 1 : 0"},
      {"memory never stored may be copied, but not bound",
       "allocate L: i32[4] allocate M: i32[4] M[0] = L[0] M[1] = L[0]", ""},
      {"it is bound where the program would stop anyway",
       "allocate L: i32[4] allocate M: i32[4] L[0] = x M[0] = L[0] A[0] = L[0] A[1] = M[0]",
       "allocate L: i32[4] allocate M: i32[4] L[0] = x let cse_var_1: i32 = L[0] M[0] = cse_var_1"
       " A[0] = cse_var_1 A[1] = M[0]"},
      {"as an index it may not overflow where it was not evaluated",
       "A[0] = B[x < 3 ? (y < 2 ? y * z - y * z : 0) : (z < 2 ? y * z - y * z : 0)]",
       "A[0] = B[x < 3 ? (y < 2 ? (let cse_var_2 = y * z in cse_var_2 - cse_var_2) : 0)"
       " : (z < 2 ? (let cse_var_1 = y * z in cse_var_1 - cse_var_1) : 0)]"},
  });
}

// Two branches that exclude one another by their conditions, if not by their form.
TEST(CseTest, NothingInFrontOfBranchesThatMayNotNeedIt) {
  Check(
      {{"a call", "if (x == 3) { F[0] = sin(f32(y)) } if (x == 4) { F[1] = sin(f32(y)) }", ""},
       {"sides of selects", "A[0] = (x < 3 ? y * z : 0) + (n < 3 ? y * z : 1)", ""},
       {"one more use, in any case",
        "if (x == 3) { F[0] = sin(f32(y)) } if (x == 4) { F[1] = sin(f32(y)) } F[2] = sin(f32(y))",
        "let cse_var_1: f32 = sin(cast(f32, y)) if (x == 3) { F[0] = cse_var_1 }"
        " if (x == 4) { F[1] = cse_var_1 } F[2] = cse_var_1"}});
}

TEST(CseTest, LeftToTheCompiler) {
  Check(
      {{"what may be evaluated anywhere stays",
        "A[x * 4 + y] = z / 3 B[x * 4 + y] = z / 3 A[x * 4 + 1] = min(z, y) B[0] = min(z, y)", ""},
       {"what may stop the program, guards and functions of a library are shared",
        "A[0] = z / n A[1] = z / n F[0] = exp(f32(y)) F[1] = exp(f32(y))"
        " if (x < 3 && y < 3) { A[2] = 1 } if (x < 3 && y < 3) { A[3] = 1 }",
        "let cse_var_1: i32 = z / n A[0] = cse_var_1 A[1] = cse_var_1"
        " let cse_var_2: f32 = exp(cast(f32, y)) F[0] = cse_var_2 F[1] = cse_var_2"
        " let cse_var_3: bool = x < 3 && y < 3 if (cse_var_3) { A[2] = 1 }"
        " if (cse_var_3) { A[3] = 1 }"}},
      {.leave = true});
}

TEST(CseTest, Memory) {
  Check({
      {"no store in between", "A[0] = B[x] A[1] = B[x]",
       "let cse_var_1: i32 = B[x] A[0] = cse_var_1 A[1] = cse_var_1"},
      {"a store in between", "A[0] = B[x] B[y] = 1 A[1] = B[x]", ""},
      {"a store to another buffer", "A[0] = B[x] F[y] = 1.0 A[1] = B[x]",
       "let cse_var_1: i32 = B[x] A[0] = cse_var_1 F[y] = 1.0 A[1] = cse_var_1"},
      {"the store itself", "B[0] = B[x] + B[x] B[1] = B[x]",
       "let cse_var_1: i32 = B[x] B[0] = cse_var_1 + cse_var_1 B[1] = B[x]"},
      {"two times the same memory", "A[0] = B[x] A[1] = B[x] B[0] = 1 A[2] = B[x] A[3] = B[x]",
       "let cse_var_1: i32 = B[x] A[0] = cse_var_1 A[1] = cse_var_1 B[0] = 1"
       " let cse_var_2: i32 = B[x] A[2] = cse_var_2 A[3] = cse_var_2"},
      {"a store in one branch", "A[0] = B[x] if (x < 3) { B[y] = 1 A[1] = B[x] } A[2] = B[x]", ""},
      {"a store in the other branch", "A[0] = B[x] if (x < 3) { B[y] = 1 } else { A[1] = B[x] }",
       "let cse_var_1: i32 = B[x] A[0] = cse_var_1 if (x < 3) { B[y] = 1 } else {"
       " A[1] = cse_var_1 }"},
      {"a store later in the loop", "A[0] = B[x] for (i, 0, 3) { A[i] = B[x] B[i] = 1 }", ""},
      {"a store in another loop", "A[0] = B[x] for (i, 0, 3) { B[i] = 1 } A[1] = B[x]", ""},
      {"inside of each iteration", "for (i, 0, 3) { A[i] = B[x] A[i + 1] = B[x] B[i] = 1 }",
       "for (i, 0, 3) { let cse_var_1: i32 = B[x] A[i] = cse_var_1 A[i + 1] = cse_var_1"
       " B[i] = 1 }"},
      {"a store before the first use in the same statement",
       "pragma \"p\" { B[0] = 1 A[0] = B[x] } A[1] = B[x] A[2] = B[x]",
       "pragma \"p\" { B[0] = 1 A[0] = B[x] } let cse_var_1: i32 = B[x] A[1] = cse_var_1"
       " A[2] = cse_var_1"},
      {"allocations are new in each iteration",
       "for (i, 0, 3) { allocate L: i32[2] L[0] = i A[i] = L[0] B[i] = L[0] }",
       "for (i, 0, 3) { allocate L: i32[2] L[0] = i let cse_var_1: i32 = L[0] A[i] = cse_var_1"
       " B[i] = cse_var_1 }"},
      {"a load of what was loaded", "A[0] = B[B[x]] A[1] = B[B[x]] B[2] = 3 A[2] = B[B[x]]",
       "let cse_var_1: i32 = B[B[x]] A[0] = cse_var_1 A[1] = cse_var_1 B[2] = 3 A[2] = B[B[x]]"},
  });
}

// simplify keeps what is bound; it only has an order of its own for sums.
TEST(CseTest, SimplifyKeepsBindings) {
  const std::string text = After(
      "for (i, 0, 4) { A[x + i * 3] = F[i * 3] < 1.0 ? 1 : 2 B[x + i * 3] = y + (x + i * 3) }");
  EXPECT_NE(text.find("let cse_var_2: i32 = i * 3"), std::string::npos) << text;
  EXPECT_EQ(RunPass(text, [](ir::Function& f) { return Simplify(f); }, TestTarget()), text);
}

TEST(CseTest, Semantic) {
  Check(
      {
          {"commutativity", "A[0] = x + y A[1] = y + x",
           "let cse_var_1: i32 = x + y A[0] = cse_var_1 A[1] = cse_var_1"},
          {"associativity", "A[0] = (x + y) + z A[1] = x + (y + z)",
           "let cse_var_1: i32 = x + y + z A[0] = cse_var_1 A[1] = cse_var_1"},
          {"distributivity", "A[0] = x * y + x * z A[1] = x * (y + z)",
           "let cse_var_1: i32 = x * (y + z) A[0] = cse_var_1 A[1] = cse_var_1"},
          {"inside of others", "F[0] = exp(F[min(x, y) % 16]) * exp(F[min(y, x) % 16])",
           "let cse_var_1: f32 = exp(F[min(x, y) % 16]) F[0] = cse_var_1 * cse_var_1"},
          {"floats keep their order", "F[0] = (F[2] + F[3]) * (F[3] + F[2])",
           "let cse_var_1: f32 = F[2] let cse_var_2: f32 = F[3]"
           " F[0] = (cse_var_1 + cse_var_2) * (cse_var_2 + cse_var_1)"},
          {"nothing equal, nothing changed", "A[0] = y + x A[1] = (x + z) + y", ""},
      },
      {.semantic = true});
}

// Buffers that may share memory after all.
TEST(CseTest, DeclaredAliases) {
  const std::string body = "A[0] = B[x]\nA[1] = B[x]\n";
  const auto pass = [](ir::Function& f) { return Cse(f); };
  EXPECT_NE(RunPass(Text(body), pass, TestTarget()).find("cse_var_1"), std::string::npos);
  const std::string text = ir::Print(ParseOrDie(Text(body, "@may_alias(\"A\", \"B\")\n")));
  EXPECT_EQ(RunPass(text, pass, TestTarget()), text);
}

// An instruction writes what its meaning says, and a barrier stands for what others do.
TEST(CseTest, Instructions) {
  CseOptions options;
  options.intrinsics = &TestTarget().instructions->intrinsics();
  const std::string head =
      "func f(A: f16[64] in, B: f16[64] out, C: f16[64] out) {\n"
      "  allocate L: f16[64] @nmem\n"
      "  memcpy.f16.nmem.gmem(&L[0], &A[0], 64, 1, 0, 0)\n";
  const auto after = [&](const std::string& middle) {
    return RunPass(
        StrCat(head, "  B[0] = A[0]\n  B[1] = L[0]\n", middle, "  C[0] = A[0]\n  C[1] = L[0]\n}\n"),
        [&](ir::Function& f) { return Cse(f, options); }, TestTarget());
  };
  EXPECT_EQ(after("  add.f16(&L[0], &L[0], &L[0], 64)\n"),
            StrCat(head,
                   "  let cse_var_1: f16 = A[0]\n  B[0] = cse_var_1\n  B[1] = L[0]\n"
                   "  add.f16(&L[0], &L[0], &L[0], 64)\n  C[0] = cse_var_1\n  C[1] = L[0]\n}\n"));
  // Arguments are expressions like others.
  EXPECT_EQ(RunPass(
                "func f(A: f16[256] in, n: i64) {\n"
                "  allocate L: f16[64] @nmem\n"
                "  memcpy.f16.nmem.gmem(&L[0], &A[n * 3], n * 3, 1, 0, 0)\n"
                "}\n",
                [&](ir::Function& f) { return Cse(f, options); }, TestTarget()),
            "func f(A: f16[256] in, n: i64) {\n"
            "  allocate L: f16[64] @nmem\n"
            "  let cse_var_1: i64 = n * 3\n"
            "  memcpy.f16.nmem.gmem(&L[0], &A[cse_var_1], cse_var_1, 1, 0, 0)\n"
            "}\n");
}

TEST(CseTest, Report) {
  ir::Function f = ParseOrDie(Text("A[0] = (x + y) * z A[1] = (x + y) * z A[2] = x + y"));
  std::vector<CseBinding> bindings;
  EXPECT_TRUE(*Cse(f, {}, &bindings));
  std::string text;
  for (const CseBinding& b : bindings) {
    StrAppend(&text, b.variable, " = ", b.value, ": ", b.uses, "\n");
  }
  EXPECT_EQ(text, "cse_var_1 = cse_var_2 * z: 2\ncse_var_2 = x + y: 2\n");
}

// The text after the pass does not depend on where a process has its memory.
TEST(CseTest, SameTextInEveryProcess) {
  const std::string text = TextOfEveryProcess([] {
    for (uint64_t seed = 1; seed <= 50; ++seed) {
      ir::Function f = ir::RandomProgram(seed, {.stores = 8, .repetition = 60});
      ASSERT_TRUE(Cse(f, {.semantic = seed % 2 == 0}).ok());
      std::printf("%s", ir::Print(f).c_str());
    }
  });
  EXPECT_NE(text.find("cse_var_2"), std::string::npos) << text;
}

// Programs with all that the IR has and with repeated parts: the same values before and after, and
// nothing that a second run finds. In parts, so that shards share them.
constexpr int kParts = 4;

ir::Counts CountsOf(const ir::Function& function, uint64_t seed) {
  const ir::RandomArguments arguments(function, seed);
  ir::Counts counts;
  const absl::Status status = ir::Interpret(function, arguments.arguments(), &counts);
  EXPECT_TRUE(status.ok()) << status;
  return counts;
}

class CseRandomTest : public testing::TestWithParam<int> {};

TEST_P(CseRandomTest, SameMeaning) {
  const char* more = std::getenv("POLYNAO_RANDOM_CASES");
  const uint64_t cases = (more == nullptr ? 10000 : std::strtoull(more, nullptr, 10)) / kParts;
  const uint64_t first = 1 + cases * static_cast<uint64_t>(GetParam());
  ir::RandomProgramOptions small{.stores = 4, .max_iterations = 100};
  small.repetition = 60;
  int changed = 0;
  for (uint64_t seed = first; seed < first + cases && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    small.extern_calls = seed % 3 == 1;
    const ir::Function before = ir::RandomProgram(seed, small);
    const CseOptions options{.semantic = seed % 4 == 0};
    ir::Function after = ir::CloneInto(before, std::make_shared<ir::Context>());
    const absl::StatusOr<bool> did = Cse(after, options);
    ASSERT_TRUE(did.ok()) << did.status();
    changed += *did;
    bool stops = false;
    EXPECT_EQ(CompareMeaningOnRandomArguments(before, after, seed, &stops), "")
        << ir::Print(before) << ir::Print(after);
    EXPECT_FALSE(stops) << ir::Print(before);
    // No run evaluates more of anything. (The shortest of equal expressions may have more of some.)
    if (!options.semantic) {
      const auto rows_before = ir::CountRows(CountsOf(before, seed));
      const auto rows_after = ir::CountRows(CountsOf(after, seed));
      for (size_t i = 0; i < rows_before.size(); ++i) {
        EXPECT_LE(rows_after[i].second, rows_before[i].second)
            << rows_before[i].first << "\n"
            << ir::Print(before) << ir::Print(after);
      }
    }
    ir::Function again = after;
    EXPECT_FALSE(*Cse(again, options)) << ir::Print(before) << ir::Print(after) << ir::Print(again);
  }
  EXPECT_GT(changed, static_cast<int>(cases / 4));
}

INSTANTIATE_TEST_SUITE_P(Parts, CseRandomTest, testing::Range(0, kParts));

}  // namespace
}  // namespace polynao
