// A driver and an NVRTC for tests: memory is the host's, kernels run by the shim. "Machine code" is the
// path of a shared object. Times are those of a clock that goes one millisecond a launch.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "base/process.h"
#include "compiler/codegen/c/c_compiler.h"
#include "compiler/codegen/cuda/run_cuda.h"

namespace {

float now = 0;  // milliseconds

struct Program {
  std::string source;
  std::string log;
  std::string code;
};

constexpr char kWrapper[] = R"(
#include <utility>
template <typename A>
struct Get {
  static A From(void* p) { return *static_cast<A*>(p); }
};
template <typename T>
struct Get<nao_shim::Pointer<T>> {
  static nao_shim::Pointer<T> From(void* p) { return *static_cast<T**>(p); }
};
template <typename... A, size_t... I>
static void Unpack(void (*kernel)(A...), void** p, std::index_sequence<I...>) {
  kernel(Get<A>::From(p[I])...);
}
template <typename... A>
static bool Fake(const char* name, void (*kernel)(A...), void** p, dim3 grid, dim3 block) {
  return nao_shim::Launch(name, grid, block, true,
                          [=] { Unpack(kernel, p, std::index_sequence_for<A...>()); });
}
)";

std::string Compile(Program& program) {
  using polynao::RunProgram;
  std::string text = polynao::codegen::ShimmedText(program.source) + kWrapper;
  const std::regex kernel(R"(__launch_bounds__\(\d+\)\s+(\w+)\()");
  for (std::sregex_iterator it(program.source.begin(), program.source.end(), kernel), end;
       it != end; ++it) {
    const std::string name = (*it)[1];
    text += "extern \"C\" bool " + name +
            "_fake(void** p, dim3 grid, dim3 block) {\n  return Fake(\"" + name + "\", " + name +
            ", p, grid, block);\n}\n";
  }
  static int count = 0;
  const char* folder = std::getenv("TEST_TMPDIR");
  const std::string file =
      std::string(folder != nullptr ? folder : "/tmp") + "/fake" + std::to_string(count++);
  std::ofstream(file + ".cc") << text;
  const auto compiler = polynao::codegen::FindCCompiler(false);
  if (!compiler.ok()) return std::string(compiler.status().message());
  std::vector<std::string> command = polynao::codegen::ShimFlags();
  command.insert(command.begin(), compiler->path);
  command.insert(command.end(),
                 {"-w", "-O1", "-fPIC", "-shared", "-o", file + ".so", file + ".cc", "-lm"});
  const auto output = RunProgram(command);
  if (!output.ok()) return std::string(output.status().message());
  program.code = file + ".so";
  return "";
}

}  // namespace

extern "C" {

int nvrtcCreateProgram(void** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  *program = new Program{source, "", ""};
  return 0;
}
int nvrtcCompileProgram(void* program, int, const char* const*) {
  Program& p = *static_cast<Program*>(program);
  p.log = Compile(p);
  return p.log.empty() ? 0 : 6;
}
int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  return 0;
}
int nvrtcGetCUBINSize(void* program, size_t* bytes) {
  *bytes = static_cast<Program*>(program)->code.size() + 1;
  return 0;
}
int nvrtcGetCUBIN(void* program, char* code) {
  std::strcpy(code, static_cast<Program*>(program)->code.c_str());
  return 0;
}
int nvrtcGetProgramLogSize(void* program, size_t* bytes) {
  *bytes = static_cast<Program*>(program)->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(void* program, char* text) {
  std::strcpy(text, static_cast<Program*>(program)->log.c_str());
  return 0;
}

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuDeviceGet(int* device, int) {
  *device = 0;
  return 0;
}
int cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "fake", static_cast<size_t>(size));
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &now;
  return 0;
}
int cuCtxSetCurrent(void*) { return 0; }
int cuCtxSynchronize() { return 0; }
int cuModuleLoadData(void** module, const void* image) {
  *module = dlopen(static_cast<const char*>(image), RTLD_NOW | RTLD_LOCAL);
  return *module != nullptr ? 0 : 200;
}
int cuModuleUnload(void* module) {
  dlclose(module);
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  *function = dlsym(module, (std::string(name) + "_fake").c_str());
  return *function != nullptr ? 0 : 500;
}
int cuFuncGetAttribute(int* value, int, void*) {
  *value = 32;
  return 0;
}
int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  *address = reinterpret_cast<unsigned long long>(std::malloc(bytes));
  return 0;
}
int cuMemFree_v2(unsigned long long address) {
  std::free(reinterpret_cast<void*>(address));
  return 0;
}
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}
int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return 0;
}
int cuMemsetD8_v2(unsigned long long to, unsigned char value, size_t bytes) {
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return 0;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned, void*, void** parameters, void**) {
  struct Dim {
    unsigned x, y, z;
  };
  now += 1;
  using Launch = bool (*)(void**, Dim, Dim);
  return reinterpret_cast<Launch>(function)(parameters, {gx, gy, gz}, {bx, by, bz}) ? 0 : 719;
}
int cuEventCreate(void** event, unsigned) {
  *event = new float(0);
  return 0;
}
int cuEventRecord(void* event, void*) {
  *static_cast<float*>(event) = now;
  return 0;
}
int cuEventSynchronize(void*) { return 0; }
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  *milliseconds = *static_cast<float*>(end) - *static_cast<float*>(begin);
  return 0;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == 500 ? "named symbol not found" : "unspecified failure";
  return 0;
}

}  // extern "C"
