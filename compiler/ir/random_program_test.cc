#include "compiler/ir/random_program.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "compiler/ir/compare.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

constexpr uint64_t kPrograms = 400;

TEST(RandomProgramTest, IsWellFormedAndRoundTripsThroughText) {
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    const Function f = RandomProgram(seed);
    const std::string text = Print(f);
    ASSERT_TRUE(Verify(f).ok()) << Verify(f) << "\n" << text;
    absl::StatusOr<Function> parsed = ParseFunction(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
    ASSERT_TRUE(StructurallyEqual(f, *parsed)) << text << "\n" << Print(*parsed);
  }
}

TEST(RandomProgramTest, Runs) {
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    const Function f = RandomProgram(seed);
    auto interpreter = Interpreter::Create(f, {.max_operations = 20'000'000});
    ASSERT_TRUE(interpreter.ok()) << interpreter.status();
    for (uint64_t input = 0; input < 2; ++input) {
      RandomArguments arguments(f, seed + input * 1000);
      const absl::Status status = (*interpreter)->Run(arguments.arguments());
      ASSERT_TRUE(status.ok()) << status << "\n" << Print(f);
    }
  }
}

// With edges they run on scalars at the ends of their types, and have what the option promises.
TEST(RandomProgramTest, EdgesOnRequest) {
  std::set<Type> variables, to_the_greatest, from_the_least, scalars;
  int allocations = 0, by_minus_one = 0;
  for (uint64_t seed = 0; seed < 3 * kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    const Function f = RandomProgram(seed, {.max_iterations = 1000, .edges = true});
    ASSERT_TRUE(Verify(f).ok()) << Verify(f) << "\n" << Print(f);
    auto interpreter = Interpreter::Create(f, {.max_operations = 20'000'000});
    ASSERT_TRUE(interpreter.ok()) << interpreter.status();
    for (uint64_t input = 0; input < 8; ++input) {
      RandomArguments arguments(f, seed, {.scalars = EdgeScalars(f, seed + input * 1000)});
      const absl::Status status = (*interpreter)->Run(arguments.arguments());
      ASSERT_TRUE(status.ok()) << status << "\n" << Print(f);
    }
    for (const Param& param : f.params) {
      if (param.var && param.name().starts_with("any")) scalars.insert(param.var.type());
    }
    std::set<Var, std::function<bool(Var, Var)>> loops(
        [](Var a, Var b) { return a.id() < b.id(); });
    ForEachStmt(f.body, [&](Stmt s) {
      if (s.Is(StmtKind::kFor)) {
        const Type type = s.var().type();
        variables.insert(type);
        loops.insert(s.var());
        if (s.min().IsInt(LeastInt(type))) from_the_least.insert(type);
        if (s.min().IsConst() && s.extent().IsConst() && s.extent().int_value() > 0 &&
            s.min().int_value() + (s.extent().int_value() - 1) == GreatestInt(type)) {
          to_the_greatest.insert(type);
        }
      } else if (s.Is(StmtKind::kAllocate)) {
        // The guards of indices repeat it (random_run, seed 165009).
        for (Expr extent : s.buffer()->extents) {
          ForEachExpr(extent, [&](Expr e) { EXPECT_FALSE(e.Is(ExprKind::kLoad)) << Print(f); });
        }
        allocations +=
            std::any_of(s.buffer()->extents.begin(), s.buffer()->extents.end(), [&](Expr extent) {
              return std::any_of(loops.begin(), loops.end(),
                                 [&](Var var) { return UsesVar(extent, var); });
            });
      }
      return true;
    });
    ForEachExprIn(f.body,
                  [&](Expr e) { by_minus_one += e.Is(ExprKind::kDiv) && e.operand(1).IsInt(-1); });
  }
  EXPECT_EQ(variables.size(), 7u);
  EXPECT_EQ(from_the_least.size(), 7u);
  EXPECT_EQ(to_the_greatest.size(), 7u);
  EXPECT_EQ(scalars.size(), 7u);
  EXPECT_GT(allocations, 50);
  EXPECT_GT(by_minus_one, 500);
}

TEST(RandomProgramTest, MayStopOnRequest) {
  int stopped = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const Function f = RandomProgram(seed, {.may_stop = true});
    ASSERT_TRUE(Verify(f).ok()) << Verify(f);
    RandomArguments arguments(f, seed);
    stopped += !Interpret(f, arguments.arguments()).ok();
  }
  EXPECT_GT(stopped, 5);
  EXPECT_LT(stopped, 95);
}

// With repetition most programs have an expression of some size twice, and stay well-formed.
TEST(RandomProgramTest, RepeatsExpressionsOnRequest) {
  int repeated = 0;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    const Function f = RandomProgram(seed, {.repetition = 50});
    ASSERT_TRUE(Verify(f).ok()) << Verify(f) << "\n" << Print(f);
    RandomArguments arguments(f, seed);
    const absl::Status status = Interpret(f, arguments.arguments());
    ASSERT_TRUE(status.ok()) << status << "\n" << Print(f);
    std::map<Expr, int, std::function<bool(Expr, Expr)>> users(
        [](Expr a, Expr b) { return a.id() < b.id(); });
    ForEachStmt(f.body, [&](Stmt s) {
      for (Expr root : s.operands()) {
        ForEachExpr(root, [&](Expr e) {
          if (!e.operands().empty()) ++users[e];
        });
      }
      return true;
    });
    repeated +=
        std::any_of(users.begin(), users.end(), [](const auto& user) { return user.second > 1; });
  }
  EXPECT_GT(repeated, static_cast<int>(kPrograms / 2));
}

TEST(RandomProgramTest, SameSeedSameProgram) {
  EXPECT_EQ(Print(RandomProgram(7)), Print(RandomProgram(7)));
  EXPECT_NE(Print(RandomProgram(7)), Print(RandomProgram(8)));
  const Function f = RandomProgram(7);
  const RandomArguments a(f, 3);
  const RandomArguments copy = a;
  ASSERT_EQ(a.tensors().size(), copy.tensors().size());
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    EXPECT_EQ(a.tensors()[i].bytes, copy.tensors()[i].bytes);
    EXPECT_NE(&a.tensors()[i], &copy.tensors()[i]);
  }
}

// A generator that never makes some kind of node would make every differential test blind to it.
TEST(RandomProgramTest, CoversTheLanguage) {
  std::set<ExprKind> exprs;
  std::set<StmtKind> stmts;
  std::set<ForKind> loops;
  std::set<Type> types;
  std::set<std::string> calls;
  std::map<bool, int> stored;  // whether a run changed something
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    const Function f = RandomProgram(seed);
    ForEachStmt(f.body, [&](Stmt s) {
      stmts.insert(s.kind());
      if (s.Is(StmtKind::kFor)) loops.insert(s.for_kind());
      return true;
    });
    ForEachExprIn(f.body, [&](Expr e) {
      exprs.insert(e.kind());
      types.insert(e.type());
      if (e.Is(ExprKind::kCall)) calls.insert(std::string(e.name()));
    });
    const RandomArguments before(f, seed);
    RandomArguments after = before;
    ASSERT_TRUE(Interpret(f, after.arguments()).ok());
    bool changed = false;
    for (size_t i = 0; i < after.tensors().size(); ++i) {
      changed |= after.tensors()[i].bytes != before.tensors()[i].bytes;
    }
    ++stored[changed];
  }
  EXPECT_EQ(exprs.size(), 27u);  // all but Address
  EXPECT_EQ(stmts.size(), 7u);   // all but Evaluate
  EXPECT_EQ(loops.size(), 5u);
  EXPECT_EQ(types.size(), static_cast<size_t>(kTypeCount));
  EXPECT_EQ(calls.size(), PureIntrinsics().size());
  EXPECT_GT(stored[true], stored[false]) << "most programs should do something";
}

TEST(RandomProgramTest, OptionsLeaveThingsOut) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Function f =
        RandomProgram(seed, {.all_types = false, .inexact_intrinsics = false, .loop_kinds = false});
    ForEachStmt(f.body, [&](Stmt s) {
      if (s.Is(StmtKind::kFor)) {
        EXPECT_EQ(s.for_kind(), ForKind::kSerial);
      }
      return true;
    });
    ForEachExprIn(f.body, [&](Expr e) {
      EXPECT_NE(e.type(), Type::kF16);
      if (e.Is(ExprKind::kCall)) {
        EXPECT_NE(e.name(), "exp");
      }
    });
  }
}

// Parallel iterations must not see one another: running them backwards changes nothing.
TEST(RandomProgramTest, ParallelIterationsAreIndependent) {
  class Reverse : public Mutator {
   public:
    using Mutator::Mutate;
    Stmt Mutate(Stmt s) override {
      s = Mutator::Mutate(s);
      if (!s.Is(StmtKind::kFor)) return s;
      if (s.for_kind() != ForKind::kParallel && s.for_kind() != ForKind::kThread) return s;
      Context& c = s.context();
      const Var k = c.NewVar("k", s.var().type());
      const Expr last = s.min() + s.extent() - 1;
      ++reversed;
      return c.For(k, c.Int(k.type(), 0), s.extent(), c.LetStmt(s.var(), last - k, s.body()));
    }
    int reversed = 0;
  };
  int reversed = 0;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    const Function f = RandomProgram(seed);
    Reverse reverse;
    Function backwards = f;
    backwards.body = reverse.Mutate(f.body);
    if (reverse.reversed == 0) continue;
    reversed += reverse.reversed;
    RandomArguments a(f, seed);
    RandomArguments b = a;
    ASSERT_TRUE(Interpret(f, a.arguments()).ok());
    const absl::Status status = Interpret(backwards, b.arguments());
    ASSERT_TRUE(status.ok()) << status << "\n" << Print(backwards);
    for (size_t i = 0; i < a.tensors().size(); ++i) {
      ASSERT_EQ(Compare(a.tensors()[i], b.tensors()[i]).where, -1) << Print(f);
    }
  }
  EXPECT_GT(reversed, 50);
}

TEST(ShrinkProgramTest, KeepsWhatFailsAndDropsTheRest) {
  // "Fails" if it stores the product of two loads anywhere.
  const auto fails = [](const Function& f) {
    bool found = false;
    ForEachExprIn(f.body, [&](Expr e) {
      found |= e.Is(ExprKind::kMul) && e.operand(0).Is(ExprKind::kLoad) &&
               e.operand(1).Is(ExprKind::kLoad);
    });
    return found;
  };
  absl::StatusOr<Function> f = ParseFunction(R"(
      func f(A: f32[8], B: f32[8], n: i32) {
        for (i, 0, n) {
          let k = i * 2
          if (k < 8) {
            A[k] = select(i < 3, (A[i] * B[i] + 1.0) / 3.0, B[0])
            B[i] = A[i] + 1.0
          } else {
            A[0] = 1.0
          }
        }
        allocate T: f32[4] @local
        T[0] = 1.0
        B[1] = T[0]
      })");
  ASSERT_TRUE(f.ok()) << f.status();
  ASSERT_TRUE(fails(*f));
  const Function small = ShrinkProgram(*f, fails);
  EXPECT_TRUE(Verify(small).ok());
  EXPECT_TRUE(fails(small));
  EXPECT_EQ(Print(small.body), "A[0] = A[0] * B[0]\n");
}

TEST(ShrinkProgramTest, StopsAtTheLimitOfCalls) {
  const Function f = RandomProgram(3);
  int calls = 0;
  ShrinkProgram(f, [&](const Function&) { return ++calls % 2 == 0; }, 10);
  EXPECT_LE(calls, 10);
}

}  // namespace
}  // namespace polynao::ir
