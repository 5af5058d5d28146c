"""The CUDA toolkit where nvcc is on the PATH; otherwise a repository that says there is none."""

def _cuda_toolkit_impl(repository_ctx):
    nvcc = repository_ctx.which("nvcc")
    root = str(nvcc.realpath.dirname.dirname) if nvcc else ""
    if root and not repository_ctx.path(root + "/include/cuda_runtime.h").exists:
        # Debian's nvidia-cuda-toolkit puts nvcc behind a script and its headers into /usr/include.
        root = "/usr" if repository_ctx.path("/usr/include/cuda_runtime.h").exists else ""
    if root and root != "/usr":
        repository_ctx.symlink(root + "/include", "include")
        repository_ctx.file("BUILD", """\
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    includes = ["include"],
)
""")
    else:
        repository_ctx.file("BUILD", """\
package(default_visibility = ["//visibility:public"])

cc_library(name = "headers")
""")
    repository_ctx.file("cuda.bzl", "HAVE_CUDA = %r\nCUDA_ROOT = %r\nNVCC = %r\n" % (bool(root), root, str(nvcc) if root else ""))

cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    doc = "Provides @cuda//:headers and @cuda//:cuda.bzl with HAVE_CUDA, CUDA_ROOT and NVCC.",
    environ = ["PATH"],
    local = True,
)
