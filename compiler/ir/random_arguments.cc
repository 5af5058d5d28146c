#include "compiler/ir/random_arguments.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "compiler/ir/asserted_values.h"
#include "compiler/ir/assertions.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/ir/shapes.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"

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

constexpr int kAssertionStarts = 8;
constexpr int kAssertionSteps = 2000;  // of each start

// Scalars that keep a function's assertions, from those that were drawn: the nearest ones that keep what is affine, one
// scalar after the other in any order; and, where other conditions stay broken (products, floats, sums that wrap), a
// local search from there. Each of its steps changes a free scalar of a condition that does not hold: to where the two
// sides of a comparison meet, were they linear in it, or next to it; by a number that stands in a condition; or to a
// value drawn anew. A step that breaks more conditions is mostly undone.
//
//   n % 64 == 0, 0 < n    from n = 5: n = 64;     from n = 5 * 64: n = 320
//   m == 2 * n            from m = 1, n = 3: m = 6, or n = 0 and m = 0, as n or m comes first
//   n * m == 6            from n = 5, m = 3: the sides meet at n = 2
class AssertionSearch {
 public:
  AssertionSearch(const Function& function, uint64_t seed, const RandomArgumentOptions& options,
                  std::vector<Argument>& arguments)
      : function_(function), seed_(~seed * 3), options_(options), arguments_(arguments) {
    for (const Expr condition : Assertions(function)) Split(condition);
    for (size_t i = 0; i < function.params.size(); ++i) {
      const Param& param = function.params[i];
      if (!param.var) continue;
      places_[param.var] = i;
      if (!options.scalars.contains(std::string(param.name()))) free_.push_back(param.var);
    }
  }

  // Whether all conditions hold in the end.
  bool Run() {
    scalars_ = ScalarsOf(function_, arguments_);
    if (Broken().empty()) return true;
    if (free_.empty()) return false;
    for (int start = 0; start < kAssertionStarts; ++start) {
      for (const Var var : free_) {
        if (start > 0) Set(var, Drawn(var));
      }
      TakeNearest();
      for (int step = 0; step < kAssertionSteps; ++step) {
        const std::vector<Expr> broken = Broken();
        if (broken.empty()) return true;
        if (!Step(broken)) break;
      }
    }
    return false;
  }

 private:
  uint64_t Random(uint64_t below) { return Splitmix(seed_, next_++) % below; }

  // The parts of a conjunction each stand for themselves.
  void Split(Expr condition) {
    if (condition.Is(ExprKind::kAnd)) {
      Split(condition.operand(0));
      Split(condition.operand(1));
      return;
    }
    conditions_.push_back(condition);
    ForEachExpr(condition, [&](Expr e) {
      if (e.Is(ExprKind::kIntImm) && e.int_value() != 0) numbers_.push_back(e.int_value());
    });
  }

  std::vector<Expr> Broken() const {
    std::vector<Expr> broken;
    for (const Expr condition : conditions_) {
      if (!Holds(condition, scalars_).value_or(true)) broken.push_back(condition);
    }
    return broken;
  }

  void Set(Var var, const Argument& value) {
    arguments_[places_.at(var)] = value;
    scalars_[var] = value;
  }

  Argument Drawn(Var var) {
    const uint64_t place = next_++;
    if (IsFloat(var.type())) {
      return Argument::Float(RandomFloat(var.type(), seed_, place, options_.values));
    }
    return Argument::Int(RandomScalar(var.type(), seed_, place, options_));
  }

  // Gives the free integers the values nearest to theirs, or to a multiple by a number in a condition, that keep the
  // affine conditions, if there are any.
  void TakeNearest() {
    std::vector<Var> vars;
    for (const Var var : free_) {
      if (!IsInt(var.type())) continue;
      vars.insert(vars.begin() + static_cast<int64_t>(Random(vars.size() + 1)), var);
    }
    const size_t free = vars.size();
    // Those that are given come first, and must stay as they are.
    for (const Param& param : function_.params) {
      const Var var = param.var;
      if (!var || !IsInt(var.type())) continue;
      if (std::find(free_.begin(), free_.end(), var) == free_.end()) vars.insert(vars.begin(), var);
    }
    const size_t given = vars.size() - free;
    std::vector<int64_t> wanted;
    for (const Var var : vars) {
      uint64_t value = static_cast<uint64_t>(scalars_.at(var).int_value);
      if (wanted.size() >= given && !numbers_.empty() && Random(2) == 0) {
        value *= static_cast<uint64_t>(numbers_[Random(numbers_.size())]);
      }
      wanted.push_back(WrapInt(var.type(), static_cast<int64_t>(value)));
    }
    const auto values = NearestValues(conditions_, vars, wanted);
    if (!values || !std::equal(wanted.begin(), wanted.begin() + given, values->begin())) return;
    for (size_t i = given; i < vars.size(); ++i) Set(vars[i], Argument::Int((*values)[i]));
  }

  // Where lhs - rhs of a comparison is 0 if it is linear in `var`; its value, or none.
  std::optional<int64_t> Meeting(Expr comparison, Var var) {
    const auto difference = [&](int64_t value) -> std::optional<__int128> {
      ScalarValues scalars = scalars_;
      scalars[var] = Argument::Int(value);
      const auto a = IntValue(comparison.operand(0), scalars);
      const auto b = IntValue(comparison.operand(1), scalars);
      if (!a || !b) return std::nullopt;
      return static_cast<__int128>(*a) - *b;
    };
    const int64_t here = scalars_.at(var).int_value;
    const auto at = difference(here);
    const auto next = difference(WrapInt(var.type(), here + (here == INT64_MAX ? -1 : 1)));
    if (!at || !next || *next == *at) return std::nullopt;
    const __int128 slope = here == INT64_MAX ? *at - *next : *next - *at;
    return static_cast<int64_t>(here - *at / slope);
  }

  // Another value of `var`, which `condition` speaks of.
  Argument Another(Expr condition, Var var) {
    if (IsFloat(var.type())) return Drawn(var);
    std::vector<Expr> comparisons;
    ForEachExpr(condition, [&](Expr e) {
      if (IsComparison(e.kind()) && IsInt(e.operand(0).type()) && UsesVar(e, var))
        comparisons.push_back(e);
    });
    // Unsigned, as sums may wrap.
    uint64_t value = static_cast<uint64_t>(scalars_.at(var).int_value);
    const uint64_t way = Random(8);
    if (way == 0) return Drawn(var);
    if (way < 5 && !comparisons.empty()) {
      const auto meeting = Meeting(comparisons[Random(comparisons.size())], var);
      if (meeting) value = static_cast<uint64_t>(*meeting);
      if (way < 3) value += Random(3) - 1;
    } else if (!numbers_.empty()) {
      const auto number = static_cast<uint64_t>(numbers_[Random(numbers_.size())]);
      value += number * (Random(2 * kMaxRandomSize + 1) - kMaxRandomSize);
    }
    return Argument::Int(WrapInt(var.type(), static_cast<int64_t>(value)));
  }

  // Whether there was a scalar to change.
  bool Step(const std::vector<Expr>& broken) {
    const Expr condition = broken[Random(broken.size())];
    std::vector<Var> vars;
    for (const Var var : free_) {
      if (UsesVar(condition, var)) vars.push_back(var);
    }
    if (vars.empty()) return false;
    const Var var = vars[Random(vars.size())];
    const Argument before = scalars_.at(var);
    Set(var, Another(condition, var));
    if (Broken().size() > broken.size() && Random(8) != 0) Set(var, before);
    return true;
  }

  const Function& function_;
  const uint64_t seed_;
  const RandomArgumentOptions& options_;
  std::vector<Argument>& arguments_;
  std::vector<Expr> conditions_;
  std::vector<int64_t> numbers_;
  std::vector<Var> free_;
  absl::flat_hash_map<Var, size_t> places_;
  ScalarValues scalars_;
  uint64_t next_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Argument>> RandomArguments::DrawScalars(
    const Function& function, uint64_t seed, const RandomArgumentOptions& options) {
  std::vector<Argument> arguments(function.params.size());
  size_t given = 0;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Var var = function.params[i].var;
    if (!var) continue;
    const auto it = options.scalars.find(std::string(var.name()));
    if (it != options.scalars.end()) {
      ++given;
      arguments[i] = it->second;
      arguments[i].int_value = IsInt(var.type()) ? WrapInt(var.type(), it->second.int_value) : 0;
    } else if (IsFloat(var.type())) {
      arguments[i] = Argument::Float(RandomFloat(var.type(), ~seed, i, options.values));
    } else {
      arguments[i] = Argument::Int(RandomScalar(var.type(), seed, i, options));
    }
  }
  if (given != options.scalars.size()) {
    std::string names;
    for (const auto& [name, value] : options.scalars) {
      StrAppend(&names, names.empty() ? "" : ", ", name);
    }
    return InvalidInput("function '", function.name,
                        "': not all of these are scalar parameters: ", names);
  }
  if (AssertionSearch(function, seed, options, arguments).Run()) return arguments;
  if (std::all_of(function.params.begin(), function.params.end(), [&](const Param& param) {
        return !param.var || options.scalars.contains(std::string(param.name()));
      })) {
    return CheckAssertions(function, arguments);
  }
  return InvalidInput("function '", function.name, "': no scalars found that keep '@assert(",
                      absl::StrJoin(Assertions(function), ", ",
                                    [](std::string* out, Expr e) { StrAppend(out, Print(e)); }),
                      ")' in ", kAssertionStarts * kAssertionSteps, " tries",
                      options.scalars.empty() ? "" : ", beside those that are given");
}

absl::StatusOr<RandomArguments> RandomArguments::Draw(const Function& function, uint64_t seed,
                                                      const RandomArgumentOptions& options) {
  RandomArguments result;
  // Scalars first: extents may use them.
  ASSIGN_OR_RETURN(result.arguments_, DrawScalars(function, seed, options));
  IntValues values;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Var var = function.params[i].var;
    if (var && IsInt(var.type())) values[var] = result.arguments_[i].int_value;
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
