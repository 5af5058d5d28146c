#include "tools/gpu_runner/cuda_api.h"

#include <dlfcn.h>

namespace polynao::gpu {

Error Library::Open(const std::string& wanted, const std::vector<std::string>& names) {
  std::vector<std::string> all;
  if (!wanted.empty()) all.push_back(wanted);
  if (wanted.empty()) all = names;
  std::string why;
  for (const std::string& name : all) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      name_ = name;
      return "";
    }
    why = dlerror();
  }
  return "no " + all.back() + ": " + why;
}

Error Library::missing() const {
  return missing_.empty() ? "" : name_ + " has no symbol " + missing_;
}

void* Library::Symbol(const char* symbol) {
  void* address = dlsym(handle_, symbol);
  if (address == nullptr && missing_.empty()) missing_ = symbol;
  return address;
}

Error Driver::Load(const std::string& name) {
  if (Error error = library.Open(name, {"libcuda.so.1", "libcuda.so"}); !error.empty())
    return error;
  library.Find("cuInit", &Init);
  library.Find("cuDriverGetVersion", &DriverGetVersion);
  library.Find("cuDeviceGet", &DeviceGet);
  library.Find("cuDeviceGetName", &DeviceGetName);
  library.Find("cuDeviceGetAttribute", &DeviceGetAttribute);
  library.Find("cuDevicePrimaryCtxRetain", &PrimaryContextRetain);
  library.Find("cuCtxSetCurrent", &ContextSetCurrent);
  library.Find("cuCtxSynchronize", &ContextSynchronize);
  library.Find("cuModuleLoadData", &ModuleLoadData);
  library.Find("cuModuleUnload", &ModuleUnload);
  library.Find("cuModuleGetFunction", &ModuleGetFunction);
  library.Find("cuFuncGetAttribute", &FunctionGetAttribute);
  library.Find("cuMemAlloc_v2", &MemAlloc);
  library.Find("cuMemFree_v2", &MemFree);
  library.Find("cuMemcpyHtoD_v2", &MemcpyHtoD);
  library.Find("cuMemcpyDtoH_v2", &MemcpyDtoH);
  library.Find("cuMemsetD8_v2", &MemsetD8);
  library.Find("cuLaunchKernel", &LaunchKernel);
  library.Find("cuEventCreate", &EventCreate);
  library.Find("cuEventRecord", &EventRecord);
  library.Find("cuEventSynchronize", &EventSynchronize);
  library.Find("cuEventElapsedTime", &EventElapsedTime);
  library.Find("cuGetErrorString", &GetErrorString);
  return library.missing();
}

Error Driver::Check(int result, std::string_view call) const {
  if (result == 0) return "";
  const char* text = nullptr;
  GetErrorString(result, &text);
  return std::string(call) + ": " + (text != nullptr ? text : "error " + std::to_string(result));
}

Error Nvrtc::Load(const std::string& name) {
  Error error =
      library.Open(name, {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                          "/usr/local/cuda/lib64/libnvrtc.so", "/usr/local/cuda/lib/libnvrtc.so"});
  if (!error.empty()) return error;
  library.Find("nvrtcCreateProgram", &CreateProgram);
  library.Find("nvrtcCompileProgram", &CompileProgram);
  library.Find("nvrtcDestroyProgram", &DestroyProgram);
  library.Find("nvrtcGetCUBINSize", &GetCubinSize);
  library.Find("nvrtcGetCUBIN", &GetCubin);
  library.Find("nvrtcGetProgramLogSize", &GetLogSize);
  library.Find("nvrtcGetProgramLog", &GetLog);
  return library.missing();
}

Error Nvrtc::Compile(const std::string& source, const std::string& arch, std::string* code) const {
  CuHandle program = nullptr;
  int result = CreateProgram(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr);
  if (result != 0) return "nvrtcCreateProgram: error " + std::to_string(result);
  const std::string option = "--gpu-architecture=" + arch;
  const char* options[] = {option.c_str()};
  result = CompileProgram(program, 1, options);
  Error error;
  if (result != 0) {
    size_t bytes = 0;
    std::string log;
    if (GetLogSize(program, &bytes) == 0 && bytes > 0) {
      log.resize(bytes);
      GetLog(program, log.data());
    }
    error = "NVRTC: " + (log.empty() ? "error " + std::to_string(result) : log);
  } else {
    size_t bytes = 0;
    result = GetCubinSize(program, &bytes);
    code->resize(bytes);
    if (result == 0) result = GetCubin(program, code->data());
    if (result != 0) error = "nvrtcGetCUBIN: error " + std::to_string(result);
  }
  DestroyProgram(&program);
  return error;
}

}  // namespace polynao::gpu
