// Which rows of arrays a vector loop reads, and which of them a loop nest will read soon.
#ifndef COMPILER_CODEGEN_LLVM_ROWS_AHEAD_H_
#define COMPILER_CODEGEN_LLVM_ROWS_AHEAD_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear_form.h"
#include "compiler/ir/ir.h"

namespace polynao::codegen {

// What a load reads in all iterations of a loop: elements of `load`'s array, `step` apart.
struct Row {
  ir::Expr load;
  arith::LinearForm number;  // of the element in memory, with the loop's variable in it
  int64_t step = 1;          // 1 to kMostStride

  ir::Buffer buffer() const { return ir::Buffer(load.buffer()); }
};

// The rows that `loop`, of which `lanes` iterations run at once, reads of arrays for which `is_asked` is true; one for
// all loads that are less than `lanes` steps apart. Loads without a row, such as those with places from memory, are
// left out.
std::vector<Row> RowsOf(ir::Stmt loop, int64_t lanes, absl::FunctionRef<bool(ir::Buffer)> is_asked,
                        arith::Analyzer& analyzer);

// Those that earlier iterations of the loops `around`, outermost first, have read, as windows that move down do.
std::vector<Row> RowsAgain(const std::vector<Row>& rows, int64_t lanes,
                           absl::Span<const ir::Stmt> around);

struct RowAhead {
  Row row;
  int64_t elements = 0;     // from it to what will be read
  arith::LinearForm first;  // its first element: what tells rows apart
};

// Those that no earlier iteration has read, and what will be read in their place in later iterations of a loop around:
//
//   for (y, ..) { vectorize (x, ..) { B[y, x] = A[y, x] + A[y + 1, x] + A[y + 1, x + 1] } }      -->  A[y + 1 + 2, x]
//
// Processors find streams by themselves, but begin anew on each page of memory, so that rows arrive late. (Mowry, Lam,
// Gupta, "Design and evaluation of a compiler algorithm for prefetching", ASPLOS 1992, asks for what is some iterations
// ahead in the row itself; whole rows ahead, what several iterations read is in the second cache in time, and the first
// one is left to what is computed now.)
std::vector<RowAhead> RowsAhead(const std::vector<Row>& rows, ir::Stmt loop, int64_t lanes,
                                absl::Span<const ir::Stmt> around);

}  // namespace polynao::codegen

#endif  // COMPILER_CODEGEN_LLVM_ROWS_AHEAD_H_
