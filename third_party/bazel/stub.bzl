"""Stand-in for a repository which Bazel names but which this project never uses."""

def _coverage_stub_impl(repository_ctx):
    repository_ctx.file("BUILD", """\
package(default_visibility = ["//visibility:public"])

filegroup(name = "coverage_report_generator")

filegroup(name = "lcov_merger")
""")

coverage_stub = repository_rule(
    implementation = _coverage_stub_impl,
    doc = "Every cc_test depends on @remote_coverage_tools, which Bazel would download. Coverage is not used.",
)
