#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/ir/assertions.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_arguments.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/tensor.h"
#include "compiler/passes/queue_interpreter.h"

namespace polynao {
namespace {

// Arguments of a function. Element values are whole numbers from -8 to 8 (0 to 16 of u8): a NaN or an
// infinity would spread over whole sums and so hide what a missing wait does to them.
struct Arguments {
  std::vector<ir::Argument> scalars;               // one per parameter; unset for tensors
  std::vector<std::optional<ir::Tensor>> tensors;  // one per parameter

  static absl::StatusOr<Arguments> Draw(const ir::Function& function, uint64_t seed) {
    Arguments result;
    std::mt19937_64 random(seed);
    ir::IntValues values;
    for (const ir::Param& param : function.params) {
      ir::Argument& argument = result.scalars.emplace_back();
      if (!param.var) continue;
      const int64_t value = 1 + static_cast<int64_t>(random() % 5);
      argument = ir::IsFloat(param.var.type()) ? ir::Argument::Float(static_cast<double>(value))
                                               : ir::Argument::Int(value);
      if (ir::IsInt(param.var.type())) values[param.var] = value;
    }
    if (!ir::CheckAssertions(function, result.scalars).ok()) {
      ASSIGN_OR_RETURN(result.scalars, ir::RandomArguments::DrawScalars(
                                           function, seed, {.values = ir::Values::kExact}));
      for (const auto& [var, argument] : ir::ScalarsOf(function, result.scalars)) {
        if (ir::IsInt(var.type())) values[var] = argument.int_value;
      }
    }
    ASSIGN_OR_RETURN(const std::vector<std::vector<int64_t>> shapes,
                     ir::ParameterShapes(function, values));
    size_t next = 0;
    for (const ir::Param& param : function.params) {
      std::optional<ir::Tensor>& tensor = result.tensors.emplace_back();
      if (!param.buffer) continue;
      tensor.emplace(param.buffer->type, shapes[next++]);
      for (int64_t i = 0; i < tensor->element_count(); ++i) {
        const auto value = static_cast<double>(random() % 17);
        tensor->SetValue(i, param.buffer->type == ir::Type::kU8 ? value : value - 8);
      }
    }
    return result;
  }

  std::vector<ir::Argument> Get() {
    std::vector<ir::Argument> arguments = scalars;
    for (size_t p = 0; p < arguments.size(); ++p) {
      if (tensors[p]) arguments[p] = ir::Argument::Of(&*tensors[p]);
    }
    return arguments;
  }
};

}  // namespace

absl::Status CheckQueueOrder(const ir::Function& function, const Target& target, uint64_t seed,
                             int random) {
  ASSIGN_OR_RETURN(const Arguments inputs, Arguments::Draw(function, seed));
  Arguments expected = inputs;
  RETURN_IF_ERROR(ir::Interpret(function, expected.Get(), nullptr,
                                {.intrinsics = &target.instructions->intrinsics()}));
  ASSIGN_OR_RETURN(const std::unique_ptr<QueueInterpreter> interpreter,
                   QueueInterpreter::Create(function, target));
  std::optional<QueueRecord> first;
  std::string first_name;
  for (const QueueSchedule& schedule : QueueSchedules(random, seed)) {
    Arguments found = inputs;
    QueueRecord record;
    RETURN_IF_ERROR(WithContext(schedule.Name(), interpreter->Run(found.Get(), schedule, &record)));
    for (size_t p = 0; p < function.params.size(); ++p) {
      if (!expected.tensors[p]) continue;
      const ir::Difference difference = ir::Compare(*expected.tensors[p], *found.tensors[p]);
      if (difference.where < 0) continue;
      return absl::InternalError(StrCat(
          schedule.Name(), ": element ", difference.where, " of '", function.params[p].name(),
          "' is ", found.tensors[p]->Value(difference.where), ", in program order ",
          expected.tensors[p]->Value(difference.where), " (seed ", seed, ")"));
    }
    if (!first) {
      first = std::move(record);
      first_name = schedule.Name();
      continue;
    }
    const std::string difference = Difference(*first, record);
    if (difference.empty()) continue;
    return absl::InternalError(StrCat(schedule.Name(), ": ", difference, " than in the order '",
                                      first_name, "' (seed ", seed, ")"));
  }
  return absl::OkStatus();
}

}  // namespace polynao
