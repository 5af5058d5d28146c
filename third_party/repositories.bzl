"""All external repositories. Each is one Debian package (Debian 12 and 13)."""

load("//third_party:debian.bzl", "debian_package", "debian_rules")
load("//third_party/bazel:stub.bzl", "coverage_stub")
load("//third_party/cuda:cuda.bzl", "cuda_toolkit")

def polynao_repositories():
    """Declares the Bazel rules, then the libraries."""

    # Bazel asks for these by name for any C++ target; undeclared, it would download them.
    debian_rules(
        name = "rules_cc",
        package = "bazel-rules-cc",
        root = "/usr/share/bazel/rules/cc",
        # rules_cc 0.0.4 loads a function which Bazel has from version 5 on only.
        substitute_in = [
            "cc/private/rules_impl/cc_flags_supplier.bzl",
            "cc/private/rules_impl/compiler_flag.bzl",
        ],
        substitutions = {
            ", \"use_cpp_toolchain\"": "",
            "use_cpp_toolchain()": "[\"@bazel_tools//tools/cpp:toolchain_type\"]",
        },
    )
    debian_rules(
        name = "rules_java",
        package = "bazel-rules-java",
        root = "/usr/share/bazel/rules/java",
    )
    debian_rules(
        name = "rules_proto",
        package = "bazel-rules-proto",
        root = "/usr/share/bazel/rules/proto",
    )
    debian_rules(
        name = "bazel_skylib",
        package = "bazel-skylib",
        root = "/usr/share/bazel/tools/skylib",
    )
    debian_rules(
        name = "platforms",
        package = "bazel-platforms",
        root = "/usr/share/bazel/tools/platforms",
    )
    coverage_stub(name = "remote_coverage_tools")

    debian_package(
        name = "debian_absl",
        package = "libabsl-dev",
        requires = ["/usr/include/absl/status/statusor.h"],
        library_prefix = "absl_",
    )
    debian_package(
        name = "debian_benchmark",
        package = "libbenchmark-dev",
        requires = ["/usr/include/benchmark/benchmark.h"],
    )
    debian_package(
        name = "debian_cli11",
        package = "libcli11-dev",
        requires = ["/usr/include/CLI/CLI.hpp"],
    )
    debian_package(
        name = "debian_gmock",
        package = "libgmock-dev",
        requires = ["/usr/include/gmock/gmock.h"],
    )
    debian_package(
        name = "debian_gtest",
        package = "libgtest-dev",
        requires = ["/usr/include/gtest/gtest.h"],
    )
    debian_package(
        name = "debian_isl",
        package = "libisl-dev",
        requires = ["/usr/include/isl/cpp.h"],
    )
    debian_package(
        name = "debian_jemalloc",
        package = "libjemalloc-dev",
        static_library = "libjemalloc_pic.a",
    )
    debian_package(
        name = "debian_llvm",
        package = "llvm-19-dev",
        include_dir = "/usr/lib/llvm-19/include",
        # What compiler/codegen/llvm uses.
        archives_command = ["/usr/lib/llvm-19/bin/llvm-config", "--link-static", "--libs", "orcjit", "native", "passes"],
    )
    debian_package(
        name = "debian_nlohmann_json",
        package = "nlohmann-json3-dev",
        requires = ["/usr/include/nlohmann/json.hpp"],
    )
    debian_package(
        name = "debian_png",
        package = "libpng-dev",
        requires = ["/usr/include/png.h"],
    )
    debian_package(
        name = "debian_polly",
        package = "libpolly-19-dev",
        requires = ["/usr/lib/llvm-19/include/polly/isl/ctx.h"],
        static_library = "libPollyISL.a",
    )
    debian_package(
        name = "debian_systemc",
        package = "libsystemc-dev",
        requires = ["/usr/include/systemc"],
    )
    debian_package(
        name = "debian_tomlplusplus",
        package = "libtomlplusplus-dev",
        requires = ["/usr/include/toml++/toml.h"],
    )
    cuda_toolkit(name = "cuda")
    native.register_toolchains("@polynao//third_party/cuda:nvcc_toolchain")
