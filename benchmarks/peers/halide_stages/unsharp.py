"""Unsharp mask: 4 stages over each of 3 planes of f32."""

import halide as hl

from halide_stages.pipeline import Pipeline, tail

x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")


def make(rows, cols):
    """An image f32[3][rows + 4][cols + 4] in, f32[3][rows][cols] out."""
    image = hl.ImageParam(hl.Float(32), 3, "image")
    threshold, weight = hl.f32(0.001), hl.f32(3)

    def stage(name, value):
        func = hl.Func(name)
        func[y, x, c] = value
        return func

    def taps(at):
        return (at(-2) + 4 * at(-1) + 6 * at(0) + 4 * at(1) + at(2)) * hl.f32(1 / 16)

    blurx = stage("blurx", taps(lambda i: image[y, x + i, c]))
    blury = stage("blury", taps(lambda i: blurx[y + i, x, c]))
    sharpen = stage("sharpen", image[y, x, c] * (1 + weight) - blury[y, x, c] * weight)
    out = stage("out", hl.select(hl.abs(image[y, x, c] - blury[y, x, c]) < threshold, image[y, x, c], sharpen[y, x, c]))

    def hand(target, strip=64, vectors=2):
        # As in Halide's apps/unsharp: strips of rows are parallel, here of each plane, and the rows of the first blur
        # are in a sliding window, here of one row. The second blur is inlined.
        vec = vectors * target.natural_vector_size(hl.Float(32))
        strip_row, row, task = hl.Var("strip_row"), hl.Var("row"), hl.Var("task")
        out.split(x, strip_row, row, strip, tail(rows, strip)).vectorize(y, vec, tail(cols, vec)).fuse(strip_row, c, task).parallel(task)
        blurx.store_at(out, task).compute_at(out, row)
        if cols >= 2 * vec:
            blurx.vectorize(y, vec)

    return Pipeline(
        inputs=[(image, (3, rows + 4, cols + 4))],
        output=out,
        shape=(3, rows, cols),
        origin=(0, 2, 2),
        stages=[blurx, blury, sharpen],
        hand=hand)
