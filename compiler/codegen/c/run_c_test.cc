#include "compiler/codegen/c/run_c.h"

#include <filesystem>
#include <set>
#include <string>

#include "compiler/codegen/codegen_test_util.h"
#include "compiler/codegen/differential.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::codegen {
namespace {

using ir::Argument;
using ir::RandomArguments;
using ir::Tensor;
using ir::Type;
using ::testing::HasSubstr;

class RunCTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status found = FindCCompiler(false).status();
    if (!found.ok()) GTEST_SKIP() << "SKIPPED: " << found;
  }
};

const COptions kStrict{.optimization_level = 1, .flags = {"-Wall", "-Wextra", "-Werror"}};

TEST_F(RunCTest, EdgeValuesOfAllOperators) {
  const std::vector<SemanticsCase> cases = SemanticsCases();
  auto compiled = CompiledC::Create(FunctionsOf(cases), kStrict);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ((*compiled)->messages(), "");
  ExpectSemantics(cases, [&](size_t i, auto a) { return (*compiled)->Run(i, a); });
}

TEST_F(RunCTest, RandomProgramsAgreeWithTheInterpreter) {
  constexpr uint64_t kPrograms = 60;
  // One half calls extern functions. All are in one file.
  const auto options = [](uint64_t seed) -> ir::RandomProgramOptions {
    return {.inexact_intrinsics = false, .extern_calls = seed % 4 >= 2, .edges = seed % 2 != 0};
  };
  // Random programs compare things with themselves and have dead branches, which compilers like to
  // mention.
  const COptions c_options{
      .optimization_level = 1,
      .openmp = true,
      .flags = {"-Wall", "-Wextra", "-Werror", "-Wno-tautological-compare", "-Wno-array-bounds",
                "-Wno-type-limits", "-Wno-maybe-uninitialized", "-Wno-unknown-warning-option"}};
  std::vector<ir::Function> functions;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    functions.push_back(ir::RandomProgram(seed, options(seed)));
    functions.back().name += std::to_string(seed);
  }
  auto compiled = CompiledC::Create(functions, c_options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    const std::string wrong =
        Disagreement(functions[seed], RandomProgramArguments(functions[seed], seed),
                     [&](auto a) { return (*compiled)->Run(seed, a); });
    if (wrong.empty()) continue;
    // Compile it alone, to shrink it.
    const auto compile = [&](const ir::Function& f) -> absl::StatusOr<Runner> {
      auto one = CompiledC::Create({f}, {.optimization_level = 0});
      if (!one.ok()) return one.status();
      return [code = std::shared_ptr(*std::move(one))](auto a) { return code->Run(0, a); };
    };
    FAIL() << DisagreementOnRandomProgram(seed, options(seed), compile) << "\nwas " << wrong;
  }
}

// Found by random_run, seed 7950: 8 + i - 2147483647 overflows, 8 + (i - 2147483647) does not. The
// flags make each overflow end the process.
TEST_F(RunCTest, TermsOfIndicesDoNotOverflow) {
  const std::vector<ir::Function> functions = {Parse(R"(
      func f(B: i32[2, 8] out) {
        for (i, 2147483647, 1) { for (k, 0, 2) { B[k, i - 2147483647] = k } }
      })"),
                                               Parse(R"(
      func g(n: i32, B: i32[2, n] out) {
        for (i: i64, 9223372036854775807, 1) {
          for (k: i64, 0, 2) { if (1 < n) { B[k, i - 9223372036854775807] = 3 } }
        }
      })"),
                                               Parse(R"(
      @assert(n >= 0)
      @assert(m >= 0)
      @assert(m < 5)
      func h(n: i32, m: i32, B: i32[2, 8] out) {
        for (k, 0, 2) { B[k, n + m - n] = 3 }
      })"),
                                               // Seed 208677: the literal 1 has 32 bits.
                                               Parse(R"(
      func l(B: i64[2, 8] out) {
        for (k, 0, 2) { B[k, 0] = (let x: i16 = -2 in i64(1)) >> 57 }
      })")};
  for (const int level : {0, 2}) {
    auto compiled = CompiledC::Create(
        functions,
        {.optimization_level = level,
         .flags = {"-fsanitize=signed-integer-overflow,shift", "-fsanitize-undefined-trap-on-error",
                   "-Wno-unused-command-line-argument"}});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    for (size_t i = 0; i < functions.size(); ++i) {
      RandomArguments arguments(functions[i], 1);
      EXPECT_EQ(
          Disagreement(functions[i], arguments, [&](auto a) { return (*compiled)->Run(i, a); }),
          "");
    }
  }
}

// Found by random_run, seed 62217: OpenMP counts iterations before it asks whether there are any.
TEST_F(RunCTest, OpenMPCountsNoIterationsBelowZero) {
  for (const Type type : {Type::kI32, Type::kI64}) {
    for (const std::string kind : {"vectorize", "parallel"}) {
      const std::string name(ir::TypeName(type));
      const ir::Function f = Parse(absl::StrCat("func f(n: ", name, ", A: i32[4]) { ", kind,
                                                " (i: ", name, ", 0, n) { A[i] = A[i] + 1 } }"));
      auto compiled = CompiledC::Create({f}, {.optimization_level = 0,
                                              .flags = {"-fsanitize=signed-integer-overflow",
                                                        "-fsanitize-undefined-trap-on-error",
                                                        "-Wno-unused-command-line-argument"}});
      ASSERT_TRUE(compiled.ok()) << compiled.status();
      const int64_t least = type == Type::kI32 ? INT32_MIN : INT64_MIN;
      for (const int64_t n : {least, least + 1, int64_t{-1}, int64_t{0}, int64_t{4}}) {
        Tensor a(Type::kI32, {4});
        ASSERT_TRUE((*compiled)->Run(0, {Argument::Int(n), Argument::Of(&a)}).ok());
        EXPECT_EQ(a.Int(3), n == 4) << kind << " " << name << " " << n;
      }
    }
  }
}

// Functions of the C library.
TEST_F(RunCTest, ExternFunctionsOfTheProcess) {
  const ir::Function f = Parse(R"(
      extern pure func twice_of(x: f32) -> f32 = x + x
      extern pure func toupper(x: i32) -> i32
      func f(A: f32[4], C: i32[4]) { for (i, 0, 4) { A[i] = twice_of(A[i]) C[i] = toupper(C[i]) } })");
  auto compiled = CompiledC::Create({f}, kStrict);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Tensor a(Type::kF32, {4}), c(Type::kI32, {4});
  for (int i = 0; i < 4; ++i) a.SetValue(i, i), c.SetInt(i, 'a' + i);
  ASSERT_TRUE((*compiled)->Run(0, {Argument::Of(&a), Argument::Of(&c)}).ok());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(a.Value(i), 2 * i);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(c.Int(i), 'A' + i);
}

TEST_F(RunCTest, ParallelLoops) {
  const ir::Function f = Parse(R"(
      func f(A: f32[37, n] in, B: f32[37, n] out, n: i32, s: f32) {
        allocate scale: f32[]
        scale[] = s * 2.0
        parallel (i, 0, 37) {
          allocate row: f32[n + 1] @local
          parallel (j, 0, n) {
            row[j] = A[i, n - 1 - j] * scale[]
          }
          vectorize (j, 0, n) {
            B[i, j] = row[j] + 1.0
          }
        }
      })");
  for (bool openmp : {true, false}) {
    COptions options = kStrict;
    options.openmp = openmp;
    auto compiled = CompiledC::Create({f}, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    for (uint64_t seed = 0; seed < 3; ++seed) {
      EXPECT_EQ(
          Disagreement(f, RandomArguments(f, seed), [&](auto a) { return (*compiled)->Run(0, a); }),
          "");
    }
  }
}

// One tensor for two parameters that may alias: each element needs the one before.
TEST_F(RunCTest, DeclaredAliases) {
  const ir::Function f = Parse(R"(
      @may_alias("A", "B")
      func f(A: i32[64] in, B: i32[64]) { vectorize (i, 0, 63) { B[i + 1] = A[i] + 1 } })");
  auto compiled = CompiledC::Create({f}, {.optimization_level = 3});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Tensor tensor(Type::kI32, {64});
  ASSERT_TRUE((*compiled)->Run(0, {Argument::Of(&tensor), Argument::Of(&tensor)}).ok());
  for (int i = 0; i < 64; ++i) ASSERT_EQ(tensor.Int(i), i);
}

TEST_F(RunCTest, LargeAllocationsAndEmptyLoops) {
  const ir::Function f = Parse(R"(
      func f(A: f64[n] out, n: i32) {
        allocate big: f64[40, 1000]
        allocate none: f32[0, 4]
        for (i, 0, 40) { for (j, 0, 1000) { big[i, j] = cast(f64, i * j) } }
        for (i, 3, n - 3) { A[i] = big[i, 999] }
        for (i, 0, 0) { none[i, 0] = 1.0 }
        for (i, 0, -4) { A[i] = 0.0 }
      })");
  auto compiled = CompiledC::Create({f}, kStrict);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(
        Disagreement(f, RandomArguments(f, seed), [&](auto a) { return (*compiled)->Run(0, a); }),
        "");
  }
}

// The body stores what the first value of the loop was loaded from.
TEST_F(RunCTest, BoundsAreEvaluatedOnce) {
  const ir::Function f = Parse(R"(
      func f(A: i32[4], B: i32[1]) {
        for (i, B[0] & 3, 4) { B[0] = B[0] + 1  A[i & 3] = i }
      })");
  auto compiled = CompiledC::Create({f}, kStrict);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(Disagreement(f, RandomArguments(f, 1), [&](auto a) { return (*compiled)->Run(0, a); }),
            "");
}

TEST_F(RunCTest, SharedSubexpressionsAreEvaluatedOnce) {
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
  auto compiled = CompiledC::Create({f}, kStrict);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Tensor a(Type::kI64, {2});
  a.SetInt(0, 1);
  ASSERT_TRUE((*compiled)->Run(0, {Argument::Of(&a)}).ok());
  EXPECT_EQ(a.Int(1), 1974);  // 1024, then 1023, 1022, ..., 999, 1998, ...
}

TEST_F(RunCTest, ErrorsAndCleanUp) {
  const ir::Function f = Parse("func f(A: f32[4] out) { A[0] = 1.0 }");
  const auto directories = [] {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(::testing::TempDir())) {
      count += entry.path().filename().string().starts_with("polynao-c-");
    }
    return count;
  };
  setenv("TMPDIR", ::testing::TempDir().c_str(), 1);
  auto bad = CompiledC::Create({f}, {.flags = {"-fno-such-option"}});
  EXPECT_THAT(std::string(bad.status().message()), HasSubstr("-fno-such-option"));
  EXPECT_EQ(directories(), 0);
  auto compiled = CompiledC::Create({f});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(directories(), 0);
  Tensor wrong(Type::kF32, {5});
  EXPECT_THAT(std::string((*compiled)->Run(0, {Argument::Of(&wrong)}).message()),
              HasSubstr("expected a tensor of type f32 and shape [4], got f32 [5]"));
  setenv("TMPDIR", "/no/such/directory", 1);
  EXPECT_THAT(std::string(CompiledC::Create({f}).status().message()),
              HasSubstr("no temporary directory /no/such/directory/polynao-c-"));
}

}  // namespace
}  // namespace polynao::codegen
