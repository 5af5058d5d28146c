#include "compiler/codegen/cuda/run_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
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

// Types that kernels have in memory.
constexpr std::string_view kTypes[] = {"float",    "double",   "int",     "int8_t",
                                       "int16_t",  "int32_t",  "int64_t", "uint8_t",
                                       "uint16_t", "uint32_t", "uint64_t"};

// `line`, if it declares an array "__shared__ __align__(16) float s[8];", as a declaration of an Array.
std::string WithArray(absl::string_view line) {
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(line);
  const bool is_shared = absl::ConsumePrefix(&rest, "__shared__ ");
  absl::ConsumePrefix(&rest, "__align__(16) ");
  if (!absl::ConsumeSuffix(&rest, "];") || absl::StrContains(rest, "=")) return std::string(line);
  const size_t space = rest.find(' '), bracket = rest.find('[');
  if (space > bracket || bracket == absl::string_view::npos) return std::string(line);
  const std::string_view type = ToStd(rest.substr(0, space));
  if (std::find(std::begin(kTypes), std::end(kTypes), type) == std::end(kTypes)) {
    return std::string(line);
  }
  const std::string name(rest.substr(space + 1, bracket - space - 1));
  const std::string array = StrCat("nao_shim::Array<", type, ToStd(rest.substr(bracket)), "]>");
  if (!is_shared) return StrCat(array, " ", name, "(\"", name, "\");");
  return StrCat("static ", array, " ", name, "_array(\"", name, "\"); ", array, "& ", name, " = ",
                name, "_array; ", name, ".Enter();");
}

// A kernel's launch with `grid`: the addresses of its buffers and the values of its scalars, each in the order of its
// parameters, scalars as in a RawEntry; for each buffer, a byte for each of its bytes that nothing has stored yet, or
// null.
std::string LaunchText(const CudaFunction& function, const CudaKernel& kernel) {
  std::string text =
      StrCat("\nextern \"C\" int32_t ", kernel.name,
             "_launch(void *const *buffers, unsigned char *const *undefined, const int64_t "
             "*scalars, const int64_t *grid) {\n");
  int buffers = 0;
  int scalars = 0;
  std::string list;
  for (int argument : kernel.arguments) {
    const ir::Param& param = function.values[static_cast<size_t>(argument)].param;
    StrAppend(&list, list.empty() ? "" : ", ");
    if (param.buffer) {
      const std::string memory = StrCat("memory", buffers);
      StrAppend(&text, "  const nao_shim::Memory ", memory, " = {\"", param.buffer->name,
                "\", (char *)buffers[", buffers, "], undefined[", buffers, "], ",
                ir::ByteSize(param.buffer->type), "};\n");
      const std::string_view type = MemoryType(param.buffer->type);
      StrAppend(&list, "nao_shim::Pointer<", type, ">((", type, " *)buffers[", buffers++, "], &",
                memory, ")");
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

// Whether nothing has stored the elements of parameter number `i` when the function starts.
bool StartsUndefined(const ir::Function& function, absl::Span<const ir::Argument> arguments,
                     size_t i) {
  if (function.params[i].access != ir::Access::kOut) return false;
  // The same memory may be another parameter, by @may_alias.
  const auto begin_of = [&](size_t j) { return arguments[j].tensor->bytes.data(); };
  const auto end_of = [&](size_t j) { return begin_of(j) + arguments[j].tensor->bytes.size(); };
  for (size_t j = 0; j < arguments.size(); ++j) {
    if (j == i || arguments[j].tensor == nullptr) continue;
    if (begin_of(j) < end_of(i) && begin_of(i) < end_of(j)) return false;
  }
  return true;
}

}  // namespace

std::string ShimmedText(std::string_view cuda) {
  std::vector<std::pair<std::string, std::string>> replacements = {
      {"extern \"C\" __global__", "__global__"}, {"reinterpret_cast<", "nao_shim::Cast<"}};
  for (const std::string_view type : kTypes) {
    for (const std::string_view before : {"", "const "}) {
      for (const std::string_view after : {"* ", "* __restrict__ "}) {
        replacements.emplace_back(StrCat(before, type, after),
                                  StrCat("nao_shim::Pointer<", type, "> "));
      }
    }
  }
  std::string text(kShimText);
  for (absl::string_view line :
       absl::StrSplit(absl::StrReplaceAll(std::string(cuda), replacements), '\n')) {
    StrAppend(&text, WithArray(line), "\n");
  }
  return text;
}

std::vector<std::string> ShimFlags() {
  return {"-std=c++17", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing",
          "-fno-threadsafe-statics", "-fno-exceptions", "-fno-rtti", "-U_FORTIFY_SOURCE",
          // <math.h> without <cmath>, which takes longer to read than the rest.
          "-D_GLIBCXX_INCLUDE_NEXT_C_HEADERS"};
}

absl::StatusOr<std::unique_ptr<ShimmedCuda>> ShimmedCuda::Create(
    absl::Span<const ir::Function> functions, int optimization_level) {
  auto result = std::unique_ptr<ShimmedCuda>(new ShimmedCuda());
  ASSIGN_OR_RETURN(result->module_, EmitCuda(functions));
  result->functions_.assign(functions.begin(), functions.end());
  std::string text = ShimmedText(result->module_.source);
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
  options.flags = ShimFlags();
  options.flags.insert(options.flags.end(), {"-w", StrCat("-O", optimization_level)});
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
  std::vector<std::vector<unsigned char>> undefined(function.values.size());
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
      undefined[i].assign(bytes, 1);
    } else if (value.param.buffer) {
      if (StartsUndefined(source, arguments, i)) {
        undefined[i].assign(arguments[i].tensor->bytes.size(), 1);
      }
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
    std::vector<unsigned char*> kernel_undefined;
    std::vector<int64_t> kernel_scalars;
    size_t host_value = 0;
    for (int argument : function.kernels[launch.kernel].arguments) {
      const auto i = static_cast<size_t>(argument);
      if (function.values[i].param.buffer) {
        kernel_buffers.push_back(addresses[i]);
        kernel_undefined.push_back(undefined[i].empty() ? nullptr : undefined[i].data());
      } else if (function.values[i].kind == CudaValue::Kind::kHostVariable) {
        kernel_scalars.push_back(launch.host_values[host_value++]);
      } else {
        kernel_scalars.push_back(scalars[i]);
      }
    }
    const int32_t failed = entries_[index][launch.kernel](
        kernel_buffers.data(), kernel_undefined.data(), kernel_scalars.data(), launch.grid.data());
    return failed == 0 ? absl::OkStatus() : absl::InternalError(message_());
  });
}

}  // namespace polynao::codegen
