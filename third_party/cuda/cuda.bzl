"""The CUDA toolkit where nvcc is on the PATH; otherwise a repository that says there is none."""

# What nvcc reads besides headers, by the toolkit's folders. (cuobjdump counts machine instructions, if it is there.)
_PROGRAMS = """\
filegroup(
    name = "nvcc_files",
    srcs = glob(
        [
            "bin/nvcc",
            "bin/nvcc.profile",
            "bin/cudafe++",
            "bin/cicc",
            "bin/ptxas",
            "bin/fatbinary",
            "bin/nvlink",
            "bin/cuobjdump",
            "bin/crt/**",
            "nvvm/bin/**",
            "nvvm/libdevice/**",
            "libdevice/**",
        ],
    ) + glob([
        folder + pattern
        # nvcc.profile names the second.
        for folder in ["include/", "targets/*/include/"]
        for pattern in ["*.h", "*.hpp", "crt/**"]
    ]),
)

exports_files(["bin/nvcc"])
"""

def _cuda_toolkit_impl(repository_ctx):
    nvcc = repository_ctx.which("nvcc")
    root = str(nvcc.realpath.dirname.dirname) if nvcc else ""
    tools = root
    if root and not repository_ctx.path(root + "/include/cuda_runtime.h").exists:
        # Debian's nvidia-cuda-toolkit puts nvcc behind a script and its headers into /usr/include.
        root = "/usr" if repository_ctx.path("/usr/include/cuda_runtime.h").exists else ""
        tools = "/usr/lib/nvidia-cuda-toolkit" if root else ""
    has_nvcc = bool(root) and repository_ctx.path(tools + "/bin/nvcc").exists
    build = "package(default_visibility = [\"//visibility:public\"])\n\n"
    if root and root != "/usr":
        repository_ctx.symlink(root + "/include", "include")
        build += """\
cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    includes = ["include"],
)
"""
    else:
        build += "cc_library(name = \"headers\")\n"
    if has_nvcc:
        for folder in ["bin", "nvvm", "libdevice", "targets"]:
            if repository_ctx.path(tools + "/" + folder).exists:
                repository_ctx.symlink(tools + "/" + folder, folder)
        build += "\n" + _PROGRAMS
    repository_ctx.file("BUILD", build)
    values = {
        "HAVE_CUDA": bool(root),
        "CUDA_ROOT": root,
        "NVCC": str(nvcc) if root else "",
        "NVCC_LABEL": "@cuda//:bin/nvcc" if has_nvcc else None,
        "NVCC_FILES": ["@cuda//:nvcc_files"] if has_nvcc else [],
    }
    repository_ctx.file("cuda.bzl", "".join(["%s = %r\n" % item for item in values.items()]))

cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    doc = "Provides @cuda//:headers and @cuda//:cuda.bzl: HAVE_CUDA, CUDA_ROOT and NVCC; NVCC_LABEL and NVCC_FILES for //third_party/cuda:nvcc.",
    environ = ["PATH"],
    local = True,
)
