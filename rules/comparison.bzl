"""nao_comparison_test: a program against others, its reference, or recorded runs of a GPU."""

load("//rules:program.bzl", "NaoProgramInfo")

def _quote(text):
    return "'" + text.replace("'", "'\\''") + "'"

def _comparison_test(ctx):
    compiled = ctx.attr.compiled[NaoProgramInfo]
    if compiled.bin == None:
        fail("nao_comparison_test: expected a program of the card (target = \"diannao\")", attr = "compiled")
    files = [compiled.bin, compiled.json]
    arguments = [compiled.json.short_path, "--seed=%d" % ctx.attr.seed]
    for other in ctx.attr.others:
        info = other[NaoProgramInfo]
        if info.bin == None:
            fail("nao_comparison_test: expected programs of the card (target = \"diannao\")", attr = "others")
        files += [info.bin, info.json]
        arguments.append("--with=" + info.json.short_path)
    if ctx.attr.reference:
        if compiled.source:
            files.append(compiled.source)
            arguments.append("--source=" + compiled.source.short_path)
        else:
            arguments.append("--reference")
    if ctx.file.gpu_results:
        files.append(ctx.file.gpu_results)
        arguments.append("--gpu-results=" + ctx.file.gpu_results.short_path)
    for name in ["max_error", "min_speedup", "max_cycles"]:
        value = getattr(ctx.attr, name)
        if value:
            arguments.append("--%s=%s" % (name.replace("_", "-"), value))
    config = compiled.config
    if compiled.config_file:
        files.append(compiled.config_file)
        config = compiled.config_file.short_path
    arguments.append("--config=" + config)
    if compiled.set:
        arguments.append("--set")
        arguments += ["%s=%s" % item for item in sorted(compiled.set.items())]
    script = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        script,
        "#!/bin/sh\nexec %s compare %s\n" % (
            _quote(ctx.executable._nao.short_path),
            " ".join([_quote(argument) for argument in arguments]),
        ),
        is_executable = True,
    )
    return [DefaultInfo(executable = script, runfiles = ctx.runfiles(files + [ctx.executable._nao]))]

_nao_comparison_test = rule(
    implementation = _comparison_test,
    attrs = {
        "compiled": attr.label(mandatory = True, providers = [NaoProgramInfo]),
        "others": attr.label_list(providers = [NaoProgramInfo]),
        "reference": attr.bool(),
        "gpu_results": attr.label(allow_single_file = True),
        "max_error": attr.string(),
        "min_speedup": attr.string(),
        "max_cycles": attr.string(),
        "seed": attr.int(default = 1),
        "_nao": attr.label(default = "//tools:nao", executable = True, cfg = "target"),
    },
    test = True,
    doc = "See nao_comparison_test.",
)

def nao_comparison_test(
        name,
        compiled,
        library = None,
        expert = None,
        max_error = None,
        min_speedup = None,
        max_cycles = None,
        size = "small",
        **kwargs):
    """Simulates a program and compares values and cycles; prints a table, and what differs.

    Args:
      name: of the test.
      compiled: a nao_program of the card; the others are compared with it on its machine.
      library: another one that computes the same, such as impl = "library" or one of your own.
      expert: a further one.
      max_error: largest difference of a value; default: what the operator allows, and none without an operator.
      min_speedup: least time of each other / time of `compiled`: in cycles, of a GPU in time.
      max_cycles: most cycles of `compiled`.
      size: of the test.
      **kwargs: reference (True: compare values with the operator's reference, or with what the interpreter makes of
        the program's .nir file); gpu_results (lines that gpu_runner wrote, docs/cuda.md); seed; what all tests have.
    """
    limits = {"max_error": max_error, "min_speedup": min_speedup, "max_cycles": max_cycles}
    _nao_comparison_test(
        name = name,
        compiled = compiled,
        others = [other for other in [library, expert] if other],
        size = size,
        **dict({k: "" if v == None else str(v) for k, v in limits.items()}, **kwargs)
    )
