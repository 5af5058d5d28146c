"""Flags of every compilation of this project, and of its tests."""

POLYNAO_COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
]

# Tests run once; what they test is optimised as ever. (glibc warns of _FORTIFY_SOURCE where nothing is optimised.)
TEST_COPTS = [
    "-O0",
    "-U_FORTIFY_SOURCE",
]
