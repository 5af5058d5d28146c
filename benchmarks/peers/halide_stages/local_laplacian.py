"""Local Laplacian filter: pyramids of 8 levels, for 8 intensities, of a 16-bit colour image."""

import halide as hl

from halide_stages.pipeline import Pipeline, tail

x, y, c, k = hl.Var("x"), hl.Var("y"), hl.Var("c"), hl.Var("k")
LEVELS, INTENSITIES = 8, 8


def make(rows, cols):
    """An image u16[3][rows + 4][cols + 4] and the remapping f32[3584] in, u16[3][rows][cols] out."""
    image = hl.ImageParam(hl.UInt(16), 3, "image")
    remap = hl.ImageParam(hl.Float(32), 1, "remap")
    stages = []
    parts = {}  # the stages of a pyramid along rows

    def stage(name, of, value):
        func = hl.Func(name)
        func[of] = value
        stages.append(func)
        return func

    def bordered(name, of, value, inner_rows, inner_cols):
        """value(row, column) in rows 2 to inner_rows + 1 and columns 2 to inner_cols + 1, and zeros around it."""
        # As in Halide's BoundaryConditions: clamped, so that bounds are known, and likely, so that loops are
        # partitioned.
        outside = (x < 2) | (x > inner_rows + 1) | (y < 2) | (y > inner_cols + 1)
        inner = value(hl.clamp(hl.likely(x), 2, inner_rows + 1), hl.clamp(hl.likely(y), 2, inner_cols + 1))
        return stage(name, of, hl.select(outside, hl.f32(0), hl.likely(inner)))

    def down(name, of, func, level):
        at = of[2:]
        part = parts[f"{name}x{level}"] = bordered(
            f"{name}x{level}", of, lambda x, y: (
                func[(y, 2 * x - 3) + at] + 3 * (func[(y, 2 * x - 2) + at] + func[(y, 2 * x - 1) + at])
                + func[(y, 2 * x) + at]) * hl.f32(0.125),
            rows >> level, cols >> (level - 1))
        return bordered(
            f"{name}{level}", of, lambda x, y: (
                part[(2 * y - 3, x) + at] + 3 * (part[(2 * y - 2, x) + at] + part[(2 * y - 1, x) + at])
                + part[(2 * y, x) + at]) * hl.f32(0.125),
            rows >> level, cols >> level)

    def up(name, of, func, level):
        at = of[2:]
        part = parts[f"{name}upx{level}"] = bordered(
            f"{name}upx{level}", of, lambda x, y: hl.f32(0.25) * func[(y, x / 2 + 2 * (x % 2)) + at]
            + hl.f32(0.75) * func[(y, x / 2 + 1) + at],
            rows >> level, cols >> (level + 1))
        return bordered(
            f"{name}up{level}", of, lambda x, y: hl.f32(0.25) * part[(y / 2 + 2 * (y % 2), x) + at]
            + hl.f32(0.75) * part[(y / 2 + 1, x) + at],
            rows >> level, cols >> level)

    plane, stack = (y, x), (y, x, k)
    gray = stage("gray", plane, (hl.f32(0.299) * image[y, x, 0] + hl.f32(0.587) * image[y, x, 1]
                                 + hl.f32(0.114) * image[y, x, 2]) * hl.f32(1 / 65535))
    brightness = hl.f32(k) * hl.f32(1 / (INTENSITIES - 1))
    last = (INTENSITIES - 1) * 256
    index = hl.clamp(hl.i32(gray[y, x] * hl.f32(last)), 0, last - 1)
    curved = [stage("curved0", stack, (gray[y, x] - brightness) + brightness + remap[index - 256 * k + last])]
    gaussian = [gray]
    for level in range(1, LEVELS):
        gaussian.append(down("gaussian", plane, gaussian[-1], level))
        curved.append(down("curved", stack, curved[-1], level))
    laplacian = [None] * (LEVELS - 1) + [curved[-1]]
    for level in range(LEVELS - 1):
        upper = up("curved", stack, curved[level + 1], level)
        laplacian[level] = stage(f"laplacian{level}", stack, curved[level][y, x, k] - upper[y, x, k])
    blended = [None] * LEVELS
    for level in reversed(range(LEVELS)):
        place = gaussian[level][y, x] * hl.f32(INTENSITIES - 1)
        lower = hl.clamp(hl.i32(place), 0, INTENSITIES - 2)
        weight = place - hl.f32(lower)
        value = laplacian[level][y, x, lower] * (1 - weight) + laplacian[level][y, x, lower + 1] * weight
        if level < LEVELS - 1:
            upper = up("blended", plane, blended[level + 1], level)
            value = upper[y, x] + value
        blended[level] = stage(f"blended{level}", plane, value)
    epsilon = hl.f32(0.01)
    colour = blended[0][y, x] * (image[y, x, c] * hl.f32(1 / 65535) + epsilon) / (gray[y, x] + epsilon)
    out = hl.Func("out")
    out[y, x, c] = hl.u16(hl.clamp(colour, 0.0, 1.0) * hl.f32(65535))

    def hand(target, strip=64, fine_strip=8, fine=5):
        # As in Halide's apps/local_laplacian: the pyramids of the first `fine` levels are computed whole, in parallel
        # strips of rows, and those of the output are in sliding windows along its strips; coarse levels are computed
        # whole. Halide's schedule computes curved0 in place, 16 times for each element of curved1, and this one in a
        # sliding window.
        vec = target.natural_vector_size(hl.Float(32))
        strip_row, row = hl.Var("strip_row"), hl.Var("row")

        out.bound(c, 0, 3).bound(y, 2, cols).bound(x, 2, rows)
        out.split(x, strip_row, row, strip, tail(rows, strip)).parallel(strip_row)
        out.reorder(y, c, row, strip_row).unroll(c).vectorize(y, vec, tail(cols, vec))
        gray.compute_root()
        if rows >= 4 * fine_strip and cols >= vec:
            inwards = hl.TailStrategy.ShiftInwards  # rounded up, it would read pixels that are not there
            gray.split(x, strip_row, row, 4 * fine_strip, inwards).parallel(strip_row).vectorize(y, vec, inwards)
        for level in range(1, LEVELS):
            for func in (gaussian[level], curved[level]):
                func.compute_root().never_partition([x])
                if cols >> level >= 4 * vec:
                    func.vectorize(y, vec)
            if level < fine and rows >> level >= 4 * fine_strip:
                gaussian[level].split(x, strip_row, row, fine_strip).parallel(strip_row)
                curved[level].reorder_storage(y, k, x).reorder(y, k, x)
                curved[level].split(x, strip_row, row, 2 * fine_strip).parallel(strip_row)
                blended[level].store_at(out, strip_row).compute_at(out, row).never_partition([x])
                if cols >> level >= 4 * vec:
                    blended[level].vectorize(y, vec)
            else:
                curved[level].parallel(k)
                blended[level].compute_root()
        if rows >> 1 >= 4 * fine_strip and cols >= 8 * vec:
            window = curved[0].clone_in(parts["curvedx1"])
            window.store_at(curved[1], strip_row).compute_at(curved[1], row)
            window.reorder_storage(y, k, x).reorder(y, k, x).vectorize(y, vec)
            parts["curvedx1"].compute_at(curved[1], k).vectorize(y, vec)
            parts["curvedupx0"].compute_at(out, row).vectorize(y, vec)
        blended[0].compute_at(out, row)
        if cols >= 4 * vec:
            blended[0].vectorize(y, vec)

    return Pipeline(
        inputs=[(image, (3, rows + 4, cols + 4)), (remap, (2 * 256 * (INTENSITIES - 1),))],
        output=out,
        shape=(3, rows, cols),
        origin=(0, 2, 2),
        stages=stages,
        hand=hand)
