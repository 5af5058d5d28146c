// Pages in a browser without a screen, for tests. Where there is none, tests skip what needs it:
//   if (!HasBrowser()) GTEST_SKIP() << kNoBrowser;
#ifndef TESTING_BROWSER_H_
#define TESTING_BROWSER_H_

#include <string>
#include <string_view>

namespace polynao {

inline constexpr const char* kNoBrowser = "SKIPPED: no chromium (Debian package chromium)";

bool HasBrowser();

// The document that chromium has made of a page after its scripts have run. Fails the test if chromium fails.
std::string DomOf(std::string_view page);

// What is wrong with a page as chromium shows it, a line each, "" if nothing is: errors of its scripts, elements that
// HTML does not have, pictures or other parts wider than the window of 1360 pixels, text of a picture outside of it.
std::string FaultsOf(std::string_view page);

}  // namespace polynao

#endif  // TESTING_BROWSER_H_
