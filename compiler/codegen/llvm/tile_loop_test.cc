// Loops around tiles of sums: which ones are instructions, and that they compute the same on this machine.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "isa/processor/processor.h"

namespace polynao::codegen {
namespace {

// Loops `outer` around tiles of sums.
std::string Program(const std::string& outer, const std::string& s, const std::string& a,
                    const std::string& b) {
  const std::string nest =
      "for (row: i64, 0, 16) { vectorize (lane: i64, 0, 16) { for (k: i64, 0, 16) {\n"
      "  for (q: i64, 0, 4) { S = S + cast(i32, A) * cast(i32, B) } } } }";
  const std::string body = absl::StrReplaceAll(nest, {{"S", s}, {"A", a}, {"B", b}});
  std::string text = "func f(T: i32[64, 64], P: i8[64, 320] in, Q: i8[80, 32, 4] in, n: i64) {\n";
  StrAppend(&text, outer, body);
  for (const char c : outer) {
    if (c == '{') text += " }";
  }
  return text + "\n}\n";
}

const char* const kSums = "T[r * 16 + row, c * 16 + lane]";
const char* const kRows = "P[r * 16 + row, s * 64 + k * 4 + q]";
const char* const kColumns = "Q[s * 16 + k, c * 16 + lane, q]";

std::string Outer(const std::string& sums, int64_t rows, int64_t columns) {
  return StrCat("for (s: i64, 0, ", sums, ") { unroll (r: i64, 0, ", rows,
                ") { unroll (c: i64, 0, ", columns, ") {\n");
}

// LLVM's text, before its passes.
std::string Emitted(const std::string& text, const std::string& cpu) {
  const ir::Function function = ir::ParseFunction(text).value();
  const ir::Module module{.context = function.context, .functions = {function}};
  return EmitLlvm(module, LlvmOutput::kIr, {.cpu = cpu, .wide_vectors = true}).value();
}

int64_t Count(const std::string& text, const std::string& what) {
  int64_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

int64_t Calls(const std::string& text, const std::string& intrinsic) {
  return Count(text, StrCat("call void @llvm.x86.", intrinsic, "("));
}

// Values of the program on this machine and on one without tiles, for no and several iterations.
void MustAgree(const std::string& text, int threads) {
  const ir::Function function = ir::ParseFunction(text).value();
  for (const char* cpu : {"", "x86-64-v4"}) {
    const auto compiled = Compile(function, {.threads = threads, .cpu = cpu, .wide_vectors = true});
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    for (const int64_t n : {0, 1, 5}) {
      ir::RandomArgumentOptions options;
      options.scalars["n"] = ir::Argument::Int(n);
      const auto arguments = ir::RandomArguments::Draw(function, 1, options);
      ASSERT_TRUE(arguments.ok()) << arguments.status();
      ASSERT_EQ(
          ir::Disagreement(function, *arguments, [&](auto list) { return (*compiled)->Run(list); }),
          "")
          << "on '" << cpu << "', n = " << n << "\n"
          << text;
    }
  }
}

TEST(TileLoopTest, SumsStayInRegisters) {
  // One operand type on both sides: in either order.
  for (const bool swaps : {false, true}) {
    const std::string program = swaps ? Program(Outer("n", 2, 2), kSums, kColumns, kRows)
                                      : Program(Outer("n", 2, 2), kSums, kRows, kColumns);
    const std::string text = Emitted(program, "sapphirerapids");
    EXPECT_EQ(Calls(text, "tdpbssd"), 4) << text;
    EXPECT_EQ(Calls(text, "tilestored64"), 4) << text;
    // The sums, and two operands of each side.
    EXPECT_EQ(Calls(text, "tileloadd64"), 8) << text;
    EXPECT_EQ(Calls(text, "ldtilecfg"), 1) << text;
    EXPECT_EQ(Calls(text, "tilerelease"), 1) << text;
    EXPECT_EQ(Count(text, "\"syscall\""), 1) << text;
  }
}

// Quotients and remainders of the same number are that number in memory.
TEST(TileLoopTest, RowsOfSeveralLoops) {
  const std::string program =
      "func f(T: i32[12, 14, 32], P: i8[12, 14, 64] in, Q: i8[16, 32, 4] in) {\n"
      "for (b: i64, 0, 5) { unroll (r: i64, 0, 2) { unroll (c: i64, 0, 2) {\n"
      "for (row: i64, 0, 16) { vectorize (lane: i64, 0, 16) { for (k: i64, 0, 16) {\n"
      "  for (q: i64, 0, 4) {\n"
      "  T[(b * 32 + r * 16 + row) / 14, (b * 4 + r * 2 + row) % 14, c * 16 + lane] =\n"
      "    T[(b * 32 + r * 16 + row) / 14, (b * 4 + r * 2 + row) % 14, c * 16 + lane] +\n"
      "    cast(i32, P[(b * 32 + r * 16 + row) / 14, (b * 32 + r * 16 + row) % 14, k * 4 + q])\n"
      "    * cast(i32, Q[k, c * 16 + lane, q]) } } } } } } }\n}\n";
  EXPECT_EQ(Calls(Emitted(program, "sapphirerapids"), "tdpbssd"), 4);
}

// Zeros that tiles begin with are made in registers, if no others are stored.
TEST(TileLoopTest, BeginsWithZeros) {
  const auto program = [](const std::string& fill) {
    const std::string tiles = Program(Outer("n", 2, 2), kSums, kRows, kColumns);
    const size_t line = tiles.find('\n') + 1;
    return StrCat(tiles.substr(0, line), "for (i: i64, 0, ", fill, " }\n", tiles.substr(line));
  };
  const auto zeros = [&](const std::string& fill) {
    return Calls(Emitted(program(fill), "sapphirerapids"), "tilezero");
  };
  EXPECT_EQ(zeros("32) { vectorize (l: i64, 0, 32) { T[i, l] = 0 }"), 4);
  for (const char* other : {"32) { vectorize (l: i64, 0, 32) { T[i, l] = 1 }",
                            "32) { vectorize (l: i64, 0, 32) { T[i, l + 1] = 0 }",
                            "32) { vectorize (l: i64, 0, 32) { T[l, i] = 0 }",
                            "16) { vectorize (l: i64, 0, 32) { T[i, l] = 0 }",
                            "32) { vectorize (l: i64, 0, 48) { T[i, l] = 0 }",
                            "33) { vectorize (l: i64, 0, 32) { T[i, l] = 0 }"}) {
    EXPECT_EQ(zeros(other), 0) << other;
  }
}

TEST(TileLoopTest, OtherLoopsStay) {
  const std::string two = Outer("5", 2, 2);
  for (const std::string& text : {
           Program(two, "T[r * 16 + lane, c * 16 + row]", kRows, kColumns),  // a transposed one
           Program(two, kSums, "P[r * 16 + row, s * 64 + q * 4 + k]", kColumns),
           Program(two, kSums, "P[r * 16 + lane, s * 64 + k * 4 + q]", kColumns),
           Program(two, kSums, kRows, "Q[s * 16 + k, c * 16 + row, q]"),
       }) {
    EXPECT_EQ(Calls(Emitted(text, "sapphirerapids"), "tdpbssd"), 0) << text;
  }
  EXPECT_EQ(Calls(Emitted(Program(two, kSums, kRows, kColumns), "icelake-server"), "tdpbssd"), 0);
  // Of tiles that registers do not hold together, or that are not apart, the loops around stay.
  const auto together = [&](const std::string& text) {
    return Calls(Emitted(text, "sapphirerapids"), "tdpbssd");
  };
  EXPECT_EQ(together(Program(Outer("5", 2, 4), kSums, kRows, "Q[s * 16 + k, lane, q]")), 4);
  EXPECT_EQ(together(Program(two, "T[r * 8 + row, c * 16 + lane]", kRows, kColumns)), 2);
  EXPECT_EQ(together(Program(two, "T[r * 16 + row, c * 8 + lane]", kRows, kColumns)), 1);
}

// The row of the table for bf16, whose meaning has memory of its own, in two loops over positions; `fill` stands in
// front of them.
std::string FloatProgram(const std::string& fill, const std::string& parts = "parts[1]") {
  std::string nest;
  for (const isa::ProcessorInstruction& row : isa::ProcessorInstructions()) {
    if (row.name == "tdpbf16ps") nest = ir::Print(row.meaning);
  }
  nest = nest.substr(nest.find('\n', nest.find("func ")) + 1);
  nest = absl::StrReplaceAll(nest, {{"sums[row, lane]", kSums},
                                    {"a[row, k * 2 + q]", "P[r * 16 + row, s * 32 + k * 2 + q]"},
                                    {"b[k, lane, q]", kColumns},
                                    {"parts[0] + parts[1]", StrCat("parts[0] + ", parts)}});
  return StrCat("func f(T: f32[64, 64], P: bf16[64, 160] in, Q: bf16[80, 32, 2] in, n: i64) {\n",
                fill, Outer("n", 2, 2), nest, "} } }\n");
}

TEST(TileLoopTest, SumsOfFloats) {
  const std::string zeros = "for (i: i64, 0, 32) { vectorize (l: i64, 0, 32) { T[i, l] = 0.0 } }\n";
  const std::string other = absl::StrReplaceAll(zeros, {{"0.0", "-0.0"}});
  const auto calls = [](const std::string& program, const std::string& what) {
    return Calls(Emitted(program, "sapphirerapids"), what);
  };
  EXPECT_EQ(calls(FloatProgram(""), "tdpbf16ps"), 4) << FloatProgram("");
  EXPECT_EQ(calls(FloatProgram(""), "tileloadd64"), 8);
  EXPECT_EQ(calls(FloatProgram(zeros), "tilezero"), 4);
  EXPECT_EQ(calls(FloatProgram(other), "tilezero"), 0);
  // Another sum.
  EXPECT_EQ(calls(FloatProgram("", "parts[0]"), "tdpbf16ps"), 0);
  if (!isa::HostHas("amx-bf16")) {
    GTEST_SKIP() << "this machine has no tiles of bf16 (AMX), or the system does not give them";
  }
  for (const std::string& text : {FloatProgram(""), FloatProgram(zeros), FloatProgram(other)}) {
    MustAgree(text, /*threads=*/0);
  }
}

// Serial and parallel loops, no and several iterations, and all numbers of tiles, on this machine and on one without
// tiles.
TEST(TileLoopTest, ComputesTheMeaning) {
  if (!isa::HostHas("amx-int8")) {
    GTEST_SKIP() << "this machine has no tiles (AMX), or the system does not give them to us";
  }
  std::vector<std::string> programs;
  for (const int64_t rows : {1, 2, 3, 4}) {
    for (const int64_t columns : {1, 2}) {
      if (rows * columns <= 6)
        programs.push_back(Program(Outer("n", rows, columns), kSums, kRows, kColumns));
    }
  }
  programs.push_back(Program(StrCat("parallel (p: i64, 0, 2) { ", Outer("n", 2, 1)),
                             "T[p * 32 + r * 16 + row, c * 16 + lane]",
                             "P[p * 32 + r * 16 + row, s * 64 + k * 4 + q]", kColumns));
  programs.push_back(Program("", "T[row + 3, lane + 7]", "P[row, n + k * 4 + q]", "Q[k, lane, q]"));
  // Tiles before and behind a parallel loop that has its own.
  const std::string one = Program(Outer("n", 1, 1), kSums, kRows, kColumns);
  const std::string body = one.substr(one.find('\n') + 1, one.rfind('}') - one.find('\n') - 1);
  const std::string parallel = programs[programs.size() - 2];
  programs.push_back(StrCat(one.substr(0, one.find('\n') + 1),
                            "for (i: i64, 0, 16) { vectorize (l: i64, 0, 16) { T[i, l] = 0 } }\n",
                            one.substr(one.find('\n') + 1)));
  programs.push_back(StrCat(
      parallel.substr(0, parallel.find('\n') + 1), body,
      parallel.substr(parallel.find('\n') + 1, parallel.rfind('}') - parallel.find('\n') - 1), body,
      "}\n"));
  for (const std::string& text : programs) {
    EXPECT_GE(Calls(Emitted(text, "sapphirerapids"), "tdpbssd"), 1) << text;
    MustAgree(text, /*threads=*/2);
  }
}

}  // namespace
}  // namespace polynao::codegen
