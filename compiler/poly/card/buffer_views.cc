#include "compiler/poly/card/buffer_views.h"

#include <algorithm>
#include <cstddef>

#include "compiler/arith/linear_form.h"
#include "compiler/arith/symbolic_interval.h"

namespace polynao::poly {

using ir::Buffer;
using ir::Expr;
using ir::ExprKind;

std::vector<int64_t> StepsOf(const std::vector<int64_t>& extents, int64_t elements) {
  std::vector<int64_t> steps(extents.size());
  for (size_t d = extents.size(); d-- > 0; elements *= extents[d]) steps[d] = elements;
  return steps;
}

std::vector<Expr> BufferViews::Shape(const std::vector<int64_t>& extents) {
  std::vector<Expr> shape;
  for (const int64_t extent : extents) shape.push_back(c_.Int(index_type_, extent));
  return shape;
}

Buffer BufferViews::NewBuffer(const std::string& name, ir::Type type,
                              const std::vector<int64_t>& extents) {
  return c_.NewBuffer(name, type, Shape(extents));
}

Buffer BufferViews::View(Buffer whole, const std::vector<int64_t>& extents) {
  list_.emplace_back(NewBuffer(whole->name, whole->type, extents), whole);
  return list_.back().first;
}

Buffer BufferViews::InShape(Buffer buffer, const std::vector<int64_t>& extents) {
  const bool is_same =
      std::equal(extents.begin(), extents.end(), buffer->extents.begin(), buffer->extents.end(),
                 [](int64_t a, Expr b) { return b.IsInt(a); });
  return is_same ? buffer : View(buffer, extents);
}

std::optional<BufferParts> PartsOf(Buffer buffer, const std::vector<int>& parts,
                                   const std::vector<int>& dimensions) {
  BufferParts result = {.steps = std::vector<int64_t>(parts.size())};
  size_t next = dimensions.size(), next_part = parts.size();
  int64_t step = 1;
  for (size_t d = buffer->extents.size(); d-- > 0;) {
    const Expr extent = buffer->extents[d];
    if (!extent.Is(ExprKind::kIntImm)) return std::nullopt;
    if (next > 0 && dimensions[next - 1] == static_cast<int>(d)) {
      --next;
    } else if (next_part > 0 && parts[next_part - 1] == static_cast<int>(d)) {
      if (next > 0 && extent.int_value() > 1) return std::nullopt;
      result.steps[--next_part] = step;
    } else if (extent.int_value() > 1) {
      return std::nullopt;
    }
    step *= extent.int_value();
  }
  if (next > 0 || next_part > 0) return std::nullopt;
  return result;
}

std::optional<Buffer> BufferViews::WhereItStands(const NestStage& copy, Buffer target) {
  if (!copy.value.Is(ExprKind::kLoad)) return std::nullopt;
  const Buffer from(copy.value.buffer());
  arith::LinearForm place;
  int64_t stride = 1;
  for (size_t d = from->extents.size(); d-- > 0;) {
    const Expr extent = from->extents[d];
    if (!extent.Is(ExprKind::kIntImm)) return std::nullopt;
    if (!place.Add(arith::Decompose(copy.value.operand(d)), stride)) return std::nullopt;
    stride *= extent.int_value();
  }
  int64_t elements = 1;
  for (size_t a = copy.axes.size(); a-- > 0; elements *= copy.extents[a]) {
    if (copy.extents[a] > 1 && !place.AddTerm(copy.axes[a], -elements)) return std::nullopt;
  }
  if (elements != stride || !place.IsConstant() || place.constant() != 0) return std::nullopt;
  std::vector<int64_t> extents;
  for (const Expr extent : target->extents) extents.push_back(extent.int_value());
  return View(from, extents);
}

}  // namespace polynao::poly
