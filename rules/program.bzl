"""nao_program: a program for the card, the CPU or a GPU."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@cuda//:cuda.bzl", "NVCC_LABEL")
load(":targets.bzl", "TARGETS")

_CUDA_TOOLCHAIN = "@polynao//third_party/cuda:toolchain_type"

NaoProgramInfo = provider(
    doc = "A program and how it was made, so that a sweep can make it again for other machines.",
    fields = {
        "bin": "The program, NAME.bin; None for other targets than the card.",
        "json": "NAME.json, which says what it was made from; None for other targets than the card.",
        "source": "The .nir file that it was compiled from, or None.",
        "compile": "Arguments of nao compile without machine, name and folder.",
        "inputs": "Files that these arguments name.",
        "impl": "compiled, library, expert or assembly.",
        "config": "The machine's name, or the path of its file.",
        "config_file": "The machine's file, or None for one that has a name.",
        "set": "Parameters that differ from it, a dict of texts.",
    },
)

# Tools of these rules are built like everything else (cfg = "target"): one build of the compiler serves actions and
# tests.

# Attributes that say which machine is meant.
MACHINE_ATTRS = {
    "config": attr.string(default = "mlu270", doc = "A machine that `nao list configs` names."),
    "config_file": attr.label(allow_single_file = [".toml"], doc = "A machine's file, instead of a name."),
    "set": attr.string_dict(doc = "Parameters that differ from it: {\"core.nmem_kib\": \"256\"}."),
}

def texts(values):
    """A dict or list with its values as texts, so that users may write numbers."""
    if type(values) == type({}):
        return {name: str(value) for name, value in values.items()}
    return [str(value) for value in values]

def config_of(ctx):
    """The machine of a rule with MACHINE_ATTRS as an argument: a name or a path."""
    return ctx.file.config_file.path if ctx.file.config_file else ctx.attr.config

def machine_arguments(config, parameters):
    """--config and --set of a machine; parameters in alphabetical order, so that equal machines are one action."""
    arguments = ["--config=" + config]
    if parameters:
        arguments.append("--set")
        arguments += ["%s=%s" % (name, parameters[name]) for name in sorted(parameters)]
    return arguments

def _nvcc(ctx):
    """Arguments of nao compile that say which nvcc makes machine code, and the files that this takes."""
    cuda = ctx.toolchains[_CUDA_TOOLCHAIN]
    if not TARGETS[ctx.attr.target].is_bundle:
        fail("nao_program: arch = \"%s\" is of target = \"cuda\"" % ctx.attr.arch, attr = "arch")
    if cuda.nvcc == None:
        fail("nao_program: arch = \"%s\" takes an nvcc: there was none on the PATH" % ctx.attr.arch, attr = "arch")
    cc = find_cpp_toolchain(ctx)
    arguments = ["--arch=" + ctx.attr.arch, "--nvcc=" + cuda.nvcc.path, "--host-compiler=" + cc.compiler_executable]
    return arguments, depset(transitive = [cuda.files, cc.all_files])

def _program(ctx):
    sources = [s for s in [ctx.attr.op, ctx.file.src, ctx.file.asm] if s]
    if not sources or (ctx.file.src and len(sources) > 1):
        fail("nao_program: expected op, src, asm, or op and asm", attr = "op")
    if ctx.attr.op and not ctx.attr.shape:
        fail("nao_program: an operator needs a shape", attr = "shape")
    inputs = [f for f in [ctx.file.src, ctx.file.asm] if f]
    if ctx.attr.op:
        compile = [ctx.attr.op, "--shape=" + ctx.attr.shape]
        if ctx.file.asm:
            compile.append("--asm=" + ctx.file.asm.path)
    else:
        compile = [inputs[0].path]
    if ctx.attr.dtype:
        compile.append("--dtype=" + ctx.attr.dtype)
    if ctx.attr.scalar:
        compile.append("--scalar=" + ctx.attr.scalar)
    if ctx.attr.untuned:
        compile.append("--untuned")
    if ctx.attr.search:
        compile.append("--search=%d" % ctx.attr.search)
    compile += ["--attr=%s=%s" % item for item in sorted(ctx.attr.attrs.items())]
    compile += ["--arg=%s=%s" % item for item in sorted(ctx.attr.args.items())]
    compile += ["--schedule=" + choice for choice in ctx.attr.schedule]
    if ctx.attr.impl != "compiled":
        compile.append("--impl=" + ctx.attr.impl)
    target = TARGETS[ctx.attr.target]
    if not target.is_card:
        compile.append("--target=" + ctx.attr.target)

    is_assembly = ctx.file.asm != None
    suffixes = list(target.suffixes)
    if not target.is_bundle and not is_assembly and ctx.attr.impl == "compiled":
        suffixes.append(".nir")
    arguments = compile + (machine_arguments(config_of(ctx), ctx.attr.set) if target.is_card else [])
    toolkit, toolkit_files = _nvcc(ctx) if ctx.attr.arch else (["--arch=none"], depset())
    if target.is_bundle:
        outputs = [ctx.actions.declare_directory(ctx.label.name)]
        arguments += toolkit + ["-o", outputs[0].path]
    else:
        outputs = [ctx.actions.declare_file(ctx.label.name + suffix) for suffix in suffixes]
        arguments += ["--name=" + ctx.label.name, "-o", outputs[0].dirname]
    machine_inputs = [ctx.file.config_file] if ctx.file.config_file else []
    ctx.actions.run(
        executable = ctx.executable._nao,
        arguments = ["compile", "--quiet"] + arguments,
        inputs = depset(inputs + machine_inputs, transitive = [toolkit_files]),
        outputs = outputs,
        mnemonic = "NaoCompile",
        progress_message = "Compiling %s for %s" % (ctx.label, ctx.attr.target),
    )
    return [
        DefaultInfo(files = depset(outputs), runfiles = ctx.runfiles(outputs)),
        NaoProgramInfo(
            bin = outputs[0] if target.is_card else None,
            json = outputs[2] if target.is_card else None,
            source = ctx.file.src,
            compile = compile,
            inputs = inputs,
            impl = "assembly" if is_assembly else ctx.attr.impl,
            config = config_of(ctx),
            config_file = ctx.file.config_file,
            set = ctx.attr.set,
        ),
    ]

_nao_program = rule(
    implementation = _program,
    attrs = dict(
        MACHINE_ATTRS,
        op = attr.string(),
        src = attr.label(allow_single_file = [".nir"]),
        asm = attr.label(allow_single_file = [".nasm"]),
        shape = attr.string(),
        dtype = attr.string(),
        scalar = attr.string(),
        attrs = attr.string_dict(),
        args = attr.string_dict(),
        schedule = attr.string_list(),
        untuned = attr.bool(),
        search = attr.int(),
        impl = attr.string(default = "compiled", values = ["compiled", "library", "expert"]),
        target = attr.string(default = "diannao", values = TARGETS.keys()),
        arch = attr.string(),
        _cc_toolchain = attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        _nao = attr.label(default = "//tools:nao", executable = True, cfg = "target"),
    ),
    toolchains = [_CUDA_TOOLCHAIN, "@bazel_tools//tools/cpp:toolchain_type"],
    doc = "See nao_program.",
)

def nao_program(name, attrs = {}, args = {}, set = {}, scalar = None, arch = None, target_compatible_with = [], **kwargs):
    """A program for the card (NAME.bin, NAME.nasm, NAME.json), the CPU (NAME.ll, NAME.s, NAME.o), C (NAME.c) or a GPU (a bundle).

    Args:
      name: of the target and its files.
      attrs: attributes of the operator, as `nao list ops` gives them: {"stride": 2}.
      args: for hand-written programs, their scalars and the shapes of tensors that they leave open: {"n": 100, "x": "5x7"}.
      set: parameters of the machine that differ from the config's: {"core.nmem_kib": 256}.
      scalar: the number that the operator takes.
      arch: for a GPU: "sm_90"; the bundle gets PTX and machine code, by nvcc. Where none is on the PATH, the target is
        incompatible: `bazel build //...` skips it, and asked for by name it says that nvcc_is_on_the_path does not hold.
      target_compatible_with: as all rules have it.
      **kwargs: op with shape ("56x56x64,64x3x3x64") and dtype, or src (a .nir file), or asm (a .nasm file, with op and
        shape if it computes an operator); target ("diannao", "cpu", "c", "cuda"); impl ("compiled", "library",
        "expert"); schedule (["tile=4096"]); untuned; search (simulate as many schedules, the cheapest by the
        cost model, and take the fastest); config or config_file; what all rules have (visibility, tags).
    """
    _nao_program(
        name = name,
        attrs = texts(attrs),
        args = texts(args),
        set = texts(set),
        scalar = "" if scalar == None else str(scalar),
        arch = arch or "",
        target_compatible_with = target_compatible_with +
                                 (["@polynao//third_party/cuda:nvcc_is_on_the_path"] if arch and not NVCC_LABEL else []),
        **kwargs
    )
