// Direct convolution, NCHW, f32, groups: Y[n, o, y, x] = sum over i, ky, kx of
// X[n, g * I + i, y * stride_h + ky * dilation_h - pad_h, ...] * F[o, i, ky, kx], I input channels a
// group. A block makes 16 x 16 pixels of 8 output channels of one group; for each input channel it
// puts the image's tile with its halo and the filters into shared memory, where they fit (tile of at
// most 48 x 48), else it reads them where they are. Grid: ceil(W' / 16), ceil(H' / 16),
// N * groups * ceil(O / 8), O output channels of a group.
extern "C" __global__ void __launch_bounds__(256)
    conv2d_by_hand(const float* __restrict__ X, const float* __restrict__ F, float* __restrict__ Y,
                   int groups, int I, int H, int W, int O, int KH, int KW, int OH, int OW,
                   int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h,
                   int dilation_w) {
  constexpr int kTile = 48;
  constexpr int kOutputs = 8;
  __shared__ float tile[kTile * kTile];
  const int tx = threadIdx.x % 16;
  const int ty = threadIdx.x / 16;
  const int blocks = (O + kOutputs - 1) / kOutputs;
  const int first = blockIdx.z % blocks * kOutputs;
  const int g = blockIdx.z / blocks % groups;
  const int n = blockIdx.z / blocks / groups;
  const int y = blockIdx.y * 16 + ty;
  const int x = blockIdx.x * 16 + tx;
  const int top = blockIdx.y * 16 * stride_h - pad_h;
  const int left = blockIdx.x * 16 * stride_w - pad_w;
  const int rows = 15 * stride_h + (KH - 1) * dilation_h + 1;
  const int columns = 15 * stride_w + (KW - 1) * dilation_w + 1;
  const bool fits = rows <= kTile && columns <= kTile;
  float sums[kOutputs] = {};
  for (int i = 0; i < I; ++i) {
    const float* image = X + ((long long)n * groups * I + g * I + i) * H * W;
    if (fits) {
      __syncthreads();
      for (int p = threadIdx.x; p < rows * columns; p += 256) {
        const int r = top + p / columns;
        const int c = left + p % columns;
        tile[p] = r >= 0 && r < H && c >= 0 && c < W ? image[(long long)r * W + c] : 0.0f;
      }
      __syncthreads();
    }
    for (int ky = 0; ky < KH; ++ky) {
      for (int kx = 0; kx < KW; ++kx) {
        float pixel;
        if (fits) {
          pixel =
              tile[(ty * stride_h + ky * dilation_h) * columns + tx * stride_w + kx * dilation_w];
        } else {
          const int r = y * stride_h + ky * dilation_h - pad_h;
          const int c = x * stride_w + kx * dilation_w - pad_w;
          pixel = r >= 0 && r < H && c >= 0 && c < W ? image[(long long)r * W + c] : 0.0f;
        }
#pragma unroll
        for (int o = 0; o < kOutputs; ++o) {
          if (first + o < O) {
            sums[o] += pixel * F[((((long long)g * O + first + o) * I + i) * KH + ky) * KW + kx];
          }
        }
      }
    }
  }
  if (y >= OH || x >= OW) return;
  for (int o = 0; o < kOutputs && first + o < O; ++o) {
    Y[(((long long)n * groups * O + g * O + first + o) * OH + y) * OW + x] = sums[o];
  }
}
