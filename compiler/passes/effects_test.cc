#include "compiler/passes/effects.h"

#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/ir/instruction_meanings.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

using arith::Mode;

ir::Function Parse(const std::string& text) {
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text, "test.nir");
  POLYNAO_CHECK(function.ok()) << function.status();
  return *std::move(function);
}

// All stores of `function`, in order.
std::vector<ir::Stmt> Stores(const ir::Function& function) {
  std::vector<ir::Stmt> stores;
  ir::ForEachStmt(function.body, [&](ir::Stmt s) {
    if (s.Is(ir::StmtKind::kStore)) stores.push_back(s);
    return true;
  });
  return stores;
}

TEST(EffectsTest, ReadsAndWrites) {
  const ir::Function f = Parse(
      "func f(A: i32[8], B: i32[8], C: i32[8]) {\n"
      "  for (i, 0, A[0]) { B[A[i]] = exp(1.0) < 2.0 ? i : 1 }\n"
      "  C[0] = B[1]\n"
      "}\n");
  Effects effects(f);
  const ir::Stmt loop = f.body.children()[0];
  const ir::Stmt store = f.body.children()[1];
  const ir::Buffer a = f.params[0].buffer, b = f.params[1].buffer, c = f.params[2].buffer;
  const auto has = [&](const BufferSet& set) {
    return StrCat(effects.Contains(set, a) ? "A" : "", effects.Contains(set, b) ? "B" : "",
                  effects.Contains(set, c) ? "C" : "");
  };
  EXPECT_EQ(has(effects.Reads(loop)), "A");
  EXPECT_EQ(has(effects.Writes(loop)), "B");
  EXPECT_EQ(has(effects.Reads(store)), "B");
  EXPECT_EQ(has(effects.Writes(store)), "C");
  EXPECT_EQ(has(effects.Reads(f.body)), "AB");
  EXPECT_EQ(has(effects.Writes(f.body)), "BC");
  EXPECT_TRUE(effects.MayChange(store.value(), loop));
  EXPECT_FALSE(effects.MayChange(store.value(), store));
  EXPECT_TRUE(effects.Conflict(loop, store));
  EXPECT_FALSE(effects.Conflict(store, store.context().Nop()));
}

TEST(EffectsTest, DeclaredAliases) {
  const std::string text =
      "func f(A: i32[8], B: i32[8], C: i32[8], D: i32[8]) { A[0] = B[0] C[0] = B[1] D[0] = B[2] "
      "}\n";
  const auto changed_by = [](const ir::Function& f) {
    Effects effects(f);
    std::string by;
    for (ir::Stmt store : Stores(f)) {
      if (effects.MayChange(store.value(), store)) StrAppend(&by, store.buffer()->name);
    }
    return by;
  };
  EXPECT_EQ(changed_by(Parse(text)), "");
  EXPECT_EQ(changed_by(Parse("@may_alias(\"A\", \"B\") " + text)), "A");
  // A name in two attributes joins them.
  EXPECT_EQ(changed_by(Parse("@may_alias(\"D\", \"A\") @may_alias(\"B\", \"D\") " + text)), "AD");
}

// The declared accesses of one instruction: copies src to dst.
class CopyOnly : public ir::Intrinsics {
 public:
  const ir::Function* FindMeaning(std::string_view name) const override {
    return name == "copy" ? &copy_ : nullptr;
  }

 private:
  const ir::Function copy_ =
      Parse("func copy(dst: i32[4] out, src: i32[4] in) { dst[0] = src[0] }");
};

TEST(EffectsTest, Instructions) {
  const ir::Function f = Parse(
      "func f(A: i32[8], B: i32[8], C: i32[8]) {\n"
      "  copy(&A[0], &B[C[0]])\n"
      "  other(&A[0])\n"
      "  barrier()\n"
      "}\n");
  const CopyOnly copy_only;
  Effects effects(f, &copy_only);
  const auto has = [&](const BufferSet& set) {
    std::string names;
    for (const ir::Param& p : f.params) {
      if (effects.Contains(set, p.buffer)) StrAppend(&names, p.name());
    }
    return names;
  };
  EXPECT_EQ(has(effects.Reads(f.body.children()[0])), "BC");
  EXPECT_EQ(has(effects.Writes(f.body.children()[0])), "A");
  EXPECT_EQ(has(effects.Reads(f.body.children()[1])), "A");
  EXPECT_EQ(has(effects.Writes(f.body.children()[1])), "A");
  EXPECT_EQ(has(effects.Reads(f.body.children()[2])), "ABC");
  EXPECT_EQ(has(effects.Writes(f.body.children()[2])), "ABC");
  EXPECT_FALSE(effects.IsPure(f.body.children()[2].value()));
  // Without its meaning the first one may also write what it reads.
  Effects unknown(f);
  EXPECT_TRUE(unknown.Contains(unknown.Writes(f.body.children()[0]), f.params[1].buffer));
}

TEST(EffectsTest, ExternFunctions) {
  const ir::Function f = Parse(
      "extern pure func p(x: i32) -> i32\n"
      "extern reads func r(A: i32[2] in) -> i32\n"
      "extern reads func clock() -> i32\n"
      "extern writes func w(A: i32[2], B: i32[2] in, C: i32[2] out)\n"
      "extern opaque func o(A: i32[2] in)\n"
      "func f(A: i32[8], B: i32[8], C: i32[8], D: i32[8]) {\n"
      "  D[0] = p(3)\n"
      "  D[0] = r(&A[B[1]])\n"
      "  D[0] = clock()\n"
      "  w(&A[0], &B[0], &C[0])\n"
      "  o(&A[0])\n"
      "}\n");
  Effects effects(f);
  const auto has = [&](const BufferSet& set) {
    std::string names;
    for (const ir::Param& p : f.params) {
      if (effects.Contains(set, p.buffer)) StrAppend(&names, p.name());
    }
    return names;
  };
  const auto s = [&](int i) { return f.body.children()[i]; };
  EXPECT_EQ(has(effects.Loads(s(0).value())), "");
  EXPECT_EQ(has(effects.Loads(s(1).value())), "AB");
  EXPECT_EQ(has(effects.Loads(s(2).value())), "");
  EXPECT_EQ(has(effects.Reads(s(3))), "AB");
  EXPECT_EQ(has(effects.Writes(s(3))), "AC");
  EXPECT_EQ(has(effects.Reads(s(4))), "ABCD");
  EXPECT_EQ(has(effects.Writes(s(4))), "ABCD");
  for (int i : {0, 1, 2}) EXPECT_TRUE(effects.IsPure(s(i).value())) << i;
  for (int i : {3, 4}) EXPECT_FALSE(effects.IsPure(s(i).value())) << i;
  EXPECT_TRUE(effects.NeverTraps(s(0).value(), Mode::kData));
  EXPECT_FALSE(effects.NeverTraps(s(1).value(), Mode::kData));
  // What may change what: a store changes what is read, a call that writes the state outside too.
  EXPECT_FALSE(effects.MayChange(s(0).value(), s(4)));
  EXPECT_TRUE(effects.MayChange(s(1).value(), s(3)));
  EXPECT_TRUE(effects.MayChange(s(2).value(), s(3)));
  EXPECT_FALSE(effects.MayChange(s(2).value(), s(0)));
  EXPECT_TRUE(effects.MayChange(s(2).value(), s(4)));
}

// Each store's value, under the fact 0 <= i < 8, n >= 0, may trap (T) or not (-).
TEST(EffectsTest, MayTrap) {
  const struct {
    const char* value;
    bool as_data;
    bool as_index;
  } cases[] = {
      {"i + 1", false, false},
      {"i * 3 + n", false, true},  // n may be large
      {"n / 2 + n % 3", false, false},
      {"i / n", true, true},
      {"i / (n + 1)", true, true},  // n + 1 may wrap to anything ...
      {"i / (i + 1)", false, false},
      {"n != 0 && i / n < 3 ? 1 : 0", false, false},
      {"i / n < 3 && n != 0 ? 1 : 0", true, true},
      {"n == 0 ? 1 : i / n", false, false},
      {"n == 0 ? i / n : 1", true, true},
      {"(let d = n + 1 in i / d)", true, true},
      {"A[i]", false, false},
      {"A[i + 1]", true, true},
      {"A[n]", true, true},
      {"n < 8 ? A[n] : 0", false, false},
      {"A[n * n - n * n]", true, true},
      {"A[A[i]]", true, true},
      {"L[i]", true, true},  // may never have been stored
      {"i / cast(i32, exp(1.0))", true, true},
      {"cast(i32, exp(2.0))", false, false},
  };
  for (const auto& row : cases) {
    const ir::Function f = Parse(
        StrCat("func f(A: i32[8], n: i32, i: i32) {\n  allocate L: i32[8]\n  A[0] = ", row.value,
               "\n}\n"));
    Effects effects(f);
    arith::Analyzer facts(*f.context);
    facts.BindLoop(f.params[2].var, f.context->I32(0), f.context->I32(8));
    facts.Assume(0 <= f.params[1].var);
    const ir::Expr e = Stores(f)[0].value();
    EXPECT_EQ(effects.MayTrap(e, facts, Mode::kData), row.as_data) << row.value;
    EXPECT_EQ(effects.MayTrap(e, facts, Mode::kIndex), row.as_index) << row.value;
    if (effects.NeverTraps(e, Mode::kData)) EXPECT_FALSE(row.as_data) << row.value;
    if (effects.NeverTraps(e, Mode::kIndex)) EXPECT_FALSE(row.as_index) << row.value;
  }
}

TEST(EffectsTest, NeverTraps) {
  const ir::Function f = Parse(
      "func f(A: i32[8], x: f32, n: i32) { A[0] = n * n A[1] = n / 3 A[2] = n / n A[3] = A[4]\n"
      "  A[5] = cast(i32, x / 0.0) A[6] = n * n < 0 ? 1 : 2 }\n");
  Effects effects(f);
  std::string as_data, as_index;
  for (ir::Stmt store : Stores(f)) {
    as_data += effects.NeverTraps(store.value(), Mode::kData) ? "-" : "T";
    as_index += effects.NeverTraps(store.value(), Mode::kIndex) ? "-" : "T";
  }
  EXPECT_EQ(as_data, "--TT-T");
  EXPECT_EQ(as_index, "T-TT-T");
}

TEST(EffectsTest, StatementsMayTrap) {
  const struct {
    const char* body;
    bool traps;
  } cases[] = {
      {"for (j, 0, 8) { A[j] = j / 2 }", false},
      {"for (j, 0, 9) { A[j] = 1 }", true},
      {"for (j, 0, 9) { if (j < 8) { A[j] = 1 } }", false},
      {"for (j, 0, 9) { if (j < 8) { } else { A[j] = 1 } }", true},
      {"for (j, 0, n) { }", false},
      {"for (j, 7, n) { }", true},  // 7 + n may not fit
      {"let m = 3 A[m] = 8 / m", false},
      {"let m = n A[0] = 8 / m", true},
      {"allocate L: i32[4] L[3] = 1", false},
      {"allocate L: i32[n] ", true},
      {"barrier()", true},
      {"pragma \"p\" { A[0] = 1 A[8] = 2 }", true},
  };
  for (const auto& row : cases) {
    const ir::Function f = Parse(StrCat("func f(A: i32[8], n: i32) {\n", row.body, "\n}\n"));
    Effects effects(f);
    arith::Analyzer facts(*f.context);
    EXPECT_EQ(effects.MayTrap(f.body, facts), row.traps) << row.body;
  }
}

// A sum of 50000 loads has 50000 nested sums; each is looked at once.
TEST(EffectsTest, DeepExpressions) {
  const ir::Function f = Parse("func f(A: i32[8]) { A[0] = A[1] }\n");
  ir::Expr e = Stores(f)[0].value();
  const ir::Expr load = e;
  for (int i = 0; i < 50000; ++i) e = e + load;
  Effects effects(f);
  EXPECT_TRUE(effects.Contains(effects.Loads(e), f.params[0].buffer));
  EXPECT_FALSE(effects.NeverTraps(e, Mode::kData));
}

}  // namespace
}  // namespace polynao
