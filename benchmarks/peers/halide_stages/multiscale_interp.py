"""Multiscale interpolation: a pyramid of 10 levels of 4 planes of f32, down and up."""

import halide as hl

from halide_stages.pipeline import Pipeline, tail

x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")
LEVELS = 10


def make(rows, cols):
    """An image f32[4][rows + 2][cols + 2] in, whose last plane is alpha, f32[3][rows][cols] out."""
    image = hl.ImageParam(hl.Float(32), 3, "image")
    stages = []

    def stage(name, value):
        func = hl.Func(name)
        func[y, x, c] = value
        stages.append(func)
        return func

    def bordered(name, value, inner_rows, inner_cols):
        """value(row, column) in rows 1 to inner_rows and columns 1 to inner_cols, and zeros around it."""
        # As in Halide's BoundaryConditions: clamped, so that bounds are known, and likely, so that loops are
        # partitioned.
        outside = (x < 1) | (x > inner_rows) | (y < 1) | (y > inner_cols)
        inner = value(hl.clamp(hl.likely(x), 1, inner_rows), hl.clamp(hl.likely(y), 1, inner_cols))
        return stage(name, hl.select(outside, hl.f32(0), hl.likely(inner)))

    down = [stage("down0", image[y, x, c] * image[y, x, 3])]
    downx = [None]
    for level in range(1, LEVELS):
        fine, inner_rows = down[-1], rows >> level
        downx.append(bordered(
            f"downx{level}",
            lambda x, y: (fine[y, 2 * x - 2, c] + 2 * fine[y, 2 * x - 1, c] + fine[y, 2 * x, c]) * hl.f32(0.25),
            inner_rows, cols >> (level - 1)))
        part = downx[-1]
        down.append(bordered(
            f"down{level}",
            lambda x, y: (part[2 * y - 2, x, c] + 2 * part[2 * y - 1, x, c] + part[2 * y, x, c]) * hl.f32(0.25),
            inner_rows, cols >> level))
    up, upx = [None] * (LEVELS - 1) + [down[-1]], [None] * (LEVELS - 1)
    for level in reversed(range(LEVELS - 1)):
        coarse, inner_rows = up[level + 1], rows >> level
        upx[level] = bordered(
            f"upx{level}", lambda x, y: (coarse[y, (x + 1) / 2, c] + coarse[y, (x + 2) / 2, c]) * hl.f32(0.5),
            inner_rows, cols >> (level + 1))
        part = upx[level]
        up[level] = bordered(
            f"up{level}", lambda x, y: down[level][y, x, c] + (1 - down[level][y, x, 3])
            * ((part[(y + 1) / 2, x, c] + part[(y + 2) / 2, x, c]) * hl.f32(0.5)), inner_rows, cols >> level)
    out = hl.Func("out")
    out[y, x, c] = up[0][y + 1, x + 1, c] / up[0][y + 1, x + 1, 3]

    def hand(target, strip=32, fine_strip=8, first_root=2):
        # As in Halide's apps/interpolate: each level downwards is computed whole, in parallel strips of rows, and the
        # first one (plain products) again where it is needed. Upwards, u1 is in a sliding window along the strips of
        # the output. There all coarser levels are, too; here they are computed whole, which was 1.5 times as fast.
        vec = target.natural_vector_size(hl.Float(32))
        strip_row, row, lane, column = (hl.Var(name) for name in ("strip_row", "row", "lane", "column"))

        def rows_of(func, level):
            func.reorder(y, c, x)
            if cols >> level >= 4 * vec:
                func.vectorize(y, vec)
            if rows >> level >= 4 * fine_strip:
                func.split(x, strip_row, row, fine_strip).parallel(strip_row)

        for level in range(1, LEVELS):
            rows_of(down[level].compute_root(), level)
        if rows >> 1 >= 4 * fine_strip:
            first = down[0].clone_in(downx[1]).store_at(down[1], strip_row).compute_at(down[1], row)
            first.reorder(c, y, x).bound(c, 0, 4).unroll(c).vectorize(y, vec)
        out.bound(c, 0, 3).bound(y, 0, cols).bound(x, 0, rows)
        out.split(x, strip_row, row, strip, tail(rows, strip)).parallel(strip_row)
        out.split(y, column, lane, vec, tail(cols, vec)).reorder(lane, c, column, row, strip_row)
        out.unroll(c).vectorize(lane)
        for level in range(1, LEVELS - 1):
            if level < first_root:
                up[level].store_at(out, strip_row).compute_at(out, row)
                if cols >> level >= 4 * vec:
                    up[level].vectorize(y, vec)
            else:
                rows_of(up[level].compute_root(), level)

    return Pipeline(
        inputs=[(image, (4, rows + 2, cols + 2))],
        output=out,
        shape=(3, rows, cols),
        stages=stages,
        hand=hand)
