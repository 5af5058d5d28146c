#include "compiler/codegen/llvm/compile.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/codegen/codegen_test_util.h"
#include "compiler/codegen/differential.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ir::Argument;
using ir::RandomArguments;
using ir::Tensor;
using ir::Type;
using ::testing::HasSubstr;
using ::testing::Not;

// Compiles `f` and compares it with the interpreter.
std::string Check(const ir::Function& f, const RandomArguments& arguments,
                  const LlvmOptions& options = {}, int64_t max_ulps = 0) {
  auto compiled = Compile(f, options);
  if (!compiled.ok()) return std::string(compiled.status().message());
  return Disagreement(f, arguments, [&](auto a) { return (*compiled)->Run(a); }, max_ulps);
}

TEST(LlvmTest, EdgeValuesOfAllOperators) {
  for (int level : {0, 3}) {
    for (const SemanticsCase& c : SemanticsCases()) {
      EXPECT_EQ(Check(c.function, c.arguments, {.optimization_level = level}, c.max_ulps), "")
          << c.name << " at -O" << level;
    }
  }
}

// A CPU without AVX, and so without conversions of f16 and with other vectors.
TEST(LlvmTest, EdgeValuesOnAnOldCpu) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "SKIPPED: needs an x86-64 machine";
#endif
  for (const SemanticsCase& c : SemanticsCases()) {
    EXPECT_EQ(
        Check(c.function, c.arguments, {.optimization_level = 2, .cpu = "x86-64"}, c.max_ulps), "")
        << c.name;
  }
}

TEST(LlvmTest, RandomProgramsAgreeWithTheInterpreter) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const LlvmOptions options{.optimization_level = static_cast<int>(seed % 4),
                              .checks = seed % 5 == 0,
                              .threads = static_cast<int>(seed % 3)};
    const auto compile = [&](const ir::Function& f) -> absl::StatusOr<Runner> {
      auto compiled = Compile(f, options);
      if (!compiled.ok()) return compiled.status();
      return [code = std::shared_ptr(*std::move(compiled))](auto a) { return code->Run(a); };
    };
    ASSERT_EQ(
        DisagreementOnRandomProgram(
            seed,
            {.inexact_intrinsics = false, .extern_calls = seed % 3 == 0, .edges = seed % 2 != 0},
            compile),
        "");
  }
}

// Where the interpreter stops for an index or a divisor, checked code stops too.
TEST(LlvmTest, ChecksStopProgramsThatTheInterpreterStops) {
  int stopped = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const ir::Function f = ir::RandomProgram(seed, {.inexact_intrinsics = false, .may_stop = true});
    RandomArguments expected(f, seed);
    const absl::Status status = ir::Interpret(f, expected.arguments());
    // Only the interpreter knows which elements were stored.
    if (!status.ok() && status.message().find("before it is stored") != absl::string_view::npos) {
      continue;
    }
    auto compiled = Compile(f, {.optimization_level = 1, .checks = true});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    RandomArguments actual(f, seed);
    const absl::Status ran = (*compiled)->Run(actual.arguments());
    ASSERT_EQ(ran.ok(), status.ok())
        << "seed " << seed << ": compiled " << ran << ", interpreter " << status << "\n"
        << ir::Print(f);
    stopped += !ran.ok();
  }
  EXPECT_GT(stopped, 5);
}

TEST(LlvmTest, ChecksNameWhatFailed) {
  const ir::Function f = Parse(R"(
      func f(A: i32[4], n: i32, d: i32) {
        allocate T: i32[10000]
        parallel (i, 0, n) {
          T[i] = 7 / d
          A[i] = T[i]
        }
      })");
  auto compiled = Compile(f, {.checks = true, .threads = 2});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Tensor a(Type::kI32, {4});
  const auto run = [&](int64_t n, int64_t d) {
    return (*compiled)->Run({Argument::Of(&a), Argument::Int(n), Argument::Int(d)});
  };
  EXPECT_TRUE(run(4, 2).ok());
  EXPECT_EQ(a.Int(3), 3);
  EXPECT_THAT(std::string(run(5, 2).message()),
              HasSubstr("f: index 0 of 'A' is out of its extent"));
  EXPECT_THAT(std::string(run(4, 0).message()), HasSubstr("f: division by zero"));
  EXPECT_TRUE(run(0, 0).ok());
}

TEST(LlvmTest, ParallelLoops) {
  const ir::Function f = Parse(R"(
      func f(A: f32[37, n] in, B: f32[37, n] out, n: i32, s: f32) {
        allocate scale: f32[]
        scale[] = s * 2.0
        parallel (i, 0, 37) {
          allocate row: f32[n] @local
          parallel (j, 0, n) {
            row[j] = A[i, n - 1 - j] * scale[]
          }
          vectorize (j, 0, n) {
            B[i, j] = row[j] + 1.0
          }
        }
      })");
  for (int threads : {0, 1, 2, 5}) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      EXPECT_EQ(Check(f, RandomArguments(f, seed), {.threads = threads}), "")
          << threads << " threads, seed " << seed;
    }
  }
}

// Bodies of parallel loops, an extern function that they call, and a check in one of them.
TEST(LlvmTest, LongFunctionsAreCompiledInParts) {
  std::string text =
      "extern pure func twice(x: f32) -> f32 = x * 2.0\n"
      "func f(A: f32[64] in, B: f32[5, 64], n: i32) {\n";
  for (int loop = 0; loop < 5; ++loop) {
    StrAppend(&text, "  parallel (i, 0, 64) {\n");
    for (int k = 0; k < 40; ++k) {
      StrAppend(&text, "    B[", loop, ", i] = B[", loop, ", i] * 3.0 + twice(A[(i + ",
                k * 5 + loop, ") % 64])\n");
    }
    StrAppend(&text, "    B[", loop, ", i + n] = 1.0\n  }\n");
  }
  const ir::Function f = Parse(text + "}\n");
  for (const int threads : {1, 2, 3, 16}) {
    const LlvmOptions options{
        .optimization_level = 1, .checks = true, .threads = 1, .compile_threads = threads};
    auto compiled = Compile(f, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    Tensor a(Type::kF32, {64}), b(Type::kF32, {5, 64}), expected(Type::kF32, {5, 64});
    for (int i = 0; i < 64; ++i) a.SetValue(i, i);
    ASSERT_TRUE(
        ir::Interpret(f, {Argument::Of(&a), Argument::Of(&expected), Argument::Int(0)}).ok());
    ASSERT_TRUE((*compiled)->Run({Argument::Of(&a), Argument::Of(&b), Argument::Int(0)}).ok());
    for (int i = 0; i < 5 * 64; ++i) EXPECT_EQ(b.Value(i), expected.Value(i)) << i;
    EXPECT_THAT(
        std::string(
            (*compiled)->Run({Argument::Of(&a), Argument::Of(&b), Argument::Int(1)}).message()),
        HasSubstr("f: index 1 of 'B' is out of its extent"));
  }
}

TEST(LlvmTest, TheSameCodeEachTime) {
  const std::string text = R"(
      func f(A: f32[n] in, B: f32[n], C: f32[n], n: i32, s: f32, t: i64) {
        allocate scale: f32[]
        scale[] = s * 2.0
        let u: i64 = t + 1
        parallel (i, 0, n) {
          let v: i64 = t + cast(i64, i)
          B[i] = A[i] * scale[] + cast(f32, u * v)
          parallel (j, 0, n) { C[j] = A[j] + cast(f32, u) * s }
        }
      })";
  std::string first;
  for (int k = 0; k < 5; ++k) {
    const ir::Function f = Parse(text);
    const std::string code = *EmitLlvm({f.context, {f}}, LlvmOutput::kIr);
    if (k == 0) first = code;
    EXPECT_EQ(code, first);
  }
}

// Found by random_run --schedules, seed 13646: that the index moves by -1 follows from one term of each bound of the
// loop.
TEST(LlvmTest, IndicesThatMoveWithinTermsOfTheirLoopsBounds) {
  const std::string text =
      "func f(n: i64, P: i32[48]) {\n"
      "  vectorize (i: i64, max(n, 2), min(n + 20, 900) - max(n, 2) + 1) {\n"
      "    P[(n + 45 - i) % 48] = 7\n"
      "  }\n"
      "}\n";
  // It did not compile.
  EXPECT_TRUE(Compile(Parse(text)).ok());
  const ir::Function f = Parse("@assert(n >= -30)\n@assert(n <= 910)\n" + text);
  for (uint64_t seed = 0; seed < 4; ++seed) EXPECT_EQ(Check(f, RandomArguments(f, seed)), "");
}

// Found by random_run, seed 239355: what is loaded under a condition is a vector, in indices too.
TEST(LlvmTest, IndicesLoadedUnderAConditionDifferByLane) {
  const ir::Function f = Parse(R"(
      func f(n: i32, T: i64[1], B: f64[2, 13] in, C: f64[2, 13]) {
        T[0] = 1
        vectorize (i, 0, n) { C[1, i] = select(3 <= i, B[T[0], i], 1.75) }
      })");
  const RandomArguments arguments(f, 1, {.scalars = {{"n", ir::Argument::Int(13)}}});
  for (const int level : {0, 2}) {
    EXPECT_EQ(Check(f, arguments, {.optimization_level = level}), "");
  }
}

// Found by random_run, seed 767024: LLVM 19 drops the run-time checks of a loop marked for vectors that needs more than
// 128 of them. The column of C that iterations read is one that another stores.
TEST(LlvmTest, MarkedLoopsThatNeedManyChecks) {
  for (const int rows : {3, 11, 12, 13, 40}) {
    const ir::Function f = Parse(
        StrCat("func f(n: i32, C: i8[", rows, ", 3]) { vectorize (i3, 0, 3) { unroll (i5, 0, ",
               rows, ") { C[i5, i3] = min(C[1, i3], C[0, n] - max(C[i3, 0], C[n, i3])) } } }"));
    for (uint64_t seed = 0; seed < 12; ++seed) {
      const auto n = ir::Argument::Int(static_cast<int64_t>(seed % 3));
      EXPECT_EQ(
          Check(f, RandomArguments(f, seed, {.scalars = {{"n", n}}}), {.optimization_level = 2}),
          "")
          << rows << " rows, seed " << seed;
    }
  }
}

// The same where copies of one access, made by unrolling, may overlap or are rows of unknown length; with 16 copies the
// pairs are more than 128.
TEST(LlvmTest, MarkedLoopsWhoseUnrolledCopiesMeet) {
  for (const char* statement :
       {"C[T[j] + i] = C[T[j] + i] * 3 + 1", "let t = T[j] { C[t + i] = C[t + i] * 3 + 1 }",
        "C[T[j] + i] = C[T[39 - j] + i] + 1", "C[j * j % 40 + i] = C[j + i] + 1",
        "R[j, i + 1] = R[j + 1, i] + 1", "R[j, i] = R[j, i] + R[j + 1, i + 1]",
        "if (j <= T[j]) { R[T[j], i + 1] = R[j, i] + C[i] }"}) {
    for (const int copies : {2, 11, 16, 39}) {
      const ir::Function f = Parse(StrCat(R"(
          func f(n: i32, T: i32[40], C: i32[90], R: i32[41, n]) {
            for (k, 0, 40) { T[k] = k * 7 % 40 }
            vectorize (i, 0, 50) { unroll (j, 0, )",
                                          copies, ") { ", statement, " } } }"));
      const RandomArguments arguments(f, 1, {.scalars = {{"n", ir::Argument::Int(53)}}});
      EXPECT_EQ(Check(f, arguments, {.optimization_level = 2}), "") << copies << ": " << statement;
    }
  }
}

// Rounding depends on the order of a sum, whatever a loop is marked with.
TEST(LlvmTest, FloatSumsKeepTheirOrder) {
  for (const char* loop : {"for", "vectorize", "unroll"}) {
    const ir::Function f = Parse(std::string("func f(A: f32[1000] in, B: f32[] out) { B[] = 0.0 ") +
                                 loop + " (i, 0, 1000) { B[] = B[] + A[i] * A[i] * 0.1 } }");
    EXPECT_EQ(Check(f, RandomArguments(f, 1)), "") << loop;
  }
}

TEST(LlvmTest, ElementwiseLoopsBecomeVectors) {
  const ir::Function f = Parse(R"(
      func add(A: f32[n, m] in, B: f32[n, m] in, C: f32[n, m] out, n: i32, m: i32) {
        for (i, 0, n) { for (j, 0, m) { C[i, j] = A[i, j] + B[i, j] } }
      })");
  auto text = EmitLlvm({f.context, {f}}, LlvmOutput::kOptimizedIr);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("x float>"));
  // No run-time test of whether buffers overlap.
  EXPECT_THAT(*text, Not(HasSubstr("memcheck")));
  text = EmitLlvm({f.context, {f}}, LlvmOutput::kOptimizedIr, {.optimization_level = 1});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, Not(HasSubstr("x float>")));
}

// Vectors of f16 are compared as integers: all pairs of numbers that are edges, zeros of both signs, infinities and
// NaNs among them. No element is compared by itself.
TEST(LlvmTest, VectorsOfF16AreCompared) {
  const ir::Function f = Parse(R"(
      func f(A: f16[32] in, B: f16[32] in, C: i8[4, 32, 32] out, D: f16[3, 32, 32] out) {
        for (i, 0, 32) {
          vectorize (j, 0, 32) { C[0, i, j] = select(A[i] < B[j], i8(1), i8(0)) }
          vectorize (j, 0, 32) { C[1, i, j] = select(A[i] <= B[j], i8(1), i8(0)) }
          vectorize (j, 0, 32) { C[2, i, j] = select(A[i] == B[j], i8(1), i8(0)) }
          vectorize (j, 0, 32) { C[3, i, j] = select(A[i] != B[j], i8(1), i8(0)) }
          vectorize (j, 0, 32) { D[0, i, j] = max(A[i], B[j]) }
          vectorize (j, 0, 32) { D[1, i, j] = min(A[i], B[j]) }
          vectorize (j, 0, 32) { D[2, i, j] = select(A[i] < B[j], A[i] + B[j], B[j]) }
        }
      })");
  Tensor edges(Type::kF16, {32});
  constexpr uint16_t kBits[] = {0x0000, 0x0001, 0x0002, 0x03ff, 0x0400, 0x3bff, 0x3c00, 0x3c01,
                                0x7bfe, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x7fff, 0x5000, 0x1000};
  for (int i = 0; i < 16; ++i) {
    for (const int sign : {0, 1}) {
      const auto bits = static_cast<uint16_t>(kBits[i] | sign << 15);
      edges.SetValue(2 * i + sign, ir::HalfToFloat(bits));
    }
  }
  std::deque<Tensor> tensors = {edges, edges, Tensor(Type::kI8, {4, 32, 32}),
                                Tensor(Type::kF16, {3, 32, 32})};
  for (const char* cpu : {"", "x86-64-v3", "x86-64"})
    EXPECT_EQ(Check(f, RandomArguments(tensors), {.cpu = cpu, .wide_vectors = true}), "") << cpu;
  const ir::Function max = Parse(R"(
      func g(A: f16[320] in, B: f16[320] in, C: f16[320] out) {
        vectorize (i, 0, 320) { C[i] = max(A[i], B[i]) }
      })");
  const auto text = EmitLlvm({max.context, {max}}, LlvmOutput::kAssembly,
                             {.cpu = "znver4", .wide_vectors = true});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, Not(HasSubstr("ucomiss")));
}

// + - * / of f16 are computed in f32 and rounded, which gives the same values as computing in f16: where the processor
// does that (AVX512-FP16), it does.
TEST(LlvmTest, ArithmeticOfF16WhereTheProcessorHasIt) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "SKIPPED: needs an x86-64 machine";
#endif
  const ir::Function f = Parse(R"(
      func f(A: f16[320] in, B: f16[320] in, C: f16[320] out) {
        vectorize (i, 0, 320) { C[i] = (A[i] * B[i] + A[i]) / B[i] - A[i] }
      })");
  const auto assembly = [&](const std::string& cpu) {
    return EmitLlvm({f.context, {f}}, LlvmOutput::kAssembly, {.cpu = cpu, .wide_vectors = true})
        .value();
  };
  for (const char* instruction : {"vmulph", "vaddph", "vdivph", "vsubph"}) {
    EXPECT_THAT(assembly("sapphirerapids"), HasSubstr(instruction));
    EXPECT_THAT(assembly("znver4"), Not(HasSubstr(instruction)));
  }
}

// The parts of an index that are bound first, and used as numbers too, still make up one index: the
// stores are whole vectors, and need no vectors of addresses.
TEST(LlvmTest, BoundPartsOfAnIndexBecomeOne) {
  const ir::Function f = Parse(R"(
      func f(B: f32[64, 32, 32] out) {
        for (i, 0, 65536) {
          let x: i32 = i / 1024
          let y: i32 = i / 32 % 32
          let z: i32 = i % 32
          B[x, y, z] = cast(f32, x) * cast(f32, y) + cast(f32, z)
        }
      })");
  auto text = EmitLlvm({f.context, {f}}, LlvmOutput::kOptimizedIr);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("store <"));
  EXPECT_THAT(*text, Not(HasSubstr("x i64>")));
  EXPECT_EQ(Check(f, RandomArguments(f, 1)), "");
}

// One tensor for two parameters that may alias: each element needs the one before.
TEST(LlvmTest, DeclaredAliases) {
  const ir::Function f = Parse(R"(
      @may_alias("A", "B")
      func f(A: i32[64] in, B: i32[64]) { for (i, 0, 63) { B[i + 1] = A[i] + 1 } })");
  auto compiled = Compile(f);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Tensor tensor(Type::kI32, {64});
  ASSERT_TRUE((*compiled)->Run({Argument::Of(&tensor), Argument::Of(&tensor)}).ok());
  for (int i = 0; i < 64; ++i) ASSERT_EQ(tensor.Int(i), i);
}

TEST(LlvmTest, Outputs) {
  const ir::Function f = Parse("func f(A: f32[4] out) { for (i, 0, 4) { A[i] = 1.0 } }");
  const ir::Module module{f.context, {f}};
  auto ir = EmitLlvm(module, LlvmOutput::kIr);
  ASSERT_TRUE(ir.ok()) << ir.status();
  EXPECT_THAT(*ir, HasSubstr("define i32 @f(ptr noalias"));
  EXPECT_THAT(*ir, HasSubstr("define i32 @f_entry(ptr"));
  auto assembly = EmitLlvm(module, LlvmOutput::kAssembly);
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  EXPECT_THAT(*assembly, HasSubstr("f_entry:"));
  auto object = EmitLlvm(module, LlvmOutput::kObject);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(object->substr(0, 4), "\177ELF");
}

// Each is what it is by itself, in any order and number.
TEST(LlvmTest, SeveralOutputs) {
  const ir::Function f =
      Parse("func f(A: f32[64], n: i32) { parallel (i, 0, n) { A[i] = A[i] * 2.0 + 1.0 } }");
  constexpr LlvmOutput kAll[] = {LlvmOutput::kObject, LlvmOutput::kIr, LlvmOutput::kOptimizedIr,
                                 LlvmOutput::kAssembly, LlvmOutput::kIr};
  const absl::StatusOr<std::vector<std::string>> texts = EmitLlvm({f.context, {f}}, kAll);
  ASSERT_TRUE(texts.ok()) << texts.status();
  ASSERT_EQ(texts->size(), 5);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ((*texts)[i], *EmitLlvm({f.context, {f}}, kAll[i])) << i;
  EXPECT_NE((*texts)[1], (*texts)[2]);
}

// A let's arithmetic wraps, unless loops say that it does not: then it is that of an index.
TEST(LlvmTest, LetsThatDoNotWrap) {
  const auto ir = [](const std::string& value) {
    const ir::Function f =
        Parse("func f(A: f32[64] out, n: i32) { for (i, 0, 8) { let t = " + value +
              " for (j, 0, 8) { A[t + j] = 1.0 } } }");
    return *EmitLlvm({f.context, {f}}, LlvmOutput::kIr);
  };
  EXPECT_THAT(ir("i * 8"), HasSubstr("mul nsw i64 %i"));
  EXPECT_THAT(ir("i * 8"), Not(HasSubstr("sext")));
  EXPECT_THAT(ir("n * 8"), testing::AllOf(HasSubstr("mul i32"), HasSubstr("sext i32")));
}

TEST(LlvmTest, Errors) {
  const ir::Function call = Parse("func f(A: f32[4]) { add.f32(&A[0], 4) }");
  EXPECT_THAT(std::string(Compile(call).status().message()),
              HasSubstr("f: call of 'add.f32': the cpu target has no tensor instructions"));
  const ir::Function f = Parse("func f(A: f32[4] out) { A[0] = 1.0 }");
  EXPECT_THAT(std::string(Compile(f, {.cpu = "abacus"}).status().message()), HasSubstr("'abacus'"));
  EXPECT_THAT(std::string(Compile(f, {.optimization_level = 4}).status().message()),
              HasSubstr("expected 0 to 3, got 4"));
  EXPECT_THAT(std::string(EmitLlvm({f.context, {f, f}}, LlvmOutput::kIr).status().message()),
              HasSubstr("two functions of this module would be called 'f'"));
  ir::Function exp = Parse("func exp(A: f32[4]) { A[0] = exp(A[1]) }");
  EXPECT_THAT(std::string(EmitLlvm({exp.context, {exp}}, LlvmOutput::kIr).status().message()),
              HasSubstr("must not be called 'exp'"));
  EXPECT_EQ(Check(exp, RandomArguments(exp, 1), {}, 1), "");
  // LLVM would make a call of memset, itself, of its loop.
  const ir::Function memset = Parse("func memset(A: f32[99]) { for (i, 0, 99) { A[i] = 0.0 } }");
  EXPECT_THAT(std::string(EmitLlvm({memset.context, {memset}}, LlvmOutput::kIr).status().message()),
              HasSubstr("must not be called 'memset'"));
  EXPECT_EQ(Check(memset, RandomArguments(memset, 1)), "");
  // f64 calls the function of the very same name.
  exp = Parse("func exp(A: f64[4]) { A[0] = exp(A[1]) }");
  EXPECT_EQ(Check(exp, RandomArguments(exp, 1), {}, 1), "");
  auto compiled = Compile(f);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Tensor wrong(Type::kF32, {5});
  EXPECT_THAT(std::string((*compiled)->Run({Argument::Of(&wrong)}).message()),
              HasSubstr("expected a tensor of type f32 and shape [4], got f32 [5]"));
}

// Functions of the C library, which every process has: a pure one, and one that writes.
TEST(LlvmTest, ExternFunctionsOfTheProcess) {
  const ir::Function f = Parse(R"(
      extern pure func ldexpf(x: f32, n: i32) -> f32
      extern writes func memset(A: u8[n] out, value: i32, n: i64)
      func f(A: f32[4], B: u8[8]) {
        for (i, 0, 4) { A[i] = ldexpf(A[i], i) + ldexpf(A[i], i) }
        memset(&B[2], 7, 3)
      })");
  for (int level : {0, 3}) {
    auto compiled = Compile(f, {.optimization_level = level});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    Tensor a(Type::kF32, {4}), b(Type::kU8, {8});
    for (int i = 0; i < 4; ++i) a.SetValue(i, 1.5);
    ASSERT_TRUE((*compiled)->Run({Argument::Of(&a), Argument::Of(&b)}).ok());
    for (int i = 0; i < 4; ++i) EXPECT_EQ(a.Value(i), 3.0 * (1 << i));
    for (int i = 0; i < 8; ++i) EXPECT_EQ(b.Int(i), 2 <= i && i < 5 ? 7 : 0);
  }
}

TEST(LlvmTest, ExternFunctionsInText) {
  const ir::Function f = Parse(R"(
      extern pure func p(x: i8, h: f16) -> i8
      extern reads func r(A: f32[1] in) -> f32
      extern opaque func o()
      func f(A: f32[4], B: i8[4]) { B[0] = p(B[1], 0.5) A[0] = r(&A[1]) o() })");
  const absl::StatusOr<std::string> text = EmitLlvm({f.context, {f}}, LlvmOutput::kIr);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("declare signext i8 @p(i8 signext, float)"));
  EXPECT_THAT(*text, HasSubstr("declare float @r(ptr nocapture)"));
  EXPECT_THAT(*text, HasSubstr("declare void @o()"));
  EXPECT_THAT(*text, HasSubstr("memory(none)"));
  EXPECT_THAT(*text, HasSubstr("memory(read)"));
  // Who may reach all buffers makes them overlap.
  EXPECT_THAT(*text, Not(HasSubstr("noalias")));
  EXPECT_EQ(
      Compile(f).status().message(),
      "the extern function 'p' is not in this process: declare it with a meaning, or compile to "
      "an object file or to C and link it");
}

TEST(LlvmTest, SharedSubexpressionsAreEmittedOnce) {
  auto context = std::make_shared<ir::Context>();
  ir::Context& c = *context;
  ir::Function f;
  f.name = "f";
  f.context = context;
  f.params.resize(1);
  f.params[0].buffer = c.NewBuffer("A", Type::kI64, {c.I32(2)});
  f.params[0].access = ir::Access::kInOut;
  // As a tree this would have 2^60 leaves.
  ir::Expr e = f.params[0].buffer(c.I32(0));
  for (int i = 0; i < 60; ++i) e = c.Select(e < 1000, e + e, e - 1);
  f.body = c.Store(f.params[0].buffer, {c.I32(1)}, e);
  auto compiled = Compile(f);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Tensor a(Type::kI64, {2});
  a.SetInt(0, 1);
  ASSERT_TRUE((*compiled)->Run({Argument::Of(&a)}).ok());
  EXPECT_EQ(a.Int(1), 1024 + 950);
}

}  // namespace
}  // namespace polynao::codegen
