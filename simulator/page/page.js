// Puts the page together.

(function () {
  const errors = [];
  window.addEventListener("error", (event) => errors.push(String(event.message)));
  // What goes wrong in one part does not take the others away.
  const attempt = (name, part) => {
    try {
      return part();
    } catch (error) {
      errors.push(`${name}: ${error}`);
      return null;
    }
  };
  const timeline = (index) => {
    const found = document.querySelectorAll("template.timeline")[index];
    if (!found) return null;
    return section("Timeline", html("p", {}, "Rows of units, the share of time in which each was busy; the instruction under the mouse."),
      html("div", {class: "timeline"}, found.content.cloneNode(true)));
  };
  attempt("page", () => {
    const data = JSON.parse(document.getElementById("data").textContent);
    const runs = data.functions ? data.functions.map((each, i) => new Run(each, ["functions", i])) : [new Run(data, [])];
    const main = document.getElementById("runs");
    runs.forEach((run, index) => {
      if (runs.length > 1) main.append(html("h2", {}, `${index + 1}: ${nameOf(run)}`));
      const parts = {summary, roofline, classes, activity, dramTable, stallTable, portTable, counterTable};
      for (const [name, part] of Object.entries(parts)) {
        for (const element of [attempt(name, () => part(run))].flat()) if (element) main.append(element);
        if (name !== "activity") continue;
        const picture = attempt("timeline", () => timeline(index));
        if (picture) main.append(picture);
      }
    });
    const draw = () => redraws.forEach((redraw) => attempt("redraw", redraw));
    draw();
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  });
  if (errors.length) {
    document.documentElement.dataset.errors = errors.join("\n");
    document.body.append(html("pre", {id: "errors"}, errors.join("\n")));
  }
  document.documentElement.dataset.ready = "1";
})();
