#include "compiler/ir/text.h"

#include <cmath>

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
            "bad.nir:1:11: expected a type (i1, i8, i16, i32, i64, u8, f16, bf16, f32, f64, u16, "
            "u32 or u64), found 'f33'");
  EXPECT_EQ(ErrorOf("func f(A: f32[4]) { A[0] = 1"),
            "bad.nir:1:29: expected '}', found the end of the text");
  EXPECT_EQ(ErrorOf("func f(A: f32[4, 4]) { A[0] = 1 }"),
            "bad.nir:1:25: A has 2 dimensions, found 1 indices");
  EXPECT_EQ(ErrorOf("func f(A: i8[4]) { A[0] = 300 }"),
            "bad.nir:1:27: 300 does not fit i8, the type of the stored value");
  EXPECT_EQ(ErrorOf("func f(A: i8[4], x: i32) { A[0] = x }"),
            "bad.nir:1:35: expected the stored value of i8, found i32");
  EXPECT_EQ(ErrorOf("func f(x: i32, y: i64, A: i64[1]) { A[0] = x + y }"),
            "bad.nir:1:46: '+' of i32 and i64");
  EXPECT_EQ(ErrorOf("@may_alias(\"A\", \"C\") func f(A: f32[4], B: f32[4]) { }"),
            "bad.nir:1:17: @may_alias: no buffer is named 'C'");
  EXPECT_EQ(ErrorOf("@assert(0 < n, 0 < m) func f(A: f32[n], n: i32) { }"),
            "bad.nir:1:2: @assert: no scalar parameter is named 'm'");
  EXPECT_EQ(ErrorOf("func f(x: i32, x: i64) { }"), "bad.nir:1:16: two parameters are named 'x'");
  EXPECT_EQ(ErrorOf("func f() { if (1) { } }"),
            "bad.nir:1:16: 1 is no i1, the type of a condition");
  EXPECT_EQ(ErrorOf("func f(x: i32) { for (i: f32, 0, 4) { } }"),
            "bad.nir:1:26: a loop variable has an integer type that fits in i64, not f32");
  EXPECT_EQ(ErrorOf("func f(A: f32[2]) { A[0] = exp(1.0, 2.0) }"),
            "bad.nir:1:28: exp takes 1 arguments, found 2");
  EXPECT_EQ(ErrorOf("func for() { }"),
            "bad.nir:1:6: expected the function's name (this word is reserved), found 'for'");
  EXPECT_EQ(ErrorOf("func f() { $ }"), "bad.nir:1:12: a character that means nothing: '$'");
  EXPECT_EQ(ErrorOf("func f() { pragma \"x"), "bad.nir:1:19: a string that no quote ends");
  EXPECT_EQ(ErrorOf("func f(A: i64[1]) { A[0] = 99999999999999999999 }"),
            "bad.nir:1:28: no integer type holds 99999999999999999999");
  EXPECT_THAT(ErrorOf("func f() { " + std::string(5000, '{')), HasSubstr("nested too deeply"));
  EXPECT_THAT(ErrorOf("func f(A: i32[1]) { A[0] = " + std::string(5000, '(')),
              HasSubstr("nested too deeply"));
}

TEST(TextTest, LiteralsThatDoNotFit) {
  EXPECT_EQ(ErrorOf("func f(A: i8[4], n: i8) { A[0] = n + 200 }"),
            "bad.nir:1:38: 200 does not fit i8, the type of the other operand of '+'");
  EXPECT_EQ(ErrorOf("func f(A: i8[4], n: i8) { A[0] = 200 + n }"),
            "bad.nir:1:34: 200 does not fit i8, the type of the other operand of '+'");
  EXPECT_EQ(ErrorOf("func f(A: i8[4], n: i8) { A[0] = n * (1 + 2 * 300) }"),
            "bad.nir:1:38: 300 does not fit i8, the type of the other operand of '*'");
  EXPECT_EQ(ErrorOf("func f(A: i8[4], n: i8) { A[0] = max(n, 2.5) }"),
            "bad.nir:1:41: 2.5 is no i8, the type of the other operand of 'max'");
  EXPECT_EQ(ErrorOf("func f(A: u8[4], n: u8) { if (n < -1) A[0] = 0 }"),
            "bad.nir:1:35: -1 does not fit u8, the type of the other operand of '<'");
  EXPECT_EQ(ErrorOf("func f(A: u8[4]) { A[0] = u8(256) }"),
            "bad.nir:1:30: 256 does not fit u8, the type of this literal");
  EXPECT_EQ(ErrorOf("func f(A: f32[4], x: f32) { A[0] = x + 5 % 3 }"),
            "bad.nir:1:40: an operator of integers where f32 is the type of the other operand of "
            "'+'");
  EXPECT_EQ(ErrorOf("func f(A: i64[4], n: i64) { A[0] = n + 9223372036854775808 }"),
            "bad.nir:1:40: 9223372036854775808 does not fit i64, the type of the other operand of "
            "'+'");
  EXPECT_EQ(ErrorOf("func f(A: i64[4]) { A[0] = -9223372036854775809 }"),
            "bad.nir:1:29: no integer type holds -9223372036854775809");
}

TEST(TextTest, UnknownFunctions) {
  EXPECT_THAT(ErrorOf("func f(A: f32[4]) { A[0] = 1 + foo(A[1]) }"),
              testing::StartsWith("bad.nir:1:32: no function is named 'foo': expected one of exp, "
                                  "log, sqrt, "));
  EXPECT_THAT(ErrorOf("func f(A: f32[4]) { A[0] = add.f32(&A[0], 4) }"),
              HasSubstr("(an instruction is called as a statement of its own)"));
}

TEST(TextTest, OperatorsOnBits) {
  const std::string text = RoundTrip(
      "func f(A: u32[64], x: u32, y: u32, n: i32) {"
      " A[0] = x & y | x ^ y A[1] = x & (y | x) A[2] = (x | y) & x << y + 1 A[3] = (x << 2) + 1"
      " A[4] = ~x & ~(x + y) A[5] = x >> 1 >> 2 A[6] = x >> (1 >> y)"
      " if ((x & 3) == 1 && n & 1 < 2) A[n & 63] = ~5 A[7] = cast(u32, n >> 3) ^ 4294967295"
      " A[8] = ~u32(7) << x A[9] = (~u32(7) | 3) & (1 << 31) }");
  EXPECT_THAT(text, HasSubstr("A[0] = x & y | x ^ y\n"));
  EXPECT_THAT(text, HasSubstr("A[1] = x & (y | x)\n"));
  EXPECT_THAT(text, HasSubstr("A[2] = (x | y) & x << y + 1\n"));
  EXPECT_THAT(text, HasSubstr("A[3] = (x << 2) + 1\n"));
  EXPECT_THAT(text, HasSubstr("A[4] = ~x & ~(x + y)\n"));
  EXPECT_THAT(text, HasSubstr("A[5] = x >> 1 >> 2\n"));
  EXPECT_THAT(text, HasSubstr("A[6] = x >> (1 >> y)\n"));
  EXPECT_THAT(text, HasSubstr("if (x & 3 == 1 && n & 1 < 2) {"));
  EXPECT_THAT(text, HasSubstr("A[n & 63] = ~5\n"));
  EXPECT_THAT(text, HasSubstr("A[7] = ~cast(u32, n >> 3)\n"));
  EXPECT_EQ(ErrorOf("func f(A: f32[4], x: f32) { A[0] = x & x }"), "bad.nir:1:38: '&' of floats");
  EXPECT_EQ(ErrorOf("func f(A: f32[4], x: f32) { A[0] = ~x }"), "bad.nir:1:36: '~' of f32");
  EXPECT_EQ(ErrorOf("func f(A: i1[4], p: i1) { A[0] = p | p }"), "bad.nir:1:36: '|' of conditions");
  EXPECT_EQ(ErrorOf("func f(A: i1[4], p: i1) { A[0] = ~p }"), "bad.nir:1:34: '~' of i1");
}

TEST(TextTest, UnsignedTypes) {
  const std::string text = RoundTrip(
      "func f(A: u16[4], B: u32[n], C: u64[4], n: u32, x: u64) {"
      " for (i: u32, 0, n) B[i] = i * 4294967295 A[0] = 65535 C[0] = 18446744073709551615"
      " C[1] = x % 9223372036854775808 C[2] = select(x < u64(3), u64(9223372036854775808), x)"
      " C[3] = cast(u64, -1) let y = 18446744073709551615 }");
  EXPECT_THAT(text, HasSubstr("C[0] = 18446744073709551615\n"));
  EXPECT_THAT(text, HasSubstr("C[1] = x % 9223372036854775808\n"));
  EXPECT_THAT(text, HasSubstr("let y: u64 = 18446744073709551615\n"));
  EXPECT_EQ(ErrorOf("func f(A: u64[4], x: u64) { A[x] = 1 }"),
            "bad.nir:1:31: an index has a type that fits in i64, not u64");
  EXPECT_EQ(ErrorOf("func f(x: u64, A: f32[x]) { }"),
            "bad.nir:1:23: an index has a type that fits in i64, not u64");
  EXPECT_EQ(ErrorOf("func f(A: u64[4]) { for (i: u64, 0, 4) A[0] = i }"),
            "bad.nir:1:29: a loop variable has an integer type that fits in i64, not u64");
}

// `count` lets, each in the scope of those before it.
std::string Lets(int count) {
  std::string text = "func f(A: i32[2]) {\n";
  for (int i = 0; i < count; ++i) {
    text += "let x" + std::to_string(i) + ": i32 = ";
    text += i == 0 ? "A[1]\n" : "x" + std::to_string(i - 1) + " + 1\n";
  }
  return text + "A[0] = x" + std::to_string(count - 1) + "\n}\n";
}

TEST(TextTest, LongRunsOfLetsAndLongChains) {
  RoundTrip(Lets(5000));
  EXPECT_EQ(ErrorOf(Lets(5001)),
            "bad.nir:5002:1: more than 5000 lets and allocations in one another");
  std::string sum = "func f(A: i32[2]) { A[0] = A[1]";
  for (int i = 0; i < 5000; ++i) sum += " + A[1]";
  EXPECT_THAT(ErrorOf(sum + " + A[1] }"), HasSubstr("an expression of more than 5000 levels"));
  std::string parentheses(395, '(');
  RoundTrip("func f(A: i32[2]) { A[0] = " + parentheses + "A[1]" + std::string(395, ')') + " }");
}

TEST(TextTest, LetsReachToTheEndOfTheirBlock) {
  const std::string text = RoundTrip(
      "func f(A: i32[4]) { A[0] = 1 let x = A[0] A[1] = x if (x < 2) let y = x A[2] = y"
      " allocate L: i32[2] L[0] = x; let z = L[0] { let w = z A[3] = w } A[3] = z }");
  EXPECT_THAT(text, HasSubstr("  if (x < 2) {\n    let y: i32 = x\n    A[2] = y\n    allocate L"));
}

TEST(TextTest, NansAreOne) {
  Context c;
  EXPECT_EQ(c.Float(Type::kF32, -std::nan("")), c.Float(Type::kF32, std::nan("7")));
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

TEST(VisitTest, ExtentsOfAllocationsAreSubstituted) {
  const Function f = MustParse(R"(
func f(A: i32[n], n: i32) {
  allocate t: i32[n + 1]
  t[n] = 3
  A[0] = t[n]
}
)");
  const Var n = f.params[1].var;
  const Stmt five = Substitute(f.body, {{n, f.context->I32(5)}});
  EXPECT_EQ(Print(five), "allocate t: i32[5 + 1]\nt[5] = 3\nA[0] = t[5]\n");
  EXPECT_EQ(f.body.buffer()->extents[0], n + 1);
}

// A pass may remove the allocation that an attribute names; the text is read again all the same.
TEST(Print, NoNamesOfBuffersThatAreGone) {
  absl::StatusOr<Function> f = ParseFunction(
      "@may_alias(\"A\", \"L\") @may_alias(\"L\") func f(A: f32[4]) { allocate L: f32[4] { L[0] = "
      "1.0 } }");
  ASSERT_TRUE(f.ok()) << f.status();
  EXPECT_EQ(Print(*f).substr(0, 31), "@may_alias(\"A\", \"L\")\n@may_alias");
  f->body = f->context->Seq(std::vector<Stmt>{});
  EXPECT_EQ(Print(*f).substr(0, 22), "@may_alias(\"A\")\nfunc f");
  EXPECT_TRUE(ParseFunction(Print(*f)).ok());
}

}  // namespace
}  // namespace polynao::ir
