// Random pipelines of stencils, up- and downsampling, sums, windows of parametric size, borders and gathers, with
// arrays that several stages read, each the same or a part of its own, that live on, that are updated in place before
// or after others read them, or of which a loop decides the size; for tests of schedulers.
#ifndef COMPILER_POLY_FUSE_RANDOM_PIPELINE_FOR_TEST_H_
#define COMPILER_POLY_FUSE_RANDOM_PIPELINE_FOR_TEST_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
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
      if (Pick(4) == 0) UpdateInPlace();
    }
    std::string asserts, parameters, allocations;
    for (const Stage& s : stages_) {
      const std::string declared =
          StrCat(s.name, ": ", type_, "[", s.Rows().text, ", ", s.Columns().text, "]");
      if (s.name == "a") {
        parameters = StrCat(declared, s.is_live ? "" : " in");
      } else if (s.reads == 0 || s.is_live) {
        StrAppend(&parameters, ", ", declared);
      } else {
        StrAppend(&allocations, "  allocate ", declared, "\n");
      }
    }
    if (has_parameters_) {
      StrAppend(&parameters, ", w: ", type_, "[kh, kw] in, kh: i32, kw: i32");
      for (const std::string name : {"kh", "kw"})
        StrAppend(&asserts, "@assert(", name, " >= 1)\n@assert(", name, " <= ", kLargest, ")\n");
    }
    return StrCat(asserts, "func f(", parameters, ") {\n", allocations, body_, "}\n");
  }

  // Returns true if it has windows of kh x kw, so that its counts are not those of one run.
  bool has_parameters() const { return has_parameters_; }
  // Returns true if it has arrays of which a loop decides the size.
  bool has_growing_arrays() const { return has_growing_arrays_; }

  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

 private:
  static constexpr int kLargest = 3;  // kh, kw

  struct Extent {
    // NOLINTNEXTLINE(google-explicit-constructor)
    Extent(int n) : text(StrCat(n)) {}
    explicit Extent(std::string t) : text(std::move(t)) {}
    Extent Plus(int n) const {
      return n == 0 ? *this : Extent(StrCat(text, n > 0 ? " + " : " - ", std::abs(n)));
    }

    std::string text;
  };

  struct Stage {
    std::string name;
    int rows, columns, reads = 0;                           // rows and columns at least
    bool is_live = false;                                   // behind the function; of "a": stored
    std::optional<Extent> all_rows = {}, all_columns = {};  // over kh, kw

    Extent Rows() const { return all_rows.value_or(Extent(rows)); }
    Extent Columns() const { return all_columns.value_or(Extent(columns)); }
    void AddRows(int n) {
      rows += n;
      if (all_rows) all_rows = all_rows->Plus(n);
    }
    void AddColumns(int n) {
      columns += n;
      if (all_columns) all_columns = all_columns->Plus(n);
    }
    void SetRows(int n) {
      rows = n;
      all_rows.reset();
    }
    void SetColumns(int n) {
      columns = n;
      all_columns.reset();
    }
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

  void Nest(int first_row, const Extent& rows, int first_column, const Extent& columns,
            const std::string& statement) {
    const std::string outer = StrCat("for (i, ", first_row, ", ", rows.text, ")");
    const std::string inner = StrCat("for (j, ", first_column, ", ", columns.text, ")");
    const bool swaps = Pick(4) == 0;
    StrAppend(&body_, "  ", swaps ? inner : outer, " { ", swaps ? outer : inner, " { ", statement,
              " } }\n");
  }

  // Stages before may have read what changes here, and it may live on.
  void UpdateInPlace() {
    const Stage other = Source();
    const size_t last = stages_.size() - 1;
    Stage& s = stages_[Pick(2) == 0 ? last : static_cast<size_t>(Pick(static_cast<int>(last) + 1))];
    s.is_live |= s.name == "a" || Pick(2) == 0;
    const std::string here = Element(s, "i", "j"), target = here + " = ";
    switch (Pick(6)) {
      case 4:
      case 5:  // by itself
        Nest(0, s.Rows(), 0, s.Columns(), StrCat(target, here, " * ", Number(), " - ", Number()));
        break;
      case 0:  // pointwise
        Nest(0, s.Rows(), 0, s.Columns(),
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

  // In two nests or one.
  void AddSums(const Stage& s, const Extent& height, const Extent& width, const std::string& term) {
    const std::string here = Element(s, "i", "j");
    const std::string zero = StrCat(here, " = ", type_ == "f32" ? "0.0" : "0");
    const std::string update = StrCat("for (p, 0, ", height.text, ") { for (q, 0, ", width.text,
                                      ") { ", here, " = ", here, " + ", term, " } }");
    if (Pick(2) == 0) {
      Nest(0, s.Rows(), 0, s.Columns(), zero);
      Nest(0, s.Rows(), 0, s.Columns(), update);
    } else {
      Nest(0, s.Rows(), 0, s.Columns(), StrCat(zero, " ", update));
    }
  }

  void AddStage() {
    const Stage source = Source();
    Stage s = source;
    s.name = StrCat("t", stages_.size());
    s.reads = 0;
    s.is_live = Pick(8) == 0;
    const std::string target = StrCat(s.name, "[i, j] = ");
    const auto add = [&](const std::string& value) {
      Nest(0, s.Rows(), 0, s.Columns(), StrCat(target, value));
    };
    switch (Pick(12)) {
      case 0:
      case 1: {  // a stencil
        const int height = Pick(std::min(4, s.rows)), width = Pick(std::min(4, s.columns));
        s.AddRows(-height);
        s.AddColumns(-width);
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
        s.SetRows((s.rows + 1) / 2);
        if (Pick(2) == 0) {
          add(StrCat(Element(source, "2 * i", "j"), " * ", Number()));
        } else {
          s.SetColumns((s.columns + 1) / 2);
          add(StrCat(Element(source, "i * 2", "j * 2"), " + ",
                     Element(source, StrCat("min(2 * i + 1, ", source.rows - 1, ")"), "2 * j")));
        }
        break;
      case 3:  // twice as many
        s.SetRows(std::max(2 * s.rows - 1, 1));
        add(StrCat(Element(source, "i / 2", "j"), " + ", Element(source, "(i + 1) / 2", "j")));
        break;
      case 4: {  // two sources
        const Stage other = Source();
        s.SetRows(std::min(s.rows, other.rows));
        s.SetColumns(std::min(s.columns, other.columns));
        add(StrCat(Element(source, "i", "j"), " * ", Number(), " - ",
                   Element(other, StrCat(other.rows - s.rows, " + i"), "j")));
        break;
      }
      case 5: {  // sums of windows
        const int height = 1 + Pick(std::min(3, s.rows)), width = 1 + Pick(std::min(3, s.columns));
        s.AddRows(1 - height);
        s.AddColumns(1 - width);
        AddSums(s, Extent(height), Extent(width), Element(source, "i + p", "j + q"));
        break;
      }
      case 10: {  // sums of windows of kh x kw, or of one of them
        const bool is_high = s.rows >= kLargest && Pick(4) > 0;
        const bool is_wide = s.columns >= kLargest && Pick(4) > 0;
        if (is_high) {
          s.all_rows = Extent(StrCat(s.Rows().text, " - kh + 1"));
          s.rows -= kLargest - 1;
        }
        if (is_wide) {
          s.all_columns = Extent(StrCat(s.Columns().text, " - kw + 1"));
          s.columns -= kLargest - 1;
        }
        has_parameters_ |= is_high || is_wide;
        AddSums(s, is_high ? Extent("kh") : Extent(1), is_wide ? Extent("kw") : Extent(1),
                StrCat(Element(source, "i + p", "j + q"), is_high || is_wide ? " * w[p, q]" : ""));
        break;
      }
      case 11: {  // an array for each row, larger from row to row
        has_growing_arrays_ = true;
        s.SetRows(s.rows);
        const std::string own = StrCat("l", stages_.size());
        const bool is_flat = Pick(2) == 0;
        const std::string columns = StrCat("for (j, 0, ", s.Columns().text, ") { ");
        const auto at = [&](const char* row) {
          return StrCat(own, "[", row, is_flat ? "]" : ", j]");
        };
        StrAppend(&body_, "  for (i, 0, ", s.rows, ") {\n    allocate ", own, ": ", type_, "[i + 1",
                  is_flat ? "" : StrCat(", ", s.Columns().text), "]\n    for (p, 0, i + 1) { ",
                  is_flat ? "" : columns, at("p"), " = ", Element(source, "p", is_flat ? "0" : "j"),
                  " * ", Number(), is_flat ? " }\n" : " } }\n", "    ", columns, target,
                  at("i / 2"), " - ", Element(source, "i", "j"), " * ", at("i"), " }\n  }\n");
        break;
      }
      case 6:  // a border, or an edge in a nest of its own
        if (Pick(2) == 0) {
          s.AddRows(2);
          add(StrCat("select(i >= 1 && i < ", s.Rows().Plus(-1).text, ", ",
                     Element(source, "i - 1", "j"), ", ", Number(), ")"));
        } else {
          Nest(0, 1, 0, s.Columns(), StrCat(target, Number()));
          Nest(1, s.Rows().Plus(-1), 0, s.Columns(),
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
          std::swap(s.all_rows, s.all_columns);
          add(StrCat(Element(source, "j", "i"), " + ", Number()));
        }
        break;
      case 8: {  // one of two that live on and read the same
        s.is_live = true;
        s.SetColumns(s.columns - std::min(1, s.columns - 1));
        add(StrCat(Element(source, "i", "j"), " + ", Number()));
        Stage twin = s;
        twin.name = StrCat("t", stages_.size() + 1);
        Nest(0, s.Rows(), 0, s.Columns(),
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
        s.SetRows(s.rows);
        Stage first = s;
        first.is_live = s.is_live = true;
        first.rows = 1 + Pick(s.rows - 1);
        s.rows -= first.rows;
        Nest(0, first.rows, 0, s.Columns(),
             StrCat(target, Element(source, "i", "j"), " * ", Number()));
        stages_.push_back(first);
        s.name = StrCat("t", stages_.size());
        Nest(0, s.Rows(), 0, s.Columns(),
             StrCat(s.name, "[i, j] = ", Element(source, StrCat("i + ", first.rows), "j"), " - ",
                    Number()));
        break;
      }
    }
    stages_.push_back(s);
  }

  std::mt19937_64 random_;
  std::string type_;
  bool has_parameters_ = false, has_growing_arrays_ = false;
  std::vector<Stage> stages_;
  std::string body_;
};

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_RANDOM_PIPELINE_FOR_TEST_H_
