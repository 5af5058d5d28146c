// The CUDA Toolkit's compiler, if it is installed: machine code, and statistics of it.
#ifndef COMPILER_CODEGEN_CUDA_NVCC_H_
#define COMPILER_CODEGEN_CUDA_NVCC_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace polynao::codegen {

// The path of nvcc: on PATH, in $CUDA_HOME/bin or in /usr/local/cuda/bin. NotFound if there is none.
absl::StatusOr<std::string> FindNvcc();

// Counts of instructions by kind: "ld.global", "fma.f32", "mul.lo.s32", "bra", ..., without modifiers
// (".nc", ".v4", ".rn"), and "all".
using InstructionCounts = std::map<std::string, int64_t>;

struct CompiledKernel {
  std::string name;
  // As ptxas -v reports it.
  int64_t registers = 0;
  int64_t stack_bytes = 0;
  int64_t spill_bytes = 0;  // stored and loaded
  int64_t shared_bytes = 0;
  // Size of the machine code with its padding. On sm_70 and later an instruction takes 16 bytes.
  int64_t code_bytes = 0;
  InstructionCounts ptx;
  // Empty if cuobjdump is not beside an nvcc that was named, else not on PATH either.
  InstructionCounts sass;
};

struct CudaBinary {
  std::string ptx;
  std::string cubin;
  std::vector<CompiledKernel> kernels;  // by name
};

struct NvccOptions {
  std::string arch = "sm_90";      // for which it compiles; "none": there is to be no machine code
  std::string nvcc = {};           // where it is; empty: FindNvcc
  std::string host_compiler = {};  // that preprocesses; empty: nvcc's own choice
};

// Compiles a CUDA file. Errors: no nvcc; the compiler's messages.
absl::StatusOr<CudaBinary> CompileWithNvcc(const std::string& source, const NvccOptions& options);
// The same where there is to be machine code, and a compiler is named or found; else nothing.
absl::StatusOr<std::optional<CudaBinary>> CompileIfThereIsNvcc(const std::string& source,
                                                               const NvccOptions& options);

// The instructions of the kernel `name` in PTX (each .entry) and in SASS (cuobjdump -sass). Static: a
// loop's body counts once.
InstructionCounts CountPtx(std::string_view ptx, std::string_view name);
InstructionCounts CountSass(std::string_view sass, std::string_view name);

// The kind of a PTX instruction: "ld.global" for "ld.global.nc.v4.f32".
std::string PtxKind(std::string_view mnemonic);

// The size of section `name` (".text.KERNEL") of a cubin, a 64-bit ELF file; 0 if it has none.
int64_t SectionBytes(std::string_view elf, std::string_view name);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_NVCC_H_
