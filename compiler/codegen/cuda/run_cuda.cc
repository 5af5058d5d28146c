#include "compiler/codegen/cuda/run_cuda.h"

#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/c/function_emitter.h"
#include "compiler/codegen/cuda/launches.h"
#include "compiler/codegen/cuda/shim_text.h"
#include "compiler/ir/type.h"

namespace polynao::codegen {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Workspace = std::unique_ptr<void, Free>;

std::string DimText(const Extents& extents) {
  return StrCat("dim3{", extents[0], ", ", extents[1], ", ", extents[2], "}");
}

// A kernel's launch with `grid`: the addresses of its buffers and the values of its scalars, each in the order
// of its parameters, scalars as in a RawEntry.
std::string LaunchText(const CudaFunction& function, const CudaKernel& kernel) {
  std::string text = StrCat("\nextern \"C\" int32_t ", kernel.name,
                            "_launch(void *const *buffers, const int64_t *scalars, "
                            "const int64_t *grid) {\n  (void)buffers;\n  (void)scalars;\n");
  int buffers = 0;
  int scalars = 0;
  std::string list;
  for (int argument : kernel.arguments) {
    const ir::Param& param = function.values[static_cast<size_t>(argument)].param;
    StrAppend(&list, list.empty() ? "" : ", ");
    if (param.buffer) {
      StrAppend(&list, "(", MemoryType(param.buffer->type), " *)buffers[", buffers++, "]");
    } else if (ir::IsFloat(param.var.type())) {
      const std::string name = StrCat("scalar", scalars);
      StrAppend(&text, "  double ", name, ";\n  memcpy(&", name, ", &scalars[", scalars++,
                "], sizeof ", name, ");\n");
      StrAppend(&list, "(", ValueType(param.var.type()), ")", name);
    } else {
      StrAppend(&list, "(", ValueType(param.var.type()), ")scalars[", scalars++, "]");
    }
  }
  StrAppend(&text,
            "  const dim3 blocks = {(unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2]};\n"
            "  return nao_shim::Launch(\"",
            kernel.name, "\", blocks, ", DimText(kernel.block), ", ",
            kernel.barriers > 0 ? "true" : "false", ", [=] { ", kernel.name, "(", list,
            "); }) ? 0 : 1;\n}\n");
  return text;
}

// The lines of a text, from 1, with a barrier.
std::vector<int> BarrierLines(const std::string& text) {
  std::vector<int> lines;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (absl::EndsWith(line, " __syncthreads();")) lines.push_back(number);
  }
  return lines;
}

}  // namespace

std::string ShimText() { return std::string(kShimText); }

absl::StatusOr<std::unique_ptr<ShimmedCuda>> ShimmedCuda::Create(
    absl::Span<const ir::Function> functions, int optimization_level) {
  auto result = std::unique_ptr<ShimmedCuda>(new ShimmedCuda());
  ASSIGN_OR_RETURN(result->module_, EmitCuda(functions));
  result->functions_.assign(functions.begin(), functions.end());
  // In the shim a kernel is a plain function of the file.
  std::string text = StrCat(
      ShimText(),
      absl::StrReplaceAll(result->module_.source, {{"extern \"C\" __global__", "__global__"}}));
  std::vector<int> lines = BarrierLines(text);
  auto line = lines.begin();
  for (const CudaFunction& function : result->module_.functions) {
    std::vector<int>& own = result->barrier_lines_.emplace_back();
    for (const CudaKernel& kernel : function.kernels) {
      own.insert(own.end(), line, line + kernel.barriers);
      line += kernel.barriers;
      StrAppend(&text, LaunchText(function, kernel));
    }
  }
  POLYNAO_CHECK(line == lines.end());
  LoadedCode::Options options;
  ASSIGN_OR_RETURN(options.compiler, FindCCompiler(false));
  options.suffix = ".cc";
  options.flags = {"-std=c++17",
                   StrCat("-O", optimization_level),
                   "-march=native",
                   "-ffp-contract=off",
                   "-fno-strict-aliasing",
                   "-fno-exceptions",
                   "-fno-rtti",
                   "-U_FORTIFY_SOURCE",
                   "-w"};
  ASSIGN_OR_RETURN(result->code_, LoadedCode::Create(text, options));
  for (const CudaFunction& function : result->module_.functions) {
    std::vector<LaunchEntry>& entries = result->entries_.emplace_back();
    for (const CudaKernel& kernel : function.kernels) {
      ASSIGN_OR_RETURN(void* entry, result->code_->Find(StrCat(kernel.name, "_launch")));
      entries.push_back(reinterpret_cast<LaunchEntry>(entry));
    }
  }
  ASSIGN_OR_RETURN(void* set_order, result->code_->Find("nao_shim_set_order"));
  ASSIGN_OR_RETURN(void* leave_out, result->code_->Find("nao_shim_leave_out"));
  ASSIGN_OR_RETURN(void* message, result->code_->Find("nao_shim_message"));
  result->set_order_ = reinterpret_cast<void (*)(uint64_t)>(set_order);
  result->leave_out_ = reinterpret_cast<void (*)(int)>(leave_out);
  result->message_ = reinterpret_cast<const char* (*)()>(message);
  return result;
}

absl::Status ShimmedCuda::Run(size_t index, absl::Span<const ir::Argument> arguments,
                              uint64_t order, std::optional<size_t> left_out_barrier) const {
  const ir::Function& source = functions_[index];
  const CudaFunction& function = module_.functions[index];
  ASSIGN_OR_RETURN(const RawArguments raw, LayOutArguments(source, arguments));
  // By number of value; those of the host's variables change.
  std::vector<void*> addresses(function.values.size());
  std::vector<int64_t> scalars(function.values.size());
  ir::IntValues integers;
  std::vector<Workspace> workspaces;
  size_t buffer = 0;
  size_t scalar = 0;
  for (size_t i = 0; i < function.values.size(); ++i) {
    const CudaValue& value = function.values[i];
    if (value.is_workspace()) {
      ASSIGN_OR_RETURN(const int64_t elements, WorkspaceElements(value.param.buffer, integers));
      const auto bytes = static_cast<size_t>(elements * ir::ByteSize(value.param.buffer->type));
      Workspace& memory = workspaces.emplace_back(std::malloc(bytes + 16));
      if (memory == nullptr) {
        return absl::ResourceExhaustedError(StrCat("no memory for '", value.param.name(), "'"));
      }
      std::memset(memory.get(), 0xff, bytes);
      addresses[i] = memory.get();
    } else if (value.param.buffer) {
      addresses[i] = raw.buffers[buffer++];
    } else if (value.kind == CudaValue::Kind::kParameter) {
      scalars[i] = raw.scalars[scalar++];
      if (ir::IsInt(value.param.var.type())) integers[value.param.var] = scalars[i];
    }
  }
  set_order_(order);
  leave_out_(left_out_barrier ? barrier_lines_[index].at(*left_out_barrier) : 0);
  return ForEachLaunch(function, integers, [&](const CudaLaunch& launch) {
    std::vector<void*> kernel_buffers;
    std::vector<int64_t> kernel_scalars;
    size_t host_value = 0;
    for (int argument : function.kernels[launch.kernel].arguments) {
      const auto i = static_cast<size_t>(argument);
      if (function.values[i].param.buffer) {
        kernel_buffers.push_back(addresses[i]);
      } else if (function.values[i].kind == CudaValue::Kind::kHostVariable) {
        kernel_scalars.push_back(launch.host_values[host_value++]);
      } else {
        kernel_scalars.push_back(scalars[i]);
      }
    }
    const int32_t failed = entries_[index][launch.kernel](
        kernel_buffers.data(), kernel_scalars.data(), launch.grid.data());
    return failed == 0 ? absl::OkStatus() : absl::InternalError(message_());
  });
}

}  // namespace polynao::codegen
