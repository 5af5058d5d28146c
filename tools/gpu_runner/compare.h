// The same case by others: NVIDIA's libraries where they are, and kernels written by hand.
#ifndef TOOLS_GPU_RUNNER_COMPARE_H_
#define TOOLS_GPU_RUNNER_COMPARE_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/gpu_runner/cuda_api.h"

namespace polynao::gpu {

using Json = nlohmann::ordered_json;

// One run of a case by somebody else, on the buffers of a bundle.
struct Peer {
  std::string name;  // "cublas", "cudnn", "hand"
  // This is true if it computes all of the case, not only the convolution or product in it.
  bool is_whole = true;
  std::function<Error()> run;
};

// Products (matmul, dense, batch_matmul: X times W transposed) by cuBLAS, convolutions in NCHW
// (conv2d_nchw, group_conv2d, depthwise_conv2d) by cuDNN with the algorithm that it says is fastest;
// both, in f32 without tensor cores, by the kernels of `kernels` (kernels/cuda). What is not there, or
// knows no such case, is left out.
class Peers {
 public:
  // `kernels` may be empty. The driver has a context; both live longer than this.
  void Start(const Driver* driver, const Nvrtc* nvrtc, const std::string& arch,
             const std::string& kernels);
  // For a case as a bundle has it, of whose values `addresses` are the buffers: inputs, then the output.
  std::vector<Peer> For(const Json& bundle_case, const std::vector<CuAddress>& addresses);
  // Gives back what For() needed.
  void Release();

 private:
  struct Cublas {
    Library library;
    CuHandle handle = nullptr;
    int (*Create)(CuHandle* handle) = nullptr;
    int (*Sgemm)(CuHandle handle, int transpose_a, int transpose_b, int m, int n, int k,
                 const float* alpha, const float* a, int lda, const float* b, int ldb,
                 const float* beta, float* c, int ldc) = nullptr;
    int (*SgemmStridedBatched)(CuHandle handle, int transpose_a, int transpose_b, int m, int n,
                               int k, const float* alpha, const float* a, int lda,
                               long long stride_a, const float* b, int ldb, long long stride_b,
                               const float* beta, float* c, int ldc, long long stride_c,
                               int batch) = nullptr;
  };
  struct Cudnn {
    Library library;
    CuHandle handle = nullptr;
    int (*Create)(CuHandle* handle) = nullptr;
    int (*CreateTensor)(CuHandle* tensor) = nullptr;
    int (*SetTensor)(CuHandle tensor, int format, int type, int n, int c, int h, int w) = nullptr;
    int (*CreateFilter)(CuHandle* filter) = nullptr;
    int (*SetFilter)(CuHandle filter, int type, int format, int k, int c, int h, int w) = nullptr;
    int (*CreateConvolution)(CuHandle* convolution) = nullptr;
    int (*SetConvolution)(CuHandle convolution, int pad_h, int pad_w, int stride_h, int stride_w,
                          int dilation_h, int dilation_w, int mode, int type) = nullptr;
    int (*SetGroups)(CuHandle convolution, int groups) = nullptr;
    int (*SetMath)(CuHandle convolution, int math) = nullptr;
    int (*GetAlgorithm)(CuHandle handle, CuHandle x, CuHandle w, CuHandle convolution, CuHandle y,
                        int wanted, int* found, void* algorithms) = nullptr;
    int (*GetWorkspace)(CuHandle handle, CuHandle x, CuHandle w, CuHandle convolution, CuHandle y,
                        int algorithm, size_t* bytes) = nullptr;
    int (*Forward)(CuHandle handle, const void* alpha, CuHandle x, const void* x_data, CuHandle w,
                   const void* w_data, CuHandle convolution, int algorithm, void* workspace,
                   size_t bytes, const void* beta, CuHandle y, void* y_data) = nullptr;
  };
  // Extents of a product: Y[batch][m][n] = X[batch or 1][m][k] * W[batch or 1][n][k]^T.
  struct Product {
    int batch = 1, m = 0, n = 0, k = 0;
    long long x_stride = 0, w_stride = 0;
  };
  struct Convolution {
    int n, groups, in, h, w, out, kh, kw, oh, ow, stride_h, stride_w, pad_h, pad_w, dilation_h,
        dilation_w;
  };

  static bool IsProduct(const Json& c, Product* product);
  static bool IsConvolution(const Json& c, Convolution* convolution);
  void AddProduct(const Product& p, const std::vector<CuAddress>& a, std::vector<Peer>& peers);
  void AddConvolution(const Convolution& c, const std::vector<CuAddress>& a,
                      std::vector<Peer>& peers);
  // The kernel NAME_by_hand of kernels/cuda/NAME.cu; null if it cannot be had.
  CuHandle HandWritten(const std::string& name);

  const Driver* driver_ = nullptr;
  const Nvrtc* nvrtc_ = nullptr;
  std::string arch_;
  std::string kernels_;
  Cublas cublas_;
  Cudnn cudnn_;
  std::vector<CuAddress> workspaces_;
  std::map<std::string, CuHandle> by_hand_;
};

}  // namespace polynao::gpu

#endif  // TOOLS_GPU_RUNNER_COMPARE_H_
