// Which accesses of a vectorized loop are one wide, aligned access.
#ifndef COMPILER_CODEGEN_CUDA_LANES_H_
#define COMPILER_CODEGEN_CUDA_LANES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/visit.h"

namespace polynao::codegen {

// Whether `e` is a multiple of `n` for all values of its variables, as far as its constants and those of
// the values of `lets`, which do not wrap, show.
bool IsMultiple(ir::Expr e, int64_t n, const ir::VarMap& lets);

// For a variable `lane` that runs from 0 to n - 1: `e` as `first + step * lane`, where `first` does not
// use it; unset if it is not seen to be of that form. Knows sums, products by constants, and
// quotients and remainders that a group of n aligned lanes has in common: (i * 4 + lane) / 8.
struct Lanes {
  ir::Expr first;
  int64_t step = 0;
};
std::optional<Lanes> LanesOf(ir::Expr e, ir::Var lane, int64_t n, const ir::VarMap& lets);

// Whether the elements of `buffer` at `indices` for lane 0 to n - 1 stand side by side, the first at a
// multiple of n elements, where the first `dropped` dimensions are no part of the address. Then
// `first` has the indices for lane 0.
bool IsWide(ir::Buffer buffer, absl::Span<const ir::Expr> indices, size_t dropped, ir::Var lane,
            int64_t n, const ir::VarMap& lets, std::vector<ir::Expr>* first);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_LANES_H_
