"""What halide_pipelines.py needs to know of a pipeline."""

import dataclasses
from typing import Callable

import halide as hl


def tail(extent, factor):
    """How a split of the output's loop of `extent` by `factor` ends: the last part is shifted back if there is a whole one."""
    if extent % factor == 0:
        return hl.TailStrategy.RoundUp
    return hl.TailStrategy.ShiftInwards if extent > factor else hl.TailStrategy.GuardWithIf


@dataclasses.dataclass
class Pipeline:
    # Each input with its shape as numpy states it: the last dimension is the innermost one, Halide's first.
    inputs: list[tuple[hl.ImageParam, tuple[int, ...]]]
    output: hl.Func
    # The output's shape.
    shape: tuple[int, ...]
    # All stages before the output, each after those it reads.
    stages: list[hl.Func]
    # Schedules the stages by hand: hand(target, **sizes), where the sizes have the best values found as defaults.
    hand: Callable[..., None]
    # Halide's coordinates of the output's first element and of the first element of each input, in numpy's order;
    # None: zeros.
    origin: tuple[int, ...] | None = None
    input_origins: list[tuple[int, ...]] | None = None

    def mins(self):
        """(origin of the output, origins of the inputs), in Halide's order of dimensions."""
        origin = self.origin or (0,) * len(self.shape)
        inputs = self.input_origins or [(0,) * len(shape) for _, shape in self.inputs]
        return list(reversed(origin)), [list(reversed(place)) for place in inputs]

    @staticmethod
    def numpy_type(halide_type):
        import numpy as np
        types = {hl.TypeCode.Float: "f", hl.TypeCode.UInt: "u", hl.TypeCode.Int: "i"}
        return np.dtype(f"<{types[halide_type.code()]}{halide_type.bits() // 8}")

    def random_input(self, place, dtype):
        import numpy as np
        generator = np.random.default_rng(place)
        shape = self.inputs[place][1]
        if np.issubdtype(dtype, np.floating):
            return generator.random(shape, dtype=dtype)
        return generator.integers(0, {"<u2": 65536, "|u1": 256}.get(dtype.str, 1024), shape, dtype=dtype)
