#include "kernels/te/operators.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "base/check.h"
#include "base/status.h"
#include "kernels/te/elementwise.h"

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

}  // namespace

absl::Span<const Operator> Operators() {
  static const auto* operators = new std::vector<Operator>(ElementwiseOperators());
  return *operators;
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
  int64_t count = 1;
  for (int64_t extent : c.shape) {
    if (extent < 0) {
      return InvalidInput("shape ", ShapeText(c.shape), ": expected extents of 0 or more, found ",
                          extent);
    }
    if (__builtin_mul_overflow(count, extent, &count) || count >= (int64_t{1} << 40)) {
      return InvalidInput("shape ", ShapeText(c.shape), ": expected fewer than 2^40 elements");
    }
  }
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

std::string ShapeText(absl::Span<const int64_t> shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (int64_t extent : shape) StrAppend(&text, text.empty() ? "" : "x", extent);
  return text;
}

}  // namespace polynao::kernels
