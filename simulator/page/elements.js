// Elements, numbers and colours, for all parts of the page.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}
// html("td", {class: "n"}, "text", element, ...); svg the same.
function html(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}
function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// 1234567 as "1 234 567" with thin spaces; other numbers with four digits.
function text(number) {
  if (number === null || number === undefined) return "-";
  if (typeof number === "boolean") return number ? "yes" : "no";
  if (typeof number === "string") return number;
  if (Number.isInteger(number)) return String(number).replace(/\B(?=(\d{3})+$)/g, "\u2009");
  const size = Math.abs(number);
  if (size >= 1e9 || size < 1e-3) return number.toExponential(3);
  if (size >= 1000) return text(Math.round(number));
  return String(Number(number.toPrecision(4)));
}

// A run of the page's data, and where it stands in them.
class Run {
  constructor(data, prefix) {
    this.data = data;
    this.prefix = prefix;
  }
  // The number at a path: a list of keys.
  at(...path) {
    let value = this.data;
    for (const key of path) {
      if (value === null || value === undefined) return undefined;
      value = value[key];
    }
    return value;
  }
  // An element that shows the number at a path. Only whole numbers are shown to the digit.
  show(...path) {
    const value = this.at(...path);
    if (typeof value !== "number") return html("span", {}, text(value));
    return html("span", {"data-path": "/" + [...this.prefix, ...path].join("/")}, text(value));
  }
}

// A table; `rows` are lists of cells: text, numbers or elements. Columns from `first_number` on stand on the right.
function table(heads, rows, first_number = 1) {
  const css = (i) => (i >= first_number ? {class: "n"} : {});
  const cell = (value) => (value instanceof Node ? value : text(value));
  return html("table", {},
    html("thead", {}, html("tr", {}, heads.map((head, i) => html("th", css(i), head)))),
    html("tbody", {}, rows.map((row) =>
      html("tr", {}, row.map((value, i) => html("td", css(i), cell(value)))))));
}

function section(title, ...children) {
  return html("section", {}, html("h2", {}, title), ...children);
}

// 1, 2 or 5 times a power of ten, at least `least`.
function niceStep(least) {
  const power = Math.pow(10, Math.floor(Math.log10(Math.max(least, 1))));
  return [1, 2, 5, 10].map((f) => f * power).find((step) => step >= least);
}

// Places for labels that lie neither on one another nor on points, as far as there are any. A letter is taken as 6.5
// wide.
class Labels {
  constructor(left, top, right, bottom) {
    this.frame = [left, top, right, bottom];
    this.taken = [];
  }
  block(x, y, radius) {
    this.taken.push([x - radius, y - radius, x + radius, y + radius]);
  }
  // The label at the first of `places`, [x, y, anchor], that is free, else at the first one.
  place(label, places) {
    const box = ([x, y, anchor]) => {
      const length = 6.5 * label.length, from = anchor === "end" ? x - length : x;
      return [from, y - 11, from + length, y + 3];
    };
    const meets = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
    const is_free = (a) => a[0] >= this.frame[0] && a[1] >= this.frame[1] && a[2] <= this.frame[2] &&
      a[3] <= this.frame[3] && !this.taken.some((b) => meets(a, b));
    const chosen = places.find((place) => is_free(box(place))) || places[0];
    this.taken.push(box(chosen));
    return svg("text", {x: chosen[0], y: chosen[1], "text-anchor": chosen[2]}, label);
  }
}
