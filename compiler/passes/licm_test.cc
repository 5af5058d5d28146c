#include "compiler/passes/licm.h"

#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/ir/counts.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/passes/normalize.h"
#include "compiler/passes/pass_test_util.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

constexpr char kParams[] =
    "A: f32[4096] in, B: f32[4096], C: i32[4096], D: i32[4], n: i32, m: i32, x: f32[n] in, y: "
    "f32[m] in";

// Everything but loops of one iteration pays, so that examples stay small.
constexpr LicmOptions kEager = {{.threshold = 1, .unrolled_extent = 1, .max_live = 1000}};

std::string Text(const std::string& body, const std::string& params = kParams) {
  return StrCat("func f(", params, ") {\n", body, "}\n");
}

std::string Printed(const std::string& body, const std::string& params = kParams) {
  return ir::Print(ParseOrDie(Text(body, params)));
}

std::string After(const std::string& body, const LicmOptions& options = kEager,
                  const std::string& params = kParams) {
  const auto pass = [&](ir::Function& f) { return Licm(f, TestTarget(), options); };
  const std::string once = RunPass(Text(body, params), pass, TestTarget());
  EXPECT_EQ(RunPass(once, pass, TestTarget()), once) << "a second run";
  return once;
}

void Expect(const std::string& before, const std::string& after,
            const LicmOptions& options = kEager) {
  EXPECT_EQ(After(before, options), Printed(after)) << before;
}

void ExpectStays(const std::string& body, const LicmOptions& options = kEager) {
  Expect(body, body, options);
}

TEST(LicmTest, FromSeveralLoopsAtOnce) {
  Expect("for (i, 0, 9) { for (j, 0, 9) { C[i + j] = n * m + j * n } }",
         "let inv_n_m = n * m for (i, 0, 9) { for (j, 0, 9) { C[i + j] = inv_n_m + j * n } }");
}

TEST(LicmTest, ConditionsOfNestedIfs) {
  Expect("for (i, 0, 9) { for (j, 0, 9) { if (j < n) { if (i < m && i < n) { C[i] = j } } } }",
         "for (i, 0, 9) { let inv_i_m_n = i < m && i < n"
         " for (j, 0, 9) { if (j < n) { if (inv_i_m_n) { C[i] = j } } } }");
  Expect("for (i, 0, 9) { C[i] = select(n < m || m == 3, i, 0) }",
         "let inv_n_m = n < m || m == 3 for (i, 0, 9) { C[i] = select(inv_n_m, i, 0) }");
}

TEST(LicmTest, LetsMoveWithTheirVariable) {
  Expect("for (i, 0, 9) { for (j, 0, 9) { let t = i * 4 let u = t + n let w = u + j C[j] = w } }",
         "for (i, 0, 9) { let t = i * 4 let u = t + n"
         " for (j, 0, 9) { let w = u + j C[j] = w } }");
  // Of what varies in the loop.
  ExpectStays("for (i, 0, 9) { let t = C[i] let u = t + 1 C[i] = u + u }");
}

TEST(LicmTest, LoadsThatNothingChanges) {
  Expect("for (i, 0, 9) { for (j, 0, 9) { B[j] = B[j] + A[i] * 2.0 } }",
         "for (i, 0, 9) { let inv_A = A[i] * 2.0 for (j, 0, 9) { B[j] = B[j] + inv_A } }");
  // B may be what the loop stores.
  ExpectStays("for (i, 0, 9) { for (j, 0, 9) { B[j] = B[i] + A[j] } }");
  // Changed in the outer loop, not in the inner one.
  Expect("for (i, 0, 9) { C[i] = i for (j, 0, 9) { B[j] = f32(C[0]) } }",
         "for (i, 0, 9) { C[i] = i let inv_C = f32(C[0]) for (j, 0, 9) { B[j] = inv_C } }");
  const std::string alias =
      "@may_alias(\"A\", \"B\")\n"
      "func f(A: f32[9], B: f32[9]) {\n  for (i, 0, 9) {\n    B[i] = A[3]\n  }\n}\n";
  EXPECT_EQ(RunPass(
                alias, [](ir::Function& f) { return Licm(f, TestTarget(), kEager); }, TestTarget()),
            alias);
  // What a call may write.
  ExpectStays("for (i, 0, 9) { B[i] = A[0] }", {{.load = 0, .threshold = 1}});
}

TEST(LicmTest, NothingThatCouldStopTheProgram) {
  // A division guarded by a test, and one in a loop that may have no iteration.
  Expect("for (i, 0, 9) { if (n != 0) { C[i] = 7 / n } }",
         "let inv_n = n != 0 for (i, 0, 9) { if (inv_n) { C[i] = 7 / n } }");
  ExpectStays("for (i, 0, n) { C[i] = 7 % m }");
  ExpectStays("for (i, 0, 9) { C[i] = select(n != i, 7 / n, 0) }");
  ExpectStays("for (i, 0, 9) { if (n != i && 7 / n < 3) { C[i] = 1 } }");
  // With its test it is safe.
  Expect("for (i, 0, n) { C[i] = select(m != 0, 7 / m, 0) }",
         "let inv_m = select(m != 0, 7 / m, 0) for (i, 0, n) { C[i] = inv_m }");
  // A loop that is known to run evaluates it.
  Expect("for (i, 0, 9) { C[i] = 7 / (n - 9) }",
         "let inv_n = 7 / (n - 9) for (i, 0, 9) { C[i] = inv_n }");
  // So does one inside of a test, in front of it; the test is known to hold.
  Expect("if (0 < n) { for (i, 0, m) { C[i] = 7 / n } }",
         "if (0 < n) { let inv_n = 7 / n for (i, 0, m) { C[i] = inv_n } }");
  // Inside of the loop over m there is an m of at least 1, in front of it not.
  Expect("for (i, 0, m) { for (j, 0, 9) { for (k, 0, n) { C[j] = 7 / m } } }",
         "for (i, 0, m) { let inv_m = 7 / m for (j, 0, 9) { for (k, 0, n) { C[j] = inv_m } } }");
  // Divisors that can not be 0 move anywhere.
  Expect("for (i, 0, n) { if (i < 3) { C[i] = 7 / max(n, 1) } }",
         "let inv_n = 7 / max(n, 1) for (i, 0, n) { if (i < 3) { C[i] = inv_n } }");
  // Loads: guarded by their loop or a test, or in bounds.
  ExpectStays("for (i, 0, n) { B[i] = x[0] }");
  ExpectStays("for (i, 0, 9) { if (n == 3 + i) { B[i] = x[2] } }");
  Expect("for (i, 0, n) { B[i] = A[7] }", "let inv_A = A[7] for (i, 0, n) { B[i] = inv_A }");
  ExpectStays("for (i, 0, n) { B[i] = A[n + 4095] }", {{.simple = 0, .load = 4}});
  // An index that wraps stops the program. In a let it does not.
  Expect("for (i, 0, n) { C[i * 0 + n * 3] = 1 }",
         "let inv_n = n * 3 for (i, 0, n) { C[i * 0 + inv_n] = 1 }");
  // Wrapping in a condition of a select does.
  Expect("for (i, 0, n) { if (i == 7) { C[i] = select(n * 1000000000 < 0, 1, 2) } }",
         "let inv_n = n * 1000000000 < 0 let inv_n_1 = select(inv_n, 1, 2)"
         " for (i, 0, n) { if (i == 7) { C[i] = inv_n_1 } }");
}

// Of an allocation's elements some may never have been stored. Copies of such are nobody's
// business; a let of one stops the program.
TEST(LicmTest, ValuesNeverStored) {
  ExpectStays("allocate T: f32[4] allocate U: f32[9] for (i, 0, 9) { U[i] = T[0] + 1.0 }");
  ExpectStays("allocate T: f32[4] for (i, 0, n) { B[i] = T[0] + 1.0 }");
  Expect("allocate T: f32[4] T[0] = 2.0 for (i, 0, 9) { B[i] = T[0] + 1.0 }",
         "allocate T: f32[4] T[0] = 2.0 let inv_T = T[0] + 1.0 for (i, 0, 9) { B[i] = inv_T }");
}

TEST(LicmTest, EmptyLoops) {
  Expect("for (i, 0, n) { C[i] = n * m }", "let inv_n_m = n * m for (i, 0, n) { C[i] = inv_n_m }");
  ExpectStays("for (i, 0, 0) { C[0] = 1 }");
  ExpectStays("for (i, 0, 0) { C[i] = 7 / n }");
  ExpectStays("for (i, 0, n) { C[0] = 1 }");
}

// Two variables of one name are two variables.
TEST(LicmTest, ShadowedNames) {
  Expect(
      "for (i, 0, 9) { for (j, 0, 9) { for (i, 0, 9) { C[i + j] = j * 3 } } C[i] = i * 3 }",
      "for (i, 0, 9) { for (j, 0, 9) { let inv_j = j * 3 for (i, 0, 9) { C[i + j] = inv_j } } C[i] "
      "= i * 3 }");
  // A let expression's variable exists in its body only.
  ExpectStays("for (i, 0, 9) { C[i] = (let v = C[0] in v * v + v * i) }");
  Expect("for (i, 0, 9) { C[i] = i * (let v = n + 1 in v * v) }",
         "let inv_n_v = (let v = n + 1 in v * v) for (i, 0, 9) { C[i] = i * inv_n_v }");
}

TEST(LicmTest, CostAndThreshold) {
  const LicmOptions options = {{.threshold = 3, .unrolled_extent = 1}};
  ExpectStays("for (i, 0, 9) { for (j, 0, 9) { C[i * 9 + j] = j } }", options);
  ExpectStays("for (i, 0, 9) { C[i] = (7 - 3) * i }");
  // The paper's x / 1024 + y costs 4; of which a power of two here is a shift.
  Expect("for (i, 0, 9) { for (j, 0, 9) { C[i + j] = n / 1000 + m } }",
         "let inv_n_m = n / 1000 + m for (i, 0, 9) { for (j, 0, 9) { C[i + j] = inv_n_m } }",
         options);
  ExpectStays("for (i, 0, 9) { for (j, 0, 9) { C[i + j] = n / 1024 + m } }", options);
  // What moves further by itself does not count: i + inv is left.
  Expect("for (i, 0, 9) { for (j, 0, 9) { C[j] = (n / 1000 + i) * j } }",
         "let inv_n = n / 1000 for (i, 0, 9) { for (j, 0, 9) { C[j] = (inv_n + i) * j } }",
         options);
}

TEST(LicmTest, CostsOfTargets) {
  const auto after = [](const std::string& target_name) {
    const Target target{.name = target_name};
    return RunPass(
        Text("for (i, 0, 9) { for (j, 0, 9) { C[i + n + j] = 1 } }"),
        [&](ir::Function& f) {
          LicmOptions options = LicmOptionsFor(target);
          options.leave = target_name != "diannao";
          return Licm(f, target, options);
        },
        TestTarget());
  };
  // Nobody optimises the code for the accelerator's scalar unit. Others move additions by themselves.
  EXPECT_EQ(after("diannao"), Printed("for (i, 0, 9) { let inv_i_n = i + n for (j, 0, 9) {"
                                      " C[inv_i_n + j] = 1 } }"));
  for (const char* optimized : {"cpu", "c", "cuda"}) {
    EXPECT_EQ(after(optimized), Printed("for (i, 0, 9) { for (j, 0, 9) { C[i + n + j] = 1 } }"));
  }
}

TEST(LicmTest, LoopsThatAreUnrolled) {
  const LicmOptions options = {{.threshold = 1, .unrolled_extent = 4}};
  ExpectStays("for (i, 0, 9) { for (j, 0, 4) { C[j] = i * 3 } }", options);
  ExpectStays("for (i, 0, 9) { unroll (j, 0, 32) { C[j] = i * 3 } }", options);
  Expect("for (i, 0, 9) { for (j, 0, 5) { C[j] = i * 3 } }",
         "for (i, 0, 9) { let inv_i = i * 3 for (j, 0, 5) { C[j] = inv_i } }", options);
  // Through an unrolled one out of another.
  Expect("for (i, 0, 9) { for (j, 0, 9) { for (k, 0, 4) { C[j + k] = i * 3 } } }",
         "for (i, 0, 9) { let inv_i = i * 3 for (j, 0, 9) { for (k, 0, 4) { C[j + k] = inv_i } } }",
         options);
}

TEST(LicmTest, LiveValues) {
  const LicmOptions options = {{.threshold = 1, .unrolled_extent = 1, .max_live = 2}};
  Expect("for (i, 0, 9) { C[i] = n * 3 C[i + 9] = n * 4 C[i + 18] = n * 5 }",
         "let inv_n = n * 3 let inv_n_1 = n * 4"
         " for (i, 0, 9) { C[i] = inv_n C[i + 9] = inv_n_1 C[i + 18] = n * 5 }",
         options);
  // Values that lets around the loop bind take room, if the loop uses them, whoever bound them.
  ExpectStays(
      "let a = n * 3 let b = n * 4 for (i, 0, 9) { C[i] = a C[i + 9] = b C[i + 18] = n * 5 }",
      options);
  Expect("let a = n * 3 let b = n * 4 let c = b * a for (i, 0, 9) { C[i] = c C[i + 9] = n * 5 }",
         "let a = n * 3 let b = n * 4 let c = b * a let inv_n = n * 5"
         " for (i, 0, 9) { C[i] = c C[i + 9] = inv_n }",
         options);
  // So does a let that moves.
  Expect("for (i, 0, 9) { let a = n * 3 C[i] = a C[i + 9] = n * 4 C[i + 18] = n * 5 }",
         "let a = n * 3 let inv_n = n * 4"
         " for (i, 0, 9) { C[i] = a C[i + 9] = inv_n C[i + 18] = n * 5 }",
         options);
}

// Where there is no room for all, those go that spare most.
TEST(LicmTest, LiveValuesThatSpareMost) {
  const auto after = [](const std::string& body, int max_live) {
    return After(body, {{.threshold = 1, .unrolled_extent = 1, .max_live = max_live}});
  };
  // By cost: a product 2, an intrinsic 10.
  EXPECT_EQ(after("for (i, 0, 9) { C[i] = n * 3 B[i] = exp(f32(m)) C[i + 9] = n * 5 }", 1),
            Printed("let inv_exp_m = exp(f32(m)) for (i, 0, 9) { C[i] = n * 3 B[i] = inv_exp_m"
                    " C[i + 9] = n * 5 }"));
  // By uses: 2 each, but n * 5 twice. One of them in the branch that is taken or not, as it may be.
  EXPECT_EQ(after("for (i, 0, 9) { C[i] = n * 3 C[i + 9] = n * 5 C[i + 18] = n * 5 + i }", 1),
            Printed("let inv_n = n * 5 for (i, 0, 9) { C[i] = n * 3 C[i + 9] = inv_n"
                    " C[i + 18] = inv_n + i }"));
  // By loops inside: of the sum over i there are 9, of the one over n as many as of 8.
  EXPECT_EQ(
      after("for (i, 0, 9) { C[i] = m * n - 7 for (j, 0, n) { C[j] = n * 5 } }", 1),
      Printed("let inv_n = n * 5 for (i, 0, 9) { C[i] = m * n - 7 for (j, 0, n) { C[j] = inv_n }"
              " }"));
  // What stays is no second candidate by its parts: there is room for two.
  EXPECT_EQ(after("for (i, 0, 9) { C[i] = n * 3 C[i + 9] = n * 5 C[i + 18] = n * m * (n - 2) }", 2),
            Printed("let inv_n = n * 3 let inv_n_m = n * m * (n - 2) for (i, 0, 9) { C[i] = inv_n"
                    " C[i + 9] = n * 5 C[i + 18] = inv_n_m }"));
  EXPECT_EQ(after("for (i, 0, 9) { C[i] = n * 3 }", 0), Printed("for (i, 0, 9) { C[i] = n * 3 }"));
}

TEST(LicmTest, NothingLeavesThreads) {
  Expect(
      "thread (cid, 2) { for (i, 0, 9) { thread (tid, 2) { for (j, 0, 9) { C[i + j] = n * 3 + tid "
      "} } } }",
      "thread (cid, 2) { for (i, 0, 9) { thread (tid, 2) { let inv_n_tid = n * 3 + tid for (j, 0, "
      "9) { "
      "C[i + j] = inv_n_tid } } } }");
  Expect(
      "thread (cid, 2) { for (i, 0, 9) { thread (tid, 2) { for (j, 0, 9) { C[i + j] = n * 3 + tid "
      "} } } }",
      "thread (cid, 2) { let inv_n = n * 3 for (i, 0, 9) { thread (tid, 2) { let inv_n_tid = inv_n "
      "+ tid "
      "for (j, 0, 9) { C[i + j] = inv_n_tid } } } }",
      {{.threshold = 1, .unrolled_extent = 1, .leave_inner_threads = true}});
  // Only where it leaves another loop, too: not to between two thread loops.
  Expect("thread (cid, 2) { thread (tid, 2) { for (i, 0, 9) { C[i] = cid * 3 + tid } } }",
         "thread (cid, 2) { thread (tid, 2) { let inv_cid_tid = cid * 3 + tid"
         " for (i, 0, 9) { C[i] = inv_cid_tid } } }",
         {{.threshold = 1, .unrolled_extent = 1, .leave_inner_threads = true}});
  Expect("parallel (i, 0, 9) { C[i] = n * 3 }",
         "let inv_n = n * 3 parallel (i, 0, 9) { C[i] = inv_n }");
}

TEST(LicmTest, InvariantStores) {
  Expect("for (i, 0, 9) { B[0] = 1.0 C[i] = i }", "B[0] = 1.0 for (i, 0, 9) { C[i] = i }");
  // A nest, through two loops, what its values use first.
  Expect(
      "for (i, 0, 9) { for (j, 0, 9) { for (k, 0, 9) { B[k] = A[n * 0 + k] } C[i * 9 + j] = 1 } }",
      "let inv_n = n * 0 for (k, 0, 9) { B[k] = A[inv_n + k] }"
      " for (i, 0, 9) { let inv_i = i * 9 for (j, 0, 9) { C[inv_i + j] = 1 } }");
  // One after the other, and what they leave is used.
  Expect("for (i, 0, 9) { D[0] = n B[0] = f32(D[0]) C[i] = i32(B[0]) }",
         "D[0] = n B[0] = f32(D[0]) let inv_B = i32(B[0]) for (i, 0, 9) { C[i] = inv_B }");
  Expect("for (i, 0, 9) { let t = i * 2 B[0] = 1.0 C[t] = t }",
         "B[0] = 1.0 for (i, 0, 9) { let t = i * 2 C[t] = t }");
  // All of the loop.
  Expect("for (i, 0, 9) { if (n < m) { C[3] = n } }",
         "let inv_n_m = n < m if (inv_n_m) { C[3] = n }");
  for (const std::string stays : {
           "for (i, 0, n) { B[0] = 1.0 C[i] = i }",        // maybe no iteration
           "for (i, 0, 9) { B[0] = 1.0 B[i] = 2.0 }",      // stored by something else
           "for (i, 0, 9) { C[i] = C[9] C[9] = 3 }",       // stored twice
           "for (i, 0, 9) { B[i] = f32(C[9]) C[9] = 3 }",  // read before
           "for (i, 0, 9) { let t = C[9] C[9] = 3 B[i] = f32(t) }",
           "for (i, 0, 9) { C[9] = C[9] + 1 }",          // reads what it stores
           "for (i, 0, 9) { if (i < 3) { C[9] = 3 } }",  // not always
           "for (i, 0, 9) { allocate T: f32[9] T[0] = 1.0 B[i] = T[0] }",
           "parallel (i, 0, 9) { C[9] = 3 }",
           "thread (tid, 4) { C[9] = 3 }",
       }) {
    ExpectStays(stays);
  }
}

// Instructions, whose reads and writes are those of their meanings.
TEST(LicmTest, Instructions) {
  const std::string params = "A: f16[256] in, B: f16[256] out, n: i32";
  const std::string body =
      "allocate L: f16[256] @nmem allocate R: f16[1] @nmem R[0] = 1.0\n"
      "for (i, 0, 4) {\n"
      "  memcpy.f16.nmem.gmem(&L[n * 0], &A[i * 64], 64, 1, 0, 0)\n"
      "  B[i] = R[0]\n"
      "  memcpy.f16.gmem.nmem(&B[i * 64], &L[0], 64, 1, 0, 0)\n"
      "}\n";
  const std::string after =
      "allocate L: f16[256] @nmem allocate R: f16[1] @nmem R[0] = 1.0\n"
      "let inv_n = n * 0 let inv_R = R[0]\n"
      "for (i, 0, 4) {\n"
      "  memcpy.f16.nmem.gmem(&L[inv_n], &A[i * 64], 64, 1, 0, 0)\n"
      "  B[i] = inv_R\n"
      "  memcpy.f16.gmem.nmem(&B[i * 64], &L[0], 64, 1, 0, 0)\n"
      "}\n";
  EXPECT_EQ(After(body, kEager, params), Printed(after, params));
}

// The card's pipeline: loops of the scalar unit alone.
TEST(LicmTest, BesideInstructions) {
  LicmOptions options = kEager;
  options.beside_instructions = false;
  const std::string params = "A: f16[256] in, B: f16[256] out, n: i32";
  const std::string body =
      "allocate L: f16[256] @nmem\n"
      "for (i, 0, 4) {\n"
      "  memcpy.f16.nmem.gmem(&L[n * 0], &A[i * 64], 64, 1, 0, 0)\n"
      "  for (j, 0, 64) { B[i * 64 + j] = A[n * 0] }\n"
      "}\n";
  const std::string after =
      "allocate L: f16[256] @nmem\n"
      "for (i, 0, 4) {\n"
      "  memcpy.f16.nmem.gmem(&L[n * 0], &A[i * 64], 64, 1, 0, 0)\n"
      "  let inv_i = i * 64 let inv_A = A[n * 0]\n"
      "  for (j, 0, 64) { B[inv_i + j] = inv_A }\n"
      "}\n";
  EXPECT_EQ(After(body, options, params), Printed(after, params));
}

// What extern functions may do decides what moves: a pure call always, one that reads unless the loop
// writes, none past an opaque one.
TEST(LicmTest, ExternFunctions) {
  const std::string externs =
      "extern pure func p(x: i32) -> i32 = x ^ 3\n"
      "extern reads func r(A: i32[1] in) -> i32 = A[0]\n"
      "extern writes func w(A: i32[1] out) { A[0] = 1 }\n"
      "extern opaque func o() { }\n";
  const auto expect = [&](const std::string& before, const std::string& after) {
    const auto text = [&](const std::string& body) { return StrCat(externs, Text(body)); };
    const auto pass = [&](ir::Function& f) { return Licm(f, TestTarget(), kEager); };
    EXPECT_EQ(RunPass(text(before), pass, TestTarget()), ir::Print(ParseOrDie(text(after))))
        << before;
  };
  expect("for (i, 0, 9) { C[i] = p(n) * i o() }",
         "let inv_p_n = p(n) for (i, 0, 9) { C[i] = inv_p_n * i o() }");
  expect("for (i, 0, 9) { C[i] = r(&D[1]) * i }",
         "let inv_r_D = r(&D[1]) for (i, 0, 9) { C[i] = inv_r_D * i }");
  expect("for (i, 0, 9) { C[i] = r(&D[1]) * i w(&D[2]) }",
         "for (i, 0, 9) { C[i] = r(&D[1]) * i w(&D[2]) }");
  expect("for (i, 0, 9) { C[i] = r(&D[1]) * i o() }", "for (i, 0, 9) { C[i] = r(&D[1]) * i o() }");
  // Where the loop may be empty, a call that reads could stop a program that goes on.
  expect("for (i, 0, n) { C[i] = r(&D[1]) * i + p(m) }",
         "let inv_p_m = p(m) for (i, 0, n) { C[i] = r(&D[1]) * i + inv_p_m }");
}

TEST(LicmTest, Stats) {
  ir::Function function = ParseOrDie(
      Text("for (i, 0, 9) { for (j, 0, 8) { let t = i * 4 C[t + j] = n * m + j } C[99] = 3 }"));
  LicmStats stats;
  EXPECT_TRUE(*Licm(function, TestTarget(), kEager, &stats));
  EXPECT_EQ(stats.expressions, 1);
  EXPECT_EQ(stats.lets, 1);
  EXPECT_EQ(stats.statements, 0);  // C[99] = 3 stores what the nest may store
  EXPECT_EQ(stats.moved, (std::vector<std::string>{
                             "t = i * 4  out of  for (j, 0, 8) {",
                             "inv_n_m = n * m  out of  for (i, 0, 9) {  for (j, 0, 8) {"}));
}

// Names tell what a value depends on, and no two variables have the same.
TEST(LicmTest, Names) {
  Expect(
      "for (i, 0, 9) { for (j, 0, 9) { for (k, 0, 9) { for (l, 0, 9) { for (r, 0, 9) {"
      " C[i * 64 + j * 8 + k + l * 3 + r] = n * m } } } } }",
      "let inv_n_m = n * m for (i, 0, 9) { let inv_i = i * 64 for (j, 0, 9) {"
      " let inv_i_j = inv_i + j * 8 for (k, 0, 9) { let inv_i_j_k = inv_i_j + k for (l, 0, 9) {"
      " let inv_i_j_k_1 = inv_i_j_k + l * 3 for (r, 0, 9) { C[inv_i_j_k_1 + r] = inv_n_m } } } } "
      "}");
  Expect(
      "let inv_n = m for (i, 0, 9) { C[i] = inv_n + i for (inv_n_1, 0, 9) { C[inv_n_1] = n * 3 } }",
      "let inv_n = m let inv_n_2 = n * 3 for (i, 0, 9) { C[i] = inv_n + i"
      " for (inv_n_1, 0, 9) { C[inv_n_1] = inv_n_2 } }");
}

ir::Counts CountsOf(const ir::Function& function, uint64_t seed) {
  const ir::RandomArguments arguments(function, seed);
  ir::Counts counts;
  const absl::Status status = ir::Interpret(function, arguments.arguments(), &counts);
  EXPECT_TRUE(status.ok()) << status;
  return counts;
}

bool IsConditional(ir::Expr e) {
  return e.Is(ir::ExprKind::kSelect) || e.Is(ir::ExprKind::kAnd) || e.Is(ir::ExprKind::kOr);
}

// Whether the program evaluates every expression in it.
bool IsUnconditional(const ir::Function& function) {
  bool conditional = ir::AnyStmt(function.body, [](ir::Stmt s) {
    return s.Is(ir::StmtKind::kIf) ||
           (s.Is(ir::StmtKind::kFor) &&
            !(s.extent().Is(ir::ExprKind::kIntImm) && s.extent().int_value() > 0));
  });
  ir::ForEachExprIn(function.body,
                    [&](ir::Expr e) { conditional = conditional || IsConditional(e); });
  return !conditional;
}

// The program with a second evaluation of the value of each let.
ir::Stmt EvaluateTwice(ir::Stmt s) {
  const ir::Stmt inner = ir::MapChildren(s, EvaluateTwice);
  if (!s.Is(ir::StmtKind::kLet)) return inner;
  ir::Context& context = s.context();
  return context.LetStmt(context.NewVar("again", s.value().type()), s.value(), inner);
}

// A program that evaluates everything in it does not evaluate more afterwards. Where a loop has no
// iteration or a branch is not taken, the values of lets in front may be evaluated in vain.
TEST(LicmTest, CountsOfRandomPrograms) {
  int unconditional = 0, fewer = 0;
  const uint64_t cases = 2000;
  for (uint64_t seed = 1; seed <= cases; ++seed) {
    const ir::Function before = ir::RandomProgram(
        seed, {.stores = seed % 2 == 0 ? 1 : 4, .expression_depth = 2, .max_iterations = 200});
    ir::Function after = before;
    ASSERT_TRUE(Licm(after, TestTarget(), kEager).ok());
    const int64_t count_before = CountsOf(before, seed).total();
    const int64_t count_after = CountsOf(after, seed).total();
    int64_t lets = 0;
    if (IsUnconditional(before)) {
      ++unconditional;
    } else {
      ir::Function twice = after;
      twice.body = EvaluateTwice(after.body);
      lets = CountsOf(twice, seed).total() - count_after;
    }
    ASSERT_LE(count_after, count_before + lets) << "seed " << seed << "\n"
                                                << ir::Print(before) << ir::Print(after);
    fewer += count_after < count_before;
  }
  EXPECT_GT(unconditional, 20);
  EXPECT_GT(fewer, 200);
}

TEST(LicmTest, RandomPrograms) {
  int changed_programs = 0;
  const int cases = 1000;
  for (uint64_t seed = 1; seed <= cases; ++seed) {
    const ir::Function before = ir::RandomProgram(seed, {.max_iterations = 200});
    ir::Function after = before;
    if (seed % 3 == 0) ASSERT_TRUE(Normalize(after, TestTarget()).ok());
    LicmOptions options = kEager;
    if (seed % 5 == 0) options = {{.max_live = 2, .leave_inner_threads = true}};
    const absl::StatusOr<bool> changed = Licm(after, TestTarget(), options);
    ASSERT_TRUE(changed.ok());
    changed_programs += *changed;
    ASSERT_EQ(CompareMeaningOnRandomArguments(before, after, seed), "")
        << "seed " << seed << "\n"
        << ir::Print(before) << ir::Print(after);
    ir::Function again = after;
    EXPECT_FALSE(*Licm(again, TestTarget(), options)) << "seed " << seed << "\n"
                                                      << ir::Print(after) << ir::Print(again);
  }
  EXPECT_GT(changed_programs, cases / 4);
}

}  // namespace
}  // namespace polynao
