"""Which nvcc compiles generated CUDA C: a toolchain, so that rules name a type and not a place."""

def _cuda_toolchain_impl(ctx):
    return [platform_common.ToolchainInfo(
        # None where nvcc is not on the PATH.
        nvcc = ctx.file.nvcc,
        # All that it reads of the toolkit.
        files = depset(ctx.files.files),
    )]

cuda_toolchain = rule(
    implementation = _cuda_toolchain_impl,
    attrs = {
        "nvcc": attr.label(allow_single_file = True),
        "files": attr.label_list(allow_files = True),
    },
    doc = "For //third_party/cuda:toolchain_type.",
)
