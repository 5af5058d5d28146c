// Random pipelines of stencils, up- and downsampling, sums, borders and gathers, with arrays that several stages read, each the same or a
// part of its own, that live on, and that are updated in place after others have read them; for tests of schedulers.
#ifndef COMPILER_POLY_FUSE_RANDOM_PIPELINE_FOR_TEST_H_
#define COMPILER_POLY_FUSE_RANDOM_PIPELINE_FOR_TEST_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace polynao::poly {

class RandomPipeline {
 public:
  explicit RandomPipeline(uint64_t seed) : random_(seed) {}

  std::string Text() {
    type_ = Pick(2) == 0 ? "f32" : "i32";
    stages_.push_back({.name = "a", .rows = 1 + Pick(20), .columns = 1 + Pick(20), .reads = 1});
    const int n = 2 + Pick(6);
    for (int i = 0; i < n; ++i) {
      AddStage();
      if (Pick(5) == 0) UpdateInPlace();
    }
    std::string parameters, allocations;
    for (const Stage& s : stages_) {
      const std::string declared = StrCat(s.name, ": ", type_, "[", s.rows, ", ", s.columns, "]");
      if (s.name == "a") {
        parameters = StrCat(declared, " in");
      } else if (s.reads == 0 || s.is_live) {
        StrAppend(&parameters, ", ", declared);
      } else {
        StrAppend(&allocations, "  allocate ", declared, "\n");
      }
    }
    return StrCat("func f(", parameters, ") {\n", allocations, body_, "}\n");
  }

  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

 private:
  struct Stage {
    std::string name;
    int rows, columns, reads = 0;
    bool is_live = false;
  };

  Stage& Source() {
    // Mostly a late one.
    const size_t n = stages_.size();
    Stage& s = stages_[Pick(3) > 0 ? n - 1 : static_cast<size_t>(Pick(static_cast<int>(n)))];
    ++s.reads;
    return s;
  }

  std::string Number() { return type_ == "f32" ? StrCat(1 + Pick(9), ".5") : StrCat(1 + Pick(9)); }

  std::string Element(const Stage& s, const std::string& i, const std::string& j) {
    return StrCat(s.name, "[", i, ", ", j, "]");
  }

  void Nest(int first_row, int rows, int first_column, int columns, const std::string& statement) {
    const std::string outer = StrCat("for (i, ", first_row, ", ", rows, ")");
    const std::string inner = StrCat("for (j, ", first_column, ", ", columns, ")");
    const bool swaps = Pick(4) == 0;
    StrAppend(&body_, "  ", swaps ? inner : outer, " { ", swaps ? outer : inner, " { ", statement,
              " } }\n");
  }

  // Stages before may have read what changes here.
  void UpdateInPlace() {
    const Stage other = Source();
    Stage& s = stages_[static_cast<size_t>(1 + Pick(static_cast<int>(stages_.size()) - 1))];
    const std::string here = Element(s, "i", "j"), target = here + " = ";
    switch (Pick(4)) {
      case 0:  // pointwise
        Nest(0, s.rows, 0, s.columns,
             StrCat(target, here, " * ", Number(), " + ",
                    Element(other, StrCat("min(i, ", other.rows - 1, ")"),
                            StrCat("min(j, ", other.columns - 1, ")"))));
        break;
      case 1:  // from elements that change later
        Nest(0, s.rows - 1, 0, s.columns,
             StrCat(target, here, " + ", Element(s, "i + 1", "j"), " * ", Number()));
        break;
      case 2:  // from elements that have changed before
        Nest(0, s.rows, 1, s.columns - 1,
             StrCat(target, here, " - ", Element(s, "i", "j - 1"), " * ", Number()));
        break;
      case 3: {  // in the middle only
        const int row = Pick(s.rows), column = Pick(s.columns);
        Nest(row, s.rows - row, column, s.columns - column, StrCat(target, Number()));
        break;
      }
    }
  }

  void AddStage() {
    const Stage source = Source();
    Stage s{.name = StrCat("t", stages_.size()), .rows = source.rows, .columns = source.columns};
    s.is_live = Pick(8) == 0;
    const std::string target = StrCat(s.name, "[i, j] = ");
    const auto add = [&](const std::string& value) {
      Nest(0, s.rows, 0, s.columns, StrCat(target, value));
    };
    switch (Pick(10)) {
      case 0:
      case 1: {  // a stencil
        const int height = Pick(std::min(4, s.rows)), width = Pick(std::min(4, s.columns));
        s.rows -= height;
        s.columns -= width;
        std::string value = Number();
        for (int k = Pick(4); k >= 0; --k) {
          StrAppend(
              &value, " + ", Number(), " * ",
              Element(source, StrCat("i + ", Pick(height + 1)), StrCat("j + ", Pick(width + 1))));
        }
        add(value);
        break;
      }
      case 2:  // half of the rows, or of both
        s.rows = (s.rows + 1) / 2;
        if (Pick(2) == 0) {
          add(StrCat(Element(source, "2 * i", "j"), " * ", Number()));
        } else {
          s.columns = (s.columns + 1) / 2;
          add(StrCat(Element(source, "i * 2", "j * 2"), " + ",
                     Element(source, StrCat("min(2 * i + 1, ", source.rows - 1, ")"), "2 * j")));
        }
        break;
      case 3:  // twice as many
        s.rows = std::max(2 * s.rows - 1, 1);
        add(StrCat(Element(source, "i / 2", "j"), " + ", Element(source, "(i + 1) / 2", "j")));
        break;
      case 4: {  // two sources
        const Stage other = Source();
        s.rows = std::min(s.rows, other.rows);
        s.columns = std::min(s.columns, other.columns);
        add(StrCat(Element(source, "i", "j"), " * ", Number(), " - ",
                   Element(other, StrCat(other.rows - s.rows, " + i"), "j")));
        break;
      }
      case 5: {  // sums of windows, in two nests or one
        const int height = 1 + Pick(std::min(3, s.rows)), width = 1 + Pick(std::min(3, s.columns));
        s.rows -= height - 1;
        s.columns -= width - 1;
        const std::string zero = StrCat(target, type_ == "f32" ? "0.0" : "0");
        const std::string update =
            StrCat("for (p, 0, ", height, ") { for (q, 0, ", width, ") { ", target, s.name,
                   "[i, j] + ", Element(source, "i + p", "j + q"), " } }");
        if (Pick(2) == 0) {
          add(type_ == "f32" ? "0.0" : "0");
          Nest(0, s.rows, 0, s.columns, update);
        } else {
          Nest(0, s.rows, 0, s.columns, StrCat(zero, " ", update));
        }
        break;
      }
      case 6:  // a border, or an edge in a nest of its own
        if (Pick(2) == 0) {
          s.rows += 2;
          add(StrCat("select(i >= 1 && i < ", s.rows - 1, ", ", Element(source, "i - 1", "j"), ", ",
                     Number(), ")"));
        } else {
          Nest(0, 1, 0, s.columns, StrCat(target, Number()));
          Nest(1, s.rows - 1, 0, s.columns,
               StrCat(target, Element(source, "i - 1", "j"), " * ", Number()));
        }
        break;
      case 7:
        if (type_ == "i32" && Pick(2) == 0) {  // where the data says
          const std::string at = Element(source, "i", "j");
          add(Element(source, "i",
                      StrCat("(", at, " % ", s.columns, " + ", s.columns, ") % ", s.columns)));
        } else {
          std::swap(s.rows, s.columns);
          add(StrCat(Element(source, "j", "i"), " + ", Number()));
        }
        break;
      case 8: {  // one of two that live on and read the same
        s.is_live = true;
        s.columns -= std::min(1, s.columns - 1);
        add(StrCat(Element(source, "i", "j"), " + ", Number()));
        Stage twin = s;
        twin.name = StrCat("t", stages_.size() + 1);
        Nest(0, s.rows, 0, s.columns,
             StrCat(twin.name,
                    "[i, j] = ", Element(source, "i", StrCat("j + ", source.columns - s.columns)),
                    " * ", Element(source, "i", "j")));
        stages_.push_back(s);
        s = twin;
        break;
      }
      case 9: {  // one of two that live on and read a part each
        if (s.rows < 2) {
          add(StrCat(Element(source, "i", "j"), " * ", Number()));
          break;
        }
        Stage first = s;
        first.is_live = s.is_live = true;
        first.rows = 1 + Pick(s.rows - 1);
        s.rows -= first.rows;
        Nest(0, first.rows, 0, s.columns,
             StrCat(target, Element(source, "i", "j"), " * ", Number()));
        stages_.push_back(first);
        s.name = StrCat("t", stages_.size());
        Nest(0, s.rows, 0, s.columns,
             StrCat(s.name, "[i, j] = ", Element(source, StrCat("i + ", first.rows), "j"), " - ",
                    Number()));
        break;
      }
    }
    stages_.push_back(s);
  }

  std::mt19937_64 random_;
  std::string type_;
  std::vector<Stage> stages_;
  std::string body_;
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_RANDOM_PIPELINE_FOR_TEST_H_
