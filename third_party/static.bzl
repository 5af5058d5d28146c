"""Linker options of programs that start quickly."""

load("@debian_absl//:libraries.bzl", ABSL = "ARCHIVES")
load("@debian_llvm//:libraries.bzl", LLVM = "ARCHIVES")

# Without these, which we do not use: the linker takes an archive's member for any inline function that stands in it,
# and these have needs of their own.
_ABSL = [archive for archive in ABSL if "flags" not in archive and "random" not in archive]

# Abseil alone as archives, for programs without LLVM.
STATIC_ABSL_LINKOPTS = [
    "-no-pie",
    "-Wl,-z,lazy",
    "-Wl,--as-needed",
    "-Wl,--start-group",
] + _ABSL + ["-Wl,--end-group"]

# LLVM and Abseil as archives. libLLVM.so has 341,000 addresses to relocate, which takes 15 ms at each start; code at
# fixed addresses has none. Stands before the libraries' own options, which name shared libraries: by then nothing
# needs them. For programs that run often, since it adds 50 MB to each: tests link shared libraries.
STATIC_LINKOPTS = [
    "-no-pie",
    "-Wl,-z,lazy",
    "-Wl,--as-needed",
    "-L/usr/lib/llvm-19/lib",
    "-Wl,--start-group",
] + LLVM + _ABSL + [
    "-Wl,--end-group",
    # What LLVM's archives use; libpng-dev and llvm-19-dev bring them.
    "-lz",
    "-l:libzstd.so.1",
]
