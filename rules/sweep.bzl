"""nao_sweep: programs on all combinations of parameters of a machine."""

load("//rules:program.bzl", "NaoProgramInfo", "machine_arguments", "texts")

def _points(axes):
    """All combinations, in the order of the axes, the first one slowest: a list of lists of (name, value)."""
    points = [[]]
    for axis in axes:
        name, _, values = axis.partition("=")
        points = [point + [(name, value)] for point in points for value in values.split(",")]
    return points

def _table_name(file):
    """The value of the axis "instructions" that stands for a table's file."""
    return file.basename[:-len(".nir")] if file.basename.endswith(".nir") else file.basename

def _compile(ctx, info, place, parameters, table):
    """Compiles a program once more, for a machine with these parameters and with these instructions (a file, or None).

    An error becomes part of the result."""
    name = place.rpartition("/")[2]
    bin = ctx.actions.declare_file(place + ".bin")
    json = ctx.actions.declare_file(place + ".json")
    outputs = [bin, json, ctx.actions.declare_file(place + ".nasm")]
    is_compiled_operator = info.impl == "compiled" and not info.source
    if info.impl == "compiled":
        outputs.append(ctx.actions.declare_file(place + ".nir"))
    ctx.actions.run(
        executable = ctx.executable._nao,
        arguments = ["compile", "--quiet"] + info.compile + (["--untuned"] if is_compiled_operator else []) +
                    ["--record-error", "--name=" + name] + machine_arguments(info.config, parameters) +
                    (["--instructions=" + table.path] if table else []) + ["-o", bin.dirname],
        inputs = info.inputs + ([info.config_file] if info.config_file else []) + ([table] if table else []),
        outputs = outputs,
        mnemonic = "NaoCompile",
        progress_message = "Compiling %s of %s" % (place, ctx.label),
    )
    return bin, json

def _sweep(ctx):
    tables = {_table_name(file): file for file in ctx.files.instructions}
    if len(tables) != len(ctx.files.instructions):
        fail("nao_sweep: expected tables of different names, found %s" % ctx.files.instructions, attr = "instructions")
    if not ctx.attr.axes and len(tables) < 2:
        fail("nao_sweep: expected axes, or instructions with two tables or more, found neither", attr = "axes")
    points = _points(ctx.attr.axes + (["instructions=" + ",".join(tables.keys())] if tables else []))
    machines = {}
    for program in ctx.attr.programs:
        info = program[NaoProgramInfo]
        if info.bin == None:
            fail("nao_sweep: expected programs of the card (target = \"diannao\"), found %s" % program.label, attr = "programs")
        machines[(info.config, tuple(sorted(info.set.items())))] = program.label
    if len(machines) != 1:
        fail("nao_sweep: expected programs of one machine, found %s" % machines.values(), attr = "programs")
    first = ctx.attr.programs[0][NaoProgramInfo]
    base = dict(first.set)
    base.update(ctx.attr.set)
    machine_inputs = [first.config_file] if first.config_file else []
    common = machine_arguments(first.config, base) + ["--axis=" + axis for axis in ctx.attr.axes]
    if ctx.attr.energy:
        common.append("--energy=" + ctx.attr.energy)
    if tables:
        common.append("--instructions=" + ",".join([file.path for file in tables.values()]))

    rows = []
    for program in ctx.attr.programs:
        info = program[NaoProgramInfo]
        name = program.label.name

        # Only compiling a program shows which parameters matter to it, so it is compiled for each point.
        of_point = []
        for p, point in enumerate(points):
            parameters = dict(base)
            parameters.update(dict(point))
            table = tables[parameters.pop("instructions")] if tables else None
            of_point.append(_compile(ctx, info, "%s/%s_%d" % (ctx.label.name, name, p), parameters, table))

        for begin in range(0, len(points), ctx.attr.points_per_action):
            end = min(begin + ctx.attr.points_per_action, len(points))
            out = ctx.actions.declare_file("%s/%s_rows_%d.json" % (ctx.label.name, name, begin))
            arguments = ctx.actions.args()
            arguments.use_param_file("@%s")
            arguments.set_param_file_format("multiline")
            arguments.add_all(common)
            arguments.add("--out=" + out.path)
            inputs = {}
            for p in range(begin, end):
                bin, json = of_point[p]
                inputs[bin] = True
                inputs[json] = True
                arguments.add("--run=%s:%d:%s" % (name, p, json.path))
            ctx.actions.run(
                executable = ctx.executable._points,
                arguments = [arguments],
                inputs = machine_inputs + inputs.keys() + ctx.files.instructions,
                outputs = [out],
                mnemonic = "NaoSweep",
                progress_message = "Simulating points %d to %d of %s" % (begin, end - 1, ctx.label),
            )
            rows.append(out)

    outputs = [ctx.actions.declare_file(ctx.label.name + suffix) for suffix in [".csv", ".json", ".html"]]
    arguments = ctx.actions.args()
    arguments.use_param_file("@%s")
    arguments.set_param_file_format("multiline")
    for flag, output in zip(["--out-csv=", "--out-json=", "--out-html="], outputs):
        arguments.add(flag + output.path)
    arguments.add_all(["--metrics=" + ",".join(ctx.attr.metrics)] if ctx.attr.metrics else [])
    arguments.add_all(rows)
    ctx.actions.run(
        executable = ctx.executable._report,
        arguments = [arguments],
        inputs = rows,
        outputs = outputs,
        mnemonic = "NaoSweepReport",
        progress_message = "Summing up %s" % ctx.label,
    )
    return [DefaultInfo(files = depset(outputs), runfiles = ctx.runfiles(outputs))]

_nao_sweep = rule(
    implementation = _sweep,
    attrs = {
        "programs": attr.label_list(mandatory = True, allow_empty = False, providers = [NaoProgramInfo]),
        "axes": attr.string_list(),
        "instructions": attr.label_list(allow_files = [".nir"]),
        "set": attr.string_dict(),
        "energy": attr.string(),
        "metrics": attr.string_list(),
        "points_per_action": attr.int(default = 25),
        "_nao": attr.label(default = "//tools:nao", executable = True, cfg = "target"),
        "_points": attr.label(default = "//sweep:sweep_points", executable = True, cfg = "target"),
        "_report": attr.label(default = "//sweep:sweep_report", executable = True, cfg = "target"),
    },
    doc = "See nao_sweep.",
)

def nao_sweep(name, programs, axes = {}, set = {}, **kwargs):
    """Runs programs on all combinations of parameters: NAME.csv, NAME.json and NAME.html, the same wherever they are made.

    Each point's schedule is chosen for the point's machine: by the cost model, or, for programs with `search`, by a search. A point
    that cannot be is a row that says why.

    Args:
      name: of the target and its files.
      programs: nao_program targets of the card and of one machine.
      axes: parameters of the machine and their values: {"core.nmem_kib": [256, 512], "gmem.dram": ["ddr4_3200", "hbm2"]}.
        May be left out if there are instructions.
      set: parameters that differ from the programs' machine in all points.
      **kwargs: instructions (files of instruction tables to compare, the last axis: rows for the built-in table, or tables of
        their own; the first one is what the others are compared with); energy (a table of `nao run --energy`, for energy and area); metrics (columns of the table; default: all
        that are known); points_per_action (default 25: points of 50 ms or less are not worth an action each); what all rules have.
    """
    for axis in axes:
        if "," in axis or "=" in axis or len(axes[axis]) == 0:
            fail("nao_sweep: axis '%s': expected a parameter's name and at least one value" % axis)
    _nao_sweep(
        name = name,
        programs = programs,
        axes = ["%s=%s" % (axis, ",".join(texts(values))) for axis, values in axes.items()],
        set = texts(set),
        **kwargs
    )
