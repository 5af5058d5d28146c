// What GMEM's channels and banks did over time: a row for each, a column for each bucket of cycles.

const redraws = [];  // of pictures whose colours are not CSS's

function styleValue(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// `rows`: counts by row and bucket. `groups`: labels, each of as many rows as the others. A cell's colour says which
// part of `most` its count is; small counts are lifted by a square root, so that a single burst can be seen.
function heat({rows, groups, rowNames, bucket, most, color, describe, row_height}) {
  const left = 76, right = 64, width = 1280, axis = 20;
  const gap = rows.length > groups.length ? 6 : 3;
  const per_group = rows.length / groups.length;
  const top = (row) => row * row_height + Math.floor(row / per_group) * gap;
  const height = top(rows.length - 1) + row_height + axis;
  const columns = rows[0].length;
  const x = (column) => left + column / columns * (width - left - right);
  const canvas = html("canvas", {width, height, style: "max-width: 100%"});
  const tip = html("div", {class: "tip"});
  const draw = () => {
    const context = canvas.getContext("2d");
    const rgb = styleValue(color);
    context.clearRect(0, 0, width, height);
    context.fillStyle = styleValue("--back");
    context.fillRect(0, 0, width, height);
    rows.forEach((counts, r) => {
      context.fillStyle = styleValue("--panel");
      context.fillRect(left, top(r), width - left - right, row_height);
      counts.forEach((count, c) => {
        if (count === 0) return;
        context.fillStyle = `rgba(${rgb}, ${Math.sqrt(Math.min(1, count / most))})`;
        const begin = Math.floor(x(c));
        context.fillRect(begin, top(r), Math.max(1, Math.floor(x(c + 1)) - begin), row_height);
      });
    });
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = styleValue("--ink");
    context.textAlign = "right";
    groups.forEach((label, g) => {
      context.fillText(label, left - 8, (top(g * per_group) + top((g + 1) * per_group - 1) + row_height) / 2 + 4);
    });
    context.textAlign = "center";
    context.fillStyle = styleValue("--soft");
    const cycles = columns * bucket;
    const step = niceStep(cycles / 10);
    for (let t = 0; t <= cycles; t += step) context.fillText(text(t), x(t / bucket), height - 6);
  };
  redraws.push(draw);
  canvas.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect();
    const at_x = (event.clientX - box.left) * width / box.width;
    const at_y = (event.clientY - box.top) * height / box.height;
    const row = rows.findIndex((_, r) => at_y >= top(r) && at_y < top(r) + row_height);
    const column = Math.floor((at_x - left) / (width - left - right) * columns);
    tip.textContent = row < 0 || column < 0 || column >= columns ? ""
      : `${rowNames[row]}, cycles ${text(column * bucket)} to ${text((column + 1) * bucket)}: ${describe(rows[row][column])}`;
  });
  return html("div", {class: "heat"}, canvas, tip);
}

function activity(run) {
  const data = run.at("activity");
  if (data === undefined) return null;
  const channels = run.data.ports.filter((port) => port.name.startsWith("gmem.channel"));
  const banks = data.bytes.length / channels.length;
  const sums = channels.map((_, c) => data.bytes[0].map((_, t) => {
    let sum = 0;
    for (let b = 0; b < banks; ++b) sum += data.bytes[c * banks + b][t];
    return sum;
  }));
  const groups = channels.map((_, c) => `channel ${c}`);
  const rate = channels[0].rate / 1000;
  const per_cycle = (bytes) => `${text(bytes)} bytes, ${text(bytes / data.bucket)} a cycle`;
  const parts = [
    html("p", {}, "A column is ", run.show("activity", "bucket"), " cycles. The colour says how much of the most that is shown: ",
      "a quarter of it is half as strong."),
    html("h3", {}, `Bytes by channel; the full colour is its peak, ${text(rate)} bytes a cycle`),
    heat({rows: sums, groups, rowNames: groups, bucket: data.bucket, most: rate * data.bucket, color: "--bytes",
      describe: (bytes) => `${per_cycle(bytes)}, ${text(100 * bytes / data.bucket / rate)} % of the peak`, row_height: 18}),
  ];
  if (run.at("dram") !== undefined) {
    const rowNames = data.bytes.map((_, r) => `channel ${Math.floor(r / banks)} bank ${r % banks}`);
    const row_height = Math.max(3, Math.min(8, Math.floor(360 / data.bytes.length)));
    const most = (rows) => rows.reduce((max, row) => row.reduce((a, b) => Math.max(a, b), max), 1);
    const bytes_most = most(data.bytes), activates_most = most(data.activates);
    parts.push(
      html("h3", {}, `Bytes by channel and bank; the full colour is ${text(bytes_most / data.bucket)} bytes a cycle`),
      heat({rows: data.bytes, groups, rowNames, bucket: data.bucket, most: bytes_most, color: "--bytes",
        describe: per_cycle, row_height}),
      html("h3", {}, `Rows opened (ACT) by channel and bank; the full colour is ${text(activates_most)} in a column`),
      heat({rows: data.activates, groups, rowNames, bucket: data.bucket, most: activates_most, color: "--activates",
        describe: (count) => `${text(count)} rows opened`, row_height}));
  }
  return section("GMEM over time", parts);
}
