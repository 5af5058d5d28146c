// Which lines of a text went and which came, from one version to the next.
#ifndef PAGES_LINE_DIFF_H_
#define PAGES_LINE_DIFF_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace polynao::pages {

struct DiffLine {
  enum class Kind : uint8_t { kSame, kRemoved, kAdded } kind;
  std::string_view text;  // without the end of the line; of the text that was given
};

// The lines of both texts in one order: without the added ones those of `before`, without the removed ones `after`.
// Lines that both have once are anchors, as far as they stand in the same order ("patience diff"); between two of them
// most lines stay that can. Time: n log n in the lines, plus at most a million steps between two anchors; where that
// is too little, all lines there count as changed.
//
// A line that was indented differently is the same, and comes as it stands in `after`: the body of a loop that went
// away has not changed.
//
//   a b c, a x c  -->  a, -b, +x, c
std::vector<DiffLine> DiffLines(std::string_view before, std::string_view after);

}  // namespace polynao::pages

#endif  // PAGES_LINE_DIFF_H_
