#include "testing/browser.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "base/files.h"
#include "base/text.h"
#include "gtest/gtest.h"

namespace polynao {
namespace {

std::optional<std::string> FindChromium() {
  for (const char* path :
       {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/snap/bin/chromium"}) {
    if (access(path, X_OK) == 0) return path;
  }
  return std::nullopt;
}

// Goes before all scripts of a page, and looks at it when these have run.
constexpr std::string_view kLook = R"html(<script>{
const faults = [];
addEventListener("error", (event) => faults.push(String(event.message)));
addEventListener("load", () => {
  for (const element of document.querySelectorAll("*")) {
    if (element instanceof HTMLUnknownElement) faults.push("unknown element " + element.localName);
  }
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    if (frame.width > innerWidth) faults.push("a picture is wider than the page");
    if (!frame.width) continue;
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      const is_inside = box.left >= frame.left - 1 && box.right <= frame.right + 1 &&
        box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1;
      if (!is_inside) faults.push("outside of its picture: " + text.textContent);
    }
  }
  if (document.documentElement.scrollWidth > innerWidth) faults.push("the page is wider than the window");
  document.documentElement.setAttribute("data-faults", faults.join("\n"));
});
}</script>
)html";

}  // namespace

bool HasBrowser() { return FindChromium().has_value(); }

std::string DomOf(std::string_view page) {
  static int number = 0;
  const std::string folder = StrCat(testing::TempDir(), "/browser_", getpid(), "_", ++number);
  EXPECT_TRUE(MakeDirectory(folder).ok());
  EXPECT_TRUE(WriteFile(folder + "/page.html", std::string(page)).ok());
  const std::string command = StrCat(
      "cd '", folder, "' && HOME='", folder, "' timeout 120 ", FindChromium().value_or("false"),
      " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
      "--window-size=1360,1000 --user-data-dir='",
      folder, "/profile' --virtual-time-budget=20000 --dump-dom 'file://", folder,
      "/page.html' >dom.html 2>chromium.log");
  const int status = std::system(command.c_str());
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0)
      << ReadFile(folder + "/chromium.log").value_or("");
  return ReadFile(folder + "/dom.html").value_or("");
}

std::string FaultsOf(std::string_view page) {
  std::string looked_at(page);
  const size_t head = looked_at.find("<head>");
  EXPECT_NE(head, std::string::npos);
  looked_at.insert(head + 6, kLook);
  const std::string dom = DomOf(looked_at);
  const std::string mark = " data-faults=\"";
  const size_t begin = dom.find(mark);
  if (begin == std::string::npos) return "the page did not load";
  return dom.substr(begin + mark.size(), dom.find('"', begin + mark.size()) - begin - mark.size());
}

}  // namespace polynao
