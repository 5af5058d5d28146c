#include "pages/steps_page.h"

#include "base/text.h"
#include "pages/line_diff.h"
#include "pages/page.h"

namespace polynao::pages {
namespace {

constexpr std::string_view kStyle = R"css(
.steps { display: grid; grid-template-columns: minmax(220px, 300px) minmax(0, 1fr); gap: 24px; margin-top: 14px; }
nav { position: sticky; top: 12px; align-self: start; max-height: calc(100vh - 24px); overflow-y: auto; }
nav ol { list-style: none; margin: 0 0 10px; padding: 0; }
nav button { display: flex; width: 100%; gap: 8px; padding: 3px 8px; border: 0; border-left: 3px solid transparent;
  background: none; color: var(--ink); font: inherit; text-align: left; cursor: pointer; }
nav button:hover { background: var(--panel); }
nav button[aria-current=true] { background: var(--panel); border-color: var(--accent); font-weight: 600; }
nav button.same { color: var(--off); } nav button span:first-child { flex: 1; overflow-wrap: anywhere; }
nav button span { font-size: 12px; } nav button span.name { font-size: 13px; }
nav .plus { color: var(--good); } nav .minus, nav .wrong { color: var(--warn); }
nav.short button.same { display: none; }
section h2 { margin: 0 0 2px; } section[hidden] { display: none; }
section .details { white-space: pre-wrap; font: 12px ui-monospace, monospace; margin: 4px 0; }
pre.text { margin: 8px 0 32px; padding: 8px 0; background: var(--panel); border-radius: 6px; line-height: 1.5; }
pre.text span { display: block; min-width: max-content; padding: 0 12px; }
pre.text span::before { content: "  "; }
pre.text .added { background: color-mix(in srgb, var(--good) 20%, transparent); }
pre.text .added::before { content: "+ "; color: var(--good); }
pre.text .removed { background: color-mix(in srgb, var(--warn) 16%, transparent); color: var(--soft); }
pre.text .removed::before { content: "- "; color: var(--warn); }
pre.after .removed { display: none; }
kbd { border: 1px solid var(--line); border-radius: 3px; padding: 0 4px; font: 12px ui-monospace, monospace; }
label { margin-right: 16px; }
)css";

constexpr std::string_view kScript = R"js("use strict";
const sections = [...document.querySelectorAll("section")];
const buttons = [...document.querySelectorAll("nav button")];
const nav = document.querySelector("nav");
const onlyChanged = document.getElementById("only-changed");
const onlyAfter = document.getElementById("only-after");
let shown = 0;
const isListed = (i) => !onlyChanged.checked || !buttons[i].classList.contains("same");
function show(i) {
  shown = i;
  sections.forEach((section, k) => { section.hidden = k !== i; });
  buttons.forEach((button, k) => button.setAttribute("aria-current", String(k === i)));
  buttons[i].scrollIntoView({ block: "nearest" });
  history.replaceState(null, "", "#" + (i + 1));
}
function go(step) {
  for (let i = shown + step; i >= 0 && i < sections.length; i += step) {
    if (isListed(i)) return show(i);
  }
}
// The first line of each group of changed lines, next to one that stayed.
function changes() {
  const visible = (line) => line.offsetParent !== null;
  const lines = [...sections[shown].querySelectorAll("pre.text span")].filter(visible);
  return lines.filter((line, i) => line.className && !(i && lines[i - 1].className));
}
function jump(step) {
  const middle = innerHeight / 2;
  const places = changes().map((line) => line.getBoundingClientRect().top - middle);
  const ahead = step > 0 ? places.filter((y) => y > 2)[0] : places.filter((y) => y < -2).pop();
  if (ahead !== undefined) scrollBy(0, ahead);
}
buttons.forEach((button, i) => button.addEventListener("click", () => show(i)));
onlyChanged.addEventListener("change", () => nav.classList.toggle("short", onlyChanged.checked));
onlyAfter.addEventListener("change", () => {
  for (const pre of document.querySelectorAll("pre.text")) pre.classList.toggle("after", onlyAfter.checked);
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = { ArrowLeft: () => go(-1), ArrowRight: () => go(1), n: () => jump(1), p: () => jump(-1) };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
const wanted = Number(location.hash.slice(1)) - 1;
const firstWrong = buttons.findIndex((button) => button.querySelector(".wrong"));
show(wanted >= 0 && wanted < sections.length ? wanted : Math.max(0, firstWrong));
)js";

class Writer {
 public:
  explicit Writer(std::string_view title) : title_(title) {}

  void Add(const StepsOf& text) {
    StrAppend(&nav_, "<h3>", Escape(text.name), "</h3>\n<ol>\n");
    const std::string* before = nullptr;
    for (const TextStep& step : text.steps) {
      AddStep(step, before);
      before = &step.text;
    }
    nav_ += "</ol>\n";
  }

  std::string Html() const {
    return Page(title_,
                StrCat("<p><kbd>&#8592;</kbd> <kbd>&#8594;</kbd> from step to step, <kbd>n</kbd> "
                       "<kbd>p</kbd> to the next change and the one before.</p>\n"
                       "<p><label><input type=\"checkbox\" id=\"only-changed\"> only steps that "
                       "changed something</label><label><input type=\"checkbox\" "
                       "id=\"only-after\"> without removed lines</label></p>\n",
                       "<div class=\"steps\">\n<nav>\n", nav_, "</nav>\n<main>\n", sections_,
                       "</main>\n</div>\n<script>\n", kScript, "</script>\n"),
                kStyle);
  }

 private:
  void AddStep(const TextStep& step, const std::string* before) {
    std::string lines;
    int added = 0, removed = 0;
    // The first text is what the others are compared with.
    for (const DiffLine& line : DiffLines(before != nullptr ? *before : step.text, step.text)) {
      const bool is_added = line.kind == DiffLine::Kind::kAdded;
      const bool is_removed = line.kind == DiffLine::Kind::kRemoved;
      added += is_added, removed += is_removed;
      StrAppend(&lines, "<span",
                is_added     ? " class=\"added\""
                : is_removed ? " class=\"removed\""
                             : "",
                ">", Escape(line.text), "</span>");
    }
    const bool is_same = before != nullptr && added + removed == 0;
    StrAppend(&nav_, "<li><button", is_same ? " class=\"same\"" : "", "><span class=\"name\">",
              Escape(step.name), "</span>");
    if (added > 0) StrAppend(&nav_, "<span class=\"plus\">+", added, "</span>");
    if (removed > 0) StrAppend(&nav_, "<span class=\"minus\">-", removed, "</span>");
    if (!step.verdict.empty()) {
      nav_ += step.is_bad ? "<span class=\"wrong\">wrong</span>"
                          : "<span class=\"plus\" title=\"the check passed\">&#10003;</span>";
    }
    nav_ += "</button></li>\n";
    StrAppend(&sections_, "<section>\n<h2>", Escape(step.name), "</h2>\n<p>", Escape(step.note));
    if (!step.verdict.empty()) {
      StrAppend(&sections_, step.note.empty() ? "" : ", ", "<span class=\"",
                step.is_bad ? "bad" : "good", "\">", Escape(step.verdict), "</span>");
    }
    sections_ += "</p>\n";
    if (!step.details.empty()) {
      StrAppend(&sections_, "<div class=\"details\">", Escape(step.details), "</div>\n");
    }
    StrAppend(&sections_, "<pre class=\"text\">", lines, "</pre>\n</section>\n");
  }

  const std::string title_;
  std::string nav_, sections_;
};

}  // namespace

std::string StepsPage(std::string_view title, const std::vector<StepsOf>& texts) {
  Writer writer(title);
  for (const StepsOf& text : texts) writer.Add(text);
  return writer.Html();
}

}  // namespace polynao::pages
