#include "kernels/operators.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status.h"
#include "kernels/te/attention.h"
#include "kernels/te/card_choice.h"
#include "kernels/te/convolution.h"
#include "kernels/te/elementwise.h"
#include "kernels/te/gather.h"
#include "kernels/te/matmul.h"
#include "kernels/te/movement.h"
#include "kernels/te/normalization.h"
#include "kernels/te/pool.h"
#include "kernels/te/reduce.h"
#include "kernels/te/transposed_convolution.h"
#include "kernels/te/unscheduled.h"
#include "kernels/topi/operators.h"

namespace polynao::kernels {

namespace {

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
    const auto is_number = [&number](const std::string& text) {
      return absl::SimpleAtod(text, &number);
    };
    const std::vector<std::string> parts = absl::StrSplit(value, ':');
    const bool fits = it->is_list
                          ? value.empty() || std::all_of(parts.begin(), parts.end(), is_number)
                      : it->words.empty()
                          ? value == it->default_value || is_number(value)
                          : std::find(it->words.begin(), it->words.end(), value) != it->words.end();
    if (fits) continue;
    return InvalidInput("operator ", op.name, ", attribute ", name, ": expected ",
                        it->is_list         ? "numbers like 0:2"
                        : it->words.empty() ? "a number"
                                            : "one of " + absl::StrJoin(it->words, ", "),
                        ", found '", value, "'");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Operator> Operators() {
  static const auto* operators = [] {
    auto* all = new std::vector<Operator>;
    for (auto more : {ElementwiseOperators, ConvolutionOperators, MatmulOperators, PoolOperators,
                      ReduceOperators, UnscheduledOperators, FusedLayers, NormalizationOperators,
                      MovementOperators, AttentionOperators, GatherOperators,
                      TransposedConvolutionOperators, TopiOperators}) {
      for (Operator& op : more()) {
        if (op.schedules) ChooseOnCard(op);
        all->push_back(std::move(op));
      }
    }
    return all;
  }();
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
  if (found->floats_only && !ir::IsFloat(c.dtype) &&
      !(found->takes_i8 && c.dtype == ir::Type::kI8)) {
    return WrongType(c, found->takes_i8 ? "f16, bf16, f32, f64 or i8" : "f16, bf16, f32 or f64");
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

}  // namespace polynao::kernels
