#include "compiler/passes/simplify.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/arith/random_expr_for_test.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/affine_program_for_test.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ir::Expr;

// The body of `function f(...)` after the pass; checks the flag, the meaning, and that a second run
// changes nothing.
std::string Simplified(const std::string& params, const std::string& body,
                       const std::string& attributes = "") {
  const std::string text = absl::StrCat(attributes, "func f(", params, ") {\n", body, "}\n");
  const ir::Function before = ParseProgram(text);
  ir::Function after = before;
  const absl::StatusOr<bool> changed = Simplify(after);
  EXPECT_TRUE(changed.ok());
  EXPECT_EQ(*changed, before.body != after.body);
  for (int64_t n : {-5, 0, 1, 2, 7, 13})
    EXPECT_EQ(CompareMeaning(before, after, n, /*may_stop=*/n < 0), "") << text;
  ir::Function again = after;
  EXPECT_FALSE(*Simplify(again)) << ir::Print(after) << ir::Print(again);
  std::string printed = ir::Print(after.body);
  return printed;
}

// What `body` prints as when nothing is simplified.
std::string Printed(const std::string& params, const std::string& body) {
  return ir::Print(ParseProgram(absl::StrCat("func f(", params, ") {\n", body, "}\n")).body);
}

struct Case {
  std::string before;
  std::string after;
};

constexpr char kParams[] = "A: f32[64] in, B: f32[64] out, n: i32, x: f32[n]";

// A cell without dimensions is loaded where its let stands, not where the variable is used.
TEST(SimplifyTest, LetsOfCells) {
  const std::string params = "S: i32[], A: i32[1]";
  const std::string body = "let x: i32 = S[] S[] = x + 5 A[0] = x";
  EXPECT_EQ(Simplified(params, body), Printed(params, body));
}

TEST(SimplifyTest, Statements) {
  const std::vector<Case> cases = {
      {"for (i, 0, 4) { if (i < 4) { B[i] = A[i] } }", "for (i, 0, 4) { B[i] = A[i] }"},
      {"for (i, 0, 4) { if (4 <= i) { B[i] = A[i] } else { B[i] = 0.0 } }",
       "for (i, 0, 4) { B[i] = 0.0 }"},
      {"for (i, 0, 0) { B[i] = A[i] } B[1] = 2.0", "B[1] = 2.0"},
      {"for (i, 0, n - n) { B[i] = A[i] } B[1] = 2.0", "B[1] = 2.0"},
      {"for (i, 3, 1) { B[i + 1] = A[i * 4 + 1] }", "B[4] = A[13]"},
      {"for (i, n, 1) { for (j, 0, i) { B[j] = A[i] } }", "for (j, 0, n) { B[j] = A[n] }"},
      {"for (i, 0, 4) { unroll (j, i + 1, 1) { B[j + 1] = A[j] } }",
       "for (i, 0, 4) { B[i + 2] = A[i + 1] }"},
      {"if (n < 3) { if (2 < n) { B[0] = 1.0 } }", ""},
      {"if (n < 3) { if (0 < n) { B[0] = 1.0 } }", "if (n < 3 && 1 <= n) { B[0] = 1.0 }"},
      {"if (n < 3) { if (n < 5) { B[0] = 1.0 } }", "if (n < 3) { B[0] = 1.0 }"},
      {"if (n < 3) { } else { B[0] = 1.0 }", "if (3 <= n) { B[0] = 1.0 }"},
      {"if (n < 3) { for (i, 0, 0) { B[i] = 1.0 } } B[2] = 1.0", "B[2] = 1.0"},
      {"if (n < 3) { B[0] = 1.0 } else { B[0] = 1.0 }", "B[0] = 1.0"},
      {"if (n < 3) { for (i, 0, 4) { B[i] = A[i] } B[9] = 1.0 } else { for (j, 0, 4) { B[j] = A[j] "
       "} "
       "B[9] = 1.0 }",
       "for (i, 0, 4) { B[i] = A[i] } B[9] = 1.0"},
      // What the condition tells makes branches equal.
      {"if (n == 3) { B[n] = 1.0 } else { B[3] = 1.0 }", "B[3] = 1.0"},
      {"if (n < 3) { if (n < 9) { B[0] = 1.0 } } else { B[0] = 1.0 }", "B[0] = 1.0"},
      {"let t = n B[t % 64] = A[t / 64]", "B[n % 64] = A[n / 64]"},
      {"let t = 3 B[t] = A[t + 1]", "B[3] = A[4]"},
      {"let t = n * 2 B[0] = A[0]", "B[0] = A[0]"},
      {"for (i, 0, 8) { let t = i * 2 B[t + 1 - 1] = A[t] }",
       "for (i, 0, 8) { let t = i * 2 B[t] = A[t] }"},
      {"for (f, 0, 60) { B[f / 15 * 15 + f / 3 % 5 * 3 + f % 3] = A[f] }",
       "for (f, 0, 60) { B[f] = A[f] }"},
      {"if (n < 3) { B[0] = select(n < 3, A[0], 0.0) } else { B[1] = select(n < 3, A[0], 0.0) }",
       "if (n < 3) { B[0] = A[0] } else { B[1] = 0.0 }"},
      {"pragma \"mark\" { for (i, 0, 0) { B[i] = 1.0 } } B[0] = 1.0", "B[0] = 1.0"},
      {"for (i, 0, n) { if (0 <= n) { x[i] = 1.0 } }", "for (i, 0, n) { x[i] = 1.0 }"},
      {"if (n != 5) { if (n == 5) { B[0] = 1.0 } else { B[1] = 1.0 } }",
       "if (n != 5) { B[1] = 1.0 }"},
      {"for (i, 0, 64) { B[i] = B[i] } B[1] = 2.0", "B[1] = 2.0"},
      {"for (i, 0, n) { if (i / 5 < 4) { x[i] = 1.0 } }",
       "for (i, 0, n) { if (i < 20) { x[i] = 1.0 } }"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Simplified(kParams, c.before), Printed(kParams, c.after)) << c.before;
  }
}

// Equal branches under a condition that may stop the program, and branches that differ.
TEST(SimplifyTest, BranchesThatStay) {
  for (const char* body : {
           "if (x[n] < 1.0) { B[0] = 1.0 } else { B[0] = 1.0 }",
           "if (5 / n < 1) { B[0] = 1.0 } else { B[0] = 1.0 }",
           "if (n < 3) { for (i, 0, 4) { B[i] = 1.0 } } else { for (i, 0, 5) { B[i] = 1.0 } }",
           "if (n < 3) { B[0] = 0.0 } else { B[0] = -0.0 }",
       }) {
    ir::Function f = ParseProgram(absl::StrCat("func f(", kParams, ") { ", body, " }"));
    EXPECT_FALSE(*Simplify(f)) << ir::Print(f);
  }
}

// Branches that share their parts twice over, 2^100 as trees, are compared in no time.
TEST(SimplifyTest, BranchesWithSharedParts) {
  std::string lets;
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&lets, "let v", i + 1, " = v", i, " + v", i, " ");
  }
  const std::string branch = absl::StrCat("for (i, 0, 4) { let v0 = A[i] ", lets, "B[i] = v100 }");
  ir::Function f = ParseProgram(
      absl::StrCat("func f(", kParams, ") { if (n < 3) { ", branch, " } else { ", branch, " } }"));
  ir::Function shared = f;
  // Lets become one expression.
  const std::function<ir::Stmt(ir::Stmt)> inline_lets = [&](ir::Stmt s) -> ir::Stmt {
    if (s.Is(ir::StmtKind::kLet))
      return inline_lets(ir::Substitute(s.body(), {{s.var(), s.value()}}));
    return ir::MapChildren(s, inline_lets);
  };
  shared.body = inline_lets(f.body);
  EXPECT_TRUE(*Simplify(shared));
  EXPECT_TRUE(shared.body.Is(ir::StmtKind::kFor)) << shared.body.children().size();
}

TEST(SimplifyTest, LeavesAlone) {
  const std::vector<std::string> bodies = {
      "for (i, 0, 4) { if (i < 3) { B[i] = A[i] } }",
      "thread (tid, 1) { B[0] = A[0] }",
      "let t = n / 2 + 1 B[t % 64] = A[t % 64]",
      // The store may change what the condition reads.
      "if (A[0] < 3.0) { B[0] = 1.0 if (A[0] < 3.0) { B[1] = 1.0 } }",
      // A load that may trap stays, even unused.
      "let t: f32 = A[n] B[0] = 1.0",
      "if (n < 3) { B[0] = 1.0 } else { if (n < 5) { B[0] = 2.0 } }",
      // Both branches count.
      "if (n < 3) { if (1 <= n) { B[0] = 1.0 } else { B[0] = 2.0 } }",
      "for (i, 0, 4) { B[i] = A[i] * 1.5 + 0.0 }",
      // The element may not exist, or is another one.
      "B[n] = B[n]",
      "for (i, 0, 63) { B[i] = B[i + 1] }",
      // An extent may be negative, and counts as 0 then.
      "if (n < 0) { B[0] = 1.0 }",
  };
  for (const std::string& body : bodies) {
    EXPECT_EQ(Simplified(kParams, body), Printed(kParams, body));
  }
}

// What a let stands for is used in proofs, and not put back where the variable is: neither what licm
// nor what cse has bound.
TEST(SimplifyTest, LetsAreNotPutBack) {
  EXPECT_EQ(Simplified(kParams,
                       "for (i, 0, 4) { let t = i * 8 for (j, 0, 8) {"
                       " let u = t + j if (u < 32) { B[u] = A[t + j] + A[u + 8] } } }"),
            Printed(kParams,
                    "for (i, 0, 4) { let t = i * 8 for (j, 0, 8) {"
                    " let u = t + j B[u] = A[t + j] + A[u + 8] } }"));
  const std::string body =
      "for (i, 0, 4) { let t = i * 8 let c = n < i && i < n * 2 for (j, 0, 8) {"
      " if (c) { B[t + j] = A[t + j] } } }";
  EXPECT_EQ(Simplified(kParams, body), Printed(kParams, body));
}

TEST(SimplifyTest, UnchangedIsTheSameNode) {
  ir::Function function =
      ParseProgram("func f(A: f32[64] in, B: f32[64] out) { for (i, 0, 64) { B[i] = A[i] } }");
  const ir::Stmt body = function.body;
  EXPECT_FALSE(*Simplify(function));
  EXPECT_EQ(function.body, body);
}

// A buffer of n - 3 elements does not say that 3 <= n.
TEST(SimplifyTest, NegativeExtents) {
  const std::string params = "A: i32[max(n, 3) - 3], B: i32[n - 3], C: i32[1] out, n: i32";
  const std::string body = "if (n < 3) { C[0] = 1 } else { C[0] = 2 }";
  EXPECT_EQ(Simplified(params, body), Printed(params, body));
  // In the loop there is an element.
  EXPECT_EQ(Simplified(params, "for (i, 0, n - 3) { if (4 <= n) { B[i] = 1 } }"),
            Printed(params, "for (i, 0, n - 3) { B[i] = 1 }"));
}

TEST(SimplifyTest, AssertedParameters) {
  EXPECT_EQ(Simplified(kParams, "if (n < 100) { B[0] = 1.0 }", "@assert(n < 16)\n"),
            Printed(kParams, "B[0] = 1.0"));
}

TEST(SimplifyTest, AllocationsSizedByALoopVariableKeepIt) {
  const std::string body = "for (i, n, 1) { allocate T: f32[i + 1] T[0] = A[0] B[0] = T[0] }";
  EXPECT_EQ(Simplified(kParams, body),
            Printed(kParams, "let i = n allocate T: f32[i + 1] T[0] = A[0] B[0] = T[0]"));
}

TEST(SimplifyTest, LinearInProgramSize) {
  // Thousands of statements, each with its own index expressions.
  auto context = std::make_shared<ir::Context>();
  ir::Function function;
  function.name = "f";
  function.context = context;
  const ir::Buffer b = context->NewBuffer("B", ir::Type::kF32, {context->I32(1 << 20)});
  function.params.resize(1);
  function.params[0].buffer = b;
  function.params[0].access = ir::Access::kInOut;
  const ir::Var i = context->NewVar("i"), j = context->NewVar("j");
  std::vector<ir::Stmt> stores;
  for (int k = 0; k < 5000; ++k) {
    stores.push_back(context->Store(b, {(i * 16 + j + k) / 16 * 16 + (i * 16 + j + k) % 16}, b(j)));
  }
  function.body =
      context->For(i, context->I32(0), context->I32(8),
                   context->For(j, context->I32(0), context->I32(16), context->Seq(stores)));
  EXPECT_TRUE(*Simplify(function));
  const ir::Stmt last = function.body.body().body().children().back();
  EXPECT_EQ(ir::Print(last), "B[i * 16 + j + 4999] = B[j]\n");
}

TEST(SimplifyTest, RandomAffinePrograms) {
  int changed_programs = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const bool symbolic = seed % 2 == 0;
    const ir::Function before = RandomAffineProgram(seed, {.symbolic = symbolic});
    ir::Function after = before;
    const absl::StatusOr<bool> changed = Simplify(after);
    ASSERT_TRUE(changed.ok());
    changed_programs += *changed;
    for (int64_t n : {0, 3}) {
      ASSERT_EQ(CompareMeaning(before, after, n), "") << "seed " << seed << "\n"
                                                      << ir::Print(before) << ir::Print(after);
    }
  }
  EXPECT_GT(changed_programs, 200);
}

// Stores, conditions, indices and bounds of i8 and u8, over all values of one variable.
TEST(SimplifyTest, AllValuesOfNarrowTypes) {
  int changed_programs = 0, running = 0;
  const int programs = 400;
  for (uint64_t seed = 1; seed <= programs; ++seed) {
    auto context = std::make_shared<ir::Context>();
    ir::Context& c = *context;
    const ir::Type type = seed % 2 == 0 ? ir::Type::kI8 : ir::Type::kU8;
    const int64_t least = seed % 2 == 0 ? -128 : 0;
    arith::RandomExpr random(c, seed, {type}, /*may_trap=*/false);
    ir::Function before;
    before.name = "f";
    before.context = context;
    const auto buffer = [&](std::string_view name, ir::Type element, int64_t size) {
      ir::Param param;
      param.buffer = c.NewBuffer(name, element, {c.I32(size)});
      param.access = ir::Access::kInOut;
      before.params.push_back(param);
      return param.buffer;
    };
    const ir::Buffer x = buffer("X", type, 256), y = buffer("Y", type, 256);
    const ir::Buffer stored = buffer("S", type, 256), branch = buffer("C", ir::Type::kI32, 256);
    const ir::Buffer indexed = buffer("R", ir::Type::kI32, 256 * 256);
    const ir::Buffer looped = buffer("L", ir::Type::kI32, 256);
    const ir::Var p = c.NewVar("p"), k = c.NewVar("k", type);
    const Expr index = p * 256 + (c.Cast(ir::Type::kI32, random.Int(3)) - c.I32(least));
    const Expr min = random.Int(3), extent = ir::Min(random.Int(3), c.Int(type, 3));
    const Expr sum = looped(p) * 31 + c.Cast(ir::Type::kI32, k);
    const std::vector<ir::Stmt> stmts = {
        c.Store(stored, {p}, random.Int(4)),
        c.If(random.Bool(3), c.Store(branch, {p}, c.I32(1)),
             c.If(random.Bool(2), c.Store(branch, {p}, c.I32(2)), c.Store(branch, {p}, c.I32(3)))),
        c.Store(indexed, {index}, p),
        // A last value beyond the type would stop the program.
        c.If(min < c.Int(type, 100),
             c.For(k, ir::Max(min, c.Int(type, 1)), extent, c.Store(looped, {p}, sum))),
    };
    before.body = c.LetStmt(random.free_vars()[0], x(p),
                            c.LetStmt(random.free_vars()[1], y(p), c.Seq(stmts)));
    before.body = c.For(p, c.I32(0), c.I32(256), before.body);
    ir::Function after = before;
    const absl::StatusOr<bool> changed = Simplify(after);
    ASSERT_TRUE(changed.ok());
    changed_programs += *changed;
    const auto run = [&](const ir::Function& function, std::vector<ir::Tensor>& tensors) {
      std::vector<ir::Argument> arguments;
      for (const ir::Param& param : function.params) {
        tensors.emplace_back(param.buffer->type,
                             std::vector<int64_t>{param.buffer->extents[0].int_value()});
      }
      for (int64_t i = 0; i < 256; ++i) {
        tensors[0].SetInt(i, least + i);
        tensors[1].SetInt(i, least + i * 37 % 256);
      }
      for (ir::Tensor& tensor : tensors) arguments.push_back(ir::Argument::Of(&tensor));
      return ir::Interpret(function, arguments);
    };
    std::vector<ir::Tensor> expected, found;
    const absl::Status ran = run(before, expected);
    if (!ran.ok()) continue;
    ++running;
    ASSERT_TRUE(run(after, found).ok()) << ir::Print(before) << ir::Print(after);
    for (size_t t = 0; t < expected.size(); ++t) {
      for (int64_t i = 0; i < expected[t].element_count(); ++i) {
        ASSERT_EQ(expected[t].Int(i), found[t].Int(i))
            << "seed " << seed << ", " << std::string(before.params[t].name()) << "[" << i << "]\n"
            << ir::Print(before) << ir::Print(after);
      }
    }
  }
  EXPECT_GT(changed_programs, programs * 3 / 4);
  EXPECT_GT(running, programs * 3 / 4);
}

// Every kind of statement, expression and type; half of the programs may stop with an error.
TEST(SimplifyTest, RandomPrograms) {
  int stopped = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const ir::Function before = ir::RandomProgram(
        seed, {.may_stop = seed % 2 == 0, .extern_calls = seed % 4 > 1, .edges = seed % 4 == 1});
    ir::Function after = before;
    ASSERT_TRUE(Simplify(after).ok());
    bool stops = false;
    ASSERT_EQ(CompareMeaningOnRandomArguments(before, after, seed, &stops), "")
        << "seed " << seed << "\n"
        << ir::Print(before) << ir::Print(after);
    stopped += stops;
  }
  // Every second program may stop; most run to their end.
  EXPECT_LT(stopped, 300 / 3);
}

}  // namespace
}  // namespace polynao
