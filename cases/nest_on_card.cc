#include "cases/nest_on_card.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/elapsed.h"
#include "base/status.h"
#include "base/text.h"
#include "cases/machines.h"
#include "compiler/codegen/diannao/diannao.h"
#include "compiler/ir/fix_scalars.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/poly/card/nest_program.h"
#include "compiler/poly/card/shared_loops.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "isa/check/check.h"
#include "isa/levels.h"

namespace polynao::cases {
namespace {

// Errors: tensors that the card's memory does not hold.
absl::Status CheckGmem(const ir::Function& function, const isa::Machine& machine) {
  ASSIGN_OR_RETURN(const auto shapes, ir::ParameterShapes(function, {}));
  double mib = 0;
  size_t next = 0;
  for (const ir::Param& param : function.params) {
    if (!param.buffer) continue;
    double bytes = ir::ByteSize(param.buffer->type);
    for (const int64_t extent : shapes[next]) bytes *= static_cast<double>(extent);
    mib += bytes / (1 << 20);
    ++next;
  }
  const int64_t has = machine.Get("gmem.mib");
  if (mib <= static_cast<double>(has)) return absl::OkStatus();
  return InvalidInput(absl::StrFormat(
      "function '%s': its tensors take %.0f MiB: expected at most gmem.mib of %s, %d",
      function.name, mib, machine.name, has));
}

// Allocations taken off their statements, to stand around the whole function: there GMEM has room for them.
class TakeAllocations : public ir::Mutator {
 public:
  using ir::Mutator::Mutate;
  ir::Stmt Mutate(ir::Stmt s) override {
    if (!s.Is(ir::StmtKind::kAllocate)) return MutateChildren(s);
    buffers_.push_back(s.buffer());
    return Mutate(s.body());
  }
  ir::Stmt Around(ir::Stmt body) const {
    for (ir::Buffer buffer : buffers_) body = body.context().Allocate(buffer, body);
    return body;
  }

 private:
  std::vector<ir::Buffer> buffers_;
};

}  // namespace

int64_t ScalarStores(const ir::Function& function) {
  int64_t stores = 0;
  ir::ForEachStmt(function.body, [&](ir::Stmt s) {
    stores += s.Is(ir::StmtKind::kStore);
    return true;
  });
  return stores;
}

double StoredElements(ir::Stmt s) {
  if (s.Is(ir::StmtKind::kStore)) return 1;
  double stores = 0;
  for (ir::Stmt child : s.children()) stores += StoredElements(child);
  if (!s.Is(ir::StmtKind::kFor) || s.for_kind() == ir::ForKind::kThread) return stores;
  const bool is_known = s.extent().Is(ir::ExprKind::kIntImm);
  return stores *
         (is_known ? static_cast<double>(std::max<int64_t>(0, s.extent().int_value())) : 8);
}

bool IsPlainNest(const ir::Function& function) {
  return !ir::AnyStmt(function.body, [](ir::Stmt s) {
    const bool is_thread = s.Is(ir::StmtKind::kFor) && s.for_kind() == ir::ForKind::kThread;
    const bool is_on_chip = s.Is(ir::StmtKind::kAllocate) && !s.buffer()->scope.empty() &&
                            s.buffer()->scope != isa::kGmem;
    return is_thread || is_on_chip || s.Is(ir::StmtKind::kPragma);
  });
}

absl::StatusOr<NestSchedule> ScheduleNest(const ir::Function& function, const Target& target) {
  RETURN_IF_ERROR(CheckGmem(function, *target.machine));
  const auto scalar_stores = [&](ir::Function part) -> absl::StatusOr<int64_t> {
    ASSIGN_OR_RETURN(const auto pipeline, PipelineFor(target));
    RETURN_IF_ERROR(RunPasses(part, pipeline, target));
    // A schedule may need more registers than there are.
    RETURN_IF_ERROR(GenerateDianNao(part, target).status());
    return std::llround(StoredElements(part.body));
  };
  absl::StatusOr<poly::NestProgram> program =
      poly::ScheduleForCard(function, target, scalar_stores);
  if (program.ok()) {
    return NestSchedule{.function = std::move(program->function),
                        .notes = std::move(program->notes),
                        .reassociates = program->reassociates};
  }
  ir::Function as_it_is = function;
  TakeAllocations take;
  const ir::Stmt body = take.Mutate(function.body);
  as_it_is.body = take.Around(body);
  ir::Function shared = poly::ShareLoops(as_it_is, *target.machine);
  const char* cores = shared.body == as_it_is.body ? "unit of one core: " : "units of all cores: ";
  return NestSchedule{.function = std::move(shared),
                      .notes = {StrCat("on the scalar ", cores, program.status().message())}};
}

absl::StatusOr<NestOnCard> CompileForCard(const ir::Function& function,
                                          absl::Span<const ir::Argument> arguments,
                                          const std::string& config,
                                          const std::vector<std::string>& overrides,
                                          const isa::InstructionSet* instructions) {
  ASSIGN_OR_RETURN(isa::Machine loaded, LoadMachine(config, overrides));
  auto machine = std::make_unique<isa::Machine>(std::move(loaded));
  ASSIGN_OR_RETURN(Target target, MakeTarget("diannao", machine.get()));
  if (instructions != nullptr) target.instructions = instructions;
  ASSIGN_OR_RETURN(NestOnCard nest, CompileForCard(function, arguments, target));
  nest.machine = std::move(machine);
  return nest;
}

absl::StatusOr<NestOnCard> CompileForCard(const ir::Function& function,
                                          absl::Span<const ir::Argument> arguments,
                                          const Target& target) {
  NestOnCard nest;
  nest.instructions = target.instructions;
  ASSIGN_OR_RETURN(nest.function, ir::FixScalars(function, arguments));
  const Clock::time_point start = Clock::now();
  if (IsPlainNest(nest.function)) {
    ASSIGN_OR_RETURN(NestSchedule scheduled, ScheduleNest(nest.function, target));
    nest.function = std::move(scheduled.function);
    nest.notes = std::move(scheduled.notes);
    nest.reassociates = scheduled.reassociates;
  }
  nest.schedule_ms = MillisecondsSince(start);
  const Clock::time_point compile = Clock::now();
  ASSIGN_OR_RETURN(const auto pipeline, PipelineFor(target));
  RETURN_IF_ERROR(RunPasses(nest.function, pipeline, target));
  ASSIGN_OR_RETURN(nest.program, GenerateDianNao(nest.function, target));
  RETURN_IF_ERROR(isa::CheckQuickly(*target.instructions, nest.program, *target.machine));
  nest.compile_ms = MillisecondsSince(compile);
  if (const int64_t stores = ScalarStores(nest.function); stores > 0) {
    nest.notes.push_back(StrCat(stores, " stores are left to the scalar unit"));
  }
  return nest;
}

absl::StatusOr<simulator::RunResult> Simulate(const NestOnCard& nest,
                                              absl::Span<const ir::Argument> arguments,
                                              const simulator::RunOptions& options) {
  std::vector<simulator::Argument> own;
  std::vector<std::pair<ir::Tensor*, std::vector<int64_t>>> shapes;
  for (const ir::Argument& argument : arguments) {
    if (argument.tensor == nullptr) continue;
    shapes.emplace_back(argument.tensor, argument.tensor->shape);
    argument.tensor->shape = nest.program.params[own.size()].shape;
    own.push_back(simulator::Argument::Of(argument.tensor));
  }
  absl::StatusOr<simulator::RunResult> result =
      simulator::Run(*nest.instructions, nest.program, own, options);
  for (auto& [tensor, shape] : shapes) tensor->shape = shape;
  return result;
}

}  // namespace polynao::cases
