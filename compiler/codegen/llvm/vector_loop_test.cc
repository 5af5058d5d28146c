#include "compiler/codegen/llvm/vector_loop.h"

#include <cctype>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/codegen/codegen_test_util.h"
#include "compiler/codegen/differential.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ir::ForKind;
using ir::Function;
using ir::RandomArguments;
using ir::Stmt;
using ir::StmtKind;

std::string Check(const Function& f, uint64_t seed, const LlvmOptions& options = {}) {
  auto compiled = Compile(f, options);
  if (!compiled.ok()) return std::string(compiled.status().message());
  return Disagreement(f, RandomArguments(f, seed), [&](auto a) { return (*compiled)->Run(a); });
}

// Every loop without another inside is marked for vectors.
class Marker : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Stmt Mutate(Stmt s) override {
    s = Mutator::Mutate(s);
    if (!s.Is(StmtKind::kFor)) return s;
    const bool has_loop = ir::AnyStmt(s.body(), [](Stmt t) { return t.Is(StmtKind::kFor); });
    if (has_loop) return s;
    return s.context().For(s.var(), s.min(), s.extent(), s.body(), ForKind::kVectorize);
  }
};

TEST(VectorLoopTest, EdgeValuesOfAllOperators) {
  for (const char* cpu : {"", "x86-64"}) {
#if !defined(__x86_64__)
    if (*cpu != '\0') continue;
#endif
    for (const SemanticsCase& c : SemanticsCases()) {
      Function f = c.function;
      f.body = Marker().Mutate(f.body);
      auto compiled = Compile(f, {.optimization_level = 2, .cpu = cpu});
      ASSERT_TRUE(compiled.ok()) << compiled.status();
      EXPECT_EQ(Disagreement(
                    f, c.arguments, [&](auto a) { return (*compiled)->Run(a); }, c.max_ulps),
                "")
          << c.name << " on '" << cpu << "'";
    }
  }
}

struct Body {
  std::string name, code;
  bool is_vector = true;  // whether it runs in vectors
};

// Statements of a loop over i, with arrays A, B of 4 N + 8 elements of type T, M of 64 x (N + 1), R, S and L of 4 rows
// of 7, 16 and 27, and I of i32.
const std::vector<Body>& Bodies() {
  static const auto* const bodies = new std::vector<Body>({
      {"copy", "B[i] = A[i]"},
      {"shifted", "B[i + 3] = A[i + 1] + A[i + 2]"},
      {"uniform", "B[i] = A[5] + s"},
      {"number", "B[i] = cast(T, i)"},
      {"steps of two", "B[i] = A[i * 2 + 1] + A[i * 2]"},
      {"steps of three", "B[i] = A[i * 3 + 1]"},
      {"steps of four", "B[i] = A[i * 4 + 2]"},
      {"long steps", "B[i] = A[i * 2] + M[i % 64, 0]"},
      {"columns", "B[i] = M[min(i, 63), i]"},
      {"backwards", "B[N - i] = A[N - i] + A[i64(N) * 2 - i * 2]"},
      {"pairs", "B[i * 2] = A[i] B[i * 2 + 1] = A[i + 1]"},
      {"pairs in the other order", "B[i * 2 + 2] = A[i] let x: T = A[i + 1] B[i * 2 + 1] = x"},
      {"triples", "B[i * 3] = A[i] B[i * 3 + 1] = A[i + 1] B[i * 3 + 2] = s"},
      {"fours", "B[i * 4 + 3] = A[i] B[i * 4] = A[i + 2] B[i * 4 + 2] = s B[i * 4 + 1] = A[i]"},
      {"half of a pair", "B[i * 2] = A[i]"},
      {"twice", "B[i * 2] = A[i] B[i * 2 + 1] = A[i] B[i * 2] = s"},
      {"steps in place", "B[i * 2] = B[i * 2 + 1] + s"},
      {"pairs in place", "B[i * 2] = A[i] B[i * 2 + 1] = B[i * 2] + s"},
      {"in place", "B[i] = B[i] + A[i]"},
      {"by one in front", "B[i + 3] = B[i + 3] * B[2] + A[i]"},
      {"by one behind", "B[i] = B[i] + B[N] * B[N + 1]"},
      {"by a row", "M[5, i] = M[5, i] - M[5, N] * M[4, i + 1]"},
      {"border", "B[i] = select(1 <= i && i < i64(N) - 1, A[i - 1] + A[i + 1], s)"},
      {"border of steps", "B[i] = select(1 <= i, A[i * 2 - 2], s)"},
      {"some", "if (i % 3 == 1) { B[i] = A[i] }"},
      {"some pairs", "if (i % 3 == 1) { B[i * 2] = A[i] B[i * 2 + 1] = s }"},
      {"some, uniform", "if (s < A[0]) { B[i] = A[i] } else { B[i] = s }"},
      {"this or that", "if (A[i] < s) { B[i] = A[i * 2] } else { B[i] = A[5] }"},
      {"nested", "if (i < 9) { if (A[i] < s) { B[i] = A[N - i] } }"},
      {"short and", "B[i] = select(1 <= i && A[i - 1] < A[i], A[i], s)"},
      {"short or", "B[i] = select(i < 1 || A[i - 1] < A[i], A[i], s)"},
      {"uniform choice", "B[i] = select(n < 3, A[i], s)"},
      {"gather", "B[i] = A[min(max(I[i], 0), N)]"},
      {"gather in a matrix", "B[i] = M[min(max(I[i], 0), 63), i]"},
      {"row", "B[i] = R[3, I[i] % 7] + R[n % 4, i % 7]"},
      {"row of a vector", "B[i] = S[3, I[i] % 16] * S[0, 15 - I[i] % 16]"},
      {"row of two vectors", "B[i] = L[3, I[i] % 27] + L[I[0] % 4, (I[i] % 27 + 1) % 27]"},
      {"row, of some", "if (A[i] < s) { B[i] = S[i % 4, I[i] % 16] + S[3, I[i] % 16] }"},
      {"computed row", "B[i] = R[3, I[i] % 7] + (R[2, I[i] % 7] - R[3, I[i] % 7]) * s"},
      {"computed row of two vectors", "B[i] = (L[2, I[i] % 27] - L[3, I[i] % 27]) * s + s"},
      {"rows of three lengths",
       "B[i] = min(L[3, I[i] % 7] * s, max(R[2, I[i] % 7], s) - S[n % 4, I[i] % 7])"},
      {"rows with other numbers", "B[i] = R[3, I[i] % 7] * R[3, i % 7] - s * R[3, I[i] % 7]"},
      {"row that is not there",
       "if (A[i] < s && n % 4 * 100000000 < 4) { B[i] = S[n % 4 * 100000000, I[i] % 16] }"},
      {"row in place", "R[2, 0] = s B[i] = R[2, I[i] % 7]", false},
      {"rows", "B[i] = S[I[i] % 4, I[i] / 4 % 16]"},
      {"let", "let j: i64 = i * 2 let x: T = A[j] B[i] = x + A[j + 1] + x"},
      {"inner loop", "B[i] = s for (k: i64, 0, 5) { B[i] = B[i] + A[i + k] }"},
      {"inner loops of stores", "for (k: i64, 0, 3) { B[i * 2] = A[i + k] B[i * 2 + 1] = A[k] }"},
      {"two arrays", "B[i] = A[i] D[i] = B[i] + s"},
      {"some in front of a loop",
       "B[i * 2] = A[i] if (A[i] < s) { for (k: i64, 0, 2) { D[i] = s } }"},
      {"over some", "if (A[i] < s) { B[i * 2] = s } B[i * 2] = A[i] B[i * 2 + 1] = s"},
      {"some, over others", "B[i * 2] = A[i] if (A[i] < s) { B[i * 2] = s }"},
      {"wide and narrow", "D[i] = A[i] W[i] = i * 3"},
      {"bool", "F[i] = A[i] < s && i % 2 == 0"},
      {"of bools", "F[i] = !F[i] || A[i] < s"},
      {"narrow gather", "D[i] = A[min(max(I[i], 0), 4 * N + 7)]"},
      {"by one of its own", "B[i] = B[i] * B[3]", false},
      {"by the first", "B[i] = B[i] * B[0]", false},
      {"by its own row", "M[5, i] = M[5, i] - M[n % 4 + 4, 0]", false},
      {"recurrence", "B[i + 1] = B[i] + A[i]", false},
      {"overwritten", "B[i] = B[i + 1]", false},
      {"sum", "B[0] = B[0] + A[i]", false},
      {"colliding", "B[i / 2] = A[i]", false},
      {"colliding steps", "B[i * 2] = A[i] B[i * 2 + 2] = s", false},
      {"scatter", "B[min(max(I[i], 0), N)] = A[i]", false},
      {"column", "M[i % 64, 0] = A[i]", false},
      {"inner loop over elements", "for (k: i64, 0, 5) { B[i + k] = A[i] }", false},
      {"division", "W[i] = W[i] / (W[i] * W[i] % 5 + 1)", false},
  });
  return *bodies;
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto is_word = [&](size_t j) {
      return j < text.size() && (std::isalnum(text[j]) != 0 || text[j] == '_');
    };
    const bool is_here = text.compare(i, what.size(), what) == 0 && !is_word(i + what.size()) &&
                         (i == 0 || !is_word(i - 1));
    StrAppend(&result, is_here ? by : std::string(1, text[i]));
    if (is_here) i += what.size() - 1;
  }
  return result;
}

// A function with the loop; `count` < 0: of n iterations, n <= 40.
Function FunctionWith(const std::string& code, const std::string& type, int64_t count) {
  const int64_t n = count < 0 ? 40 : count;
  std::string text = StrCat(
      "func f(A: T[4 * N + 8] in, B: T[4 * N + 8], D: T[4 * N + 8], M: T[64, N + 1], R: T[4, 7], "
      "S: T[4, 16], "
      "L: T[4, 27], I: i32[N + 1] in, W: i64[N + 1], F: i1[N + 1], s: T, n: i64) { ",
      count < 0 ? "vectorize (i: i64, 0, min(n, 40)) { " : "vectorize (i: i64, 0, N) { ", code,
      " } }");
  text = Replaced(Replaced(std::move(text), "T", type), "N", StrCat(n));
  return Parse(text);
}

Stmt LoopOf(const Function& f) {
  Stmt loop;
  ir::ForEachStmt(f.body, [&](Stmt s) {
    if (!loop && s.Is(StmtKind::kFor)) loop = s;
    return !loop;
  });
  return loop;
}

TEST(VectorLoopTest, BodiesAtAllSizes) {
  const auto check = [](const Body& body, const char* type, int64_t n) {
    EXPECT_EQ(Check(FunctionWith(body.code, type, n), static_cast<uint64_t>(n + 2),
                    {.optimization_level = 1,
                     .wide_vectors = n == 16 || n % 4 == 3,
                     .stream_bytes = n % 2 == 0 ? 0 : 1}),
              "")
        << body.name << " of " << type;
  };
  for (const Body& body : Bodies()) {
    for (const int64_t n : {-1, 0, 1, 3, 9, 16, 17, 67}) check(body, "f32", n);
    for (const int64_t n : {-1, 67, 131}) check(body, "u8", n);
    for (const char* type : {"f64", "i16", "i32", "f16", "bf16"}) {
      for (const int64_t n : {37, 39}) check(body, type, n);
    }
  }
}

TEST(VectorLoopTest, BodiesOnOtherCpus) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "SKIPPED: needs an x86-64 machine";
#endif
  for (const Body& body : Bodies()) {
    const auto check = [&](const char* cpu, const char* type) {
      EXPECT_EQ(Check(FunctionWith(body.code, type, 37), 3, {.cpu = cpu}), "")
          << body.name << " " << type << " " << cpu;
    };
    for (const char* cpu : {"x86-64", "haswell"}) {
      for (const char* type : {"f32", "f16", "bf16"}) check(cpu, type);
    }
    for (const char* type : {"f32", "u8"}) check("znver3", type);
  }
}

TEST(VectorLoopTest, FindsThoseWhoseIterationsCanRunSideBySide) {
  for (const Body& body : Bodies()) {
    const Function f = FunctionWith(body.code, "f32", 40);
    arith::Analyzer analyzer(*f.context);
    EXPECT_EQ(FindVectorLoop(LoopOf(f), ir::Aliases(f), analyzer).has_value(), body.is_vector)
        << body.name;
  }
}

TEST(VectorLoopTest, MemoryThatMayBeSharedIsLeftAlone) {
  const Function f = Parse(R"(
      @may_alias("A", "B")
      func f(A: f32[40] in, B: f32[40]) { vectorize (i: i64, 0, 40) { B[i] = A[i] } })");
  arith::Analyzer analyzer(*f.context);
  EXPECT_FALSE(FindVectorLoop(LoopOf(f), ir::Aliases(f), analyzer).has_value());
}

TEST(VectorLoopTest, TheWidestValueCounts) {
  const auto bytes = [](const std::string& code, const char* type) {
    const Function f = FunctionWith(code, type, 40);
    arith::Analyzer analyzer(*f.context);
    const auto loop = FindVectorLoop(LoopOf(f), ir::Aliases(f), analyzer);
    return loop ? loop->bytes : 0;
  };
  EXPECT_EQ(bytes("B[i] = A[i]", "u8"), 1);
  EXPECT_EQ(bytes("B[i] = cast(u8, cast(i32, A[i]) * 3)", "u8"), 4);
  EXPECT_EQ(bytes("B[i] = A[min(max(I[i], 0), 9)]", "i16"), 2);
  EXPECT_EQ(bytes("B[i] = select(i < 3, A[i], s)", "f32"), 4);
  EXPECT_EQ(bytes("W[i] = cast(i64, A[i])", "u8"), 8);
  EXPECT_EQ(bytes("B[i] = A[i]", "bf16"), 2);
  // A let may be a part of indices, or of a value.
  EXPECT_EQ(bytes("let j: i64 = cast(i64, I[i]) + 2 B[i] = A[min(max(j, 0), 9)]", "f32"), 4);
  EXPECT_EQ(bytes("let j: i64 = cast(i64, I[i]) + 2 B[i] = cast(f32, j)", "f32"), 8);
  EXPECT_EQ(bytes("let j: i64 = i * 2 W[i] = j", "u8"), 8);
}

TEST(VectorLoopTest, RunsOfWords) {
  const auto has_word_runs = [](const std::string& code, const char* type) {
    const Function f = FunctionWith(code, type, 40);
    arith::Analyzer analyzer(*f.context);
    return FindVectorLoop(LoopOf(f), ir::Aliases(f), analyzer)->has_word_runs;
  };
  EXPECT_TRUE(has_word_runs("B[i] = A[i + 1] + M[n % 4, i] + A[5]", "f32"));
  EXPECT_FALSE(has_word_runs("B[i] = A[i]", "i16"));
  EXPECT_FALSE(has_word_runs("B[i] = A[i * 2]", "f32"));
  EXPECT_FALSE(has_word_runs("B[i * 2] = A[i]", "f32"));
  EXPECT_FALSE(has_word_runs("B[N - i] = A[i]", "f32"));
  EXPECT_FALSE(has_word_runs("B[i] = M[min(i, 63), i]", "f32"));
  EXPECT_FALSE(has_word_runs("let j: i64 = i * 2 B[i] = A[j]", "f32"));
}

// Indices that differ from lane to lane are computed with 32 bits where these hold all that they can be.
TEST(VectorLoopTest, NarrowIndices) {
  const auto code = [](const char* index) {
    const Function f = FunctionWith(StrCat("B[i] = A[", index, "]"), "f32", 40);
    EXPECT_EQ(Check(f, 1), "") << index;
    return *EmitLlvm({f.context, {f}}, LlvmOutput::kIr);
  };
  const auto multiplies = [&](const char* index, const char* type) {
    const std::string text = code(index);
    const size_t at = text.find(" = mul nsw <");
    return at != std::string::npos && text.substr(at, 40).find(type) != std::string::npos;
  };
  EXPECT_TRUE(multiplies("max(min(cast(i64, I[i]), 9), 0) * 3", "x i32>"));
  EXPECT_TRUE(multiplies("max(min(cast(i64, I[i]) * 3, 9), 0)", "x i64>"));
}

// Loads under a condition: of elements that all lanes have, and of others.
TEST(VectorLoopTest, LoadsUnderAMask) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "SKIPPED: needs an x86-64 machine";
#endif
  const auto function = [](const std::string& load) {
    return Parse(StrCat(R"(
        func f(A: i16[100] in, I: i32[80] in, B: i16[80]) {
          for (t: i64, 0, 5) {
            let first: i64 = t * 16
            vectorize (i: i64, t * 16, 14) { B[i] = select(I[i] < 3, )",
                        load, R"(, i16(7)) }
          }
        })"));
  };
  const auto code = [&](const std::string& load, LlvmOutput output, const char* cpu) {
    const Function f = function(load);
    return *EmitLlvm({f.context, {f}}, output, {.cpu = cpu});
  };
  const auto has_mask = [&](const std::string& load) {
    const std::string text = code(load, LlvmOutput::kIr, "skylake");
    return text.find("@llvm.masked") != std::string::npos;
  };
  for (const char* load : {"A[i - first + 4] + A[i - first]", "A[(i - first) * 3 + 4]", "A[5]"}) {
    EXPECT_FALSE(has_mask(load)) << load;
    EXPECT_EQ(Check(function(load), 1), "") << load;
  }
  EXPECT_TRUE(has_mask("A[i - first - 1]"));
  EXPECT_TRUE(has_mask("A[i + 30]"));
  // A lane that does not run may have an index that overflows.
  EXPECT_TRUE(has_mask("A[max(min(cast(i64, I[i]) * 1000000000000, 9), 0)]"));
  // Machines gather, or load each lane's element.
  const auto gathers = [&](const char* cpu) {
    const std::string text = code("A[max(min(I[i], 9), 0)]", LlvmOutput::kAssembly, cpu);
    return text.find("vpgather") != std::string::npos;
  };
  EXPECT_TRUE(gathers("skylake-avx512"));
  EXPECT_TRUE(gathers("skylake"));
  EXPECT_FALSE(gathers("znver3"));
  const std::string printed = code("A[max(min(I[i], 9), 0)]", LlvmOutput::kIr, "znver3");
  EXPECT_EQ(printed.find("lane_loads"), std::string::npos);
}

// They are computed as floats, which are rounded by an instruction or by operations on integers.
TEST(VectorLoopTest, NarrowFloats) {
  const auto is_vector = [](const std::string& code, const char* type) {
    const Function f = FunctionWith(code, type, 40);
    arith::Analyzer analyzer(*f.context);
    return FindVectorLoop(LoopOf(f), ir::Aliases(f), analyzer).has_value();
  };
  for (const char* type : {"f16", "bf16"}) {
    EXPECT_TRUE(is_vector("B[i] = cast(T, cast(f32, A[i]) * 3.0) + s", type));
    EXPECT_FALSE(is_vector("B[i] = cast(T, cast(f64, A[i]) * 3.0)", type));
    EXPECT_FALSE(is_vector("B[i] = cast(T, I[i])", type));
    EXPECT_FALSE(is_vector("B[i] = fma(A[i], A[i], s)", type));
  }
}

// n * 300 wraps around, and (y + n - m) * 300 does not.
TEST(VectorLoopTest, PartsOfAPlaceMayWrapAround) {
  const Function f = Parse(R"(
      func f(A: f32[4, 300] in, B: f32[4, 300] out, n: i64, m: i64) {
        for (y: i64, 0, 4) { vectorize (x: i64, 0, 300) { B[y, x] = A[y + (n - m), x] * 2.0 } }
      })");
  const auto large = ir::Argument::Int(int64_t{1} << 62);
  const RandomArguments arguments =
      RandomArguments::Draw(f, 1, {.scalars = {{"n", large}, {"m", large}}}).value();
  for (const int level : {0, 2, 3}) {
    const auto compiled = Compile(f, {.optimization_level = level});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    EXPECT_EQ(Disagreement(f, arguments, [&](auto a) { return (*compiled)->Run(a); }), "") << level;
  }
}

// Rows of all lengths and places past the caches, next to others.
TEST(VectorLoopTest, RowsPastTheCaches) {
  for (const char* type : {"f32", "u8", "f64", "f16", "bf16"}) {
    for (const int64_t cols : {1, 15, 16, 31, 64, 65, 130, 200}) {
      const std::string text = Replaced(StrCat(R"(
          func f(A: T[7, N + 3] in, B: T[7, N + 3], P: T[7, 2 * N + 3]) {
            parallel (r: i64, 0, 7) {
              vectorize (i: i64, 0, N) { B[r, i + 2] = A[r, i] + A[r, i + 3] }
              B[r, 0] = A[r, 0]
              vectorize (i: i64, 0, N) { P[r, i * 2 + 1] = A[r, i] P[r, i * 2 + 2] = A[r, i + 1] }
            }
          })"),
                                        "T", type);
      const Function f = Parse(Replaced(text, "N", StrCat(cols)));
      for (const int64_t bytes : {0, 1}) {
        EXPECT_EQ(Check(f, static_cast<uint64_t>(cols), {.threads = 2, .stream_bytes = bytes}), "")
            << type << " " << cols << " " << bytes;
      }
    }
  }
}

// Arrays that are large, have a known size, are never loaded and share no memory.
TEST(VectorLoopTest, WhatGoesPastTheCaches) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "SKIPPED: needs an x86-64 machine";
#endif
  const auto streams = [](const std::string& text) {
    const Function f = Parse(text);
    const std::string code = *EmitLlvm({f.context, {f}}, LlvmOutput::kIr,
                                       {.cpu = "sapphirerapids", .wide_vectors = true});
    const auto has = [&](const char* word) { return code.find(word) != std::string::npos; };
    EXPECT_EQ(has("!nontemporal"), has("call void @llvm.x86.sse.sfence"));
    return has("!nontemporal");
  };
  const std::string loop = "vectorize (i: i64, 0, 2000000) { B[i] = A[i] }";
  EXPECT_TRUE(streams(StrCat("func f(A: f32[2000000] in, B: f32[2000000]) { ", loop, " }")));
  EXPECT_TRUE(
      streams(StrCat("func f(A: f32[2000000] in, B: f32[2, 2000000]) { parallel (j: i64, 0, 2) { ",
                     "vectorize (i: i64, 0, 2000000) { B[j, i] = A[i] } } }")));
  // Four rows of 40 KB that come from the second cache, being the function's own or read before, and one.
  const auto rows = [](const char* value) {
    return StrCat(
        "func f(A: f32[2000, 10000] in, B: f32[2000, 10000]) {\n  allocate T: f32[4, 10000]\n"
        "  for (x: i64, 0, 40000) { T[x / 10000, x % 10000] = 1.0 }\n"
        "  for (y: i64, 0, 1990) { vectorize (x: i64, 0, 9990) { B[y, x] = ",
        value, " } }\n}\n");
  };
  EXPECT_FALSE(streams(rows("T[y % 4, x] + T[(y + 1) % 4, x + 9]")));
  EXPECT_FALSE(streams(rows("A[y, x] + A[y + 1, x] + A[y + 2, x] + A[y + 3, x]")));
  EXPECT_TRUE(streams(rows("T[y % 4, x] + A[y, x]")));
  // 6 KB, of which each of 768 iterations stores two elements.
  EXPECT_TRUE(
      streams("func f(A: f32[768] in, B: f32[2000, 1536]) { vectorize (i: i64, 0, 768) { "
              "B[5, i * 2] = A[i] B[5, i * 2 + 1] = A[i] } }"));
  EXPECT_FALSE(streams(
      "func f(A: f32[200] in, B: f32[200]) { vectorize (i: i64, 0, 200) { B[i] = A[i] } }"));
  EXPECT_FALSE(
      streams(StrCat("func f(A: f32[2000000] in, B: f32[2000000]) { ", loop, " B[0] = B[1] }")));
  EXPECT_FALSE(streams(StrCat(
      "@may_alias(\"A\", \"B\") func f(A: f32[2000000] in, B: f32[2000000]) { ", loop, " }")));
  EXPECT_FALSE(streams(
      "func f(n: i64, A: f32[n] in, B: f32[n]) { vectorize (i: i64, 0, n) { B[i] = A[i] } }"));
}

// Statements put together from pieces.
class RandomBody {
 public:
  explicit RandomBody(uint64_t seed) : random_(seed) {}

  std::string Statements() {
    std::string text;
    for (int64_t k = Pick(3); k >= 0; --k) StrAppend(&text, Statement(2), " ");
    return text;
  }
  int64_t Pick(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

 private:
  std::string Statement(int depth) {
    if (depth > 0) {
      const std::string inner = Statement(depth - 1);
      switch (Pick(7)) {
        case 0:
          return StrCat("if (", Condition(1), ") { ", inner, " }");
        case 1:
          return StrCat("if (", Condition(1), ") { ", inner, " } else { ", Statement(0), " }");
        case 2:
          return StrCat("let x", ++lets_, ": T = ", Value(1), " ", inner, " B[i] = x", lets_);
        case 3:
          return StrCat("for (k", ++lets_, ": i64, 0, ", 1 + Pick(3), ") { ", inner, " ",
                        Statement(0), " }");
        default:
          break;
      }
    }
    const int64_t step = 1 + Pick(4);
    if (Pick(3) == 0) {
      std::string text;
      const int64_t first = Pick(4);
      for (int64_t k = 0; k < step; ++k) {
        StrAppend(&text, "B[i * ", step, " + ", (k + first) % step, "] = ", Value(2), " ");
      }
      return text;
    }
    const char* const array = Pick(3) == 0 ? "D" : "B";
    return StrCat(array, "[i * ", step, " + ", Pick(5), "] = ", Value(3));
  }

  std::string Value(int depth) {
    if (depth == 0 || Pick(4) == 0) {
      switch (Pick(10)) {
        case 0:
          return "s";
        case 8:
        case 9:
          return Row();
        case 1:
          return StrCat("A[", Pick(9), "]");
        case 2:
          return "cast(T, i)";
        case 3:
          return "A[min(max(I[i], 0), 5)]";
        case 4:
          if (Pick(4) == 0) return Pick(2) == 0 ? "B[i * 2]" : "D[i]";
          return "s";
        default:
          return StrCat("A[i * ", 1 + Pick(4), " + ", Pick(6), "]");
      }
    }
    const std::string a = Value(depth - 1), b = Value(depth - 1);
    switch (Pick(8)) {
      case 0:
        return StrCat("select(", Condition(1), ", ", a, ", ", b, ")");
      case 1:
        return StrCat("min(", a, ", ", b, ")");
      case 2:
        return StrCat("max(", a, ", ", b, ")");
      case 3:
        return StrCat("(", a, " * ", b, ")");
      case 4:
        return StrCat("cast(T, cast(", Pick(2) == 0 ? "i64" : "u32", ", ", a, "))");
      case 5:
        return StrCat("(", a, " - ", b, ")");
      default:
        return StrCat("(", a, " + ", b, ")");
    }
  }

  // An element of a short row; often of the same number as others.
  std::string Row() {
    const char* const rows[] = {"R[", "S[", "L["};
    const char* const numbers[] = {", I[i] % 7]", ", I[i] % 7]", ", 6 - i % 7]"};
    return StrCat(rows[Pick(3)], Pick(2) == 0 ? "n % 4" : "3", numbers[Pick(3)]);
  }

  std::string Condition(int depth) {
    if (depth > 0 && Pick(3) == 0) {
      return StrCat("(", Condition(depth - 1), Pick(2) == 0 ? " && " : " || ", Condition(depth - 1),
                    ")");
    }
    switch (Pick(5)) {
      case 0:
        return StrCat("i % ", 2 + Pick(3), " == 1");
      case 1:
        return StrCat("i < ", Pick(40));
      case 2:
        return "n < 3";
      case 3:
        return StrCat(1 + Pick(3), " <= i && A[i - 1] < s");
      default:
        return StrCat("A[i] < ", Value(0));
    }
  }

  std::mt19937_64 random_;
  int lets_ = 0;
};

TEST(VectorLoopTest, RandomBodies) {
  // POLYNAO_RANDOM_CASES=5000 runs more.
  const char* const count = std::getenv("POLYNAO_RANDOM_CASES");
  const int64_t cases = count == nullptr ? 200 : std::atoll(count);
  int64_t vectors = 0;
  for (int64_t seed = 0; seed < cases; ++seed) {
    RandomBody random(static_cast<uint64_t>(seed));
    const std::string body = random.Statements();
    const char* const types[] = {"f32", "f32", "f16", "bf16", "i32", "u8", "i16", "f64"};
    const char* const type = types[random.Pick(8)];
    const int64_t n = random.Pick(5) == 0 ? -1 : random.Pick(70);
    const Function f = FunctionWith(body, type, n);
    arith::Analyzer analyzer(*f.context);
    vectors += FindVectorLoop(LoopOf(f), ir::Aliases(f), analyzer).has_value() ? 1 : 0;
    ASSERT_EQ(Check(f, static_cast<uint64_t>(seed),
                    {.optimization_level = static_cast<int>(seed % 4),
                     .wide_vectors = seed % 3 == 0,
                     .stream_bytes = seed / 4 % 2}),
              "")
        << "seed " << seed << "\n"
        << ir::Print(f);
  }
  EXPECT_GT(vectors, cases / 5);
}

}  // namespace
}  // namespace polynao::codegen
