// The position of an element in its buffer.
#ifndef COMPILER_IR_FLAT_INDEX_H_
#define COMPILER_IR_FLAT_INDEX_H_

#include "absl/types/span.h"
#include "compiler/ir/ir.h"

namespace polynao::ir {

// The number of elements before the one at `indices` in row-major order, an expression of `type` (i32 or
// i64): i * 12 + j * 4 + k for [i, j, k] in f32[n, 3, 4]. 0 for a buffer without dimensions. Constants are
// folded.
Expr FlatIndex(const BufferNode* buffer, absl::Span<const Expr> indices, Type type = Type::kI64);

// `a * b` and `a + b` of one type, i32 or i64, without needless operations: operands that change nothing are
// left out, and two constants become one unless the result overflows.
Expr FoldedProduct(Expr a, Expr b);
Expr FoldedSum(Expr a, Expr b);

// `e` as a value of the integer type `type`: constants change their type, other expressions get a cast.
Expr Typed(Type type, Expr e);

}  // namespace polynao::ir

#endif  // COMPILER_IR_FLAT_INDEX_H_
