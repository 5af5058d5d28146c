"""Camera pipeline: 32 stages from a 16-bit Bayer mosaic (GRBG) to an 8-bit colour image."""

import halide as hl

from halide_stages.pipeline import Pipeline, tail

x, y, c = hl.Var("x"), hl.Var("y"), hl.Var("c")


def make(rows, cols):
    """A mosaic i16[rows][cols], the colour matrix i32[3][4] and the tone curve u8[65536] in, u8[3][rows - 48][cols - 64] out."""
    image = hl.ImageParam(hl.Int(16), 2, "image")
    matrix = hl.ImageParam(hl.Int(32), 2, "matrix")
    curve = hl.ImageParam(hl.UInt(8), 1, "curve")
    stages = []

    def stage(name, value):
        func = hl.Func(name)
        func[y, x] = value
        stages.append(func)
        return func

    def average(a, b):
        return (a + b) / 2

    def four(of):
        return of(of(image[y, x - 2], image[y, x + 2]), of(image[y - 2, x], image[y + 2, x]))

    denoised = stage("denoised", hl.max(four(hl.min), hl.min(four(hl.max), image[y, x])))
    g_gr = stage("g_gr", denoised[2 * y, 2 * x])
    r_r = stage("r_r", denoised[2 * y + 1, 2 * x])
    b_b = stage("b_b", denoised[2 * y, 2 * x + 1])
    g_gb = stage("g_gb", denoised[2 * y + 1, 2 * x + 1])

    def green(name, h0, h1, v0, v1):
        return stage(name, hl.select(hl.absd(h0, h1) < hl.absd(v0, v1), average(h0, h1), average(v0, v1)))

    g_r = green("g_r", g_gr[y + 1, x], g_gr[y, x], g_gb[y, x - 1], g_gb[y, x])
    g_b = green("g_b", g_gb[y - 1, x], g_gb[y, x], g_gr[y, x + 1], g_gr[y, x])

    def corrected_by(here, value, green, p, q):
        return here - average(green[p], green[q]) + average(value[p], value[q])

    def at_green(name, here, value, green, other):
        return stage(name, corrected_by(here[y, x], value, green, (y, x), other))

    r_gr = at_green("r_gr", g_gr, r_r, g_r, (y - 1, x))
    b_gr = at_green("b_gr", g_gr, b_b, g_b, (y, x - 1))
    r_gb = at_green("r_gb", g_gb, r_r, g_r, (y, x + 1))
    b_gb = at_green("b_gb", g_gb, b_b, g_b, (y + 1, x))

    def diagonal(name, here, value, green, y1, x1):
        p, q, m, n = (y, x), (y1, x1), (y1, x), (y, x1)
        return stage(name, hl.select(
            hl.absd(value[p], value[q]) < hl.absd(value[m], value[n]), corrected_by(here[y, x], value, green, p, q),
            corrected_by(here[y, x], value, green, m, n)))

    r_b = diagonal("r_b", g_b, r_r, g_r, y - 1, x + 1)
    b_r = diagonal("b_r", g_r, b_b, g_b, y + 1, x - 1)

    def interleave(name, gr, r, b, gb):
        even = stage(name + "0", hl.select(y % 2 == 0, gr[y / 2, x], r[y / 2, x]))
        odd = stage(name + "1", hl.select(y % 2 == 0, b[y / 2, x], gb[y / 2, x]))
        return stage(name, hl.select(x % 2 == 0, even[y, x / 2], odd[y, x / 2]))

    red = interleave("red", r_gr, r_r, r_b, r_gb)
    green_all = interleave("green", g_gr, g_r, g_b, g_gb)
    blue = interleave("blue", b_gr, b_r, b_b, b_gb)
    # As in Halide's apps/camera_pipe, entries are taken as 16 bits, which the tables' values fit: products of 16 bits
    # are one instruction.
    entry = hl.Func("entry")
    entry[y, x] = hl.i16(matrix[y, x])
    corrected = hl.Func("corrected")
    channels = [hl.i32(of[y, x]) for of in (red, green_all, blue)]
    total = hl.i32(entry[3, c])
    for place, value in enumerate(channels):
        total += hl.i32(entry[place, c]) * value
    corrected[y, x, c] = hl.i16(total >> 8)
    out = hl.Func("out")
    out[y, x, c] = curve[hl.i32(corrected[y, x, c]) + 32768]

    def hand(target, strip=32, vectors=1):
        # As in Halide's apps/camera_pipe: strips of rows are parallel; denoised pixels, the four planes of the mosaic
        # and the two greens are in sliding windows of rows; the rest is computed for two rows of a vector at a time.
        vec = vectors * target.natural_vector_size(hl.Int(16))
        strip_row, row, line, column, lane = (hl.Var(name) for name in ("strip_row", "row", "line", "column", "lane"))
        entry.compute_root()
        out.bound(c, 0, 3).bound(x, 12, rows - 48).bound(y, 16, cols - 64)
        out.split(x, strip_row, row, strip, tail(rows - 48, strip)).parallel(strip_row).split(row, row, line, 2, tail(rows - 48, strip))
        out.split(y, column, lane, vec, tail(cols - 64, vec)).reorder(lane, c, line, column, row, strip_row)
        out.vectorize(lane).unroll(c).unroll(line)
        corrected.compute_at(out, column).reorder(c, y, x).vectorize(y).unroll(x).unroll(c)
        for func in (denoised, g_gr, r_r, b_b, g_gb, g_r, g_b):
            func.store_at(out, strip_row).compute_at(out, row).vectorize(y, vec)

    return Pipeline(
        inputs=[(image, (rows, cols)), (matrix, (3, 4)), (curve, (65536,))],
        output=out,
        shape=(3, rows - 48, cols - 64),
        origin=(0, 12, 16),
        stages=stages + [entry, corrected],
        hand=hand)
