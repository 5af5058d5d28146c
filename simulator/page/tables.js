// All counters.

function dramTable(run) {
  if (run.at("dram") === undefined) return null;
  const names = ["activates", "precharges", "precharge_alls", "reads", "writes", "refreshes", "hits", "misses", "conflicts"];
  const heads = ["channel", "ACT", "PRE", "PREA", "RD", "WR", "REF", "hits", "misses", "conflicts", "hits, %"];
  const hits = (counters) => text(100 * counters.hits / Math.max(1, counters.reads + counters.writes));
  const rows = run.data.dram.map((channel, c) =>
    [String(c), ...names.map((name) => run.show("dram", c, name)), hits(channel)]);
  const bank_rows = run.data.dram.flatMap((channel, c) => channel.banks.map((bank, b) =>
    [`${c}, ${b}`, ...names.map((name) => run.show("dram", c, "banks", b, name)), hits(bank)]));
  return section("DRAM", table(heads, rows),
    html("details", {}, html("summary", {}, "By bank"), table(["channel, bank", ...heads.slice(1)], bank_rows)));
}

function portTable(run) {
  const cycles = Math.max(1, run.data.counters.end_cycle);
  const rows = run.data.ports.map((port, i) => [
    port.name, text(port.rate / 1000), ...["bursts", "payload", "moved", "busy"].map((name) => run.show("ports", i, name)),
    text(100 * port.busy / cycles)]);
  return section("Ports", html("details", {}, html("summary", {}, `${rows.length} ports`),
    table(["port", "bytes a cycle", "bursts", "payload, B", "moved, B", "busy, cycles", "busy, %"], rows)));
}

function stallTable(run) {
  const cores = run.data.cores;
  if (!cores.length) return null;
  const units = Object.keys(cores[0].units), stalls = Object.keys(cores[0].stalls);
  const unit_rows = cores.map((core, i) => [coreName(core), ...units.flatMap((unit) =>
    [run.show("cores", i, "units", unit, "instructions"), run.show("cores", i, "units", unit, "busy")])]);
  const rows = cores.map((core, i) => [coreName(core), ...stalls.map((stall) => run.show("cores", i, "stalls", stall)),
    run.show("cores", i, "halted_at")]);
  return section("Cores",
    html("h3", {}, "Cycles in which a core issued nothing, by reason"),
    html("div", {class: "scroll"}, table(["core", ...stalls.map((name) => name.replaceAll(/[._]/g, " ")), "halted at"], rows)),
    html("details", {}, html("summary", {}, "Instructions and busy cycles of each unit"), html("div", {class: "scroll"},
      table(["core", ...units.flatMap((unit) => [unit, "busy"])], unit_rows))));
}

function counterTable(run) {
  const rows = Object.keys(run.data.counters).map((name) => [name, run.show("counters", name)]);
  return section("Counters", html("details", {}, html("summary", {}, `${rows.length} counters`),
    table(["sum over the card", ""], rows)));
}
