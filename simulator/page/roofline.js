// Peaks of the machine and what the run reached, on two logarithmic axes: operations for each byte of GMEM, operations
// a cycle.

function roofline(run) {
  const {memory, compute} = run.data.roofline;
  const points = compute.filter((row) => row.operations_per_byte !== null && row.operations_per_cycle !== null);
  const peaks = compute.filter((row) => row.peak_per_cycle > 0);
  const table_rows = compute.map((row, i) => {
    const show = (key) => run.show("roofline", "compute", i, key);
    const bound = row.operations_per_byte === null ? row.peak_per_cycle
      : Math.min(row.peak_per_cycle, ...memory.map((m) => m.bytes_per_cycle * row.operations_per_byte));
    const share = bound > 0 && row.operations_per_cycle !== null ? 100 * row.operations_per_cycle / bound : null;
    return [row.name, show("operations"), show("operations_per_cycle"), show("operations_per_byte"),
      show("peak_per_cycle"), share === null ? "-" : text(share)];
  });
  const head = html("p", {},
    "An operation is one of an element on the vector unit; a multiply-accumulate is two. They are those that ran, padding ",
    "included. Bytes are what GMEM's channels moved: ", run.show("roofline", "gmem_bytes"), ". ",
    memory.map((m, i) => [i ? "; " : "", m.name, " ", run.show("roofline", "memory", i, "bytes_per_cycle"),
      " bytes a cycle"]).flat(), ".");
  if (peaks.length === 0) {
    return section("Roofline", head, html("p", {}, "No unit computed anything in this run."));
  }
  return section("Roofline", head, drawRoofline(memory, peaks, points),
    table(["unit and type", "operations", "a cycle", "a byte", "peak a cycle", "% of the roof"], table_rows));
}

function drawRoofline(memory, peaks, points) {
  const width = 860, height = 400, left = 64, right = 28, top = 16, bottom = 44;
  const bandwidth = memory[0].bytes_per_cycle;
  const least_bandwidth = memory[memory.length - 1].bytes_per_cycle;
  const ridges = peaks.map((row) => row.peak_per_cycle / bandwidth);
  const xs = [...ridges, ...points.map((row) => row.operations_per_byte)];
  const ys = [...peaks.map((row) => row.peak_per_cycle), ...points.map((row) => row.operations_per_cycle)];
  const x0 = Math.floor(Math.log10(Math.min(...xs) / 5)), x1 = Math.ceil(Math.log10(Math.max(...xs) * 5));
  const low = Math.min(...ys, least_bandwidth * Math.pow(10, x0));
  const y0 = Math.floor(Math.log10(low)), y1 = Math.ceil(Math.log10(Math.max(...ys) * 1.5));
  const x = (value) => left + (Math.log10(value) - x0) / (x1 - x0) * (width - left - right);
  const y = (value) => height - bottom - (Math.log10(value) - y0) / (y1 - y0) * (height - top - bottom);
  const parts = [], labels = new Labels(left, top, width - right, height - bottom);
  const line = (ax, ay, bx, by, color, dash) => parts.push(svg("line",
    {x1: x(ax), y1: y(ay), x2: x(bx), y2: y(by), stroke: color, "stroke-width": 1.6, "stroke-dasharray": dash}));
  const decade = (e) => (e >= 0 && e < 5 ? text(Math.pow(10, e)) : e < 0 && e > -4 ? String(Number(Math.pow(10, e).toFixed(4))) : "1e" + e);
  for (let e = x0; e <= x1; ++e) {
    const at = x(Math.pow(10, e));
    parts.push(svg("line", {class: "grid", x1: at, y1: top, x2: at, y2: height - bottom}),
      svg("text", {class: "soft", x: at, y: height - bottom + 16, "text-anchor": "middle"}, decade(e)));
  }
  for (let e = y0; e <= y1; ++e) {
    const at = y(Math.pow(10, e));
    parts.push(svg("line", {class: "grid", x1: left, y1: at, x2: width - right, y2: at}),
      svg("text", {class: "soft", x: left - 6, y: at + 4, "text-anchor": "end"}, decade(e)));
  }
  parts.push(svg("text", {class: "soft", x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle"},
    "operations per byte of GMEM"));
  parts.push(svg("text", {class: "soft", "text-anchor": "middle",
    transform: `translate(14 ${(top + height - bottom) / 2}) rotate(-90)`}, "operations per cycle"));

  // Memory roofs end at the highest peak; each peak begins where the widest memory roof meets it.
  const highest = Math.max(...peaks.map((row) => row.peak_per_cycle));
  memory.forEach((row, i) => {
    const from = Math.max(Math.pow(10, x0), Math.pow(10, y0) / row.bytes_per_cycle);
    const to = highest / row.bytes_per_cycle;
    line(from, from * row.bytes_per_cycle, to, highest, i === 0 ? "var(--load)" : "var(--dram_rows)", i === 0 ? null : "5 3");
    // The label lies along the roof, above it for the first and below it for the others.
    const middle = Math.sqrt(from * to) * (i === 0 ? 0.5 : 1.6);
    const angle = -Math.atan2(y(middle) - y(middle * 10), x(middle * 10) - x(middle)) * 180 / Math.PI;
    parts.push(svg("text", {"text-anchor": "middle", dy: i === 0 ? -6 : 14,
      transform: `translate(${x(middle)} ${y(middle * row.bytes_per_cycle)}) rotate(${angle})`},
      `${row.name} ${text(row.bytes_per_cycle)} B/cycle`));
  });
  peaks.forEach((row) => {
    line(row.peak_per_cycle / bandwidth, row.peak_per_cycle, Math.pow(10, x1), row.peak_per_cycle, "var(--compute)");
    const label = `${row.name}: ${text(row.peak_per_cycle)} operations a cycle`;
    parts.push(labels.place(label, [[width - right - 4, y(row.peak_per_cycle) - 6, "end"],
      [width - right - 4, y(row.peak_per_cycle) + 15, "end"]]));
  });
  // All points first, so that no label lies on one.
  points.forEach((row) => labels.block(x(row.operations_per_byte), y(row.operations_per_cycle), 7));
  points.forEach((row) => {
    const at = [x(row.operations_per_byte), y(row.operations_per_cycle)];
    parts.push(svg("circle", {cx: at[0], cy: at[1], r: 5, fill: "var(--store)", stroke: "var(--ink)"},
      svg("title", {}, `${row.name}: ${text(row.operations_per_cycle)} operations a cycle, ` +
        `${text(row.operations_per_byte)} a byte`)));
    const beside = [14, -8, 28, -22, 42, -36, 56].flatMap((dy) =>
      [[at[0] + 10, at[1] + dy, "start"], [at[0] - 10, at[1] + dy, "end"]]);
    parts.push(labels.place(`this run, ${row.name}: ${text(row.operations_per_cycle)}`, beside));
  });
  return svg("svg", {class: "chart roofline", width, height, viewBox: `0 0 ${width} ${height}`}, parts);
}
