#include "cases/build.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/files.h"
#include "base/status.h"
#include "cases/nest_on_card.h"
#include "compiler/codegen/diannao/diannao.h"
#include "compiler/ir/parts_layout.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ir/visit.h"
#include "compiler/registry/registry.h"
#include "compiler/target/target.h"
#include "isa/check/check.h"
#include "kernels/library/expert.h"
#include "kernels/library/library.h"
#include "kernels/pipelines/pipelines.h"
#include "kernels/te/tuned.h"

namespace polynao::cases {
namespace {

using kernels::Operator;
using kernels::OperatorCase;

// Values change no cycle.
absl::StatusOr<int64_t> MeasureCycles(const BuiltProgram& built,
                                      absl::Span<const kernels::TensorSpec> specs,
                                      const Target& target) {
  std::vector<ir::Tensor> tensors;
  for (const kernels::TensorSpec& spec : specs) {
    tensors.push_back(simulator::ShapeOnly(spec.type, spec.shape));
  }
  simulator::RunOptions options;
  options.machine = target.machine;
  options.check_hazards = false;
  ASSIGN_OR_RETURN(const simulator::RunResult result,
                   simulator::RunForTiming(*target.instructions, built.program,
                                           ProgramArguments(built, tensors), options));
  return result.cycles;
}

// Which `count` of the schedules a search tries, and in which order: of those with the same modelled cycles one each,
// then a second one each, and so on, since the model knows no difference between them, and the simulator does. Those
// that the model gives more than 1.25 times its best cycles come last: it seldom errs by that much.
std::vector<size_t> SearchOrder(const std::vector<kernels::RankedSchedule>& ranked, size_t count) {
  struct Place {
    bool is_late;
    size_t of_equals;  // how many before it have the same cycles
    size_t rank;
    auto operator<=>(const Place&) const = default;
  };
  std::map<double, size_t> equals;
  std::vector<Place> places;
  for (size_t i = 0; i < ranked.size(); ++i) {
    places.push_back({.is_late = ranked[i].cycles > 1.25 * ranked[0].cycles,
                      .of_equals = equals[ranked[i].cycles]++,
                      .rank = i});
  }
  std::sort(places.begin(), places.end());
  if (places.size() > count) places.resize(count);
  std::vector<size_t> order;
  for (const Place& place : places) order.push_back(place.rank);
  return order;
}

// The function before the passes.
absl::StatusOr<ir::Function> Written(const Operator& op, const OperatorCase& c,
                                     const Target& target) {
  if (!IsCard(target.name) || !kernels::TakesLoops(op, c, target)) return op.build(c, target);
  ASSIGN_OR_RETURN(const Target interpreter, MakeTarget("interp", nullptr));
  ASSIGN_OR_RETURN(const ir::Function loops, op.build(c, interpreter));
  ASSIGN_OR_RETURN(NestSchedule scheduled, ScheduleNest(loops, target));
  return std::move(scheduled.function);
}

absl::StatusOr<ir::Function> AfterPasses(const Operator& op, const OperatorCase& c,
                                         const Target& target,
                                         const std::vector<std::string>& without) {
  ASSIGN_OR_RETURN(ir::Function function, Written(op, c, target));
  ASSIGN_OR_RETURN(std::vector<PassSpec> passes, PipelineFor(target));
  RETURN_IF_ERROR(RunPasses(function, passes, target, {.verify = false, .skip = without}));
  return function;
}

// Waits and barriers of a program with its scalars.
absl::Status CheckQuickly(const BuiltProgram& built, const Target& target) {
  return isa::CheckQuickly(*target.instructions, built.program, *target.machine,
                           {.scalars = {built.scalars.begin(), built.scalars.end()}});
}

struct Taken {
  ir::Function function;  // after the passes
  // The schedule that was taken in place of the one that the operator chooses, if that one was refused.
  std::optional<kernels::ScheduleChoice> instead = std::nullopt;
};

// Of more stores than this another schedule is looked for, of so many.
constexpr double kFewStores = 500;
constexpr size_t kOtherSchedules = 48;
constexpr size_t kLookedAt = 8;  // of schedules for each that is tried: many differ little

absl::StatusOr<Taken> Take(const Operator& op, const OperatorCase& c, const Target& target,
                           const std::vector<std::string>& without) {
  absl::StatusOr<ir::Function> first = AfterPasses(op, c, target, without);
  const bool may_differ = IsCard(target.name) && op.schedules && without.empty();
  if (!may_differ) RETURN_IF_ERROR(first.status());
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double stores = first.ok() ? StoredElements(first->body) : kNone;
  const absl::Status status = first.status();
  std::optional<Taken> taken;
  if (first.ok()) taken = {.function = *std::move(first)};
  if (!may_differ || stores <= kFewStores) return *std::move(taken);
  const auto ranked = op.schedules(c, target);
  const bool has_others = ranked.ok() && ranked->size() > 1;  // else the user has named all choices
  size_t tried = 0;
  std::set<kernels::ScheduleChoice> known;
  for (const size_t i :
       has_others ? SearchOrder(*ranked, kLookedAt * kOtherSchedules) : std::vector<size_t>()) {
    OperatorCase other = c;
    other.schedule = (*ranked)[i].choice;
    // Pieces in which results leave change no nest of what comes before.
    kernels::ScheduleChoice in_one_piece = other.schedule;
    in_one_piece.erase("pieces");
    if (!known.insert(std::move(in_one_piece)).second) continue;
    if (++tried > kOtherSchedules) break;
    absl::StatusOr<ir::Function> built = AfterPasses(op, other, target, without);
    const double left = built.ok() ? StoredElements(built->body) : kNone;
    if (left >= stores) continue;
    stores = left;
    taken = {.function = *std::move(built), .instead = other.schedule};
    if (stores <= kFewStores) break;
  }
  if (!taken) return status;
  return *std::move(taken);
}

}  // namespace

absl::StatusOr<ir::Function> BuildFunction(const Operator& op, const OperatorCase& c,
                                           const Target& target,
                                           const std::vector<std::string>& without) {
  ASSIGN_OR_RETURN(Taken taken, Take(op, c, target, without));
  return std::move(taken.function);
}

absl::StatusOr<TakenSchedule> TakeSchedule(const OperatorCase& c, const Target& target) {
  ASSIGN_OR_RETURN(const Operator* op, kernels::FindOperator(c));
  TakenSchedule taken = {.operator_case = c};
  if (!IsCard(target.name) || !op->choose || kernels::TakesLoops(*op, c, target)) return taken;
  ASSIGN_OR_RETURN(const kernels::ChosenSchedule chosen, op->choose(c, target));
  taken.operator_case.schedule = chosen.choice;
  taken.by = chosen.by;
  ASSIGN_OR_RETURN(const Taken built, Take(*op, c, target, {}));
  if (built.instead) {
    taken.refused = chosen.choice;
    taken.operator_case.schedule = *built.instead;
  }
  return taken;
}

std::optional<kernels::HostLayout> HostLayoutOf(const OperatorCase& c, const Target& target) {
  const absl::StatusOr<const Operator*> op = kernels::FindOperator(c);
  if (!op.ok() || !(*op)->host_layout || kernels::TakesLoops(**op, c, target)) return std::nullopt;
  return (*op)->host_layout(c);
}

void PrepareTensors(const BuiltProgram& built, std::vector<ir::Tensor>& tensors) {
  built.Prepare(tensors);
  LayOutInParts(built.program, tensors);
}

void LayOutInParts(const isa::Program& program, std::vector<ir::Tensor>& tensors) {
  size_t next = 0;
  for (const isa::ProgramParam& param : program.params) {
    if (!param.is_tensor || param.is_temporary) continue;
    POLYNAO_CHECK(next < tensors.size()) << program.name;
    if (param.parts > 1) tensors[next] = ir::InParts(tensors[next], param.rows, param.parts);
    ++next;
  }
}

std::string HostStep(const BuiltProgram& built) {
  std::string step = built.host_step;
  for (const isa::ProgramParam& param : built.program.params) {
    if (param.parts == 1) continue;
    StrAppend(&step, step.empty() ? "" : ", ", "lays out ", param.name, " in ", param.parts,
              " parts");
  }
  return step;
}

std::vector<simulator::Argument> ProgramArguments(const BuiltProgram& built,
                                                  std::vector<ir::Tensor>& tensors) {
  std::vector<simulator::Argument> arguments;
  size_t next = 0;
  for (size_t i = 0; i < built.program.params.size(); ++i) {
    const isa::ProgramParam& param = built.program.params[i];
    if (param.is_temporary) continue;
    if (!param.is_tensor) {
      arguments.push_back(simulator::Argument::Scalar(built.scalars[i]));
      continue;
    }
    POLYNAO_CHECK(next < tensors.size()) << built.program.name;
    if (!param.any_shape) tensors[next].shape = param.shape;
    arguments.push_back(simulator::Argument::Of(&tensors[next++]));
  }
  return arguments;
}

absl::StatusOr<ir::Module> LoadFunctions(const CaseText& what, const Target& target) {
  if (what.op.ends_with(".nir")) {
    ASSIGN_OR_RETURN(std::string text, ReadFile(what.op));
    ASSIGN_OR_RETURN(ir::Module module, ir::ParseModule(text, what.op));
    for (const ir::Function& function : module.functions) {
      RETURN_IF_ERROR(WithContext(what.op, ir::Verify(function)));
    }
    return module;
  }
  if (const kernels::Pipeline* pipeline = kernels::FindPipeline(what.op)) {
    if (IsCard(target.name)) {
      return InvalidInput(what.op,
                          ": pipelines are not for the card: expected --target=cpu, c, cuda "
                          "or interp");
    }
    ASSIGN_OR_RETURN(const kernels::PipelineSize size,
                     kernels::ParsePipelineSize(*pipeline, what.shape));
    ASSIGN_OR_RETURN(ir::Function function,
                     kernels::PipelineFunction(*pipeline, size.rows, size.cols));
    return ir::Module{function.context, {function}};
  }
  if (what.op.find('.') != std::string::npos || std::filesystem::is_regular_file(what.op)) {
    return InvalidInput(what.op, ": expected a file whose name ends in .nir, or an operator");
  }
  ASSIGN_OR_RETURN(const std::vector<OperatorCase> cases, ParseCases(what, target));
  ir::Module module;
  module.context = std::make_shared<ir::Context>();
  for (const OperatorCase& c : cases) {
    ASSIGN_OR_RETURN(const Operator* op, kernels::FindOperator(c));
    ASSIGN_OR_RETURN(const OperatorCase chosen, SearchSchedule(c, target, what.search));
    ASSIGN_OR_RETURN(const TakenSchedule taken, TakeSchedule(chosen, target));
    ASSIGN_OR_RETURN(ir::Function function, Written(*op, taken.operator_case, target));
    module.functions.push_back(ir::CloneInto(function, module.context));
  }
  return module;
}

absl::StatusOr<OperatorCase> SearchSchedule(const OperatorCase& c, const Target& target,
                                            int count) {
  if (count == 0) return c;
  ASSIGN_OR_RETURN(const Operator* op, kernels::FindOperator(c));
  if (!op->schedules) return c;
  ASSIGN_OR_RETURN(const std::vector<kernels::RankedSchedule> ranked, op->schedules(c, target));
  if (ranked.empty()) return c;  // a shape without elements
  std::vector<kernels::ScheduleChoice> choices = {
      kernels::Choose(ranked, kernels::TunedFor(c, *target.machine)).choice};
  for (const size_t i : SearchOrder(ranked, static_cast<size_t>(count))) {
    if (ranked[i].choice != choices[0]) choices.push_back(ranked[i].choice);
  }
  OperatorCase fastest = c;
  std::optional<int64_t> fewest;
  for (const kernels::ScheduleChoice& choice : choices) {
    OperatorCase trial = c;
    trial.schedule = choice;
    ASSIGN_OR_RETURN(const BuiltProgram built, BuildProgram(trial, target, "compiled"));
    ASSIGN_OR_RETURN(const int64_t cycles, MeasureCycles(built, op->tensors(c), target));
    if (fewest && cycles >= *fewest) continue;
    fewest = cycles;
    fastest = trial;
  }
  return fastest;
}

absl::StatusOr<BuiltProgram> BuildProgram(const OperatorCase& c, const Target& target,
                                          const std::string& impl,
                                          const std::vector<std::string>& without) {
  ASSIGN_OR_RETURN(const Operator* op, kernels::FindOperator(c));
  const isa::ParameterReads reads;
  BuiltProgram built;
  if (impl == "library" || impl == "expert") {
    // Hand-written kernels are texts with the machine's numbers put in.
    if (impl == "library") {
      ASSIGN_OR_RETURN(built, kernels::FindLibraryKernel(c, target));
    } else {
      ASSIGN_OR_RETURN(built, kernels::FindExpertKernel(c, target, [&](const BuiltProgram& kernel) {
                         return MeasureCycles(kernel, op->tensors(c), target);
                       }));
    }
    built.program.machine = reads.Values(*target.machine);
    RETURN_IF_ERROR(CheckQuickly(built, target));
    return built;
  }
  if (impl != "compiled") {
    return InvalidInput("no implementation is named '", impl,
                        "'; there are: compiled, library, expert");
  }
  ASSIGN_OR_RETURN(ir::Function function, BuildFunction(*op, c, target, without));
  ASSIGN_OR_RETURN(built.program, GenerateDianNao(function, target));
  built.scalar_stores = ScalarStores(function);
  if (std::optional<kernels::HostLayout> layout = HostLayoutOf(c, target)) {
    built.host_step = std::move(layout->what);
    built.prepared_input = layout->input;
    built.prepare = std::move(layout->lay_out);
  }
  built.program.machine = reads.Values(*target.machine);
  built.scalars.assign(built.program.params.size(), 0);
  RETURN_IF_ERROR(CheckQuickly(built, target));
  return built;
}

}  // namespace polynao::cases
