#include "compiler/codegen/cuda/run_cuda.h"

#include <algorithm>

#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/codegen/c/function_emitter.h"
#include "compiler/codegen/cuda/shim_text.h"
#include "compiler/ir/type.h"

namespace polynao::codegen {
namespace {

std::string DimText(const Extents& extents) {
  return StrCat("dim3{", extents[0], ", ", extents[1], ", ", extents[2], "}");
}

// The host's part of a function: memory for workspaces, and its kernels one after the other.
std::string EntryText(const CudaFunction& function) {
  std::string text = StrCat("\nextern \"C\" int32_t ", function.name,
                            "_entry(void *const *buffers, const int64_t *scalars) {\n"
                            "  (void)buffers;\n  (void)scalars;\n  bool ok = true;\n");
  int buffers = 0;
  int scalars = 0;
  std::vector<std::string> arguments;
  std::string release;
  for (size_t i = 0; i < function.values.size(); ++i) {
    const ir::Param& param = function.values[i].param;
    if (param.buffer && function.values[i].is_workspace) {
      int64_t bytes = ir::ByteSize(param.buffer->type);
      for (ir::Expr extent : param.buffer->extents) {
        bytes *= std::max<int64_t>(0, extent.int_value());
      }
      const std::string name = StrCat("workspace", i);
      StrAppend(&text, "  void *const ", name, " = malloc(", bytes + 16, ");\n  memset(", name,
                ", 0xff, ", bytes, ");\n");
      StrAppend(&release, "  free(", name, ");\n");
      arguments.push_back(StrCat("(", MemoryType(param.buffer->type), " *)", name));
    } else if (param.buffer) {
      arguments.push_back(
          StrCat("(", MemoryType(param.buffer->type), " *)buffers[", buffers++, "]"));
    } else if (ir::IsFloat(param.var.type())) {
      const std::string name = StrCat("scalar", i);
      StrAppend(&text, "  double ", name, ";\n  memcpy(&", name, ", &scalars[", scalars++,
                "], sizeof ", name, ");\n");
      arguments.push_back(StrCat("(", ValueType(param.var.type()), ")", name));
    } else {
      arguments.push_back(StrCat("(", ValueType(param.var.type()), ")scalars[", scalars++, "]"));
    }
  }
  for (const CudaKernel& kernel : function.kernels) {
    std::string list;
    for (int argument : kernel.arguments) {
      StrAppend(&list, list.empty() ? "" : ", ", arguments[argument]);
    }
    StrAppend(&text, "  ok = ok && nao_shim::Launch(\"", kernel.name, "\", ", DimText(kernel.grid),
              ", ", DimText(kernel.block), ", ", kernel.barriers > 0 ? "true" : "false", ", [=] { ",
              kernel.name, "(", list, "); });\n");
  }
  StrAppend(&text, release, "  return ok ? 0 : 1;\n}\n");
  return text;
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
  for (const CudaFunction& function : result->module_.functions) {
    StrAppend(&text, EntryText(function));
  }
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
    ASSIGN_OR_RETURN(void* entry, result->code_->Find(StrCat(function.name, "_entry")));
    result->entries_.push_back(reinterpret_cast<RawEntry>(entry));
  }
  ASSIGN_OR_RETURN(void* set_order, result->code_->Find("nao_shim_set_order"));
  ASSIGN_OR_RETURN(void* message, result->code_->Find("nao_shim_message"));
  result->set_order_ = reinterpret_cast<void (*)(uint64_t)>(set_order);
  result->message_ = reinterpret_cast<const char* (*)()>(message);
  return result;
}

absl::Status ShimmedCuda::Run(size_t index, absl::Span<const ir::Argument> arguments,
                              uint64_t order) const {
  ASSIGN_OR_RETURN(const RawArguments raw, LayOutArguments(functions_[index], arguments));
  set_order_(order);
  if (entries_[index](raw.buffers.data(), raw.scalars.data()) == 0) return absl::OkStatus();
  return absl::InternalError(message_());
}

}  // namespace polynao::codegen
