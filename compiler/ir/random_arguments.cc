#include "compiler/ir/random_arguments.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/shapes.h"

namespace polynao::ir {
namespace {

int64_t RandomScalar(Type type, uint64_t seed, uint64_t i, const RandomArgumentOptions& options) {
  const uint64_t bits = Splitmix(~seed, i);
  if (type == Type::kI1) return static_cast<int64_t>(bits % 2);
  const auto small = static_cast<int64_t>((bits >> 8) % (kMaxRandomSize + 1));
  if (options.small_integers || bits % 8 < 4) return small;
  if (bits % 8 == 4) return WrapInt(type, -1 - small);
  return RandomInt(type, seed, i, options.values);
}

}  // namespace

absl::StatusOr<RandomArguments> RandomArguments::Draw(const Function& function, uint64_t seed,
                                                      const RandomArgumentOptions& options) {
  RandomArguments result;
  result.arguments_.resize(function.params.size());
  // Scalars first: extents may use them.
  IntValues values;
  size_t given = 0;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Var var = function.params[i].var;
    if (!var) continue;
    const auto it = options.scalars.find(std::string(var.name()));
    if (it != options.scalars.end()) {
      ++given;
      result.arguments_[i] = it->second;
      result.arguments_[i].int_value =
          IsInt(var.type()) ? WrapInt(var.type(), it->second.int_value) : 0;
    } else if (IsFloat(var.type())) {
      result.arguments_[i] = Argument::Float(RandomFloat(var.type(), ~seed, i, options.values));
    } else {
      result.arguments_[i] = Argument::Int(RandomScalar(var.type(), seed, i, options));
    }
    if (IsInt(var.type())) values[var] = result.arguments_[i].int_value;
  }
  if (given != options.scalars.size()) {
    std::string names;
    for (const auto& [name, value] : options.scalars) {
      StrAppend(&names, names.empty() ? "" : ", ", name);
    }
    return InvalidInput("function '", function.name,
                        "': not all of these are scalar parameters: ", names);
  }
  ASSIGN_OR_RETURN(const auto shapes, ParameterShapes(function, values));
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Param& param = function.params[i];
    if (!param.buffer) continue;
    const size_t place = result.tensors_.size();
    int64_t count = 1;
    for (int64_t extent : shapes[place]) {
      if (__builtin_mul_overflow(count, extent, &count)) count = options.max_elements + 1;
    }
    if (count > options.max_elements) {
      return InvalidInput("parameter '", param.name(), "' has more than ", options.max_elements,
                          " elements");
    }
    Tensor& tensor = result.tensors_.emplace_back(
        RandomTensor(param.buffer->type, shapes[place], seed + place, options.values));
    result.arguments_[i] = Argument::Of(&tensor);
  }
  return result;
}

RandomArguments::RandomArguments(const Function& function, uint64_t seed,
                                 const RandomArgumentOptions& options) {
  absl::StatusOr<RandomArguments> drawn = Draw(function, seed, options);
  POLYNAO_CHECK(drawn.ok()) << drawn.status();
  tensors_ = std::move(drawn->tensors_);  // moving a deque keeps its elements' addresses
  arguments_ = std::move(drawn->arguments_);
}

RandomArguments::RandomArguments(std::deque<Tensor> tensors) : tensors_(std::move(tensors)) {
  for (Tensor& tensor : tensors_) arguments_.push_back(Argument::Of(&tensor));
}

RandomArguments::RandomArguments(const RandomArguments& other)
    : tensors_(other.tensors_), arguments_(other.arguments_) {
  size_t next = 0;
  for (Argument& argument : arguments_) {
    if (argument.tensor != nullptr) argument.tensor = &tensors_[next++];
  }
}

absl::Status RandomArguments::Reshape(const Function& function) {
  IntValues values;
  for (size_t i = 0; i < function.params.size() && i < arguments_.size(); ++i) {
    const Var var = function.params[i].var;
    if (var && IsInt(var.type())) values[var] = arguments_[i].int_value;
  }
  ASSIGN_OR_RETURN(const auto shapes, ParameterShapes(function, values));
  if (shapes.size() != tensors_.size()) return InvalidInput("the parameters are others");
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int64_t count = tensors_[i].element_count();
    tensors_[i].shape = shapes[i];
    if (tensors_[i].element_count() != count) {
      return InvalidInput("buffer parameter ", i, " has ", tensors_[i].element_count(),
                          " elements, expected ", count);
    }
  }
  return absl::OkStatus();
}

}  // namespace polynao::ir
