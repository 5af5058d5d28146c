#include "pages/line_diff.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

namespace polynao::pages {
namespace {

// Two lines are equal if they are but for blanks in front.
struct Line {
  std::string_view key, text;
  bool operator==(const Line& other) const { return key == other.key; }
};
using Lines = absl::Span<const Line>;
using Kind = DiffLine::Kind;

std::vector<Line> Split(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    lines.push_back({line.substr(std::min(line.size(), line.find_first_not_of(' '))), line});
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

class Differ {
 public:
  void Run(Lines a, Lines b) {
    size_t same = 0;
    while (same < std::min(a.size(), b.size()) && a[same] == b[same]) ++same;
    Add(Kind::kSame, b.subspan(0, same));
    a.remove_prefix(same), b.remove_prefix(same);
    size_t behind = 0;
    while (behind < std::min(a.size(), b.size()) &&
           a[a.size() - 1 - behind] == b[b.size() - 1 - behind]) {
      ++behind;
    }
    const Lines tail = b.subspan(b.size() - behind);
    a.remove_suffix(behind), b.remove_suffix(behind);
    Middle(a, b);
    Add(Kind::kSame, tail);
  }

  std::vector<DiffLine> Take() { return std::move(lines_); }

 private:
  void Add(Kind kind, Lines lines) {
    for (const Line& line : lines) lines_.push_back({kind, line.text});
  }

  // Of two texts whose first lines differ, and whose last ones do.
  void Middle(Lines a, Lines b) {
    const std::vector<std::pair<size_t, size_t>> anchors = Anchors(a, b);
    if (anchors.empty()) return Longest(a, b);
    size_t from_a = 0, from_b = 0;
    for (const auto& [at_a, at_b] : anchors) {
      Run(a.subspan(from_a, at_a - from_a), b.subspan(from_b, at_b - from_b));
      Add(Kind::kSame, b.subspan(at_b, 1));
      from_a = at_a + 1, from_b = at_b + 1;
    }
    Run(a.subspan(from_a), b.subspan(from_b));
  }

  // The longest chain of lines that both texts have once, in the order of both.
  static std::vector<std::pair<size_t, size_t>> Anchors(Lines a, Lines b) {
    struct Places {
      int in_a = 0, in_b = 0;
      size_t at_b = 0;
    };
    absl::flat_hash_map<std::string_view, Places> places;
    for (const Line& line : a) ++places[line.key].in_a;
    for (size_t i = 0; i < b.size(); ++i) {
      Places& of = places[b[i].key];
      ++of.in_b;
      of.at_b = i;
    }
    // Patience: the pile of each pair is the length of the longest chain that ends with it.
    std::vector<std::pair<size_t, size_t>> pairs;
    std::vector<size_t> tops, before;  // positions in pairs; of its predecessor, or pairs.size()
    for (size_t i = 0; i < a.size(); ++i) {
      const Places& of = places.at(a[i].key);
      if (of.in_a != 1 || of.in_b != 1) continue;
      const auto pile =
          std::lower_bound(tops.begin(), tops.end(), of.at_b,
                           [&](size_t top, size_t at_b) { return pairs[top].second < at_b; });
      before.push_back(pile == tops.begin() ? SIZE_MAX : *std::prev(pile));
      if (pile == tops.end()) {
        tops.push_back(pairs.size());
      } else {
        *pile = pairs.size();
      }
      pairs.push_back({i, of.at_b});
    }
    std::vector<std::pair<size_t, size_t>> chain;
    for (size_t at = tops.empty() ? SIZE_MAX : tops.back(); at != SIZE_MAX; at = before[at]) {
      chain.push_back(pairs[at]);
    }
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  // Keeps the longest common subsequence.
  void Longest(Lines a, Lines b) {
    constexpr size_t kMostSteps = 1'000'000;
    if (a.empty() || b.empty() || a.size() > kMostSteps / b.size()) {
      Add(Kind::kRemoved, a);
      Add(Kind::kAdded, b);
      return;
    }
    const size_t width = b.size() + 1;
    std::vector<uint32_t> length((a.size() + 1) * width);  // of the subsequence from (i, j) on
    for (size_t i = a.size(); i-- > 0;) {
      for (size_t j = b.size(); j-- > 0;) {
        length[i * width + j] =
            a[i] == b[j] ? length[(i + 1) * width + j + 1] + 1
                         : std::max(length[(i + 1) * width + j], length[i * width + j + 1]);
      }
    }
    size_t i = 0, j = 0;
    while (i < a.size() || j < b.size()) {
      if (i < a.size() && j < b.size() && a[i] == b[j]) {
        Add(Kind::kSame, b.subspan(j++, 1)), ++i;
      } else if (j == b.size() ||
                 (i < a.size() && length[(i + 1) * width + j] >= length[i * width + j + 1])) {
        Add(Kind::kRemoved, a.subspan(i++, 1));
      } else {
        Add(Kind::kAdded, b.subspan(j++, 1));
      }
    }
  }

  std::vector<DiffLine> lines_;
};

}  // namespace

std::vector<DiffLine> DiffLines(std::string_view before, std::string_view after) {
  const std::vector<Line> a = Split(before), b = Split(after);
  Differ differ;
  differ.Run(a, b);
  return differ.Take();
}

}  // namespace polynao::pages
