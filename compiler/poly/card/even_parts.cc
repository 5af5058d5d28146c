#include "compiler/poly/card/even_parts.h"

#include <algorithm>
#include <cstddef>

#include "compiler/ir/visit.h"

namespace polynao::poly {
namespace {

// The axis of the stage that is the last index of what it copies, if that is another than its own last one; -1 if it
// is no copy of elements by their axes.
int ColumnsOf(const NestStage& stage) {
  const ir::Expr value = stage.value;
  if (stage.reduction || stage.condition || !value || !value.Is(ir::ExprKind::kLoad)) return -1;
  if (stage.axes.size() < 2 || value.operands().size() != stage.axes.size()) return -1;
  for (const ir::Var axis : stage.axes) {
    if (std::count(value.operands().begin(), value.operands().end(), axis) != 1) return -1;
  }
  const auto columns = std::find(stage.axes.begin(), stage.axes.end(), value.operands().back());
  return columns + 1 == stage.axes.end() ? -1 : static_cast<int>(columns - stage.axes.begin());
}

// `stage` along axis d from `begin` on, so many elements.
NestStage Part(ir::Context& c, const NestStage& stage, size_t d, int64_t begin, int64_t extent) {
  NestStage part = stage;
  part.low[d] += begin;
  part.extents[d] = extent;
  if (begin > 0) {
    const ir::Var axis = stage.axes[d];
    part.value = ir::Substitute(stage.value, {{axis, axis + c.Int(axis.type(), begin)}});
  }
  return part;
}

}  // namespace

std::vector<NestStage> EvenParts(ir::Context& c, const NestStage& stage, int64_t unit) {
  const int columns = ColumnsOf(stage);
  if (columns < 0) return {};
  std::vector<NestStage> parts = {stage};
  for (const size_t d : {stage.axes.size() - 1, static_cast<size_t>(columns)}) {
    // What is left over takes longer the larger it is.
    constexpr int64_t kLeastUnits = 4;
    const int64_t extent = stage.extents[d], even = extent / unit * unit;
    if (even == extent || extent < kLeastUnits * unit) continue;
    for (size_t i = parts.size(); i-- > 0;) {
      parts.push_back(Part(c, parts[i], d, even, extent - even));
      parts[i] = Part(c, parts[i], d, 0, even);
    }
  }
  if (parts.size() == 1) parts.clear();
  return parts;
}

}  // namespace polynao::poly
