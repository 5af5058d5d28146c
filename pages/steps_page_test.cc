#include "pages/steps_page.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/browser.h"

namespace polynao::pages {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Example() {
  return StepsPage("Passes of <f>",
                   {{"f",
                     {{.name = "before", .text = "for (i, 0, 1) {\n  A[i] = 1 & B\n}\n"},
                      {.name = "simplify",
                       .note = "changed, 0.1 ms",
                       .verdict = "same results",
                       .details = "i = 0\n",
                       .text = "A[0] = 1 & B\n"},
                      {.name = "licm", .verdict = "same results", .text = "A[0] = 1 & B\n"},
                      {.name = "cse(k=1)",
                       .verdict = "the meaning changed: element 0",
                       .is_bad = true,
                       .text = "A[0] = 2\n"}}},
                    {"g", {{.name = "before", .text = std::string(5000, 'x') + "\n"}}}});
}

TEST(StepsPageTest, MarksWhatChanged) {
  const std::string page = Example();
  EXPECT_THAT(page, HasSubstr("<h1>Passes of &lt;f&gt;</h1>"));
  EXPECT_THAT(page, HasSubstr("<span class=\"removed\">  A[i] = 1 &amp; B</span>"));
  EXPECT_THAT(page, HasSubstr("<span class=\"added\">A[0] = 1 &amp; B</span>"));
  EXPECT_THAT(page, HasSubstr("<button class=\"same\"><span class=\"name\">licm</span>"));
  EXPECT_THAT(page, HasSubstr("<span class=\"plus\">+1</span><span class=\"minus\">-3</span>"));
  EXPECT_THAT(page, HasSubstr("changed, 0.1 ms, <span class=\"good\">same results</span>"));
  EXPECT_THAT(page, HasSubstr("<span class=\"bad\">the meaning changed: element 0</span>"));
  EXPECT_THAT(page, Not(HasSubstr("http")));
}

// As chromium leaves the page after the script has run, perhaps with keys that were pressed.
std::string Dom(const std::string& keys) {
  return DomOf(absl::StrReplaceAll(
      Example(), {{"</body>", "<script>for (const key of [" + keys +
                                  "]) document.dispatchEvent(new KeyboardEvent(\"keydown\", { key "
                                  "}));</script></body>"}}));
}

std::string Chosen(const std::string& dom) {
  const std::string mark = "aria-current=\"true\"><span class=\"name\">";
  const size_t at = dom.find(mark);
  if (at == std::string::npos) return "none";
  return dom.substr(at + mark.size(), dom.find('<', at + mark.size()) - at - mark.size());
}

TEST(StepsPageTest, KeysAndButtonsGoFromStepToStep) {
  if (!HasBrowser()) GTEST_SKIP() << kNoBrowser;
  EXPECT_EQ(FaultsOf(Example()), "");
  // The step that went wrong comes first.
  EXPECT_EQ(Chosen(Dom("")), "cse(k=1)");
  EXPECT_EQ(Chosen(Dom("'ArrowLeft', 'ArrowLeft'")), "simplify");
  EXPECT_EQ(Chosen(Dom("'ArrowRight', 'ArrowRight', 'n', 'p', 'x'")), "before");
  const std::string clicked = DomOf(
      absl::StrReplaceAll(Example(), {{"</body>",
                                       "<script>document.getElementById('only-changed').click(); "
                                       "document.querySelectorAll('nav button')[1].click(); "
                                       "document.dispatchEvent(new KeyboardEvent('keydown', { key: "
                                       "'ArrowRight' }));</script></body>"}}));
  EXPECT_EQ(Chosen(clicked), "cse(k=1)");
}

}  // namespace
}  // namespace polynao::pages
