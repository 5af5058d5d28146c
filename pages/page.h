// The frame of HTML pages, and their tables. Pages need no other file and no network, and follow the browser's dark
// mode.
#ifndef PAGES_PAGE_H_
#define PAGES_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/text.h"

namespace polynao::pages {

// `text` as it stands between tags and in attributes.
std::string Escape(std::string_view text);

// Three significant digits, whole numbers below a million in full: "1.23e+07", "940", "0.05".
std::string ShortNumber(double value);

// "1 234 567", with thin spaces.
std::string Thousands(int64_t value);

// A page with a heading. `body` is HTML, `style` CSS beside that of all pages.
std::string Page(std::string_view title, std::string_view body, std::string_view style = "");

// The custom properties of CSS that pages have for colours (--ink, --soft, --line, ..), and the rules of charts
// (class="chart") on them: for pictures that stand alone. Those are for white paper.
std::string_view LightColors();
std::string_view ChartStyle();

// JSON in a page, for scripts and for people who want the numbers: an element with the id "data". Nothing in it ends
// the element.
std::string DataElement(std::string_view json);

// A cell of a table: text, a whole number, or a number with `digits` after the point. `css` has classes: "good", "bad",
// "off".
struct Cell {
  template <typename T>
  // NOLINTNEXTLINE(google-explicit-constructor): rows are lists of texts and numbers
  Cell(const T& value, std::string_view css = "", int columns = 1)
      : text(StrCat(value)), css(css), columns(columns) {
    static_assert(!std::is_floating_point_v<T>, "give the number of digits");
  }
  Cell(double value, int digits, std::string_view css = "");

  std::string text, css;
  int columns = 1;  // that it spans
};

class Table {
 public:
  // Columns from `first_number` on stand on the right side, but for those without a head or with the head `text`.
  explicit Table(std::vector<std::string> heads, size_t first_number = SIZE_MAX,
                 std::string_view text = "");
  void Row(const std::vector<Cell>& cells);
  std::string Html() const;

 private:
  std::vector<bool> is_number_;  // by column
  std::string html_;
};

}  // namespace polynao::pages

#endif  // PAGES_PAGE_H_
