// Random arguments of a function.
#ifndef COMPILER_IR_RANDOM_ARGUMENTS_H_
#define COMPILER_IR_RANDOM_ARGUMENTS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/argument.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/random_value.h"
#include "compiler/ir/tensor.h"

namespace polynao::ir {

// The largest integer scalar parameter of a random program (random_program.h).
inline constexpr int64_t kMaxRandomSize = 7;

struct RandomArgumentOptions {
  // Of tensors and float scalars.
  Values values = Values::kAll;
  // Integer scalars from 0 to kMaxRandomSize. Otherwise half of them are, some are negative, and the
  // rest are drawn as elements of tensors are, extremes included.
  bool small_integers = true;
  // Scalars that are given, by the parameter's name.
  std::map<std::string, Argument> scalars = {};
  // More elements than that in a tensor are an error.
  int64_t max_elements = int64_t{1} << 24;
};

// Arguments and the tensors among them.
class RandomArguments {
 public:
  // For functions with small integers; the test stops if they have an extent that cannot be evaluated.
  RandomArguments(const Function& function, uint64_t seed,
                  const RandomArgumentOptions& options = {});
  // Tensors of the caller's choice, for a function without scalar parameters.
  explicit RandomArguments(std::deque<Tensor> tensors);
  // Scalars keep what the function asserts of them (assertions.h). Errors: given scalars that do not, or for which no
  // others were found that do; a tensor that is too large, an extent that overflows, a given scalar that is not a
  // scalar parameter's name.
  static absl::StatusOr<RandomArguments> Draw(const Function& function, uint64_t seed,
                                              const RandomArgumentOptions& options);
  // Its scalars alone: one argument for each parameter, of which those of buffers have no value. The same errors, but
  // those of tensors.
  static absl::StatusOr<std::vector<Argument>> DrawScalars(const Function& function, uint64_t seed,
                                                           const RandomArgumentOptions& options);

  RandomArguments(const RandomArguments& other);
  RandomArguments(RandomArguments&& other) = default;
  RandomArguments& operator=(const RandomArguments&) = delete;

  // Gives the tensors the shapes of another form of the function, with parameters of as many elements.
  absl::Status Reshape(const Function& function);

  const std::vector<Argument>& arguments() const { return arguments_; }
  // The tensors of the buffer parameters, in order.
  const std::deque<Tensor>& tensors() const { return tensors_; }

 private:
  RandomArguments() = default;

  std::deque<Tensor> tensors_;
  std::vector<Argument> arguments_;
};

}  // namespace polynao::ir

#endif  // COMPILER_IR_RANDOM_ARGUMENTS_H_
