"""The bilateral grid: a histogram over position and brightness of one f32 image, blurred, and sampled for each pixel."""

import halide as hl

from halide_stages.pipeline import Pipeline, tail

x, y, z, c = hl.Var("x"), hl.Var("y"), hl.Var("z"), hl.Var("c")
CELL, BINS, MARGIN, BEFORE = 8, 10, 56, 24


def make(rows, cols):
    """An image f32[rows + 56][cols + 56] in [0, 1) in, f32[rows][cols] out, of the pixels behind 24 rows and columns."""
    image = hl.ImageParam(hl.Float(32), 2, "image")
    padded_rows, padded_cols = rows + MARGIN, cols + MARGIN
    # Cells with blurred values, in each dimension, lie between two cells before and two behind them.
    grid_rows, grid_cols = padded_rows // CELL, padded_cols // CELL

    def bin_of(value):
        # Pixels below 1 have bins below BINS; Halide needs to know that.
        return hl.unsafe_promise_clamped(hl.i32(value * BINS), 0, BINS - 1)

    grid = hl.Func("grid")
    grid[y, x, z, c] = hl.f32(0)
    cell = hl.RDom([(0, CELL), (0, CELL)])
    pixel = image[(y - 2) * CELL + cell.x, (x - 2) * CELL + cell.y]
    grid[y, x, 2 + bin_of(pixel), c] += hl.select(c == 0, pixel, hl.f32(1))

    def blur(name, value):
        # As in Halide's BoundaryConditions: clamped, so that bounds are known, and likely, so that loops are
        # partitioned.
        outside = (x < 2) | (x > grid_rows + 1) | (y < 2) | (y > grid_cols + 1) | (z < 2) | (z > BINS + 1)
        inner = [hl.clamp(hl.likely(var), 2, last) for var, last in ((y, grid_cols + 1), (x, grid_rows + 1), (z, BINS + 1))]
        func = hl.Func(name)
        tap = [value(*inner, i) for i in range(-2, 3)]
        func[y, x, z, c] = hl.select(outside, hl.f32(0), hl.likely(tap[0] + 4 * tap[1] + 6 * tap[2] + 4 * tap[3] + tap[4]))
        return func

    blurz = blur("blurz", lambda y, x, z, i: grid[y, x, z + i, c])
    blurx = blur("blurx", lambda y, x, z, i: blurz[y, x + i, z, c])
    blury = blur("blury", lambda y, x, z, i: blurx[y + i, x, z, c])

    def lerp(a, b, weight):
        return a + weight * (b - a)

    # The part of the trilinear interpolation along rows: the same for all pixels of a row in the same column of cells.
    between = hl.Func("between")
    between[y, x, z, c] = lerp(blury[y, 2 + x / CELL, z, c], blury[y, 3 + x / CELL, z, c], hl.f32(x % CELL) / CELL)
    scaled = image[y, x] * BINS
    level = bin_of(image[y, x])
    yf, zf = hl.f32(y % CELL) / CELL, scaled - hl.f32(level)
    plane = [lerp(between[2 + y / CELL, x, 2 + level + i, c], between[3 + y / CELL, x, 2 + level + i, c], yf)
             for i in (0, 1)]
    interpolated = hl.Func("interpolated")
    interpolated[y, x, c] = lerp(plane[0], plane[1], zf)
    out = hl.Func("out")
    out[y, x] = hl.select(interpolated[y, x, 1] > 0, interpolated[y, x, 0] / interpolated[y, x, 1], image[y, x])

    def hand(target, cells=1):
        # As in Halide's apps/bilateral_grid: the histogram of a row of cells at a time, blurred along z; the other
        # blurs; then strips of pixels, of one row of cells each, are parallel. Eight pixels of one cell at a time are
        # better than a whole vector of two cells. Halide's schedule interpolates pixel by pixel; `between` makes it 1.5
        # times as fast.
        vec = CELL
        strip_row, row = hl.Var("strip_row"), hl.Var("row")

        def in_vectors(func):
            func.reorder(c, y, z, x).bound(c, 0, 2).unroll(c)
            if grid_cols >= 2 * vec:
                func.vectorize(y, vec)

        in_vectors(blurz.compute_root().parallel(x))
        blurz.reorder(c, z, y, x)
        grid.compute_at(blurz, x)
        grid.update().reorder(c, cell.x, cell.y, y, x).unroll(c)
        in_vectors(blurx.compute_root().parallel(x))
        out.split(x, strip_row, row, CELL * cells, tail(rows, CELL * cells)).parallel(strip_row)
        out.vectorize(y, vec, tail(cols, vec))
        in_vectors(blury.compute_at(out, strip_row))
        in_vectors(between.compute_at(out, row))

    return Pipeline(
        inputs=[(image, (padded_rows, padded_cols))],
        output=out,
        shape=(rows, cols),
        origin=(BEFORE, BEFORE),
        stages=[grid, blurz, blurx, blury, interpolated],
        hand=hand)
