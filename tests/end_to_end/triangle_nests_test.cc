// Nests on the card that store triangles, bands and diagonals, or read what they store later: all values are those of
// the interpreter, and they take little longer than whole squares.
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "cases/run_nest.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace polynao::cases {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// `text` with T as its type, for n = 1, 2, ..
NestReport MustAgree(const std::string& text, const std::string& type = "f32", int64_t n = 70,
                     const std::string& config = "mlu370", const std::string& values = "exact") {
  const std::string typed = absl::StrReplaceAll(text, {{"TYPE", type}});
  SCOPED_TRACE(StrCat(typed, " ", config, " n=", n));
  const absl::StatusOr<ir::Module> module = ir::ParseModule(typed, "nest.nir");
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return NestReport();
  NestSettings settings;
  settings.executable.target = "diannao";
  settings.config = config;
  settings.values = values;
  settings.arguments = {StrCat("n=", n)};
  const absl::StatusOr<NestReport> report = RunNest(module->functions[0], settings);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return NestReport();
  EXPECT_EQ(report->difference, "") << absl::StrJoin(report->notes, "\n");
  return *report;
}

std::string Elementwise(const std::string& condition) {
  return StrCat("func part(A: TYPE[n, n] in, C: TYPE[n, n], n: i32) {\n",
                "  for (i, 0, n) { for (j, 0, n) { if (", condition,
                ") { C[i, j] = A[i, j] + A[i, j] } } }\n}\n");
}

// All elements are computed, those of the triangle are stored, the others as they were.
TEST(TriangleNestsTest, TrianglesAndBandsOfAnyType) {
  for (const std::string type : {"f32", "f16", "i32"}) {
    for (const std::string config : {"mlu270", "mlu370"}) {
      const NestReport square = MustAgree(Elementwise("true"), type, 130, config);
      for (const char* condition : {"j <= i", "j < i", "i <= j", "i - 3 <= j && j <= i + 2",
                                    "i + j < n", "j * 2 <= i + 1"}) {
        const NestReport part = MustAgree(Elementwise(condition), type, 130, config);
        EXPECT_THAT(part.notes, ElementsAre("S0.kept -> C.kept", "S0.ones S0.mask S0 -> C"))
            << condition;
        EXPECT_LE(*part.cycles, 4 * *square.cycles) << condition;
      }
    }
    for (const int64_t n : {1, 2, 7}) {
      MustAgree(Elementwise("j <= i"), type, n);
      MustAgree(Elementwise("j < i"), type, n);
    }
  }
}

// Sums are computed of the whole square, by the tensor unit; what they begin with and what is made of them goes with
// the only store.
TEST(TriangleNestsTest, SumsOfATriangle) {
  const std::string text =
      "func syrk(C: TYPE[n, n], A: TYPE[n, n] in, n: i32) {\n  for (i, 0, n) {\n"
      "    for (j, 0, LENGTH) { C[i, j] = C[i, j] + C[i, j] }\n"
      "    for (k, 0, n) { for (j, 0, LENGTH) { C[i, j] = C[i, j] + A[i, k] * A[j, k] } }\n"
      "    for (j, 0, LENGTH) { C[i, j] = C[i, j] + C[i, j] }\n  }\n}\n";
  const auto of = [&](const char* length) {
    return absl::StrReplaceAll(text, {{"LENGTH", length}});
  };
  const NestReport triangle = MustAgree(of("i + 1"), "f32", 130);
  EXPECT_EQ(triangle.notes.back(), "S1.all S2.ones S2.mask S2 -> C");
  EXPECT_LE(*triangle.cycles, 3 * *MustAgree(of("n"), "f32", 130).cycles);
  for (const char* type : {"f16", "i32"}) MustAgree(of("i + 1"), type, 33);
  for (const int64_t n : {1, 7}) MustAgree(of("i"), "f32", n);
}

// Two stores of one part are one, but not where something in between overwrites what the first one reads.
TEST(TriangleNestsTest, WhatIsOverwrittenInBetween) {
  const auto text = [](const char* between) {
    return StrCat("func between(D: TYPE[n, n], C: TYPE[n, n], n: i32) {\n",
                  "  for (i, 0, n) { for (j, 0, i + 1) { C[i, j] = D[i, j] + D[i, j] } }\n",
                  between,
                  "  for (i, 0, n) { for (j, 0, i + 1) { C[i, j] = C[i, j] + C[i, j] } }\n}\n");
  };
  const auto stores = [](const NestReport& report) {
    return std::count_if(report.notes.begin(), report.notes.end(),
                         [](const std::string& note) { return note.ends_with(" -> C"); });
  };
  EXPECT_EQ(stores(MustAgree(text(""))), 1);
  EXPECT_EQ(stores(MustAgree(text("  for (i, 0, n) { for (j, 0, n) { D[i, j] = TYPE(5) } }\n"))),
            2);
  // Nor where the second one reads more of the first one's results than the element that it stores: the diagonal's.
  MustAgree(
      "func mirrored(D: TYPE[n, n] in, C: TYPE[n, n], n: i32) {\n"
      "  for (i, 0, n) { for (j, 0, i + 1) { C[i, j] = D[i, j] + D[i, j] } }\n"
      "  for (i, 0, n) { for (j, 0, i + 1) { C[i, j] = C[i, j] + C[j, i] } }\n}\n");
}

// What is computed on chip is multiplied with itself there.
TEST(TriangleNestsTest, ProductsOfAComputedTensorWithItself) {
  for (const char* config : {"mlu270", "mlu370"}) {
    MustAgree(
        "func square(X: TYPE[n, n] in, Y: TYPE[n, n] out, n: i32) {\n  allocate T: TYPE[n, n]\n"
        "  for (i, 0, n) { for (j, 0, n) { T[i, j] = X[i, j] + X[i, j] } }\n"
        "  for (i, 0, n) { for (j, 0, n) {\n    Y[i, j] = TYPE(0)\n"
        "    for (k, 0, n) { Y[i, j] = Y[i, j] + T[i, k] * T[j, k] }\n  } }\n}\n",
        "i32", 31, config);
  }
}

// Two products in one sum: each is one for the tensor unit.
TEST(TriangleNestsTest, TwoProductsInOneSum) {
  const auto text = [](const char* products) {
    return StrCat("func syr2k(A: TYPE[n, n] in, B: TYPE[n, n] in, C: TYPE[n, n], n: i32) {\n",
                  "  for (i, 0, n) { for (j, 0, i + 1) { for (k, 0, n) {\n    C[i, j] = C[i, j] + ",
                  products, "\n  } } }\n}\n");
  };
  const NestReport one = MustAgree(text("A[i, k] * B[j, k]"), "f32", 130);
  const NestReport two = MustAgree(text("A[i, k] * B[j, k] + B[i, k] * A[j, k]"), "f32", 130);
  EXPECT_LE(*two.cycles, 3 * *one.cycles);
}

// A sum over some rows alone, read in place before these are stored: of a copy.
TEST(TriangleNestsTest, WhatIsStoredLaterIsReadOfACopy) {
  const std::string text =
      "func trmm(A: TYPE[n, n] in, B: TYPE[n, n], n: i32) {\n"
      "  for (i, 0, n) { for (j, 0, n) {\n"
      "    for (k, i + 1, n - 1 - i) { B[i, j] = B[i, j] + A[k, i] * B[k, j] }\n"
      "    B[i, j] = B[i, j] + B[i, j]\n  } }\n}\n";
  EXPECT_THAT(MustAgree(text).notes, Contains("S0.old -> B.old"));
  MustAgree(text, "i32", 7, "mlu270");
  // Not what is stored before.
  const NestReport scan = MustAgree(
      "func scan(B: TYPE[n, n], n: i32) {\n"
      "  for (i, 1, n - 1) { for (j, 0, n) { B[i, j] = B[i, j] + B[i - 1, j] } }\n}\n");
  EXPECT_THAT(scan.notes, Not(Contains(HasSubstr("B.old"))));
  // A copy of a result of which the nest has stored a part.
  MustAgree(
      "func part(X: TYPE[n] in, B: TYPE[n] out, n: i32) {\n"
      "  for (i, 0, n - 2) { B[i] = X[i] }\n"
      "  for (i, 0, n - 3) { B[i] = B[i + 1] + X[i] }\n}\n");
}

// A later statement may run first.
TEST(TriangleNestsTest, StatementsInAnotherOrder) {
  const NestReport report = MustAgree(
      "func symm(C: TYPE[n, n], A: TYPE[n, n] in, B: TYPE[n, n] in, n: i32) {\n"
      "  for (i, 0, n) { for (j, 0, n) {\n"
      "    for (k, 0, i) { C[k, j] = C[k, j] + B[i, j] * A[i, k] }\n"
      "    C[i, j] = C[i, j] + C[i, j]\n  } }\n}\n");
  for (const std::string& note : report.notes) EXPECT_THAT(note, Not(HasSubstr("i=")));
}

// Both triangles and the diagonal of a result; of an allocation, which holds nothing before.
TEST(TriangleNestsTest, MirroredTrianglesAndDiagonals) {
  const std::string stores =
      "  for (i, 0, n) {\n    C[i, i] = A[i, 0]\n"
      "    for (j, i + 1, n - 1 - i) { C[i, j] = A[i, j] + A[j, i]\n C[j, i] = C[i, j] }\n  }\n";
  const NestReport result = MustAgree(
      StrCat("func both(A: TYPE[n, n] in, C: TYPE[n, n] out, n: i32) {\n", stores, "}\n"));
  for (const std::string& note : result.notes) EXPECT_THAT(note, Not(HasSubstr("i=")));
  for (const char* type : {"f32", "i32"}) {
    MustAgree(
        StrCat("func local(A: TYPE[n, n] in, Y: TYPE[n, n] out, n: i32) {\n"
               "  allocate C: TYPE[n, n]\n",
               stores, "  for (i, 0, n) { for (j, 0, n) { Y[i, j] = C[i, n - 1 - j] } }\n}\n"),
        type);
  }
  MustAgree(
      "func lower(A: TYPE[n, n] in, Y: TYPE[n, n] out, n: i32) {\n  allocate C: TYPE[n, n]\n"
      "  for (i, 1, n - 1) { for (j, 0, i) { C[i, j] = A[i, j] + A[j, i] } }\n"
      "  for (i, 2, n - 2) { for (j, 1, i - 1) { Y[i, j] = C[i, j - 1] + C[i, j] } }\n}\n");
}

// What cannot be computed of all elements of the box is computed of those that are stored.
TEST(TriangleNestsTest, ElementsThatDoNotExistAreNotComputed) {
  const NestReport outside = MustAgree(
      "func shifted(A: TYPE[n] in, C: TYPE[n, n], n: i32) {\n"
      "  for (i, 0, n) { for (j, 0, i + 1) { C[i, j] = A[i - j] } }\n}\n");
  EXPECT_THAT(outside.notes, Not(Contains(HasSubstr(".mask"))));
  // A divisor that is 0 above the diagonal.
  const NestReport quotients = MustAgree(
      "func quotients(A: i32[n, n] in, C: i32[n, n], n: i32) {\n  allocate D: i32[n, n]\n"
      "  for (i, 0, n) { for (j, 0, n) { D[i, j] = select(j <= i, 3, 0) } }\n"
      "  for (i, 0, n) { for (j, 0, i + 1) { C[i, j] = A[i, j] / D[i, j] } }\n}\n",
      "i32", 20);
  EXPECT_THAT(quotients.notes, Not(Contains(HasSubstr(".mask"))));
}

// NaN and infinity of elements that are not stored leave no trace; values that are kept are kept as they are.
TEST(TriangleNestsTest, AnyFloats) {
  for (const char* type : {"f32", "f16"}) {
    MustAgree(Elementwise("j < i"), type, 65, "mlu370", "all");
    MustAgree(
        "func roots(A: TYPE[n, n] in, C: TYPE[n, n], n: i32) {\n"
        "  for (i, 0, n) { for (j, 0, i) { C[i, j] = sqrt(A[j, i]) } }\n}\n",
        type, 65, "mlu370", "all");
  }
}

}  // namespace
}  // namespace polynao::cases
