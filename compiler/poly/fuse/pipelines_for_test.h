// Small pipelines, by name: what fusion has to get right.
#ifndef COMPILER_POLY_FUSE_PIPELINES_FOR_TEST_H_
#define COMPILER_POLY_FUSE_PIPELINES_FOR_TEST_H_

#include <map>
#include <string>

namespace polynao::poly {

inline const std::map<std::string, std::string>& PipelinesForTest() {
  static const auto* pipelines = new std::map<std::string, std::string>{
      // Two passes over rows and columns.
      {"blur",
       "func f(a: f32[19, 23] in, y: f32[15, 19] out) {\n"
       "  allocate b: f32[15, 23]\n"
       "  for (i, 0, 15) { for (j, 0, 23) {\n"
       "    b[i, j] = a[i, j] * 1.0 + a[i + 1, j] * 4.0 + a[i + 2, j] * 6.0 + a[i + 3, j] * 4.0 + "
       "a[i + 4, j]\n"
       "  } }\n"
       "  for (i, 0, 15) { for (j, 0, 19) {\n"
       "    y[i, j] = b[i, j] + b[i, j + 1] * 4.0 + b[i, j + 2] * 6.0 + b[i, j + 3] * 4.0 + b[i, j "
       "+ 4]\n"
       "  } }\n"
       "}\n"},
      // Half of the elements, and twice as many again.
      {"pyramid",
       "func f(a: f32[34, 26] in, y: f32[30, 22] out) {\n"
       "  allocate d: f32[17, 13]\n"
       "  allocate e: f32[16, 12]\n"
       "  for (i, 0, 17) { for (j, 0, 13) {\n"
       "    d[i, j] = (a[2 * i, 2 * j] + a[2 * i + 1, 2 * j] / 3.0 + a[2 * i, 2 * j + 1]) * 0.5 / "
       "a[2 * i + 1, 2 * j + 1]\n"
       "  } }\n"
       "  for (i, 0, 16) { for (j, 0, 12) { e[i, j] = (d[i, j] + d[i + 1, j + 1] * d[i, j + 1]) / "
       "d[i + 1, j] / 2.0 } }\n"
       "  for (i, 0, 30) { for (j, 0, 22) {\n"
       "    y[i, j] = e[i / 2, j / 2] + e[(i + 1) / 2, (j + 1) / 2] + e[(i + 1) / 2, j / 2] + a[i, "
       "j]\n"
       "  } }\n"
       "}\n"},
      // Every second, third and fourth element, and remainders: what a tile needs is no box.
      {"strides",
       "func f(a: i32[40, 30] in, y: i32[40, 13] out) {\n"
       "  allocate b: i32[40, 30]\n"
       "  allocate c: i32[14, 30]\n"
       "  for (i, 0, 40) { for (j, 0, 30) { b[i, j] = a[i, j] * a[i, 29 - j] + 1 } }\n"
       "  for (i, 0, 14) { for (j, 0, 30) { c[i, j] = b[i * 3, j] * b[i * 2, j] } }\n"
       "  for (i, 0, 40) { for (j, 0, 13) {\n"
       "    y[i, j] = c[i / 3, 2 * j + i % 2] + c[i / 4, 4 * (j / 2)]\n"
       "  } }\n"
       "}\n"},
      // Above the diagonal there is nothing to compute.
      {"triangle",
       "func f(a: f32[17, 17] in, y: f32[16, 16] out) {\n"
       "  allocate b: f32[17, 17]\n"
       "  for (i, 0, 16) { for (j, 0, 16) { y[i, j] = 0.0 } }\n"
       "  for (i, 0, 17) { for (j, 0, 17) { b[i, j] = a[i, j] / a[j, i] / 3.0 } }\n"
       "  for (i, 0, 16) { for (j, 0, i + 1) { y[i, j] = b[i, j] / b[i + 1, j + 1] } }\n"
       "}\n"},
      // Sums, in two statements each.
      {"sums",
       "func f(a: i32[14, 20] in, w: i32[3, 3] in, y: i32[10, 16] out) {\n"
       "  allocate c: i32[12, 18]\n"
       "  for (i, 0, 12) { for (j, 0, 18) {\n"
       "    c[i, j] = 0\n"
       "    for (p, 0, 3) { for (q, 0, 3) { c[i, j] = c[i, j] + a[i + p, j + q] * w[p, q] } }\n"
       "  } }\n"
       "  for (i, 0, 10) { for (j, 0, 16) {\n"
       "    y[i, j] = 0\n"
       "    for (p, 0, 3) { for (q, 0, 3) { y[i, j] = y[i, j] + c[i + p, j + q] * w[q, p] } }\n"
       "  } }\n"
       "}\n"},
      // A histogram by blocks, spread out again by what is in the image.
      {"histogram",
       "func f(a: i32[24, 16] in, y: i32[24, 16] out) {\n"
       "  allocate h: i32[6, 4, 4]\n"
       "  for (i, 0, 6) { for (j, 0, 4) { for (z, 0, 4) { h[i, j, z] = 0 } } }\n"
       "  for (i, 0, 6) { for (j, 0, 4) { for (p, 0, 4) { for (q, 0, 4) {\n"
       "    h[i, j, (a[i * 4 + p, j * 4 + q] % 4 + 4) % 4] = h[i, j, (a[i * 4 + p, j * 4 + q] % 4 "
       "+ 4) % 4] + 1\n"
       "  } } } }\n"
       "  for (i, 0, 24) { for (j, 0, 16) { y[i, j] = h[i / 4, j / 4, (a[i, j] % 4 + 4) % 4] } }\n"
       "}\n"},
      // Two histograms of the same elements, one with weights.
      {"two_histograms",
       "func f(a: i32[24, 16] in, y: i32[24, 16] out) {\n"
       "  allocate h: i32[2, 6, 4, 4]\n"
       "  for (c, 0, 2) { for (i, 0, 6) { for (j, 0, 4) { for (z, 0, 4) { h[c, i, j, z] = 0 } } } "
       "}\n"
       "  for (c, 0, 2) { for (i, 0, 6) { for (j, 0, 4) { for (p, 0, 4) { for (q, 0, 4) {\n"
       "    h[c, i, j, (a[i * 4 + p, j * 4 + q] % 4 + 4) % 4] = h[c, i, j, (a[i * 4 + p, j * 4 + "
       "q] % 4 + 4) % 4] + select(c == 0, a[i * 4 + p, j * 4 + q], 1)\n"
       "  } } } } }\n"
       "  for (i, 0, 24) { for (j, 0, 16) { y[i, j] = h[0, i / 4, j / 4, (a[i, j] % 4 + 4) % 4] * "
       "3 + h[1, i / 4, j / 4, (a[i, j] % 4 + 4) % 4] } }\n"
       "}\n"},
      // A loop of two iterations whose order counts: it stays around the other.
      {"histogram_twice",
       "func f(a: i32[24] in, y: i32[24, 4] out) {\n"
       "  allocate h: i32[24, 4]\n"
       "  for (r, 0, 24) { for (z, 0, 4) { h[r, z] = 0 } }\n"
       "  for (r, 0, 24) { for (i, 0, 2) { for (j, 0, 24) {\n"
       "    h[r, (a[j] % 4 + 4) % 4] = h[r, (a[j] % 4 + 4) % 4] * 3 + i + j\n"
       "  } } }\n"
       "  for (r, 0, 24) { for (z, 0, 4) { y[r, z] = h[r, z] + h[r, 3 - z] } }\n"
       "}\n"},
      // Read by two others; stored in two pieces, with a border of zeros.
      {"shared",
       "func f(a: f32[20, 20] in, y: f32[18, 18] out, z: f32[18, 18] out) {\n"
       "  allocate b: f32[20, 20]\n"
       "  allocate c: f32[18, 18]\n"
       "  for (i, 0, 20) { b[i, 0] = 0.0 b[i, 19] = 0.0 }\n"
       "  for (i, 0, 20) { for (j, 1, 18) { b[i, j] = a[i, j - 1] / 3.0 + a[i, j + 1] * a[i, j] * "
       "7.0 } }\n"
       "  for (i, 0, 18) { for (j, 0, 18) { c[i, j] = b[i, j] / b[i + 2, j + 2] + b[i + 1, j + 1] "
       "* b[i, j + 2] } }\n"
       "  for (i, 0, 18) { for (j, 0, 18) { y[i, j] = c[i, j] + b[i + 1, j] } }\n"
       "  for (i, 0, 18) { for (j, 0, 18) { z[i, j] = c[17 - i, j] } }\n"
       "}\n"},
      // Live behind the function, and stored in place: neither may be computed twice.
      {"in_place",
       "func f(a: f32[20], y: f32[18] out) {\n"
       "  allocate b: f32[20]\n"
       "  for (i, 0, 20) { a[i] = a[i] * 0.5 }\n"
       "  for (i, 0, 20) { b[i] = a[i] / 3.0 }\n"
       "  for (i, 0, 19) { b[i] = b[i] + b[i + 1] }\n"
       "  for (i, 0, 18) { y[i] = b[i] + b[i + 1] * a[i] }\n"
       "}\n"},
      // The operands of b change before b is read.
      {"overwritten",
       "func f(a: i32[20], y: i32[18] out) {\n"
       "  allocate b: i32[20]\n"
       "  for (i, 0, 20) { b[i] = a[i] * 3 + 1 }\n"
       "  for (i, 0, 20) { a[i] = i }\n"
       "  for (i, 0, 18) { y[i] = b[i] + b[i + 1] * b[i + 2] - a[i] }\n"
       "}\n"},
      // Read only where a select says that it is stored; and computed where it is read.
      {"guarded",
       "func f(a: f32[16] in, y: f32[40] out) {\n"
       "  allocate b: f32[18]\n"
       "  for (i, 1, 16) { b[i] = a[i - 1] * 2.0 }\n"
       "  for (i, 0, 40) { y[i] = select(10 <= i && i < 26, b[i - 9], select(i < 3, b[i + 1], "
       "0.5)) }\n"
       "}\n"},
      // The last stage stores what the first one reads: other tiles would find it changed.
      {"root_in_place",
       "func f(a: f32[20]) {\n"
       "  allocate b: f32[20]\n"
       "  for (i, 0, 20) { b[i] = a[i] / 3.0 + a[19 - i] * a[i] * 2.0 }\n"
       "  for (i, 0, 19) { a[i] = b[i] / b[i + 1] }\n"
       "}\n"},
      // Sizes that nobody knows.
      {"symbolic",
       "func f(a: f32[n + 4, m + 4] in, y: f32[n, m] out, n: i32, m: i32) {\n"
       "  allocate b: f32[n + 2, m + 2]\n"
       "  for (i, 0, n + 2) { for (j, 0, m + 2) { b[i, j] = a[i, j] / a[i + 2, j + 2] + a[i, j + "
       "2] * 3.0 + a[i + 1, j] } }\n"
       "  for (i, 0, n) { for (j, 0, m) { y[i, j] = b[i, j] / b[i + 2, j] + b[i, j + 2] * b[i + 1, "
       "j + 1] } }\n"
       "}\n"},
      // Each element waits for the one before: no tiles along i.
      {"recurrence",
       "func f(a: f32[16, 24] in, y: f32[16, 24] out) {\n"
       "  allocate b: f32[16, 24]\n"
       "  for (i, 0, 16) { for (j, 0, 24) {\n"
       "    b[i, j] = a[i, j] / 3.0 + a[i, 23 - j] * a[15 - i, j] * 2.0 - 1.0\n"
       "  } }\n"
       "  for (j, 0, 24) { y[0, j] = b[0, j] }\n"
       "  for (i, 1, 15) { for (j, 0, 24) { y[i, j] = y[i - 1, j] * 0.5 + b[i, j] } }\n"
       "}\n"},
  };
  return *pipelines;
}

}  // namespace polynao::poly

#endif  // COMPILER_POLY_FUSE_PIPELINES_FOR_TEST_H_
