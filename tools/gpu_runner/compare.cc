#include "tools/gpu_runner/compare.h"

#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

namespace polynao::gpu {
namespace {

// Numbers of cublas_api.h and cudnn.h.
constexpr int kTransposed = 1;
constexpr int kNotTransposed = 0;
constexpr int kFloat = 0;
constexpr int kNchw = 0;
constexpr int kCrossCorrelation = 1;
constexpr int kFmaMath = 3;

// What cudnnGetConvolutionForwardAlgorithm_v7 fills in.
struct Algorithm {
  int algorithm;
  int status;
  float time;
  size_t memory;
  int determinism;
  int math;
  int reserved[3];
};

Error Failed(const char* call, int result) {
  return result == 0 ? "" : std::string(call) + ": error " + std::to_string(result);
}

template <typename T>
T* At(CuAddress address) {
  return reinterpret_cast<T*>(address);  // NOLINT: memory of the device
}

int Attribute(const Json& c, const char* name, int otherwise) {
  const auto attributes = c.find("attributes");
  if (attributes == c.end() || !attributes->contains(name)) return otherwise;
  const Json& value = (*attributes)[name];
  return value.is_string() ? std::atoi(value.get<std::string>().c_str()) : value.get<int>();
}

std::vector<int> Ints(const Json& array) {
  return array.is_array() ? array.get<std::vector<int>>() : std::vector<int>();
}

// The shapes of the first two inputs; empty if there are none.
std::pair<std::vector<int>, std::vector<int>> Shapes(const Json& c) {
  const auto operands = c.find("operand_shapes");
  if (!c.contains("shape") || operands == c.end() || operands->empty()) return {};
  return {Ints(c["shape"]), Ints((*operands)[0])};
}

}  // namespace

void Peers::Start(const Driver* driver, const Nvrtc* nvrtc, const std::string& arch,
                  const std::string& kernels) {
  driver_ = driver;
  nvrtc_ = nvrtc;
  arch_ = arch;
  kernels_ = kernels;
  Cublas& b = cublas_;
  if (b.library.Open("", {"libcublas.so", "libcublas.so.13", "libcublas.so.12"}).empty()) {
    b.library.Find("cublasCreate_v2", &b.Create);
    b.library.Find("cublasSgemm_v2", &b.Sgemm);
    b.library.Find("cublasSgemmStridedBatched", &b.SgemmStridedBatched);
    if (!b.library.missing().empty() || b.Create(&b.handle) != 0) b.handle = nullptr;
  }
  Cudnn& d = cudnn_;
  if (d.library.Open("", {"libcudnn.so", "libcudnn.so.9", "libcudnn.so.8"}).empty()) {
    d.library.Find("cudnnCreate", &d.Create);
    d.library.Find("cudnnCreateTensorDescriptor", &d.CreateTensor);
    d.library.Find("cudnnSetTensor4dDescriptor", &d.SetTensor);
    d.library.Find("cudnnCreateFilterDescriptor", &d.CreateFilter);
    d.library.Find("cudnnSetFilter4dDescriptor", &d.SetFilter);
    d.library.Find("cudnnCreateConvolutionDescriptor", &d.CreateConvolution);
    d.library.Find("cudnnSetConvolution2dDescriptor", &d.SetConvolution);
    d.library.Find("cudnnSetConvolutionGroupCount", &d.SetGroups);
    d.library.Find("cudnnSetConvolutionMathType", &d.SetMath);
    d.library.Find("cudnnGetConvolutionForwardAlgorithm_v7", &d.GetAlgorithm);
    d.library.Find("cudnnGetConvolutionForwardWorkspaceSize", &d.GetWorkspace);
    d.library.Find("cudnnConvolutionForward", &d.Forward);
    if (!d.library.missing().empty() || d.Create(&d.handle) != 0) d.handle = nullptr;
  }
}

bool Peers::IsProduct(const Json& c, Product* p) {
  const std::string op = c.value("op", "");
  if (op != "matmul" && op != "dense" && op != "batch_matmul") return false;
  auto [x, w] = Shapes(c);
  if (op == "batch_matmul") {
    if (x.size() != 3 || w.size() != 3 || x[2] != w[2]) return false;
    p->batch = std::max(x[0], w[0]);
    p->x_stride = x[0] == 1 ? 0 : static_cast<long long>(x[1]) * x[2];
    p->w_stride = w[0] == 1 ? 0 : static_cast<long long>(w[1]) * w[2];
    x.erase(x.begin());
    w.erase(w.begin());
  }
  if (x.size() != 2 || w.size() != 2 || x[1] != w[1]) return false;
  p->m = x[0], p->n = w[0], p->k = x[1];
  return p->m > 0 && p->n > 0 && p->k > 0;
}

bool Peers::IsConvolution(const Json& c, Convolution* v) {
  const std::string op = c.value("op", "");
  if (op != "conv2d_nchw" && op != "group_conv2d" && op != "depthwise_conv2d") return false;
  const auto [x, w] = Shapes(c);
  if (x.size() != 4 || w.size() != 4) return false;
  const int top = Attribute(c, "pad_top", 0);
  const int left = Attribute(c, "pad_left", 0);
  if (top != Attribute(c, "pad_bottom", 0) || left != Attribute(c, "pad_right", 0)) return false;
  const bool depthwise = op == "depthwise_conv2d";
  v->n = x[0], v->h = x[2], v->w = x[3];
  v->in = depthwise ? 1 : w[1];
  if (v->in == 0 || x[1] % v->in != 0) return false;
  v->groups = x[1] / v->in;
  v->out = depthwise ? w[1] : w[0] / v->groups;
  v->kh = w[2], v->kw = w[3];
  v->stride_h = Attribute(c, "stride_h", 1), v->stride_w = Attribute(c, "stride_w", 1);
  v->dilation_h = Attribute(c, "dilation_h", 1), v->dilation_w = Attribute(c, "dilation_w", 1);
  v->pad_h = top, v->pad_w = left;
  v->oh = (v->h + 2 * top - (v->kh - 1) * v->dilation_h - 1) / v->stride_h + 1;
  v->ow = (v->w + 2 * left - (v->kw - 1) * v->dilation_w - 1) / v->stride_w + 1;
  return v->oh > 0 && v->ow > 0;
}

CuHandle Peers::HandWritten(const std::string& name) {
  if (kernels_.empty()) return nullptr;
  auto [it, added] = by_hand_.try_emplace(name, nullptr);
  if (!added) return it->second;
  std::ifstream file(kernels_ + "/" + name + ".cu");
  std::ostringstream text;
  text << file.rdbuf();
  std::string code;
  CuHandle module = nullptr;
  if (text.str().empty() || !nvrtc_->Compile(text.str(), arch_, &code).empty()) return nullptr;
  if (driver_->ModuleLoadData(&module, code.c_str()) != 0) return nullptr;
  driver_->ModuleGetFunction(&it->second, module, (name + "_by_hand").c_str());
  return it->second;
}

void Peers::AddProduct(const Product& p, const std::vector<CuAddress>& a,
                       std::vector<Peer>& peers) {
  const float* x = At<float>(a[0]);
  const float* w = At<float>(a[1]);
  float* y = At<float>(a[2]);
  if (cublas_.handle != nullptr) {
    // Column-major: the transposed result is W times X transposed.
    peers.push_back(
        {"cublas", true, [this, p, x, w, y]() -> Error {
           const float one = 1;
           const float zero = 0;
           if (p.batch == 1) {
             return Failed("cublasSgemm",
                           cublas_.Sgemm(cublas_.handle, kTransposed, kNotTransposed, p.n, p.m, p.k,
                                         &one, w, p.k, x, p.k, &zero, y, p.n));
           }
           return Failed(
               "cublasSgemmStridedBatched",
               cublas_.SgemmStridedBatched(cublas_.handle, kTransposed, kNotTransposed, p.n, p.m,
                                           p.k, &one, w, p.k, p.w_stride, x, p.k, p.x_stride, &zero,
                                           y, p.n, static_cast<long long>(p.m) * p.n, p.batch));
         }});
  }
  if (CuHandle kernel = HandWritten("matmul"); kernel != nullptr) {
    peers.push_back({"hand", true, [this, p, kernel, a = std::vector<CuAddress>(a)]() -> Error {
                       Product q = p;
                       CuAddress x_address = a[0], w_address = a[1], y_address = a[2];
                       void* parameters[] = {&x_address, &w_address, &y_address,  &q.m,
                                             &q.n,       &q.k,       &q.x_stride, &q.w_stride};
                       return driver_->Check(
                           driver_->LaunchKernel(kernel, (q.n + 63) / 64, (q.m + 63) / 64, q.batch,
                                                 256, 1, 1, 0, nullptr, parameters, nullptr),
                           "cuLaunchKernel");
                     }});
  }
}

void Peers::AddConvolution(const Convolution& c, const std::vector<CuAddress>& a,
                           std::vector<Peer>& peers) {
  if (cudnn_.handle != nullptr) {
    const Cudnn& d = cudnn_;
    CuHandle x = nullptr, w = nullptr, v = nullptr, y = nullptr;
    bool ok = d.CreateTensor(&x) == 0 && d.CreateTensor(&y) == 0 && d.CreateFilter(&w) == 0 &&
              d.CreateConvolution(&v) == 0;
    ok = ok && d.SetTensor(x, kNchw, kFloat, c.n, c.groups * c.in, c.h, c.w) == 0 &&
         d.SetTensor(y, kNchw, kFloat, c.n, c.groups * c.out, c.oh, c.ow) == 0 &&
         d.SetFilter(w, kFloat, kNchw, c.groups * c.out, c.in, c.kh, c.kw) == 0 &&
         d.SetConvolution(v, c.pad_h, c.pad_w, c.stride_h, c.stride_w, c.dilation_h, c.dilation_w,
                          kCrossCorrelation, kFloat) == 0 &&
         d.SetGroups(v, c.groups) == 0 && d.SetMath(v, kFmaMath) == 0;
    Algorithm algorithm = {};
    int found = 0;
    ok = ok && d.GetAlgorithm(d.handle, x, w, v, y, 1, &found, &algorithm) == 0 && found == 1;
    size_t bytes = 0;
    ok = ok && d.GetWorkspace(d.handle, x, w, v, y, algorithm.algorithm, &bytes) == 0;
    CuAddress workspace = 0;
    if (ok && bytes > 0) {
      ok = driver_->MemAlloc(&workspace, bytes) == 0;
      if (ok) workspaces_.push_back(workspace);
    }
    if (ok) {
      peers.push_back(
          {"cudnn", true, [this, x, w, v, y, a, algorithm, workspace, bytes]() -> Error {
             const float one = 1;
             const float zero = 0;
             return Failed("cudnnConvolutionForward",
                           cudnn_.Forward(cudnn_.handle, &one, x, At<void>(a[0]), w, At<void>(a[1]),
                                          v, algorithm.algorithm, At<void>(workspace), bytes, &zero,
                                          y, At<void>(a[2])));
           }});
    }
  }
  if (CuHandle kernel = HandWritten("conv2d"); kernel != nullptr) {
    peers.push_back(
        {"hand", true, [this, c, kernel, a]() -> Error {
           Convolution v = c;
           CuAddress x = a[0], w = a[1], y = a[2];
           void* parameters[] = {
               &x,          &w,          &y,       &v.groups, &v.in,         &v.h,
               &v.w,        &v.out,      &v.kh,    &v.kw,     &v.oh,         &v.ow,
               &v.stride_h, &v.stride_w, &v.pad_h, &v.pad_w,  &v.dilation_h, &v.dilation_w};
           const unsigned z = v.n * v.groups * ((v.out + 7) / 8);
           return driver_->Check(
               driver_->LaunchKernel(kernel, (v.ow + 15) / 16, (v.oh + 15) / 16, z, 256, 1, 1, 0,
                                     nullptr, parameters, nullptr),
               "cuLaunchKernel");
         }});
  }
}

std::vector<Peer> Peers::For(const Json& c, const std::vector<CuAddress>& addresses) {
  std::vector<Peer> peers;
  if (c.value("dtype", "") != "f32" || addresses.size() < 3) return peers;
  Product product;
  Convolution convolution;
  // What follows the convolution has further inputs, which stand before the output.
  const std::vector<CuAddress> used = {addresses[0], addresses[1], addresses.back()};
  if (IsProduct(c, &product)) AddProduct(product, used, peers);
  if (IsConvolution(c, &convolution)) AddConvolution(convolution, used, peers);
  const auto attributes = c.find("attributes");
  const bool has_epilogue = attributes != c.end() && attributes->contains("epilogue") &&
                            (*attributes)["epilogue"] != "none";
  for (Peer& peer : peers) peer.is_whole = !has_epilogue;
  return peers;
}

void Peers::Release() {
  for (CuAddress workspace : workspaces_) driver_->MemFree(workspace);
  workspaces_.clear();
}

}  // namespace polynao::gpu
