// Y[M, N] = X[M, K] * W[N, K]^T, row-major, f32: what a person writes without tensor cores. Blocks of
// 64 x 64 results, 16 x 16 threads of 4 x 4 each; tiles of 16 along K in shared memory, stored so that
// a thread reads four neighbours at once. Grid: ceil(N / 64), ceil(M / 64); z: of a batch, whose
// matrices are x_stride, w_stride and M * N elements apart.
extern "C" __global__ void __launch_bounds__(256)
    matmul_by_hand(const float* __restrict__ X, const float* __restrict__ W, float* __restrict__ Y,
                   int M, int N, int K, long long x_stride, long long w_stride) {
  __shared__ __align__(16) float xs[16][64];
  __shared__ __align__(16) float ws[16][64];
  const int tx = threadIdx.x % 16;
  const int ty = threadIdx.x / 16;
  const int row = blockIdx.y * 64;
  const int column = blockIdx.x * 64;
  const float* x = X + blockIdx.z * x_stride;
  const float* w = W + blockIdx.z * w_stride;
  float sums[4][4] = {};
  for (int k = 0; k < K; k += 16) {
    for (int i = threadIdx.x; i < 16 * 64; i += 256) {
      const int kk = i % 16;
      const int r = i / 16;
      xs[kk][r] = row + r < M && k + kk < K ? x[(long long)(row + r) * K + k + kk] : 0.0f;
      ws[kk][r] = column + r < N && k + kk < K ? w[(long long)(column + r) * K + k + kk] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < 16; ++kk) {
      float a[4];
      float b[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a[i] = xs[kk][ty * 4 + i];
        b[i] = ws[kk][tx * 4 + i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += a[i] * b[j];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      const int r = row + ty * 4 + i;
      const int c = column + tx * 4 + j;
      if (r < M && c < N) Y[((long long)blockIdx.z * M + r) * N + c] = sums[i][j];
    }
  }
}
