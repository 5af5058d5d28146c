#include "compiler/ir/flat_index.h"

#include "compiler/ir/type.h"

namespace polynao::ir {

Expr FoldedProduct(Expr a, Expr b) {
  int64_t product = 0;
  if (a.Is(ExprKind::kIntImm) && b.Is(ExprKind::kIntImm) &&
      !__builtin_mul_overflow(a.int_value(), b.int_value(), &product) &&
      FitsInt(a.type(), product)) {
    return a.context().Int(a.type(), product);
  }
  if (b.IsInt(1)) return a;
  if (a.IsInt(1)) return b;
  return a * b;
}

Expr FoldedSum(Expr a, Expr b) {
  int64_t sum = 0;
  if (a.Is(ExprKind::kIntImm) && b.Is(ExprKind::kIntImm) &&
      !__builtin_add_overflow(a.int_value(), b.int_value(), &sum) && FitsInt(a.type(), sum)) {
    return a.context().Int(a.type(), sum);
  }
  if (a.IsInt(0)) return b;
  if (b.IsInt(0)) return a;
  return a + b;
}

Expr Typed(Type type, Expr e) {
  Context& context = e.context();
  return e.Is(ExprKind::kIntImm) ? context.Int(type, e.int_value()) : context.Cast(type, e);
}

Expr FlatIndex(const BufferNode* buffer, absl::Span<const Expr> indices, Type type) {
  Context& context = *buffer->context;
  Expr flat = context.Int(type, 0);
  for (size_t d = 0; d < indices.size(); ++d) {
    Expr stride = context.Int(type, 1);
    for (size_t k = d + 1; k < indices.size(); ++k) {
      stride = FoldedProduct(stride, Typed(type, buffer->extents[k]));
    }
    const Expr index = Typed(type, indices[d]);
    flat = FoldedSum(flat, index.IsInt(0) ? index : FoldedProduct(index, stride));
  }
  return flat;
}

}  // namespace polynao::ir
