"""Flags of every compilation of this project."""

POLYNAO_COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
]
