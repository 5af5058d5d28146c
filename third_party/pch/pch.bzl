"""Precompiled headers for Clang: what nearly every file includes of other packages is parsed once."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("//third_party/pch:copts.bzl", "POLYNAO_COPTS")

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        # The module maps of its users' dependencies are not known here; that headers need a dependency is checked
        # where they are included.
        unsupported_features = ctx.disabled_features + ["layering_check", "module_maps"],
    )
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        # A file has to be named: one of the system's, which every compilation includes anyway.
        source_file = "/usr/include/stdc-predef.h",
        output_file = ctx.outputs.out.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + POLYNAO_COPTS + ctx.attr.copts,
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
        use_pic = True,
    )
    command = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = ACTION_NAMES.cpp_compile,
        variables = variables,
    )
    arguments = ctx.actions.args()

    # Clang compares the flags of the header's users with these. No times, and no path of the sandbox, in which a
    # header of ours would be: equal inputs make equal bytes.
    arguments.add_all(["-fmodules-strict-decluse", "-Xclang", "-fno-pch-timestamp", "-fpch-instantiate-templates"])
    arguments.add_all(["-x", "c++-header"])
    arguments.add_all(ctx.attr.headers, before_each = "-include")
    arguments.add_all(command)
    ctx.actions.run(
        executable = toolchain.compiler_executable,
        arguments = [arguments],
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = ACTION_NAMES.cpp_compile,
            variables = variables,
        ),
        inputs = depset(transitive = [context.headers, toolchain.all_files]),
        outputs = [ctx.outputs.out],
        mnemonic = "PrecompileHeader",
        progress_message = "Precompiling headers: " + str(ctx.label),
    )
    own = cc_common.create_compilation_context(headers = depset([ctx.outputs.out]))
    return [
        CcInfo(compilation_context = own),
        DefaultInfo(files = depset([ctx.outputs.out])),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    doc = "NAME.pch of `headers`, an input of every compilation whose target depends on this one.",
    attrs = {
        "headers": attr.string_list(mandatory = True, doc = "Of other packages, as they are included."),
        "copts": attr.string_list(doc = "Flags of all its users."),
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    outputs = {"out": "%{name}.pch"},
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)
