"""nao_simulation: a run of a program on the card's model."""

load("//rules:program.bzl", "MACHINE_ATTRS", "NaoProgramInfo", "config_of", "machine_arguments", "texts")

def _simulation(ctx):
    program = ctx.attr.program[NaoProgramInfo]
    if program.bin == None:
        fail("nao_simulation: expected a program of the card (target = \"diannao\")", attr = "program")
    of_program = not ctx.attr.config and not ctx.file.config_file
    parameters = dict(program.set) if of_program else {}
    parameters.update(ctx.attr.set)
    config_file = program.config_file if of_program else ctx.file.config_file
    result = ctx.actions.declare_file(ctx.label.name + ".json")
    outputs = [result]
    arguments = [program.bin.path, "--made-from=" + program.json.path, "--seed=%d" % ctx.attr.seed, "-o", result.path]
    for wanted, flag, suffix in [
        (ctx.attr.trace, "--trace", ".trace.json"),
        (ctx.attr.timeline, "--timeline", ".timeline.html"),
        (ctx.attr.report, "--report", ".report.html"),
    ]:
        if wanted:
            output = ctx.actions.declare_file(ctx.label.name + suffix)
            outputs.append(output)
            arguments.append("%s=%s" % (flag, output.path))
    if ctx.attr.energy:
        arguments.append("--energy=" + ctx.attr.energy)
    if ctx.attr.any_machine:
        arguments.append("--any-machine")
    arguments += machine_arguments(program.config if of_program else config_of(ctx), parameters)
    ctx.actions.run(
        executable = ctx.executable._simulate,
        arguments = arguments,
        inputs = [program.bin, program.json] + ([config_file] if config_file else []),
        outputs = outputs,
        mnemonic = "NaoSimulate",
        progress_message = "Simulating %s" % ctx.label,
    )
    return [DefaultInfo(files = depset(outputs), runfiles = ctx.runfiles(outputs))]

_nao_simulation = rule(
    implementation = _simulation,
    attrs = dict(
        MACHINE_ATTRS,
        config = attr.string(),
        program = attr.label(mandatory = True, providers = [NaoProgramInfo]),
        seed = attr.int(default = 1),
        energy = attr.string(),
        trace = attr.bool(),
        timeline = attr.bool(),
        report = attr.bool(),
        any_machine = attr.bool(),
        _simulate = attr.label(default = "//tools/simulate:nao_sim", executable = True, cfg = "target"),
    ),
    doc = "See nao_simulation.",
)

def nao_simulation(name, program, set = {}, **kwargs):
    """Runs a program on the card's model with random inputs; NAME.json has cycles, counters and the machine.

    The file is the same wherever and whenever it is made.

    Args:
      name: of the target and its files.
      program: a nao_program of the card.
      set: parameters that differ from the machine's.
      **kwargs: config or config_file (default: the program's machine); seed of the inputs; energy (a table of
        `nao run --energy`); trace, timeline and report (True: NAME.trace.json, NAME.timeline.html, NAME.report.html);
        any_machine (True: run it although it was compiled for another machine); what all rules have.
    """
    _nao_simulation(name = name, program = program, set = texts(set), **kwargs)
