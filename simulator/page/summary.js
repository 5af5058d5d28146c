// What ran where, how long it took, and what bounds it.

function nameOf(run) {
  const data = run.data;
  if (data.op === undefined) return data.program || "run";
  const shapes = [data.shape, ...(data.operand_shapes || [])].map((shape) => shape.join("x"));
  return [data.op, shapes.join(","), data.dtype].join(" ");
}

function card(name, value, css) {
  return html("div", {class: "card"}, html("b", {class: css}, value), html("span", {class: "name"}, name));
}

function verdict(run) {
  if (run.at("values_checked") === undefined) return null;
  if (!run.data.values_checked) return card("values", "not checked");
  return card("values", run.data.ok ? "agree" : "DIFFER", run.data.ok ? "good" : "bad");
}

function energy(run) {
  if (run.at("energy_pj") === undefined) return null;
  const total = run.data.energy_pj.total;
  const names = Object.keys(run.data.area_mm2).filter((name) => !(name in run.data.energy_pj));
  const rows = [...Object.keys(run.data.energy_pj), ...names].map((name) => [
    name, run.show("energy_pj", name), text(total > 0 ? 100 * (run.data.energy_pj[name] || 0) / total : 0),
    run.show("area_mm2", name),
  ]);
  return html("div", {}, html("h3", {}, "Energy and area, table " + run.at("energy_table", "name")),
    table(["component", "pJ", "%", "mm\u00b2"], rows),
    html("p", {}, "Average power ", run.show("average_power_mw"), " mW, without DRAM ",
      run.show("chip_power_mw"), " mW."));
}

function summary(run) {
  const cards = [
    verdict(run),
    card("cycles", run.show("cycles")),
    run.at("time_ns") === undefined ? null : card("ns", run.show("time_ns")),
    run.at("bound_cycles") === undefined ? null : card("bound", run.show("bound_cycles")),
    run.at("dram_bound_cycles") === undefined || run.data.dram_bound_cycles === null
      ? null : card("bound of DRAM", run.show("dram_bound_cycles")),
    run.at("efficiency") === undefined ? null : card("efficiency", run.show("efficiency")),
    card("instructions", run.show("instructions")),
    card("launch cycles, apart", run.show("launch_cycles")),
  ];
  const moved = ["read", "read_moved", "read_cached", "written", "written_moved"].map((name) => [
    name.replace("_", ", "), run.show("counters", "bytes.gmem." + name)]);
  const paths = Object.keys(run.data.counters)
    .filter((name) => /^bytes\..*_to_/.test(name))
    .map((name) => [name.slice(6).replaceAll("_", " "), run.show("counters", name)]);
  const machine = Object.keys(run.data.machine).map((name) => [name, run.show("machine", name)]);
  return [
    html("div", {class: "cards"}, cards),
    run.at("host_step") ? html("p", {}, "Before it, not in the cycles, the host " + run.data.host_step + ".") : null,
    html("div", {class: "columns"},
      html("div", {}, html("h3", {}, "GMEM, bytes"), table(["", "bytes"], moved)),
      html("div", {}, html("h3", {}, "Copies, bytes"), table(["from, to", "bytes"], paths)),
      energy(run)),
    html("details", {}, html("summary", {}, "Machine " + run.data.config),
      table(["parameter", "value"], machine)),
  ];
}
