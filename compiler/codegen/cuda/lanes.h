// Finds the accesses of a vectorized loop that can be one wide, aligned access.
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

// Returns true if the constants in `e` prove that it is a multiple of `n` for all values of its variables. The values
// of `lets`, which do not wrap, are looked into.
bool IsMultiple(ir::Expr e, int64_t n, const ir::VarMap& lets);

// `e` as `first + step * lane` for a variable `lane` from 0 to n - 1 that `first` does not use; unset if
// `e` is not found to have that form. Knows sums, products by constants, and quotients and remainders
// that are equal for n aligned lanes: (i * 4 + lane) / 8.
struct Lanes {
  ir::Expr first;
  int64_t step = 0;
};
std::optional<Lanes> LanesOf(ir::Expr e, ir::Var lane, int64_t n, const ir::VarMap& lets);

// Returns true if the elements of `buffer` at `indices` for lanes 0 to n - 1 are adjacent and start at a multiple of n
// elements; the first `dropped` dimensions are no part of the address. If so, `first` gets the indices for lane 0.
bool IsWide(ir::Buffer buffer, absl::Span<const ir::Expr> indices, size_t dropped, ir::Var lane,
            int64_t n, const ir::VarMap& lets, std::vector<ir::Expr>* first);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_CUDA_LANES_H_
