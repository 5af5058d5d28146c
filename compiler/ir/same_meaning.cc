#include "compiler/ir/same_meaning.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/compare.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/scalar_text.h"
#include "compiler/ir/tensor.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"

namespace polynao::ir {
namespace {

// Iterations of loops that one draw may take where there are others.
constexpr int64_t kMaxIterations = 2'000'000;

std::string ValueText(const Tensor& tensor, int64_t i) {
  if (IsFloat(tensor.type)) return StrCat(tensor.Float(i));
  if (IsUnsigned(tensor.type)) return StrCat(static_cast<uint64_t>(tensor.Int(i)));
  return StrCat(tensor.Int(i));
}

// "element 3 of B is 1, expected 2"; "" if there is no difference.
std::string TensorsDiffer(const Function& function, const RandomArguments& expected,
                          const RandomArguments& actual, int64_t max_ulps) {
  size_t place = 0;
  for (const Param& param : function.params) {
    if (!param.buffer) continue;
    const Tensor& want = expected.tensors()[place];
    const Tensor& got = actual.tensors()[place];
    ++place;
    const int64_t i = FirstDifference(want, got, max_ulps);
    if (i >= 0) {
      return StrCat("element ", i, " of ", param.name(), " is ", ValueText(got, i), ", expected ",
                    ValueText(want, i));
    }
  }
  return "";
}

// "n = 3, x = 0.5": the scalars, for messages.
std::string ScalarsText(const Function& function, const RandomArguments& arguments) {
  std::string text;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Var var = function.params[i].var;
    if (!var) continue;
    StrAppend(&text, text.empty() ? "" : ", ", var.name(), " = ",
              ScalarText(var.type(), arguments.arguments()[i]));
  }
  return text;
}

// Whether another draw of scalars can differ from this one.
bool HasFreeScalars(const Function& function, const MeaningOptions& options) {
  return std::any_of(function.params.begin(), function.params.end(), [&](const Param& param) {
    return param.var && IsInt(param.var.type()) &&
           !options.arguments.scalars.contains(std::string(param.var.name()));
  });
}

struct Draw {
  RandomArguments before;  // the arguments
  RandomArguments after;   // what they are after the run
  Counts counts;           // what the run executed
};

// Argument lists on which a function runs to its end, one after the other.
class Draws {
 public:
  Draws(const Function& function, uint64_t seed, const MeaningOptions& options,
        int64_t max_iterations)
      : function_(function), seed_(seed), options_(options), max_iterations_(max_iterations) {
    draws_ = HasFreeScalars(function, options) ? options.draws : 1;
    if (draws_ > 1) max_iterations_ = std::min(max_iterations_, kMaxIterations);
  }

  // None: there are no more; Stop() says why the last one that failed did.
  absl::StatusOr<std::optional<Draw>> Next() {
    if (interpreter_ == nullptr) {
      ASSIGN_OR_RETURN(interpreter_,
                       Interpreter::Create(function_, {.intrinsics = options_.instructions,
                                                       .max_operations = max_iterations_}));
    }
    while (next_ < draws_) {
      const uint64_t seed = seed_ + static_cast<uint64_t>(next_++) * 0x10001;
      RandomArgumentOptions options = options_.arguments;
      // Small sizes first: nearly every function runs on some of them.
      options.small_integers |= next_ <= 2;
      absl::StatusOr<RandomArguments> arguments = RandomArguments::Draw(function_, seed, options);
      if (!arguments.ok()) {
        stop_ = arguments.status();
        continue;
      }
      RandomArguments result = *arguments;
      Counts counts;
      const absl::Status status = interpreter_->Run(result.arguments(), &counts);
      if (!status.ok()) {
        const std::string scalars = ScalarsText(function_, result);
        stop_ = scalars.empty() ? status : WithContext(StrCat("with ", scalars), status);
        continue;
      }
      return Draw{*std::move(arguments), std::move(result), counts};
    }
    return std::nullopt;
  }
  const absl::Status& Stop() const { return stop_; }

 private:
  const Function& function_;
  const uint64_t seed_;
  const MeaningOptions& options_;
  int64_t max_iterations_;
  int draws_;
  int next_ = 0;
  std::unique_ptr<Interpreter> interpreter_;
  absl::Status stop_;
};

std::string StopsText(const Draws& draws) {
  return StrCat("the function stops on all arguments tried, so nothing is compared: ",
                ToStd(draws.Stop().message()));
}

}  // namespace

std::string Disagreement(const Function& function, const RandomArguments& arguments,
                         const Runner& run, int64_t max_ulps) {
  const auto report = [&](const auto&... what) { return StrCat(what..., "\n", Print(function)); };
  RandomArguments expected = arguments;
  RandomArguments actual = arguments;
  const absl::Status interpreted = Interpret(function, expected.arguments());
  if (!interpreted.ok()) return report("the interpreter stops: ", interpreted.message());
  const absl::Status ran = run(actual.arguments());
  if (!ran.ok()) return report("compiled code: ", ran.message());
  const std::string differs = TensorsDiffer(function, expected, actual, max_ulps);
  return differs.empty() ? "" : report(differs);
}

std::string CompareMeaning(const Function& before, const Function& after, uint64_t seed,
                           const MeaningOptions& options) {
  if (options.stopped != nullptr) *options.stopped = false;
  if (const absl::Status status = Verify(after); !status.ok()) {
    return StrCat("not well-formed: ", ToStd(status.message()));
  }
  if (before.params.size() != after.params.size()) return "the number of parameters changed";
  Draws draws(before, seed, options, std::numeric_limits<int64_t>::max());
  absl::StatusOr<std::unique_ptr<Interpreter>> interpreter =
      Interpreter::Create(after, {.intrinsics = options.instructions});
  if (!interpreter.ok()) return std::string(interpreter.status().message());
  int runs = 0;
  while (runs < options.runs) {
    absl::StatusOr<std::optional<Draw>> draw = draws.Next();
    if (!draw.ok()) return std::string(draw.status().message());
    if (!draw->has_value()) break;
    ++runs;
    const RandomArguments& expected = (*draw)->after;
    RandomArguments actual = (*draw)->before;
    const auto report = [&](std::string_view what) {
      const std::string scalars = ScalarsText(before, actual);
      return StrCat(what, " (seed ", seed, scalars.empty() ? "" : ", ", scalars, ")");
    };
    if (const absl::Status shaped = actual.Reshape(after); !shaped.ok()) {
      return report(ToStd(shaped.message()));
    }
    const absl::Status status = (*interpreter)->Run(actual.arguments());
    if (!status.ok()) return report(StrCat("it stops: ", ToStd(status.message())));
    const std::string differs = TensorsDiffer(before, expected, actual, 0);
    if (!differs.empty()) return report(differs);
  }
  if (runs > 0) return "";
  if (options.stopped != nullptr) *options.stopped = true;
  return options.may_stop ? "" : StopsText(draws);
}

absl::StatusOr<Counts> CountOperations(const Function& function, uint64_t seed,
                                       const MeaningOptions& options, int64_t max_iterations) {
  Draws draws(function, seed, options, max_iterations);
  ASSIGN_OR_RETURN(std::optional<Draw> draw, draws.Next());
  if (!draw) return absl::FailedPreconditionError(StopsText(draws));
  return draw->counts;
}

}  // namespace polynao::ir
