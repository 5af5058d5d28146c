#include "kernels/te/operator.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status.h"
#include "compiler/ir/random_tensor.h"
#include "compiler/target/target.h"

namespace polynao::kernels {

namespace {

// The distance from 1 to the next larger value of a float type.
double StepAtOne(ir::Type type) {
  switch (type) {
    case ir::Type::kF16:
      return 0x1p-10;
    case ir::Type::kBF16:
      return 0x1p-7;
    case ir::Type::kF32:
      return 0x1p-23;
    case ir::Type::kF64:
      return 0x1p-52;
    default:
      POLYNAO_UNREACHABLE(static_cast<int>(type));
  }
}

}  // namespace

void ComputeReference(const Operator& op, const OperatorCase& c, const Target& target,
                      absl::Span<const ir::Tensor> inputs, absl::Span<ir::Tensor> outputs) {
  const bool is_own = op.processor_reference && IsProcessor(target.name);
  (is_own ? op.processor_reference : op.reference)(c, inputs, outputs);
}

const std::string& AttributeWord(const Operator& op, const OperatorCase& c, std::string_view name) {
  const auto it = c.attributes.find(name);
  if (it != c.attributes.end()) return it->second;
  for (const OperatorAttribute& attribute : op.attributes) {
    if (attribute.name == name) return attribute.default_value;
  }
  POLYNAO_UNREACHABLE(std::string(name));
}

std::optional<int64_t> AttributeInt(const Operator& op, const OperatorCase& c,
                                    std::string_view name) {
  int64_t number;
  if (!absl::SimpleAtoi(ToAbsl(AttributeWord(op, c, name)), &number)) return std::nullopt;
  return number;
}

double ScalarOf(const Operator& op, const OperatorCase& c) {
  return c.scalar.value_or(op.scalar.value_or(0));
}

double ToleranceOf(const Operator& op, const OperatorCase& c, const Target& target) {
  const bool is_exact = op.tolerance_steps == 0 || ir::IsInt(c.dtype);
  if (is_exact || target.facts().has_exact_math) return 0;
  return op.tolerance_steps * StepAtOne(c.dtype);
}

absl::StatusOr<std::vector<int64_t>> ParseShape(std::string_view text) {
  std::vector<int64_t> shape;
  if (text.empty() || text == "scalar") return shape;
  size_t begin = 0;
  while (true) {
    const size_t end = std::min(text.find('x', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    int64_t extent = 0;
    if (!absl::SimpleAtoi(ToAbsl(part), &extent) || extent < 0) {
      return InvalidInput("shape '", text, "': expected extents like 255x27x27, found '", part,
                          "' at character ", begin + 1);
    }
    shape.push_back(extent);
    if (end == text.size()) return shape;
    begin = end + 1;
  }
}

namespace {
constexpr char kWrongType[] = "polynao/wrong_type";
}  // namespace

absl::Status WrongType(const OperatorCase& c, const std::string& expected) {
  absl::Status status =
      InvalidInput("operator ", c.op, " of ", ir::TypeName(c.dtype), ": expected ", expected);
  status.SetPayload(kWrongType, absl::Cord());
  return status;
}
bool IsWrongType(const absl::Status& status) { return status.GetPayload(kWrongType).has_value(); }

bool TakesLoops(const Operator& op, const OperatorCase& c, const Target& target) {
  return op.loops_on_card && c.schedule.empty() && op.loops_on_card(c, target);
}

bool Agrees(const ScheduleChoice& choice, const ScheduleChoice& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& item) {
    const auto it = choice.find(item.first);
    return it != choice.end() && it->second == item.second;
  });
}

std::string ChoiceText(const ScheduleChoice& choice) {
  return absl::StrJoin(choice, " ", absl::PairFormatter("="));
}

absl::Status ParseShapes(std::string_view text, OperatorCase& c) {
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(text), ',');
  c.operands.clear();
  for (size_t i = 0; i < parts.size(); ++i) {
    ASSIGN_OR_RETURN(std::vector<int64_t> shape, ParseShape(parts[i]));
    if (i == 0) {
      c.shape = std::move(shape);
    } else {
      c.operands.push_back(std::move(shape));
    }
  }
  return absl::OkStatus();
}

std::string ShapesText(const OperatorCase& c) {
  std::string text = ShapeText(c.shape);
  for (const std::vector<int64_t>& shape : c.operands) StrAppend(&text, ",", ShapeText(shape));
  return text;
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (int64_t extent : shape) StrAppend(&text, text.empty() ? "" : "x", extent);
  return text;
}

std::vector<double> AttributeList(const Operator& op, const OperatorCase& c,
                                  std::string_view name) {
  std::vector<double> numbers;
  const std::string& text = AttributeWord(op, c, name);
  if (text.empty()) return numbers;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ':'))) {
    double number = 0;
    if (!absl::SimpleAtod(part, &number)) number = 0;
    numbers.push_back(number);
  }
  return numbers;
}

namespace {

// Whether results are compared bit for bit, or within Operator::tolerance_steps.
bool KeepsOrder(const Operator& op, const Target* target) {
  const bool is_other = target != nullptr && target->machine == nullptr;
  return op.tolerance_of_largest == 0 || (op.only_card_reorders && is_other);
}

// Infinities and NaNs must stand where the reference has them (Compare); they say nothing about the size of the other
// values.
double LargestOf(const ir::Tensor& expected) {
  double largest = 0;
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    const double magnitude = std::abs(expected.Float(i));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest;
}

}  // namespace

bool ValuesAgree(const Operator& op, const OperatorCase& c, const Target& target,
                 const ir::Tensor& expected, const ir::Difference& difference,
                 bool is_reassociated) {
  const bool takes_dots = TakesDots(op, c, target);
  if (takes_dots || (is_reassociated && op.tolerance_of_largest == 0)) {
    if (ir::IsInt(expected.type)) return difference.max_abs <= 1;
    constexpr double kOfSums = 1e-5;
    const double step = StepAtOne(expected.type);
    const double part = takes_dots ? op.dots_tolerance + step : kOfSums + 2 * step;
    return difference.max_abs <= part * LargestOf(expected);
  }
  if (KeepsOrder(op, &target)) return difference.max_rel <= ToleranceOf(op, c, target);
  if (ir::IsInt(expected.type)) return difference.max_abs == 0;
  // Of bf16 two neighbouring values are further apart than that.
  const double part = std::max(op.tolerance_of_largest, StepAtOne(expected.type));
  return difference.max_abs <= part * LargestOf(expected);
}

ir::Values ValuesFor(const Operator& op) {
  return KeepsOrder(op, nullptr) ? ir::Values::kAll : ir::Values::kFinite;
}

ir::Values ValuesFor(const Operator& op, const OperatorCase& c, const Target& target,
                     bool is_reassociated) {
  if (TakesDots(op, c, target)) return ir::Values::kExact;
  if (is_reassociated) return ir::Values::kFinite;
  return KeepsOrder(op, &target) ? ir::Values::kAll : ir::Values::kFinite;
}

bool TakesDots(const Operator& op, const OperatorCase& c, const Target& target) {
  return op.dots_tolerance > 0 && c.dtype == ir::Type::kBF16 && HasTiles(target.name);
}

std::vector<ir::Tensor> MakeTensors(const Operator& op, const OperatorCase& c, uint64_t seed,
                                    ir::Values values) {
  const std::vector<TensorSpec> specs = op.tensors(c);
  std::vector<ir::Tensor> tensors;
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto& [name, type, shape] = specs[i];
    if (i + 1 == specs.size()) {
      tensors.emplace_back(type, shape);
    } else if (op.input) {
      tensors.push_back(op.input(c, i, seed + i));
    } else {
      tensors.push_back(ir::RandomTensor(type, shape, seed + i, values));
    }
  }
  return tensors;
}

}  // namespace polynao::kernels
