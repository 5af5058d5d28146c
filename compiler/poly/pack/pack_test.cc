// Contractions in packed tiles, compared by the interpreter on sizes around those of tiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/pack/pack_plan.h"
#include "compiler/poly/poly.h"

namespace polynao::poly {
namespace {

using testing::HasSubstr;
using testing::Not;

ScheduleOptions PackAll() {
  ScheduleOptions options;
  options.machine = SmallMachine();
  options.packing = Packing::kAll;
  return options;
}

// The report and the text after scheduling, whose meaning is compared for scalars around the sizes of tiles.
std::string Packed(std::string_view text, const ScheduleOptions& options = PackAll(),
                   ir::Values values = ir::Values::kAll) {
  const absl::StatusOr<ir::Function> before = ir::ParseFunction(text);
  EXPECT_TRUE(before.ok()) << before.status();
  ir::Function after = *before;
  const absl::StatusOr<ScheduleReport> report = Schedule(after, options);
  EXPECT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->internal_errors, testing::IsEmpty());
  const std::string result = report->ToString() + ir::Print(after);
  const bool has_scalars = std::any_of(before->params.begin(), before->params.end(),
                                       [](const ir::Param& p) { return static_cast<bool>(p.var); });
  if (!has_scalars) {
    ir::MeaningOptions meaning;
    meaning.arguments.values = values;
    EXPECT_EQ(ir::CompareMeaning(*before, after, 1, meaning), "") << result;
    return result;
  }
  for (const int64_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 23}) {
    for (const int64_t m : {n, int64_t{1}, int64_t{11}}) {
      ir::MeaningOptions meaning;
      meaning.arguments.values = values;
      bool is_first = true;
      for (const ir::Param& param : before->params) {
        if (!param.var) continue;
        meaning.arguments.scalars[std::string(param.name())] = ir::Argument::Int(is_first ? n : m);
        is_first = false;
      }
      EXPECT_EQ(ir::CompareMeaning(*before, after, 1, meaning), "")
          << "n = " << n << ", m = " << m << "\n"
          << result;
      if (testing::Test::HasFailure()) return result;
    }
  }
  return result;
}

TEST(PackTest, Product) {
  const std::string text = Packed(
      "func f(A: f32[n, m] in, B: f32[m, n] in, C: f32[n, n], n: i32, m: i32) {\n"
      "  for (i, 0, n) { for (j, 0, n) { for (k, 0, m) {\n"
      "    C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }\n"
      "}\n");
  EXPECT_THAT(text, HasSubstr("S0 packed in tiles of"));
  EXPECT_THAT(text, HasSubstr("allocate column.panels"));
  EXPECT_THAT(text, HasSubstr("parallel (panel"));
}

TEST(PackTest, TransposedOperands) {
  for (const char* a : {"A[i, k]", "A[k, i]"}) {
    for (const char* b : {"B[k, j]", "B[j, k]"}) {
      EXPECT_THAT(Packed(StrCat("func f(A: f64[n, n] in, B: f64[n, n] in, C: f64[n, n], n: i32) {\n"
                                "  for (i, 0, n) { for (j, 0, n) { for (k, 0, n) {\n"
                                "    C[i, j] = C[i, j] - ",
                                a, " * ", b, " } } }\n}\n")),
                  HasSubstr("packed"))
          << a << b;
    }
  }
}

TEST(PackTest, RowsAndColumnsFollowTheElement) {
  EXPECT_THAT(Packed("func f(A: i32[n, m] in, B: i32[m, n] in, C: i32[n, n], n: i32, m: i32) {\n"
                     "  for (k, 0, m) { for (j, 0, n) { for (i, 0, n) {\n"
                     "    C[j, i] = A[i, k] * B[k, j] + C[j, i] } } }\n"
                     "}\n"),
              HasSubstr("packed"));
}

TEST(PackTest, BeginsAsTheInitialStatementHasIt) {
  const std::string text = Packed(
      "func f(A: f32[n, m] in, B: f32[m, n] in, D: f32[n] in, C: f32[n, n] out, n: i32, m: i32) {\n"
      "  for (i, 0, n) { for (j, 0, n) {\n"
      "    C[i, j] = D[j]\n"
      "    for (k, 0, m) { C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }\n"
      "}\n");
  EXPECT_THAT(text, HasSubstr("S1 packed in tiles of"));
  EXPECT_THAT(text, HasSubstr("begun as S0 has it"));
}

// Sums of integers have no last store by their dependences, since any order will do.
TEST(PackTest, SumsOfIntegersBeginAndEndInTheirTiles) {
  const std::string text = Packed(
      "func f(A: i8[n, m] in, B: i8[m, n] in, D: i32[n, n] out, n: i32, m: i32) {\n"
      "  allocate C: i32[n, n]\n"
      "  for (i, 0, n) { for (j, 0, n) {\n"
      "    C[i, j] = 7\n"
      "    for (k, 0, m) { C[i, j] = C[i, j] + cast(i32, A[i, k]) * cast(i32, B[k, j]) } } }\n"
      "  for (i, 0, n) { for (j, 0, n) { D[i, j] = max(C[i, j], 0) } }\n"
      "}\n");
  EXPECT_THAT(text, HasSubstr("begun as S0 has it, ended as S2 has it"));
  // Between the beginning and the sums.
  const std::string between = Packed(
      "func f(A: i32[n, n] in, B: i32[n, n] in, C: i32[n, n] out, D: i32[n, n] out, n: i32) {\n"
      "  for (i, 0, n) { for (j, 0, n) { C[i, j] = A[i, j] + 1 } }\n"
      "  for (i, 0, n) { for (j, 0, n) { D[i, j] = C[i, j] * 2 } }\n"
      "  for (i, 0, n) { for (j, 0, n) { for (k, 0, n) {\n"
      "    C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }\n"
      "}\n");
  EXPECT_THAT(between, Not(HasSubstr("begun")));
  // Of a part of the elements.
  const std::string part = Packed(
      "func f(A: i32[n, n] in, B: i32[n, n] in, C: i32[n, n] out, D: i32[n, n] out, n: i32) {\n"
      "  for (i, 0, n) { for (j, 0, n) { C[i, j] = A[i, j] + 1 } }\n"
      "  for (i, 1, n - 1) { for (j, 0, n) { for (k, 0, n) {\n"
      "    C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }\n"
      "  for (i, 0, n) { for (j, 0, n) { D[i, j] = C[i, j] * 2 } }\n"
      "}\n");
  EXPECT_THAT(part, Not(HasSubstr("begun")));
}

TEST(PackTest, AnInitialStatementThatOthersReadStays) {
  const std::string text = Packed(
      "func f(A: f32[n, n] in, B: f32[n, n] in, C: f32[n, n] out, D: f32[n, n] out, n: i32) {\n"
      "  for (i, 0, n) { for (j, 0, n) { C[i, j] = A[i, j] + 1.0 } }\n"
      "  for (i, 0, n) { for (j, 0, n) { D[i, j] = C[i, j] * 2.0 } }\n"
      "  for (i, 0, n) { for (j, 0, n) { for (k, 0, n) {\n"
      "    C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }\n"
      "}\n");
  EXPECT_THAT(text, HasSubstr("S2 packed"));
  EXPECT_THAT(text, Not(HasSubstr("begun")));
}

TEST(PackTest, ProductsInARow) {
  const std::string text = Packed(
      "func f(A: f32[n, n] in, B: f32[n, n] in, C: f32[n, n] out, D: f32[n, n] out, n: i32) {\n"
      "  for (i, 0, n) { for (j, 0, n) { C[i, j] = 0.0\n"
      "    for (k, 0, n) { C[i, j] = C[i, j] + A[i, k] * B[k, j] }\n"
      "    C[i, j] = max(C[i, j], 0.0) } }\n"
      "  for (i, 0, n) { for (j, 0, n) { D[i, j] = 0.0\n"
      "    for (k, 0, n) { D[i, j] = D[i, j] + C[i, k] * B[k, j] } } }\n"
      "}\n");
  EXPECT_THAT(text, HasSubstr("S1 packed"));
  EXPECT_THAT(text, HasSubstr("S4 packed"));
}

TEST(PackTest, Batch) {
  EXPECT_THAT(
      Packed("func f(A: f32[2, n, 3, m] in, B: f32[2, n, 3, m] in, C: f32[2, 3, n, n], "
             "n: i32, m: i32) {\n"
             "  for (b, 0, 2) { for (h, 0, 3) { for (i, 0, n) { for (j, 0, n) {\n"
             "    for (k, 0, m) {\n"
             "      C[b, h, i, j] = C[b, h, i, j] + A[b, i, h, k] * B[b, j, h, k] } } } } }\n"
             "}\n"),
      HasSubstr("packed"));
}

// Cores have products of their own where these are small and many; else they share each product.
TEST(PackTest, CoresShareTheBatch) {
  const auto batched = [](int64_t batch, const char* rows, const char* outer = "2") {
    return StrCat(
        "func f(A: f32[", batch, ", ", outer, ", ", rows, ", 9] in, B: f32[", batch, ", ", outer,
        ", 9, 7] in, C: f32[", batch, ", ", outer, ", ", rows, ", 7] out, n: i32) {\n  for (b, 0, ",
        batch, ") { for (h, 0, ", outer, ") { for (i, 0, ", rows,
        ") { for (j, 0, 7) {\n    C[b, h, i, j] = 0.0\n    for (k, 0, 9) {\n"
        "      C[b, h, i, j] = C[b, h, i, j] + A[b, h, i, k] * B[b, h, k, j] } } } } }\n}\n");
  };
  ScheduleOptions options = PackAll();
  options.machine.parallel_cycles = 1000;
  const std::string own = Packed(batched(3, "5"), options);
  EXPECT_THAT(own, HasSubstr("each core its own of the batch"));
  EXPECT_THAT(own, HasSubstr("parallel (batch: i64, 0, 6)"));
  EXPECT_THAT(Packed(batched(3, "5", "n"), options), HasSubstr("each core its own of the batch"));
  EXPECT_THAT(Packed(batched(1, "200", "1"), options), Not(HasSubstr("of the batch")));
  options.machine.cores = 1;
  EXPECT_THAT(Packed(batched(3, "5"), options), Not(HasSubstr("of the batch")));
}

// A convolution with a layout, a stride, a dilation and a padding.
std::string Convolution(bool channels_last, int64_t stride, int64_t dilation, int64_t pad,
                        int64_t channels, int64_t filters, int64_t out) {
  const int64_t in = (out - 1) * stride + 2 * dilation + 1 - 2 * pad;
  const std::string y = StrCat("y * ", stride, " + r * ", dilation, " - ", pad);
  const std::string x = StrCat("x * ", stride, " + s * ", dilation, " - ", pad);
  const std::string image =
      channels_last ? StrCat("X[", y, ", ", x, ", c]") : StrCat("X[c, ", y, ", ", x, "]");
  const std::string value = pad == 0
                                ? image
                                : StrCat("select(0 <= ", y, " && ", y, " < ", in, " && 0 <= ", x,
                                         " && ", x, " < ", in, ", ", image, ", 0.0)");
  const std::string element = channels_last ? "Y[y, x, o]" : "Y[o, y, x]";
  const auto shape = [&](int64_t size, int64_t last) {
    return channels_last ? StrCat(size, ", ", size, ", ", last)
                         : StrCat(last, ", ", size, ", ", size);
  };
  return StrCat("func f(X: f32[", shape(in, channels), "] in, F: f32[", filters, ", 3, 3, ",
                channels, "] in, Y: f32[", shape(out, filters), "] out) {\n  for (y, 0, ", out,
                ") { for (x, 0, ", out, ") { for (o, 0, ", filters, ") {\n    ", element,
                " = 0.0\n    for (r, 0, 3) { for (s, 0, 3) { for (c, 0, ", channels, ") {\n      ",
                element, " = ", element, " + ", value, " * F[o, r, s, c] } } } } } }\n}\n");
}

TEST(PackTest, Convolutions) {
  for (const bool channels_last : {true, false}) {
    for (const int64_t stride : {1, 2}) {
      for (const int64_t dilation : {1, 2}) {
        for (const int64_t pad : {0, 1}) {
          const std::string text =
              Convolution(channels_last, stride, dilation, pad, 5, 7, 6 + stride);
          EXPECT_THAT(Packed(text), HasSubstr("begun as S0 has it")) << text;
        }
      }
    }
  }
}

// A convolution of `rows` x `rows` results: its image has holes if the stride is more than the window.
std::string PaddedConvolution(int64_t rows, int64_t channels, int64_t window, int64_t stride,
                              int64_t dilation, const std::string& type = "f32") {
  const int64_t pad = window / 2 * dilation;
  const int64_t extent =
      std::max<int64_t>((rows - 1) * stride + (window - 1) * dilation + 1 - 2 * pad, 1);
  const std::string pixel =
      absl::StrReplaceAll("X[y*S + r*D - P, x*S + s*D - P, c]",
                          {{"S", StrCat(stride)}, {"D", StrCat(dilation)}, {"P", StrCat(pad)}});
  return absl::StrReplaceAll(
      "func f(X: FROM[H, H, C] in, F: f32[5, K, K, C] in, Y: f32[W, W, 5] out) {\n"
      "  for (y, 0, W) { for (x, 0, W) { for (o, 0, 5) {\n"
      "    Y[y, x, o] = 0.0\n"
      "    for (r, 0, K) { for (s, 0, K) { for (c, 0, C) {\n"
      "      Y[y, x, o] = Y[y, x, o] + select(P <= y*S + r*D && y*S + r*D < H + P &&\n"
      "        P <= x*S + s*D && x*S + s*D < H + P, PIXEL,\n"
      "        0.0) * F[o, r, s, c] } } } } } }\n"
      "}\n",
      {{"PIXEL", type == "f32" ? pixel : StrCat("cast(f32, ", pixel, ")")},
       {"FROM", type},
       {"H", StrCat(extent)},
       {"W", StrCat(rows)},
       {"K", StrCat(window)},
       {"C", StrCat(channels)},
       {"P", StrCat(pad)},
       {"S", StrCat(stride)},
       {"D", StrCat(dilation)}});
}

TEST(PackTest, RowsFromOneImage) {
  for (const int64_t rows : {1, 2, 5, 8, 13}) {
    for (const int64_t channels : {1, 3, 8}) {
      for (const auto& [window, stride, dilation] :
           {std::tuple(3, 1, 1), std::tuple(3, 2, 1), std::tuple(2, 2, 1), std::tuple(3, 1, 2)}) {
        const std::string text =
            Packed(PaddedConvolution(rows, channels, window, stride, dilation));
        if (channels == 8 && rows == 5 && window > stride) {
          EXPECT_THAT(text, HasSubstr("rows from one image")) << rows << " " << channels;
        }
        if (HasFailure()) return;
      }
    }
  }
  // Elements that are converted are converted once.
  EXPECT_THAT(Packed(PaddedConvolution(5, 8, 3, 1, 1, "bf16")), HasSubstr("rows from one image"));
}

// A convolution of 5 x 5 results with windows of 3 x 3 of `operand`.
std::string Windows(const std::string& operand) {
  return absl::StrReplaceAll(
      "func f(X: f32[16, 8, 8] in, F: f32[5, 3, 3, 8] in, Y: f32[5, 5, 5]) {\n"
      "  for (y, 0, 5) { for (x, 0, 5) { for (o, 0, 5) {\n"
      "    for (r, 0, 3) { for (s, 0, 3) { for (c, 0, 8) {\n"
      "      Y[y, x, o] = Y[y, x, o] + OPERAND * F[o, r, s, c] } } } } } }\n"
      "}\n",
      {{"OPERAND", operand}});
}

// One element of the array is two operands; they are no neighbours; or between what windows read there is something
// else, which may be beyond the array.
TEST(PackTest, OperandsThatAreNoImage) {
  EXPECT_THAT(Packed(Windows("X[y + r, x + s, c]")), HasSubstr("row.image"));
  EXPECT_THAT(Packed(Windows("X[y * 3 + r, x + s, c]")), HasSubstr("row.image"));
  for (const char* operand :
       {"X[(4 - y) * 3 + r, x + s, c]", "select(y < 2, X[y + r, x + s, c], 0.0)",
        "X[y + r, x + s, c] * cast(f32, y)", "X[y + r, x + s, (c + s) % 8]",
        "X[y + r, x + s, 7 - c]", "X[y + r, y + s, c]", "X[y + r, c, x + s]",
        "(X[x + s, y + r, c] + X[y + r, x + s, c])"}) {
    EXPECT_THAT(Packed(Windows(operand)), Not(HasSubstr("row.image"))) << operand;
  }
  std::string holes = Windows("X[y * 3 + r, x + s, c]");
  EXPECT_THAT(Packed(absl::StrReplaceAll(holes, {{"(r, 0, 3)", "(r, 0, 2)"}})),
              Not(HasSubstr("row.image")));
}

TEST(PackTest, ImagesTakeNoMoreThanSomeMemory) {
  const auto place = [](int64_t rows) {
    PackShape shape = {.rows = static_cast<double>(rows * rows),
                       .columns = 64,
                       .outer_sums = 9,
                       .sums = 64,
                       .last_rows = rows,
                       .image_elements = static_cast<double>((rows + 2) * (rows + 2) * 64),
                       .image_step = 64,
                       .is_known = true};
    return MakePackPlan(shape, CpuMachine{.vector_bytes = 64, .vector_registers = 32}).row_place;
  };
  EXPECT_EQ(place(56), RowPlace::kImage);
  EXPECT_EQ(place(560), RowPlace::kImage);
  EXPECT_EQ(place(5600), RowPlace::kPanels);  // 8 GB
}

// Bytes on a machine that has both: tiles take half the time of vectors (0.07 and 0.14 ms) for 784 x 512 sums of 128,
// whose result the second cache holds.
TEST(PackTest, AResultThatTheCachesHoldTakesNoMemory) {
  const CpuMachine machine = {.cores = 1,
                              .vector_bytes = 64,
                              .vector_registers = 32,
                              .near_bytes = 48 << 10,
                              .near_ways = 12,
                              .cache_bytes = 2 << 20};
  const PackShape vectors = {.rows = 784,
                             .columns = 512,
                             .sums = 128,
                             .operand_bytes = 1,
                             .group = 4,
                             .step = 4,
                             .is_known = true,
                             .rows_in_place = true};
  PackShape tiles = vectors;
  tiles.step = 64;
  tiles.registers = 8;
  tiles.unit_rows = 16;
  tiles.unit_cycles = 16;
  EXPECT_LT(MakePackPlan(tiles, machine).cycles, MakePackPlan(vectors, machine).cycles);
}

// What the machine takes for an instruction is what a plan takes, where nothing else takes longer.
TEST(PackTest, RatesOfTheMachine) {
  CpuMachine machine = {.cores = 1, .vector_bytes = 64, .vector_registers = 32};
  const PackShape shape = {.rows = 512, .columns = 512, .sums = 512, .is_known = true};
  const double fast = MakePackPlan(shape, machine).cycles;
  machine.rates.operation = 1;
  const double slow = MakePackPlan(shape, machine).cycles;
  EXPECT_GT(slow, 1.8 * fast);
  EXPECT_LT(slow, 2 * fast);
  EXPECT_DOUBLE_EQ(MakePackPlan(shape, machine).least_cycles, 512. * 512 * 512 / 16);
  // Eight rows of sums hide what an addition takes, and less so where it takes longer: two vectors of each.
  const PackShape lanewise = {.batch = 9, .rows = 6, .columns = 64, .outer_sums = 3, .sums = 3};
  machine.rates = {};
  EXPECT_EQ(MakeLanewisePlan(lanewise, machine).vectors, 2);
  machine.rates.latency = 2;
  EXPECT_EQ(MakeLanewisePlan(lanewise, machine).vectors, 1);
}

// The last two loops of sums are one where a row of memory follows the one before, without elements between them.
TEST(PackTest, SumsOfAnImageAreJoined) {
  ScheduleOptions options = PackAll();
  options.machine.near_bytes = 2048;
  options.machine.cache_bytes = 16384;
  for (const int64_t channels : {12, 32}) {
    const std::string text = Packed(
        absl::StrReplaceAll("func f(X: f32[5, 7, C] in, F: f32[5, 3, C] in, Y: f32[5, 5, 5]) {\n"
                            "  for (y, 0, 5) { for (x, 0, 5) { for (o, 0, 5) {\n"
                            "    for (s, 0, 3) { for (c, 0, C) {\n"
                            "      Y[y, x, o] = Y[y, x, o] + max(X[y, x + s, c], 0.5) * F[o, s, c]"
                            " } } } } }\n"
                            "}\n",
                            {{"C", StrCat(channels)}}),
        options);
    EXPECT_THAT(text, HasSubstr(channels == 12 ? "f32[i64(5), i64(84)]" : "f32[i64(5), i64(252)]"));
  }
}

TEST(PackTest, RowsWhereTheyAre) {
  const auto product = [](int64_t rows, int64_t sums) {
    return absl::StrReplaceAll(
        "func f(A: f32[N, M] in, B: f32[M, 8] in, C: f32[N, 8]) {\n"
        "  for (i, 0, N) { for (j, 0, 8) { for (k, 0, M) {\n"
        "    C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }\n"
        "}\n",
        {{"N", StrCat(rows)}, {"M", StrCat(sums)}});
  };
  for (const int64_t sums : {1, 2, 16, 37}) {
    for (const int64_t rows : {4, 12, 25}) Packed(product(rows, sums));
  }
  EXPECT_THAT(Packed(product(12, 40)), HasSubstr("rows where they are"));
  // All of a tile's rows would be in one place of the nearest cache.
  EXPECT_THAT(Packed(product(12, 4096)), Not(HasSubstr("rows where they are")));
}

TEST(PackTest, Groups) {
  EXPECT_THAT(
      Packed("func f(X: f32[7, 9, 2, 5] in, F: f32[2, 6, 3, 5] in, Y: f32[7, 7, 2, 6]) {\n"
             "  for (y, 0, 7) { for (x, 0, 7) { for (g, 0, 2) { for (o, 0, 6) {\n"
             "    for (s, 0, 3) { for (c, 0, 5) {\n"
             "      Y[y, x, g, o] = Y[y, x, g, o] + X[y, x + s, g, c] * F[g, o, s, c] } } } } } }\n"
             "}\n"),
      HasSubstr("packed"));
}

// A private sum goes into what is made of it: no array holds the sums, unless several blocks add to them.
TEST(PackTest, EndsAsTheFinalStatementHasIt) {
  const auto program = [](const char* k, const char* result) {
    return StrCat("func f(A: f32[n, ", k, "] in, B: f32[", k,
                  ", n] in, D: f32[n] in, E: f32[n, n] ",
                  "out, n: i32, m: i32) {\n  allocate C: f32[n, n]\n",
                  "  for (i, 0, n) { for (j, 0, n) { C[i, j] = 0.0\n    for (k, 0, ", k,
                  ") { C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }\n",
                  "  for (i, 0, n) { for (j, 0, n) { ", result, " } }\n}\n");
  };
  const std::string relu = "E[i, j] = max(C[i, j] + D[j], 0.0)";
  const std::string one_block = Packed(program("5", relu.c_str()));
  EXPECT_THAT(one_block, HasSubstr("ended as S2 has it"));
  EXPECT_THAT(Packed("func f(A: f32[9, 5] in, B: f32[5, 11] in, E: f32[9, 11] out) {\n"
                     "  allocate C: f32[9, 11]\n"
                     "  for (i, 0, 9) { for (j, 0, 11) { C[i, j] = 0.0\n"
                     "    for (k, 0, 5) { C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }\n"
                     "  for (i, 0, 9) { for (j, 0, 11) { E[i, j] = C[i, j] * 2.0 } }\n}\n"),
              Not(HasSubstr("allocate C")));
  const std::string blocks = Packed(program("m", relu.c_str()));
  EXPECT_THAT(blocks, HasSubstr("begun as S0 has it, ended as S2 has it"));
  EXPECT_THAT(blocks, HasSubstr("allocate C"));
  EXPECT_THAT(Packed(program("5", "E[j, i] = C[i, j]")), HasSubstr("packed"));
  EXPECT_THAT(Packed(program("5", "E[i, j] = sigmoid(C[i, j] + D[j])")), HasSubstr("ended"));
  // A function that a library computes, element by element; a neighbour's sum, and two of them.
  EXPECT_THAT(Packed(program("5", "E[i, j] = log(C[i, j])")), Not(HasSubstr("ended")));
  EXPECT_THAT(Packed(program("5", "E[i, j] = i < n - 1 ? C[i + 1, j] : 0.0")),
              Not(HasSubstr("ended")));
  EXPECT_THAT(Packed(program("5", "E[i, j] = C[i, j] * C[j, i]")), Not(HasSubstr("ended")));
}

// Bytes by an instruction that multiplies unsigned bytes by signed ones: the others plus 128, which is taken off again.
TEST(PackTest, BytesByAnInstruction) {
  ScheduleOptions options = PackAll();
  options.machine.vector_bytes = 64;
  options.machine.features = {"avx512vnni"};
  for (const char* b : {"B[k, j]", "B[j, k]"}) {
    for (const char* type : {"u8", "i8"}) {
      const std::string text =
          Packed(StrCat("func f(A: ", type, "[n, m] in, B: i8[", b[2] == 'k' ? "m, n" : "n, m",
                        "] in, C: i32[n, n], n: i32, m: i32) {\n"
                        "  for (i, 0, n) { for (j, 0, n) { for (k, 0, m) {\n"
                        "    C[i, j] = C[i, j] + cast(i32, A[i, k]) * cast(i32, ",
                        b, ") } } }\n}\n"),
                 options);
      EXPECT_THAT(text, HasSubstr("by vpdpbusd.512"));
      EXPECT_EQ(text.find("column.sums") != std::string::npos, std::string(type) == "i8") << text;
    }
  }
}

// Operands that an instruction takes only as wider ones: panels have them so. Narrow ones are better where there are
// instructions for both.
TEST(PackTest, BytesAsWordsByAnInstruction) {
  const auto product = [](const std::string& a, const std::string& b, const char* indices) {
    return StrCat("func f(A: ", a, "[n, m] in, B: ", b, "[", indices[0] == 'k' ? "m, n" : "n, m",
                  "] in, C: i32[n, n], n: i32, m: i32) {\n"
                  "  for (i, 0, n) { for (j, 0, n) { for (k, 0, m) {\n"
                  "    C[i, j] = C[i, j] + cast(i32, A[i, k]) * cast(i32, B[",
                  indices, "]) } } }\n}\n");
  };
  ScheduleOptions words = PackAll(), bytes = PackAll();
  words.machine.vector_bytes = 32;
  words.machine.features = {"avx2"};
  bytes.machine.vector_bytes = 64;
  bytes.machine.features = {"avx512vnni"};
  for (const std::string a : {"i8", "u8", "i16"}) {
    for (const std::string b : {"i8", "u8", "i16"}) {
      for (const char* indices : {"k, j", "j, k"}) {
        const std::string text = Packed(product(a, b, indices), words);
        EXPECT_THAT(text, HasSubstr("by vpmaddwd.256")) << a << b;
        EXPECT_THAT(text, HasSubstr("row.panels: i16")) << a << b;
        EXPECT_THAT(text, HasSubstr("column.panels: i16")) << a << b;
        const bool has_bytes = a != "i16" && b == "i8";
        EXPECT_THAT(Packed(product(a, b, indices), bytes),
                    HasSubstr(has_bytes ? "by vpdpbusd.512" : "by vpdpwssd.512"))
            << a << b;
      }
    }
  }
  for (const char* wide : {"u16", "i64"}) {
    EXPECT_THAT(Packed(product(wide, "i8", "k, j"), words), Not(HasSubstr("by vp"))) << wide;
  }
}

// Padding that is not zero, of bytes that panels have plus 128, or as words.
TEST(PackTest, PaddingOfBytesByAnInstruction) {
  const char* const program =
      "func f(A: i8[9, 12] in, B: i8[6, 12] in, C: i32[9, 6]) {\n"
      "  for (i, 0, 9) { for (j, 0, 6) { for (k, 0, 12) {\n"
      "    C[i, j] = C[i, j] + cast(i32, select(0 < i && i < 8, A[i, k], i8(-3))) * cast(i32, B[j, "
      "k])"
      " } } }\n}\n";
  for (const auto& [feature, bytes] : {std::pair("avx2", 32), std::pair("avx512vnni", 64)}) {
    ScheduleOptions options = PackAll();
    options.machine.vector_bytes = bytes;
    options.machine.features = {feature};
    EXPECT_THAT(Packed(program, options), HasSubstr("by vp")) << feature;
  }
}

// A product of `rows` rows by 40 columns of these types; B's indices are "j, k" or "k, j".
std::string ByTiles(const std::string& a, const std::string& b, int rows, int sums,
                    const std::string& indices) {
  const std::string sum = a == "bf16" ? "f32" : "i32";
  const std::string extents = indices[0] == 'j' ? StrCat("40, ", sums) : StrCat(sums, ", 40");
  return StrCat("func f(A: ", a, "[", rows, ", ", sums, "] in, B: ", b, "[", extents,
                "] in, C: ", sum, "[", rows, ", 40] out) {\n  for (i, 0, ", rows,
                ") { for (j, 0, 40) {\n    C[i, j] = ", sum == "f32" ? "0.0" : "0",
                "\n    for (k, 0, ", sums, ") { C[i, j] = C[i, j] + cast(", sum,
                ", A[i, k]) * cast(", sum, ", B[", indices, "]) } } }\n}\n");
}

// Sums of bf16 by an instruction that changes their order: of values whose sums are exact, the results are the same.
TEST(PackTest, FloatsByAnInstruction) {
  ScheduleOptions options = PackAll();
  options.machine.vector_bytes = 64;
  options.machine.features = {"avx512bf16"};
  options.takes_dots = true;
  for (const char* update : {"C[i, j] + X * Y", "X * Y + C[i, j]", "fma(X, Y, C[i, j])"}) {
    const std::string value =
        absl::StrReplaceAll(update, {{"X", "cast(f32, A[i, k])"}, {"Y", "cast(f32, B[k, j])"}});
    const std::string program = StrCat(
        "func f(A: bf16[n, m] in, B: bf16[m, n] in, C: f32[n, n] out, n: i32, m: i32) {\n"
        "  for (i, 0, n) { for (j, 0, n) {\n    C[i, j] = 0.0\n    for (k, 0, m) { C[i, j] = ",
        value, " } } }\n}\n");
    EXPECT_THAT(Packed(program, options, ir::Values::kExact), HasSubstr("by vdpbf16ps.512"));
    // A nest that does not allow it keeps its bits.
    ScheduleOptions exact = options;
    exact.takes_dots = false;
    EXPECT_THAT(Packed(program, exact), Not(HasSubstr("by vdp")));
  }
  // Products that are taken off, and operands of other types.
  for (const auto& [type, value] :
       {std::pair("bf16", "C[i, j] - cast(f32, A[i, k]) * cast(f32, B[k, j])"),
        std::pair("f16", "C[i, j] + cast(f32, A[i, k]) * cast(f32, B[k, j])")}) {
    EXPECT_THAT(Packed(StrCat("func f(A: ", type, "[n, n] in, B: ", type,
                              "[n, n] in, C: f32[n, n], n: i32) {\n  for (i, 0, n) { for (j, 0, n) "
                              "{ for (k, 0, n) { C[i, j] = ",
                              value, " } } }\n}\n"),
                       options),
                Not(HasSubstr("by vdp")));
  }
}

TEST(PackTest, FloatsByTiles) {
  ScheduleOptions options = PackAll();
  options.machine.vector_bytes = 64;
  options.machine.features = {"avx512bf16", "amx-bf16"};
  options.machine.near_bytes = 48 << 10;
  options.machine.cache_bytes = 2 << 20;
  options.takes_dots = true;
  for (const auto& [rows, sums] : {std::pair(40, 32), std::pair(32, 64), std::pair(33, 35)}) {
    const std::string text =
        Packed(ByTiles("bf16", "bf16", rows, sums, "j, k"), options, ir::Values::kExact);
    EXPECT_THAT(text, HasSubstr("by tdpbf16ps"));
    const bool has_panels = text.find("row.panels") != std::string::npos;
    EXPECT_EQ(has_panels, sums % 32 != 0 || rows % 32 != 0) << text;
    EXPECT_THAT(Packed(ByTiles("bf16", "bf16", rows, sums, "k, j"), options, ir::Values::kExact),
                HasSubstr("by tdpbf16ps"));
  }
}

// Bytes by tiles: both operands signed or not as they are, rows read in place where they can be.
TEST(PackTest, BytesByTiles) {
  ScheduleOptions options = PackAll();
  options.machine.vector_bytes = 64;
  options.machine.features = {"avx512vnni", "amx-int8"};
  options.machine.near_bytes = 48 << 10;
  options.machine.cache_bytes = 2 << 20;
  for (const char* a : {"u8", "i8"}) {
    for (const char* b : {"u8", "i8"}) {
      for (const auto& [rows, sums] : {std::pair(40, 64), std::pair(32, 128), std::pair(33, 70)}) {
        const std::string text = Packed(ByTiles(a, b, rows, sums, "j, k"), options);
        EXPECT_THAT(text, HasSubstr(StrCat("by tdpb", a[0] == 'u' ? "u" : "s",
                                           b[0] == 'u' ? "u" : "s", "d")));
        // Rows that are whole steps are read where they are; a last tile that is not whole has a panel.
        const bool has_panels = text.find("row.panels") != std::string::npos;
        EXPECT_EQ(has_panels, sums % 64 != 0 || rows % 32 != 0) << text;
        EXPECT_THAT(text, HasSubstr("C[")) << text;
        // Rows of memory that are interleaved.
        EXPECT_THAT(Packed(ByTiles(a, b, rows, sums, "k, j"), options), HasSubstr("by tdpb"));
      }
    }
  }
}

// The run with what comes before it, as one function.
ir::Function Joined(const ir::Function& original, const ir::Function& before,
                    const ir::Function& run) {
  ir::Function joined = original;
  joined.body = original.context->Seq({before.body, run.body});
  for (const ir::Param& param : before.params) {
    if (param.access != ir::Access::kOut) continue;
    joined.body = original.context->Allocate(param.buffer, joined.body);
  }
  return joined;
}

// Weights that are known before the run are packed by a function of its own,
// also for a single row, whose weights would take longer to pack than to use.
TEST(PackTest, ColumnsOfConstantsArePackedBefore) {
  for (const char* type : {"f32", "i8"}) {
    const std::string sum = type[0] == 'f' ? "f32" : "i32";
    const auto wide = [&](const std::string& operand) {
      return sum == "i32" ? StrCat("cast(i32, ", operand, ")") : operand;
    };
    for (const int64_t rows : {1, 2, 3, 5, 17}) {
      for (const int64_t columns : {1, 4, 9, 33}) {
        for (const int64_t sums : {1, 7, 40, 83}) {
          const std::string text =
              StrCat("func f(A: ", type, "[", rows, ", ", sums, "] in, B: ", type, "[", columns,
                     ", ", sums, "] in, D: ", sum, "[", columns, "] in, C: ", sum, "[", rows, ", ",
                     columns, "] out) {\n  for (i, 0, ", rows, ") { for (j, 0, ", columns,
                     ") {\n    C[i, j] = D[j]\n    for (k, 0, ", sums, ") { C[i, j] = C[i, j] + ",
                     wide("A[i, k]"), " * ", wide("B[j, k]"), " } } }\n}\n");
          const absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
          ASSERT_TRUE(function.ok()) << function.status();
          ScheduleOptions options = PackAll();
          options.constants = {"B"};
          if (sum == "i32") {
            options.machine.vector_bytes = 64;
            options.machine.features = {"avx512vnni"};
          }
          ir::Function run = *function;
          const absl::StatusOr<ScheduleReport> report = Schedule(run, options);
          ASSERT_TRUE(report.ok()) << report.status();
          ASSERT_TRUE(report->before.has_value()) << text << report->ToString();
          EXPECT_EQ(report->before->name, "f_before");
          EXPECT_EQ(run.params[1].name(), "column.panels");
          EXPECT_EQ(run.params.size(), sum == "i32" ? 5 : 4);
          EXPECT_EQ(ir::CompareMeaning(*function, Joined(*function, *report->before, run), 1), "")
              << report->ToString() << ir::Print(*report->before) << ir::Print(run);
        }
      }
    }
  }
}

// A product of one row whose weights come from memory: all cores read a part of them, since one alone does not use what
// the memory gives.
TEST(PackTest, CoresShareTheColumnsOfOneRow) {
  for (const char* type : {"f32", "i8"}) {
    const std::string sum = type[0] == 'f' ? "f32" : "i32";
    const auto wide = [&](const std::string& operand) {
      return sum == "i32" ? StrCat("cast(i32, ", operand, ")") : operand;
    };
    const std::string text =
        StrCat("func f(A: ", type, "[1, 300] in, B: ", type, "[512, 300] in, C: ", sum,
               "[1, 512] out) {\n  for (i, 0, 1) { for (j, 0, 512) {\n    C[i, j] = ",
               sum == "i32" ? "0" : "0.0", "\n    for (k, 0, 300) { C[i, j] = C[i, j] + ",
               wide("A[i, k]"), " * ", wide("B[j, k]"), " } } }\n}\n");
    const absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
    ASSERT_TRUE(function.ok()) << function.status();
    ScheduleOptions options;
    options.machine = SmallMachine();
    options.constants = {"B"};
    if (sum == "i32") {
      options.machine.vector_bytes = 64;
      options.machine.features = {"avx512vnni"};
    }
    ir::Function run = *function;
    const absl::StatusOr<ScheduleReport> report = Schedule(run, options);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_TRUE(report->before.has_value()) << report->ToString();
    EXPECT_THAT(ir::Print(run), HasSubstr("parallel (")) << report->ToString();
    EXPECT_EQ(ir::CompareMeaning(*function, Joined(*function, *report->before, run), 1), "");
  }
}

// A function whose size is not known has no place for panels, and one that
// stores its weights no constants.
TEST(PackTest, OtherColumnsArePackedInTheRun) {
  ScheduleOptions options = PackAll();
  options.constants = {"B"};
  for (const char* shape : {"n, n", "5, 5"}) {
    const std::string count = shape[0] == 'n' ? "n" : "5";
    const absl::StatusOr<ir::Function> function = ir::ParseFunction(
        StrCat("func f(A: f32[", shape, "] in, B: f32[", shape, "] in, C: f32[", shape,
               "], n: i32) {\n  for (i, 0, ", count, ") { for (j, 0, ", count, ") { for (k, 0, ",
               count, ") {\n    C[i, j] = C[i, j] + B[i, k] * A[k, j] } } }\n}\n"));
    ASSERT_TRUE(function.ok()) << function.status();
    ir::Function run = *function;
    const absl::StatusOr<ScheduleReport> report = Schedule(run, options);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_FALSE(report->before.has_value());
    EXPECT_EQ(run.params.size(), 4);
  }
}

// Element (r, s) of the window at (y, x) of an image of `in` rows and columns, with `outside` around it.
std::string ImageInWindow(int64_t stride, int64_t pad, int64_t in, const std::string& outside) {
  const std::string y = StrCat("y * ", stride, " + r - ", pad);
  const std::string x = StrCat("x * ", stride, " + s - ", pad);
  const std::string image = StrCat("X[", y, ", ", x, ", c]");
  if (pad == 0) return image;
  return StrCat("select(0 <= ", y, " && ", y, " < ", in, " && 0 <= ", x, " && ", x, " < ", in, ", ",
                image, ", ", outside, ")");
}

// Depthwise convolutions: channels of the image and of the filter are multiplied lane by lane, at all edges.
TEST(PackTest, LaneByLane) {
  for (const int64_t stride : {1, 2}) {
    for (const int64_t pad : {0, 1, 2}) {
      for (const int64_t channels : {3, 4, 9}) {
        for (const int64_t out : {1, 2, 5, 8}) {
          const int64_t in = (out - 1) * stride + 3 - 2 * pad;
          if (in < 1) continue;
          const std::string text =
              StrCat("func f(X: f32[", in, ", ", in, ", ", channels, "] in, F: f32[", channels,
                     ", 3, 3] in, Y: f32[", out, ", ", out, ", ", channels,
                     "] out) {\n  for (y, 0, ", out, ") { for (x, 0, ", out, ") { for (c, 0, ",
                     channels, ") {\n    Y[y, x, c] = 0.0\n    for (r, 0, 3) { for (s, 0, 3) {\n",
                     "      Y[y, x, c] = Y[y, x, c] + ", ImageInWindow(stride, pad, in, "0.0"),
                     " * F[c, r, s] } } } } }\n}\n");
          EXPECT_THAT(Packed(text), HasSubstr("packed in tiles of")) << text;
          const absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
          ASSERT_TRUE(function.ok()) << function.status();
          ScheduleOptions options = PackAll();
          options.constants = {"F"};
          ir::Function run = *function;
          const absl::StatusOr<ScheduleReport> report = Schedule(run, options);
          ASSERT_TRUE(report.ok()) << report.status();
          ASSERT_TRUE(report->before.has_value()) << text << report->ToString();
          EXPECT_EQ(ir::CompareMeaning(*function, Joined(*function, *report->before, run), 1), "")
              << ir::Print(run);
        }
      }
    }
  }
}

// Pooling: windows are folded lane by lane, in the order of the program, at all edges; with what the sums begin and end
// with. A result of one channel has its lanes along its last loop but one.
TEST(PackTest, WindowsLaneByLane) {
  for (const std::string& fold : {"max(E, V)", "min(V, E)", "E + V", "V + E", "E - V"}) {
    for (const int64_t stride : {1, 2}) {
      for (const int64_t pad : {0, 1}) {
        for (const int64_t channels : {1, 4, 9}) {
          for (const int64_t out : {2, 5, 8}) {
            if (channels == 1 && stride > 1) continue;
            const int64_t in = (out - 1) * stride + 3 - 2 * pad;
            if (in < 1) continue;
            const std::string value = ImageInWindow(stride, pad, in, "f16(0.5)");
            const std::string e = "S[y, x, c]";
            const std::string text = absl::StrReplaceAll(
                StrCat(
                    "func f(X: f16[N, N, C] in, Y: f16[O, O, C] out) {\n",
                    "  allocate S: f32[O, O, C]\n",
                    "  for (y, 0, O) { for (x, 0, O) { for (c, 0, C) {\n    S[y, x, c] = 0.0\n",
                    "    for (r, 0, 3) { for (s, 0, 3) { S[y, x, c] = ",
                    absl::StrReplaceAll(fold, {{"E", e}, {"V", StrCat("cast(f32, ", value, ")")}}),
                    " } } } } }\n", "  for (y, 0, O) { for (x, 0, O) { for (c, 0, C) {\n",
                    "    Y[y, x, c] = cast(f16, S[y, x, c] * 0.125) } } }\n}\n"),
                {{"N", StrCat(in)}, {"O", StrCat(out)}, {"C", StrCat(channels)}});
            const std::string code = Packed(text);
            EXPECT_THAT(code, HasSubstr("packed in tiles of")) << text;
            EXPECT_THAT(code, HasSubstr("ended as")) << text;
            EXPECT_THAT(code, Not(HasSubstr("column.panels"))) << text;
          }
        }
      }
    }
  }
}

// Sums over loops of their own are no windows, and few channels fill no vector: other loops are as fast or faster.
TEST(PackTest, WhatIsNoWindow) {
  EXPECT_THAT(Packed("func f(X: f32[9, 8, 16] in, Y: f32[9, 16]) {\n"
                     "  for (y, 0, 9) { for (c, 0, 16) { for (r, 0, 8) {\n"
                     "    Y[y, c] = max(Y[y, c], X[y, r, c]) } } }\n}\n"),
              Not(HasSubstr("packed")));
  EXPECT_THAT(Packed("func f(X: f32[9, 8, 1] in, Y: f32[8, 8, 1]) {\n"
                     "  for (y, 0, 8) { for (x, 0, 8) { for (c, 0, 1) { for (r, 0, 2) {\n"
                     "    Y[y, x, c] = max(Y[y, x, c], X[y + r, 7 - x, c]) } } } }\n}\n"),
              Not(HasSubstr("packed")));
  EXPECT_THAT(Packed("func f(X: f32[9, 8, 1] in, Y: f32[8, 2, 1]) {\n"
                     "  for (y, 0, 8) { for (x, 0, 1) { for (c, 0, 1) { for (r, 0, 2) {\n"
                     "    Y[y, x, c] = max(Y[y, x, c], X[y + r, x, c]) } } } }\n}\n"),
              Not(HasSubstr("packed")));
}

// Image and result that a core's second cache does not hold come and go by rows, all channels of a pixel together. In a
// tile, what reads one vector of memory is side by side: each sum gets its products in the order of the window.
TEST(PackTest, LaneByLaneInTheOrderOfMemory) {
  const auto depthwise = [](int64_t size) {
    return StrCat("func f(X: f32[", size, ", ", size, ", 9] in, F: f32[9, 3] in, Y: f32[", size,
                  ", ", size, ", 9] out) {\n  for (y, 0, ", size, ") { for (x, 0, ", size - 2,
                  ") { for (c, 0, 9) {\n    Y[y, x, c] = 0.0\n    for (s, 0, 3) {\n",
                  "      Y[y, x, c] = Y[y, x, c] + X[y, x + s, c] * F[c, s] } } } }\n}\n");
  };
  ScheduleOptions options = PackAll();
  options.machine.vector_registers = 16;
  const std::string near = Packed(depthwise(5), options), far = Packed(depthwise(17), options);
  EXPECT_THAT(near, HasSubstr("parallel (panel"));
  EXPECT_THAT(far, HasSubstr("parallel (row"));
  EXPECT_THAT(far, HasSubstr("for (panel"));
  // The second product of the first sum reads pixel 1, before the first one of the third sum reads pixel 2.
  const size_t first = far.find("i64(0) + i64(1)"), third = far.find("i64(2) + i64(0)");
  ASSERT_NE(third, std::string::npos) << far;
  EXPECT_LT(first, third) << far;
}

// Filters are turned around in squares of all lanes, unless most of these would be zeros: those of three sums.
TEST(PackTest, SquaresOfFewSums) {
  const auto has_squares = [](int64_t sums) {
    const std::string text = StrCat(
        "func f(X: f32[64, ", sums, "] in, F: f32[64, ", sums, "] in, Y: f32[64, 64] out) {\n",
        "  for (i, 0, 64) { for (j, 0, 64) { Y[i, j] = 0.0 for (k, 0, ", sums, ") { ",
        "Y[i, j] = Y[i, j] + X[i, k] * F[j, k] } } }\n}\n");
    ScheduleOptions options = PackAll();
    options.machine.vector_bytes = 64;
    options.constants = {"F"};
    const ir::Function function = *ir::ParseFunction(text);
    ir::Function run = function;
    const absl::StatusOr<ScheduleReport> report = Schedule(run, options);
    EXPECT_TRUE(report.ok() && report->before) << report.status() << text;
    if (!report.ok() || !report->before) return false;
    EXPECT_EQ(ir::CompareMeaning(function, Joined(function, *report->before, run), 1), "");
    return ir::Print(*report->before).find("square") != std::string::npos;
  };
  EXPECT_FALSE(has_squares(3));
  EXPECT_TRUE(has_squares(16));
}

// What is no contraction, or has no panels.
TEST(PackTest, LeavesOthersAlone) {
  for (const char* text : {
           // A vector.
           "func f(A: f32[n, n] in, x: f32[n] in, y: f32[n], n: i32) {\n"
           "  for (i, 0, n) { for (k, 0, n) { y[i] = y[i] + A[i, k] * x[k] } } }\n",
           // A triangle.
           "func f(A: f32[n, n] in, B: f32[n, n] in, C: f32[n, n], n: i32) {\n"
           "  for (i, 0, n) { for (j, 0, n) { for (k, 0, i) {\n"
           "    C[i, j] = C[i, j] + A[i, k] * B[k, j] } } } }\n",
           // An operand that is the result.
           "func f(A: f32[n, n] in, C: f32[n, n], n: i32) {\n"
           "  for (i, 0, n) { for (j, 0, n) { for (k, 0, n) {\n"
           "    C[i, j] = C[i, j] + A[i, k] * C[k, j] } } } }\n",
           // Elements that several rows store.
           "func f(A: f32[n, n] in, B: f32[n, n] in, C: f32[n + 1, n], n: i32) {\n"
           "  for (i, 0, n) { for (u, 0, 2) { for (j, 0, n) { for (k, 0, n) {\n"
           "    C[i + u, j] = C[i + u, j] + A[i, k] * B[k, j] } } } } }\n",
       }) {
    EXPECT_THAT(Packed(text), Not(HasSubstr("packed"))) << text;
  }
}

}  // namespace
}  // namespace polynao::poly
