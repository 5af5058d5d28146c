#include "kernels/te/operators.h"

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "kernels/te/elementwise.h"

namespace polynao::kernels {

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
