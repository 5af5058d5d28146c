// Random contractions in packed tiles, compared by the interpreter, and compiled, with the program as it is written.
// POLYNAO_RANDOM_CASES=5000 makes it that many programs, POLYNAO_SEED=1000 begins with that one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/text.h"
#include "compiler/codegen/llvm/compile.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/same_meaning.h"
#include "compiler/ir/text.h"
#include "compiler/poly/arrange/machine_for_test.h"
#include "compiler/poly/poly.h"
#include "testing/fuzz.h"

namespace polynao::poly {
namespace {

// A contraction with loops of each role, in a random order, over arrays of random layouts: with windows, strides,
// padding, casts, factors, an initial statement, and a statement behind.
class Maker {
 public:
  Maker(uint64_t seed, bool is_large) : random_(seed), is_large_(is_large) {}

  std::string Make() {
    AddLoops("b", 0, Percent(30) ? 1 : 0);
    AddLoops("i", 1, Pick(1, 2));
    AddLoops("j", 2, Pick(1, 2));
    AddLoops("k", 3, Pick(1, 2));
    // Without a product: windows along rows of memory, folded lane by lane.
    const bool is_fold = Percent(15);
    const bool has_window = is_fold || Percent(40);
    const std::string type = Choose({"f32", "f64", "i32", "i32", "i8"});
    // The lane is the last index of the result, mostly.
    std::vector<size_t> result = LoopsOf({0, 1, 2}), rows = LoopsOf({0, 1, 3}),
                        columns = LoopsOf({0, 2, 3});
    if (is_fold) {
      const std::vector<size_t> lanes = LoopsOf({2});
      rows.insert(rows.end(), lanes.begin(), lanes.end());
    } else {
      for (auto* list : {&result, &rows, &columns})
        std::shuffle(list->begin(), list->end(), random_);
    }
    const std::string element = StrCat("C[", Indices(result), "]");
    std::string a = StrCat("A[", Indices(rows, has_window), "]"),
                b = StrCat("B[", Indices(columns), "]");
    const bool is_narrow = type == "i32" && Percent(80);
    const bool has_dots = type == "f32" && Percent(50);
    if (has_dots) values_ = ir::Values::kExact;
    const std::string from = is_narrow  ? Choose({"i8", "i8", "u8", "i16"})
                             : has_dots ? "bf16"
                                        : type;
    if (is_narrow && Percent(30))
      a = StrCat("select(i0 < 3, ", a, ", ", from, "(", Pick(0, 9), "))");
    const std::string other = from == "u8" ? Choose({"i8", "u8"}) : from;
    if (from != type)
      a = StrCat("cast(", type, ", ", a, ")"), b = StrCat("cast(", type, ", ", b, ")");
    const bool is_private = Percent(40);
    if (Percent(20)) a = StrCat("alpha[0] * ", a);
    std::string text =
        StrCat("func f(A: ", from, "[", Extents(rows, has_window), "] in, B: ", other, "[",
               Extents(columns), "] in, alpha: ", type, "[1] in, ",
               is_private ? "" : StrCat("C: ", type, "[", Extents(result), "], "), "D: ", type, "[",
               Extents(result), "] out, n: i32) {\n",
               is_private ? StrCat("  allocate C: ", type, "[", Extents(result), "]\n") : "");
    // Which zero a sum of zeros is depends on their order.
    if (is_private || has_dots || Percent(50))
      StrAppend(&text, Nest(result, StrCat(element, " = ", type[0] == 'f' ? "0.5" : "3")));
    std::vector<size_t> order = LoopsOf({0, 1, 2, 3});
    std::shuffle(order.begin(), order.end(), random_);
    const std::string product = StrCat(a, " * ", b);
    StrAppend(&text, Nest(order, StrCat(element, " = ",
                                        is_fold       ? Fold(a, element)
                                        : Percent(20) ? StrCat(element, " - ", product)
                                        : Percent(20) ? StrCat(product, " + ", element)
                                        : Percent(20) && type[0] == 'f'
                                            ? StrCat("fma(", a, ", ", b, ", ", element, ")")
                                            : StrCat(element, " + ", product))));
    if (is_private || Percent(50)) {
      StrAppend(&text,
                Nest(result, StrCat("D[", Indices(result), "] = ", element, " + ", element)));
    }
    return StrCat(text, "}\n");
  }

  // Of bf16: those whose sums are exact in any order, which instructions may change.
  ir::Values values() const { return values_; }

 private:
  struct Loop {
    std::string name, extent;
    int role;
  };

  int Pick(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  std::string Fold(const std::string& a, const std::string& element) {
    if (Percent(40)) return StrCat(a, " + ", element);
    return StrCat(Choose({"max", "min"}), "(", element, ", ", a, ")");
  }
  bool Percent(int n) { return Pick(1, 100) <= n; }
  std::string Choose(const std::vector<std::string>& list) { return list[random_() % list.size()]; }
  void AddLoops(const std::string& name, int role, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string extent =
          Percent(40) ? "n" : StrCat(Pick(1, is_large_ && count == 1 ? 70 : 6));
      loops_.push_back({StrCat(name, i), extent, role});
    }
  }
  std::vector<size_t> LoopsOf(const std::vector<int>& roles) {
    std::vector<size_t> list;
    for (size_t i = 0; i < loops_.size(); ++i) {
      if (std::count(roles.begin(), roles.end(), loops_[i].role) > 0) list.push_back(i);
    }
    return list;
  }
  // With a window, the first row and the first sum share a dimension.
  bool IsShared(size_t loop, bool has_window) const {
    return has_window && loops_[loop].name == "k0";
  }
  std::string Indices(const std::vector<size_t>& list, bool has_window = false) const {
    std::vector<std::string> indices;
    for (const size_t i : list) {
      if (IsShared(i, has_window)) continue;
      const bool is_row = has_window && loops_[i].name == "i0";
      indices.push_back(is_row ? "i0 * 2 + k0" : loops_[i].name);
    }
    return absl::StrJoin(indices, ", ");
  }
  std::string Extents(const std::vector<size_t>& list, bool has_window = false) const {
    std::vector<std::string> extents;
    std::string window;
    for (const Loop& loop : loops_) {
      if (loop.name == "k0") window = loop.extent;
    }
    for (const size_t i : list) {
      if (IsShared(i, has_window)) continue;
      const bool is_row = has_window && loops_[i].name == "i0";
      extents.push_back(is_row ? StrCat(loops_[i].extent, " * 2 + ", window) : loops_[i].extent);
    }
    return absl::StrJoin(extents, ", ");
  }
  std::string Nest(const std::vector<size_t>& order, const std::string& store) const {
    std::string text = "  ";
    for (const size_t i : order)
      StrAppend(&text, "for (", loops_[i].name, ", 0, ", loops_[i].extent, ") { ");
    StrAppend(&text, store);
    for (size_t i = 0; i < order.size(); ++i) StrAppend(&text, " }");
    return text + "\n";
  }

  std::mt19937_64 random_;
  const bool is_large_;
  ir::Values values_ = ir::Values::kAll;
  std::vector<Loop> loops_;
};

ScheduleOptions OptionsOf(uint64_t seed) {
  std::mt19937_64 random(seed);
  ScheduleOptions options;
  options.machine = SmallMachine(4 + static_cast<int>(random() % 29));
  options.machine.cores = 1 + static_cast<int>(random() % 3);
  options.machine.vector_bytes = 8 << random() % 4;
  options.machine.near_bytes = 64 << random() % 5;
  options.machine.cache_bytes = 512 << random() % 4;
  if (random() % 3 == 0) {
    options.machine.vector_bytes = 64;
    options.machine.features = {"avx512vnni", "avx512bf16"};
    if (random() % 2 == 0) options.machine.features = {"amx-int8", "amx-bf16"};
    if (random() % 3 == 0) options.machine.vector_bytes = 32, options.machine.features = {"avx2"};
  }
  options.packing = Packing::kAll;
  options.takes_dots = true;
  return options;
}

bool IsPacked(const ScheduleReport& report) {
  return report.ToString().find(" packed in tiles") != std::string::npos;
}

TEST(PackRandomTest, KeepsTheMeaning) {
  const int64_t cases = FuzzCases(60);
  const auto first = static_cast<int64_t>(FuzzSeed());
  int packed = 0, by_bf16 = 0;
  for (int64_t seed = first; seed < first + cases; ++seed) {
    Maker maker(static_cast<uint64_t>(seed), false);
    const std::string text = maker.Make();
    const absl::StatusOr<ir::Function> before = ir::ParseFunction(text);
    ASSERT_TRUE(before.ok()) << text << before.status();
    ir::Function after = *before;
    const absl::StatusOr<ScheduleReport> report =
        Schedule(after, OptionsOf(static_cast<uint64_t>(seed)));
    ASSERT_TRUE(report.ok()) << text << report.status();
    ASSERT_TRUE(report->internal_errors.empty()) << text << report->internal_errors[0];
    packed += IsPacked(*report);
    by_bf16 += report->ToString().find("bf16ps") != std::string::npos;
    for (const int64_t n : {0, 1, 3, 7}) {
      ir::MeaningOptions meaning;
      meaning.arguments.scalars["n"] = ir::Argument::Int(n);
      meaning.arguments.values = maker.values();
      ASSERT_EQ(ir::CompareMeaning(*before, after, static_cast<uint64_t>(seed), meaning), "")
          << "seed " << seed << ", n = " << n << "\n"
          << text << report->ToString();
    }
  }
  std::printf("seeds %d to %d: %d programs packed, %d by instructions for bf16\n",
              static_cast<int>(first), static_cast<int>(first + cases - 1), packed, by_bf16);
  EXPECT_GT(packed, cases / 3);
}

TEST(PackRandomTest, KeepsTheMeaningCompiled) {
  const int64_t cases = FuzzCases(2);
  const auto first = static_cast<int64_t>(FuzzSeed());
  for (int64_t seed = first; seed < first + cases; ++seed) {
    Maker maker(static_cast<uint64_t>(seed), true);
    const std::string text = maker.Make();
    const absl::StatusOr<ir::Function> before = ir::ParseFunction(text);
    ASSERT_TRUE(before.ok()) << text << before.status();
    ir::Function after = *before;
    ScheduleOptions options;
    options.machine = HostMachine(2).value();
    options.takes_dots = true;
    options.packing = Packing::kAll;
    const absl::StatusOr<ScheduleReport> report = Schedule(after, options);
    ASSERT_TRUE(report.ok()) << text << report.status();
    const auto compiled = codegen::Compile(after, {.threads = 2, .wide_vectors = true});
    ASSERT_TRUE(compiled.ok()) << text << compiled.status();
    for (const int64_t n : {1, 17}) {
      ir::RandomArgumentOptions arguments;
      arguments.scalars["n"] = ir::Argument::Int(n);
      arguments.values = maker.values();
      const absl::StatusOr<ir::RandomArguments> drawn =
          ir::RandomArguments::Draw(*before, static_cast<uint64_t>(seed), arguments);
      ASSERT_TRUE(drawn.ok()) << drawn.status();
      ASSERT_EQ(
          ir::Disagreement(*before, *drawn, [&](auto list) { return (*compiled)->Run(list); }), "")
          << "seed " << seed << ", n = " << n << "\n"
          << report->ToString();
    }
  }
}

}  // namespace
}  // namespace polynao::poly
