#include "compiler/passes/same_meaning.h"

#include <vector>

#include "base/status.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/tensor.h"

namespace polynao {

using ir::Function;

namespace {

// A function's buffer parameters after it ran.
struct Outcome {
  std::vector<ir::Tensor> tensors;
  ir::Counts counts;
  absl::Status status;
};

// Interprets `function` on random arguments, the same for the same seed.
absl::StatusOr<Outcome> RunOnRandomArguments(const Function& function,
                                             const ir::InterpreterOptions& options, uint64_t seed) {
  Outcome result;
  // Scalars first: extents may use them.
  ir::IntValues scalars;
  std::vector<ir::Argument> arguments(function.params.size());
  for (size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    if (!param.var) continue;
    const int64_t value = 1 + static_cast<int64_t>((seed + i * 7) % 5);
    arguments[i] = ir::IsFloat(param.var.type()) ? ir::Argument::Float(static_cast<double>(value))
                                                 : ir::Argument::Int(value);
    if (ir::IsInt(param.var.type())) scalars[param.var] = value;
  }
  ASSIGN_OR_RETURN(std::vector<std::vector<int64_t>> shapes,
                   ir::ParameterShapes(function, scalars));
  result.tensors.reserve(function.params.size());
  for (size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    if (!param.buffer) continue;
    result.tensors.push_back(ir::RandomTensor(param.buffer->type, shapes[result.tensors.size()],
                                              seed + result.tensors.size()));
    arguments[i] = ir::Argument::Of(&result.tensors.back());
  }
  result.status = ir::Interpret(function, arguments, &result.counts, options);
  return result;
}

ir::InterpreterOptions OptionsFor(const Target& target) {
  ir::InterpreterOptions options;
  if (target.instructions != nullptr) options.intrinsics = &target.instructions->intrinsics();
  return options;
}

}  // namespace

absl::Status CheckSameMeaning(const Function& before, const Function& after, const Target& target,
                              uint64_t seed) {
  const ir::InterpreterOptions options = OptionsFor(target);
  if (before.params.size() != after.params.size()) {
    return absl::InternalError("the number of parameters changed");
  }
  ASSIGN_OR_RETURN(Outcome a, RunOnRandomArguments(before, options, seed));
  ASSIGN_OR_RETURN(Outcome b, RunOnRandomArguments(after, options, seed));
  if (a.status.ok() != b.status.ok()) {
    return absl::InternalError(a.status.ok()
                                   ? StrCat("it stops: ", ToStd(b.status.message()))
                                   : StrCat("it no longer stops: ", ToStd(a.status.message())));
  }
  if (!a.status.ok()) return absl::OkStatus();
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    b.tensors[i].shape = a.tensors[i].shape;
    if (a.tensors[i].bytes == b.tensors[i].bytes) continue;
    if (a.tensors[i].bytes.size() != b.tensors[i].bytes.size()) {
      return absl::InternalError(StrCat("buffer ", i, " has another size"));
    }
    const ir::Difference d = ir::Compare(a.tensors[i], b.tensors[i]);
    if (d.where < 0) continue;  // NaNs of other bits
    return absl::InternalError(StrCat("buffer ", i, ", element ", d.where, ": ",
                                      a.tensors[i].Value(d.where), " became ",
                                      b.tensors[i].Value(d.where), " (seed ", seed, ")"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ir::Counts> CountOperations(const Function& function, const Target& target,
                                           uint64_t seed, int64_t max_iterations) {
  ir::InterpreterOptions options = OptionsFor(target);
  options.max_operations = max_iterations;
  ASSIGN_OR_RETURN(Outcome outcome, RunOnRandomArguments(function, options, seed));
  RETURN_IF_ERROR(outcome.status);
  return outcome.counts;
}

}  // namespace polynao
