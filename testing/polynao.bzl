"""C++ targets of this project: warnings are errors, and a test needs only its sources and deps."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")
load("//third_party/pch:copts.bzl", "POLYNAO_COPTS", "TEST_COPTS")

def _precompiled(header, copts):
    """Flags and dependencies of a target that uses third_party/pch: with flags of its own it cannot."""
    if copts:
        return struct(copts = POLYNAO_COPTS + copts, deps = [])
    with_it = "-include-pch $(BINDIR)/third_party/pch/" + header + ".pch"
    return struct(
        copts = POLYNAO_COPTS + select({
            "//third_party/pch:on": [with_it],
            "//conditions:default": [],
        }),
        deps = select({
            "//third_party/pch:on": ["//third_party/pch:" + header],
            "//conditions:default": [],
        }),
    )

def polynao_cc_library(
        name,
        copts = [],
        deps = [],
        visibility = ["//visibility:public"],
        **kwargs):
    """A cc_library with the project's warnings; public unless it says otherwise."""
    precompiled = _precompiled("library", copts)
    cc_library(
        name = name,
        copts = precompiled.copts,
        deps = deps + precompiled.deps,
        # Ours is always linked statically; a shared library beside each archive would be lost time.
        linkstatic = True,
        visibility = visibility,
        **kwargs
    )

def polynao_cc_binary(name, copts = [], deps = [], visibility = ["//visibility:public"], **kwargs):
    """A cc_binary with the project's warnings; public unless it says otherwise."""
    precompiled = _precompiled("library", copts)
    cc_binary(
        name = name,
        copts = precompiled.copts,
        deps = deps + precompiled.deps,
        visibility = visibility,
        **kwargs
    )

def polynao_cc_test(name, copts = [], deps = [], size = "small", **kwargs):
    """A GoogleTest test: gtest, gmock and main() come by themselves."""
    precompiled = _precompiled("test", copts)
    cc_test(
        name = name,
        size = size,
        copts = TEST_COPTS + precompiled.copts,
        linkstatic = True,
        deps = deps + precompiled.deps + [
            "//testing:test_main",
            "//third_party/googletest:gtest",
        ],
        **kwargs
    )
