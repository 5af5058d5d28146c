// These functions compute what the kernels of PolyBench compute, as plain loops. Parameters stand in the order of the
// .nir functions. The sums of a reference may be in another order than those of its .nir function.
#ifndef KERNELS_POLYBENCH_REFERENCE_H_
#define KERNELS_POLYBENCH_REFERENCE_H_

#include <cstdint>

#include "kernels/polybench/view.h"

namespace polynao::kernels::polybench {

// reference_data.cc: statistics.
void Correlation(Matrix data, Matrix corr, Vector mean, Vector stddev, int64_t m, int64_t n);
void Covariance(Matrix data, Matrix cov, Vector mean, int64_t m, int64_t n);

// reference_products.cc: products of matrices and vectors.
void Mm2(Matrix tmp, Matrix a, Matrix b, Matrix c, Matrix d, int64_t ni, int64_t nj, int64_t nk,
         int64_t nl, double alpha, double beta);
void Mm3(Matrix e, Matrix a, Matrix b, Matrix f, Matrix c, Matrix d, Matrix g, int64_t ni,
         int64_t nj, int64_t nk, int64_t nl, int64_t nm);
void Atax(Matrix a, Vector x, Vector y, Vector tmp, int64_t m, int64_t n);
void Bicg(Matrix a, Vector s, Vector q, Vector p, Vector r, int64_t m, int64_t n);
void Doitgen(Cube a, Matrix c4, int64_t nr, int64_t nq, int64_t np);
void Gemm(Matrix c, Matrix a, Matrix b, int64_t ni, int64_t nj, int64_t nk, double alpha,
          double beta);
void Gemver(Matrix a, Vector u1, Vector v1, Vector u2, Vector v2, Vector w, Vector x, Vector y,
            Vector z, int64_t n, double alpha, double beta);
void Gesummv(Matrix a, Matrix b, Vector tmp, Vector x, Vector y, int64_t n, double alpha,
             double beta);
void Mvt(Vector x1, Vector x2, Vector y1, Vector y2, Matrix a, int64_t n);
void Symm(Matrix c, Matrix a, Matrix b, int64_t m, int64_t n, double alpha, double beta);
void Syr2k(Matrix c, Matrix a, Matrix b, int64_t m, int64_t n, double alpha, double beta);
void Syrk(Matrix c, Matrix a, int64_t m, int64_t n, double alpha, double beta);
void Trmm(Matrix a, Matrix b, int64_t m, int64_t n, double alpha);

// reference_solvers.cc: factorizations and systems of equations.
void Cholesky(Matrix a, int64_t n);
void Durbin(Vector r, Vector y, int64_t n);
void Gramschmidt(Matrix a, Matrix r, Matrix q, int64_t m, int64_t n);
void Lu(Matrix a, int64_t n);
void Ludcmp(Matrix a, Vector b, Vector x, Vector y, int64_t n);
void Trisolv(Matrix l, Vector x, Vector b, int64_t n);

// reference_grids.cc: stencils, a filter, dynamic programming.
void Adi(Matrix u, Matrix v, Matrix p, Matrix q, int64_t t, int64_t n);
void Deriche(View<float, 2> image, View<float, 2> result, View<float, 2> y1, View<float, 2> y2,
             int64_t w, int64_t h, float alpha);
void Fdtd2d(Matrix ex, Matrix ey, Matrix hz, Vector source, int64_t tmax, int64_t nx, int64_t ny);
void FloydWarshall(View<int32_t, 2> path, int64_t n);
void Heat3d(Cube a, Cube b, int64_t steps, int64_t n);
void Jacobi1d(Vector a, Vector b, int64_t steps, int64_t n);
void Jacobi2d(Matrix a, Matrix b, int64_t steps, int64_t n);
void Nussinov(View<int8_t, 1> seq, View<int32_t, 2> table, int64_t n);
void Seidel2d(Matrix a, int64_t steps, int64_t n);

}  // namespace polynao::kernels::polybench

#endif  // KERNELS_POLYBENCH_REFERENCE_H_
