// What each core's cycles went into.

const CLASSES = {
  compute: "a compute unit is busy",
  dram_rows: "waits while its DRAM channels open or close rows",
  load: "only a DMA is busy: load from GMEM",
  store: "only a DMA is busy: store to GMEM",
  move: "only a DMA is busy: on chip",
  barrier: "waits at a barrier",
  scalar: "scalar code alone",
  idle: "nothing, or halted",
};

function coreName(core) {
  return core.is_memory_core ? `${core.cluster}.memory` : `core ${core.cluster}.${core.core}`;
}

function legend(names, labels) {
  return html("div", {class: "legend"}, names.map((name) =>
    html("span", {}, html("i", {style: `background: var(--${name})`}), `${name}: ${labels[name]}`)));
}

function classes(run) {
  const cores = run.data.cores;
  const cycles = run.data.cycles;
  const names = Object.keys(CLASSES);
  if (!cores.length || cores[0].classes === undefined) return null;
  const used = names.filter((name) => cores.some((core) => core.classes[name] > 0));
  const left = 76, right = 64, row = 15, gap = 3, width = 1280;
  const scale = (width - left - right) / Math.max(1, cycles);
  const parts = [];
  let y = 4;
  cores.forEach((core, i) => {
    if (i > 0 && core.cluster !== cores[i - 1].cluster) y += 8;
    parts.push(svg("text", {x: left - 8, y: y + 12, "text-anchor": "end"}, coreName(core)));
    let x = left;
    for (const name of names) {
      const count = core.classes[name];
      if (count === 0) continue;
      parts.push(svg("rect", {x: x.toFixed(2), y, width: (count * scale).toFixed(2), height: row, fill: `var(--${name})`},
        svg("title", {}, `${coreName(core)}, ${name}: ${text(count)} cycles, ${text(100 * count / cycles)} %`)));
      x += count * scale;
    }
    const busy = 100 * core.classes.compute / Math.max(1, cycles);
    parts.push(svg("text", {class: "soft", x: width - right + 8, y: y + 12}, `${busy.toFixed(1)} %`));
    y += row + gap;
  });
  const step = niceStep(cycles / 10);
  for (let t = 0; t <= cycles; t += step) {
    const x = left + t * scale;
    parts.push(svg("line", {class: "grid", x1: x, y1: y, x2: x, y2: y + 4}),
      svg("text", {class: "soft", x, y: y + 16, "text-anchor": "middle"}, text(t)));
  }
  const heads = ["core", ...used, "sum"];
  const rows = cores.map((core, i) => [coreName(core), ...used.map((name) => run.show("cores", i, "classes", name)),
    text(names.reduce((sum, name) => sum + core.classes[name], 0))]);
  return section("Where each core's cycles went",
    html("p", {}, "Each cycle has one class, the first in this order; the classes of a core sum to the run's cycles. ",
      "On the right: the share of compute. A bar shows how many cycles, not when (the timeline does)."),
    legend(used, CLASSES),
    svg("svg", {class: "chart classes", width, height: y + 22, viewBox: `0 0 ${width} ${y + 22}`}, parts),
    html("details", {}, html("summary", {}, "Cycles by class and core"), html("div", {class: "scroll"}, table(heads, rows))));
}
