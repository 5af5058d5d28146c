#include "simulator/simulator.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/math.h"
#include "base/status.h"
#include "compiler/ir/visit.h"
#include "simulator/access_checker.h"
#include "simulator/card.h"
#include "simulator/context.h"
#include "simulator/dram/preset.h"
#include "simulator/isolated.h"
#include "simulator/pages.h"
#include "simulator/profile.h"

namespace polynao::simulator {
namespace {

// The address of the first tensor: not 0, so that a null address is an error, and a multiple of every
// channel interleave in use.
constexpr int64_t kFirstAddress = 1 << 20;

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

int64_t BytesOf(const ir::Tensor& tensor) {
  return tensor.element_count() * ir::ByteSize(tensor.type);
}

absl::Status CheckArgument(const isa::ProgramParam& param, const Argument& argument,
                           bool timing_only) {
  if (param.is_tensor != (argument.tensor != nullptr)) {
    return InvalidInput("parameter ", param.name, " is a ", param.is_tensor ? "tensor" : "scalar",
                        ", its argument is not");
  }
  if (!param.is_tensor) return absl::OkStatus();
  const ir::Tensor& tensor = *argument.tensor;
  if (tensor.type != param.type) {
    return InvalidInput("parameter ", param.name, " has type ",
                        std::string(ir::TypeName(param.type)), ", its argument ",
                        std::string(ir::TypeName(tensor.type)));
  }
  if (!param.any_shape && tensor.shape != param.shape) {
    return InvalidInput("parameter ", param.name, " has shape ", ShapeText(param.shape),
                        ", its argument ", ShapeText(tensor.shape));
  }
  const bool is_shape = timing_only && tensor.bytes.empty();
  POLYNAO_CHECK(is_shape || static_cast<int64_t>(tensor.bytes.size()) == BytesOf(tensor))
      << param.name << " has " << tensor.bytes.size() << " bytes";
  return absl::OkStatus();
}

// Where each tensor is, and what `arg` reads for each parameter.
struct Layout {
  std::vector<GmemRegion> regions;
  std::vector<int64_t> params;
  int64_t end = 0;
};

// The machine has the values that the program was compiled for.
absl::Status CheckMachine(const isa::Program& program, const isa::Machine& machine) {
  for (const auto& [name, value] : program.machine) {
    const std::string found = machine.Text(name);
    if (found == value) continue;
    return InvalidInput("program ", program.name, " was compiled for another machine, of ", name,
                        " = ", value, ": found ", found, " in ", machine.name);
  }
  return absl::OkStatus();
}

absl::StatusOr<Layout> Place(const isa::Program& program, const std::vector<Argument>& arguments,
                             const isa::Machine& machine, bool timing_only) {
  const size_t wanted =
      std::count_if(program.params.begin(), program.params.end(),
                    [](const isa::ProgramParam& param) { return !param.is_temporary; });
  if (arguments.size() != wanted) {
    return InvalidInput("program ", program.name, " has ", wanted, " parameters; there are ",
                        arguments.size(), " arguments");
  }
  Layout layout;
  int64_t next = kFirstAddress;
  for (size_t i = 0; i < program.params.size(); ++i) {
    const isa::ProgramParam& param = program.params[i];
    if (param.is_temporary != (i >= wanted)) {
      return InvalidInput("program ", program.name, ": parameter ", param.name,
                          " follows a temporary");
    }
    int64_t size = ir::ByteSize(param.type);
    if (param.is_temporary) {
      for (int64_t extent : param.shape) size *= extent;
    } else {
      RETURN_IF_ERROR(CheckArgument(param, arguments[i], timing_only));
      if (!param.is_tensor) {
        layout.params.push_back(arguments[i].value);
        continue;
      }
      size = BytesOf(*arguments[i].tensor);
    }
    layout.params.push_back(next);
    layout.regions.push_back({param.name, next, size, param.access, param.is_temporary});
    // At least one byte lies between tensors, so that an access beyond a tensor's end is an error.
    next = RoundUp(next + size + 1, isa::kTensorAlignment);
  }
  RETURN_IF_ERROR(isa::CheckAssertions(program, layout.params));
  layout.end = next;
  const int64_t capacity = machine.Get("gmem.mib") << 20;
  if (next - kFirstAddress > capacity) {
    return InvalidInput("the tensors need ", next - kFirstAddress, " bytes of GMEM; machine ",
                        machine.name, " has ", capacity);
  }
  return layout;
}

// The cycles of a scalar instruction, if its operands do not change them, else -1.
int64_t FixedCost(const isa::InstructionSet& set, const isa::Instruction& instruction,
                  const std::vector<int64_t>& parameters) {
  if (instruction.unit != isa::Unit::kScalar) return -1;
  bool depends = false;
  ir::ForEachExpr(instruction.cost, [&](ir::Expr e) {
    for (const isa::Operand& operand : instruction.operands) {
      depends = depends || e == instruction.meaning.params[operand.param].var;
    }
  });
  if (depends) return -1;
  const std::vector<int64_t> values(instruction.operands.size());
  return set.Cost(instruction, values, parameters).value_or(-1);
}

absl::StatusOr<std::string> Simulate(const isa::InstructionSet& set, const isa::Program& program,
                                     const Layout& layout, uint8_t* gmem,
                                     const RunOptions& options) {
  // SystemC must not write to standard output. Its warnings are our own mistakes.
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  sc_core::sc_report_handler::set_actions(sc_core::SC_WARNING, sc_core::SC_THROW);

  const isa::Machine& machine = *options.machine;
  RunResult result;
  result.machine = machine.name;
  result.program = program.name;
  result.launch_cycles = machine.Get("card.launch");
  result.cores.resize(static_cast<size_t>(machine.clusters() * (machine.cores_per_cluster() + 1)));

  AccessChecker checker(machine, set, layout.regions, {.hazards = options.check_hazards},
                        [&](int64_t pc) { return isa::DisassembleWord(set, program, pc); });
  Context context(machine, set, program);
  ASSIGN_OR_RETURN(context.parameters, set.ResolveParameters(machine));
  context.params = layout.params;
  context.timing_only = options.timing_only;
  context.checker = &checker;
  context.result = &result;
  for (const isa::Word& word : program.code) {
    auto decoded = set.Decode(word);
    context.fixed_costs.push_back(
        decoded.ok() ? FixedCost(set, *decoded->instruction, context.parameters) : -1);
    context.code.push_back(decoded.ok() ? std::optional(*std::move(decoded)) : std::nullopt);
  }
  if (options.trace.enabled) {
    context.trace_begin = options.trace.begin;
    context.trace_end = options.trace.end;
    context.trace_limit = options.trace.limit;
    result.gmem_bucket = options.trace.gmem_bucket;
    for (size_t pc = 0; pc < program.code.size(); ++pc) {
      result.instructions.push_back(isa::DisassembleWord(set, program, static_cast<int64_t>(pc)));
    }
  }
  std::optional<RunProfile> profile;
  if (options.profile) {
    profile.emplace(machine, context.last_gmem_write);
    context.profile = &*profile;
  }
  auto card = std::make_unique<Card>("card", context, gmem, layout.end);
  RETURN_IF_ERROR(card->Simulate(options.max_cycles));
  // A process that ends with this run gives all memory back at once.
  if (!options.in_this_process) static_cast<void>(card.release());
  result.unwritten = checker.Unwritten();
  return SerializeResult(result);
}

}  // namespace

ir::Tensor ShapeOnly(ir::Type type, std::vector<int64_t> shape) {
  ir::Tensor tensor;
  tensor.type = type;
  tensor.shape = std::move(shape);
  return tensor;
}

int64_t LoadsRegisters(const isa::InstructionSet& set, const isa::Program& program) {
  for (size_t pc = 0; pc < program.code.size(); ++pc) {
    const auto decoded = set.Decode(program.code[pc]);
    if (!decoded.ok()) continue;
    const std::vector<isa::Operand>& operands = decoded->instruction->operands;
    const bool writes = std::any_of(operands.begin(), operands.end(), [](const auto& operand) {
      return operand.kind == isa::OperandKind::kWritten;
    });
    const bool reads = std::any_of(operands.begin(), operands.end(),
                                   [](const auto& operand) { return operand.is_read; });
    if (writes && reads) return static_cast<int64_t>(pc);
  }
  return -1;
}

absl::StatusOr<RunResult> Run(const isa::InstructionSet& set, const isa::Program& program,
                              const std::vector<Argument>& arguments, const RunOptions& options) {
  POLYNAO_CHECK(options.machine != nullptr);
  if (!options.any_machine) RETURN_IF_ERROR(CheckMachine(program, *options.machine));
  if (options.machine->has_dram()) RETURN_IF_ERROR(DramOf(*options.machine).status());
  if (options.timing_only) {
    if (const int64_t pc = LoadsRegisters(set, program); pc >= 0) {
      return InvalidInput("program ", program.name, " cannot be timed without values: pc ", pc,
                          " \"", isa::DisassembleWord(set, program, pc),
                          "\" reads memory into a register, and cycles may depend on it");
    }
  }
  ASSIGN_OR_RETURN(const Layout layout,
                   Place(program, arguments, *options.machine, options.timing_only));
  Pages gmem(layout.end, Pages::Sharing::kWithChildren);
  if (!gmem.ok()) return absl::ResourceExhaustedError("no memory for GMEM");
  size_t region = 0;
  for (const Argument& argument : arguments) {
    if (argument.tensor == nullptr || options.timing_only) continue;
    std::memcpy(gmem.data() + layout.regions[region++].begin, argument.tensor->bytes.data(),
                argument.tensor->bytes.size());
  }
  // Here, since the set makes routines under a lock, which another thread may hold while this one forks.
  for (const isa::Word& word : program.code) {
    const auto decoded = set.Decode(word);
    if (decoded.ok()) set.HasNativeRoutine(*decoded->instruction);
  }
  const auto simulate = [&] { return Simulate(set, program, layout, gmem.data(), options); };
  const absl::StatusOr<std::string> bytes =
      options.in_this_process ? simulate() : RunIsolated(simulate);
  RETURN_IF_ERROR(bytes.status());
  ASSIGN_OR_RETURN(RunResult result, ParseResult(*bytes));
  if (options.timing_only) return result;
  region = 0;
  for (const Argument& argument : arguments) {
    if (argument.tensor == nullptr) continue;
    const GmemRegion& place = layout.regions[region++];
    if (place.access == ir::Access::kIn) continue;
    std::memcpy(argument.tensor->bytes.data(), gmem.data() + place.begin,
                argument.tensor->bytes.size());
  }
  return result;
}

absl::StatusOr<RunResult> RunForTiming(const isa::InstructionSet& set, const isa::Program& program,
                                       std::vector<Argument> arguments, RunOptions options) {
  options.timing_only = LoadsRegisters(set, program) < 0;
  std::deque<ir::Tensor> zeros;
  for (Argument& argument : arguments) {
    if (options.timing_only || argument.tensor == nullptr) continue;
    argument.tensor = &zeros.emplace_back(argument.tensor->type, argument.tensor->shape);
  }
  return Run(set, program, arguments, options);
}

}  // namespace polynao::simulator
