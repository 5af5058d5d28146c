"""Harris corner detection: 11 stages over one f32 image."""

import halide as hl

from halide_stages.pipeline import Pipeline, tail

x, y = hl.Var("x"), hl.Var("y")


def make(rows, cols):
    """An image f32[rows][cols] in, the response of its interior f32[rows - 4][cols - 4] out."""
    image = hl.ImageParam(hl.Float(32), 2, "image")

    def stage(name, value):
        func = hl.Func(name)
        func[y, x] = value
        return func

    def box(name, func):
        return stage(name, total([total([func[y + dy, x + dx] for dy in (-1, 0, 1)]) for dx in (-1, 0, 1)]))

    def total(terms):
        return terms[0] + terms[1] + terms[2]

    def twelfth(value):
        return value * hl.f32(1 / 12)

    iy = stage("iy", twelfth(
        (image[y + 1, x - 1] - image[y - 1, x - 1]) + 2 * (image[y + 1, x] - image[y - 1, x])
        + (image[y + 1, x + 1] - image[y - 1, x + 1])))
    ix = stage("ix", twelfth(
        (image[y - 1, x + 1] - image[y - 1, x - 1]) + 2 * (image[y, x + 1] - image[y, x - 1])
        + (image[y + 1, x + 1] - image[y + 1, x - 1])))
    ixx = stage("ixx", ix[y, x] * ix[y, x])
    iyy = stage("iyy", iy[y, x] * iy[y, x])
    ixy = stage("ixy", ix[y, x] * iy[y, x])
    sxx, syy, sxy = box("sxx", ixx), box("syy", iyy), box("sxy", ixy)
    det = stage("det", sxx[y, x] * syy[y, x] - sxy[y, x] * sxy[y, x])
    trace = stage("trace", sxx[y, x] + syy[y, x])
    out = stage("out", det[y, x] - hl.f32(0.04) * trace[y, x] * trace[y, x])

    def hand(target, strip=128, block=2):
        # As in Halide's apps/harris, strips of rows are parallel, and the derivatives are in a sliding window of rows.
        # Two rows of the response at a time share products in registers; compute_with for Ix and Iy made it slower
        # here.
        vec = target.natural_vector_size(hl.Float(32))
        strip_row, row, lane, line = hl.Var("strip_row"), hl.Var("row"), hl.Var("lane"), hl.Var("line")
        out.split(x, strip_row, row, strip, tail(rows - 4, strip)).parallel(strip_row)
        out.tile(y, row, lane, line, vec, block, tail(cols - 4, vec)).vectorize(lane).unroll(line)
        for func in (ix, iy):
            func.store_at(out, strip_row).compute_at(out, row)
            if cols >= 2 * vec:
                func.vectorize(y, vec)

    return Pipeline(
        inputs=[(image, (rows, cols))],
        output=out,
        shape=(rows - 4, cols - 4),
        origin=(2, 2),
        stages=[iy, ix, ixx, iyy, ixy, sxx, syy, sxy, det, trace],
        hand=hand)
