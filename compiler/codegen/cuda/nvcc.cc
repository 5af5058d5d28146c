#include "compiler/codegen/cuda/nvcc.h"

#include <elf.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"

namespace polynao::codegen {
namespace {

std::optional<std::string> FindTool(std::string_view name) {
  if (std::optional<std::string> found = FindOnPath(name)) return found;
  const char* home = std::getenv("CUDA_HOME");
  for (const std::string& folder :
       {std::string(home != nullptr ? home : ""), std::string("/usr/local/cuda")}) {
    const std::string file = StrCat(folder, "/bin/", name);
    if (!folder.empty() && access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

// The tool `name` in the folder of the file `path`.
std::optional<std::string> BesideOf(const std::string& path, std::string_view name) {
  const std::string file = StrCat(path.substr(0, path.rfind('/') + 1), name);
  return access(file.c_str(), X_OK) == 0 ? std::optional(file) : std::nullopt;
}

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

// The number right before `unit` in `text`; 0 if there is none.
int64_t NumberBefore(std::string_view text, std::string_view unit) {
  const size_t at = text.find(unit);
  if (at == std::string_view::npos) return 0;
  size_t begin = at;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1]))) --begin;
  int64_t value = 0;
  return absl::SimpleAtoi(ToAbsl(text.substr(begin, at - begin)), &value) ? value : 0;
}

// Registers and memory of each kernel, from what ptxas -v prints.
void ReadUse(const std::string& messages, std::vector<CompiledKernel>& kernels) {
  CompiledKernel* kernel = nullptr;
  for (absl::string_view line : absl::StrSplit(messages, '\n')) {
    const std::string_view text(line.data(), line.size());
    if (text.find("Compiling entry function") != std::string_view::npos) {
      kernel = nullptr;
      for (CompiledKernel& k : kernels) {
        if (text.find(StrCat("'", k.name, "'")) != std::string_view::npos) kernel = &k;
      }
    }
    if (kernel == nullptr) continue;
    if (text.find("bytes stack frame") != std::string_view::npos) {
      kernel->stack_bytes = NumberBefore(text, " bytes stack frame");
      kernel->spill_bytes =
          NumberBefore(text, " bytes spill stores") + NumberBefore(text, " bytes spill loads");
    }
    if (text.find(" registers") != std::string_view::npos) {
      kernel->registers = NumberBefore(text, " registers");
      kernel->shared_bytes = NumberBefore(text, " bytes smem");
    }
  }
}

}  // namespace

absl::StatusOr<std::string> FindNvcc() {
  if (std::optional<std::string> found = FindTool("nvcc")) return *std::move(found);
  return absl::NotFoundError(
      "no nvcc on PATH, in $CUDA_HOME/bin or in /usr/local/cuda/bin: the CUDA Toolkit is optional");
}

// "ld.global.nc.v4.f32" is ld.global; "mul.lo.s32" and "fma.rn.f32" keep what is computed.
std::string PtxKind(std::string_view mnemonic) {
  std::vector<std::string> parts = absl::StrSplit(ToAbsl(mnemonic), '.');
  const std::string& first = parts[0];
  if (first == "ld" || first == "st") {
    return parts.size() > 1 ? StrCat(first, ".", parts[1]) : first;
  }
  if (first == "bra" || first == "bar" || first == "ret" || first == "mov") return first;
  std::string kind = first;
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (part == "lo" || part == "hi" || part == "wide") StrAppend(&kind, ".", part);
  }
  // The last part is the type, but for operations on bits.
  if (parts.size() > 1) StrAppend(&kind, ".", parts.back());
  return kind;
}

InstructionCounts CountPtx(std::string_view ptx, std::string_view name) {
  InstructionCounts counts;
  bool inside = false;
  bool body = false;
  for (absl::string_view line : absl::StrSplit(ToAbsl(ptx), '\n')) {
    std::string_view text = Trim({line.data(), line.size()});
    if (const size_t entry = text.find(".entry "); entry != std::string_view::npos) {
      std::string_view found = text.substr(entry + 7);
      found = found.substr(0, found.find_first_of("( \t"));
      inside = found == name;
      body = false;
    }
    if (!inside) continue;
    if (text == "{") body = true;
    if (text == "}") inside = false;
    if (!body || !text.ends_with(';') || text.starts_with('.') || text.starts_with("//")) continue;
    if (text.starts_with('@')) text = Trim(text.substr(text.find_first_of(" \t")));
    if (text.starts_with('{')) text = Trim(text.substr(1));
    const std::string_view mnemonic = text.substr(0, text.find_first_of(" \t;"));
    if (mnemonic.empty()) continue;
    ++counts[PtxKind(mnemonic)];
    ++counts["all"];
  }
  return counts;
}

InstructionCounts CountSass(std::string_view sass, std::string_view name) {
  InstructionCounts counts;
  bool inside = false;
  for (absl::string_view line : absl::StrSplit(ToAbsl(sass), '\n')) {
    std::string_view text = Trim({line.data(), line.size()});
    if (text.starts_with("Function : ")) inside = Trim(text.substr(11)) == name;
    // /*0010*/   @P0 LDG.E.128 R4, [R2.64] ;   /* 0x... */
    if (!inside || !text.starts_with("/*") || text.size() < 8) continue;
    const size_t end = text.find("*/");
    if (end == std::string_view::npos || text.starts_with("/* 0x")) continue;
    text = Trim(text.substr(end + 2));
    if (text.starts_with('@')) text = Trim(text.substr(text.find_first_of(" \t")));
    const std::string_view mnemonic = text.substr(0, text.find_first_of(" \t;."));
    if (mnemonic.empty() || mnemonic == "NOP") continue;
    ++counts[std::string(mnemonic)];
    ++counts["all"];
  }
  return counts;
}

int64_t SectionBytes(std::string_view elf, std::string_view name) {
  Elf64_Ehdr header;
  if (elf.size() < sizeof(header)) return 0;
  std::memcpy(&header, elf.data(), sizeof(header));
  const auto section = [&](size_t i) {
    Elf64_Shdr found = {};
    const size_t at = header.e_shoff + i * sizeof(found);
    if (at <= elf.size() && elf.size() - at >= sizeof(found)) {
      std::memcpy(&found, elf.data() + at, sizeof(found));
    }
    return found;
  };
  const size_t names = section(header.e_shstrndx).sh_offset;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr found = section(i);
    const size_t at = names + found.sh_name;
    if (at >= elf.size()) continue;
    const std::string_view its_name = elf.substr(at, elf.find('\0', at) - at);
    if (its_name == name) return static_cast<int64_t>(found.sh_size);
  }
  return 0;
}

absl::StatusOr<CudaBinary> CompileWithNvcc(const std::string& source, const NvccOptions& options) {
  std::string nvcc = options.nvcc;
  if (nvcc.empty()) {
    ASSIGN_OR_RETURN(nvcc, FindNvcc());
  }
  ASSIGN_OR_RETURN(const TemporaryDirectory directory, TemporaryDirectory::Create("polynao-cuda"));
  const std::string file = directory.File("kernel.cu");
  const std::string ptx = directory.File("kernel.ptx");
  const std::string cubin = directory.File("kernel.cubin");
  std::ofstream(file) << source;
  const auto run = [&](std::vector<std::string> arguments) {
    std::vector<std::string> command = {nvcc, StrCat("-arch=", options.arch)};
    if (!options.host_compiler.empty()) {
      command.insert(command.end(), {"-ccbin", options.host_compiler});
    }
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunProgram(std::move(command));
  };
  RETURN_IF_ERROR(run({"-O3", "-ptx", "-o", ptx, file}).status());
  ASSIGN_OR_RETURN(const std::string messages, run({"-cubin", "-Xptxas", "-v", "-o", cubin, ptx}));
  CudaBinary binary = {.ptx = ReadWhole(ptx), .cubin = ReadWhole(cubin), .kernels = {}};
  std::string sass;
  if (const std::optional<std::string> cuobjdump =
          options.nvcc.empty() ? FindTool("cuobjdump") : BesideOf(nvcc, "cuobjdump")) {
    ASSIGN_OR_RETURN(sass, RunProgram({*cuobjdump, "-sass", cubin}));
  }
  for (size_t at = 0; (at = binary.ptx.find(".entry ", at)) != std::string::npos; ++at) {
    CompiledKernel& kernel = binary.kernels.emplace_back();
    const size_t begin = at + 7;
    kernel.name = binary.ptx.substr(begin, binary.ptx.find_first_of("( \t\n", begin) - begin);
    kernel.code_bytes = SectionBytes(binary.cubin, StrCat(".text.", kernel.name));
    kernel.ptx = CountPtx(binary.ptx, kernel.name);
    kernel.sass = CountSass(sass, kernel.name);
  }
  ReadUse(messages, binary.kernels);
  return binary;
}

absl::StatusOr<std::optional<CudaBinary>> CompileIfThereIsNvcc(const std::string& source,
                                                               const NvccOptions& options) {
  if (options.arch == "none" || (options.nvcc.empty() && !FindNvcc().ok())) return std::nullopt;
  ASSIGN_OR_RETURN(CudaBinary binary, CompileWithNvcc(source, options));
  return binary;
}

}  // namespace polynao::codegen
