#include "compiler/ir/text.h"

#include <random>

#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

using ::testing::HasSubstr;

Function MustParse(std::string_view text) {
  absl::StatusOr<Function> f = ParseFunction(text, "test.nir");
  EXPECT_TRUE(f.ok()) << f.status();
  EXPECT_TRUE(Verify(*f).ok()) << Verify(*f);
  return *std::move(f);
}

// Parses, prints, parses again: the second function equals the first, and prints the same.
std::string RoundTrip(std::string_view text) {
  const Function f = MustParse(text);
  const std::string printed = Print(f);
  const Function again = MustParse(printed);
  EXPECT_TRUE(StructurallyEqual(f, again)) << printed;
  EXPECT_EQ(printed, Print(again));
  return printed;
}

std::string ErrorOf(std::string_view text) {
  absl::StatusOr<Function> f = ParseFunction(text, "bad.nir");
  EXPECT_FALSE(f.ok()) << text;
  return std::string(f.status().message());
}

TEST(TextTest, PrintsCanonically) {
  EXPECT_EQ(RoundTrip("func f(A: f32[4, n] in, n: i32, B: f32[4,n] @smem out) {"
                      "for (i, 0, 4) for (j:i32, 0, n) B[i,j] = A[i][j] * 2 + 1.5 }"),
            "func f(A: f32[4, n] in, n: i32, B: f32[4, n] @smem out) {\n"
            "  for (i, 0, 4) {\n"
            "    for (j, 0, n) {\n"
            "      B[i, j] = A[i, j] * 2.0 + 1.5\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST(TextTest, Precedence) {
  const std::string text = RoundTrip(
      "func f(A: i32[64], i: i32, j: i32) {"
      " A[0] = i - (j - 1) A[1] = i - j - 1 A[2] = (i + j) * 2 A[3] = i + j * 2"
      " A[4] = i / (j % 4) A[5] = -3 - -4 A[6] = select(!(i < j) && (i == 1 || j > 2), 1, 0)"
      " A[7] = min(i, 3) + max(j, -1) A[8] = -(i) }");
  EXPECT_THAT(text, HasSubstr("A[0] = i - (j - 1)\n"));
  EXPECT_THAT(text, HasSubstr("A[1] = i - j - 1\n"));
  EXPECT_THAT(text, HasSubstr("A[2] = (i + j) * 2\n"));
  EXPECT_THAT(text, HasSubstr("A[4] = i / (j % 4)\n"));
  EXPECT_THAT(text, HasSubstr("A[5] = -3 - -4\n"));
  EXPECT_THAT(text, HasSubstr("A[6] = select(!(i < j) && (i == 1 || 2 < j), 1, 0)\n"));
  EXPECT_THAT(text, HasSubstr("A[8] = 0 - i\n"));
}

TEST(TextTest, TypesOfLiterals) {
  RoundTrip(
      "func f(A: f16[8], B: i64[8], C: u8[4], D: f64[4], E: i1[2], x: i64) {"
      " A[0] = 1 A[1] = f16(0.1) + f16(0.2) A[2] = A[0] + 0.1 A[3] = cast(f16, 1.5)"
      " B[0] = 1 + 2 B[1] = x * 2 + 1 B[2] = i64(5) / i64(2) B[3] = -9223372036854775808"
      " B[4] = 4294967296 + x B[5] = cast(i64, 3)"
      " C[0] = 255 D[0] = 0.1 D[1] = inf D[2] = -inf D[3] = nan"
      " E[0] = 1.0 < 2.0 E[1] = true == (x < 3) A[4] = select(x < 1, 0.0, A[0])"
      " A[5] = f16(inf) A[6] = select(x < 1, f16(1.0), f16(2.0)) }");
}

TEST(TextTest, Statements) {
  RoundTrip(
      "@doc(\"a \\\"quoted\\\" text\") @opcode(32) @cost(vector.start + n / 2)\n"
      "func f(A: f32[64] in, B: f32[64] out, n: i64) {\n"
      "  thread (tid, 4) { parallel (i: i64, 0, n) { B[i] = A[i] } }\n"
      "  thread (t = \"blockIdx.x\", 1, 3) { vectorize (j, 0, 4) { B[j] = A[t] } }\n"
      "  { let x: i32 = 3 unroll (k, x, 2) { B[k] = 0 } }\n"
      "  allocate L: f16[8, 2] @nmem\n"
      "  pragma \"add.f16\" (1, n) { for (k, 0, 2) { L[k, 0] = f16(1) } }\n"
      "  add.f16(&L[0, 0], &L[1, 0], 64, i32(3), 1.5)\n"
      "  if (n < 3) { B[0] = 1 } else { if (n == 4) { B[1] = (let y: f32 = A[1] in y * y) } }\n"
      "}\n");
}

TEST(TextTest, FirstLine) {
  const Function f = *ParseFunction(
      "func f(A: i32[4], i: i32) {\n"
      "  if (i < 3) {\n    A[0] = i\n    A[1] = 1\n  } else {\n    A[1] = 2\n  }\n"
      "  let j: i32 = i + 1\n"
      "  for (i, 0, j) {\n    A[i] = 3\n  }\n"
      "}\n");
  EXPECT_EQ(PrintFirstLine(f.body), "if (i < 3) {");
  const Stmt let = f.body.children()[1];
  EXPECT_EQ(PrintFirstLine(let), "let j: i32 = i + 1");
  EXPECT_EQ(PrintFirstLine(let.body()), "for (i, 0, j) {");
  EXPECT_EQ(PrintFirstLine(let.body().body()), "A[i] = 3");
  EXPECT_EQ(PrintFirstLine(f.context->Nop()), "");
}

TEST(TextTest, ScopesAndShadowedNames) {
  // The inner x is another variable; printing keeps the two apart.
  const std::string text = RoundTrip(
      "func f(A: i32[4]) { let x = 1 let y = x + 1 A[0] = y"
      " { let x = y A[1] = x } A[2] = x for (x, 0, 2) { A[x] = y } }");
  EXPECT_THAT(text, HasSubstr("let x_1: i32 = y"));
  EXPECT_THAT(text, HasSubstr("A[2] = x\n"));
}

// Listings of the papers, as printed there but for declarations of what they leave undeclared.
TEST(TextTest, ListingVectorAdd) {
  RoundTrip(R"(func add(A: float32[128], B: float32[128], C: float32[128]) {
    for(i.outer: int32, 0, 4){
      for(i.inner: int32, 0, 32) {
        C[(i.outer * 32) + i.inner] =
          A[(i.outer * 32) + i.inner] +
          B[(i.outer * 32) + i.inner] } } })");
}

TEST(TextTest, ListingTiledMatmul) {
  RoundTrip(R"(func matmul(A: float32[1048576], B: float32[1048576], C: float32[1048576]) {
    for (xo, 0, 32) {
      for (yo, 0, 32) {
        for (xi.init, 0, 32) {
          for (yi.init, 0, 32) {
            C[xo*32768+xi.init*1024+yo*32+yi.init] = 0 } }
        for (ko, 0, 32) {
          for (ki, 0, 32) {
            for (xi, 0, 32) {
              for (yi, 0, 32) {
                C[xo*32768+xi*1024+yo*32+yi] =
                  C[xo*32768+xi*1024+yo*32+yi] +
                  A[xo*32768+xi*1024+ko*32+ki] *
                  B[ko*32768+ki*1024+yo*32+yi] } } } } } } })");
}

TEST(TextTest, ListingConditions) {
  const std::string text = RoundTrip(R"(func f(A: int32[64], j: int32) {
    for (i, 0, 64) {
      A[i] = ((((3 < i) && (3 < j)) && (i < 56)) && (j < 56)) ? 1 : 0
      A[i] = ((3 < i) && (3 < j)) ? (((i < 56) && (j < 56)) ? 1 : 0) : 0 } })");
  EXPECT_THAT(text, HasSubstr("A[i] = select(3 < i && 3 < j && i < 56 && j < 56, 1, 0)"));
}

TEST(TextTest, ListingTensorAdd) {
  RoundTrip(R"(func tadd() {
    thread(tid, 4)
    allocate(A, 224)
    allocate(B, 224)
    allocate(C, 224)
    for (i, 0, 4)
      pragma="TADD"
      for (j, 0, 14)
        if (((tid*4) + i) < 14)
          C[(((tid*56)+(i*14))+j)] =
            A[(((tid*56)+(i*14))+j)] +
            B[(((tid*56)+(i*14))+j)]
  })");
}

TEST(TextTest, ListingPartitionedCopy) {
  RoundTrip(R"(func copy(A: float32[56]) {
    thread(tid, 4)
    allocate(AL, 16)
    if (tid<3) {
      pragma = "MEMCPY"
      for (i, 0, 4)
        for (j, 0, 4) {
          AL[(i*4)+j]=A[i*14+(tid*4)+j]
        }
    } else
      pragma = "MEMCPY"
      for (i, 0, 4)
        for (j, 0, 2)
          AL[(i*4)+j]=A[i*14+(tid*4)+j]
  })");
}

TEST(TextTest, ListingCommonSubexpressions) {
  RoundTrip(R"(func main(buffer: int32[64], i1: int32, i2: int32, z3: int32) -> () {
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
  })");
}

TEST(TextTest, ErrorsNamePlaceExpectationAndFinding) {
  EXPECT_EQ(ErrorOf("func f() {\n  A[0] = 1\n}"), "bad.nir:2:3: no buffer is named 'A'");
  EXPECT_EQ(ErrorOf("func f(A: f32[4]) { A[x] = 1 }"), "bad.nir:1:23: nothing here is named 'x'");
  EXPECT_EQ(ErrorOf("func f(A: f32[4]) { A[0 = 1 }"), "bad.nir:1:25: expected ',', found '='");
  EXPECT_EQ(ErrorOf("func f(A: f33[4]) { }"),
            "bad.nir:1:11: expected a type (i1, i8, i16, i32, i64, u8, f16, bf16, f32 or f64), "
            "found 'f33'");
  EXPECT_EQ(ErrorOf("func f(A: f32[4]) { A[0] = 1"),
            "bad.nir:1:29: expected '}', found the end of the text");
  EXPECT_EQ(ErrorOf("func f(A: f32[4, 4]) { A[0] = 1 }"),
            "bad.nir:1:25: A has 2 dimensions, found 1 indices");
  EXPECT_EQ(ErrorOf("func f(A: i8[4]) { A[0] = 300 }"),
            "bad.nir:1:27: the stored value does not fit i8");
  EXPECT_EQ(ErrorOf("func f(A: i8[4], x: i32) { A[0] = x }"),
            "bad.nir:1:35: expected the stored value of i8, found i32");
  EXPECT_EQ(ErrorOf("func f(x: i32, y: i64, A: i64[1]) { A[0] = x + y }"),
            "bad.nir:1:46: '+' of i32 and i64");
  EXPECT_EQ(ErrorOf("func f(x: i32, x: i64) { }"), "bad.nir:1:16: two parameters are named 'x'");
  EXPECT_EQ(ErrorOf("func f() { if (1) { } }"), "bad.nir:1:16: a condition does not fit i1");
  EXPECT_EQ(ErrorOf("func f(x: i32) { for (i: f32, 0, 4) { } }"),
            "bad.nir:1:26: a loop variable is an integer, not f32");
  EXPECT_EQ(ErrorOf("func f(A: f32[2]) { A[0] = exp(1.0, 2.0) }"),
            "bad.nir:1:28: exp takes 1 arguments, found 2");
  EXPECT_EQ(ErrorOf("func for() { }"),
            "bad.nir:1:6: expected the function's name (this word is reserved), found 'for'");
  EXPECT_EQ(ErrorOf("func f() { $ }"), "bad.nir:1:12: a character that means nothing: '$'");
  EXPECT_EQ(ErrorOf("func f() { pragma \"x"), "bad.nir:1:19: a string that no quote ends");
  EXPECT_EQ(ErrorOf("func f(A: i64[1]) { A[0] = 99999999999999999999 }"),
            "bad.nir:1:28: the integer 99999999999999999999 does not fit i64");
  EXPECT_THAT(ErrorOf("func f() { " + std::string(5000, '{')), HasSubstr("nested too deeply"));
  EXPECT_THAT(ErrorOf("func f(A: i32[1]) { A[0] = " + std::string(5000, '(')),
              HasSubstr("nested too deeply"));
}

TEST(TextTest, MutatedTextsNeverCrash) {
  const std::string text =
      "@doc(\"x\") func f(A: f16[4, n] in, B: f32[64] @nmem out, n: i64) {\n"
      "  thread (tid, 4) { allocate L: f32[8] let x: i64 = n * 2 + 1\n"
      "    for (i, 0, 8) { L[i] = select(x < 3 && i != 2, cast(f32, A[i / 2, n]), -1.5e3) }\n"
      "    pragma \"k\" (1) { add.f32(&B[0], &L[0], 64) } if (n > 2) B[1] = exp(L[0]) }\n}";
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string mutated = text;
    for (int edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % mutated.size();
      switch (random() % 4) {
        case 0:
          mutated[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          mutated.erase(at, 1 + random() % 8);
          break;
        case 2:
          mutated.insert(at, text.substr(random() % text.size(), random() % 12));
          break;
        case 3:
          mutated.resize(at + 1);
          break;
      }
      if (mutated.empty()) mutated = " ";
    }
    absl::StatusOr<Module> module = ParseModule(mutated, "m.nir");
    if (!module.ok()) {
      EXPECT_THAT(std::string(module.status().message()), testing::StartsWith("m.nir:"));
      continue;
    }
    ++accepted;
    for (const Function& f : module->functions) {
      if (Verify(f).ok()) RoundTrip(Print(f));
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(VerifyTest, FindsWhatPassesBreak) {
  auto context = std::make_shared<Context>();
  Context& c = *context;
  const Buffer a = c.NewBuffer("A", Type::kI32, {c.I32(4)});
  const Var i = c.NewVar("i");
  const auto function = [&](Stmt body) {
    Function f;
    f.name = "f";
    f.context = context;
    Param param;
    param.buffer = a;
    f.params = {param};
    f.body = body;
    return f;
  };
  const Stmt store = c.Store(a, {i}, i);
  const Stmt loop = c.For(i, c.I32(0), c.I32(4), store);
  EXPECT_TRUE(Verify(function(loop)).ok());
  EXPECT_THAT(std::string(Verify(function(store)).message()),
              HasSubstr("in 'A[i] = i': variable 'i' is used outside its scope"));
  EXPECT_THAT(std::string(Verify(function(c.Seq({loop, loop}))).message()),
              HasSubstr("variable 'i' is bound twice"));
  const Buffer b = c.NewBuffer("B", Type::kI32, {c.I32(4)});
  EXPECT_THAT(std::string(Verify(function(c.Store(b, {c.I32(0)}, c.I32(1)))).message()),
              HasSubstr("buffer 'B' is used outside its scope"));
  EXPECT_THAT(
      std::string(
          Verify(function(c.Seq({c.Allocate(b, c.Nop()), c.Allocate(b, c.Nop())}))).message()),
      HasSubstr("buffer 'B' is bound twice"));
  const Var t = c.NewVar("t");
  const Var u = c.NewVar("u");
  EXPECT_THAT(std::string(Verify(function(c.For(
                                     t, c.I32(0), c.I32(2),
                                     c.For(u, c.I32(0), c.I32(2), c.Nop(), ForKind::kThread, "tid"),
                                     ForKind::kThread, "tid")))
                              .message()),
              HasSubstr("thread axis 'tid' inside itself"));
  const Var v = c.NewVar("v");
  const Var w = c.NewVar("w");
  EXPECT_TRUE(
      Verify(function(c.For(v, c.I32(0), c.I32(2),
                            c.For(w, c.I32(0), c.I32(2), c.Nop(), ForKind::kThread, "threadIdx.x"),
                            ForKind::kThread, "threadIdx.x")))
          .ok());
  EXPECT_THAT(std::string(Verify(function(c.Evaluate(c.I32(1)))).message()),
              HasSubstr("a statement without an effect"));
}

TEST(VisitTest, CloneRenewsBindingsAndKeepsTheMeaningOfNames) {
  const Function f = MustParse(
      "func f(A: i32[8]) { for (i, 0, 8) { let x = i * 2 A[i] = (let y: i32 = x in y + y) } }");
  Context& c = *f.context;
  Function twice = f;
  twice.body = c.Seq({f.body, CloneWithFreshBindings(f.body)});
  EXPECT_TRUE(Verify(twice).ok()) << Verify(twice);
  Function clone = CloneInto(f, std::make_shared<Context>());
  EXPECT_TRUE(Verify(clone).ok());
  EXPECT_TRUE(StructurallyEqual(f, clone));
  const Function other = MustParse(
      "func f(A: i32[8]) { for (i, 0, 8) { let x = i * 2 A[i] = (let y: i32 = x in y + x) } }");
  EXPECT_FALSE(StructurallyEqual(f, other));
}

TEST(VisitTest, MapChildren) {
  const Function f = *ParseFunction(
      "func f(A: i32[4]) {\n  for (i, 0, 4) {\n    A[i] = 1\n    A[0] = 2\n  }\n}\n");
  EXPECT_EQ(MapChildren(f.body, [](Stmt s) { return s; }), f.body);
  const auto second = [](Stmt s) { return s.children()[1]; };
  EXPECT_EQ(Print(MapChildren(f.body, second)), "for (i, 0, 4) {\n  A[0] = 2\n}\n");
}

TEST(VisitTest, AnyStmt) {
  const Function f = *ParseFunction(
      "func f(A: i32[4]) {\n  if (A[0] < 3) {\n    A[1] = 1\n  } else {\n    A[2] = 2\n  }\n}\n");
  int asked = 0;
  const auto stores = [&](int64_t index) {
    asked = 0;
    return AnyStmt(f.body, [&](Stmt s) {
      ++asked;
      return s.Is(StmtKind::kStore) && s.indices()[0].IsInt(index);
    });
  };
  EXPECT_TRUE(stores(1));
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(stores(2));
  EXPECT_FALSE(stores(3));
  EXPECT_EQ(asked, 3);
}

TEST(VisitTest, UnchangedTreesComeBackAsTheSameNode) {
  const Function f = MustParse("func f(A: i32[8]) { for (i, 0, 8) { A[i] = i + 1 } }");
  Mutator mutator;
  EXPECT_EQ(mutator.Mutate(f.body), f.body);
  const Var unused = f.context->NewVar("unused");
  EXPECT_EQ(Substitute(f.body, {{unused, f.context->I32(1)}}), f.body);
}

}  // namespace
}  // namespace polynao::ir
