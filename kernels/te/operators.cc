#include "kernels/te/operators.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status.h"
#include "kernels/te/convolution.h"
#include "kernels/te/elementwise.h"
#include "kernels/te/matmul.h"
#include "kernels/te/pool.h"
#include "kernels/te/reduce.h"

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

absl::Status CheckScalar(const Operator& op, const OperatorCase& c) {
  if (c.scalar && !op.scalar) {
    return InvalidInput("operator ", op.name, " takes no scalar, found ", *c.scalar);
  }
  const double scalar = ScalarOf(op, c);
  // Beyond 2^53 neighbouring integers are one number here.
  const bool is_integer = std::trunc(scalar) == scalar && std::abs(scalar) <= 0x1p53;
  if (ir::IsInt(c.dtype) && !(is_integer && ir::FitsInt(c.dtype, static_cast<int64_t>(scalar)))) {
    return InvalidInput("operator ", op.name, ", scalar ", scalar, ": expected a value of ",
                        ir::TypeName(c.dtype));
  }
  return absl::OkStatus();
}

absl::Status CheckShape(absl::Span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape) {
    if (extent < 0) {
      return InvalidInput("shape ", ShapeText(shape), ": expected extents of 0 or more, found ",
                          extent);
    }
    if (__builtin_mul_overflow(count, extent, &count) || count >= (int64_t{1} << 40)) {
      return InvalidInput("shape ", ShapeText(shape), ": expected fewer than 2^40 elements");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAttributes(const Operator& op, const OperatorCase& c) {
  for (const auto& [name, value] : c.attributes) {
    const auto it = std::find_if(
        op.attributes.begin(), op.attributes.end(),
        [&name](const OperatorAttribute& attribute) { return attribute.name == name; });
    if (it == op.attributes.end()) {
      std::vector<std::string> names;
      for (const OperatorAttribute& attribute : op.attributes) names.push_back(attribute.name);
      return InvalidInput(
          "operator ", op.name, ", attribute '", name,
          "': ", names.empty() ? "it takes none" : "expected one of " + absl::StrJoin(names, ", "));
    }
    double number;
    const bool fits = it->words.empty()
                          ? value == it->default_value || absl::SimpleAtod(ToAbsl(value), &number)
                          : std::find(it->words.begin(), it->words.end(), value) != it->words.end();
    if (fits) continue;
    return InvalidInput("operator ", op.name, ", attribute ", name, ": expected ",
                        it->words.empty() ? "a number" : "one of " + absl::StrJoin(it->words, ", "),
                        ", found '", value, "'");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Operator> Operators() {
  static const auto* operators = [] {
    auto* all = new std::vector<Operator>(ElementwiseOperators());
    for (auto more : {ConvolutionOperators, MatmulOperators, PoolOperators, ReduceOperators}) {
      for (Operator& op : more()) all->push_back(std::move(op));
    }
    return all;
  }();
  return *operators;
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

absl::StatusOr<const Operator*> FindOperator(const OperatorCase& c) {
  const Operator* found = nullptr;
  std::string names;
  for (const Operator& op : Operators()) {
    StrAppend(&names, names.empty() ? "" : ", ", op.name);
    if (op.name == c.op) found = &op;
  }
  if (found == nullptr) {
    return absl::NotFoundError(StrCat("no operator is named '", c.op, "'; there are: ", names));
  }
  if (found->floats_only && !ir::IsFloat(c.dtype)) {
    return InvalidInput("operator ", c.op, " of ", ir::TypeName(c.dtype),
                        ": expected f16, bf16, f32 or f64");
  }
  RETURN_IF_ERROR(CheckScalar(*found, c));
  const size_t shapes = c.operands.size() + 1;
  if (shapes < found->shapes.size() ||
      shapes > found->shapes.size() + found->optional_shapes.size()) {
    const size_t optional = found->optional_shapes.size();
    return InvalidInput(
        "operator ", c.op, ": expected ", found->shapes.size(), " shape",
        found->shapes.size() == 1 ? "" : "s", " (", absl::StrJoin(found->shapes, ", "), ")",
        optional == 0 ? "" : StrCat(", or ", found->shapes.size() + optional), ", found ", shapes);
  }
  RETURN_IF_ERROR(CheckShape(c.shape));
  for (const std::vector<int64_t>& shape : c.operands) RETURN_IF_ERROR(CheckShape(shape));
  RETURN_IF_ERROR(CheckAttributes(*found, c));
  if (found->check) RETURN_IF_ERROR(found->check(c));
  return found;
}

double ScalarOf(const Operator& op, const OperatorCase& c) {
  return c.scalar.value_or(op.scalar.value_or(0));
}

double ToleranceOf(const Operator& op, const OperatorCase& c, const Target& target) {
  const bool has_own_math = target.name == "cpu" || target.name == "c";
  if (op.tolerance_steps == 0 || !has_own_math) return 0;
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

}  // namespace polynao::kernels
