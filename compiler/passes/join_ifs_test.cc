#include "compiler/passes/join_ifs.h"

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/text.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/affine_program_for_test.h"
#include "compiler/passes/pass_test_util.h"
#include "compiler/passes/simplify.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using ir::Stmt;
using ir::StmtKind;

std::string Text(const std::string& body) {
  return StrCat("func f(A: i32[64], B: i32[64], n: i32, m: i32) {\n", body, "}\n");
}

void Expect(const std::string& before, const std::string& after) {
  const auto pass = [](ir::Function& f) { return JoinIfs(f, TestTarget()); };
  const std::string once = RunPass(Text(before), pass, TestTarget());
  EXPECT_EQ(once, ir::Print(ParseOrDie(Text(after)))) << before;
  EXPECT_EQ(RunPass(once, pass, TestTarget()), once) << "a second run";
}

void ExpectStays(const std::string& body) { Expect(body, body); }

TEST(JoinIfsTest, Neighbours) {
  Expect("if (n < 3) { A[0] = 1 } if (n < 3) { A[1] = 2 }", "if (n < 3) { A[0] = 1 A[1] = 2 }");
  Expect("if (n < 3) { A[0] = 1 } else { A[0] = 2 } if (n < 3) { A[1] = 3 } else { A[2] = 4 }",
         "if (n < 3) { A[0] = 1 A[1] = 3 } else { A[0] = 2 A[2] = 4 }");
  // Three, in a loop, and one has no else.
  Expect(
      "for (i, 0, 4) { if (i < n) { A[i] = 1 } if (i < n) { A[i + 8] = 2 } else { A[i] = 3 }"
      " if (i < n) { B[i] = 4 } B[i + 8] = 5 }",
      "for (i, 0, 4) { if (i < n) { A[i] = 1 A[i + 8] = 2 B[i] = 4 } else { A[i] = 3 }"
      " B[i + 8] = 5 }");
  // What comes together in a branch is joined, too.
  Expect("if (n < 3) { if (m < 2) { A[0] = 1 } } if (n < 3) { if (m < 2) { A[1] = 2 } }",
         "if (n < 3) { if (m < 2) { A[0] = 1 A[1] = 2 } }");
}

TEST(JoinIfsTest, Stays) {
  ExpectStays("if (n < 3) { A[0] = 1 } if (n < 4) { A[1] = 2 }");
  ExpectStays("if (n < 3) { A[0] = 1 } A[5] = 6 if (n < 3) { A[1] = 2 }");
  // The first one may change what the second one asks about.
  ExpectStays("if (A[3] < 3) { A[n % 64] = 7 } if (A[3] < 3) { B[0] = 1 }");
  ExpectStays("if (A[3] < 3) { B[0] = 7 } else { A[3] = 1 } if (A[3] < 3) { B[1] = 1 }");
}

TEST(JoinIfsTest, ConditionsThatReadWhatStays) {
  Expect("if (A[3] < 3) { B[0] = 7 } if (A[3] < 3) { B[1] = 1 }",
         "if (A[3] < 3) { B[0] = 7 B[1] = 1 }");
}

// Makes work: an if without an else gets a copy of its branch as one, and an if around a sequence
// becomes two.
class MakeWork {
 public:
  explicit MakeWork(uint64_t seed) : random_(seed) {}

  Stmt Of(Stmt s) {
    const Stmt inner = ir::MapChildren(s, [&](Stmt child) { return Of(child); });
    if (!inner.Is(StmtKind::kIf)) return inner;
    ir::Context& c = s.context();
    const Stmt then_case = inner.then_case();
    if (inner.else_case().IsEmpty() && random_() % 2 == 0) {
      return c.If(inner.cond(), then_case, ir::CloneWithFreshBindings(then_case));
    }
    if (!then_case.Is(StmtKind::kSeq)) {
      if (random_() % 2 == 0) return inner;
      // The same twice: the second may find what the first one has stored.
      return c.Seq({inner, ir::CloneWithFreshBindings(inner)});
    }
    const std::vector<Stmt> all(then_case.children().begin(), then_case.children().end());
    const absl::Span<const Stmt> span(all);
    const size_t cut = 1 + random_() % (all.size() - 1);
    return c.Seq({c.If(inner.cond(), c.Seq(span.first(cut)), c.Nop()),
                  c.If(inner.cond(), c.Seq(span.subspan(cut)), inner.else_case())});
  }

 private:
  std::mt19937_64 random_;
};

// Joined and simplified programs mean the same, also where a condition reads memory.
TEST(JoinIfsTest, RandomPrograms) {
  int changed = 0;
  int ran = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ir::Function before =
        RandomAffineProgram(seed, {.symbolic = seed % 2 == 0, .several_buffers = seed % 3 == 0});
    before.body = MakeWork(seed).Of(before.body);
    ir::Function after = before;
    ASSERT_TRUE(Simplify(after).ok());
    const absl::StatusOr<bool> joined = JoinIfs(after, TestTarget());
    ASSERT_TRUE(joined.ok()) << joined.status();
    changed += *joined;
    // A branch that its condition does not guard any more may leave a buffer.
    bool stops = false;
    ASSERT_EQ(CompareMeaningOnRandomArguments(before, after, seed, &stops), "")
        << ir::Print(before) << ir::Print(after);
    ran += !stops;
  }
  EXPECT_GT(changed, 40);
  EXPECT_GT(ran, 100);
}

}  // namespace
}  // namespace polynao
