// A page that shows a text after each of several steps, with what each one changed: the IR after each pass.
#ifndef PAGES_STEPS_PAGE_H_
#define PAGES_STEPS_PAGE_H_

#include <string>
#include <string_view>
#include <vector>

namespace polynao::pages {

struct TextStep {
  std::string name;          // "loop_partition(max_pieces=4)"
  std::string note = {};     // beside the name: "0.12 ms"
  std::string verdict = {};  // of a check: "same results"; empty if there was none
  bool is_bad = false;       // the verdict is one
  std::string details = {};  // lines below the name
  std::string text;          // after the step
};

// The steps of one text, the first of which is its beginning.
struct StepsOf {
  std::string name;
  std::vector<TextStep> steps;
};

// One list of all steps beside the text of the chosen one: removed and added lines are marked. The arrow keys go from
// step to step, n and p from change to change; steps that changed nothing can be left out. The address names the step
// (#7). Without scripts all steps stand one below the other.
std::string StepsPage(std::string_view title, const std::vector<StepsOf>& texts);

}  // namespace polynao::pages

#endif  // PAGES_STEPS_PAGE_H_
