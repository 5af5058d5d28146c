#include "compiler/codegen/llvm/rows_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// "A[5] +2400" for each row of the innermost loop, of vectors of 16: its first element where loops begin with 0, and
// what is asked for from there.
std::vector<std::string> Ahead(const std::string& text) {
  const ir::Function function = ir::ParseFunction(text).value();
  std::vector<ir::Stmt> around;
  ir::ForEachStmt(function.body, [&](ir::Stmt s) {
    if (s.Is(ir::StmtKind::kFor)) around.push_back(s);
    return true;
  });
  const ir::Stmt loop = around.back();
  around.pop_back();
  arith::Analyzer analyzer(*function.context);
  const auto is_asked = [](ir::Buffer buffer) { return buffer->name != "near"; };
  std::vector<std::string> list;
  for (const RowAhead& ahead : RowsAhead(RowsOf(loop, 16, is_asked, analyzer), loop, 16, around)) {
    list.push_back(StrCat(ahead.row.buffer()->name, "[", ahead.first.constant(), "]",
                          ahead.elements < 0 ? " " : " +", ahead.elements));
  }
  return list;
}

// What `body` of x does in rows 0 to 99 of arrays of 3000 columns.
std::string InRows(const std::string& body) {
  return StrCat(
      "func f(A: f32[9, 300, 3000], near: f32[300, 3000], K: i64[3000], B: f32[300, 3000]) {\n"
      "  for (y: i64, 0, 100) { vectorize (x: i64, 0, 2000) { B[y, x] = ",
      body, " } }\n}\n");
}

TEST(RowsAheadTest, TheRowsThatNoIterationHasReadAreAskedForTwoRowsAhead) {
  EXPECT_THAT(Ahead(InRows("A[i64(0), y, x]")), ElementsAre("A[0] +6000"));
  EXPECT_THAT(Ahead(InRows("A[i64(0), y, x] + A[i64(0), y + 1, x] + A[i64(0), y + 2, x + 1]")),
              ElementsAre("A[6001] +6000"));
  // Two rows a step: neither of them was read before.
  EXPECT_THAT(
      Ahead(InRows("A[i64(0), y * 2, x] + A[i64(0), y * 2 + 1, x] + A[i64(0), y * 2 + 2, x]")),
      ElementsAre("A[3000] +12000", "A[6000] +12000"));
  // From the last row to the first one.
  EXPECT_THAT(Ahead(InRows("A[i64(0), 200 - y, x] + A[i64(0), 199 - y, x]")),
              ElementsAre("A[597000] -6000"));
  // Two planes are two rows, elements of one row a single one.
  EXPECT_THAT(Ahead(InRows("A[i64(0), y, x] + A[i64(1), y, x] + A[i64(1), y, x + 15]")),
              ElementsAre("A[0] +6000", "A[900000] +6000"));
  EXPECT_THAT(Ahead(InRows("A[i64(0), y, x * 2] + A[i64(0), y, x * 2 + 1]")),
              ElementsAre("A[0] +6000"));
}

TEST(RowsAheadTest, OtherLoadsAreNot) {
  EXPECT_THAT(Ahead(InRows("near[y, x]")), IsEmpty());
  EXPECT_THAT(Ahead(InRows("A[i64(0), i64(7), x]")), IsEmpty());        // the same row each time
  EXPECT_THAT(Ahead(InRows("A[i64(0), y % 4, x]")), IsEmpty());         // which row is not known
  EXPECT_THAT(Ahead(InRows("A[i64(0), y, x * 5 % 3000]")), IsEmpty());  // no row
  EXPECT_THAT(Ahead(InRows("A[i64(0), y, K[x]]")), IsEmpty());
  // The loop around stays on a page.
  EXPECT_THAT(
      Ahead("func f(A: f32[90000], B: f32[64, 1000]) {\n"
            "  for (y: i64, 0, 64) { vectorize (x: i64, 0, 100) { B[y, x] = A[y * 4 + x] } }\n}\n"),
      IsEmpty());
}

// Short rows: 8 KiB ahead. The loop that moves least is that of the next row, wherever it stands.
TEST(RowsAheadTest, RowsOfTheLoopThatMovesLeast) {
  EXPECT_THAT(Ahead("func f(A: f32[8, 300, 400], B: f32[8, 300, 400]) {\n"
                    "  for (y: i64, 0, 300) { for (c: i64, 0, 8) { vectorize (x: i64, 0, 400) {\n"
                    "    B[c, y, x] = A[c, y, x]\n  } } }\n}\n"),
              ElementsAre("A[0] +2400"));
}

// In code: of arrays that no cache holds, once for all loops of an iteration.
TEST(RowsAheadTest, CodeAsksOnce) {
  const auto code = [](int64_t rows) {
    const ir::Function f =
        ir::ParseFunction(
            StrCat("func f(A: f32[", rows, ", 3000] in, B: f32[", rows, ", 3000] out, C: f32[",
                   rows, ", 3000] out) {\n  for (y: i64, 0, ", rows,
                   ") {\n"
                   "    vectorize (x: i64, 0, 3000) { B[y, x] = A[y, x] + 1.0 }\n"
                   "    vectorize (x: i64, 0, 3000) { C[y, x] = A[y, x] * 3.0 }\n  }\n}\n"))
            .value();
    const ir::Module module{.context = f.context, .functions = {f}};
    return EmitLlvm(module, LlvmOutput::kAssembly, {.cpu = "haswell"}).value();
  };
  std::string large = code(400);
  large.resize(large.find(".Lfunc_end0"));  // the raw entry has the same code
  const size_t first = large.find("prefetcht1");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(large.find("prefetcht1", first + 1), std::string::npos) << large;
  EXPECT_THAT(code(40), Not(HasSubstr("prefetch")));
}

// At both ends of arrays, of which nothing is known to be large: values stay.
TEST(RowsAheadTest, ValuesStay) {
  for (const char* type : {"f32", "u8", "f16", "i64"}) {
    for (const char* value :
         {"A[y, x] + A[y + 1, x + 2]", "A[7 - y, x * 2]", "A[y * 2 % 7, x]",
          "A[y, x] + P[y % 2, y, x * 3 + 1]", "select(x < y, A[y, x], A[y + 1, x])"}) {
      const ir::Function f =
          ir::ParseFunction(StrCat("func f(A: ", type, "[9, 1500] in, P: ", type,
                                   "[2, 9, 2200] in, B: ", type,
                                   "[8, 700] out) {\n  parallel (y: i64, 0, 8) {\n"
                                   "    vectorize (x: i64, 0, 700) { B[y, x] = ",
                                   value, " }\n  }\n}\n"))
              .value();
      const auto compiled = Compile(f, {.threads = 2, .wide_vectors = true, .stream_bytes = 1});
      ASSERT_TRUE(compiled.ok()) << compiled.status();
      const ir::RandomArguments arguments(f, 1);
      EXPECT_EQ(ir::Disagreement(f, arguments, [&](auto list) { return (*compiled)->Run(list); }),
                "")
          << type << " " << value;
    }
  }
}

}  // namespace
}  // namespace polynao::codegen
