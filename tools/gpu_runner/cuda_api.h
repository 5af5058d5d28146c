// The parts of CUDA that the runner uses, found at run time: nothing of CUDA is needed to build it.
#ifndef TOOLS_GPU_RUNNER_CUDA_API_H_
#define TOOLS_GPU_RUNNER_CUDA_API_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace polynao::gpu {

// Says what failed, in words; empty if nothing did. The runner has no library of statuses.
using Error = std::string;

// A shared library: the first of `names` that can be loaded.
class Library {
 public:
  // `wanted` comes before `names` if it is not empty.
  Error Open(const std::string& wanted, const std::vector<std::string>& names);
  bool is_open() const { return handle_ != nullptr; }
  // Sets `function` to the symbol; remembers the first one that is missing.
  template <typename F>
  void Find(const char* symbol, F** function) {
    *function = reinterpret_cast<F*>(Symbol(symbol));
  }
  // The symbol that was missing, if any.
  Error missing() const;

 private:
  void* Symbol(const char* symbol);
  void* handle_ = nullptr;
  std::string name_;
  std::string missing_;
};

// CUDA's driver: types as in cuda.h, where handles are pointers and results ints.
using CuHandle = void*;
using CuAddress = unsigned long long;

struct Driver {
  Error Load(const std::string& library);
  // "cuMemAlloc: out of memory" for a result that is not 0.
  Error Check(int result, std::string_view call) const;

  Library library;
  int (*Init)(unsigned flags) = nullptr;
  int (*DriverGetVersion)(int* version) = nullptr;
  int (*DeviceGet)(int* device, int ordinal) = nullptr;
  int (*DeviceGetName)(char* name, int size, int device) = nullptr;
  int (*DeviceGetAttribute)(int* value, int attribute, int device) = nullptr;
  int (*PrimaryContextRetain)(CuHandle* context, int device) = nullptr;
  int (*ContextSetCurrent)(CuHandle context) = nullptr;
  int (*ContextSynchronize)() = nullptr;
  int (*ModuleLoadData)(CuHandle* module, const void* image) = nullptr;
  int (*ModuleUnload)(CuHandle module) = nullptr;
  int (*ModuleGetFunction)(CuHandle* function, CuHandle module, const char* name) = nullptr;
  int (*FunctionGetAttribute)(int* value, int attribute, CuHandle function) = nullptr;
  int (*MemAlloc)(CuAddress* address, size_t bytes) = nullptr;
  int (*MemFree)(CuAddress address) = nullptr;
  int (*MemcpyHtoD)(CuAddress to, const void* from, size_t bytes) = nullptr;
  int (*MemcpyDtoH)(void* to, CuAddress from, size_t bytes) = nullptr;
  int (*MemsetD8)(CuAddress to, unsigned char value, size_t bytes) = nullptr;
  int (*LaunchKernel)(CuHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      CuHandle stream, void** parameters, void** extra) = nullptr;
  int (*EventCreate)(CuHandle* event, unsigned flags) = nullptr;
  int (*EventRecord)(CuHandle event, CuHandle stream) = nullptr;
  int (*EventSynchronize)(CuHandle event) = nullptr;
  int (*EventElapsedTime)(float* milliseconds, CuHandle begin, CuHandle end) = nullptr;
  int (*GetErrorString)(int error, const char** text) = nullptr;
};

// The compiler of CUDA C at run time.
struct Nvrtc {
  Error Load(const std::string& library);
  // CUDA C to machine code for `arch` ("sm_90"). Several threads may compile at once.
  Error Compile(const std::string& source, const std::string& arch, std::string* code) const;

  Library library;
  int (*CreateProgram)(CuHandle* program, const char* source, const char* name, int headers,
                       const char* const* texts, const char* const* names) = nullptr;
  int (*CompileProgram)(CuHandle program, int options, const char* const* texts) = nullptr;
  int (*DestroyProgram)(CuHandle* program) = nullptr;
  int (*GetCubinSize)(CuHandle program, size_t* bytes) = nullptr;
  int (*GetCubin)(CuHandle program, char* code) = nullptr;
  int (*GetLogSize)(CuHandle program, size_t* bytes) = nullptr;
  int (*GetLog)(CuHandle program, char* text) = nullptr;
};

// Numbers of cuda.h.
inline constexpr int kMultiprocessorCount = 16;
inline constexpr int kComputeCapabilityMajor = 75;
inline constexpr int kComputeCapabilityMinor = 76;
inline constexpr int kFunctionLocalBytes = 3;
inline constexpr int kFunctionRegisters = 4;

}  // namespace polynao::gpu

#endif  // TOOLS_GPU_RUNNER_CUDA_API_H_
