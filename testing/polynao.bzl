"""C++ targets of this project: warnings are errors, and a test needs only its sources and deps."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")

POLYNAO_COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
]

def polynao_cc_library(name, copts = [], visibility = ["//visibility:public"], **kwargs):
    """A cc_library with the project's warnings; public unless it says otherwise."""
    cc_library(
        name = name,
        copts = POLYNAO_COPTS + copts,
        # Ours is always linked statically; a shared library beside each archive would be lost time.
        linkstatic = True,
        visibility = visibility,
        **kwargs
    )

def polynao_cc_binary(name, copts = [], visibility = ["//visibility:public"], **kwargs):
    """A cc_binary with the project's warnings; public unless it says otherwise."""
    cc_binary(
        name = name,
        copts = POLYNAO_COPTS + copts,
        visibility = visibility,
        **kwargs
    )

def polynao_cc_test(name, copts = [], deps = [], size = "small", **kwargs):
    """A GoogleTest test: gtest, gmock and main() come by themselves."""
    cc_test(
        name = name,
        size = size,
        copts = POLYNAO_COPTS + copts,
        linkstatic = True,
        deps = deps + [
            "//testing:test_main",
            "//third_party/googletest:gtest",
        ],
        **kwargs
    )
