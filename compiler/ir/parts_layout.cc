#include "compiler/ir/parts_layout.h"

#include <algorithm>
#include <variant>

#include "base/check.h"

namespace polynao::ir {
namespace {

constexpr char kInParts[] = "in_parts";

}  // namespace

std::vector<PartsLayout> PartsLayoutsOf(const Function& function) {
  std::vector<PartsLayout> layouts;
  for (const Attribute& attribute : function.attributes) {
    if (attribute.key != kInParts || attribute.values.size() != 3) continue;
    const auto* name = std::get_if<std::string>(&attribute.values[0]);
    const auto* rows = std::get_if<Expr>(&attribute.values[1]);
    const auto* parts = std::get_if<Expr>(&attribute.values[2]);
    const bool is_layout = name != nullptr && rows != nullptr && parts != nullptr &&
                           rows->Is(ExprKind::kIntImm) && parts->Is(ExprKind::kIntImm);
    if (is_layout) layouts.push_back({*name, rows->int_value(), parts->int_value()});
  }
  return layouts;
}

void AddPartsLayout(Function& function, const PartsLayout& layout) {
  if (layout.parts == 1) return;
  Context& c = *function.context;
  function.attributes.push_back({.key = kInParts,
                                 .values = {layout.parameter, c.Int(Type::kI64, layout.rows),
                                            c.Int(Type::kI64, layout.parts)}});
}

Tensor InParts(const Tensor& tensor, int64_t rows, int64_t parts) {
  const auto size = static_cast<int64_t>(tensor.bytes.size());
  POLYNAO_CHECK(rows >= 1 && parts >= 1 && tensor.element_count() % (rows * parts) == 0)
      << rows << " rows of " << parts << " parts";
  const int64_t bytes = size / (rows * parts);
  Tensor result = tensor;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t part = 0; part < parts; ++part) {
      std::copy_n(tensor.bytes.begin() + (row * parts + part) * bytes, bytes,
                  result.bytes.begin() + (part * rows + row) * bytes);
    }
  }
  return result;
}

}  // namespace polynao::ir
