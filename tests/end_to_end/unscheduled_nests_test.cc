// Functions of loop IR without threads on the card: all values are those of the interpreter, on random nests and
// machines. POLYNAO_RANDOM_CASES=2000 runs more of them, POLYNAO_SEED=7 the same ones again.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "cases/case_text.h"
#include "cases/run_case.h"
#include "cases/run_nest.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/random_program.h"
#include "compiler/ir/scalar_text.h"
#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/polybench/polybench.h"
#include "tests/end_to_end/card_graph_for_test.h"

namespace polynao::cases {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

NestSettings OnCard(const std::string& config = "mlu270") {
  NestSettings settings;
  settings.executable.target = "diannao";
  settings.config = config;
  settings.values = "exact";
  return settings;
}

absl::StatusOr<NestReport> RunText(const std::string& text, const NestSettings& settings) {
  const absl::StatusOr<ir::Module> module = ir::ParseModule(text, "nest.nir");
  if (!module.ok()) return module.status();
  return RunNest(module->functions[0], settings);
}

NestReport MustAgree(const std::string& text, const NestSettings& settings) {
  const absl::StatusOr<NestReport> report = RunText(text, settings);
  EXPECT_TRUE(report.ok()) << report.status() << "\n" << text;
  if (!report.ok()) return NestReport();
  EXPECT_EQ(report->difference, "") << text << "\n" << absl::StrJoin(report->notes, "\n");
  return *report;
}

// ---- random nests -------------------------------------------------------------------------------

// A function of one to five nests, each of which stores one tensor from those before it.
class RandomNests {
 public:
  explicit RandomNests(Random& random)
      : random_(random), type_(random.Of<std::string>({"f16", "f32", "i32"})) {}

  std::string Make() {
    Tensor t = Input(Shape());
    const int64_t nests = random_.Pick(1, 5);
    for (int64_t i = 0; i < nests; ++i) t = Next(t, i + 1 == nests);
    return StrCat("func random(", absl::StrJoin(params_, ", "), ") {\n", locals_, body_, "}\n");
  }

 private:
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
  };

  std::vector<int64_t> Shape() {
    std::vector<int64_t> shape;
    const int64_t rank = random_.Pick(1, 3);
    int64_t elements = 1;
    for (int64_t d = 0; d < rank; ++d) {
      shape.push_back(random_.Of<int64_t>({1, 2, 3, 5, 7, 16, 31, 64, 65}));
      if (elements * shape.back() > 6000) shape.back() = 2;
      elements *= shape.back();
    }
    return shape;
  }
  std::string Declared(const Tensor& t) const {
    return StrCat(t.name, ": ", type_, "[", absl::StrJoin(t.shape, ", "), "]");
  }
  Tensor Input(const std::vector<int64_t>& shape) {
    Tensor t = {StrCat("X", inputs_++), shape};
    params_.push_back(StrCat(Declared(t), " in"));
    return t;
  }
  // A tensor that the function stores: a parameter or, if something else is the result, an allocation.
  Tensor Output(const std::vector<int64_t>& shape, bool is_last) {
    Tensor t = {StrCat("T", outputs_++), shape};
    if (is_last || random_.OneIn(3)) {
      params_.push_back(StrCat(Declared(t), random_.OneIn(2) ? " out" : ""));
    } else {
      StrAppend(&locals_, "  allocate ", Declared(t), "\n");
    }
    return t;
  }

  static std::string Element(const Tensor& t, const std::vector<std::string>& at) {
    return StrCat(t.name, "[", absl::StrJoin(at, ", "), "]");
  }
  std::vector<std::string> Iterators(size_t rank) const {
    std::vector<std::string> all = {"i", "j", "k", "l"};
    all.resize(rank);
    return all;
  }
  // Loops over [begin, begin + extent) around `inner`.
  static std::string Loops(const std::vector<std::string>& iterators,
                           const std::vector<int64_t>& begin, const std::vector<int64_t>& extents,
                           const std::string& inner) {
    std::string text = "  ";
    for (size_t d = 0; d < iterators.size(); ++d) {
      StrAppend(&text, "for (", iterators[d], ", ", begin[d], ", ", extents[d], ") { ");
    }
    StrAppend(&text, inner);
    for (size_t d = 0; d < iterators.size(); ++d) text += " }";
    return text + "\n";
  }
  std::string Loops(const std::vector<int64_t>& extents, const std::string& inner) const {
    return Loops(Iterators(extents.size()), std::vector<int64_t>(extents.size()), extents, inner);
  }

  // A triangle, a band or a diagonal of two loops.
  std::string Part(const std::string& a, const std::string& b) const {
    const int64_t shift = random_.Pick(-3, 3);
    return random_.Of<std::string>(
        {StrCat(a, " <= ", b), StrCat(b, " < ", a), StrCat(a, " + ", shift, " <= ", b),
         StrCat(a, " + ", b, " < ", 5 + 3 * shift), StrCat(a, " == ", b),
         StrCat(b, " * 2 <= ", a, " + ", shift),
         StrCat(a, " <= ", b, " + ", 2 + shift, " && ", b, " <= ", a, " + 3")});
  }

  Tensor Next(const Tensor& t, bool is_last) {
    const size_t rank = t.shape.size(), d = random_.Pick(0, rank - 1);
    std::vector<std::string> at = Iterators(rank);
    std::vector<int64_t> shape = t.shape;
    switch (random_.Pick(0, 28)) {
      case 0: {  // lanes with a tensor of the last dimensions
        const size_t first = random_.Pick(0, rank - 1);
        const Tensor other = Input({shape.begin() + static_cast<ptrdiff_t>(first), shape.end()});
        const Tensor y = Output(shape, is_last);
        const std::string a = Element(t, at);
        const std::string b =
            Element(other, {at.begin() + static_cast<ptrdiff_t>(first), at.end()});
        const std::string value =
            random_.OneIn(2) ? StrCat(a, " + ", b) : StrCat("max(", a, ", ", b, ")");
        StrAppend(&body_, Loops(shape, StrCat(Element(y, at), " = ", value)));
        return y;
      }
      case 1: {  // transposed
        const Tensor y = Output({shape.rbegin(), shape.rend()}, is_last);
        const std::vector<std::string> from(at.rbegin(), at.rend());
        StrAppend(&body_, Loops(y.shape, StrCat(Element(y, at), " = ", Element(t, from))));
        return y;
      }
      case 2: {  // neighbours, of the inner elements alone
        if (shape[d] < 3) break;
        const Tensor y = Output(shape, is_last);
        // What the stencil does not store.
        StrAppend(&body_, Loops(shape, StrCat(Element(y, at), " = ", Zero())));
        std::vector<std::string> before = at, after = at;
        before[d] = StrCat(at[d], " - 1");
        after[d] = StrCat(at[d], " + 1");
        std::vector<int64_t> begin(rank), extents = shape;
        begin[d] = 1;
        extents[d] -= 2;
        StrAppend(&body_, Loops(at, begin, extents,
                                StrCat(Element(y, at), " = ", Element(t, before), " + ",
                                       Element(t, after))));
        return y;
      }
      case 3: {  // every other
        shape[d] = (shape[d] + 1) / 2;
        const Tensor y = Output(shape, is_last);
        std::vector<std::string> from = at;
        from[d] = StrCat(at[d], " * 2");
        StrAppend(&body_, Loops(shape, StrCat(Element(y, at), " = ", Element(t, from))));
        return y;
      }
      case 4: {  // with margins
        shape[d] += 2;
        const Tensor y = Output(shape, is_last);
        std::vector<std::string> from = at;
        from[d] = StrCat(at[d], " - 1");
        const std::string value =
            random_.OneIn(2) ? Element(t, from) : StrCat(Element(t, from), " + ", Element(t, from));
        StrAppend(&body_,
                  Loops(shape, StrCat(Element(y, at), " = select(1 <= ", at[d], " && ", at[d],
                                      " < ", t.shape[d] + 1, ", ", value, ", ", Zero(), ")")));
        return y;
      }
      case 6: {  // places between elements: of every third one, shifted
        const int64_t step = random_.Pick(2, 3), shift = random_.Pick(0, 4);
        shape[d] = shape[d] * step - random_.Pick(0, 2);
        if (shape[d] < 1) break;
        const Tensor y = Output(shape, is_last);
        std::vector<std::string> from = at;
        from[d] = StrCat("(", at[d], " + ", shift, ") / ", step);
        StrAppend(&body_,
                  Loops(shape, StrCat(Element(y, at), " = select((", at[d], " + ", shift, ") % ",
                                      step, " == 0 && ", at[d], " < ", t.shape[d] * step - shift,
                                      ", ", Element(t, from), ", ", Zero(), ")")));
        return y;
      }
      case 7: {  // quotients and remainders: a vector as columns, read row by row
        const int64_t by = random_.Pick(2, 5), rows = shape[d] / by;
        if (rows < 1) break;
        const Tensor y = Output({rows * by}, is_last);
        std::vector<std::string> from(rank, "0");
        from[d] = StrCat("i % ", by, " * ", rows, " + i / ", by);
        StrAppend(&body_, Loops(y.shape, StrCat(Element(y, {"i"}), " = ", Element(t, from))));
        return y;
      }
      case 8: {  // another value at some places
        const Tensor y = Output(shape, is_last);
        StrAppend(&body_, Loops(shape, StrCat(Element(y, at), " = select(", at[d],
                                              " == ", random_.Pick(0, shape[d] - 1), ", ",
                                              Element(t, at), " + ", Element(t, at), ", max(",
                                              Element(t, at), ", ", Zero(), "))")));
        return y;
      }
      case 9: {  // one behind another, with a number in front perhaps
        const int64_t front = random_.Pick(0, 1) * random_.Pick(1, 3), behind = t.shape[d];
        shape[d] = front + 2 * behind;
        const Tensor y = Output(shape, is_last);
        const auto store = [&](int64_t begin, int64_t extent, const std::string& value) {
          std::vector<std::string> to = at;
          if (begin > 0) to[d] = StrCat(at[d], " + ", begin);
          std::vector<int64_t> extents = shape;
          extents[d] = extent;
          StrAppend(&body_, Loops(extents, StrCat(Element(y, to), " = ", value)));
        };
        const std::string x = Element(t, at);
        store(front, behind, x);
        if (front > 0) store(0, front, Zero());
        store(front + behind, behind, random_.OneIn(2) ? StrCat(x, " + ", x) : x);
        return y;
      }
      case 10: {  // a dimension of two loops, in either order
        const int64_t inner = random_.Pick(2, 3);
        if (shape[d] % inner != 0) break;
        const Tensor y = Output(shape, is_last);
        std::vector<std::string> iterators = at, to = at, from = at;
        std::vector<int64_t> extents = shape;
        extents[d] /= inner;
        iterators.insert(iterators.begin() + random_.Pick(0, rank), "r");
        extents.insert(extents.begin() +
                           (std::find(iterators.begin(), iterators.end(), "r") - iterators.begin()),
                       inner);
        to[d] = StrCat(at[d], " * ", inner, " + r");
        from[d] = random_.OneIn(2) ? to[d] : StrCat("r * ", shape[d] / inner, " + ", at[d]);
        StrAppend(&body_, Loops(iterators, std::vector<int64_t>(extents.size()), extents,
                                StrCat(Element(y, to), " = ", Element(t, from))));
        return y;
      }
      case 11: {  // a triangle or a band of two dimensions
        if (rank < 2) break;
        const size_t other = (d + random_.Pick(1, rank - 1)) % rank;
        const Tensor y = Output(shape, is_last);
        const std::string sum =
            StrCat(at[other], random_.OneIn(4) ? " * 2" : "", " + ", random_.Pick(-3, 3));
        std::string condition = random_.OneIn(3)
                                    ? StrCat(at[d], " + ", sum, " < ", shape[d])
                                    : StrCat(at[d], random_.OneIn(2) ? " <= " : " < ", sum);
        if (random_.OneIn(3)) condition = StrCat(condition, " && ", sum, " <= ", at[d], " + 3");
        const std::string x = Element(t, at);
        const std::string value = random_.OneIn(2) ? x : StrCat(x, " + ", x);
        StrAppend(&body_, Loops(shape, StrCat(Element(y, at), " = select(", condition, ", ", value,
                                              ", ", Zero(), ")")));
        return y;
      }
      case 12: {  // two of interleaved parts
        if (rank < 2) break;
        shape.pop_back();
        const Tensor y = Output(shape, is_last);
        const std::vector<std::string> to(at.begin(), at.end() - 1);
        std::vector<std::string> a = at, b = at;
        a.back() = StrCat(random_.Pick(0, t.shape.back() - 1));
        b.back() = StrCat(random_.Pick(0, t.shape.back() - 1));
        StrAppend(&body_, Loops(shape, StrCat(Element(y, to), " = ", Element(t, a), " + max(",
                                              Element(t, b), ", ", Zero(), ")")));
        return y;
      }
      case 13: {  // interleaved parts, each by a store
        const int64_t parts = random_.Pick(2, 3);
        if (rank > 2) break;
        shape.push_back(parts);
        const Tensor y = Output(shape, is_last);
        const std::string x = Element(t, at);
        for (int64_t part = 0; part < parts; ++part) {
          std::vector<std::string> to = at;
          to.push_back(StrCat(part));
          const std::string value = random_.OneIn(2) ? x : StrCat(x, " + ", x);
          StrAppend(&body_, Loops(t.shape, StrCat(Element(y, to), " = ", value)));
        }
        return y;
      }
      case 14: {  // neighbours along one dimension as one
        const int64_t step = random_.Pick(2, 3);
        if (shape[d] < step) break;
        shape[d] /= step;
        const Tensor y = Output(shape, is_last);
        std::vector<std::string> a = at, b = at;
        a[d] = StrCat(at[d], " * ", step);
        b[d] = StrCat(at[d], " * ", step, " + ", random_.Pick(0, step - 1));
        StrAppend(&body_, Loops(shape, StrCat(Element(y, at), " = ", Element(t, a), " + max(",
                                              Element(t, b), ", ", Zero(), ")")));
        return y;
      }
      case 15: {  // each place of a step along one dimension by a store
        const int64_t step = random_.Pick(2, 3);
        if (shape[d] < step) break;
        shape[d] *= step;
        const Tensor y = Output(shape, is_last);
        const std::string x = Element(t, at);
        for (int64_t place = 0; place < step; ++place) {
          std::vector<std::string> to = at;
          to[d] = StrCat(at[d], " * ", step, " + ", place);
          StrAppend(&body_, Loops(t.shape, StrCat(Element(y, to), " = ",
                                                  place == 1 ? StrCat(x, " + ", x) : x)));
        }
        return y;
      }
      case 16: {  // windows of a dimension, under conditions on loops
        const Tensor y = Output(shape, is_last);
        std::vector<std::string> iterators = at, from = at;
        iterators.push_back("w");
        std::vector<int64_t> extents = shape;
        extents.push_back(random_.Pick(1, 3));
        const std::string place = StrCat(at[d], random_.OneIn(3) ? " - w + 1" : " + w - 1");
        from[d] = place;
        const std::string x = Element(t, from), own = Element(y, at);
        const bool is_max = random_.OneIn(2);
        const std::string e = random_.OneIn(2) ? x : StrCat(x, " * ", x);
        StrAppend(&body_, Loops(shape, StrCat(own, " = ", Element(t, at))));
        StrAppend(&body_, Loops(iterators, std::vector<int64_t>(extents.size()), extents,
                                StrCat("if (", place, " >= 0 && ", place, " < ", shape[d], ") { ",
                                       own, " = ", is_max ? "max(" : "", own, is_max ? ", " : " + ",
                                       e, is_max ? ")" : "", " }")));
        return y;
      }
      case 17: {  // stores under conditions on data
        const Tensor y = Output(shape, is_last);
        const std::string x = Element(t, at), own = Element(y, at);
        const std::string condition = StrCat("if (", x, " < ", Zero(), ") { ", own, " = ");
        if (random_.OneIn(2)) {
          StrAppend(&body_, Loops(shape, StrCat(condition, x, " } else { ", own, " = ", x, " + ", x,
                                                " }")));
        } else {
          StrAppend(&body_, Loops(shape, StrCat(own, " = ", x)));
          const std::string value = random_.OneIn(2) ? Zero() : StrCat(own, " + ", x);
          StrAppend(&body_, Loops(shape, StrCat(condition, value, " }")));
        }
        return y;
      }
      case 18: {  // integer operations by numbers
        if (type_ != "i32") break;
        const Tensor y = Output(shape, is_last);
        const std::string operation = random_.Of<std::string>(
            {" / 10", " % 7", " / 4096", " % 64", " >> 5", " >> 24", " << 3", " & 15"});
        StrAppend(&body_, Loops(shape, StrCat(Element(y, at), " = (", Element(t, at), operation,
                                              ") + ", Element(t, at))));
        return y;
      }
      case 19: {  // places along one or two dimensions, computed in floats, and weights of them
        const Tensor y = Output(
            [&] {
              for (int64_t& extent : shape) extent = random_.OneIn(2) ? extent : 2 * extent;
              return shape;
            }(),
            is_last);
        std::vector<std::string> from = at, next = at;
        std::string weight = "1.0";
        for (size_t k = 0; k < rank; ++k) {
          if (k != d && !random_.OneIn(3)) {
            from[k] = next[k] = StrCat("min(", at[k], ", ", t.shape[k] - 1, ")");
            continue;
          }
          const int64_t most = 100 * t.shape[k] / shape[k];
          const int64_t percent =
              std::min(most, random_.Of<int64_t>({50, 33, 64, 75, 100, 130, 150, 200}));
          const std::string place =
              StrCat("f32(", at[k], ") * ", percent / 100, ".", percent / 10 % 10, percent % 10,
                     random_.Of<std::string>({"", " - 0.25", " + 0.33", " - 0.5"}));
          const std::string low =
              StrCat("i32(", random_.OneIn(2) ? "floor" : "round", "(", place, "))");
          const auto limited = [&](const std::string& e) {
            return StrCat("max(min(", e, ", ", t.shape[k] - 1, "), 0)");
          };
          from[k] = limited(low), next[k] = limited(low + " + 1");
          weight = StrCat("(", place, " - f32(", low, "))");
        }
        const std::string a = Element(t, from), b = Element(t, next);
        const std::string value = random_.OneIn(3) ? a
                                  : type_ == "f32"
                                      ? StrCat(a, " * (1.0 - ", weight, ") + ", b, " * ", weight)
                                      : StrCat("max(", a, ", ", b, ")");
        StrAppend(&body_, Loops(shape, StrCat(Element(y, at), " = ", value)));
        return y;
      }
      case 20:
      case 21: {  // stores of a triangle, a band or a diagonal, perhaps of the same one again
        if (rank < 2) break;
        const size_t other = (d + random_.Pick(1, rank - 1)) % rank;
        const Tensor y = Output(shape, is_last);
        const std::string x = Element(t, at), own = Element(y, at);
        const bool has_all = !is_last || random_.OneIn(2);
        if (has_all) StrAppend(&body_, Loops(shape, StrCat(own, " = ", Zero())));
        std::string condition = Part(at[d], at[other]);
        for (int64_t stores = random_.Pick(1, 3); stores > 0; --stores) {
          std::vector<std::string> values = {x, StrCat(x, " + ", x),
                                             StrCat("max(", x, ", ", Zero(), ")")};
          if (has_all)
            values.insert(values.end(), {StrCat(own, " + ", x), StrCat(own, " + ", own)});
          const std::string value = random_.Of<std::string>(values);
          StrAppend(&body_,
                    Loops(shape, StrCat("if (", condition, ") { ", own, " = ", value, " }")));
          if (random_.OneIn(3)) condition = Part(at[d], at[other]);
        }
        return y;
      }
      case 22: {  // products of rows with each other, a triangle of them or sums of triangles
        if (rank != 2) break;
        shape[1] = shape[0];
        const Tensor y = Output(shape, is_last);
        const std::string own = "{ " + Element(y, {"i", "j"}) + " = ";
        const std::string condition = "if (" + Part("i", "j") + ") ";
        const bool has_all = !is_last || random_.OneIn(2);
        StrAppend(&body_, Loops(shape, StrCat(has_all ? "" : condition, own, Zero(), " }")));
        if (random_.OneIn(2)) StrAppend(&body_, Loops(shape, StrCat(condition, own, Zero(), " }")));
        const std::string of_k = random_.OneIn(3) ? "if (" + Part("i", "k") + ") " : "";
        StrAppend(&body_,
                  Loops({t.shape[0], t.shape[0], t.shape[1]},
                        StrCat(condition, "{ ", of_k, own, Element(y, {"i", "j"}), " + ",
                               Element(t, {"i", "k"}), " * ", Element(t, {"j", "k"}), " } }")));
        if (random_.OneIn(2)) {
          StrAppend(&body_, Loops(shape, StrCat(condition, own, Element(y, {"i", "j"}), " + ",
                                                Element(y, {"i", "j"}), " }")));
        }
        if (random_.OneIn(2)) {  // mirrored, and a diagonal of its own
          const std::string strict = random_.OneIn(2) ? "j < i" : "i < j";
          const std::string mirrored = has_all ? Element(y, {"j", "i"}) : Element(t, {"j", "0"});
          StrAppend(&body_, Loops(shape, StrCat("if (", strict, ") ", own, mirrored, " }")));
          StrAppend(&body_, "  for (i, 0, ", shape[0], ") { ", Element(y, {"i", "i"}), " = ",
                    random_.OneIn(2) ? Zero() : Element(t, {"i", "0"}), " }\n");
        }
        return y;
      }
      case 23: {  // in place, of elements that are stored later
        if (shape[d] < 2) break;
        const Tensor y = Output(shape, is_last);
        StrAppend(&body_, Loops(shape, StrCat(Element(y, at), " = ", Element(t, at))));
        std::vector<std::string> next = at;
        std::vector<int64_t> extents = shape;
        const int64_t step = random_.Pick(1, std::min<int64_t>(3, shape[d] - 1));
        next[d] = StrCat(at[d], " + ", step);
        extents[d] -= step;
        const std::string of = Element(y, next), own = Element(y, at);
        const std::string value = random_.Of<std::string>(
            {of, StrCat(own, " + ", of), StrCat("max(", of, ", ", Element(t, at), ")")});
        StrAppend(&body_, Loops(extents, StrCat(own, " = ", value)));
        return y;
      }
      case 24: {  // sums over later rows, which are stored in place, as trmm; of earlier ones, as symm
        if (rank != 2) break;
        const Tensor y = Output(shape, is_last), a = Input({shape[0], shape[0]});
        const std::string own = Element(y, {"i", "j"}), row = Element(y, {"k", "j"});
        StrAppend(&body_, Loops(shape, StrCat(own, " = ", Element(t, {"i", "j"}))));
        const std::string x = Element(a, random_.OneIn(2) ? std::vector<std::string>{"i", "k"}
                                                          : std::vector<std::string>{"k", "i"});
        const std::string update =
            random_.OneIn(2) ? StrCat("if (i < k) { ", own, " = ", own, " + ", x, " * ", row, " }")
                             : StrCat("if (k < i) { ", row, " = ", row, " + ", x, " * ",
                                      Element(t, {"i", "j"}), " }");
        StrAppend(&body_, "  for (i, 0, ", shape[0], ") { for (j, 0, ", shape[1], ") { for (k, 0, ",
                  shape[0], ") { ", update, " }");
        if (random_.OneIn(2)) StrAppend(&body_, " ", own, " = ", own, " + ", own);
        StrAppend(&body_, " } }\n");
        return y;
      }
      case 5: {  // in place
        const Tensor y = Output(shape, is_last);
        StrAppend(&body_, Loops(shape, StrCat(Element(y, at), " = ", Element(t, at))));
        StrAppend(&body_, Loops(shape, StrCat(Element(y, at), " = ", Element(y, at), " + ",
                                              Element(t, at))));
        return y;
      }
      default: {  // over one dimension
        std::vector<std::string> of = at;
        of.erase(of.begin() + static_cast<ptrdiff_t>(d));
        shape.erase(shape.begin() + static_cast<ptrdiff_t>(d));
        if (shape.empty()) break;
        const Tensor y = Output(shape, is_last);
        std::vector<std::string> iterators = of;
        iterators.push_back(at[d]);
        std::vector<int64_t> extents = shape;
        extents.push_back(t.shape[d]);
        StrAppend(&body_, Loops(of, std::vector<int64_t>(shape.size()), shape,
                                StrCat(Element(y, of), " = ", Zero())));
        const std::string a = Element(y, of), b = Element(t, at);
        const std::string value =
            random_.OneIn(2) ? StrCat(a, " + ", b) : StrCat("max(", a, ", ", b, ")");
        StrAppend(&body_, Loops(iterators, std::vector<int64_t>(extents.size()), extents,
                                StrCat(a, " = ", value)));
        return y;
      }
    }
    return Next(t, is_last);
  }
  std::string Zero() const { return type_ == "i32" ? "0" : type_ == "f32" ? "0.0" : "f16(0.0)"; }

  Random& random_;
  const std::string type_;
  int inputs_ = 0, outputs_ = 0;
  std::vector<std::string> params_;
  std::string locals_, body_;
};

TEST(UnscheduledNestsTest, RandomNests) {
  int scalar = 0, count = 0;
  ForRandomSeeds(120, /*scalar_rate=*/0, [&](Random& random, unsigned seed, Exceptions&) {
    NestSettings settings = OnCard(random.Of<std::string>({"mlu270", "mlu370", "unit"}));
    settings.overrides = {StrCat("core.nmem_kib=", random.Pick(1, 8) * 64),
                          StrCat("card.clusters=", random.Pick(1, 4)),
                          StrCat("cluster.cores=", random.Pick(1, 4))};
    settings.seed = seed;
    const std::string text = RandomNests(random).Make();
    SCOPED_TRACE(text);
    const NestReport report = MustAgree(text, settings);
    ++count;
    for (const std::string& note : report.notes) {
      // Tables of weights are a few numbers.
      const bool is_table =
          note.find(".table -> ") != std::string::npos || note.find(".table.") != std::string::npos;
      if (note.find("scalar unit") == std::string::npos || is_table) continue;
      std::cout << "seed " << seed << ": " << note << "\n" << text;
      ++scalar;
    }
  });
  EXPECT_LE(scalar, 2 + count / 12);
}

// Programs that nobody wrote for the card.
TEST(UnscheduledNestsTest, RandomPrograms) {
  ir::RandomProgramOptions options;
  options.loop_kinds = options.wide_unsigned = options.variable_shifts = false;
  options.max_iterations = 300;
  int instructions = 0, count = 0;
  ForRandomSeeds(60, /*scalar_rate=*/0, [&](Random&, unsigned seed, Exceptions&) {
    const ir::Function function = ir::RandomProgram(seed, options);
    const absl::StatusOr<std::vector<ir::Argument>> scalars =
        ir::RandomArguments::DrawScalars(function, seed, {});
    ASSERT_TRUE(scalars.ok()) << scalars.status();
    NestSettings settings = OnCard();
    settings.seed = seed;
    for (size_t i = 0; i < function.params.size(); ++i) {
      const ir::Param& param = function.params[i];
      if (!param.var) continue;
      settings.arguments.push_back(
          StrCat(param.name(), "=", ir::ScalarText(param.var.type(), (*scalars)[i])));
    }
    const absl::StatusOr<NestReport> report = RunNest(function, settings);
    if (!report.ok()) {
      EXPECT_THAT(std::string(report.status().message()),
                  testing::AnyOf(HasSubstr("extent that is not constant"),
                                 HasSubstr("values are live at once"), HasSubstr("nmem needs"),
                                 HasSubstr("the instruction set has no 'math.fma."),
                                 HasSubstr("allocated in 'gmem'")))
          << ir::Print(function);
      return;
    }
    EXPECT_EQ(report->difference, "") << ir::Print(function);
    ++count;
    if (report->notes.empty() || report->notes[0].find("scalar unit") == std::string::npos) {
      ++instructions;
    }
  });
  std::cout << instructions << " of " << count << " programs run on instructions\n";
}

// ---- what becomes of some nests -------------------------------------------------------------------

TEST(UnscheduledNestsTest, StagesThatOneGroupReadsAreComputedWithIt) {
  const NestReport report = MustAgree(
      "func softmax(X: f32[33, 65] in, Y: f32[33, 65] out) {\n"
      "  allocate M: f32[33]\n  allocate E: f32[33, 65]\n  allocate S: f32[33]\n"
      "  for (i, 0, 33) {\n"
      "    M[i] = X[i, 0]\n"
      "    for (j, 0, 65) { M[i] = max(M[i], X[i, j]) }\n"
      "    for (j, 0, 65) { E[i, j] = exp(X[i, j] - M[i]) }\n"
      "    S[i] = 0.0\n"
      "    for (j, 0, 65) { S[i] = S[i] + E[i, j] }\n"
      "    for (j, 0, 65) { Y[i, j] = E[i, j] / S[i] }\n"
      "  }\n}\n",
      OnCard());
  EXPECT_THAT(report.notes, ElementsAre("S1 S2 S4 S5 -> Y"));
}

TEST(UnscheduledNestsTest, FactorsOfProductsAreTurnedAround) {
  const NestReport report = MustAgree(
      "func product(A: i8[65, 64] in, B: i8[64, 130] in, C: i32[65, 130] out) {\n"
      "  for (i, 0, 65) { for (j, 0, 130) {\n"
      "    C[i, j] = 0\n"
      "    for (k, 0, 64) { C[i, j] = C[i, j] + i32(A[i, k]) * i32(B[k, j]) }\n"
      "  } }\n}\n",
      OnCard());
  // On chip, with the product.
  EXPECT_THAT(report.notes, ElementsAre("S1 -> C"));
}

// What is computed with the product, on chip, is not turned around before it exists: as columns, and as an image whose
// channels come first, for which a turned copy would be cheaper.
TEST(UnscheduledNestsTest, ComputedFactorsAreNotTurnedAround) {
  MustAgree(
      "func columns(A: f32[20, 33] in, B: f32[20, 65] in, C: f32[33, 65] out) {\n"
      "  allocate T: f32[20, 33]\n"
      "  for (k, 0, 20) { for (i, 0, 33) { T[k, i] = exp(A[k, i] * 0.125) } }\n"
      "  for (i, 0, 33) { for (j, 0, 65) {\n"
      "    C[i, j] = 0.0\n"
      "    for (k, 0, 20) { C[i, j] = C[i, j] + T[k, i] * B[k, j] }\n"
      "  } }\n}\n",
      OnCard("mlu370"));
  MustAgree(
      "func image(A: f32[64, 96] in, F: f32[70, 64] in, Y: f32[70, 96] out) {\n"
      "  allocate D: f32[64, 96]\n"
      "  for (c, 0, 64) { for (p, 0, 96) { D[c, p] = exp(A[c, p] * 0.125) } }\n"
      "  for (o, 0, 70) { for (p, 0, 96) {\n"
      "    Y[o, p] = 0.0\n"
      "    for (c, 0, 64) { Y[o, p] = Y[o, p] + D[c, p] * F[o, c] }\n"
      "  } }\n}\n",
      OnCard("mlu370"));
}

// A convolution whose channels come first, with margins, strides and two images, which are one below the other: copies,
// then the tensor unit.
TEST(UnscheduledNestsTest, ConvolutionsAreTurnedAround) {
  const NestReport report = MustAgree(
      "func conv(X: f32[2, 32, 15, 17] in, F: f32[70, 32, 3, 3] in, Y: f32[2, 70, 8, 9] out) {\n"
      "  allocate P: f32[2, 32, 17, 19]\n"
      "  for (n, 0, 2) { for (i, 0, 32) { for (y, 0, 17) { for (x, 0, 19) {\n"
      "    P[n, i, y, x] = select(1 <= y && y < 16 && 1 <= x && x < 18, X[n, i, y - 1, x - 1], "
      "0.0)\n"
      "  } } } }\n"
      "  for (n, 0, 2) { for (c, 0, 70) { for (y, 0, 8) { for (x, 0, 9) {\n"
      "    Y[n, c, y, x] = 0.0\n"
      "    for (i, 0, 32) { for (r, 0, 3) { for (s, 0, 3) {\n"
      "      Y[n, c, y, x] = Y[n, c, y, x] + P[n, i, y * 2 + r, x * 2 + s] * F[c, i, r, s]\n"
      "    } } }\n"
      "  } } } }\n}\n",
      OnCard("mlu370"));
  EXPECT_THAT(report.notes,
              ElementsAre("S2 -> F.turned", "S2 -> P.turned", "S2 -> Y.turned", "S2 -> Y"));
}

// Parts of a tensor along an inner axis are stored as whole rows of their sum; of types that the card does not add,
// each by itself, as boxes with gaps. So is a part alone.
TEST(UnscheduledNestsTest, PartsOfRowsAreJoined) {
  const auto run = [](const std::string& type, const char* first) {
    return MustAgree(
        StrCat("func concat(A: ", type, "[5, 7, 64] in, B: ", type, "[5, 7, 33] in, Y: ", type,
               "[5, 7, 97] out) {\n"
               "  for (y, 0, 5) { for (x, 0, 7) {\n    ",
               first, "\n    for (c, 0, 33) { Y[y, x, 64 + c] = B[y, x, c] }\n  } }\n}\n"),
        OnCard());
  };
  const char* const copy = "for (c, 0, 64) { Y[y, x, c] = A[y, x, c] }";
  EXPECT_THAT(run("f32", copy).notes, ElementsAre("S0 S1 S1.joined -> Y"));
  EXPECT_THAT(run("f16", "for (c, 0, 64) { Y[y, x, c] = exp(A[y, x, c] * f16(0.125)) }").notes,
              ElementsAre("S0.inside S0 S1 S1.joined -> Y"));
  EXPECT_THAT(run("u8", copy).notes, ElementsAre("S0 -> Y", "S1 -> Y"));
  EXPECT_THAT(run("f32", "").notes, ElementsAre("S0 -> Y"));
  // Three of them, one of a single element; and one that reads what another one stores.
  const NestReport three = MustAgree(
      "func three(A: f32[40, 5] in, Y: f32[40, 9] out) {\n  for (i, 0, 40) {\n"
      "    for (j, 0, 5) { Y[i, j + 1] = A[i, j] * 2.0 }\n    Y[i, 0] = 1.0\n"
      "    for (j, 0, 3) { Y[i, j + 6] = A[i, j] - 1.0 }\n  }\n}\n",
      OnCard("mlu370"));
  EXPECT_THAT(three.notes, testing::Not(testing::Contains(HasSubstr("scalar unit"))));
  const NestReport reads = MustAgree(
      "func reads(A: f32[40, 5] in, Y: f32[40, 10] out) {\n"
      "  for (i, 0, 40) { for (j, 0, 5) { Y[i, j] = A[i, j] * 2.0 } }\n"
      "  for (i, 0, 40) { for (j, 0, 5) { Y[i, j + 5] = Y[i, j] - 1.0 } }\n}\n",
      OnCard());
  EXPECT_THAT(reads.notes, ElementsAre("S0 -> Y", "S1 -> Y"));
}

// Where parts stand interleaved they become rows of their own on chip. Limits are four times what memory needs.
TEST(UnscheduledNestsTest, InterleavedPartsBecomeRows) {
  const auto run = [](const std::string& text, const std::string& config = "mlu270") {
    return MustAgree(text, OnCard(config));
  };
  // Three of so many channels.
  const auto gray = [](int channels) {
    return StrCat("func gray(X: f16[256, 256, ", channels, "] in, Y: f16[256, 256] out) {\n",
                  "  for (y, 0, 256) { for (x, 0, 256) {\n",
                  "    Y[y, x] = X[y, x, 0] * 0.299 + X[y, x, 1] * 0.587 + X[y, x, 2] * 0.114\n",
                  "  } }\n}\n");
  };
  const NestReport pixels = run(gray(3));
  EXPECT_THAT(pixels.notes, ElementsAre("X.turned S0 S0.turned -> Y"));
  EXPECT_LE(pixels.cycles, 4 * 5120);
  EXPECT_LE(run(gray(3), "mlu370").cycles, 4 * 1707);
  EXPECT_LE(run(gray(4)).cycles, 4 * 6400);
  // What is stored, too.
  const NestReport product =
      run("func product(A: f32[4096, 2] in, B: f32[4096, 2] in, Y: f32[4096, 2] out) {\n"
          "  for (i, 0, 4096) {\n    Y[i, 0] = A[i, 0] * B[i, 0] - A[i, 1] * B[i, 1]\n"
          "    Y[i, 1] = A[i, 0] * B[i, 1] + A[i, 1] * B[i, 0]\n  }\n}\n");
  EXPECT_THAT(product.notes, ElementsAre("A.turned B.turned S0.inside S0 S1.inside S1 S1.joined "
                                         "S1.joined.turned -> Y"));
  EXPECT_LE(product.cycles, 4 * 960);
  // Even and odd places of rows.
  EXPECT_THAT(run("func pairs(X: f16[37, 1000] in, Y: f16[37, 500] out) {\n"
                  "  for (y, 0, 37) { for (x, 0, 500) { Y[y, x] = X[y, 2 * x] + X[y, 2 * x + 1] } "
                  "}\n}\n")
                  .notes,
              ElementsAre("X.turned S0 S0.turned -> Y"));
  // Dimensions in another order; a part of the channels; neighbouring pixels.
  EXPECT_LE(run("func planes(X: i8[224, 224, 3] in, Y: f16[3, 224, 224] out) {\n"
                "  for (c, 0, 3) { for (y, 0, 224) { for (x, 0, 224) {\n"
                "    Y[c, y, x] = f16(X[y, x, c]) * 0.01\n  } } }\n}\n")
                .cycles,
            4 * 4410);
  EXPECT_LE(run("func part(X: f16[100, 70, 5] in, Y: f16[100, 70, 2] out) {\n"
                "  for (y, 0, 100) { for (x, 0, 70) {\n    Y[y, x, 0] = X[y, x, 3] + X[y, x, 1]\n"
                "    Y[y, x, 1] = X[y, x, 1] * X[y, x, 2]\n  } }\n}\n")
                .cycles,
            8 * 958);
  EXPECT_THAT(run("func edges(X: f32[30, 501, 2] in, Y: f32[30, 500] out) {\n"
                  "  for (y, 0, 30) { for (x, 0, 500) {\n"
                  "    Y[y, x] = X[y, x + 1, 0] - X[y, x, 0] * X[y, x, 1]\n  } }\n}\n")
                  .notes,
              ElementsAre("X.turned S0 -> Y"));
  // Steps along both dimensions; a sum over the channels; windows that a reduction takes.
  EXPECT_LE(run("func pooling(X: f16[512, 512] in, Y: f16[256, 256] out) {\n"
                "  for (y, 0, 256) { for (x, 0, 256) {\n"
                "    Y[y, x] = max(max(X[2 * y, 2 * x], X[2 * y, 2 * x + 1]),\n"
                "                  max(X[2 * y + 1, 2 * x], X[2 * y + 1, 2 * x + 1]))\n  } }\n}\n")
                .cycles,
            2 * 6400);
  EXPECT_LE(run("func colours(X: f16[256, 256, 3] in, M: f16[3, 3] in, Y: f16[256, 256, 3] out) {\n"
                "  for (y, 0, 256) { for (x, 0, 256) { for (c, 0, 3) {\n    Y[y, x, c] = 0.0\n"
                "    for (k, 0, 3) { Y[y, x, c] = Y[y, x, c] + M[c, k] * X[y, x, k] }\n"
                "  } } }\n}\n")
                .cycles,
            4 * 7681);
  EXPECT_THAT(run("func windows(X: f32[64, 200] in, Y: f32[32, 100] out) {\n"
                  "  for (y, 0, 32) { for (x, 0, 100) {\n    Y[y, x] = X[2 * y, 2 * x]\n"
                  "    for (r, 0, 2) { for (s, 0, 2) {\n"
                  "      Y[y, x] = max(Y[y, x], X[2 * y + r, 2 * x + s])\n    } }\n  } }\n}\n")
                  .notes,
              testing::Not(testing::Contains(HasSubstr("scalar unit"))));
  // Stores at even and at odd places.
  EXPECT_LE(run("func zip(L: f32[32768] in, H: f32[32768] in, Y: f32[65536] out) {\n"
                "  for (i, 0, 32768) {\n    Y[2 * i] = L[i] + H[i]\n"
                "    Y[2 * i + 1] = L[i] - H[i]\n  }\n}\n")
                .cycles,
            2 * 5120);
  // Tiles store what others would load: the tensor stays as it is.
  EXPECT_THAT(run("func update(Y: f32[4096, 2]) {\n"
                  "  for (i, 0, 4096) { Y[i, 0] = Y[i, 0] * Y[i, 1] }\n}\n")
                  .notes,
              ElementsAre("S0 -> Y"));
}

// Rows of a triangle have margins of their own; what is computed there is computed of all elements, which must exist.
TEST(UnscheduledNestsTest, MarginsOfTriangles) {
  const auto run = [](const std::string& condition, const std::string& value) {
    return MustAgree(StrCat("func triangle(X: f32[9, 70, 128] in, Y: f32[9, 70, 128] out) {\n"
                            "  for (h, 0, 9) { for (i, 0, 70) { for (j, 0, 128) {\n"
                            "    Y[h, i, j] = select(",
                            condition, ", ", value, ", -10000.0)\n  } } }\n}\n"),
                     OnCard());
  };
  for (const char* condition : {"j <= i", "j < i", "i < j", "i - 3 <= j && j < i + 2",
                                "i + j < 100", "2 * j <= i", "h + j <= i && 5 <= j"}) {
    EXPECT_THAT(run(condition, "X[h, i, j]").notes, ElementsAre("S0 -> Y")) << condition;
    EXPECT_THAT(run(condition, "X[h, i, j] * 0.125").notes, ElementsAre("S0.inside S0 -> Y"));
  }
  // Behind the last column a row has no place to begin.
  MustAgree(
      "func behind(X: f32[200, 128] in, Y: f32[200, 128] out) {\n"
      "  for (i, 0, 200) { for (j, 0, 128) {\n"
      "    Y[i, j] = select(i < j, X[i, j], -1.0)\n  } }\n}\n",
      OnCard());
  // These elements do not all exist.
  EXPECT_THAT(run("j <= i", "X[h, i, i - j] * 0.125").notes,
              testing::Contains(HasSubstr("scalar unit")));
  // Causal attention is one group.
  const NestReport attention = MustAgree(
      "func attention(S: f32[4, 64, 64] in, V: f16[4, 64, 64] in, O: f32[4, 64, 64] out) {\n"
      "  allocate T: f32[4, 64, 64]\n  allocate M: f32[4, 64]\n  allocate P: f32[4, 64, 64]\n"
      "  for (h, 0, 4) { for (i, 0, 64) { for (j, 0, 64) {\n"
      "    T[h, i, j] = select(j <= i, S[h, i, j] * 0.125, -10000.0)\n  } } }\n"
      "  for (h, 0, 4) { for (i, 0, 64) {\n    M[h, i] = T[h, i, 0]\n"
      "    for (j, 0, 64) { M[h, i] = max(M[h, i], T[h, i, j]) }\n"
      "    for (j, 0, 64) { P[h, i, j] = exp(T[h, i, j] - M[h, i]) }\n  } }\n"
      "  for (h, 0, 4) { for (i, 0, 64) { for (k, 0, 64) {\n    O[h, i, k] = 0.0\n"
      "    for (j, 0, 64) { O[h, i, k] = O[h, i, k] + f32(f16(P[h, i, j])) * f32(V[h, k, j]) }\n"
      "  } } }\n}\n",
      OnCard("mlu370"));
  EXPECT_EQ(attention.notes.size(), 1);
}

// An input that several copies in one expression read may make a schedule impossible: another one is taken. (The
// transformations of a Winograd convolution.)
TEST(UnscheduledNestsTest, SumsOfPaddedPartsBeforeProducts) {
  std::string locals, body;
  const auto transform = [&](const std::string& to, const std::string& from, int64_t columns) {
    const std::string loops =
        StrCat("  for (i, 0, 4) { for (j, 0, 4) { for (k, 0, 3) { for (l, 0, ", columns, ") { ");
    const std::string type = StrCat(": f32[4, 4, 3, ", columns, "]\n");
    std::vector<std::string> parts;
    const auto element = [&](int64_t row) { return StrCat(from, "[i, ", row, ", k, l]"); };
    for (const auto& [first, sign, second] : std::vector<std::tuple<int64_t, std::string, int64_t>>{
             {0, " * -1.0", 2}, {1, "", 2}, {1, " * -1.0", 2}, {1, " * -1.0", 3}}) {
      const size_t row = parts.size();
      parts.push_back(StrCat(to, row, "[i, j, k, l]"));
      StrAppend(&locals, "  allocate ", to, row, type);
      StrAppend(&body, loops, parts.back(), " = select(", row, " <= j && j < ", row + 1, ", ",
                element(first), sign, " + ", element(second), ", -0.0) } } } }\n");
    }
    StrAppend(&locals, "  allocate ", to, type);
    StrAppend(&body, loops, to, "[i, j, k, l] = ", absl::StrJoin(parts, " + "), " } } } }\n");
  };
  transform("D", "A", 9), transform("G", "F", 5);
  MustAgree(StrCat("func winograd(A: f32[4, 4, 3, 9] in, F: f32[4, 4, 3, 5] in, "
                   "Y: f32[4, 4, 5, 9] out) {\n",
                   locals, body,
                   "  for (i, 0, 4) { for (j, 0, 4) { for (o, 0, 5) { for (l, 0, 9) {\n"
                   "    Y[i, j, o, l] = 0.0\n    for (k, 0, 3) { Y[i, j, o, l] = Y[i, j, o, l] + "
                   "G[i, j, k, o] * D[i, j, k, l] }\n  } } } }\n}\n"),
            OnCard("mlu370"));
}

// An index of several loops is a number in mixed radix: pixels that come out of channels, and go back into them.
TEST(UnscheduledNestsTest, IndicesOfSeveralLoops) {
  const NestReport pixels = MustAgree(
      "func pixels(X: f16[5, 6, 256] in, Y: f16[10, 18, 64] out) {\n"
      "  for (y, 0, 5) { for (r, 0, 2) { for (x, 0, 6) { for (s, 0, 3) { for (c, 0, 64) {\n"
      "    Y[y * 2 + r, x * 3 + s, c] = X[y, x, (r + s) * 64 + c]\n  } } } } }\n}\n",
      OnCard("mlu370"));
  EXPECT_THAT(pixels.notes, ElementsAre("S0 -> Y"));
  const NestReport sums = MustAgree(
      "func sums(X: f32[10, 12, 3] in, Y: f32[5, 6, 12], Z: f32[5, 6, 12] out) {\n"
      "  for (y, 0, 5) { for (x, 0, 6) { for (r, 0, 2) { for (s, 0, 2) { for (c, 0, 3) {\n"
      "    for (k, 0, 4) { Y[y, x, r * 6 + s * 3 + c] = Y[y, x, r * 6 + s * 3 + c] + "
      "X[y * 2 + r, x * 2 + s, c] * 0.5 }\n  } } } } }\n"
      "  for (y, 0, 5) { for (x, 0, 6) { for (c, 0, 12) { Z[y, x, c] = Y[y, x, 11 - c] } } }\n}\n",
      OnCard());
  EXPECT_EQ(sums.notes.size(), 2);
  // Of an allocation with a dimension of one element, which is dropped; and of one that is stored as a whole before.
  MustAgree(
      "func units(X: i32[1, 3, 8] in, Y: i32[1, 3, 8] out) {\n"
      "  allocate T: i32[1, 3, 8]\n"
      "  for (i, 0, 1) { for (j, 0, 3) { for (r, 0, 2) { for (k, 0, 4) {\n"
      "    T[i, j, k * 2 + r] = X[i, j, r * 4 + k]\n  } } } }\n"
      "  for (i, 0, 1) { for (j, 0, 3) { for (k, 0, 8) { Y[i, j, k] = T[i, j, k] + 1 } } }\n}\n",
      OnCard());
  MustAgree(
      "func again(X: f32[40, 8] in, Y: f32[40, 8] out, Z: f32[40, 8] out) {\n"
      "  allocate T: f32[40, 8]\n"
      "  for (i, 0, 40) { for (j, 0, 8) { T[i, j] = X[i, j] * 2.0 } }\n"
      "  for (i, 0, 40) { for (j, 0, 8) { Y[i, j] = T[i, j] } }\n"
      "  for (i, 0, 40) { for (j, 0, 4) { for (r, 0, 2) { T[i, j * 2 + r] = X[i, j + 4 * r] } } }\n"
      "  for (i, 0, 40) { for (j, 0, 8) { Z[i, j] = T[i, j] + 1.0 } }\n}\n",
      OnCard());
  // Not all of a row, or not one element for each number: no such index.
  for (const char* index : {"y * 2 + r", "y * 3 + r + 1", "y * 3 - r + 2"}) {
    MustAgree(StrCat("func other(X: f32[5, 3, 8] in, Y: f32[16, 8]) {\n"
                     "  for (y, 0, 5) { for (r, 0, 3) { for (c, 0, 8) {\n    Y[",
                     index, ", c] = X[y, r, c]\n  } } }\n}\n"),
              OnCard());
  }
}

// Reductions under conditions take in what changes nothing elsewhere: windows at the edges of an image, of a maximum,
// of a product and of computed elements; half of a matrix; windows that run backwards.
TEST(UnscheduledNestsTest, ReductionsUnderConditions) {
  const char* const around = "y + i >= 1 && y + i < 15 && x + j >= 1 && x + j < 13";
  const auto image = [&](const std::string& type, const std::string& sum, const std::string& begin,
                         const std::string& update) {
    const std::string text =
        StrCat("func image(X: ", type, "[14, 12, 64] in, W: ", type, "[3, 3, 64] in, F: ", type,
               "[3, 3, 64, 64] in, Y: ", sum, "[14, 12, 64] out) {\n",
               "  for (y, 0, 14) { for (x, 0, 12) { for (c, 0, 64) {\n    Y[y, x, c] = ", begin,
               "\n", "    for (i, 0, 3) { for (j, 0, 3) { if (", around, ") {\n      ", update,
               "\n    } } }\n  } } }\n}\n");
    return absl::StrReplaceAll(text, {{"at", "X[y + i - 1, x + j - 1, c]"}, {"own", "Y[y, x, c]"}});
  };
  const auto must_be_fast = [&](const std::string& text, int64_t cycles) {
    const NestReport report = MustAgree(text, OnCard("mlu370"));
    EXPECT_THAT(report.notes, testing::Not(testing::Contains(HasSubstr("scalar unit")))) << text;
    EXPECT_LT(report.cycles, cycles) << text;
  };
  must_be_fast(image("f16", "f16", "f16(-65504.0)", "own = max(own, at)"), 4000);
  must_be_fast(image("i32", "i32", "2147483647", "own = min(own, at + 1)"), 6000);
  must_be_fast(image("f32", "f32", "1.5", "own = own + at * at"), 6000);
  must_be_fast(image("f32", "f32", "0.0", "own = own + at * W[i, j, c]"), 6000);
  const char* const product =
      "for (k, 0, 64) { own = own + %(X[y + i - 1, x + j - 1, k]) * %(F[i, j, k, c]) }";
  must_be_fast(image("f32", "f32", "0.0", absl::StrReplaceAll(product, {{"%", "f32"}})), 20000);
  must_be_fast(image("i8", "i32", "0", absl::StrReplaceAll(product, {{"%", "i32"}})), 20000);
  must_be_fast(
      "func half(A: f32[130, 130] in, B: f32[130, 64] in, C: f32[130, 64] out) {\n"
      "  for (i, 0, 130) { for (j, 0, 64) {\n    C[i, j] = 0.0\n"
      "    for (k, 0, 130) { if (k <= i) { C[i, j] = C[i, j] + A[i, k] * B[k, j] } }\n"
      "  } }\n}\n",
      20000);
  must_be_fast(
      "func causal(X: f32[100, 64] in, W: f32[3, 64, 64] in, Y: f32[100, 64] out) {\n"
      "  for (t, 0, 100) { for (o, 0, 64) {\n    Y[t, o] = 0.0\n"
      "    for (k, 0, 3) { for (c, 0, 64) {\n      Y[t, o] = Y[t, o] + "
      "select(t - 4 * k >= 0, X[t - 4 * k, c], 0.0) * W[k, c, o]\n    } }\n  } }\n}\n",
      20000);
}

// Places that are computed of one loop each are tables, whatever they are computed in.
TEST(UnscheduledNestsTest, PlacesOfOneLoop) {
  const auto image = [](int64_t from, int64_t to, const std::string& element) {
    return StrCat("func image(X: f32[", from, ", ", from, ", 64] in, Y: f32[", to, ", ", to,
                  ", 64] out) {\n  for (y, 0, ", to, ") { for (x, 0, ", to,
                  ") { for (c, 0, 64) {\n    ", element, "\n  } } }\n}\n");
  };
  const auto bilinear = [](const std::string& place, const std::string& last) {
    return absl::StrReplaceAll(
        "let fy: f32 = place(y) { let fx: f32 = place(x) {\n"
        "    let y0: i32 = i32(floor(fy)) { let x0: i32 = i32(floor(fx)) {\n"
        "    let y1: i32 = min(y0 + 1, last) { let x1: i32 = min(x0 + 1, last) {\n"
        "    let wy: f32 = fy - f32(y0) { let wx: f32 = fx - f32(x0) {\n"
        "    Y[y, x, c] = (X[y0, x0, c] * (1.0 - wx) + X[y0, x1, c] * wx) * (1.0 - wy) +\n"
        "                 (X[y1, x0, c] * (1.0 - wx) + X[y1, x1, c] * wx) * wy\n"
        "    } } } } } } } }",
        {{"place(y)", absl::StrReplaceAll(place, {{"at", "f32(y)"}})},
         {"place(x)", absl::StrReplaceAll(place, {{"at", "f32(x)"}})},
         {"last", last}});
  };
  const auto nearest = [](const std::string& place) {
    return StrCat("Y[y, x, c] = X[", absl::StrReplaceAll(place, {{"at", "y"}}), ", ",
                  absl::StrReplaceAll(place, {{"at", "x"}}), ", c]");
  };
  const struct {
    std::string text;
    int64_t mlu270, mlu370;
  } kNests[] = {
      {image(32, 64, nearest("i32(floor(f32(at) * 0.5))")), 22000, 9000},
      {image(32, 50, nearest("i32(floor(f32(at) * 0.64))")), 20000, 9000},
      {image(32, 20, nearest("min(i32(round(f32(at) * 1.6)), 31)")), 20000, 9000},
      {image(32, 64, bilinear("max(at * 0.5 - 0.25, 0.0)", "31")), 42000, 25000},
      {image(32, 64, bilinear("at * 0.5", "31")), 42000, 20000},
      {image(32, 50, bilinear("at * 0.64", "31")), 50000, 27000},
      {image(40, 80,
             "Y[y, x, c] = (X[y / 2, x / 2, c] + X[y / 2, min((x + 1) / 2, 39), c]) * 0.5 +\n"
             "                 (X[min((y + 1) / 2, 39), x / 2, c] +\n"
             "                  X[min((y + 1) / 2, 39), min((x + 1) / 2, 39), c]) * 0.5"),
       66000, 32000},
  };
  for (const auto& nest : kNests) {
    EXPECT_LT(MustAgree(nest.text, OnCard("mlu270")).cycles, nest.mlu270) << nest.text;
    EXPECT_LT(MustAgree(nest.text, OnCard("mlu370")).cycles, nest.mlu370) << nest.text;
  }
}

// Stores under conditions on data store selected values; conditions on loops around them stay.
TEST(UnscheduledNestsTest, StoresUnderConditionsOnData) {
  const NestReport report = MustAgree(
      "func on_data(X: f32[40, 65] in, T: f32[65] in, Y: f32[40, 65] out, N: i32[40] out, "
      "S: f32[40] out, M: f32[40] out) {\n"
      "  for (i, 0, 40) { for (j, 0, 65) {\n"
      "    if (X[i, j] > T[j]) { Y[i, j] = X[i, j] * 2.0 } else { Y[i, j] = T[j] }\n  } }\n"
      "  for (i, 0, 40) {\n    N[i] = 0\n"
      "    for (j, 0, 65) { if (X[i, j] > 0.0) { N[i] = N[i] + 1 } }\n  }\n"
      "  for (i, 0, 40) {\n    S[i] = 0.0\n    M[i] = -10.0\n    for (j, 0, 65) {\n"
      "      if (X[i, j] > 0.0 && j > 3) {\n        S[i] = S[i] + X[i, j] * T[j]\n"
      "        M[i] = max(M[i], X[i, j])\n      }\n    }\n  }\n}\n",
      OnCard());
  EXPECT_THAT(report.notes, ElementsAre("S0 -> Y", "S2 -> N", "S5 -> S", "S6 -> M"));
  // A store may change the condition of the next one.
  MustAgree(
      "func changes(X: f32[40], Y: f32[40] out) {\n"
      "  for (i, 0, 40) { if (X[i] > 0.0) { X[i] = X[i] - 0.5\n Y[i] = X[i] } else { Y[i] = 1.0 } "
      "}\n}\n",
      OnCard());
}

// Sums of products of halves are added up in f32 where the tensor unit multiplies halves.
TEST(UnscheduledNestsTest, SumsOfHalves) {
  const std::string text =
      "func product(A: f16[130, 128] in, B: f16[128, 130] in, D: f16[130] in, C: f16[130, 130] "
      "out) {\n"
      "  for (i, 0, 130) { for (j, 0, 130) {\n    C[i, j] = D[j]\n"
      "    for (k, 0, 128) { C[i, j] = C[i, j] + A[i, k] * B[k, j] }\n  } }\n}\n";
  EXPECT_THAT(MustAgree(text, OnCard("mlu370")).notes, ElementsAre("S1.sums S1 -> C"));
  EXPECT_THAT(MustAgree(text, OnCard("mlu270")).notes,
              testing::Not(testing::Contains(HasSubstr("sums"))));
}

// Sums over several loops around rows are sums over one; groups of channels are rows of all that they sum up.
TEST(UnscheduledNestsTest, LoopsThatAreWalkedAsOne) {
  const NestReport means = MustAgree(
      "func means(X: f32[4, 14, 15, 64] in, m: f32[64] out) {\n"
      "  for (c, 0, 64) {\n    m[c] = 0.0\n    for (y, 0, 14) { for (n, 0, 4) { for (x, 0, 15) {\n"
      "      m[c] = m[c] + X[n, y, x, c]\n    } } }\n  }\n}\n",
      OnCard("mlu370"));
  EXPECT_LT(means.cycles, 4000);
  const NestReport groups = MustAgree(
      "func groups(X: f32[32, 28, 28] in, Y: f32[32, 28, 28] out) {\n  allocate s: f32[8]\n"
      "  for (g, 0, 8) {\n    s[g] = 0.0\n    for (c, 0, 4) { for (y, 0, 28) { for (x, 0, 28) {\n"
      "      s[g] = s[g] + X[g * 4 + c, y, x]\n    } } }\n  }\n"
      "  for (g, 0, 8) { for (c, 0, 4) { for (y, 0, 28) { for (x, 0, 28) {\n"
      "    Y[g * 4 + c, y, x] = X[g * 4 + c, y, x] - s[g]\n  } } } }\n}\n",
      OnCard("mlu370"));
  EXPECT_LT(groups.cycles, 4000);
}

// The place of the largest element: places are a row that the scalar units store.
TEST(UnscheduledNestsTest, ValuesOfPlaces) {
  const NestReport report = MustAgree(
      "func places(X: f32[33, 130] in, M: f32[33] out, P: i32[33] out, Y: f32[33, 130] out) {\n"
      "  for (i, 0, 33) {\n    M[i] = X[i, 0]\n"
      "    for (j, 0, 130) { M[i] = max(M[i], X[i, j]) }\n  }\n"
      "  for (i, 0, 33) {\n    P[i] = 130\n"
      "    for (j, 0, 130) { P[i] = min(P[i], select(X[i, j] == M[i], j, 130)) }\n  }\n"
      "  for (i, 0, 33) { for (j, 0, 130) {\n"
      "    Y[i, j] = X[i, j] + sin(f32(i + 2) * exp(f32(j) * -0.125))\n  } }\n}\n",
      OnCard());
  EXPECT_THAT(report.notes, testing::Contains("S3 -> P"));
  EXPECT_LT(report.cycles, 60000);
  // Not all values of an expression exist: none is computed where a condition leaves it out.
  MustAgree(
      "func quotients(X: i32[30, 100] in, Y: i32[30, 100] out) {\n"
      "  for (i, 0, 30) { for (j, 0, 100) {\n"
      "    Y[i, j] = X[i, j] + select(i > 0 && j > 0, 1000 / j, 5)\n  } }\n}\n",
      OnCard());
}

// A stage that has no instructions is scalar code by itself.
TEST(UnscheduledNestsTest, OneStageOnTheScalarUnits) {
  const NestReport report = MustAgree(
      "func quotients(A: i8[33, 64] in, W: i8[65, 64] in, D: i32[65] in, Y: i32[33, 65] out) {\n"
      "  allocate T: i32[33, 65]\n"
      "  for (i, 0, 33) { for (j, 0, 65) {\n    T[i, j] = 0\n"
      "    for (k, 0, 64) { T[i, j] = T[i, j] + i32(A[i, k]) * i32(W[j, k]) }\n  } }\n"
      "  for (i, 0, 33) { for (j, 0, 65) { Y[i, j] = T[i, j] / max(D[j], 1) } }\n}\n",
      OnCard());
  EXPECT_THAT(report.notes, testing::Contains("S1 -> T"));
  EXPECT_THAT(report.notes, testing::Contains(HasSubstr("S2 -> Y on the scalar units: ")));
}

// Rows that no two cores share evenly are turned in parts, of which one is even.
TEST(UnscheduledNestsTest, TranspositionsOfOddSizes) {
  const auto nest = [](int64_t rows, int64_t columns) {
    return StrCat("func f(A: f32[", rows, ", ", columns, "] in, B: f32[", columns, ", ", rows,
                  "] out) {\n  for (c, 0, ", columns, ") { for (h, 0, ", rows,
                  ") { B[c, h] = A[h, c] } }\n}\n");
  };
  NestSettings settings = OnCard();
  settings.config = "mlu370";
  // Element by element 55,770 and 133,919 cycles.
  EXPECT_LT(*MustAgree(nest(5003, 64), settings).cycles, 36000);
  EXPECT_LT(*MustAgree(nest(49729, 32), settings).cycles, 70000);
  for (const auto& [rows, columns] :
       {std::pair(1009, 67), {131, 1021}, {129, 129}, {517, 3}, {127, 127}}) {
    MustAgree(nest(rows, columns), settings);
  }
}

// Seven of eight cores have two elements each; the last one stores nothing, but the element before its first is in
// what its copies for a window's margin reach, which scalar code computes (found by RandomNests, seed 61121).
TEST(UnscheduledNestsTest, MarginsThatScalarCodeComputes) {
  NestSettings settings = OnCard();
  settings.overrides = {"core.nmem_kib=64", "card.clusters=2", "cluster.cores=4"};
  MustAgree(
      "func f(X: f32[20] in, Y: f32[14] out) {\n  allocate T: f32[14]\n"
      "  for (j, 0, 14) { T[j] = X[max(min(i32(round(f32(j) * 0.50)), 6), 0)] }\n"
      "  for (j, 0, 14) { Y[j] = T[j] }\n"
      "  for (j, 0, 14) { for (w, 0, 3) { if (j + w - 1 >= 0 && j + w - 1 < 14) {\n"
      "    Y[j] = Y[j] + T[j + w - 1] * T[j + w - 1] } } }\n}\n",
      settings);
}

// Margins are made with the sums, and what is computed of each sum is, too: copies move neither margins nor sums of
// four bytes. Filters of one place stand in order.
TEST(UnscheduledNestsTest, MarginsAndWhatFollowsGoWithTheSums) {
  const char* const blocked =
      "func conv(X: i8[32, 12, 12] in, F: i8[64, 32, %d, %d] in, B: i32[16, 4] in, "
      "Y: i8[16, 12, 12, 4] out) {\n"
      "  allocate Q: i8[8, 12, 12, 4]\n  allocate P: i8[8, 14, 14, 4]\n"
      "  allocate G: i8[16, 8, %d, %d, 4, 4]\n  allocate S: i32[16, 12, 12, 4]\n"
      "  for (c, 0, 8) { for (y, 0, 12) { for (x, 0, 12) { for (d, 0, 4) {\n"
      "    Q[c, y, x, d] = X[c * 4 + d, y, x]\n  } } } }\n"
      "  for (c, 0, 8) { for (y, 0, 14) { for (x, 0, 14) { for (d, 0, 4) {\n"
      "    P[c, y, x, d] = select(1 <= y && y < 13 && 1 <= x && x < 13, Q[c, y - 1, x - 1, d], "
      "i8(0))\n  } } } }\n"
      "  for (o, 0, 16) { for (c, 0, 8) { for (r, 0, %d) { for (s, 0, %d) { for (b, 0, 4) {"
      " for (d, 0, 4) {\n    G[o, c, r, s, b, d] = F[o * 4 + b, c * 4 + d, r, s]\n"
      "  } } } } } }\n"
      "  for (o, 0, 16) { for (y, 0, 12) { for (x, 0, 12) { for (b, 0, 4) {\n"
      "    S[o, y, x, b] = 0\n"
      "    for (c, 0, 8) { for (r, 0, %d) { for (s, 0, %d) { for (d, 0, 4) {\n"
      "      S[o, y, x, b] = S[o, y, x, b] + i32(P[c, y + r, x + s, d]) * "
      "i32(G[o, c, r, s, b, d])\n    } } } }\n  } } } }\n"
      "  for (o, 0, 16) { for (y, 0, 12) { for (x, 0, 12) { for (b, 0, 4) {\n"
      "    Y[o, y, x, b] = i8(max(S[o, y, x, b] + B[o, b], 0))\n  } } } }\n}\n";
  const auto run = [&](int size) {
    return MustAgree(absl::StrReplaceAll(blocked, {{"%d", StrCat(size)}}), OnCard());
  };
  EXPECT_THAT(run(3).notes,
              ElementsAre("S4 -> G.turned", "S4 -> Q.turned", "S1 S4 S5 -> Y.turned", "S5 -> Y"));
  EXPECT_THAT(run(1).notes, ElementsAre("S4 -> Q.turned", "S1 S4 S5 -> Y.turned", "S5 -> Y"));
}

// Channels on two axes, depth on two, as in blocked layouts; groups of channels; windows of three dimensions.
TEST(UnscheduledNestsTest, ConvolutionsOfOtherShapesAreTurnedAround) {
  const char* convolutions[] = {
      "func blocked(X: i8[1, 3, 9, 8, 4] in, F: i8[5, 3, 3, 3, 4, 4] in, Y: i32[1, 5, 7, 6, 4] "
      "out) {\n"
      "  for (n, 0, 1) { for (o, 0, 5) { for (y, 0, 7) { for (x, 0, 6) { for (b, 0, 4) {\n"
      "    Y[n, o, y, x, b] = 0\n"
      "    for (c, 0, 3) { for (r, 0, 3) { for (s, 0, 3) { for (d, 0, 4) {\n"
      "      Y[n, o, y, x, b] = Y[n, o, y, x, b] + i32(X[n, c, y + r, x + s, d]) * "
      "i32(F[o, c, r, s, b, d])\n"
      "    } } } }\n  } } } } }\n}\n",
      "func groups(X: f32[2, 12, 6, 7] in, F: f32[24, 4, 3, 3] in, Y: f32[2, 24, 4, 5] out) {\n"
      "  for (n, 0, 2) { for (o, 0, 24) { for (y, 0, 4) { for (x, 0, 5) {\n"
      "    Y[n, o, y, x] = 0.0\n"
      "    for (c, 0, 4) { for (r, 0, 3) { for (s, 0, 3) {\n"
      "      Y[n, o, y, x] = Y[n, o, y, x] + X[n, o / 8 * 4 + c, y + r, x + s] * F[o, c, r, s]\n"
      "    } } }\n  } } } }\n}\n",
      "func volume(X: f32[16, 5, 6, 7] in, F: f32[32, 16, 2, 3, 3] in, Y: f32[32, 4, 4, 5] out) {\n"
      "  for (o, 0, 32) { for (z, 0, 4) { for (y, 0, 4) { for (x, 0, 5) {\n"
      "    Y[o, z, y, x] = 0.0\n"
      "    for (c, 0, 16) { for (q, 0, 2) { for (r, 0, 3) { for (s, 0, 3) {\n"
      "      Y[o, z, y, x] = Y[o, z, y, x] + X[c, z + q, y + r, x + s] * F[o, c, q, r, s]\n"
      "    } } } }\n  } } } }\n}\n"};
  for (const char* text : convolutions) {
    const NestReport report = MustAgree(text, OnCard("mlu370"));
    EXPECT_THAT(report.notes, testing::Not(testing::Contains(HasSubstr("scalar unit"))));
  }
}

// A group that is divided by one, as where each has a single block of channels, is a group like any other: the image is
// what windows move over, not the filters, of which another image would be made for each place of a window.
TEST(UnscheduledNestsTest, GroupsOfOneBlockAreTurnedAround) {
  const char* text =
      "func groups(X: i8[8, 58, 58, 4] in, F: i8[8, 3, 3, 4, 4] in, Y: i32[8, 56, 56, 4] out) {\n"
      "  for (o, 0, 8) { for (y, 0, 56) { for (x, 0, 56) { for (b, 0, 4) {\n"
      "    Y[o, y, x, b] = 0\n"
      "    for (r, 0, 3) { for (s, 0, 3) { for (i, 0, 4) {\n"
      "      Y[o, y, x, b] = Y[o, y, x, b] + i32(X[%o, y + r, x + s, i]) * "
      "i32(F[o, r, s, b, i])\n"
      "    } } }\n  } } } }\n}\n";
  for (const char* group : {"o", "o / 1 * 1 + o % 1"}) {
    const NestReport report =
        MustAgree(absl::StrReplaceAll(text, {{"%o", group}}), OnCard("mlu370"));
    EXPECT_THAT(report.notes, ElementsAre("S1 -> F.turned", "S1 -> Y"));
  }
}

// Of windows of three dimensions the places along one are channels of the results of planes, which are added. One
// filter is enough, and so is an image of one channel, whose planes are read, and the results stored, where they stand.
TEST(UnscheduledNestsTest, VolumesAreConvolvedPlaneByPlane) {
  const NestReport volume = MustAgree(
      "func volume(X: f32[1, 10, 12, 12, 16] in, F: f32[3, 3, 3, 16, 16] in, "
      "Y: f32[1, 8, 10, 10, 16] out) {\n"
      "  for (n, 0, 1) { for (z, 0, 8) { for (y, 0, 10) { for (x, 0, 10) { for (c, 0, 16) {\n"
      "    Y[n, z, y, x, c] = 0.0\n"
      "    for (q, 0, 3) { for (r, 0, 3) { for (s, 0, 3) { for (i, 0, 16) {\n"
      "      Y[n, z, y, x, c] = Y[n, z, y, x, c] + X[n, z + q, y + r, x + s, i] * "
      "F[q, r, s, i, c]\n"
      "    } } } }\n  } } } } }\n}\n",
      OnCard("mlu370"));
  EXPECT_THAT(volume.notes, ElementsAre("S1 -> F.turned", "S1 -> Y.planes.turned", "S1 -> Y"));
  const NestReport filter = MustAgree(
      "func filter(X: f32[1, 32, 10, 12, 12] in, F: f32[1, 32, 3, 3, 3] in, "
      "Y: f32[1, 1, 8, 10, 10] out) {\n"
      "  for (n, 0, 1) { for (z, 0, 8) { for (y, 0, 10) { for (x, 0, 10) { for (c, 0, 1) {\n"
      "    Y[n, c, z, y, x] = 0.0\n"
      "    for (q, 0, 3) { for (r, 0, 3) { for (s, 0, 3) { for (i, 0, 32) {\n"
      "      Y[n, c, z, y, x] = Y[n, c, z, y, x] + X[n, i, z + q, y + r, x + s] * "
      "F[c, i, q, r, s]\n"
      "    } } } }\n  } } } } }\n}\n",
      OnCard("mlu370"));
  EXPECT_THAT(filter.notes,
              ElementsAre("S1 -> F.turned", "S1 -> X.turned", "S1 -> Y.planes.turned", "S1 -> Y"));
  const NestReport channel = MustAgree(
      "func channel(X: f32[1, 3, 64, 64, 1] in, F: f32[1, 4, 4, 1, 32] in, "
      "Y: f32[1, 3, 31, 31, 32] out) {\n"
      "  for (n, 0, 1) { for (z, 0, 3) { for (y, 0, 31) { for (x, 0, 31) { for (c, 0, 32) {\n"
      "    Y[n, z, y, x, c] = 0.0\n"
      "    for (q, 0, 1) { for (r, 0, 4) { for (s, 0, 4) { for (i, 0, 1) {\n"
      "      Y[n, z, y, x, c] = Y[n, z, y, x, c] + X[n, z + q, y * 2 + r, x * 2 + s, i] * "
      "F[q, r, s, i, c]\n"
      "    } } } }\n  } } } } }\n}\n",
      OnCard("mlu370"));
  EXPECT_THAT(channel.notes, ElementsAre("S1 -> F.turned", "S1 -> Y"));
  // A row of products is an image of one place; with what follows it is stored where it stands.
  const NestReport row = MustAgree(
      "func row(X: f32[1024] in, W: f32[1000, 1024] in, B: f32[1000] in, Y: f32[1000] out) {\n"
      "  allocate S: f32[1000]\n"
      "  for (j, 0, 1000) {\n"
      "    S[j] = 0.0\n"
      "    for (k, 0, 1024) { S[j] = S[j] + X[k] * W[j, k] }\n"
      "    Y[j] = max(S[j] + B[j], 0.0)\n  }\n}\n",
      OnCard("mlu370"));
  EXPECT_THAT(row.notes, ElementsAre("S1 S2 -> Y"));
}

// A convolution of two or three dimensions whose image, filters and results have their dimensions in any order, some
// with a batch of one or two, with margins and with what is computed of each sum.
class RandomConvolution {
 public:
  explicit RandomConvolution(Random& random) : random_(random) {}

  std::string Make() {
    const bool is_float = random_.OneIn(2);
    const std::string type = is_float ? "f32" : "i8", sum = is_float ? "f32" : "i32";
    const auto wide = [&](const std::string& e) { return is_float ? e : StrCat("i32(", e, ")"); };
    const int64_t images = random_.Pick(1, 2), h = random_.Pick(1, 6), w = random_.Pick(1, 7);
    const int64_t ci = random_.Of<int64_t>({1, 3, 16, 32}),
                  co = random_.Of<int64_t>({1, 5, 64, 70});
    const int64_t kh = random_.Pick(1, 3), kw = random_.Pick(1, 3), stride = random_.Pick(1, 2);
    const int64_t dilation = random_.Pick(1, 2), begin = random_.Pick(0, 1);
    const auto place = [&](const char* axis, const char* window) {
      return StrCat(axis, " * ", stride, " + ", window, " * ", dilation, " + ", begin);
    };
    const auto reach = [&](int64_t outputs, int64_t taps) {
      return (outputs - 1) * stride + (taps - 1) * dilation + 1 + begin;
    };
    const bool has_batch = images > 1 || random_.OneIn(2);
    // Channels of the image that have no filters.
    const int64_t more = random_.OneIn(4) ? random_.Pick(1, 3) : 0;
    std::vector<Dimension> image = {{"y", reach(h, kh)}, {"x", reach(w, kw)}, {"i", ci + more}};
    std::vector<Dimension> result = {{"y", h}, {"x", w}, {"c", co}};
    if (has_batch) {
      image.insert(image.begin(), {"n", images});
      result.insert(result.begin(), {"n", images});
    }
    Shuffle(image), Shuffle(result);
    std::vector<Dimension> filters = {{"c", co}, {"r", kh}, {"s", kw}, {"i", ci}};
    const bool is_volume = random_.OneIn(2);
    const int64_t planes = is_volume ? random_.Pick(1, 5) : 1,
                  kd = is_volume ? random_.Pick(1, 3) : 1;
    if (is_volume) {
      const auto at = [&](size_t size) { return static_cast<ptrdiff_t>(random_.Pick(0, size)); };
      image.insert(image.begin() + at(image.size()), {"z", reach(planes, kd)});
      result.insert(result.begin() + at(result.size()), {"z", planes});
      filters.insert(filters.begin() + at(filters.size()), {"q", kd});
    }
    Shuffle(filters);
    const std::string zero = is_float ? "0.0" : "0";
    const std::string start = is_float ? "0.0" : random_.OneIn(2) ? "0" : "7";
    const std::string factor = random_.OneIn(3) ? (is_float ? "0.5 * " : "i32(3) * ") : "";
    std::string params, before, after, sums = "Y", read = "X";
    std::vector<Dimension> input = image;
    if (random_.OneIn(2)) {
      before = Margins(image, input, read, StrCat(type, random_.OneIn(3) ? "(2)" : "(0)"));
    }
    if (random_.OneIn(2)) {
      const std::string out = is_float ? "f32" : "i8";
      sums = "S";
      // With a number for each channel, with one, or with one for each result.
      std::string shape = StrCat(co), other = random_.OneIn(2) ? "B[c]" : "B[0]";
      if (random_.OneIn(3)) {
        Dimensions residual = result;
        if (random_.OneIn(2)) Shuffle(residual);
        shape = Extents(residual);
        other = StrCat("B[", Indices(residual), "]");
      }
      after = StrCat(Loops(result), "Y[", Indices(result), "] = ", out, "(max(S[", Indices(result),
                     "] + ", other, ", ", zero, "))", Ends(result));
      before = StrCat("  allocate S: ", sum, "[", Extents(result), "]\n", before);
      params = StrCat("B: ", sum, "[", shape, "] in, Y: ", out);
    } else {
      params = StrCat("Y: ", sum);
    }
    const std::string y = Indices(result);
    for (Dimension& d : image) {
      if (d.index == "y") d.index = place("y", "r");
      if (d.index == "x") d.index = place("x", "s");
      if (d.index == "z") d.index = place("z", "q");
      if (d.index == "i" && more > 1) d.index = "i + 1";
    }
    return StrCat(
        "func conv(X: ", type, "[", Extents(input), "] in, F: ", type, "[", Extents(filters),
        "] in, ", params, "[", Extents(result), "] out) {\n", before, "  for (n, 0, ",
        has_batch ? images : 1, ") { for (z, 0, ", planes, ") { for (y, 0, ", h, ") { for (x, 0, ",
        w, ") { for (c, 0, ", co, ") {\n    ", sums, "[", y, "] = ", start, "\n    for (q, 0, ", kd,
        ") { for (r, 0, ", kh, ") { for (s, 0, ", kw, ") { for (i, 0, ", ci, ") {\n      ", sums,
        "[", y, "] = ", sums, "[", y, "] + ", factor, wide(StrCat(read, "[", Indices(image), "]")),
        " * ", wide(StrCat("F[", Indices(filters), "]")), "\n    } } } }\n  } } } } }\n", after,
        "}\n");
  }

 private:
  struct Dimension {
    std::string index;
    int64_t extent;
  };
  using Dimensions = std::vector<Dimension>;

  void Shuffle(Dimensions& dimensions) {
    for (size_t i = dimensions.size(); i > 1; --i) {
      if (!random_.OneIn(3)) std::swap(dimensions[i - 1], dimensions[random_.Pick(0, i - 1)]);
    }
  }
  static std::string Indices(const Dimensions& dimensions) {
    return absl::StrJoin(dimensions, ", ",
                         [](std::string* out, const Dimension& d) { *out += d.index; });
  }
  static std::string Extents(const Dimensions& dimensions) {
    return absl::StrJoin(dimensions, ", ",
                         [](std::string* out, const Dimension& d) { StrAppend(out, d.extent); });
  }
  static std::string Loops(const Dimensions& dimensions) {
    std::string text = "  ";
    for (const Dimension& d : dimensions) {
      StrAppend(&text, "for (", d.index, ", 0, ", d.extent, ") { ");
    }
    return text;
  }
  static std::string Ends(const Dimensions& dimensions) {
    std::string text;
    for (size_t d = 0; d < dimensions.size(); ++d) text += " }";
    return text + "\n";
  }
  // P is `image`: `input`, in another order perhaps, with margins along planes, rows and columns.
  std::string Margins(const Dimensions& image, Dimensions& input, std::string& read,
                      const std::string& outside) {
    std::vector<std::string> conditions;
    if (random_.OneIn(3)) Shuffle(input);
    Dimensions inner = input;
    for (size_t d = 0; d < input.size(); ++d) {
      const std::string& axis = input[d].index;
      const bool is_window = axis == "z" || axis == "y" || axis == "x";
      const int64_t low = is_window ? random_.Pick(0, 2) : 0;
      const int64_t extent = is_window ? input[d].extent - low - random_.Pick(0, 1) : 0;
      if (extent < 1) continue;
      conditions.push_back(StrCat(low, " <= ", axis, " && ", axis, " < ", low + extent));
      inner[d].index = StrCat(axis, " - ", low);
      input[d].extent = extent;
    }
    if (conditions.empty()) {
      input = image;
      return "";
    }
    read = "P";
    const std::string type = outside.substr(0, outside.find('('));
    return StrCat("  allocate P: ", type, "[", Extents(image), "]\n", Loops(image), "P[",
                  Indices(image), "] = select(", absl::StrJoin(conditions, " && "), ", X[",
                  Indices(inner), "], ", outside, ")", Ends(image));
  }

  Random& random_;
};

TEST(UnscheduledNestsTest, ConvolutionsOfAnyLayout) {
  ForRandomSeeds(60, /*scalar_rate=*/0, [&](Random& random, unsigned seed, Exceptions&) {
    NestSettings settings = OnCard(random.OneIn(2) ? "mlu370" : "mlu270");
    settings.overrides = {StrCat("card.clusters=", random.Pick(1, 4)),
                          StrCat("cluster.cores=", random.Pick(1, 4))};
    settings.seed = seed;
    MustAgree(RandomConvolution(random).Make(), settings);
  });
}

// Only what stands in another order is copied; what sums begin with is added behind them.
TEST(UnscheduledNestsTest, WhatStandsInOrderIsNotCopied) {
  const auto run = [](const char* place, const char* start) {
    return MustAgree(
        StrCat("func conv(X: i8[1, 12, 15, 64] in, F: i8[3, 3, 64, 64] in, "
               "Y: i32[1, 8, 10, 64]) {\n"
               "  for (n, 0, 1) { for (y, 0, 8) { for (x, 0, 10) { for (c, 0, 64) {\n    ",
               start,
               "\n    for (r, 0, 3) { for (s, 0, 3) { for (i, 0, 64) {\n"
               "      Y[n, y, x, c] = Y[n, y, x, c] + i32(X[n, ",
               place, ", i]) * i32(F[r, s, i, c])\n    } } }\n  } } } }\n}\n"),
        OnCard());
  };
  const char* const zero = "Y[n, y, x, c] = 0";
  for (const char* place : {"y + r, x + s", "y + r + 1, 2 + x + s"}) {
    EXPECT_THAT(run(place, zero).notes, ElementsAre("S1 -> F.turned", "S1 -> Y"));
  }
  EXPECT_THAT(run("y + r, x + s", "Y[n, y, x, c] = 7").notes,
              ElementsAre("S1 -> F.turned", "S1 -> Y.turned", "S1 -> Y"));
  EXPECT_THAT(run("y + r, x + s", "").notes,
              ElementsAre("S0 -> F.turned", "S0 -> Y.turned", "S0 -> Y"));
}

// A batch of one is no dimension: then nothing of this one is copied. Nor is a sum of its own for each iteration.
TEST(UnscheduledNestsTest, DimensionsOfOneElementAreDropped) {
  const NestReport convolution = MustAgree(
      "func conv(X: i8[1, 10, 12, 64] in, F: i8[64, 3, 3, 64] in, Y: i32[1, 8, 10, 64] out) {\n"
      "  for (n, 0, 1) { for (y, 0, 8) { for (x, 0, 10) { for (c, 0, 64) {\n"
      "    Y[n, y, x, c] = 0\n"
      "    for (r, 0, 3) { for (s, 0, 3) { for (i, 0, 64) {\n"
      "      Y[n, y, x, c] = Y[n, y, x, c] + i32(X[n, y + r, x + s, i]) * i32(F[c, r, s, i])\n"
      "    } } }\n  } } } }\n}\n",
      OnCard());
  EXPECT_THAT(convolution.notes, ElementsAre("S1 -> Y"));
  const NestReport products = MustAgree(
      "func products(A: f16[8, 96, 64] in, B: f16[8, 64, 128] in, C: f16[8, 96, 128] out) {\n"
      "  for (b, 0, 8) { for (i, 0, 96) { for (j, 0, 128) {\n"
      "    allocate s: f32[1]\n    s[0] = 0.0\n"
      "    for (k, 0, 64) { s[0] = s[0] + f32(A[b, i, k]) * f32(B[b, k, j]) }\n"
      "    C[b, i, j] = f16(s[0])\n  } } }\n}\n",
      OnCard("mlu370"));
  EXPECT_THAT(products.notes, ElementsAre("S1 S2 -> C"));
  const absl::StatusOr<kernels::OperatorCase> c =
      ParseCase({.op = "batched_matmul", .shape = "8x96x64,8x64x128", .dtype = "f16"});
  ASSERT_TRUE(c.ok()) << c.status();
  CaseSettings settings;
  settings.config = "mlu370";
  const absl::StatusOr<CaseReport> report = RunCase(*c, settings);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_LE(static_cast<double>(*products.cycles),
            1.05 * static_cast<double>(report->simulated->cycles));
}

// What is computed in place is another tensor each time, so that all of it is one group: a mean, a deviation and what
// is made of them. Not in iterations that are alike; nor is what was there before lost.
TEST(UnscheduledNestsTest, TensorsInPlaceAreVersions) {
  const NestReport norm = MustAgree(
      "func norm(X: f16[64, 256] in, Y: f16[64, 256] out) {\n"
      "  for (i, 0, 64) {\n    allocate m: f32[1]\n    allocate v: f32[1]\n"
      "    m[0] = 0.0\n    for (j, 0, 256) { m[0] = m[0] + f32(X[i, j]) }\n"
      "    m[0] = m[0] * 0.00390625\n"
      "    v[0] = 0.0\n"
      "    for (j, 0, 256) { v[0] = v[0] + (f32(X[i, j]) - m[0]) * (f32(X[i, j]) - m[0]) }\n"
      "    v[0] = rsqrt(v[0] * 0.00390625 + 0.00001)\n"
      "    for (j, 0, 256) { Y[i, j] = f16((f32(X[i, j]) - m[0]) * v[0]) }\n  }\n}\n",
      OnCard("mlu370"));
  EXPECT_THAT(norm.notes, ElementsAre("S1 S2 S4 S5 S6 -> Y"));
  MustAgree(
      "func steps(X: f32[64] in, Y: f32[64], Z: f32[64] out) {\n"
      "  for (i, 0, 64) { Z[i] = Y[i] + X[i] }\n"
      "  for (i, 0, 64) { Y[i] = Z[63 - i] * 2.0 }\n"
      "  for (t, 0, 3) {\n"
      "    for (i, 0, 64) { Z[i] = Y[63 - i] + Z[i] }\n"
      "    for (i, 0, 64) { Y[i] = Z[i] * 0.5 }\n  }\n"
      "  for (i, 0, 32) { Z[i] = Y[i] }\n}\n",
      OnCard("mlu370"));
}

// Neighbouring dimensions become one where they are whole.
TEST(UnscheduledNestsTest, CopiesOfWholeAndOfPartsOfTensors) {
  for (
      const char* text :
      {"func whole(X: f32[8, 10, 64] in, Y: f32[64, 8, 10] out) {\n"
       "  for (c, 0, 64) { for (y, 0, 8) { for (x, 0, 10) { Y[c, y, x] = X[y, x, c] } } }\n}\n",
       "func read(X: f32[8, 12, 64] in, Y: f32[64, 8, 10] out) {\n"
       "  for (c, 0, 64) { for (y, 0, 8) { for (x, 0, 10) { Y[c, y, x] = X[y, x, c] } } }\n}\n",
       "func stored(X: f32[8, 10, 64] in, Y: f32[64, 8, 12]) {\n"
       "  for (c, 0, 64) { for (y, 0, 8) { for (x, 0, 10) { Y[c, y, x + 1] = X[y, x, c] } } }\n}\n",
       "func first(X: f32[8, 10, 64] in, Y: f32[64, 8, 12]) {\n"
       "  for (c, 0, 64) { for (y, 0, 8) { for (x, 0, 10) { Y[c, y, x] = X[y, x, c] } } }\n}\n",
       "func rows(X: f32[8, 10, 64] in, Y: f32[64, 10, 10]) {\n"
       "  for (c, 0, 64) { for (y, 0, 8) { for (x, 0, 10) { Y[c, y + 1, x] = X[y, x, c] } } }\n}\n",
       "func rows_read(X: f32[9, 10, 64] in, Y: f32[64, 8, 10] out) {\n"
       "  for (c, 0, 64) { for (y, 0, 8) { for (x, 0, 10) { Y[c, y, x] = X[y, x, c] } } }\n}\n"}) {
    for (const char* config : {"mlu270", "mlu370"}) MustAgree(text, OnCard(config));
  }
}

// alpha A B: a product of what is computed first.
TEST(UnscheduledNestsTest, AComputedFactorIsAStage) {
  const NestReport report = MustAgree(
      "func product(A: f32[64, 128] in, B: f32[128, 192] in, C: f32[64, 192]) {\n"
      "  for (i, 0, 64) {\n"
      "    for (j, 0, 192) { C[i, j] = C[i, j] * 0.75 }\n"
      "    for (k, 0, 128) { for (j, 0, 192) {\n"
      "      C[i, j] = C[i, j] + 1.5 * A[i, k] * B[k, j]\n"
      "    } }\n  }\n}\n",
      OnCard("mlu370"));
  EXPECT_THAT(report.notes, testing::Contains("S1 -> A.factor"));
}

// A product leaves clusters idle where each would load all weights, as the operator does.
TEST(UnscheduledNestsTest, ProductsTakeWhatTheOperatorTakes) {
  const NestReport report = MustAgree(
      "func product(A: i8[512, 512] in, B: i8[512, 512] in, C: i32[512, 512] out) {\n"
      "  for (i, 0, 512) { for (j, 0, 512) {\n"
      "    C[i, j] = 0\n"
      "    for (k, 0, 512) { C[i, j] = C[i, j] + i32(A[i, k]) * i32(B[j, k]) }\n"
      "  } }\n}\n",
      OnCard());
  const absl::StatusOr<kernels::OperatorCase> c = ParseCase(
      {.op = "matmul", .shape = "512x512,512x512", .dtype = "i8", .attributes = {"out=i32"}});
  ASSERT_TRUE(c.ok()) << c.status();
  const absl::StatusOr<CaseReport> operator_report = RunCase(*c, CaseSettings());
  ASSERT_TRUE(operator_report.ok()) << operator_report.status();
  EXPECT_LE(static_cast<double>(*report.cycles),
            1.05 * static_cast<double>(operator_report->simulated->cycles));
}

// Axes with quotients and remainders become two, those with other values at some places one for each; what is allocated
// in a loop gets a part for each iteration. All of it without scalar code.
TEST(UnscheduledNestsTest, PlacesAndIterations) {
  for (const char* text :
       {"func dilated(A: f32[5, 7] in, Y: f32[14, 20] out) { for (i, 0, 14) { for (j, 0, 20) { "
        "Y[i, j] = select((i + 1) % 3 == 0 && (j + 2) % 3 == 0 && 2 <= j && j < 18, "
        "A[(i + 1) / 3, (j + 2) / 3], 1.0) } } }",
        "func shuffled(A: f32[4, 8, 8, 7] in, Y: f32[14, 14, 7] out) { for (y, 0, 14) { "
        "for (x, 0, 14) { for (c, 0, 7) { Y[y, x, c] = A[(y + 1) % 2 * 2 + (x + 1) % 2, "
        "(y + 1) / 2, (x + 1) / 2, c] } } } }",
        "func tiles(A: f32[12, 65] in, Y: f32[3, 65] out) { for (p, 0, 3) { for (c, 0, 65) { "
        "Y[p, c] = A[p / 2 * 5 + p % 2 * 3, c] } } }",
        "func rows(A: f32[3, 65] in, Y: f32[3, 65] out) { for (e, 0, 3) { for (c, 0, 65) { "
        "Y[e, c] = select(e == 0, A[0, c] + A[1, c], select(e == 1, A[1, c] * 2.0, A[2, c])) } } }",
        "func runs(A: f32[9, 70] in, Y: f32[9, 70] out) { for (i, 0, 9) { for (c, 0, 70) { "
        "Y[i, c] = select(c == 33, A[i, c] * 2.0, A[i, c] + 1.0) } } }",
        "func each(A: f32[9, 8, 12], F: f32[12, 12] in) { for (r, 0, 9) { for (q, 0, 8) { "
        "allocate s: f32[12] for (p, 0, 12) { s[p] = 0.0 "
        "for (k, 0, 12) { s[p] = s[p] + A[r, q, k] * F[k, p] } } "
        "for (p, 0, 12) { A[r, q, p] = s[p] } } } }"}) {
    const NestReport report = MustAgree(StrCat(text, "\n"), OnCard("mlu370"));
    for (const std::string& note : report.notes) {
      EXPECT_THAT(note, testing::Not(HasSubstr("scalar unit"))) << text;
    }
  }
}

// A tile of the stencil loads a row more than it needs, of a tensor of which only a part is stored.
TEST(UnscheduledNestsTest, NothingIsLoadedThatIsNotStored) {
  MustAgree(
      "func part(A: f32[39, 70] in, Y: f32[35, 70] out, Z: f32[35, 70] out) {\n"
      "  allocate T: f32[39, 70]\n"
      "  for (i, 1, 37) { for (j, 0, 70) { T[i, j] = A[i - 1, j] + A[i + 1, j] } }\n"
      "  for (i, 0, 35) { for (j, 0, 70) { Y[i, j] = T[i + 1, j] + T[i + 2, j] + T[i + 3, j] } }\n"
      "  for (i, 0, 35) { for (j, 0, 70) { Z[i, j] = T[i + 2, j] * 2.0 } }\n}\n",
      OnCard());
}

// The last cluster has fewer planes than the others: tiles behind them store nothing, so that they load nothing either.
// With their loads, of which one was a transfer of each element under a condition, this took 1.5 million cycles.
TEST(UnscheduledNestsTest, TilesWithoutResultsLoadNothing) {
  const NestReport report = MustAgree(
      "func sums(A: f32[40, 40, 40], B: f32[40, 40, 40]) {\n"
      "  for (t, 0, 2) {\n"
      "    for (i, 1, 38) { for (j, 1, 38) { for (k, 1, 38) {\n"
      "      B[i, j, k] = A[i + 1, j, k] * 0.5 + A[i, j + 1, k] * 0.5 + A[i, j - 1, k] * 0.5\n"
      "                   + A[i - 1, j, k] * 0.5 + A[i, j, k - 1] * 0.5 } } }\n"
      "    for (i, 1, 38) { for (j, 1, 38) { for (k, 1, 38) { A[i, j, k] = B[i, j, k] } } }\n"
      "  }\n}\n",
      OnCard("mlu370"));
  EXPECT_LE(*report.cycles, 300000);
}

// What a sum begins with is a stage of its own if something else reads it.
TEST(UnscheduledNestsTest, AReadStartIsStored) {
  const NestReport report = MustAgree(
      "func start(A: i32[5, 7] in, S: i32[5], T: i32[5]) {\n"
      "  for (i, 0, 5) { S[i] = 1 }\n"
      "  for (i, 0, 5) { T[i] = S[i] }\n"
      "  for (i, 0, 5) { for (j, 0, 7) { S[i] = S[i] + A[i, j] } }\n}\n",
      OnCard());
  EXPECT_THAT(report.notes, ElementsAre("S0 -> S.0", "S1 -> T", "S2 -> S"));
}

TEST(UnscheduledNestsTest, TimeStepsThatAreAlikeAreCompiledOnce) {
  const NestReport report = MustAgree(
      "func jacobi(A: f32[300], B: f32[300]) {\n"
      "  for (t, 0, 50) {\n"
      "    for (i, 1, 298) { B[i] = (A[i - 1] + A[i + 1]) * 0.5 }\n"
      "    for (i, 1, 298) { A[i] = (B[i - 1] + B[i + 1]) * 0.5 }\n"
      "  }\n}\n",
      OnCard());
  EXPECT_THAT(report.notes, ElementsAre("S0 -> B", "S1 -> A"));
}

TEST(UnscheduledNestsTest, ANoteSaysWhatRunsOnTheScalarUnit) {
  const NestReport report = MustAgree(
      "func scan(A: i32[900]) { for (i, 1, 899) { A[i] = A[i] + A[i - 1] } }\n", OnCard());
  ASSERT_EQ(report.notes.size(), 2);
  EXPECT_THAT(report.notes[0],
              HasSubstr("statement 'A[i] = A[i] + A[i - 1]': expected that no iteration needs what "
                        "another one stores"));
  EXPECT_EQ(report.notes[1], "1 stores are left to the scalar unit");
}

// Loops of any integer type, mixed, and without an iteration; variables of loops as values, indices that are data.
// Scalar code is shared by all cores where the iterations of an outermost loop are independent; loops behind one
// another wait for each other, and what is not independent stays on one core.
TEST(UnscheduledNestsTest, CoresShareScalarLoops) {
  const NestReport report = MustAgree(
      "func sums(X: f32[37, 50] in, Y: f32[37, 50] out, Z: f32[37, 50] out, S: f32[37] out) {\n"
      "  for (i, 0, 37) {\n    Y[i, 0] = X[i, 0]\n"
      "    for (j, 1, 49) { Y[i, j] = Y[i, j - 1] + X[i, j] }\n  }\n"
      "  S[0] = Y[36, 49]\n"
      "  for (i, 1, 36) { S[i] = S[i - 1] + Y[36 - i, 49] }\n"
      "  for (i, 5, 32) {\n    Z[i, 49] = S[41 - i]\n"
      "    for (j, 0, 49) { Z[i, 48 - j] = Z[i, 49 - j] * 0.5 + Y[36 - i, j] }\n  }\n}\n",
      OnCard());
  EXPECT_THAT(report.notes, testing::Contains(HasSubstr("on the scalar units of all cores")));
  // Updates of one element, and what each iteration uses, are no one core's.
  MustAgree(
      "func shared(X: i32[512] in, Y: i32[512] out, Z: i32[512] out, S: i32[1]) {\n"
      "  allocate t: i32[1]\n  Y[0] = X[0]\n"
      "  for (j, 1, 511) { Y[j] = Y[j - 1] + X[j] }\n"
      "  for (i, 0, 512) { S[0] = S[0] + X[i] }\n"
      "  for (i, 0, 512) { t[0] = X[i] / 3\n Z[i] = t[0] * t[0] }\n}\n",
      OnCard());
  const NestReport one = MustAgree(
      "func steps(X: f32[1000], Y: f32[1000]) {\n"
      "  for (t, 0, 3) { for (i, 1, 999) { X[i] = X[i - 1] * 0.5 + Y[i] } }\n}\n",
      OnCard());
  EXPECT_THAT(one.notes, testing::Contains(HasSubstr("on the scalar unit of one core")));
}

TEST(UnscheduledNestsTest, AnyLoop) {
  for (const char* body :
       {"for (i: i8, i8(0), i8(20)) { B[i, 0] = A[i + i8(1), 0] }",
        "for (i, 0, 39) { for (j: i64, i64(0), i64(9)) { B[i + 1, j] = A[i + 1, j] + A[i, j] } }",
        "for (i: i16, i16(0), i16(30)) { B[i, 0] = 0 for (j: i8, i8(1), i8(5)) { "
        "B[i, 0] = B[i, 0] + A[i + i16(1), j + i8(1)] } }",
        "for (i, 5, 0) { B[i, 0] = A[i, 0] }", "for (i, 0, 40) { B[i, 3] = i * 3 }",
        "parallel (i, 0, 40) { vectorize (j, 0, 9) { B[i, j] = A[39 - i, 8 - j] } }",
        "for (i, 0, 40) { B[i, 0] = A[max(0, min(A[i, 1], 39)), 2] }", "B[3, 4] = A[5, 6]",
        "for (j, 0, 9) { B[0, j] = A[3, 2] }"}) {
    MustAgree(StrCat("func any(A: i32[40, 9] in, B: i32[40, 9]) { ", body, " }\n"), OnCard());
  }
}

// All 30 in f32, of the smallest data set: right values, and which of them are no instructions.
TEST(UnscheduledNestsTest, KernelsOfPolyBench) {
  std::vector<std::string> on_scalar_unit;
  for (const kernels::PolyBenchKernel& kernel : kernels::PolyBenchKernels()) {
    NestSettings settings = OnCard("mlu370");
    settings.values = "uniform";
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      settings.arguments.push_back(StrCat(kernel.parameters[i], "=", kernel.sizes[0][i]));
    }
    for (const auto& [scalar, value] : kernel.scalars) {
      settings.arguments.push_back(StrCat(scalar, "=", value));
    }
    const std::string text = absl::StrReplaceAll(ToAbsl(kernel.text), {{"f64", "f32"}});
    SCOPED_TRACE(std::string(kernel.name));
    const NestReport report = MustAgree(text, settings);
    const bool has_scalar_code = std::any_of(
        report.notes.begin(), report.notes.end(),
        [](const std::string& note) { return note.find("scalar unit") != std::string::npos; });
    if (has_scalar_code) on_scalar_unit.emplace_back(kernel.name);
  }
  EXPECT_THAT(on_scalar_unit, testing::IsSubsetOf({"adi", "cholesky", "deriche", "floyd-warshall",
                                                   "lu", "ludcmp", "nussinov", "seidel-2d"}));
}

}  // namespace
}  // namespace polynao::cases
