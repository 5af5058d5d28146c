#include "compiler/codegen/arguments.h"

#include <bit>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/aliases.h"
#include "compiler/ir/assertions.h"
#include "compiler/ir/shapes.h"

namespace polynao::codegen {
namespace {

using ir::Argument;

std::string Place(const ir::Function& function, const ir::Param& param) {
  return StrCat(function.name, ": argument '", param.name(), "'");
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  return StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace

absl::StatusOr<RawArguments> LayOutArguments(const ir::Function& function,
                                             absl::Span<const Argument> arguments) {
  if (arguments.size() != function.params.size()) {
    return InvalidInput(function.name, ": expected ", function.params.size(), " arguments, got ",
                        arguments.size());
  }
  ir::IntValues values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ir::Var var = function.params[i].var;
    if (var && arguments[i].tensor != nullptr) {
      return InvalidInput(Place(function, function.params[i]), ": expected a scalar of type ",
                          TypeName(var.type()), ", got a tensor");
    }
    if (var && ir::IsInt(var.type())) {
      values[var] = ir::WrapInt(var.type(), arguments[i].int_value);
    }
  }
  RETURN_IF_ERROR(ir::CheckAssertions(function, arguments));
  ASSIGN_OR_RETURN(const auto shapes, ir::ParameterShapes(function, values));
  RawArguments raw;
  const ir::Aliases aliases(function);
  // The parameter that each tensor was given for first.
  absl::flat_hash_map<const ir::Tensor*, ir::Buffer> seen;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ir::Param& param = function.params[i];
    const Argument& argument = arguments[i];
    if (param.var) {
      const ir::Type type = param.var.type();
      if (ir::IsFloat(type)) {
        raw.scalars.push_back(std::bit_cast<int64_t>(ir::RoundFloat(type, argument.float_value)));
        continue;
      }
      raw.scalars.push_back(ir::WrapInt(type, argument.int_value));
      continue;
    }
    const std::vector<int64_t>& shape = shapes[raw.buffers.size()];
    ir::Tensor* tensor = argument.tensor;
    if (tensor == nullptr) {
      return InvalidInput(Place(function, param), ": expected a tensor of type ",
                          TypeName(param.buffer->type), " and shape ", ShapeText(shape),
                          ", got a scalar");
    }
    if (tensor->type != param.buffer->type || tensor->shape != shape) {
      return InvalidInput(Place(function, param), ": expected a tensor of type ",
                          TypeName(param.buffer->type), " and shape ", ShapeText(shape), ", got ",
                          TypeName(tensor->type), " ", ShapeText(tensor->shape));
    }
    const auto [it, added] = seen.try_emplace(tensor, param.buffer);
    const auto group = aliases.Group(param.buffer);
    if (!added && !(group && group == aliases.Group(it->second))) {
      return InvalidInput(Place(function, param),
                          ": the same tensor is given for another parameter, and buffers must not "
                          "alias");
    }
    raw.buffers.push_back(tensor->bytes.data());
  }
  return raw;
}

}  // namespace polynao::codegen
